"""Kernels' object code linked into one image, which a process maps without LLVM.

LLVM's objects for Linux on x86-64 are ELF relocatable files (System V ABI, AMD64 supplement) that refer to their own
code and constants, and to functions of the C library, by distances from the place of use. So all of their sections laid
one behind the other, with the distances filled in, run at any address; only the C library's functions are found when
the image is loaded. Each of them has a slot for its address and a jump through the slot, as in a procedure linkage
table.
"""
from __future__ import annotations

import ctypes
import functools
import mmap
import os
import platform
import struct
import sys
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mxc.compiler.error import TargetError

HEADER, SECTION, SYMBOL, RELOCATION = (struct.Struct(f"<{form}") for form in (
    "16sHHIQQQIHHHHHH", "IIQQQQIIQQ", "IBBHQQ", "QQq"))
DISTANCE = struct.Struct("<i")
CODE, SYMBOLS, RELOCATIONS, UNWINDING = 1, 2, 4, 0x70000001  # types of sections; the last: tables for exceptions
WRITABLE, IN_MEMORY = 1, 2  # flags of sections
GLOBAL = 16  # binding and type of a symbol that others may refer to: its binding is in the upper four bits
TO_DATA, TO_FUNCTION = 2, 4  # R_X86_64_PC32, R_X86_64_PLT32: the 32-bit distance from here
JUMP = b"\xff\x25"  # jmp [rip + distance]; 8 bytes with the distance and padding
LINE = 64  # bytes of a cache line, at which sections begin
C_LIBRARIES = (None, "libm.so.6")  # None: what the process has loaded


class LinkError(ValueError):
    """An object that is not of the simple form that this file links."""


class Image(NamedTuple):
    """code: the bytes that are mapped. symbols: the offsets of functions, by name. imports: the offsets of the slots
    for C functions' addresses, by name."""

    code: bytes
    symbols: dict[str, int]
    imports: dict[str, int]


def is_native() -> bool:
    """Whether this process can link and map images."""
    return sys.platform == "linux" and platform.machine() == "x86_64"


class _Object:
    """One relocatable file: its sections as (name, type, flags, offset, size, link, info, alignment)."""

    def __init__(self, data: bytes):
        self.data = data
        head = HEADER.unpack_from(data)
        if head[0][:6] != b"\x7fELF\x02\x01" or head[1:3] != (1, 62):
            raise LinkError("it is no x86-64 ELF object")
        place, size, count = head[6], head[11], head[12]
        self.sections = [SECTION.unpack_from(data, place + i * size) for i in range(count)]

    def content(self, section: int) -> bytes:
        offset, size = self.sections[section][4:6]
        return self.data[offset:offset + size]

    def symbols(self, table: int) -> tuple[bytes, list[tuple[int, ...]]]:
        """The names, each with a zero behind it, and for each symbol (place of its name, binding and type, -, section
        or 0 for one that is elsewhere, offset in the section, -)."""
        return self.content(self.sections[table][6]), list(SYMBOL.iter_unpack(self.content(table)))


def _name(names: bytes, place: int) -> str:
    return names[place:names.index(b"\0", place)].decode()


def link(objects: Iterable[bytes], wanted: Iterable[str]) -> Image:
    """The image of `objects` with the offsets of the functions `wanted`, which they define.

    Raises LinkError for objects that need more than distances, or functions that the C library lacks.
    """
    code = bytearray()
    exported: dict[str, int] = {}
    fixes: list[tuple[int, int]] = []  # (place of a distance, offset that it leads to)
    calls: list[tuple[int, str, int]] = []  # (place, function that it leads to, what is added)
    for data in objects:
        _add(_Object(data), code, exported, fixes, calls)
    imports: dict[str, int] = {}
    jumps: dict[str, int] = {}
    for name in sorted({name for _, name, _ in calls} - exported.keys()):
        c_function(name)
        code += bytes(-len(code) % 8)
        imports[name], jumps[name] = len(code), len(code) + 8
        code += bytes(8) + JUMP + struct.pack("<i", -14) + bytes(2)
    fixes += [(place, (exported[name] if name in exported else jumps[name]) + addend) for place, name, addend in calls]
    for place, to in fixes:
        DISTANCE.pack_into(code, place, to - place)
    missing = [name for name in wanted if name not in exported]
    if missing:
        raise LinkError(f"no object defines {', '.join(missing)}")
    return Image(bytes(code), {name: exported[name] for name in wanted}, imports)


