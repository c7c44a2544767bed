"""Rows of an image, brought to where a kernel reads them: with zeros for what lies outside, and without what a stride
leaves out."""
from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

from mxc.compiler.targets.cpu.emit.builder import TYPES, Array, Builder, Number, Value, vector_type
from mxc.compiler.targets.cpu.library.blocks import prefetch
from mxc.compiler.targets.cpu.library.convolution import every_other, half_up
from mxc.compiler.targets.cpu.library.cutting import ceil_div

Span = tuple[Value, Value, Value]  # of places 0 <= x < count: begin and end of those that are there, and count


def reached(b: Builder, left: Value, stride: Number, data: Value, width: Value) -> tuple[Value, Value]:
    """The part begin <= x < end of 0 <= x < width where left + x * stride lies in a row of `data` elements."""
    begin = b.minimum(b.maximum(0, ceil_div(0 - left, stride)), width)
    return begin, b.minimum(b.maximum(begin, (data - left + stride - 1) // stride), width)


def within_border(inside: Value, left: Value, width: Value, pitch: Value) -> tuple[Value, Value]:
    """The part begin <= x < end of a copy's row of `pitch` pixels that an image's row of `width` pixels fills, behind a
    border of `left` pixels: nothing unless `inside`."""
    b = inside.builder
    begin = b.select(inside, b.minimum(left, pitch), pitch)
    return begin, b.select(inside, b.minimum(left + width, pitch), pitch)


def fill_line(lanes: int, line: Array, columns: Span, read: Callable[[Value, Value | None], Value], around: Value,
              ) -> None:
    """line[x] = what `read` gives from x on, by vectors, where that is there, else `around`. read: is given x, and a
    mask of the elements that are there, or None for all.

    What a vector writes too much is overwritten later: lines that follow each other must be filled in their order.
    """
    b, (begin, end, pitch) = line.builder, columns
    for x in b.range(0, begin, lanes):
        line.put(x, around)
    whole = end - (end - begin) % lanes
    for x in b.range(begin, whole, lanes):
        line.put(x, read(x, None))
    for x in b.range(whole, end, lanes):
        line.put(x, read(x, b.first_lanes(end - x, lanes)))
    for x in b.range(end, pitch, lanes):
        line.put(x, around)


@dataclass(frozen=True)
class Row:
    """A row of an image that is brought: array[x * stride] for begin <= x < end, the part that is there.

    stride: 1 or 2. readable: how many elements of the array exist. ahead: how many elements behind those that are read
    memory is asked for, or None.
    """

    array: Array
    part: tuple[Value, Value]
    stride: int
    readable: Value
    ahead: Value | None = None


def bring(lanes: int, line: Array, row: Row, width: Value, convert: Callable[[Value, str], Value]) -> None:
    """line[x] = what the row has for x, 0 outside of its part, for 0 <= x < width.

    It may write up to a vector behind the line, so lines that follow each other must be brought in their order.
    """
    b, source, stride = line.builder, row.array, row.stride
    (begin, end), zero = row.part, b.zero(vector_type(TYPES[line.dtype], lanes))
    for x in b.range(0, begin, lanes):
        line.put(x, zero)
    reach = end if stride == 1 else b.minimum(end, half_up(row.readable - 2 * lanes + 1) + lanes - 1)
    whole = begin + b.maximum(0, reach - begin) // lanes * lanes
    for x in b.range(begin, whole, lanes):
        here = source.at(x * stride)
        if row.ahead is not None:
            prefetch(here.at(row.ahead))
        if stride == 1:
            found = here.vector(0, lanes)
        else:
            found = b.shuffle(here.vector(0, lanes), here.vector(lanes, lanes), range(0, 2 * lanes, 2))
        line.put(x, convert(found, source.dtype))
    for x in b.range(whole, end, lanes):
        if stride == 1:
            found = source.vector(x, lanes, b.first_lanes(end - x, lanes))
        else:
            masks = [b.first_lanes((end - x) * 2 - 1 - k * lanes, lanes) for k in (0, 1)]
            found = every_other(source.at(x * 2), masks, lanes)
        line.put(x, convert(found, source.dtype))
    for x in b.range(end, width, lanes):
        line.put(x, zero)


def bring_rows(
    lanes: int, target: Array, source: Array, rows: Span, columns: Span, steps: tuple[Value, Number],
    convert: Callable[[Value, str], Value], ahead: Value,
) -> None:
    """target[r * pitch + x] = source[r * steps[0] + x * steps[1]] where both are there, else 0, for all rows r and
    columns x; the pitch is the count of columns.

    steps[1]: a number of Python's, 1 or 2, or any of the program's. ahead: how many elements behind those that are read
    memory is asked for: hardware does not foresee where the next piece of an array begins. Vectors at the end of rows
    are written first: what they write too much, the next row's first vector overwrites. Behind the last row there is
    room for a vector.
    """
    b, (high, low, count), (begin, end, pitch), (step, along) = target.builder, rows, columns, steps
    zero, every = b.zero(vector_type(TYPES[target.dtype], lanes)), along if isinstance(along, int) else 1

    def read(row: Array, x: Value, masks: list[Value] | None) -> Value:
        for k in range(every):
            prefetch(row.at(x * along + k * lanes + ahead))
        if every == 2 and masks is not None:
            found = every_other(row.at(x * 2), masks, lanes)
        elif isinstance(along, int):
            found = row.vector(x, lanes, None if masks is None else masks[0])
        else:
            assert masks is not None
            places = b.iota(vector_type("i64", lanes)) * b.splat(along, lanes)
            found = row.at(x * along).gather(places, masks[0])
        return convert(found, source.dtype)

    together = begin.equals(0) & end.equals(pitch) & step.equals(pitch) & high.equals(0) & low.equals(count)
    if along == 1:  # rows that follow each other without a border are one
        with b.when(together):
            size = pitch * count
            whole = size - size % lanes
            for x in b.range(0, whole, lanes):
                target.put(x, read(source, x, None))
            with b.when(whole < size):
                target.put(whole, read(source, whole, [b.first_lanes(size - whole, lanes)]))
    with b.when_not(together) if along == 1 else nullcontext():
        vectors = ceil_div(pitch, lanes)
        for n in b.range(0, vectors):
            x = (vectors - 1 - n) * lanes
            masks = [between(b, (begin - x) * every - k * lanes, (end - x) * every - (every - 1) - k * lanes, lanes)
                     for k in range(every)]
            for first, last, exist in ((b.lift(0), high, False), (high, low, True), (low, count, False)):
                for r in b.range(first, last):
                    target.put(r * pitch + x, read(source.at(r * step), x, masks) if exist else zero)


def between(b: Builder, first: Value, last: Value, lanes: int) -> Value:
    """The mask of the lanes first <= l < last, where first <= last."""
    return b.first_lanes(last, lanes).differs(b.first_lanes(first, lanes))
