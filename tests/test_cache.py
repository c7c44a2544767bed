"""The kernel cache: sound entries only, whatever happens to the files."""
from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from mxc.compiler import cache, cache_files
from mxc.compiler.cache import Cache
from mxc.compiler.cache_files import decode, encode, entry_key

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
    assert cache_files.candidates()[0] == tmp_path / "xdg" / "mxc"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_files.candidates()[0] == tmp_path / ".cache" / "mxc"
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
    monkeypatch.setattr(cache_files.tempfile, "gettempdir", lambda: str(tmp_path))
    opened = cache.open_cache()
    assert opened is not None and opened.path != shared


def test_a_link_to_a_directory_of_ones_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    monkeypatch.setenv("MXC_CACHE_DIR", str(tmp_path / "link"))
    opened = cache.open_cache()
    assert opened is not None and opened.path == tmp_path / "link" and opened.writable
    os.chmod(tmp_path / "real", 0o777)
    assert "others can write to it" in cache_files.refusal(tmp_path / "link")
    (tmp_path / "file").write_text("")
    assert "is not a directory" in cache_files.refusal(tmp_path / "file")
    monkeypatch.setattr(cache_files, "_owned", lambda status: not stat.S_ISLNK(status.st_mode))
    os.chmod(tmp_path / "real", 0o700)
    assert not cache_files.refusal(tmp_path / "real") and cache_files.refusal(tmp_path / "link")


def test_a_shortage_says_nothing_of_an_entry(monkeypatch: pytest.MonkeyPatch, store: Cache) -> None:
    def short(*_: object) -> bytes:
        raise OSError(errno.EMFILE, "Too many open files")

    store.put(KEY, PARTS, b"code")
    with monkeypatch.context() as patch:
        patch.setattr(cache, "read", short)
        assert store.get(KEY) is None
    assert store.get(KEY) == b"code" and store.refused == 0


def test_no_directory_is_one_warning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("MXC_CACHE_DIR", str(file / "below"))
    monkeypatch.setattr(cache_files.tempfile, "gettempdir", lambda: str(file))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert cache.open_cache() is None
        assert cache.open_cache() is None
    assert len([w for w in seen if "mxc" in str(w.message)]) == 1


def test_a_directory_that_vanished_is_made_again(store: Cache) -> None:
    store.path = store.path / "gone"
    store.put(KEY, PARTS, b"code")
    assert store.get(KEY) == b"code" and stat.S_IMODE(store.path.stat().st_mode) == 0o700


def test_writing_that_fails_is_one_warning(store: Cache) -> None:
    (store.path / "file").write_text("")
    store.path = store.path / "file" / "below"
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(2):
            store.put(KEY, PARTS, b"code")
    assert len(seen) == 1 and "not cached" in str(seen[0].message)
    assert store.get(KEY) is None and store.entries() == [] and store.info().nbytes == 0


def test_a_directory_that_may_only_be_read_is_read(monkeypatch: pytest.MonkeyPatch, store: Cache) -> None:
    store.put(KEY, PARTS, b"code")
    real = cache_files.tempfile.mkstemp

    def mkstemp(dir: Path, **more: str):
        if dir == store.path:
            raise OSError(30, "Read-only file system")
        return real(dir=dir, **more)

    monkeypatch.setattr(cache_files.tempfile, "mkstemp", mkstemp)
    monkeypatch.setenv("MXC_CACHE_DIR", str(store.path))
    monkeypatch.setattr(cache_files.tempfile, "gettempdir", lambda: str(store.path / "tmp"))
    with pytest.warns(RuntimeWarning, match="Read-only file system"):
        opened = cache.open_cache()
    assert opened is not None and opened.path.parent.name == "tmp" and opened.get(KEY) == b"code"
    monkeypatch.setattr(cache_files.tempfile, "gettempdir", lambda: "/proc/none")
    opened = cache.open_cache()
    assert opened is not None and opened.path == store.path and opened.get(KEY) == b"code"
    opened.put("a-b", PARTS, b"code")
    assert opened.get("a-b") is None


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("aside", ["", "file", "directory"])
def test_a_directory_in_an_entrys_place(full: bool, aside: str, store: Cache) -> None:
    """It is set aside as a damaged file is, whatever was set aside before, and what is set aside can be removed."""
    place, bad = store.place(KEY), store.place(KEY).with_suffix(".bad")
    place.mkdir()
    if full:
        (place / "inside").write_text("")
    if aside:
        bad.write_text("") if aside == "file" else (bad / "below").mkdir(parents=True)
    with pytest.warns(RuntimeWarning, match="is built anew: it is not a file"):
        assert store.get(KEY) is None
    store.put(KEY, PARTS, b"code")
    assert store.get(KEY) == b"code" and bad.is_dir() and [e.key for e in store.entries()] == [KEY]
    assert store.prune().files == 1 and not bad.exists()
    place.unlink()
    place.mkdir()
    assert store.clear().files == 1 and not place.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have no names here")
def test_a_pipe_in_an_entrys_place_is_not_waited_for(store: Cache) -> None:
    os.mkfifo(store.place(KEY))
    assert store.entries() == [] and store.explain(KEY, PARTS) and len(store.verify()) == 1
    with pytest.warns(RuntimeWarning, match="is built anew: it is not a file"):
        assert store.get(KEY) is None
    assert store.prune().files == 1 and store.info().nbytes == 0


