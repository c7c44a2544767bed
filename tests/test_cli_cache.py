"""`mxc cache`: what it tells of a directory and does to it; and that an interrupted compilation leaves a valid one."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import command

import mxc as mx
from mxc.cli.cache import ago, size
from mxc.cli.main import BAD_FILE, FAILED, INTERRUPTED, OK, USAGE, main
from mxc.compiler.cache import Cache

PARTS = {"cpu": "one", "llvmlite": "1"}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """A cache of three entries of 1000 bytes of code."""
    path = tmp_path / "cache"
    path.mkdir(mode=0o700)
    monkeypatch.setenv("MXC_CACHE_DIR", str(path))
    made = Cache(path)
    for key, name, reason in (("aa-11", "exp+sum", "this kernel was not compiled before"),
                              ("aa-22", "exp+sum", "cpu was 'one', is 'two'"), ("bb-11", "_mxc_convolution", "")):
        made.put(key, PARTS, bytes(1000), name, reason)
    return made


def test_a_walk_through_a_cache(cache: Cache):
    listed = command("cache", "ls")
    assert (listed.returncode, listed.stderr) == (OK, "")
    head, *rows = listed.stdout.splitlines()
    assert head.split() == ["kernel", "bytes", "used", "key"] and len(rows) == 3
    assert command("cache", "dir").stdout == f"{cache.path}\n"
    place = cache.place("aa-11")
    place.write_bytes(place.read_bytes()[:-1] + b"?")
    wrong = command("cache", "verify")
    assert wrong.returncode == FAILED
    assert wrong.stdout.splitlines()[0] == f"{place}: its checksum does not match its content"
    pruned = command("cache", "prune")
    assert pruned.returncode == OK and pruned.stdout.startswith("removed 1 files of 1,")
    assert command("cache", "verify").returncode == OK


def test_sums(cache: Cache, capsys: pytest.CaptureFixture[str]):
    assert main(["cache", "info", "--json"]) == OK
    data = json.loads(capsys.readouterr().out)
    assert (data["directory"], data["kernels"], data["writable"]) == (str(cache.path), 3, True)
    assert data["bytes"] == sum(file.stat().st_size for file in cache.path.iterdir())
    assert main(["cache", "info"]) == OK
    assert "kernels:             3\n" in capsys.readouterr().out


def test_why(cache: Cache, capsys: pytest.CaptureFixture[str]):
    assert main(["cache", "explain", "exp"]) == OK
    assert sorted(capsys.readouterr().out.splitlines()) == [
        "exp+sum (aa-11): this kernel was not compiled before", "exp+sum (aa-22): cpu was 'one', is 'two'"]
    assert main(["cache", "explain", "bb", "--json"]) == OK
    (entry,) = json.loads(capsys.readouterr().out)
    assert (entry["kernel"], entry["parts"], entry["reason"]) == ("_mxc_convolution", PARTS, "")
    assert main(["cache", "explain", "nosuch"]) == OK
    assert "no kernel has 'nosuch'" in capsys.readouterr().out


def test_removing(cache: Cache, capsys: pytest.CaptureFixture[str]):
    os.utime(cache.place("bb-11"), (1, 1))
    nbytes = cache.place("bb-11").stat().st_size
    assert main(["cache", "verify"]) == OK  # reads all files, but does not use them
    capsys.readouterr()
    assert main(["cache", "prune", "--size", "2500", "--json"]) == OK
    assert json.loads(capsys.readouterr().out) == {"files": 1, "bytes": nbytes} and cache.get("bb-11") is None
    assert main(["cache", "clear"]) == OK
    assert capsys.readouterr().out.startswith("removed 2 files") and cache.entries() == []


def test_a_file_of_others(cache: Cache, capsys: pytest.CaptureFixture[str]):
    place = cache.path / "my.mxk"
    place.write_text("mine")
    assert main(["cache", "verify"]) == OK
    told, sums = capsys.readouterr().out.splitlines()
    assert told.startswith(f"{place}: it is not mxc's") and sums == "3 kernels, 0 of them would not be used"
    assert main(["cache", "verify", "--json"]) == OK
    assert json.loads(capsys.readouterr().out) == {"kernels": 3, "foreign": [str(place)], "wrong": []}
    assert main(["cache", "prune"]) == main(["cache", "clear"]) == OK
    assert [file.name for file in cache.path.iterdir() if file.name != ".mxc.lock"] == ["my.mxk"]
    assert place.read_text() == "mine"


@pytest.mark.parametrize(("arguments", "text"), [
    (["verify", "exp"], "is about all kernels"), (["ls", "--size", "5"], "prune does")])
def test_options_of_other_actions(cache: Cache, arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]):
    assert main(["cache", *arguments]) == USAGE
    assert text in capsys.readouterr().err


def test_no_cache(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("MXC_CACHE_DIR", "")
    assert main(["cache", "ls"]) == BAD_FILE
    assert capsys.readouterr().err.splitlines()[1] == "set MXC_CACHE_DIR to a directory of your own"


def test_words():
    assert (size("4096"), size("500M"), size("2gb")) == (4096, 500 << 20, 2 << 30)
    now = time.time()
    assert (ago(now), ago(now - 7300), ago(now - 90 * 3600)) == ("within the hour", "2 h ago", "3 days ago")


def test_an_interrupted_compilation_leaves_a_valid_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MXC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    net = mx.sym.Variable("data")
    for i in range(5):  # kernels that differ: each has another number of operators
        for _ in range(i + 1):
            net = mx.sym.tanh(net)
        net = mx.sym.dot(net, mx.sym.Variable(f"w{i}"))
    net.save("net-symbol.json")
    shapes = ["--shape=data=8,8", *(f"--shape=w{i}=8,8" for i in range(5))]
    process = subprocess.Popen([sys.executable, "-m", "mxc", "compile", "net-symbol.json", *shapes],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    folder = tmp_path / "cache"
    while process.poll() is None and not (folder.exists() and any(folder.iterdir())):
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does it: to all of the command's processes
    out, err = process.communicate(timeout=120)
    if process.returncode != OK:  # it may have been done before the signal came
        assert (process.returncode, out, err) == (INTERRUPTED, "", "mxc compile: interrupted\n")
    done = command("cache", "verify", "--json")
    assert done.returncode == OK and json.loads(done.stdout)["wrong"] == []
