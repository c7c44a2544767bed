"""What `mxc` says of files of the wrong kind and of wrong options, and what it tells to do."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc.cli.main import BAD_FILE, OK, USAGE, main

SOMETHING_ELSE = "give another file, or get this one again: it is damaged, or something else"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A current directory with a model, its parameters, an input, and files that are something else."""
    monkeypatch.chdir(tmp_path)
    mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc").save("net-symbol.json")
    mx.nd.save("net-0000.params", {"arg:fc_weight": mx.nd.ones((3, 4)), "arg:fc_bias": mx.nd.ones((3,))})
    np.save("x.npy", np.ones((2, 4), np.float32))
    np.save("objects.npy", np.array([{}], object))
    np.save("wide.npy", np.ones((2, 5), np.float32))
    Path("page.html").write_text("<!DOCTYPE html><html><body>Not found</body></html>")
    Path("page.jpg").write_text("<!DOCTYPE html><html><body>Not found</body></html>")
    Path("cut.mxc").write_bytes(b"mxcmodl\x1a" + bytes(100))


RUN = ["run", "net-symbol.json", "--input", "data=x.npy"]
FILES = [  # arguments, what is said, what to do
    (["run", "net-0000.params", "--input", "data=x.npy"],
     "not a JSON graph: it looks like a parameter file (NAME-0000.params); give the graph",
     SOMETHING_ELSE),
    (["run", "page.html", "--input", "data=x.npy"], "it looks like an HTML or XML page", SOMETHING_ELSE),
    ([*RUN, "--params", "page.html"], "not a parameter file: it looks like an HTML or XML page", SOMETHING_ELSE),
    ([*RUN, "--params", "x.npy"], "not a parameter file: it looks like an array (NAME.npy)", SOMETHING_ELSE),
    (["run", "net-symbol.json", "--input", "data=@page.html"],
     "page.html: expected an array in NumPy's .npy format; it looks like an HTML or XML page", SOMETHING_ELSE),
    (["run", "net-symbol.json", "--input", "data=@objects.npy"], "it holds objects of Python, and no numbers",
     SOMETHING_ELSE),
    (["run", "net-symbol.json", "--input", "data=@nosuch.npy"], "nosuch.npy: cannot be read: No such file or directory",
     "check the path and its permissions"),
    ([*RUN, "--output", "nosuch/y.npz"], "nosuch/y.npz: cannot be written",
     "check the path, its permissions and the space on its disk"),
    (["run", "cut.mxc", "--input", "data=x.npy"], "cut.mxc", SOMETHING_ELSE)]


@pytest.mark.parametrize(("arguments", "said", "advice"), FILES)
def test_a_file_of_the_wrong_kind(arguments: list[str], said: str, advice: str, capsys: pytest.CaptureFixture[str]):
    assert main(arguments) == BAD_FILE
    lines = capsys.readouterr().err.splitlines()
    assert said in lines[0] and lines[-1] == advice and len(lines) == 2


def test_a_picture_that_is_none(capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("PIL")
    assert main(["run", "net-symbol.json", "--input", "data=@page.jpg"]) == BAD_FILE
    assert capsys.readouterr().err.splitlines()[0].endswith(
        "page.jpg: expected a picture; it looks like an HTML or XML page")


def test_shapes_that_do_not_fit_are_those_that_were_given(capsys: pytest.CaptureFixture[str]):
    """Not those of all parameters in the file."""
    assert main(["run", "net-symbol.json", "--input", "data=wide.npy"]) == BAD_FILE
    lines = capsys.readouterr().err.splitlines()
    assert "input weight (fc_weight) = (3, 4)" in lines[2] and lines[4:6] == ["given shapes:", "  data: (2, 5)"]
    assert lines[6].startswith("give those that the model was made for") and len(lines) == 7


@pytest.mark.parametrize(("arguments", "said"), [
    ([*RUN, "--bogus"], "mxc run: error: unrecognized arguments: --bogus"),
    ([*RUN, "--tpo", "3"], "mxc run: error: unrecognized arguments: --tpo 3; did you mean '--top'?"),
    (["verify", "net-symbol.json", "--tolerence=1"], "'--tolerance'?"),
    (["bench", "a", "b"], "mxc bench: error: unrecognized arguments: b"),
    ([*RUN, "--top", "0"], "argument --top: expected a whole number of at least 1, got '0'"),
    (["compile", "net-symbol.json", "--jobs", "-3"], "--jobs: expected a whole number of at least 1, got '-3'"),
    (["bench", "net-symbol.json", "--seconds", "0"], "expected a number of seconds above 0"),
    (["bench", "net-symbol.json", "--warm-up", "x"], "expected a whole number of at least 0, got 'x'"),
    (["bench", "net-symbol.json", "--fail-if-slower", "x%"], "expected a number of per cent from 0 on, as 5%, got 'x'"),
    (["verify", "net-symbol.json", "--tolerance", "inf"], "expected a number from 0 on, as 1e-4, got 'inf'")])
def test_options_that_there_are_not(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    printed = capsys.readouterr().err
    assert stop.value.code == USAGE and said in printed.splitlines()[-1]
    assert printed.startswith(f"usage: mxc {arguments[0]} ")


@pytest.mark.parametrize("arguments", [
    [*RUN, "--output", "y.txt"], ["inspect", "net-symbol.json", "--shape", "data=2,4", "--plot", "net.png"],
    ["inspect", "net-symbol.json", "--shape", "data=2,4", "--memory", "net.pdf"],
    ["profile", "net-symbol.json", "--shape", "data=2,4", "--trace", "trace.txt"]])
def test_endings_that_do_not_say_what_is_written(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(arguments) == USAGE
    assert f"{arguments[-2]} {arguments[-1]}: expected a name that ends in ." in capsys.readouterr().err
    assert not Path(arguments[-1]).exists()


def test_an_output_that_cannot_be_written_is_told_before_the_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mxc.cli.run.open_model", None)
    assert main([*RUN, "--output", "nosuch/y.npz"]) == BAD_FILE


def test_memory_that_there_is_not(capsys: pytest.CaptureFixture[str]):
    Path("net-0000.params").unlink()
    assert main(["bench", "net-symbol.json", "--shape", f"data={2**40},4"]) == BAD_FILE
    first, last = capsys.readouterr().err.splitlines()
    assert f"data, float32 {2**40}x4: out of memory" in first and last.startswith("give smaller shapes")


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("can't start new thread")])
def test_memory_that_ends_elsewhere(error: Exception, monkeypatch: pytest.MonkeyPatch,
                                    capsys: pytest.CaptureFixture[str]):
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("mxc.cli.run.open_model", lambda *_, **__: fail())
    assert main(RUN) == BAD_FILE
    assert capsys.readouterr().err.splitlines() == ["mxc run: out of memory",
                                                    "give smaller shapes, or run it where there is more memory"]


def test_an_input_that_an_artifact_has_not(capsys: pytest.CaptureFixture[str]):
    assert main(["compile", "net-symbol.json", "--shape", "data=2,4", "-o", "net.mxc"]) == OK
    with pytest.raises(TypeError, match=r"net\.mxc has no input 'dta'; did you mean 'data'\?; its inputs are data"):
        mx.load("net.mxc").predict(dta=np.ones((2, 4), np.float32))
