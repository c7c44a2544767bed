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
    image = pytest.importorskip("PIL.Image")
    pixels = np.zeros((4, 6, 3), np.uint8)
    pixels[..., 0], pixels[2:, :, 1] = 255, 100
    image.fromarray(pixels).save("picture.png")
    return pixels


def test_a_picture(picture: np.ndarray, capsys: pytest.CaptureFixture[str]):
    assert main(["run", "two-symbol.json", "--input", "data=@picture.png", "--output", "y.npz"]) == OK
    np.testing.assert_array_equal(np.load("y.npz")["same_output"], picture.transpose(2, 0, 1)[None])
    assert main(["run", "two-symbol.json", "--shape", "data=2,8,12,3", "--input", "data=@picture.png", "--output",
                 "y.npz"]) == OK
    found = np.load("y.npz")["same_output"]
    assert found.shape == (2, 8, 12, 3) and (found[..., 0] == 255).all() and (found[..., 2] == 0).all()
    assert (found[:, 7, :, 1] == 100).all() and (found[:, 0, :, 1] == 0).all()


def test_a_picture_without_pillow(picture: np.ndarray, monkeypatch: pytest.MonkeyPatch,
                                  capsys: pytest.CaptureFixture[str]):
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert main(["run", "two-symbol.json", "--input", "data=@picture.png"]) == NO_TARGET
    first, last = capsys.readouterr().err.splitlines()
    assert "Pillow" in first and "pip install 'mxc-compiler[image]'" in last


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
        pytest.importorskip("PIL")
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