def filled(store: Cache, count: int) -> list[str]:
    """`count` entries, used a day after another, the first longest ago."""
    keys = [entry_key(f"kernel {i}", PARTS) for i in range(count)]
    for i, key in enumerate(keys):
        store.put(key, PARTS, b"x" * 1000, f"operator{i}", "a reason")
        os.utime(store.place(key), (86400 * (i + 1),) * 2)
    return keys


def test_entries_and_info(store: Cache) -> None:
    keys = filled(store, 3)
    (store.path / "strange.mxk").write_bytes(b"")
    (store.path / "of a user").write_bytes(b"")
    (store.path / ".mxc-x.tmp").write_bytes(b"12")
    listed = store.entries()
    assert [e.key for e in listed] == keys[::-1] and [e.used for e in listed] == [3 * 86400, 2 * 86400, 86400]
    assert listed[0].name == "operator2" and listed[0].reason == "a reason" and listed[0].parts == PARTS
    assert listed[0].nbytes == listed[0].place.stat().st_size
    info = store.info()
    assert (info.entries, info.refused, info.unfinished) == (3, 0, 1)
    assert info.nbytes == sum(e.nbytes for e in listed) + 2


def test_verify_finds_what_would_not_be_used_and_leaves_it(store: Cache) -> None:
    keys = filled(store, 3)
    assert store.verify() == []
    data = bytearray(store.place(keys[1]).read_bytes())
    data[-40] ^= 1
    store.place(keys[1]).write_bytes(data)
    assert [(place.stem, reason) for place, reason in store.verify()] == [
        (keys[1], "its checksum does not match its content")]
    assert store.refused == 0 and store.place(keys[1]).exists()


def test_prune_removes_what_was_used_longest_ago(store: Cache) -> None:
    keys = filled(store, 4)
    size = store.entries()[0].nbytes
    assert store.get(keys[0]) == b"x" * 1000  # now it is the one used last
    store.place(KEY).with_suffix(".bad").write_bytes(b"12")
    assert store.prune(0) == cache.Removed(1, 2)
    assert store.prune(2 * size) == cache.Removed(2, 2 * size)
    assert {e.key for e in store.entries()} == {keys[0], keys[3]}
    store.limit = size
    store.prune()
    assert [e.key for e in store.entries()] == [keys[0]]


def test_tidy_looks_at_all_files_only_now_and_then(store: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    monkeypatch.setattr(Cache, "prune", lambda self: looked.append(1))
    store = Cache(store.path, limit=64 * 2500)
    for _ in range(7):  # of more than 1000 bytes each
        filled(store, 1)
        store.tidy()
    assert 2 <= len(looked) <= 4


def test_clear_leaves_files_of_others(store: Cache) -> None:
    filled(store, 2)
    others = {"of a user", "notes.tmp", ".hidden.tmp", "a.try", "song.bad", ".lock"}
    for name in others:
        (store.path / name).write_bytes(b"")
        os.utime(store.path / name, (0, 0))
    cache_files.remove_stale(store.path)
    store.prune(1)
    filled(store, 2)
    with store.claims():
        assert store.info().entries == 2 and store.info().refused == store.info().unfinished == 0
    assert store.clear().files == 3  # and the lock
    assert {p.name for p in store.path.iterdir()} == others


@pytest.mark.parametrize(("text", "limit"), [("", 2 << 30), ("1000", 1000), ("500M", 500 << 20), ("2gb", 2 << 30),
                                             ("0", 0), ("much", 2 << 30), ("-1", 2 << 30)])
def test_the_size_of_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, limit: int) -> None:
    monkeypatch.setenv("MXC_CACHE_DIR", str(tmp_path / "mine"))
    monkeypatch.setenv("MXC_CACHE_SIZE", text)
    opened = cache.open_cache()
    assert opened is not None and opened.limit == limit


def test_a_size_that_is_none_is_told_as_it_was_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MXC_CACHE_DIR", str(tmp_path / "mine"))
    monkeypatch.setenv("MXC_CACHE_SIZE", "fewB")
    monkeypatch.setattr(cache, "_warned", set())
    with pytest.warns(RuntimeWarning, match="MXC_CACHE_SIZE is 'fewB', expected"):
        cache.open_cache()


def test_damage_and_other_parts_are_explained(store: Cache) -> None:
    store.put(KEY, {"cpu": "x", "llvmlite": "1"}, b"code")
    told = store.explain(KEY[:-1] + "0", {"cpu": "y", "flags": "z"})
    assert told == "cpu was 'x', is 'y'; flags was '', is 'z'; llvmlite was '1', is ''"
    store.place(KEY).write_bytes(b"")
    os.chmod(store.place(KEY), 0o600)
    assert store.get(KEY) is None and store.explain(KEY, PARTS) == "its entry was damaged and set aside"


def test_a_claim_keeps_other_processes_from_the_same_work(store: Cache) -> None:
    other = entry_key("another kernel", PARTS)
    script = ("import sys; from pathlib import Path; from mxc.compiler.cache import Cache\n"
              "with Cache(Path(sys.argv[1])).claims() as claims: print(*map(claims.take, sys.argv[2:]))")

    def asked() -> str:
        return subprocess.run([sys.executable, "-c", script, str(store.path), KEY, other], text=True, check=True,
                              capture_output=True).stdout.strip()

    with store.claims() as claims:
        assert claims.take(KEY) and asked() == "False True"
        claims.release(KEY)
        assert asked() == "True True"
        assert claims.take(KEY)
    assert asked() == "True True"


WRITER = """
import sys
from pathlib import Path
from mxc.compiler.cache import Cache
from mxc.compiler.cache_files import entry_key
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
    assert len(list(store.path.glob("*.mxk"))) == 5 and not list(store.path.glob(".mxc-*"))
