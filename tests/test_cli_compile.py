"""`mxc compile`: sets of shapes, sizes of batches, labels and parameters that are not there."""
from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pytest
from test_batches import bound, language_model

import mxc as mx
from mxc.cli.main import OK, USAGE, main
from mxc.cli.model import UsageError
from mxc.cli.shape_sets import batches, shape_sets


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    symbol = language_model()
    symbol.save("words-symbol.json")
    executor = bound(symbol, data=(7, 2), softmax_label=(7, 2))
    mx.nd.save("words-0001.params", {f"arg:{name}": array for name, array in executor.arg_dict.items()
                                     if name not in ("data", "softmax_label")})


def expected(data: np.ndarray) -> np.ndarray:
    executor = bound(language_model(), data=data.shape, softmax_label=data.shape)
    return executor.forward(is_train=False, data=mx.nd.array(data))[0].asnumpy()


def test_sets_of_shapes():
    assert shape_sets(["a=2,3", "b=4"], None) == ([{"a": (2, 3), "b": (4,)}], None)
    assert shape_sets(["a=2,3", "b=4", "a=5,3"], None).sets == [{"a": (2, 3), "b": (4,)}, {"a": (5, 3), "b": (4,)}]
    assert shape_sets(["a=2,3", "b=2", "c=7,2"], [1, 9]) == (
        [{"a": (1, 3), "b": (1,), "c": (7, 2)}, {"a": (9, 3), "b": (9,), "c": (7, 2)}], {"a": 0, "b": 0})
    assert shape_sets(["a=35, batch", "b=2"], [1, 9]) == (
        [{"a": (35, 1), "b": (2,)}, {"a": (35, 9), "b": (2,)}], {"a": 1})
    assert shape_sets(["a=35,batch", "a=10,batch"], [1, 9]).sets == [{"a": (35, 1)}, {"a": (35, 9)}, {"a": (10, 1)},
                                                                     {"a": (10, 9)}]


@pytest.mark.parametrize(("texts", "sizes", "message"), [
    (["a=batch,3"], None, "--shape a=batch,3: for which sizes of the batch?"),
    (["a=batch,batch"], [2], "expected the word batch once in each shape"),
    (["a=batch,3", "a=3,batch"], [2], "in the same place"),
    (["a=2,3", "a=2,3"], None, "--shape a=2,3: a was given already"),
    (["a=2,3", "a=4,3"], [1, 2], "a=4,3: a was given already"),
    (["a=2,3", "a=4,3", "b=1", "b=2", "b=3"], None, "given 2 times, another input 3 times"),
    ([], [2], "--batches 2: of which inputs?"), (["a=x,3"], [2], "expected numbers")])
def test_sets_of_shapes_that_are_none(texts: list[str], sizes: list[int] | None, message: str):
    with pytest.raises(UsageError, match=message.replace("?", r"\?")):
        shape_sets(texts, sizes)


def test_sizes_of_batches(capsys: pytest.CaptureFixture[str]):
    assert batches("1,8,64") == [1, 8, 64]
    for text in ("", "1,", "0", "1,8,8", "a", "-1", "1,01"):
        with pytest.raises(argparse.ArgumentTypeError, match="expected different numbers of at least 1"):
            batches(text)
    with pytest.raises(SystemExit) as stop:
        main(["compile", "words-symbol.json", "--batches", "1,1"])
    assert stop.value.code == USAGE and "--batches" in capsys.readouterr().err


def test_a_recurrent_model_of_several_shapes(capsys: pytest.CaptureFixture[str]):
    """Labels need no shape, and may be given or not, whether their shape was given or not."""
    data = np.random.default_rng(0).integers(0, 20, (7, 5))
    for labels in [], ["--shape", "softmax_label=7,batch", "--shape", "softmax_label=4,batch"]:
        assert main(["compile", "words-symbol.json", "--shape", "data=7,batch", "--shape", "data=4,batch", *labels,
                     "--batches", "1,3", "-o", "words.mxc", "--json"]) == OK
        report = json.loads(capsys.readouterr().out)
        assert [each["shapes"]["data"] for each in report["sets"]] == [[7, 1], [7, 3], [4, 1], [4, 3]]
        assert report["other_batches"] == "cut and filled up"
        model = mx.load("words.mxc")
        assert (model.input_names, model.further_inputs) == (("data",), ("softmax_label",))
        for part in (data, data[:4], data[:4, :2]):
            np.testing.assert_allclose(model.predict(data=part)["softmax_output"], expected(part), rtol=1e-5, atol=1e-6)


def test_commands_need_no_label(capsys: pytest.CaptureFixture[str]):
    data = np.random.default_rng(0).integers(0, 20, (7, 2)).astype(np.float32)
    np.save("data.npy", data)
    assert main(["run", "words-symbol.json", "--input", "data=data.npy", "--output", "out.npz"]) == OK
    np.testing.assert_allclose(np.load("out.npz")["softmax_output"], expected(data), rtol=1e-5, atol=1e-6)
    assert main(["verify", "words-symbol.json", "--input", "data=data.npy"]) == OK
    assert main(["inspect", "words-symbol.json", "--shape", "data=7,2", "--plan"]) == OK
    assert "softmax" in capsys.readouterr().out


def test_a_training_step_needs_its_label(capsys: pytest.CaptureFixture[str]):
    assert main(["compile", "words-symbol.json", "--shape", "data=7,2", "--train"]) != OK
    assert "argument 'softmax_label'" in capsys.readouterr().err


def test_an_artifact_without_parameters_is_told(capsys: pytest.CaptureFixture[str]):
    command = ["compile", "words-symbol.json", "--shape", "data=7,2", "-o", "words.mxc"]
    assert main(command) == OK
    assert capsys.readouterr().err == ""
    Path("words-0001.params").rename("word-0001.params")
    assert main(command) == OK
    note, = capsys.readouterr().err.splitlines()
    assert note == ("mxc compile: note: there is no words-0000.params (or of another number) beside words-symbol.json, "
                    "so words.mxc has no parameters: give them with --params, or to mxc.load")
    assert main([*command, "--params", "word-0001.params"]) == OK
    assert capsys.readouterr().err == ""


def test_the_highest_number_of_parameters_is_taken_however_long(capsys: pytest.CaptureFixture[str]):
    Path("words-9999.params").write_bytes(b"no parameters")
    Path("words-10000.params").write_bytes(Path("words-0001.params").read_bytes())
    Path("words-more-99999.params").write_bytes(b"no parameters")
    assert main(["compile", "words-symbol.json", "--shape", "data=7,2", "-o", "words.mxc"]) == OK


def test_batches_that_are_not_compiled_run_from_the_command(capsys: pytest.CaptureFixture[str]):
    main(["compile", "words-symbol.json", "--shape", "data=7,batch", "--batches", "1,3", "-o", "words.mxc"])
    np.save("data.npy", np.random.default_rng(0).integers(0, 20, (7, 5)).astype(np.float32))
    capsys.readouterr()
    assert main(["run", "words.mxc", "--input", "data=data.npy", "--output", "out.npz"]) == OK
    np.testing.assert_allclose(np.load("out.npz")["softmax_output"], expected(np.load("data.npy")), rtol=1e-5,
                               atol=1e-6)
    assert main(["bench", "words.mxc", "--shape", "data=7,4", "--iterations", "2", "--json"]) == OK
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["inputs"]["data"]["shape"] == [7, 4]
    assert main(["run", "words.mxc", "--shape", "data=6,5"]) == USAGE
    assert "was not compiled for these shapes" in capsys.readouterr().err
