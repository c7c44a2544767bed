"""Rows of an image, brought to where a kernel reads them: with zeros for what lies outside, and without what a stride
leaves out."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mxc.compiler.targets.cpu.emit.builder import TYPES, Array, Builder, Number, Value, vector_type
from mxc.compiler.targets.cpu.library.blocks import prefetch
from mxc.compiler.targets.cpu.library.convolution import every_other, half_up
from mxc.compiler.targets.cpu.library.cutting import ceil_div


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
