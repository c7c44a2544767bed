"""Models in another precision: what becomes narrow, what stays, and what commands say of it."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networks
import numpy as np
import pytest
from test_batches import bound, language_model

import mxc as mx
from mxc.cli.inputs import made_up_parameter
from mxc.cli.main import BAD_FILE, OK, USAGE, main
from mxc.compiler.ops.dtypes import dtype_name, numpy_dtype, widened
from mxc.precision import narrowed

Captured = pytest.CaptureFixture[str]


def narrow(symbol: Any, dtype: str = "float16") -> tuple[Any, list[str]]:
    """The symbol in a narrow dtype, written and read, and the parameters that are of it."""
    graph, names = narrowed(symbol.graph, dtype)
    return mx.sym.load_json(mx.sym.Symbol(graph.outputs).tojson()), names


def results(symbol: Any, dtype: str = "float16",
            **inputs: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray], Any]:
    """A model's outputs in float32 and in the narrow dtype, and the latter's executor."""
    wide = bound(symbol, **{name: array.shape for name, array in inputs.items()})
    for name, array in (wide.arg_dict | wide.aux_dict).items():
        if name not in inputs and not name.endswith("label"):
            array[:] = made_up_parameter(name, array.shape, "float32")
    made, _ = narrow(symbol, dtype)
    slim = made.simple_bind(mx.cpu(), grad_req="null", **{name: array.shape for name, array in inputs.items()})
    slim.copy_params_from(wide.arg_dict, wide.aux_dict)
    found = []
    for executor in (wide, slim):
        outputs = executor.forward(is_train=False, **{name: mx.nd.array(array) for name, array in inputs.items()})
        found.append([output.asnumpy() for output in outputs])
    return found[0], found[1], slim


@pytest.mark.parametrize(("dtype", "share"), [("float16", 0.01), ("bfloat16", 0.06)])
@pytest.mark.parametrize(("name", "shape"), [("lenet", (4, 1, 8, 8)), ("perceptron", (4, 64)),
                                             ("cifar_resnet20", (2, 3, 32, 32))])
def test_a_network_keeps_its_face(name: str, shape: tuple[int, ...], dtype: str, share: float):
    symbol = getattr(networks, name)()
    data = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    (wide, *_), (slim, *_), executor = results(symbol, dtype, data=data)
    assert 0 < np.abs(wide - slim).max() < share * np.abs(wide).max() and slim.dtype == np.float32
    made, names = narrow(symbol, dtype)
    assert made.list_outputs() == symbol.list_outputs() and made.list_arguments() == symbol.list_arguments()
    assert executor.arg_dict["data"].dtype == np.float32
    assert all(executor.arg_dict[name].dtype == numpy_dtype(dtype) for name in names)
    weights = [n for n in symbol.list_arguments() if n.endswith("weight")]
    assert weights and {*weights} <= {*names}
    assert all(array.dtype == np.float32 for array in executor.aux_dict.values())


def test_indices_stay_as_they_are():
    """float16 has no odd number above 2048."""
    words = mx.sym.Variable("words")
    embedded = mx.sym.Embedding(words, input_dim=5000, output_dim=3, name="embed")
    best = mx.sym.argmax(mx.sym.FullyConnected(embedded, num_hidden=4000, flatten=False, name="fc"), axis=2)
    wide, slim, executor = results(mx.sym.Group([embedded, best]), words=np.array([[4097.0, 2049.0]]))
    np.testing.assert_allclose(slim[0], wide[0], rtol=1e-3)
    assert executor.arg_dict["embed_weight"].dtype == np.float16 and executor.arg_dict["words"].dtype == np.float32
    assert slim[1].max() > 2048 and np.array_equal(slim[1], wide[1])


def test_what_leaves_the_range_of_float16_is_computed_in_float32():
    product = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, no_bias=True, name="fc")
    for symbol in mx.sym.exp(product), mx.sym.square(product), mx.sym.sum(product * 30, axis=1):
        wide, slim, _ = results(symbol, data=np.full((2, 300), 30, np.float32))
        assert np.abs(wide[0]).max() > 300 and np.isfinite(slim[0]).all()
    graph, _ = narrowed(mx.sym.exp(product).graph, "float16")
    assert [node.op.name for node in graph.nodes if node.op] == ["Cast", "FullyConnected", "Cast", "exp"]


def test_parameters_that_float32_reads_too_stay():
    weight = mx.sym.Variable("weight", shape=(4, 4))
    product = mx.sym.FullyConnected(mx.sym.Variable("data"), weight, num_hidden=4, no_bias=True)
    graph, names = narrowed(mx.sym.Group([product, mx.sym.exp(weight)]).graph, "float16", ["weight"])
    assert names == [] and sum(node.op is not None and node.op.name == "Cast" for node in graph.nodes) == 3


def test_integers_and_casts_of_the_model_stay():
    data = mx.sym.Variable("data")
    product = mx.sym.FullyConnected(data, num_hidden=4, name="fc")
    exact = mx.sym.cast(mx.sym.cast(product, dtype="float64") * 2, dtype="float32")
    wide, slim, _ = results(mx.sym.Group([exact, mx.sym.cast(product * 100, dtype="int32")]),
                            data=np.ones((2, 3), np.float32))
    assert [array.dtype for array in slim] == [array.dtype for array in wide]


def test_a_recurrent_model():
    words = np.random.default_rng(0).integers(0, 20, (7, 2)).astype(np.float32)
    wide, slim, executor = results(language_model(), data=words, softmax_label=words)
    np.testing.assert_allclose(slim[0], wide[0], rtol=0.02, atol=1e-3)
    assert executor.arg_dict["lstm_weight"].dtype == np.float16


# ---- commands

@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """A current directory with net-symbol.json, its parameters, and examples.npz."""
    monkeypatch.chdir(tmp_path)
    data = mx.sym.Variable("data")
    body = mx.sym.Activation(mx.sym.Convolution(data, kernel=(3, 3), num_filter=8, name="conv"), act_type="relu")
    symbol = mx.sym.FullyConnected(body, num_hidden=5, name="scores")
    symbol.save("net-symbol.json")
    executor = bound(symbol, data=(2, 3, 6, 6))
    mx.nd.save("net-0000.params", {f"arg:{name}": array for name, array in executor.arg_dict.items()
                                   if name != "data"})
    examples = np.random.default_rng(0).standard_normal((7, 3, 6, 6)).astype(np.float32)
    np.savez("examples.npz", data=examples)
    return examples


NET = ("net-symbol.json", "--shape", "data=2,3,6,6")


def predicted(path: str, data: np.ndarray) -> np.ndarray:
    (output,) = mx.load(path).predict(data=data).values()
    return output


@pytest.mark.parametrize("precision", ["float16", "bfloat16", "int8"])
def test_compile_says_what_to_expect(precision: str, files: np.ndarray, capsys: Captured):
    assert main(["compile", *NET, "-o", "net.mxc", "--json"]) == OK
    wide = json.loads(capsys.readouterr().out)
    assert main(["compile", *NET, "--precision", precision, "--calibrate", "examples.npz", "-o", "made.mxc",
                 "--keep-params", "--json"]) == OK
    printed = capsys.readouterr()
    report = json.loads(printed.out)
    assert printed.err == "" and report["precision"] == precision and report["compared_on"] == "7 examples"
    assert report["packed_parameter_bytes_in_float32"] == wide["packed_parameter_bytes"]
    assert report["packed_parameter_bytes_now"] == report["packed_parameter_bytes"] < wide["packed_parameter_bytes"]
    model = mx.load("made.mxc")
    stored = sum(array.nbytes for array in model.params.values())
    assert report["parameter_bytes_now"] == stored <= report["parameter_bytes_in_float32"]
    assert report["other_batches"] == "cut and filled up" and model.output_names == ("scores_output",)
    want, found = predicted("net.mxc", files), predicted("made.mxc", files)
    off = np.abs(want - found).max()
    assert report["output_furthest_off"] == "scores_output" and off > 0
    assert report["largest_difference"] == pytest.approx(off, rel=0.01)
    assert report["of_its_largest_value"] == pytest.approx(off / np.abs(want).max(), rel=0.01)
    assert off < {"float16": 0.01, "bfloat16": 0.03, "int8": 0.1}[precision] * np.abs(want).max()
    if precision == "int8":
        assert report["layers_of_8_bits"] == 2


def test_without_examples_it_says_what_it_does(files: np.ndarray, capsys: Captured):
    assert main(["compile", *NET, "--precision", "int8", "-o", "made.mxc"]) == OK
    printed = capsys.readouterr()
    assert printed.err.startswith("mxc compile: note: without --calibrate the ranges of layers are found anew in ")
    assert "other batches: no: data_quantize (_contrib_quantize_v2): it computes across axis 0" in printed.out
    assert "compared on: 2 random inputs" in printed.out
    assert main(["compile", *NET, "--precision", "float16"]) == OK
    assert capsys.readouterr().err == ""


def test_examples_may_be_pictures(files: np.ndarray, capsys: Captured):
    cv2 = pytest.importorskip("cv2")
    Path("photos").mkdir()
    for i in range(3):
        cv2.imwrite(f"photos/{i}.png", np.random.default_rng(i).integers(0, 256, (9, 12, 3)).astype(np.uint8))
    command = ["compile", *NET, "--precision", "int8", "--calibrate", "photos", "--resize", "8", "--mean", "127",
               "--scale", "0.01", "-o", "made.mxc", "--json"]
    assert main(command) == OK
    assert json.loads(capsys.readouterr().out)["compared_on"] == "3 examples"


@pytest.mark.parametrize("precision", ["float16", "bfloat16", "int8"])
def test_convert_writes_the_model(precision: str, files: np.ndarray, capsys: Captured):
    examples = ["--precision", precision, "--calibrate", "examples.npz"]
    assert main(["convert", "net-symbol.json", "made", "--shape", "data=2,3,6,6", *examples, "--json"]) == OK
    report = json.loads(capsys.readouterr().out)
    assert report["written"] == ["made-symbol.json", "made-0000.params"]
    assert main(["convert", "net-symbol.json", "again-symbol.json", *examples]) == OK  # of the examples' shape
    assert "precision:" in capsys.readouterr().out
    np.savez("data.npz", data=files[:2])
    outputs = []
    for model in "net-symbol.json", "made-symbol.json", "again-symbol.json":
        assert main(["run", model, "--input", "data.npz", "-o", "out.npz"]) == OK
        outputs.append(np.load("out.npz")["scores_output"])
    assert 0 < np.abs(outputs[0] - outputs[1]).max() < 0.1 * np.abs(outputs[0]).max()
    np.testing.assert_allclose(outputs[2], outputs[1], rtol=1e-5, atol=1e-5)
    arrays = mx.nd.load("made-0000.params")
    stored = arrays["arg:conv_weight"].dtype
    assert dtype_name(stored) == {"int8": "float32"}.get(precision, precision)


def test_a_model_that_leaves_the_range_is_told(files: np.ndarray, capsys: Captured):
    arrays = mx.nd.load("net-0000.params")
    mx.nd.save("net-0000.params", {**arrays, "arg:conv_weight": arrays["arg:conv_weight"] * 1e6})
    assert main(["compile", *NET, "--precision", "float16", "--json"]) == OK
    printed = capsys.readouterr()
    assert printed.err.startswith("mxc compile: note: in float16 scores_output has values that are not finite")
    assert json.loads(printed.out)["largest_difference"] == "inf"


def test_a_recurrent_model_needs_no_label(files: np.ndarray, capsys: Captured):
    symbol = language_model()
    symbol.save("words-symbol.json")
    executor = bound(symbol, data=(7, 2), softmax_label=(7, 2))
    mx.nd.save("words-0000.params", {f"arg:{name}": array for name, array in executor.arg_dict.items()
                                     if name not in ("data", "softmax_label")})
    assert main(["compile", "words-symbol.json", "--shape", "data=7,batch", "--batches", "1,3", "--precision",
                 "float16", "-o", "words.mxc"]) == OK
    assert "other batches: cut and filled up" in capsys.readouterr().out
    assert predicted("words.mxc", np.ones((7, 5))).shape == (35, 20)


def test_what_is_refused(files: np.ndarray, capsys: Captured):
    Path("bare-symbol.json").write_bytes(Path("net-symbol.json").read_bytes())
    np.savez("wide.npz", data=np.ones((4, 3, 5, 5), np.float32))
    np.savez("nan.npz", data=np.full((2, 3, 6, 6), np.nan, np.float32))
    f16 = ["--precision", "float16"]
    cases = [
        (["compile", *NET, *f16, "--train"], USAGE, "it is for inference on a CPU"),
        (["compile", *NET, *f16, "--dtype", "data=float16"], USAGE, "says the dtypes"),
        (["compile", *NET, "--calibrate", "examples.npz"], USAGE, "--calibrate: it is for --precision"),
        (["compile", *NET, "--mean", "3"], USAGE, "--mean: it is for --precision"),
        (["compile", "net-symbol.json", *f16], USAGE, "the shape of data is not known"),
        (["compile", "bare-symbol.json", "--shape", "data=2,3,6,6", *f16], BAD_FILE, "no parameters to convert"),
        (["compile", *NET, *f16, "--calibrate", "wide.npz"], USAGE, "data has the shape (4, 3, 5, 5); the model "),
        (["compile", *NET, "--precision", "int8", "--calibrate", "nan.npz"], BAD_FILE, "numbers that are not finite"),
        (["convert", "net-symbol.json", "made.onnx", *f16], USAGE, "give NAME"),
        (["convert", "net-0000.params", "made", *f16], USAGE, "parameters are written to files"),
        (["convert", "net-symbol.json", "made", "--shape", "data=n,3,6,6", *f16], USAGE, "--precision needs num"),
        (["convert", "net-symbol.json", "made"], USAGE, "unless --precision says what to convert to"),
    ]
    for arguments, code, text in cases:
        assert main(arguments) == code, arguments
        printed = capsys.readouterr().err
        assert text in printed and "Traceback" not in printed and len(printed.splitlines()) == 2
    assert not list(Path().glob("made*"))


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_verify_knows_the_rounding(precision: str, files: np.ndarray, capsys: Captured):
    """Layers round to the narrow dtype, and the outputs of float32 show it."""
    model = ["--shape", "data=2,3,6,6", "--json"]
    assert main(["convert", "net-symbol.json", "made", "--shape", "data=2,3,6,6", "--precision", precision]) == OK
    assert main(["compile", *NET, "--precision", precision, "--keep-params", "-o", "made.mxc"]) == OK
    capsys.readouterr()
    for command in ["verify", "made-symbol.json", *model], ["verify", "made.mxc", "--json"]:
        assert main(command) == OK
        (output,) = json.loads(capsys.readouterr().out)["outputs"]
        assert output["right"] and (output["verdict"] == "ok") == (output["max_rel"] <= output["tolerance"] == 1e-4)
    assert main(["verify", "made-symbol.json", *model, "--nodes"]) == OK
    tolerances = {each["name"]: each["tolerance"] for each in json.loads(capsys.readouterr().out)["nodes"]}
    assert tolerances["conv_output"] == {"float16": 1e-2, "bfloat16": 8e-2}[precision]
    arrays = mx.nd.load("made-0000.params")
    mx.nd.save("other.params", {**arrays, "arg:conv_weight": arrays["arg:conv_weight"] * 1.5})
    assert main(["verify", "made-symbol.json", *model, "--save-expected", "made.npz"]) == OK
    assert main(["verify", "made-symbol.json", *model, "--params", "other.params", "--expected", "made.npz"]) == 1


@pytest.mark.parametrize("model", ["made-symbol.json", "made.mxc"])
def test_commands_take_models_of_bfloat16(model: str, files: np.ndarray, capsys: Captured):
    """Also inputs and outputs are of it here."""
    arrays = mx.nd.load("net-0000.params")
    mx.nd.save("made-0000.params", {name: array.astype("bfloat16") for name, array in arrays.items()})
    Path("made-symbol.json").write_bytes(Path("net-symbol.json").read_bytes())
    given = ["--shape", "data=2,3,6,6", "--dtype", "data=bfloat16"] if model.endswith("json") else []
    assert main(["compile", "made-symbol.json", "--shape", "data=2,3,6,6", "--dtype", "data=bfloat16", "--keep-params",
                 "-o", "made.mxc"]) == OK
    np.savez("data.npz", data=mx.nd.array(files[:2], dtype="bfloat16").asnumpy())
    capsys.readouterr()
    assert main(["run", model, *given, "--input", "data.npz", "--print", "--json", "-o", "out.npz"]) == OK
    (report,) = json.loads(capsys.readouterr().out).values()
    assert report["dtype"] == "bfloat16" and report["shape"] == [2, 5]
    values = widened(np.load("out.npz")["scores_output"])
    np.testing.assert_array_equal(values, np.array(report["values"], np.float32))
    np.testing.assert_allclose(values, predicted_wide(files[:2]), atol=0.3)
    capsys.readouterr()
    assert main(["verify", model, *given, "--json"]) == OK
    assert json.loads(capsys.readouterr().out)["outputs"][0]["tolerance"] == 8e-2
    assert main(["verify", model, *given, "--input", "data.npz", "--save-expected", "right.npz"]) == OK
    assert main(["verify", model, *given, "--expected", "right.npz"]) == OK
    for command in (["inspect"], ["profile", "--iterations", "2"], ["bench", "--iterations", "2"],
                    ["report", "--seconds", "0.01", "-o", "made.html"]):
        assert main([command[0], model, *given, *command[1:]]) == OK, command
    assert "bfloat16" in Path("made.html").read_text()


def predicted_wide(data: np.ndarray) -> np.ndarray:
    """What net-symbol.json gives in float32."""
    assert main(["compile", *NET, "-o", "net.mxc"]) == OK
    return predicted("net.mxc", data)
