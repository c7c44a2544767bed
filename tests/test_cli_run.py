"""`mxc run`: where inputs come from and where outputs go."""
from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import command

import mxc as mx
from mxc.cli.inputs import made_up, made_up_parameter
from mxc.cli.main import BAD_FILE, NO_TARGET, OK, USAGE, main
from mxc.compiler.system import opencv

X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A current directory with models without parameters."""
    monkeypatch.chdir(tmp_path)
    data = mx.sym.Variable("data")
    (data * 2 + 1).save("line-symbol.json")
    mx.sym.Group([mx.sym.BlockGrad(data, name="same"), mx.sym.mean(data, axis=1, name="mean")]).save("two-symbol.json")
    np.save("x.npy", X)


def test_a_file_to_a_file():
    done = command("run", "line-symbol.json", "--input", "data=@x.npy", "--output", "y.npy", "--print")
    assert (done.returncode, done.stderr) == (OK, "")
    np.testing.assert_array_equal(np.load("y.npy"), X * 2 + 1)
    first, *rest = done.stdout.splitlines()
    assert first.endswith(": shape (2, 4), float32")
    np.testing.assert_allclose(np.array(eval("".join(rest))), X * 2 + 1, rtol=1e-6)


@pytest.mark.parametrize(("word", "low", "high"), [("ones", 3, 3), ("zeros", 1, 1), ("random", -9, 11)])
def test_made_up_inputs(word: str, low: float, high: float, capsys: pytest.CaptureFixture[str]):
    arguments = ["run", "line-symbol.json", "--shape", "data=3,5", "--input", f"data={word}", "--json", "--print"]
    printed = []
    for _ in range(2):
        assert main(arguments) == OK
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    (found,) = json.loads(printed[0]).values()
    values = np.array(found["values"])
    assert values.shape == (3, 5) and values.min() >= low and values.max() <= high
    assert (len(np.unique(values)) == 15) == (word == "random")


def test_infinities_are_text(capsys: pytest.CaptureFixture[str]):
    np.save("inf.npy", np.array([[np.inf, 1, np.nan]], np.float32))
    assert main(["run", "line-symbol.json", "--input", "data=inf.npy", "--json", "--print"]) == OK
    (found,) = json.loads(capsys.readouterr().out).values()
    assert found["values"] == [["inf", 3.0, "nan"]]


@pytest.fixture
def picture() -> np.ndarray:
    """Red, green and blue of a picture of 6 x 4 pixels, picture.png."""
    cv2 = pytest.importorskip("cv2")
    pixels = np.zeros((4, 6, 3), np.uint8)
    pixels[..., 0], pixels[2:, :, 1] = 255, 100
    cv2.imwrite("picture.png", pixels[..., ::-1])
    return pixels


def test_a_picture(picture: np.ndarray, capsys: pytest.CaptureFixture[str]):
    assert main(["run", "two-symbol.json", "--input", "data=@picture.png", "--output", "y.npz"]) == OK
    np.testing.assert_array_equal(np.load("y.npz")["same_output"], picture.transpose(2, 0, 1)[None])
    assert main(["run", "two-symbol.json", "--shape", "data=2,8,12,3", "--input", "data=@picture.png", "--output",
                 "y.npz"]) == OK
    found = np.load("y.npz")["same_output"]
    assert found.shape == (2, 8, 12, 3) and (found[..., 0] == 255).all() and (found[..., 2] == 0).all()
    assert (found[:, 7, :, 1] == 100).all() and (found[:, 0, :, 1] == 0).all()


@pytest.mark.parametrize(("version", "advice"), [
    (None, "pip install 'mxc-compiler[image]'"), ("5.0.0", "pip install --force-reinstall 'mxc-compiler[image]'")])
def test_a_picture_without_opencv(version: str | None, advice: str, picture: np.ndarray,
                                  monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setitem(sys.modules, "cv2", None)
    monkeypatch.setattr(opencv, "_library", None)
    monkeypatch.setattr("mxc.cli.requirements.installed", lambda name: version)
    assert main(["run", "two-symbol.json", "--input", "data=@picture.png"]) == NO_TARGET
    first, last = capsys.readouterr().err.splitlines()
    assert "OpenCV, which cannot be imported (import" in first and last.startswith(advice)


REFUSED = {
    "several outputs as .npy": (USAGE, ["two-symbol.json", "--input", "data=x.npy", "--output", "y.npy"],
                                "the model has 2 outputs (same_output, mean_output)"),
    "a word for no input": (USAGE, ["line-symbol.json", "--shape", "data=2,4", "--input", "dat=ones"],
                            "did you mean 'data'?"),
    "a word without a shape": (USAGE, ["line-symbol.json", "--input", "data=ones"], "--shape data=D,D,..."),
    "a picture's shape": (USAGE, ["line-symbol.json", "--shape", "data=2,4", "--input", "data=@no.png"],
                          "a picture has the shape"),
    "no picture": (BAD_FILE, ["line-symbol.json", "--input", "data=@no.png"], "no.png: cannot be read"),
    "a text as a picture": (BAD_FILE, ["line-symbol.json", "--input", "data=@text.jpg"], "expected a picture"),
}


@pytest.mark.parametrize(("code", "arguments", "text"), REFUSED.values(), ids=REFUSED)
def test_refusals(code: int, arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]):
    if "@" in arguments[-1]:
        pytest.importorskip("cv2")
    Path("text.jpg").write_text("no picture")
    assert main(["run", *arguments]) == code
    printed = capsys.readouterr()
    assert text in printed.err and len(printed.err.splitlines()) == 2


def test_made_up_values():
    integers = made_up("data", "random", (50,), "int32")
    assert integers.dtype == np.int32 and integers.min() >= 0 and integers.max() <= 9
    assert set(made_up("softmax_label", "random", (50,), "float32")) <= set(range(10))
    weight = made_up_parameter("fc_weight", (300, 200), "float32")
    assert weight.dtype == np.float32 and abs(weight.std() - 0.1) < 0.01
    assert made_up_parameter("bn_moving_var", (50,), "float32").min() > 0.7


NET = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
WEIGHT = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def artifacts() -> None:
    """net.mxc for two sets of shapes, whole.mxc with the parameters as they were given too, and bare.mxc without."""
    NET.save("net-symbol.json")
    NET.save("bare-symbol.json")
    mx.nd.save("net-0000.params", {"arg:fc_weight": mx.nd.array(WEIGHT), "arg:fc_bias": mx.nd.ones((3,))})
    shapes = ["--shape", "data=2,4", "--shape", "data=1,4"]
    assert main(["compile", "net-symbol.json", *shapes, "-o", "net.mxc", "--json"]) == OK
    assert main(["compile", "net-symbol.json", *shapes, "-o", "whole.mxc", "--keep-params", "--json"]) == OK
    assert main(["compile", "bare-symbol.json", "--shape", "data=2,4", "-o", "bare.mxc", "--json"]) == OK


def test_an_artifact_runs_without_a_compiler(artifacts: None, capsys: pytest.CaptureFixture[str]):
    program = "import atexit, sys\natexit.register(lambda: print(*sys.modules, file=sys.stderr))"
    done = command("run", "net.mxc", "--input", "data=@x.npy", "--output", "y.npy", "--json", program=program)
    assert done.returncode == OK
    np.testing.assert_allclose(np.load("y.npy"), X @ WEIGHT.T + 1, rtol=1e-6)
    loaded = set(done.stderr.split())
    assert "mxc.artifact" in loaded and not loaded & {"numba", "llvmlite", "yaml", "mxc.symbol", "mxc.compiler.api"}
    assert not [name for name in loaded if name.startswith("mxc.compiler.passes")]
    assert main(["run", "net.mxc", "--shape", "data=1,4", "--json"]) == OK
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["fc_output"]["top"] == [[[0, 1.0], [1, 1.0], [2, 1.0]]]


def test_the_other_commands_take_artifacts(artifacts: None, capsys: pytest.CaptureFixture[str]):
    capsys.readouterr()
    for arguments in (["verify", "whole.mxc", "--nodes"], ["verify", "net.mxc", "--params", "net-0000.params"],
                      ["verify", "bare.mxc"], ["profile", "net.mxc"], ["profile", "bare.mxc"],
                      ["bench", "bare.mxc", "--iterations", "5"], ["bench", "net.mxc", "--iterations", "5"],
                      ["inspect", "net.mxc", "--shape", "data=1,4"]):
        assert main([*arguments, "--json"]) == OK, capsys.readouterr()
        found = json.loads(capsys.readouterr().out)
        parameters = arguments[3] if "--params" in arguments else arguments[1].replace("bare.mxc", "made up")
        assert arguments[0] == "inspect" or found["parameters"] == parameters
        if arguments[0] == "bench":
            assert found["memory"]["parameters_bytes"] == 60 and found["memory"]["prepared_bytes"] > 0
    assert found["layers"][0]["outputs"] == [[1, 4]] and found["totals"]["parameters"] == 15


REFUSED_ARTIFACTS = {
    "other shapes": (USAGE, ["run", "net.mxc", "--shape", "data=3,5"], "it has data=2,4; data=1,4"),
    "a dtype": (USAGE, ["run", "net.mxc", "--dtype", "data=float16"], "compile it anew"),
    "another input": (USAGE, ["run", "net.mxc", "--input", "dat=ones"], "did you mean 'data'?"),
    "no parameters": (BAD_FILE, ["run", "bare.mxc"], "compiled without values of fc_weight, fc_bias"),
    "parameters that were prepared": (BAD_FILE, ["verify", "alone.mxc"], "alone.mxc has fc_weight only as its plans"),
    "to convert": (BAD_FILE, ["convert", "alone.mxc", "net.onnx"], "--keep-params"),
    "to compile": (USAGE, ["compile", "net.mxc"], "is compiled already"),
    "nothing to keep them in": (USAGE, ["compile", "net-symbol.json", "--shape", "data=2,4", "--keep-params"],
                                "give -o NAME.mxc"),
    "what is none": (BAD_FILE, ["run", "other.mxc"], "other.mxc"),
}


def test_artifacts_that_are_refused(artifacts: None, capsys: pytest.CaptureFixture[str]):
    Path("other.mxc").write_bytes(Path("net.mxc").read_bytes()[:-1])
    Path("alone.mxc").write_bytes(Path("net.mxc").read_bytes())  # no alone-0000.params lies beside it
    for code, arguments, text in REFUSED_ARTIFACTS.values():
        capsys.readouterr()
        assert main(arguments) == code, arguments
        printed = capsys.readouterr()
        assert printed.out == "" and text in printed.err and len(printed.err.splitlines()) == 2, printed.err
    assert main(["run", "bare.mxc", "--params", "net-0000.params"]) == OK
