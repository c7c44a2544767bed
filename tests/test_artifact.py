"""Artifacts: what is written is what runs, and what is damaged or meant for something else does not."""
from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import networks
import numpy as np
import pytest
from artifact_cases import bound, changed, expected, inputs_of

import mxc as mx
from mxc import artifact
from mxc.cli.main import OK, UNSUPPORTED, main
from mxc.compiler.error import (
    ArgumentError,
    ArgumentTypeError,
    FileAccessError,
    ModelFileError,
    MXNetError,
    UnsupportedError,
)
from mxc.runtime import artifact_file
from mxc.runtime.artifact import Artifact

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The artifact of a perceptron with batches of 2 and 5, and training plans."""
    path = tmp_path_factory.mktemp("artifact") / "small.mxc"
    first = bound(networks.perceptron(), train=True, data=(2, 64))
    artifact.save(path, [first, first.reshape(partial_shaping=True, allow_up_sizing=True, data=(5, 64))], ["data"],
                  train=True)
    return path


NETWORKS = [("lenet", (2, 1, 8, 8)), ("perceptron", (2, 64)), ("cifar_resnet20", (1, 3, 32, 32))]


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize(("name", "shape"), NETWORKS)
def test_a_network_comes_back(name: str, shape: tuple[int, ...], keeps: bool, tmp_path: Path):
    executor = bound(getattr(networks, name)(), data=shape)
    inputs = inputs_of(executor, "data")
    artifact.save(tmp_path / "net.mxc", [executor], ["data"], keep_params=keeps)
    loaded = mx.load(tmp_path / "net.mxc")
    for _ in range(2):
        outputs = loaded.predict(**inputs)
        for got, want in zip(outputs.values(), expected(executor, inputs), strict=True):
            np.testing.assert_array_equal(got, want)
    assert list(outputs) == executor._symbol.list_outputs() == list(loaded.output_names)
    assert loaded.input_names == ("data",) and loaded.input_shapes == [{"data": shape}]
    assert loaded.input_dtypes == {"data": "float32"} and loaded.output_dtypes == dict.fromkeys(outputs, "float32")
    assert loaded.output_shapes == [{key: value.shape for key, value in outputs.items()}] and not loaded.trains
    values = {**executor.arg_dict, **executor.aux_dict}
    given = {key for key in values if key != "data" and not key.endswith("label")}
    assert {*loaded.params} | {*loaded.prepared_params} == given and not loaded.missing_params
    assert bool(loaded.prepared_params) is not keeps
    for key, value in loaded.params.items():
        np.testing.assert_array_equal(value, values[key].asnumpy())
        assert not value.flags.writeable and value.ctypes.data % 64 == 0
    assert loaded.symbol.tojson() == executor._symbol.tojson()


def test_shapes_choose_the_plan(small: Path):
    loaded = mx.load(small)
    assert loaded.input_shapes == [{"data": (2, 64)}, {"data": (5, 64)}]
    data = RNG.standard_normal((5, 64)).astype("float32")
    whole = loaded.predict(data=data)["softmax_output"]
    np.testing.assert_allclose(loaded.predict(data=data[:2])["softmax_output"], whole[:2], rtol=1e-5)
    with pytest.raises(MXNetError, match=r"has no plan for data=\(\); it has .*\ngive one of these shapes$"):
        loaded.predict(data=1)
    with pytest.raises(MXNetError, match=r"has no plan for data=3,63; it has plans for data=2,64 or data=5,64"):
        loaded.predict(data=data[:3, 1:])
    code = json.loads(Path(small).read_bytes()[64:].split(b"   ")[0].partition(b"\0")[0])["code"]
    assert len(code["symbols"]) < 20  # kernels are shared


def test_inputs_are_checked_and_converted(small: Path):
    loaded = mx.load(small)
    data = RNG.integers(-3, 3, (2, 64))
    want = loaded.predict(data=data.astype("float32"))["softmax_output"]
    for given in (data, data.tolist(), mx.nd.array(data), data.astype("float64")):
        np.testing.assert_array_equal(loaded.predict(data=given)["softmax_output"], want)
    np.testing.assert_array_equal(loaded.predict(data=data, softmax_label=[1, 2])["softmax_output"], want)
    for inputs, text in ({}, "missing: data"), ({"data": data, "dat": data}, "did you mean 'data'"), \
            ({"data": data.astype(str)}, "needs numbers"), ({"data": data, "fc1_weight": data}, "has no input"):
        with pytest.raises(ArgumentTypeError, match=text):
            loaded.predict(**inputs)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32"])
def test_other_dtypes(dtype: str, tmp_path: Path):
    symbol = mx.sym.Variable("x") * 3 + mx.sym.Variable("w")
    executor = symbol.simple_bind(mx.cpu(), grad_req="null", type_dict={"x": dtype, "w": dtype}, x=(3, 4), w=(3, 4))
    executor.arg_dict["w"][:] = 2
    artifact.save(tmp_path / "net.mxc", [executor], ["x"])
    loaded = mx.load(tmp_path / "net.mxc")
    x = np.arange(12).reshape(3, 4)
    (output,) = loaded.predict(x=x).values()
    assert output.dtype == dtype and loaded.input_dtypes == {"x": dtype} and loaded.params["w"].dtype == dtype
    np.testing.assert_array_equal(output, x * 3 + 2)


def test_training_plans_give_gradients(small: Path):
    loaded = mx.load(small)
    assert loaded.trains
    executor = loaded.executor(data=(5, 64))
    executor._core.compiler = lambda *args: pytest.fail("it compiles") if not loaded._artifact.find(
        "training" if args[4] else "inference", args[1], args[2], args[3]) else loaded._artifact.compile(*args)
    mine = bound(networks.perceptron(), train=True, data=(5, 64))
    data, label = RNG.standard_normal((5, 64)).astype("float32"), np.arange(5, dtype="float32")
    for each in (executor, mine):
        each.forward(is_train=True, data=data, softmax_label=label)
        each.backward()
    for name, grad in mine.grad_dict.items():
        if grad is not None:
            np.testing.assert_array_equal(executor.grad_dict[name].asnumpy(), grad.asnumpy())
    executor.arg_dict["fc1_weight"][:] = 0  # its own
    assert np.abs(loaded.params["fc1_weight"]).max() > 0
    executor.forward(is_train=False, data=data)
    np.testing.assert_allclose(executor.outputs[0].asnumpy().sum(axis=1), 1, rtol=1e-5)


def test_parameters_given_at_load(small: Path, tmp_path: Path):
    executor = bound(networks.perceptron(), data=(2, 64))
    inputs = inputs_of(executor, "data")
    artifact.save(tmp_path / "bare.mxc", [executor], ["data"], with_params=False)
    assert (tmp_path / "bare.mxc").stat().st_size < small.stat().st_size
    assert mx.load(tmp_path / "bare.mxc").params == {}
    with pytest.raises(MXNetError, match="compiled without values of fc1_weight"):
        mx.load(tmp_path / "bare.mxc").predict(**inputs)
    values = {f"arg:{name}": array for name, array in executor.arg_dict.items() if name.startswith("fc")}
    want = expected(executor, inputs)[0]
    for path in (tmp_path / "bare.mxc", small):
        np.testing.assert_allclose(mx.load(path, params=values).predict(**inputs)["softmax_output"], want, rtol=1e-6)
    with pytest.raises(ArgumentError, match="no parameter 'fc1_weigt'; did you mean 'fc1_weight'"):
        mx.load(small, params={"fc1_weigt": np.zeros(3)})
    with pytest.raises(ArgumentError, match="has the shape"):
        mx.load(small, params={"fc1_weight": np.zeros(3)})
    other = mx.load(small, params={"fc1_weight": np.zeros(values["arg:fc1_weight"].shape)})
    assert not other.params["fc1_weight"].any() and other.params["fc2_weight"].any()


def test_a_model_without_parameters(tmp_path: Path):
    executor = (mx.sym.Variable("a") + mx.sym.Variable("b")).simple_bind(mx.cpu(), grad_req="null", a=(3,), b=(3,))
    artifact.save(tmp_path / "net.mxc", [executor], ["a", "b"])
    loaded = mx.load(tmp_path / "net.mxc")
    (output,) = loaded.predict(a=[1, 2, 3], b=[4, 5, 6]).values()
    assert output.tolist() == [5, 7, 9] and loaded.params == {}


def test_an_output_may_be_an_input_or_there_twice(tmp_path: Path):
    x = mx.sym.Variable("x")
    executor = mx.sym.Group([x, x + 1, x * 2, x]).simple_bind(mx.cpu(), grad_req="null", x=(3,))
    artifact.save(tmp_path / "net.mxc", [executor], ["x"])
    outputs = mx.load(tmp_path / "net.mxc").predict(x=[1, 2, 3])
    assert [values.tolist() for values in outputs.values()] == [[1, 2, 3], [2, 3, 4], [2, 4, 6], [1, 2, 3]]
    names = list(outputs)
    assert names[0] == "x[0]" and names[3] == "x[3]"


def sizes(path: Path) -> tuple[bytes, int]:
    """The bytes of a file, and where its manifest ends."""
    data = path.read_bytes()
    return data, 64 + struct.unpack_from("<I", data, 12)[0]


def test_damage_of_any_byte_is_refused(small: Path, tmp_path: Path):
    data, start = sizes(small)
    target = tmp_path / "damaged.mxc"
    places = [*range(64), *RNG.integers(64, start, 100), *RNG.integers(start, len(data), 200), len(data) - 1]
    for place in places:
        damaged = bytearray(data)
        damaged[place] ^= 1 << int(RNG.integers(8))
        target.write_bytes(damaged)
        with pytest.raises(ModelFileError, match=r"damaged.mxc"):
            mx.load(target)
    for length in (0, 1, 63, 64, start, len(data) // 2, len(data) - 1):
        target.write_bytes(data[:length])
        with pytest.raises(ModelFileError, match=r"damaged.mxc"):
            mx.load(target)
    target.write_bytes(data + b"\0")
    with pytest.raises(ModelFileError, match=r"damaged.mxc: it has"):
        mx.load(target)


def test_checksums_tell_every_change():
    data = np.random.default_rng(0).integers(0, 256, 2 * artifact_file.CHUNK + 5 * artifact_file.PAGE, dtype=np.uint8)
    digests = []
    for piece in np.array_split(data, [artifact_file.CHUNK, 2 * artifact_file.CHUNK]):
        rows = piece.view(np.uint64).reshape(-1, 512)
        digests.append(hashlib.sha256(rows.sum(axis=0).tobytes() + rows.sum(axis=1).tobytes()).digest())
    first = artifact_file.checksum(data.data)
    assert first == hashlib.sha256(b"".join(digests)).hexdigest()
    for place in (0, artifact_file.CHUNK - 1, artifact_file.CHUNK, len(data) - 1):
        data[place] ^= 64
        assert artifact_file.checksum(data.data) != first
        data[place] ^= 64
    for step in (8, 64, artifact_file.ROW, 1 << 18, artifact_file.CHUNK):  # words, lines, pages, blocks, and chunks
        moved = np.concatenate([data[step:2 * step], data[:step], data[2 * step:]])
        assert artifact_file.checksum(moved.data) != first
    data[0], data[artifact_file.ROW], data[8] = 1, 2, 4
    first = artifact_file.checksum(data.data)
    for place in (artifact_file.ROW, 8):  # changes that cancel each other in a column, and in a row
        data[0] += 1
        data[place] -= 1
        assert artifact_file.checksum(data.data) != first
        data[0] -= 1
        data[place] += 1


def test_pages_that_changed_places_are_refused(small: Path, tmp_path: Path):
    data, start = sizes(small)
    page = artifact_file.PAGE
    pages = [data[i:i + page] for i in range(0, len(data), page)]
    for i in range(-(-start // page), len(pages) - 1):
        if pages[i] != pages[i + 1]:
            moved = [*pages[:i], pages[i + 1], pages[i], *pages[i + 2:]]
            (tmp_path / "moved.mxc").write_bytes(b"".join(moved))
            with pytest.raises(ModelFileError, match="is damaged"):
                mx.load(tmp_path / "moved.mxc")


def test_what_is_no_artifact_is_refused(small: Path, tmp_path: Path):
    (tmp_path / "text.mxc").write_text("no artifact " * 100)
    with pytest.raises(ModelFileError, match="it is not an artifact of mxc"):
        mx.load(tmp_path / "text.mxc")
    with pytest.raises(FileAccessError, match=r"none.mxc: cannot be read: No such file"):
        mx.load(tmp_path / "none.mxc")
    with pytest.raises(ModelFileError, match="not a regular file"):
        mx.load(tmp_path)
    other = bytearray(small.read_bytes())
    for version in (2, 9):  # of an older mxc, and of a newer one
        other[8] = version
        (tmp_path / "other.mxc").write_bytes(other)
        with pytest.raises(ModelFileError, match=f"it has version {version} of the format of artifacts, this mxc reads "
                           "version 3: compile the model again"):
            mx.load(tmp_path / "other.mxc")


@pytest.mark.parametrize(("label", "text"), [
    ("cpu", "another CPU"), ("features", "avx9000"), ("machine", "m68k"), ("mxc", "0.0.1"),
    ("settings", "MXC_STRICT=1")])
def test_what_was_compiled_for_something_else_is_compiled_here(label: str, text: str, small: Path, tmp_path: Path):
    other = changed(small, tmp_path / "other.mxc",
                    lambda manifest: manifest["parts"].update({label: f"{manifest['parts'][label]} {text}".strip()}))
    with pytest.warns(RuntimeWarning, match=f"other.mxc was compiled for something else.*{text}") as warned:
        loaded = mx.load(other)
    assert len(warned) == 1
    data = RNG.standard_normal((2, 64)).astype("float32")
    np.testing.assert_array_equal(loaded.predict(data=data)["softmax_output"],
                                  mx.load(small).predict(data=data)["softmax_output"])
    executor = loaded.executor(data=(2, 64))
    executor.forward(is_train=True, data=data)
    executor.backward()
    assert np.abs(executor.grad_dict["fc1_weight"].asnumpy()).max() > 0


def test_a_cpu_with_more_features_runs_it(small: Path, tmp_path: Path, recwarn: pytest.WarningsRecorder):
    def fewer(manifest: dict[str, Any]) -> None:
        manifest["parts"]["features"] = " ".join(manifest["parts"]["features"].split()[1:])

    assert not mx.load(changed(small, tmp_path / "other.mxc", fewer))._artifact.stale and not recwarn


CHANGES = {
    "an input": lambda m: m["inputs"].append("nobody"), "outputs": lambda m: m["outputs"].append("nobody"),
    "none": lambda m: m["plans"].clear(),
    "no plans": lambda m: m.pop("plans"), "a plan elsewhere": lambda m: m["plans"][0].update(section="plan 9"),
    "another mode": lambda m: m["plans"][0].update(mode="dream"), "parts": lambda m: m.update(parts=[1]),
    "a parameter outside": lambda m: m["parameters"]["fc1_weight"].__setitem__(2, 1 << 40),
    "a parameter far outside": lambda m: m["parameters"]["fc1_weight"].__setitem__(2, 2**63 - 1),
    "a parameter before": lambda m: m["parameters"]["fc1_weight"].__setitem__(2, -64),
    "a function outside": lambda m: m["code"]["functions"].update(dict.fromkeys(m["code"]["functions"], 1 << 40)),
    "a dtype that NumPy evaluates": lambda m: m["plans"][0]["arrays"]["data"].__setitem__(0, "(1,2"),
    "a shape": lambda m: m["parameters"]["fc1_weight"].__setitem__(1, [1 << 40]),
    "a dtype": lambda m: m["parameters"]["fc1_weight"].__setitem__(0, "object"),
    "arrays": lambda m: m["plans"][0].update(arrays={}), "code": lambda m: m["code"].update(symbols=3),
    "kernels": lambda m: m["code"].update(symbols={}),
    "a parameter without facts": lambda m: m["parameters"].update(fc1_weight=None),
    "prepared": lambda m: m["plans"][0].update(prepared={"0": 1 << 40}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_manifest_that_makes_no_sense_is_refused(change: Any, small: Path, tmp_path: Path):
    other = changed(small, tmp_path / "other.mxc", change)
    with pytest.raises(ModelFileError, match="its content is not of the form that mxc writes"):
        mx.load(other).predict(data=np.zeros((2, 64)))


def test_objects_where_there_is_no_image(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mxc.compiler.targets.cpu.build.image.is_native", lambda: False)
    executor = bound(networks.perceptron(), data=(2, 64))
    artifact.save(tmp_path / "objects.mxc", [executor], ["data"])
    assert Artifact(tmp_path / "objects.mxc", mx.VERSION).code["form"] == "objects"
    inputs = inputs_of(executor, "data")
    np.testing.assert_array_equal(mx.load(tmp_path / "objects.mxc").predict(**inputs)["softmax_output"],
                                  expected(executor, inputs)[0])


def test_compile_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)
    executor = bound(networks.lenet(), data=(2, 1, 8, 8))
    executor._symbol.save("net-symbol.json")
    mx.nd.save("net-0000.params", {f"arg:{n}": a for n, a in executor.arg_dict.items() if n not in ("data",)
                                   and not n.endswith("label")})
    command = ["compile", "net-symbol.json", "--shape", "data=2,1,8,8", "--shape", "data=1,1,8,8", "-o", "net.mxc"]
    assert main([*command, "--json", "--jobs", "1"]) == OK
    facts = json.loads(capsys.readouterr().out)
    assert facts["artifact"] == "net.mxc" and facts["artifact_bytes"] == Path("net.mxc").stat().st_size
    assert [each["shapes"] for each in facts["sets"]] == [{"data": [2, 1, 8, 8]}, {"data": [1, 1, 8, 8]}]
    inputs = inputs_of(executor, "data")
    np.testing.assert_array_equal(mx.load("net.mxc").predict(**inputs)["softmax_output"], expected(executor, inputs)[0])
    assert main([*command, "--train"]) == OK
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "shapes: data=2,1,8,8" and lines[-3] == "artifact: net.mxc"
    assert lines[-1] == "other batches: cut and filled up"
    assert mx.load("net.mxc").trains


def test_steps_that_python_runs(tmp_path: Path):
    net = mx.sym.linalg.potrf(mx.sym.Variable("a") * 2, name="factor") + 1
    executor = net.simple_bind(mx.cpu(), grad_req="null", a=(2, 2))
    assert any(step.host is not None for step in executor.compiled().plan.steps)
    artifact.save(tmp_path / "potrf.mxc", [executor], ["a"])
    loaded = mx.load(tmp_path / "potrf.mxc")
    (output,) = loaded.predict(a=np.diag([2.0, 8.0])).values()
    assert output.tolist() == [[3, 1], [1, 5]]
    with pytest.raises(MXNetError, match=r"'factor': .*not positive definite"):
        loaded.predict(a=np.zeros((2, 2)))


def test_indices_that_are_refused(tmp_path: Path):
    table, index = mx.sym.Variable("table"), mx.sym.Variable("index")
    net = mx.sym.take(table * 2, index, mode="raise", name="rows") + 1
    executor = net.simple_bind(mx.cpu(), grad_req="null", table=(4, 3), index=(2,))
    artifact.save(tmp_path / "take.mxc", [executor], ["table", "index"])
    loaded = mx.load(tmp_path / "take.mxc")
    (output,) = loaded.predict(table=np.arange(12).reshape(4, 3), index=[1, 3]).values()
    assert output.tolist() == [[7, 9, 11], [19, 21, 23]]
    with pytest.raises(MXNetError, match=r"'rows': expected indices from 0 to 3 .*, got 4"):
        loaded.predict(table=np.zeros((4, 3)), index=[1, 4])


def test_random_numbers_are_drawn_in_each_run(tmp_path: Path):
    executor = mx.sym.random.uniform(shape=(100,)).simple_bind(mx.cpu(), grad_req="null")
    artifact.save(tmp_path / "random.mxc", [executor], [])
    loaded = mx.load(tmp_path / "random.mxc")
    mx.random.seed(3)
    first, second = (next(iter(loaded.predict().values())) for _ in range(2))
    assert np.any(first != second)
    mx.random.seed(3)
    np.testing.assert_array_equal(first, next(iter(loaded.predict().values())))


def test_operators_of_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    class Double(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * 2)

    @mx.operator.register("artifact_double")
    class Property(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Double()

    symbol = mx.sym.Custom(mx.sym.Variable("x") + 1, op_type="artifact_double", name="double")
    artifact.save(tmp_path / "net.mxc", [symbol.simple_bind(mx.cpu(), grad_req="null", x=(3,))], ["x"])
    assert mx.load(tmp_path / "net.mxc").predict(x=[1, 2, 3])["double_output"].tolist() == [4, 6, 8]

    class Pair(Property):
        def list_outputs(self):
            return ["one", "two"]

        def infer_shape(self, in_shape):
            return in_shape, in_shape * 2, []

    mx.operator.register("artifact_double")(Pair)  # as in a program whose operator of that name is another one
    with pytest.raises(MXNetError, match=r"double.*other inputs or outputs than when it was compiled"):
        mx.load(tmp_path / "net.mxc").predict(x=[1, 2, 3])
    symbol.save(str(tmp_path / "net-symbol.json"))
    from mxc.compiler.ops import table

    monkeypatch.setattr(table, "made", {})  # as in a program that has no such operator
    assert main(["compile", str(tmp_path / "net-symbol.json"), "--shape", "x=3"]) == UNSUPPORTED
    assert "'Custom' (node 'double'" in capsys.readouterr().err
    with pytest.raises(UnsupportedError, match=r"net.mxc: .*\n.*'Custom' \(node 'double'.*mx.operator.register"):
        mx.load(tmp_path / "net.mxc").predict(x=[1, 2, 3])
    with pytest.raises(UnsupportedError, match=r"^[^<\n]*net.mxc: unknown operators"):
        assert mx.load(tmp_path / "net.mxc").symbol


def test_executors_of_several_shapes_share_the_parameters_shape(tmp_path: Path):
    flat = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    first = bound(flat, data=(2, 4))
    second = bound(flat, data=(2, 8))
    with pytest.raises(MXNetError, match=r"'fc_weight' has the shape \(2, 4\) for the first input shapes and \(2, 8\)"):
        artifact.save(tmp_path / "net.mxc", [first, second], ["data"])
    with pytest.raises(ArgumentError, match="'dat' is not an argument of the model; did you mean 'data'"):
        artifact.save(tmp_path / "net.mxc", [first], ["dat"])
    with pytest.raises(FileAccessError, match="cannot be written"):
        artifact.save(tmp_path / "none" / "net.mxc", [first], ["data"])
    assert not list(tmp_path.iterdir())


def test_labels_that_are_not_given_are_zero(tmp_path: Path):
    executor = (mx.sym.Variable("x") + mx.sym.Variable("a_label")).simple_bind(mx.cpu(), grad_req="null", x=(2,))
    artifact.save(tmp_path / "net.mxc", [executor], ["x"])
    loaded = mx.load(tmp_path / "net.mxc")
    assert loaded.further_inputs == ("a_label",)
    for inputs, want in ({}, [1, 2]), ({"a_label": [5, 5]}, [6, 7]), ({}, [1, 2]):
        assert next(iter(loaded.predict(x=[1, 2], **inputs).values())).tolist() == want


@pytest.mark.parametrize("name", ["self", "output 0", "output 1", "arg:x", "a/b", "ü = 1", "", "ctx", "is_train"])
def test_inputs_of_any_name(name: str, tmp_path: Path):
    data, other = mx.sym.Variable(name), mx.sym.Variable("other")
    executor = mx.sym.Group([data * 2, mx.sym.sum(data, axis=1), other + data]).bind(
        mx.cpu(), {name: mx.nd.zeros((2, 3)), "other": mx.nd.zeros((2, 3))})
    artifact.save(tmp_path / "named.mxc", [executor], [name, "other"])
    model, values = mx.load(tmp_path / "named.mxc"), RNG.standard_normal((2, 3)).astype("float32")
    for _ in range(2):
        outputs = model.predict(**{name: values, "other": values * 5})
        for found, wanted in zip(outputs.values(), (values * 2, values.sum(1), values * 6), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    other_cpu = changed(tmp_path / "named.mxc", tmp_path / "other.mxc", lambda m: m["parts"].update(cpu="another"))
    with pytest.warns(RuntimeWarning, match="compiled for something else"):
        found = mx.load(other_cpu).predict(**{name: values, "other": values * 5})
    assert all((found[key] == outputs[key]).all() for key in outputs)
    executor = model.executor({name: (2, 3), "other": (2, 3)}, ctx=mx.cpu(), grad_req="null")
    executor.arg_dict[name][:] = values
    np.testing.assert_allclose(executor.forward()[0].asnumpy(), values * 2)


def test_what_is_no_array_is_named(small: Path):
    with pytest.raises(ArgumentTypeError, match="input 'data' is no array"):
        mx.load(small).predict(data=[[1.0], [2.0, 3.0]])


def test_settings_are_compared_by_what_they_mean(small: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MXC_STRICT", "0")
    monkeypatch.setenv("MXC_SKIP", " , ")
    assert not mx.load(small)._artifact.stale
    monkeypatch.setenv("MXC_STRICT", "yes")
    assert "MXC_STRICT=1" in Artifact(small, mx.VERSION).stale


def test_executors_that_do_not_belong_together(small: Path, tmp_path: Path):
    path, symbol = tmp_path / "none.mxc", networks.perceptron()
    first = bound(symbol, data=(2, 64))
    for others, message in [([], "at least one"), ([first, first], "same shapes"),
                            ([first, bound(mx.sym.Variable("data") * 2, data=(2, 64))], "different symbols"),
                            ([first, bound(symbol, dtype="float64", data=(3, 64))], "is float32 .* and float64")]:
        with pytest.raises(ArgumentError, match=message):
            artifact.save(path, others, ["data"])
    assert not path.exists()
    with pytest.raises(ArgumentError, match=r"'data' is an input of .*: give it to predict"):
        mx.load(small, params={"data": np.zeros((2, 64))})