def _add(source: _Object, code: bytearray, exported: dict[str, int], fixes: list[tuple[int, int]],
         calls: list[tuple[int, str, int]]) -> None:
    """Append the sections of an object to `code`; note its functions, and the distances to fill in."""
    places: dict[int, int] = {}
    for i, (_, kind, flags, _, _, size, _, _, alignment, _) in enumerate(source.sections):
        if not flags & IN_MEMORY or not size or kind == UNWINDING:
            continue
        if flags & WRITABLE or kind != CODE:
            raise LinkError("it has more than code and constants")
        code += bytes(-len(code) % max(alignment, LINE))
        places[i] = len(code)
        code += source.content(i)
    tables = {}
    for table, section in enumerate(source.sections):
        if section[1] == SYMBOLS:
            names, symbols = tables[table] = source.symbols(table)
            exported.update({_name(names, name): places[where] + value for name, info, _, where, value, _ in symbols
                             if info >= GLOBAL and where in places})
    for i, section in enumerate(source.sections):
        if section[1] != RELOCATIONS or section[7] not in places:
            continue
        names, symbols = tables[section[6]]
        start = places[section[7]]
        for offset, info, addend in RELOCATION.iter_unpack(source.content(i)):
            name, _, _, where, value, _ = symbols[info >> 32]
            if info & 0xffffffff not in (TO_DATA, TO_FUNCTION) or (where and where not in places):
                raise LinkError(f"it refers to {_name(names, name) or 'something'} by a relocation of type "
                                f"{info & 0xffffffff}")
            if where:
                fixes.append((start + offset, places[where] + value + addend))
            else:
                calls.append((start + offset, _name(names, name), addend))


@functools.cache
def c_function(name: str) -> int:
    """The address of a function of the C library. Raises LinkError when it has none of that name."""
    for library in C_LIBRARIES:
        try:
            return ctypes.cast(getattr(ctypes.CDLL(library), name), ctypes.c_void_p).value or 0
        except (AttributeError, OSError):
            continue
    raise LinkError(f"the C library has no function {name}")


@functools.cache
def _system() -> ctypes.CDLL:
    """The C library, for mapping memory."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    return library


def load(code: bytes | memoryview, imports: Mapping[str, int]) -> int:
    """Map an image into this process, for as long as that lives, and give its address. Raises TargetError when the C
    library lacks a function, or the system does not let memory become executable."""
    filled = bytearray(code)
    try:
        for name, offset in imports.items():
            struct.pack_into("<Q", filled, offset, c_function(name))
    except LinkError as error:
        raise TargetError(f"compiled code cannot be loaded: {error}") from None
    library = _system()
    nothing, length = ctypes.c_void_p(None), ctypes.c_size_t(len(filled))
    address = library.mmap(nothing, length, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
                           -1, ctypes.c_long(0))
    if address in (None, 2**64 - 1):
        raise TargetError(f"compiled code cannot be loaded: {os.strerror(ctypes.get_errno())}")
    ctypes.memmove(address, bytes(filled), len(filled))
    if library.mprotect(ctypes.c_void_p(address), length, mmap.PROT_READ | mmap.PROT_EXEC):
        raise TargetError("compiled code cannot be loaded: the system does not let memory become executable "
                          f"({os.strerror(ctypes.get_errno())})")
    return int(address)
