"""Artifacts hold what their plans read, once; what needs the parameters as they were given says so."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import networks
import numpy as np
import pytest
from artifact_cases import bound, changed, expected, inputs_of

import mxc as mx
from mxc import artifact
from mxc.compiler.error import ModelFileError, MXNetError
from mxc.runtime import artifact_file
from mxc.runtime.artifact import Artifact


def parameter_bytes(executor: Any, *inputs: str) -> int:
    return sum(int(np.prod(array.shape)) * 4 for name, array in {**executor.arg_dict, **executor.aux_dict}.items()
               if name not in inputs and not name.endswith("label"))


def test_a_file_has_what_its_plans_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Plans for several batches share it. With the parameters as they were given it has these besides."""
    monkeypatch.setenv("MXC_MEMORY", "small")
    first = bound(networks.cifar_resnet20(), data=(1, 3, 32, 32))
    several = [first, *(first.reshape(partial_shaping=True, allow_up_sizing=True, data=(n, 3, 32, 32))
                        for n in (2, 3))]
    sizes = []
    for name, executors, keeps in (("one", several[:1], False), ("all", several, False), ("kept", several[:1], True)):
        artifact.save(tmp_path / name, executors, ["data"], keep_params=keeps)
        sections = Artifact(tmp_path / name, mx.VERSION).contents.sections
        sizes.append((len(sections["parameters"]), len(sections["prepared"])))
    whole, page = parameter_bytes(first, "data"), artifact_file.PAGE
    assert sizes[0][0] + sizes[0][1] <= 1.1 * whole + 2 * page
    assert sizes[1] == sizes[0] and sizes[2][1] == sizes[0][1] and sizes[2][0] >= whole
    inputs = inputs_of(several[2], "data")
    (got,) = mx.load(tmp_path / "all").predict(**inputs).values()
    np.testing.assert_array_equal(got, expected(several[2], inputs)[0])


def test_what_was_only_prepared_is_told(tmp_path: Path):
    """Whatever needs the parameters as they were given says so, and works where they are given."""
    executor = bound(networks.perceptron(), data=(2, 64))
    artifact.save(tmp_path / "net.mxc", [executor], ["data"])
    inputs, want = inputs_of(executor, "data"), expected(executor, inputs_of(executor, "data"))[0]
    loaded = mx.load(tmp_path / "net.mxc")
    assert "fc1_weight" in loaded.prepared_params and "fc1_weight" not in loaded.params
    with pytest.raises(MXNetError, match=r"net.mxc has .*fc1_weight.* only as its plans read them\n.*--keep-params"):
        loaded.executor()
    values = {name: array for name, array in executor.arg_dict.items() if name.startswith("fc")}
    some = mx.load(tmp_path / "net.mxc", params={"fc2_weight": values["fc2_weight"]})
    assert {*some.missing_params} == {*loaded.prepared_params} - {"fc2_weight"}
    with pytest.raises(MXNetError, match=r"fc1_weight.* only as its plans read them"):
        some.predict(**inputs)
    whole = mx.load(tmp_path / "net.mxc", params=values)
    np.testing.assert_allclose(whole.predict(**inputs)["softmax_output"], want, rtol=1e-6)
    np.testing.assert_allclose(whole.executor().forward(**inputs)[0].asnumpy(), want, rtol=1e-6)
    other = changed(tmp_path / "net.mxc", tmp_path / "other.mxc", lambda m: m["parts"].update(cpu="another"))
    with pytest.raises(ModelFileError, match=r"other.mxc: it was compiled for something else .*another.*as that code "
                       r"reads them\n.*--keep-params"):
        mx.load(other)
    with pytest.warns(RuntimeWarning, match="compiled for something else"):
        elsewhere = mx.load(other, params=values)
    for _ in range(2):  # the executor has given its parameters back when the second run comes
        np.testing.assert_allclose(elsewhere.predict(**inputs)["softmax_output"], want, rtol=1e-6)
