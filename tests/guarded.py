"""Arrays that end right before, or begin right behind, memory that may not be touched."""
from __future__ import annotations

import ctypes
import faulthandler
import mmap
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pytest

needs_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs mprotect and fork")
_LIBC = ctypes.CDLL(None, use_errno=True)
_PAGE = mmap.PAGESIZE


def guarded(array: np.ndarray, at_end: bool = True) -> np.ndarray:
    """A flat copy of `array` that ends at (or begins after) a page that neither may be read nor written.

    It is aligned to its elements only: at its end by what is left, at its beginning by a page. The mapping lives as
    long as the array, for a process may have some 65,000 pieces of memory of different rights.
    """
    pages = -(-max(1, array.nbytes) // _PAGE)
    area = mmap.mmap(-1, (pages + 2) * _PAGE)
    memory = np.frombuffer(area, np.uint8)
    for start in (0, (pages + 1) * _PAGE):
        if _LIBC.mprotect(ctypes.c_void_p(memory.ctypes.data + start), ctypes.c_size_t(_PAGE), 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    first = (pages + 1) * _PAGE - array.nbytes if at_end else _PAGE
    copy = memory[first:first + array.nbytes].view(array.dtype)
    copy[:] = array.ravel()
    return copy


def sides(arrays: Sequence[np.ndarray]) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Copies of the arrays before an inaccessible page, then behind one; and on which side of them that page is."""
    for side, at_end in (("behind", True), ("before", False)):
        yield side, [guarded(a, at_end) for a in arrays]


def first_death(works: Iterable[tuple[str, Callable[[], object]]]) -> str | None:
    """The name of the first of `works` in which a forked child dies or raises; None when it lives through all."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        try:
            for name, work in works:
                os.write(writer, f"{name}\n".encode())
                work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader) as names:
        begun = names.read().splitlines()
    return begun[-1] if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) else None
