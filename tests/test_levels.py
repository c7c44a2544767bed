"""Code for a level of CPUs instead of for this machine's."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import networks
import numpy as np
import pytest

import mxc as mx
from mxc.cli.main import main
from mxc.compiler.error import SettingError, TargetError
from mxc.compiler.targets.cpu.machine import host, levels
from mxc.runtime import artifact_file

FLAGS = frozenset(host.host_parts()["features"].split())
HAVE = [level for level in levels.LEVELS.values() if level.flags <= FLAGS]


@pytest.mark.parametrize("level", HAVE, ids=lambda level: level.name)
def test_p03_an_artifact_for_a_level_runs_on_every_cpu_of_it(level: levels.Level, tmp_path: Path,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    symbol = networks.lenet()
    symbol.save(str(tmp_path / "net-symbol.json"))
    arguments = [sys.executable, "-m", "mxc", "compile", str(tmp_path / "net-symbol.json"), "--shape",
                 "data=2,1,8,8", "--target", f"cpu:{level.name}", "-o", str(tmp_path / "net.mxc"), "--json"]
    done = subprocess.run(arguments, capture_output=True, text=True, env={**os.environ, "MXC_CACHE_DIR": ""})
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["artifact"]
    parts = artifact_file.read(tmp_path / "net.mxc").manifest["parts"]
    assert parts["cpu"] == host.ANY and set(parts["features"].split()) == level.flags

    shapes = dict(zip(symbol.list_arguments(), symbol.infer_shape(data=(2, 1, 8, 8))[0], strict=True))
    rng = np.random.default_rng(0)
    values = {n: rng.standard_normal(s).astype("float32") * 0.3 for n, s in shapes.items() if n != "softmax_label"}
    data = values.pop("data")
    executor = symbol.simple_bind(mx.cpu(), data=(2, 1, 8, 8))
    for name, value in values.items():
        executor.arg_dict[name][:] = value
    expected = executor.forward(is_train=False, data=data)[0].asnumpy()

    def predicted() -> np.ndarray:
        return mx.load(tmp_path / "net.mxc", params=values).predict(data=data)["softmax_output"]

    own = {**host.host_parts()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is used as it is, on another CPU of the level too
        np.testing.assert_allclose(predicted(), expected, 1e-5, 1e-6)
        monkeypatch.setattr(host, "_own_parts", lambda: own | {"cpu": "another"})
        np.testing.assert_allclose(predicted(), expected, 1e-5, 1e-6)
    monkeypatch.setattr(host, "_own_parts", lambda: own | {"features": "sse2"})
    with pytest.warns(RuntimeWarning, match="compiled for something else.*features that this CPU lacks: .*ssse3"):
        mx.load(tmp_path / "net.mxc", params=values)


def test_what_is_no_level(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MXC_CPU", "x86-64-v9")
    with pytest.raises(SettingError, match=r"MXC_CPU: there is no level 'x86-64-v9'.*expected one of x86-64-v2"):
        levels.chosen()
    networks.perceptron().save(str(tmp_path / "net-symbol.json"))
    shape = ["--shape", "data=2,64"]
    assert main(["compile", str(tmp_path / "net-symbol.json"), *shape, "--target", "gpu:0"]) == 2
    assert "expected cpu, cpu: and a level, as cpu:x86-64-v3, or cuda: and an architecture" in capsys.readouterr().err


def test_a_level_that_the_machine_lacks_is_refused() -> None:
    with pytest.raises(TargetError, match=r"x86-64-v4: this machine \(x86_64\) lacks .*avx512f.*compile for a lower"):
        levels.check_here(levels.LEVELS["x86-64-v4"], "x86_64", levels.LEVELS["x86-64-v3"].flags)
    with pytest.raises(TargetError, match=r"x86-64-v2: this machine \(aarch64\) lacks"):
        levels.check_here(levels.LEVELS["x86-64-v2"], "aarch64", frozenset())
    levels.check_here(levels.LEVELS["x86-64-v2"], "x86_64", levels.LEVELS["x86-64-v4"].flags)


@pytest.mark.parametrize("level", HAVE, ids=lambda level: level.name)
def test_what_passes_made_for_a_level_is_made_again_as_it_was(level: levels.Level, tmp_path: Path,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    """Host steps name nodes of the graph that the passes made, which differs from level to level, as blocks do."""
    wide = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=16, pad=(1, 1), name="first")
    wide = mx.sym.Convolution(mx.sym.relu(wide), kernel=(3, 3), num_filter=16, pad=(1, 1), name="second")
    net = mx.sym.linalg.gelqf(mx.sym.slice_axis(wide, axis=2, begin=0, end=4))[1]
    executor = net.simple_bind(mx.cpu(), grad_req="null", data=(1, 16, 8, 8))
    rng = np.random.default_rng(0)
    for array in executor.arg_dict.values():
        array[:] = rng.standard_normal(array.shape)
    expected = executor.forward()[0].asnumpy()
    net.save(str(tmp_path / "net-symbol.json"))
    mx.nd.save(str(tmp_path / "net-0000.params"), {f"arg:{n}": a for n, a in executor.arg_dict.items() if n != "data"})
    made = str(tmp_path / "net.mxc")
    subprocess.run([sys.executable, "-m", "mxc", "compile", str(tmp_path / "net-symbol.json"), "--shape",
                    "data=1,16,8,8", "--target", f"cpu:{level.name}", "--keep-params", "-o", made], check=True)
    model = mx.load(made)
    (found,) = model.predict(data=executor.arg_dict["data"].asnumpy()).values()
    np.testing.assert_allclose(found, expected, 1e-3, 1e-4)
    compiled = model.executor().compiled()
    assert compiled.plan.graph and len(compiled.graph.nodes) > max(b.node or 0 for b in compiled.plan.buffers)
