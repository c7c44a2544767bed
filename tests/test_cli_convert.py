"""`mxc convert`: what it writes, and what it says of what it cannot convert."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from commands import command

import mxc as mx
from mxc.cli.main import BAD_FILE, NO_TARGET, OK, UNSUPPORTED, USAGE, main

onnx = pytest.importorskip("onnx")
Captured = pytest.CaptureFixture[str]
TO_ONNX = ["convert", "net-symbol.json", "net.onnx", "--shape", "data=batch,4"]


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A network with its parameters, in the current folder."""
    monkeypatch.chdir(tmp_path)
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    net = mx.sym.BatchNorm(net, fix_gamma=False, name="bn")
    mx.sym.SoftmaxOutput(net, name="softmax").save("net-symbol.json")
    rng = np.random.default_rng(0)
    shapes = {"arg:fc_weight": (3, 4), "arg:fc_bias": (3,), "arg:bn_gamma": (3,), "arg:bn_beta": (3,),
              "aux:bn_moving_mean": (3,), "aux:bn_moving_var": (3,)}
    mx.nd.save("net-0000.params", {name: mx.nd.array(rng.uniform(0.5, 1, shape)) for name, shape in shapes.items()})
    np.save("x.npy", rng.normal(size=(2, 4)).astype(np.float32))
    return tmp_path


def outputs(capsys: Captured, *arguments: str) -> np.ndarray:
    """The values that `mxc run` prints as JSON."""
    assert main(["run", *arguments, "--print", "--json"]) == OK
    (output,) = json.loads(capsys.readouterr().out).values()
    return np.array(output["values"])


def test_a_model_there_and_back(capsys: Captured):
    wanted = outputs(capsys, "net-symbol.json", "--input", "data=@x.npy")
    assert main(TO_ONNX) == OK
    assert capsys.readouterr().out.splitlines() == [
        "written:    net.onnx", "opset:      17", "operators:  3", "parameters: 6", "inputs:     data batchx4",
        "outputs:    softmax_output"]
    assert main(["convert", "net.onnx", "back", "--json"]) == OK
    assert json.loads(capsys.readouterr().out) == {
        "written": ["back-symbol.json", "back-0000.params"], "operators": 3, "parameters": 6,
        "inputs": {"data": ["?", 4]}, "outputs": ["softmax_output"]}
    np.testing.assert_allclose(outputs(capsys, "back-symbol.json", "--input", "data=@x.npy"), wanted, rtol=1e-6)
    assert main(["convert", "net.onnx", "fixed-symbol.json", "--shape", "data=2,4"]) == OK
    assert "data 2x4" in capsys.readouterr().out
    np.testing.assert_allclose(outputs(capsys, "fixed-symbol.json", "--input", "data=@x.npy"), wanted, rtol=1e-6)


def test_a_label_may_have_a_shape(capsys: Captured):
    assert main(["convert", "net-symbol.json", "net.onnx", "--shape", "data=2,4", "--shape", "softmax_label=2"]) == OK
    assert capsys.readouterr().out.splitlines()[4] == "inputs:     data 2x4"
    assert main(["convert", "net-symbol.json", "net.onnx", "--shape", "data=2,4", "--shape", "softmax_labl=2"]) == USAGE
    assert "did you mean 'softmax_label'" in capsys.readouterr().err


def test_an_artifact_has_shapes_of_its_own(capsys: Captured):
    assert main(["compile", "net-symbol.json", "--shape", "data=2,4", "-o", "net.mxc", "--keep-params"]) == OK
    capsys.readouterr()
    assert main(["convert", "net.mxc", "net.onnx"]) == OK
    assert "data 2x4" in capsys.readouterr().out
    assert main(["convert", "net.onnx", "back"]) == OK


@pytest.mark.parametrize("ending", ["npz", "safetensors", "params"])
def test_parameters_of_every_kind(ending: str, capsys: Captured):
    if ending == "safetensors":
        pytest.importorskip("safetensors")
    wanted = outputs(capsys, "net-symbol.json", "--input", "data=@x.npy")
    assert main(["convert", "net-0000.params", f"there.{ending}"]) == OK
    assert capsys.readouterr().out.split() == ["written:", f"there.{ending}", "arrays:", "6"]
    assert main(["convert", f"there.{ending}", "again.params"]) == OK
    before, after = mx.nd.load("net-0000.params"), mx.nd.load("again.params")
    assert {name: array.asnumpy().tolist() for name, array in before.items()} == {
        name: array.asnumpy().tolist() for name, array in after.items()}
    capsys.readouterr()
    assert (outputs(capsys, "net-symbol.json", "--input", "data=@x.npy", "--params", f"there.{ending}") == wanted).all()
    assert main([*TO_ONNX, "--params", f"there.{ending}"]) == OK


