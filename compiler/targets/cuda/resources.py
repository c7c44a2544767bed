"""What a kernel's machine code takes of a GPU: registers, shared memory, the stack; and how many threads that leaves.

The assembler writes it into the code, an ELF object, for the driver to read: numbers by function in `.nv.info`, shared
memory as the size of `.nv.shared.NAME`.
"""
from __future__ import annotations

import struct
from dataclasses import dataclass

from mxc.compiler.error import MXNetError

REGISTERS, FRAME = 0x2F, 0x11  # attributes of a function: registers of a thread, bytes of its stack
WITH_SIZE = 0x04  # the format of an attribute that is followed by its size and a value
WARP = 32


@dataclass(frozen=True)
class Limits:
    """Of a multiprocessor. threads, blocks: at a time. registers: of 32 bits; a warp gets a multiple of `unit`. shared:
    bytes of shared memory for blocks, of which each takes `reserved` more than it asks for."""

    threads: int
    blocks: int
    registers: int
    shared: int
    unit: int = 256
    reserved: int = 1024


# From the tables of NVIDIA's programming guide, by compute capability.
LIMITS = {75: Limits(1024, 16, 65536, 65536, reserved=0), 80: Limits(2048, 32, 65536, 167936),
          86: Limits(1536, 16, 65536, 102400), 87: Limits(1536, 16, 65536, 167936), 89: Limits(1536, 24, 65536, 102400),
          90: Limits(2048, 32, 65536, 233472), 100: Limits(2048, 32, 65536, 233472),
          103: Limits(2048, 32, 65536, 233472), 120: Limits(1536, 24, 65536, 102400)}


@dataclass(frozen=True)
class Resources:
    """registers: of a thread. stack: bytes of a thread's stack: numbers that do not fit the registers, and arrays of
    its own. shared: bytes of a block."""

    registers: int
    stack: int
    shared: int

    def occupancy(self, threads: int, arch: str) -> tuple[float, str]:
        """The share of a multiprocessor's threads that run at a time in blocks of so many threads, and what limits it:
        "threads", "blocks", "registers" or "shared memory"."""
        limits = LIMITS[int(arch[3:])]
        warps = -(-threads // WARP)
        each = -(-max(self.registers, 1) * WARP // limits.unit) * limits.unit
        fits = {"threads": limits.threads // (warps * WARP), "blocks": limits.blocks,
                "registers": limits.registers // each // warps,
                "shared memory": limits.shared // max(1, self.shared + limits.reserved)}
        least = min(fits, key=lambda name: fits[name])
        return fits[least] * warps * WARP / limits.threads, least


def resources(cubin: bytes) -> Resources:
    """What the only kernel of machine code takes. Raises MXNetError for what is no such code."""
    try:
        return _read(cubin)
    except (struct.error, IndexError, ValueError, KeyError) as error:
        raise MXNetError(f"machine code of a GPU cannot be read: {type(error).__name__}: {error}") from None


def _read(cubin: bytes) -> Resources:
    if cubin[:4] != b"\x7fELF":
        raise ValueError("it is no ELF object")
    at, = struct.unpack_from("<Q", cubin, 0x28)
    count, names_at = struct.unpack_from("<HH", cubin, 0x3C)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, at + 64 * i) for i in range(count)]
    texts = headers[names_at][4]
    sections = {_text(cubin, texts + header[0]): header for header in headers}
    symbols, (_, _, _, _, start, size, *_) = sections[".symtab"], sections[".nv.info"]
    entry = next(name.removeprefix(".nv.info.") for name in sections if name.startswith(".nv.info.")
                 and not name.startswith(".nv.info.__"))
    found: dict[tuple[int, str], int] = {}
    strings = headers[symbols[6]][4]
    end = start + size
    while start < end:
        form, kind, length = struct.unpack_from("<BBH", cubin, start)
        start += 4
        if form != WITH_SIZE:
            continue
        if length >= 8:
            symbol, number = struct.unpack_from("<II", cubin, start)
            name_at, = struct.unpack_from("<I", cubin, symbols[4] + 24 * symbol)
            found[kind, _text(cubin, strings + name_at)] = number
        start += length
    shared = sections.get(f".nv.shared.{entry}")
    return Resources(found[REGISTERS, entry], found.get((FRAME, entry), 0), shared[5] if shared else 0)


def _text(data: bytes, at: int) -> str:
    return data[at:data.index(b"\0", at)].decode()
