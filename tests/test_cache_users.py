"""The cache under several users: whose directories are used, and for what. Only root can become another user."""
from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from mxc.compiler import cache, cache_files
from mxc.compiler.cache import Cache
from mxc.compiler.cache_files import entry_key

NOBODY, OTHER = 65534, 65533
PARTS = {"cpu": "one"}
KEY = entry_key("kernel", PARTS)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork") or os.geteuid() != 0, reason="only root becomes another user")


@pytest.fixture
def folder() -> Path:
    """An empty directory that everybody can reach, as pytest's own are not."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


def owned(path: Path, mode: int, user: int) -> Path:
    path.mkdir()
    os.chown(path, user, user)
    path.chmod(mode)
    return path


def as_nobody(work: Callable[[], None]) -> None:
    """Runs `work` in a child process of another user, and fails where it does."""
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            work()
            os._exit(0)
        except BaseException:
            import traceback

            traceback.print_exc()
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def opened(chosen: Path, temporary: Path) -> tuple[Cache, list[str]]:
    """The cache with MXC_CACHE_DIR, and what was said."""
    os.environ["MXC_CACHE_DIR"] = str(chosen)
    tempfile.tempdir = str(temporary)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = cache.open_cache()
    assert found is not None
    return found, [str(each.message) for each in said]


def test_a_systems_cache_is_read_by_all(folder: Path) -> None:
    """What root has stored in a directory that others may read is used; new kernels go elsewhere."""
    shared, own = owned(folder / "shared", 0o755, 0), owned(folder / "own", 0o700, NOBODY)
    Cache(shared).put(KEY, PARTS, b"code")

    def work() -> None:
        found, said = opened(shared, own)
        assert found.writable and own in found.path.parents and found.readable == (shared,)
        assert len(said) == 1 and "Permission denied" in said[0]
        assert found.get(KEY) == b"code" and found.refused == 0
        found.put("a-b", PARTS, b"more")
        assert found.get("a-b") == b"more" and not (shared / "a-b.mxk").exists()

    as_nobody(work)
    assert Cache(shared).get(KEY) == b"code"


def test_a_private_entry_of_another_user_is_one_warning(folder: Path) -> None:
    shared, own = owned(folder / "shared", 0o755, 0), owned(folder / "own", 0o700, NOBODY)
    for key in (KEY, "a-b"):
        Cache(shared).put(key, PARTS, b"code")
        os.chmod(shared / f"{key}.mxk", 0o600)

    def work() -> None:
        found, _ = opened(shared, own)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            assert found.get(KEY) is None and found.get("a-b") is None
        assert len(said) == 1 and "another user's are not used" in str(said[0].message)

    as_nobody(work)


@pytest.mark.parametrize(("mode", "owner"), [(0o700, OTHER), (0o755, OTHER), (0o777, 0), (0o775, 0)])
def test_what_another_user_can_write_is_not_used(mode: int, owner: int, folder: Path) -> None:
    theirs, own = owned(folder / "theirs", mode, owner), owned(folder / "own", 0o700, NOBODY)
    Cache(theirs).put(KEY, PARTS, b"planted")

    def work() -> None:
        found, said = opened(theirs, own)
        assert found.readable == () and own in found.path.parents and found.get(KEY) is None
        assert len(said) == 1 and str(theirs) in said[0]

    as_nobody(work)
    assert cache_files.refusal(theirs)  # nor by root


def test_a_temporary_directory_that_another_user_made_first_is_not_used(folder: Path) -> None:
    """Its name can be guessed, and everybody may make directories where it lies."""
    common = owned(folder / "common", 0o1777, 0)
    owned(common / f"mxc-{NOBODY}", 0o777, OTHER)

    def work() -> None:
        os.environ["MXC_CACHE_DIR"] = str(folder / "none" / "cache")
        tempfile.tempdir = str(common)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            assert cache.open_cache() is None
        assert "compiled but not cached" in str(said[0].message)

    as_nobody(work)
