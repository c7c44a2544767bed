"""Runs machine code of this process in a CPU with AVX-512 that Bochs emulates (package bochscpu-python).

The emulated CPU sees this process's memory at the same addresses, in pages of 1 GiB: the i-th of those that code,
arrays, the stack and the C library lie in is its physical memory from i GiB on. Bochs asks for the small pages of it.
Each run is in a forked process, which gives back what the arrays then hold: a process that has had an emulated CPU dies
when it ends.
"""
from __future__ import annotations

import ctypes
import functools
import importlib.util
import mmap
import os
import re
import subprocess
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

GIB, PAGE = 30, 4096
STACK, TABLES = 1 << 20, 64  # bytes, pages
PRESENT_WRITABLE, LARGE = 3, 0x80  # of entries of page tables
CODE, DATA = (0x08, 0xA09B), (0x10, 0xC093)  # selectors and attributes of segments of 64 bits
VECTORS = 0xE7  # XCR0: state of x87, SSE, AVX and AVX-512
SIMD = 1 << 9 | 1 << 10 | 1 << 18  # CR4: OSFXSR, OSXMMEXCPT, OSXSAVE
MXCSR, FPCW = 0x1F80, 0x37F  # of SSE and x87: all exceptions masked, as a process begins
HALT = 0xF4
ARCH_PRCTL, ARCH_GET_FS = 158, 0x1003  # of Linux
# The instructions kshiftrw and kshiftlw by 15, which give 0 in Bochs. In place of the first the emulated code has
# kshiftrd, which gives the same of masks of 16 bits.
RIGHT_15 = re.compile(rb"\xc4\xe3\xf9\x30([\xc0-\xff])\x0f", re.DOTALL)
LEFT_15 = re.compile(rb"\xc4\xe3\xf9\x32([\xc0-\xff])\x0f", re.DOTALL)
GATHER, INDEX_BELOW_16 = re.compile(rb"\x62[\x02-\xf2][\x7d\xfd](.)[\x90-\x93]", re.DOTALL), 0x08
# The package's files want functions of a C library newer than they say.
NEWER = """#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
unsigned long long __isoc23_strtoull(const char *text, char **end, int base) { return strtoull(text, end, base); }
int __isoc23_sscanf(const char *text, const char *format, ...) {
    va_list all; va_start(all, format); int found = vsscanf(text, format, all); va_end(all); return found; }
"""


class Bochs:
    """See instruction_sets.Processor."""

    def missing(self) -> str:
        return "" if importlib.util.find_spec("bochscpu") else "the extra `emulators` would run it"

    def load(self, symbol: str, code: bytes) -> int:
        from mxc.compiler.targets.cpu.build.loaded import load_functions

        assert not LEFT_15.search(code), "what Bochs makes of kshiftlw by 15 is wrong"
        if any(not found[1][0] & INDEX_BELOW_16 for found in GATHER.finditer(code)):
            pytest.skip("Bochs takes no gathers at indices in zmm16 to zmm31")
        code = RIGHT_15.sub(lambda found: b"\xc4\xe3\x79\x31" + found[1] + b"\x0f", code)
        return load_functions([code], [symbol])[symbol]

    def run(self, address: int, arrays: Sequence[np.ndarray], values: Sequence[int], scratch: np.ndarray,
            portions: Sequence[tuple[int, int]]) -> None:
        package = _package()
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                args = np.array([*(a.ctypes.data for a in arrays), *values], np.int64)
                ends = [(a.ctypes.data, a.nbytes) for a in (*arrays, args, scratch)]
                cpu = _Cpu(package)
                cpu.show({p >> GIB for start, size in ends for p in (start, start + size)} | {address >> GIB})
                for first, last in portions:
                    cpu.call(address, args.ctypes.data, first, last, scratch.ctypes.data)
                with os.fdopen(writer, "wb") as results:
                    for a in (*arrays, scratch):
                        results.write(np.ascontiguousarray(a))
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        os.close(writer)
        with os.fdopen(reader, "rb") as results:
            found = [results.read(a.nbytes) for a in (*arrays, scratch)]
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the emulated CPU stopped"
        for a, data in zip((*arrays, scratch), found, strict=True):
            a[...] = np.frombuffer(data, a.dtype).reshape(a.shape)


