"""Files that appear whole or not at all: what stands at their path already, and what stays when they cannot be."""
from __future__ import annotations

import contextlib
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import mxc as mx
from mxc.cli.main import BAD_FILE, OK, main
from mxc.cli.output_files import write_text
from mxc.compiler.error import FileAccessError
from mxc.runtime import whole_file
from mxc.runtime.whole_file import check_replacing, replacing


def put(path: Path | str, content: bytes = b"new") -> None:
    with replacing(path) as file:
        file.write(content)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have no names here")
def test_what_is_no_file_is_written_to_and_stays(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    put(pipe)
    assert os.read(reader, 9) == b"new" and stat.S_ISFIFO(pipe.lstat().st_mode)
    os.close(reader)
    assert os.listdir(tmp_path) == ["pipe"]


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays(there: bool, tmp_path: Path):
    target, link = tmp_path / "target", tmp_path / "link"
    if there:
        target.write_bytes(b"old")
    link.symlink_to("target")
    put(link)
    assert link.is_symlink() and target.read_bytes() == b"new"


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_permissions_are_those_of_open(tmp_path: Path):
    path = tmp_path / "file"
    before = os.umask(0o027)
    try:
        put(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
    finally:
        os.umask(before)
    path.chmod(0o600)
    put(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_name_as_long_as_names_may_be(tmp_path: Path):
    for name in ("x" * 255, "é" * 127):
        put(tmp_path / name)
        assert (tmp_path / name).read_bytes() == b"new"


@pytest.mark.parametrize("save", [
    lambda path: put(path), lambda path: write_text(path, "<svg/>"), lambda path: mx.sym.Variable("x").save(path),
    lambda path: mx.nd.save(path, [mx.nd.ones((2,))])], ids=["file", "picture", "symbol", "arrays"])
def test_what_was_there_stays_where_the_disk_is_full(save: Callable[[str], None], tmp_path: Path,
                                                    monkeypatch: pytest.MonkeyPatch):
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "file"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileAccessError, match="file: cannot be written: No space left on device"):
        save(str(path))
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["file"]


def test_a_directory_is_refused(tmp_path: Path):
    with pytest.raises(FileAccessError, match="cannot be written: it is a directory"):
        put(tmp_path)
    assert not os.listdir(tmp_path)


@contextlib.contextmanager
def files_of_at_most(nbytes: int) -> Iterator[None]:
    """Nothing writes longer files in the block."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("arguments", [
    "compile net-symbol.json --shape data=2,4 -o OUT", "compile net-symbol.json --shape data=2,4 --train -o OUT",
    "run net-symbol.json --shape data=2,4 --output OUT.npy", "run net-symbol.json --shape data=2,4 --output OUT.npz",
    "inspect net-symbol.json --shape data=2,4 --plot OUT.svg",
    "inspect net-symbol.json --shape data=2,4 --memory OUT.svg",
    "profile net-symbol.json --shape data=2,4 --iterations 1 --trace OUT.json"])
def test_no_command_leaves_a_part_of_a_file(arguments: str, there: bool, tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)
    mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc").save("net-symbol.json")
    mx.nd.save("net-0000.params", {"arg:fc_weight": mx.nd.ones((3, 4)), "arg:fc_bias": mx.nd.zeros((3,))})
    assert main(arguments.split()) == OK
    (written,) = set(os.listdir()) - {"net-symbol.json", "net-0000.params"}
    if there:
        Path(written).write_bytes(b"old")
    else:
        os.unlink(written)
    before = sorted(os.listdir())
    with files_of_at_most(16):
        assert main(arguments.split()) == BAD_FILE
    assert f"{written}: cannot be written: File too large" in capsys.readouterr().err
    assert sorted(os.listdir()) == before and (not there or Path(written).read_bytes() == b"old")


def test_a_trace_stays_whole_where_there_is_no_room_for_more(tmp_path: Path):
    path = tmp_path / "trace.json"
    mx.profiler.set_config(filename=str(path), profile_all=True, continuous_dump=False)
    mx.profiler.set_state("run")
    try:
        mx.nd.ones((2, 2)).asnumpy()
        mx.profiler.dump(finished=False)
        first = json.loads(path.read_text())["traceEvents"]
        mx.nd.ones((2, 2)).asnumpy()
        with files_of_at_most(path.stat().st_size + 50), pytest.raises(FileAccessError, match="File too large"):
            mx.profiler.dump(finished=False)
        assert json.loads(path.read_text())["traceEvents"] == first
        mx.profiler.dump()
    finally:
        mx.profiler.set_state("stop")
        mx.profiler.set_config()
    events = json.loads(path.read_text())["traceEvents"]
    assert events[:len(first)] == first and len(events) > len(first)


def test_a_place_is_checked_before_the_work(tmp_path: Path):
    path = tmp_path / "file"
    check_replacing(path)
    assert not os.listdir(tmp_path)
    path.write_bytes(b"old")
    check_replacing(path)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["file"]
    for wrong in (tmp_path, tmp_path / "none" / "file"):
        with pytest.raises(FileAccessError):
            check_replacing(wrong)


# Begins to write a file, says so, and waits to be killed.
WAITING = """
import sys
from mxc.runtime import whole_file
from mxc.runtime.whole_file import replacing

with replacing(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("begun", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[subprocess.Popen]:
    """A process that is writing `file`."""
    with subprocess.Popen([sys.executable, "-c", WAITING, tmp_path / "file"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"begun\n"
        yield process
        process.kill()


@pytest.mark.skipif(whole_file.fcntl is None, reason="locks of POSIX")
def test_the_next_writer_removes_what_a_killed_one_left(writer: subprocess.Popen, tmp_path: Path):
    others = {".file.0123456789abcdef", ".file.name", ".other." + "0" * 24, "file.txt"}
    for name in others:
        (tmp_path / name).write_bytes(b"")
    (left,) = set(os.listdir(tmp_path)) - others
    put(tmp_path / "file")
    assert left in os.listdir(tmp_path)  # its process lives
    writer.kill()
    writer.wait()
    put(tmp_path / "other")
    assert left in os.listdir(tmp_path)  # it is of another name
    put(tmp_path / "file", b"newer")
    assert set(os.listdir(tmp_path)) == {*others, "file", "other"}
    assert (tmp_path / "file").read_bytes() == b"newer"


@pytest.mark.skipif(whole_file.fcntl is None, reason="locks of POSIX")
def test_what_another_host_left_is_removed_after_a_day(writer: subprocess.Popen, tmp_path: Path,
                                                       monkeypatch: pytest.MonkeyPatch):
    writer.kill()
    writer.wait()
    (left,) = tmp_path.iterdir()
    monkeypatch.setattr(whole_file, "_host", lambda: "0" * 8)
    put(tmp_path / "file")
    assert left.exists()
    os.utime(left, (0, left.stat().st_mtime - whole_file.DAY - 1))
    put(tmp_path / "file")
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_that_was_removed_before_it_was_locked_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fcntl, taken = pytest.importorskip("fcntl"), []
    flock = fcntl.flock

    def late(descriptor: int, how: int) -> None:
        if not taken:
            taken.extend(tmp_path.iterdir())
            taken[0].unlink()
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    put(tmp_path / "file")
    assert taken and os.listdir(tmp_path) == ["file"] and (tmp_path / "file").read_bytes() == b"new"
