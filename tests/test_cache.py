"""The kernel cache: sound entries only, whatever happens to the files."""
from __future__ import annotations

import os
import stat
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from mxc.compiler import cache
from mxc.compiler.cache import Cache, decode, encode, entry_key

PARTS = {"cpu": "x", "mxc": "1"}
KEY = entry_key("kernel text", PARTS)


@pytest.fixture
def store(tmp_path: Path) -> Cache:
    os.chmod(tmp_path, 0o700)
    return Cache(tmp_path)


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cache, "_warned", set())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def test_round_trip(store: Cache) -> None:
    assert store.get(KEY) is None
    store.put(KEY, PARTS, b"code")
    assert store.get(KEY) == b"code"
    assert stat.S_IMODE(store.place(KEY).stat().st_mode) == 0o600
    assert [p.name for p in store.path.iterdir()] == [f"{KEY}.mxk"]


def test_every_flipped_byte_and_every_truncation_is_refused() -> None:
    data = encode(KEY, PARTS, b"object code")
    assert decode(data, KEY) == (PARTS, b"object code")
    for i in range(len(data)):
        with pytest.raises(ValueError):
            decode(data[:i] + bytes([data[i] ^ 0x40]) + data[i + 1:], KEY)
        with pytest.raises(ValueError):
            decode(data[:i], KEY)
    with pytest.raises(ValueError):
        decode(data + b"\0", KEY)


def test_bad_entry_is_set_aside_and_rebuilt(store: Cache) -> None:
    store.place(KEY).write_bytes(b"")
    os.chmod(store.place(KEY), 0o600)
    assert store.get(KEY) is None and store.refused == 1
    assert store.place(KEY).with_suffix(".bad").exists() and not store.place(KEY).exists()
    store.put(KEY, PARTS, b"new")
    assert store.get(KEY) == b"new"


def test_entry_of_another_key_is_refused(store: Cache) -> None:
    other = entry_key("another kernel", PARTS)
    store.put(other, PARTS, b"code")
    store.place(other).rename(store.place(KEY))
    assert store.get(KEY) is None and store.refused == 1


def test_entry_that_others_may_write_is_refused(store: Cache) -> None:
    store.put(KEY, PARTS, b"code")
    os.chmod(store.place(KEY), 0o622)
    assert store.get(KEY) is None


def test_link_is_refused(store: Cache, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere"
    real.write_bytes(encode(KEY, PARTS, b"code"))
    store.place(KEY).symlink_to(real)
    assert store.get(KEY) is None


def test_miss_is_explained(store: Cache) -> None:
    store.put(KEY, PARTS, b"code")
    changed = {**PARTS, "cpu": "y"}
    assert store.explain(entry_key("kernel text", changed), changed) == "cpu was 'x', is 'y'"
    assert "not compiled before" in store.explain(entry_key("other", PARTS), PARTS)


def test_directory_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MXC_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.candidates()[0] == tmp_path / "xdg" / "mxc"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.candidates()[0] == tmp_path / ".cache" / "mxc"
    monkeypatch.setenv("MXC_CACHE_DIR", str(tmp_path / "mine"))
    opened = cache.open_cache()
    assert opened is not None and opened.path == tmp_path / "mine"
    assert stat.S_IMODE(opened.path.stat().st_mode) == 0o700
    monkeypatch.setenv("MXC_CACHE_DIR", "")
    assert cache.open_cache() is None


def test_directory_of_others_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    os.chmod(shared, 0o777)
    monkeypatch.setenv("MXC_CACHE_DIR", str(shared))
    monkeypatch.setattr(cache.tempfile, "gettempdir", lambda: str(tmp_path))
    opened = cache.open_cache()
    assert opened is not None and opened.path != shared


def test_no_directory_is_one_warning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("MXC_CACHE_DIR", str(file / "below"))
    monkeypatch.setattr(cache.tempfile, "gettempdir", lambda: str(file))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert cache.open_cache() is None
        assert cache.open_cache() is None
    assert len([w for w in seen if "mxc" in str(w.message)]) == 1


def test_writing_that_fails_is_no_error(store: Cache) -> None:
    store.path = store.path / "gone"
    store.put(KEY, PARTS, b"code")


WRITER = """
import sys
from pathlib import Path
from mxc.compiler.cache import Cache, entry_key
store, parts = Cache(Path(sys.argv[1])), {"cpu": "x"}
for i in range(30):
    key = entry_key(str(i % 5), parts)
    store.put(key, parts, str(i % 5).encode() * 20000)
    got = store.get(key)
    assert got == str(i % 5).encode() * 20000, got
assert store.refused == 0
"""


def test_processes_share_a_directory(store: Cache) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(store.path)]) for _ in range(3)]
    assert [w.wait() for w in writers] == [0, 0, 0]
    assert len(list(store.path.glob("*.mxk"))) == 5 and not list(store.path.glob(".*.tmp"))
