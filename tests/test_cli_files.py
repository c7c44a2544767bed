"""Which files commands read and write: nothing that is read is lost, pipes are read once."""
from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc.cli.main import BAD_FILE, OK, USAGE, main

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current directory with a model and inputs."""
    monkeypatch.chdir(tmp_path)
    mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc").save("net-symbol.json")
    mx.nd.save("net-0000.params", {"arg:fc_weight": mx.nd.ones((3, 4)), "arg:fc_bias": mx.nd.zeros((3,))})
    np.save("x.npy", np.ones((2, 4), np.float32))
    np.savez("x.npz", data=np.ones((2, 4), np.float32))
    return tmp_path


NET = ("net-symbol.json", "--shape", "data=2,4")
LOST = {
    "a model by an artifact": ("compile", *NET, "-o", "./net-symbol.json"),
    "parameters by an artifact": ("compile", *NET, "-o", "net-0000.params"),
    "a model by its own conversion": ("convert", *NET, "net", "--precision", "float16"),
    "the same by another name": ("convert", *NET, "./net-symbol.json", "--precision", "float16"),
    "parameters by parameters": ("convert", "net-0000.params", "link.params"),
    "an input by outputs": ("run", "net-symbol.json", "--input", "data=@x.npy", "-o", "x.npy"),
    "an archive by outputs": ("run", "net-symbol.json", "--input", "x.npz", "-o", "x.npz"),
    "inputs by what was expected": ("verify", "net-symbol.json", "--input", "x.npz", "--save-expected", "x.npz"),
    "a model by a part of it": ("reduce", *NET, "-o", "net"),
    "an artifact on standard output": ("compile", *NET, "-o", "-"),
}


@pytest.mark.parametrize("arguments", LOST.values(), ids=LOST)
def test_what_is_read_is_not_written(arguments: tuple[str, ...], folder: Path, capsys: Captured):
    os.symlink("net-0000.params", "link.params")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main([*arguments]) == USAGE
    assert "give another name" in (printed := capsys.readouterr().err) or "expected the name of a file" in printed
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_other_names_are_free():
    assert main(["compile", *NET, "-o", "net.bin"]) == OK
    assert main(["run", "net.bin", "--input", "x.npy", "-o", "y.npy"]) == OK
    assert main(["convert", *NET, "half", "--precision", "float16"]) == OK


def test_a_pipe_is_read_once(folder: Path, capsys: Captured):
    text = Path("net-symbol.json").read_bytes()
    os.mkfifo("pipe")
    writer = threading.Thread(target=Path("pipe").write_bytes, args=(text,))
    writer.start()
    assert main(["inspect", "pipe", "--json"]) == OK
    writer.join()
    assert json.loads(capsys.readouterr().out)["operators"] == {"FullyConnected": 1}


@pytest.mark.parametrize(("name", "kind"), [("x.npz", "a zip archive"), ("net-0000.params", "a parameter file")])
def test_inspect_says_what_other_files_look_like(name: str, kind: str, capsys: Captured):
    assert main(["inspect", name]) == BAD_FILE
    assert f"it looks like {kind}" in capsys.readouterr().err


def test_inputs_that_nobody_gave_are_told(capsys: Captured):
    assert main(["run", *NET]) == OK
    assert capsys.readouterr().err == "mxc run: note: data: zeros, for no --input gives values\n"
    assert main(["run", "net-symbol.json", "--input", "x.npy"]) == OK
    assert capsys.readouterr().err == ""
    assert main(["run", *NET, "--input", "ones"]) == USAGE
    assert "for which input? give NAME=ones" in capsys.readouterr().err