@functools.cache
def _package() -> Any:
    try:
        import bochscpu.cpu
    except ImportError:
        with tempfile.TemporaryDirectory() as folder:
            source, library = Path(folder) / "newer.c", Path(folder) / "newer.so"
            source.write_text(NEWER)
            subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
            ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
        import bochscpu.cpu
    import bochscpu.memory
    return bochscpu


class _Cpu:
    def __init__(self, package: Any):
        self.package = package
        self.pages: list[int] = []  # of 1 GiB, in the order of the physical memory
        self.folders: dict[int, int] = {}  # addresses of the tables of 512 such pages
        self.tables, self.stack, self.end = self._memory(TABLES * PAGE), self._memory(STACK), self._memory(PAGE)
        ctypes.memset(self.end, HALT, 1)
        self.faults: list[int] = []
        self.session = package.Session()
        self.session.missing_page_handler = self._page
        self.hook = package.Hook()
        self.hook.hlt = lambda session, cpu: self.session.stop()
        self.hook.exception = lambda session, cpu, vector, code: (self.faults.append(vector), self.session.stop())
        c, mathematics, own = ctypes.CDLL(None), ctypes.CDLL("libm.so.6"), ctypes.c_uint64()
        c.syscall(ARCH_PRCTL, ARCH_GET_FS, ctypes.byref(own))
        self.thread = own.value  # its data, as errno
        functions = [ctypes.cast(f, ctypes.c_void_p).value or 0 for f in (c.memset, mathematics.expf)]
        self.show({p >> GIB for p in (self.tables, self.stack, self.end, self.thread, *functions)})

    def _memory(self, size: int) -> int:
        area = mmap.mmap(-1, size)
        self._kept = [*getattr(self, "_kept", []), area]
        return ctypes.addressof(ctypes.c_char.from_buffer(area))

    def _physical(self, address: int) -> int:
        return self.pages.index(address >> GIB) << GIB | address & (1 << GIB) - 1

    def show(self, pages: set[int]) -> None:
        """Map the pages of 1 GiB with these numbers, unless they are."""
        new = sorted(pages - set(self.pages), key=lambda page: page != self.tables >> GIB)
        for page in new:
            self.pages.append(page)
            folder = page >> 9
            if folder not in self.folders:
                self.folders[folder] = self.tables + (1 + len(self.folders)) * PAGE
                self._entry(self.tables, folder, self._physical(self.folders[folder]))
            self._entry(self.folders[folder], page & 511, self._physical(page << GIB) | LARGE)

    @staticmethod
    def _entry(table: int, number: int, value: int) -> None:
        ctypes.c_uint64.from_address(table + 8 * number).value = value | PRESENT_WRITABLE

    def _page(self, physical: int, *rest: object) -> None:
        physical &= -PAGE
        self.package.memory.page_insert(physical, (self.pages[physical >> GIB] << GIB) + physical % (1 << GIB))

    def call(self, address: int, *arguments: int) -> None:
        """Call a C function of up to four integers or pointers."""
        state = self.package.State()
        self.package.cpu.set_long_mode(state)
        state.cr3, state.cr4, state.xcr0 = self._physical(self.tables), state.cr4 | SIMD, VECTORS
        state.mxcsr, state.mxcsr_mask, state.fpcw, state.rflags = MXCSR, 0xFFFF, FPCW, 2
        for name in ("cs", "ss", "ds", "es", "fs", "gs"):
            segment = self.package.Segment()
            segment.selector, segment.attr = CODE if name == "cs" else DATA
            segment.present, segment.limit = True, 0xFFFFFFFF
            segment.base = self.thread if name == "fs" else 0
            setattr(state, name, segment)
        top = self.stack + STACK - PAGE - 8  # as a call leaves it
        ctypes.c_uint64.from_address(top).value = self.end
        state.rsp, state.rip = top, address
        state.rdi, state.rsi, state.rdx, state.rcx = arguments
        self.session.cpu.state = state
        self.faults.clear()
        self.session.run([self.hook])
        stopped = self.session.cpu.state.rip
        assert not self.faults and stopped - self.end in (0, 1), f"stopped at {stopped:#x}, exceptions {self.faults}"
