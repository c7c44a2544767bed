"""Files that are named to be read: pipes, devices without an end, and what is longer than it should be."""
from __future__ import annotations

import io
import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc.cli.main import BAD_FILE, OK, main
from mxc.compiler.error import FileAccessError, ModelFileError, OutOfMemoryError
from mxc.compiler.system import input_files
from mxc.compiler.system.input_files import content

ENDLESS = Path("/dev/zero")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A current directory with a model, its parameters and an input; little of an endless file is read."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(input_files, "MOST_OF_A_STREAM", 3 << 20)
    mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc").save("net-symbol.json")
    mx.nd.save("net-0000.params", {"arg:fc_weight": mx.nd.ones((3, 4)), "arg:fc_bias": mx.nd.zeros((3,))})
    np.save("x.npy", np.ones((2, 4), np.float32))


def test_what_is_read():
    assert content("net-symbol.json") == Path("net-symbol.json").read_bytes()
    Path("empty").touch()
    assert content("empty") == b"" and len(content("x.npy", 1000)) == Path("x.npy").stat().st_size
    with pytest.raises(ModelFileError, match=r"net-0000\.params: it has more than 10 bytes"):
        content("net-0000.params", 10)
    for name, reason in (("none", "No such file"), (".", "Is a directory"), ("a\0b", "null byte")):
        with pytest.raises(FileAccessError, match=reason):
            content(name)


@pytest.mark.skipif(not hasattr(os, "sysconf"), reason="the system does not tell its memory")
def test_a_file_longer_than_memory():
    with open("sparse.params", "wb") as file:
        file.truncate(1 << 43)
    for read in (content, mx.nd.load, mx.sym.load):
        with pytest.raises(OutOfMemoryError, match=r"sparse\.params: there is no memory"):
            read("sparse.params")


@pytest.mark.skipif(not ENDLESS.exists(), reason="there is no /dev/zero")
@pytest.mark.parametrize("arguments", [
    ["run", ENDLESS, "--input", "data=x.npy"], ["run", "net-symbol.json", "--input", f"data={ENDLESS}"],
    ["run", "net-symbol.json", "--input", "data=x.npy", "--params", ENDLESS],
    ["run", "net-symbol.json", "--input", "data=@zero.png"], ["inspect", ENDLESS], ["run", "zero.mxc"],
    ["bench", "net-symbol.json", "--shape", "data=2,4", "--compare", ENDLESS]], ids=lambda a: " ".join(map(str, a)))
def test_a_device_without_an_end(arguments: list, capsys: pytest.CaptureFixture[str]):
    for name in ("zero.png", "zero.mxc"):
        Path(name).symlink_to(ENDLESS)
    assert main([str(word) for word in arguments]) == BAD_FILE
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have no names here")
def test_pipes_are_read_like_files(capsys: pytest.CaptureFixture[str]):
    """As a shell's `mxc run <(zcat net.json.gz)` gives them."""
    assert main(["bench", "net-symbol.json", "--shape", "data=2,4", "--iterations", "1", "--json"]) == OK
    Path("old.json").write_text(capsys.readouterr().out)
    writers = []
    for name in ("net-symbol.json", "net-0000.params", "x.npy", "old.json"):
        os.mkfifo(f"pipe-{name}")
        writers.append(threading.Thread(target=Path(f"pipe-{name}").write_bytes, args=(Path(name).read_bytes(),)))
        writers[-1].start()
    assert main(["bench", "pipe-net-symbol.json", "--params", "pipe-net-0000.params", "--input", "data=@pipe-x.npy",
                 "--iterations", "1", "--compare", "pipe-old.json"]) == OK
    for writer in writers:
        writer.join()
    assert "pipe-old.json" in capsys.readouterr().out


def test_an_array_that_says_it_is_larger_than_memory(capsys: pytest.CaptureFixture[str]):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (1 << 44,)})
    Path("large.npy").write_bytes(header.getvalue() + bytes(64))
    assert main(["run", "net-symbol.json", "--input", "data=large.npy"]) == BAD_FILE
    assert "large.npy: there is no memory for the array" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [{"inputs": {"data": 3}}, {"inputs": 3}, {"machine": []}, {"machine": 3},
                                   {"model": None}, {"milliseconds": {"min": "1"}}, "nested"])
def test_a_report_that_is_none(wrong: dict | str, capsys: pytest.CaptureFixture[str]):
    right = {"model": "net-symbol.json", "inputs": {"data": {"shape": [9], "dtype": "float32"}},
             "machine": {"threads": 1}, "milliseconds": {"min": 1}}
    Path("old.json").write_text("[" * 100_000 if isinstance(wrong, str) else json.dumps(right | wrong))
    assert main(["bench", "net-symbol.json", "--shape", "data=2,4", "--compare", "old.json"]) == BAD_FILE
    assert "old.json: expected what `mxc bench --json` prints" in capsys.readouterr().err