REFUSED = {
    "no endings": (USAGE, ["net-symbol.json", "other"], "one of them ends in .onnx, or both in one of .params, .npz"),
    "onnx to onnx": (USAGE, ["net.onnx", "other.onnx"], "is written as NAME-symbol.json and NAME-0000.params"),
    "parameters as a model": (USAGE, ["net-0000.params", "net.onnx"], "files that end in .params, .npz, .safetensors"),
    "another file": (USAGE, ["x.npy", "net.onnx"], "expected a model, NAME-symbol.json or NAME.mxc"),
    "no shape": (USAGE, ["net-symbol.json", "net.onnx"], "the shape of data is not known"),
    "another name": (USAGE, ["net-symbol.json", "net.onnx", "--shape", "dat=1,4"], "did you mean 'data'?"),
    "a shape of letters": (USAGE, ["net-symbol.json", "net.onnx", "--shape", "data=1,-4"], "or words for sizes that"),
    "an option": (USAGE, ["net-0000.params", "net.npz", "--shape", "data=1"], "--shape: the conversion of parameters"),
    "a dtype of ONNX": (USAGE, ["net.onnx", "net", "--dtype", "data=float16"], "--dtype: the conversion of a model"),
    "no file": (BAD_FILE, ["none.onnx", "net"], "none.onnx: cannot be read"),
    "no model": (BAD_FILE, ["page.onnx", "net"], "page.onnx: expected an ONNX model"),
    "no archive": (BAD_FILE, ["page.npz", "net.params"], "page.npz: expected arrays by name"),
    "one array": (BAD_FILE, ["x.npz", "net.params"], "got one array"),
    "no tensors": (BAD_FILE, ["page.safetensors", "net.params"], "page.safetensors: expected arrays in the"),
    "a list": (BAD_FILE, ["list.params", "net.npz"], "a list of arrays without names"),
    "shapes that do not fit": (BAD_FILE, ["net-symbol.json", "net.onnx", "--shape", "data=1,5"], "FullyConnected 'fc'"),
    "no folder": (BAD_FILE, ["net-0000.params", "nosuch/net.npz"], "nosuch/net.npz: cannot be written"),
    "an operator": (UNSUPPORTED, ["gamma-symbol.json", "net.onnx", "--shape", "x=2"], "gamma 'g': ONNX has no"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, capsys: Captured):
    for ending in ("onnx", "npz", "safetensors"):
        Path(f"page.{ending}").write_text("<!DOCTYPE html>")
    Path("x.npz").write_bytes(Path("x.npy").read_bytes())
    mx.nd.save("list.params", [mx.nd.ones((2,))])
    mx.sym.gamma(mx.sym.Variable("x"), name="g").save("gamma-symbol.json")
    mx.nd.save("gamma-0000.params", {"arg:y": mx.nd.ones((1,))})
    code, arguments, text = REFUSED[name]
    before = {*Path().iterdir()}
    assert main(["convert", *arguments]) == code
    first, *_, last = capsys.readouterr().err.splitlines()
    assert text in first and last != first
    assert {*Path().iterdir()} == before


def test_an_input_that_the_model_does_not_have(capsys: Captured):
    assert main(TO_ONNX) == OK
    assert main(["convert", "net.onnx", "back", "--shape", "dat=1,4"]) == USAGE
    assert "--shape: 'dat' is no input of the model; did you mean 'data'?" in capsys.readouterr().err


ABSENT = "import sys\nsys.modules[{0!r}] = None"


@pytest.mark.parametrize(("package", "arguments"), [
    ("onnx", TO_ONNX[1:]), ("safetensors", ["net.safetensors", "back.params"])])
def test_an_extra_that_is_missing(package: str, arguments: list[str]):
    done = command("convert", *arguments, program=ABSENT.format(package))
    first, last = done.stderr.splitlines()
    assert done.returncode == NO_TARGET and done.stdout == "" and "cannot be imported" in first
    assert last == f"pip install 'mxc-compiler[{package}]'"
