"""Runs kernels of aarch64 on other machines: a program (aarch64.c) that qemu emulates and that loads and calls them.

Needs Debian's qemu-user, gcc-aarch64-linux-gnu and libc6-dev-arm64-cross.
"""
from __future__ import annotations

import functools
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

PROGRAMS = {"qemu-aarch64": "qemu-user", "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu",
            "aarch64-linux-gnu-ld": "binutils-aarch64-linux-gnu"}
ROOT = Path("/usr/aarch64-linux-gnu")  # of the C library there


class Qemu:
    """See instruction_sets.Processor."""

    def missing(self) -> str:
        lacking = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
        lacking += [] if (ROOT / "include" / "stdio.h").exists() else ["libc6-dev-arm64-cross"]
        return f"Debian's {', '.join(lacking)} would run it" if lacking else ""

    def load(self, symbol: str, code: bytes) -> int:
        path = self._folder / f"{symbol}.so"
        path.with_suffix(".o").write_bytes(code)
        subprocess.run(["aarch64-linux-gnu-ld", "-shared", "-o", path, path.with_suffix(".o")], check=True)
        self._ask(b"L" + _text(str(path)) + _text(symbol))
        address, = struct.unpack("<q", self._answer(8))
        assert address, f"{symbol} was not loaded"
        return address

    def run(self, address: int, arrays: Sequence[np.ndarray], values: Sequence[int], scratch: np.ndarray,
            portions: Sequence[tuple[int, int]]) -> None:
        own: dict[int, np.ndarray] = {}  # an array may be given in several places
        for a in arrays:
            assert a.flags.c_contiguous
            own[a.ctypes.data] = a
        places = {start: i for i, start in enumerate(own)}
        parts = [b"R", _numbers(address, len(own))]
        for start, a in own.items():
            parts += [_numbers(a.nbytes, start % 64), a.tobytes()]
        parts += [_numbers(scratch.nbytes, len(arrays), *(places[a.ctypes.data] for a in arrays), len(values), *values,
                           len(portions), *(bound for portion in portions for bound in portion))]
        self._ask(b"".join(parts))
        for a in (*own.values(), scratch):
            a.reshape(-1)[...] = np.frombuffer(self._answer(a.nbytes), a.dtype)
        assert struct.unpack("<q", self._answer(8)) == (1,), "the kernel wrote beside its arrays"

    @functools.cached_property
    def _folder(self) -> Path:
        self._kept = tempfile.TemporaryDirectory()
        return Path(self._kept.name)

    @functools.cached_property
    def _process(self) -> subprocess.Popen[bytes]:
        program, source = self._folder / "kernels", Path(__file__).with_suffix(".c")
        subprocess.run(["aarch64-linux-gnu-gcc", "-O1", "-Wall", "-rdynamic", "-o", program, source,
                        "-Wl,--no-as-needed", "-lm", "-ldl"], check=True)
        return subprocess.Popen(["qemu-aarch64", "-L", ROOT, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def _ask(self, request: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(request)
        self._process.stdin.flush()

    def _answer(self, size: int) -> bytes:
        assert self._process.stdout is not None
        found = self._process.stdout.read(size)
        assert len(found) == size, f"the emulated program ended with {self._process.wait()}"
        return found


def _numbers(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}q", *numbers)


def _text(text: str) -> bytes:
    return _numbers(len(text.encode())) + text.encode()
