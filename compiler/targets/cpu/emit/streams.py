"""The words of loop kernels for outputs that are larger than the caches.

A store to a line that is in no cache reads the line first. A non-temporal store does not, but it takes whole lines. So
a piece of an output is computed in scratch memory, which stays in the nearest cache, and copied from there.
"""
from __future__ import annotations

from mxc.compiler.targets.cpu.emit.builder import BYTES, I64, Array, Value, vector_type
from mxc.compiler.targets.cpu.emit.typed import Buffer, Steps, Typed
from mxc.compiler.targets.cpu.library.blocks import LINE, prefetch

VECTOR = vector_type("i32", 8)


def elsewhere(s: Steps, buffer: Buffer, scratch: Buffer, place: Typed) -> Buffer:
    """A buffer that stands for `buffer` from index `place` on, but lies at the beginning of `scratch`."""
    address = s.b.convert("ptrtoint", scratch.pointer, I64) - s.whole(place) * BYTES[buffer.dtype]
    return Buffer(s.b.pointer(address), buffer.dtype, buffer.position)


def streamed(s: Steps, buffer: Buffer, place: Typed, scratch: Buffer, count: Typed) -> None:
    """buffer[place : place + count] = scratch[:count], past the caches, except for parts of lines at both ends."""
    b, size = s.b, s.whole(count) * BYTES[buffer.dtype]
    to, source = s.address(buffer, s.whole(place)), scratch.pointer
    before = b.binary("and", b.lift(0) - b.convert("ptrtoint", to, I64), b.number(LINE - 1))
    head = b.minimum(before, size)
    end = head + (size - head) // LINE * LINE
    _copy(s, to, source, b.number(0), head)
    for line in b.range(head, end, LINE):
        for half in (0, LINE // 2):
            value = b.emit(VECTOR, f"load {VECTOR}, ptr {_at(s, source, line + half).text}, align 1")
            place_text = f"ptr {_at(s, to, line + half).text}, align {LINE // 2}{s.nontemporal()}"
            b.raw(f"store {VECTOR} {value.text}, {place_text}")
    _copy(s, to, source, end, size - end)


def _at(s: Steps, base: Value, offset: Value) -> Value:
    return s.b.emit("ptr", f"getelementptr i8, ptr {base.text}, i64 {offset.text}")


def _copy(s: Steps, to: Value, source: Value, start: Value, size: Value) -> None:
    s.b.intrinsic("llvm.memcpy", "void", [_at(s, to, start), _at(s, source, start), size, s.b.number(0, "i1")],
                  ["ptr", "ptr", I64])


def fetch(s: Steps, buffer: Buffer, place: Typed, count: Typed) -> None:
    """Asks for buffer[place : place + count], which need not exist, in the nearest cache."""
    _ask(s, buffer, place, count, False)


def claim(s: Steps, buffer: Buffer, place: Typed, count: Typed) -> None:
    """As `fetch`, for what is written next. A store to a line that another cache may have waits for its answer."""
    _ask(s, buffer, place, count, True)


def _ask(s: Steps, buffer: Buffer, place: Typed, count: Typed, written: bool) -> None:
    here = Array(s.b, buffer.pointer, buffer.dtype).at(s.whole(place))  # not `address`: it may be outside
    for x in s.b.range(0, s.whole(count), LINE // BYTES[buffer.dtype]):
        prefetch(here.at(x), written=written)


def fence(s: Steps) -> None:
    """Orders what was streamed before everything that follows."""
    s.b.raw("fence seq_cst")
