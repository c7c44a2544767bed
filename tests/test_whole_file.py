"""Files that appear whole or not at all: what stands at their path already, and what stays when they cannot be."""
from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

import mxc as mx
from mxc.cli.inspect import write
from mxc.compiler.error import FileAccessError
from mxc.runtime.whole_file import replacing


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
    lambda path: put(path), lambda path: write(path, "<svg/>"), lambda path: mx.sym.Variable("x").save(path),
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
