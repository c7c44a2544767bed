"""Operators that move elements, as index arithmetic: which element of which input is the output's element at an index.

A rule `(c, params, index) -> Value`, named in ops.yaml under `index:`. c: `load(k, index, when, fill)` the element of
input k (guarded: `fill` where `when` does not hold), `shape(k)`, `dtype(k)`, `out_shape`, `out_dtype`, `output` (which
output is asked for), `count` (number of inputs), `seed(0)` and `seed(1)` (the run's seed and offset). index: one index
value for each axis of the output.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.ir import Value
from mxc.compiler.kernel.simplify_index import index as number
from mxc.compiler.ops.expr import number_as
from mxc.compiler.ops.shapes.arrange import slice_bounds
from mxc.compiler.ops.table import Params

Index = tuple[Value, ...]


class Context(Protocol):
    """What a rule sees of its node."""

    output: int
    out_shape: tuple[int, ...]
    out_dtype: str

    @property
    def count(self) -> int: ...

    def shape(self, k: int) -> tuple[int, ...]: ...

    def dtype(self, k: int) -> str: ...

    def seed(self, position: int) -> Value: ...

    def load(self, k: int, index: Sequence[Value], when: Value | None = None, fill: Value | None = None) -> Value: ...


def flatten(index: Sequence[Value], shape: Sequence[int]) -> Value:
    """The row-major position of `index` in an array of `shape`."""
    position = number(0)
    for i, extent in zip(index, shape, strict=True):
        position = ir.apply("add", ir.apply("mul", position, number(extent)), i)
    return position


def unflatten(position: Value, shape: Sequence[int]) -> Index:
    """The index of a row-major position; the first axis needs no modulus."""
    result: list[Value] = []
    for place, extent in reversed(list(enumerate(shape))):
        result.append(ir.apply("mod", position, number(extent)) if place else position)
        position = ir.apply("div", position, number(extent)) if place else position
    return tuple(reversed(result))


def _replaced(index: Index, axis: int, value: Value) -> Index:
    return (*index[:axis], value, *index[axis + 1:])


def reshape(c: Context, params: Params, index: Index) -> Value:
    """Same elements in row-major order: Reshape, Flatten, expand_dims and the like."""
    return c.load(0, unflatten(flatten(index, c.out_shape), c.shape(0)))


def transpose(c: Context, params: Params, index: Index) -> Value:
    """Axis i of the output is axis axes[i] of the data; without `axes` all are reversed."""
    rank = len(index)
    axes = params.axes or tuple(reversed(range(rank)))
    return c.load(0, [index[list(axes).index(i)] for i in range(rank)])


def slice_axis(c: Context, params: Params, index: Index) -> Value:
    """Elements from `begin` on; negative ones count from the end."""
    axis = params.axis % len(index)
    begin, _ = slice_bounds(params, c.shape(0)[axis])
    return c.load(0, _replaced(index, axis, ir.apply("add", index[axis], number(begin))))


def concat(c: Context, params: Params, index: Index) -> Value:
    """Inputs one after the other along `dim`: each guarded by its stretch."""
    axis = params.dim % len(index)
    here, start = index[axis], 0
    result = ir.const(0, c.out_dtype)
    for k in range(c.count):
        stop = start + c.shape(k)[axis]
        inside = ir.apply("and", ir.apply("ge", here, number(start)), ir.apply("lt", here, number(stop)))
        moved = ir.apply("sub", here, number(start))
        result = c.load(k, _replaced(index, axis, moved), inside, result)
        start = stop
    return result


def slice_channel(c: Context, params: Params, index: Index) -> Value:
    """Equal parts along `axis`; with `squeeze_axis` parts of size 1 without that axis."""
    shape = c.shape(0)
    axis = params.axis % len(shape)
    first = number(c.output * (shape[axis] // params.num_outputs))
    if params.squeeze_axis:
        return c.load(0, (*index[:axis], first, *index[axis:]))
    return c.load(0, _replaced(index, axis, ir.apply("add", index[axis], first)))


def pack_rows(c: Context, params: Params, index: Index) -> Value:
    """(G, R, K) -> (G, ceil(R / block), K, block): rows in blocks, the last block filled up with zeros."""
    group, block, depth, row = index
    source = ir.apply("add", ir.apply("mul", block, number(params.block)), row)
    inside = ir.apply("lt", source, number(c.shape(0)[1]))
    return c.load(0, (group, source, depth), inside, ir.const(0, c.out_dtype))


def arange(c: Context, params: Params, index: Index) -> Value:
    """start + step * (i // repeat), start and step cast to the dtype first."""
    start = 0.0 if params.stop is None else params.start
    first, each = (ir.const(number_as(n, c.out_dtype), c.out_dtype) for n in (start, params.step))
    place = ir.cast(ir.apply("div", index[0], number(params.repeat)), c.out_dtype)
    return ir.apply("add", first, ir.apply("mul", each, place))


def rand(c: Context, params: Params, index: Index) -> Value:
    """Uniform float32 in [0, 1): the upper 24 bits of the generator's word at the element's row-major position."""
    stream = ir.apply("add", c.seed(1), ir.const(params.offset, "int64"))
    word = ir.make("rand", (c.seed(0), stream, ir.cast(flatten(index, c.out_shape), "int64")), "uint32")
    upper = ir.cast(ir.apply("shr", word, ir.const(8, "uint32")), "int32")
    return ir.apply("mul", ir.cast(upper, "float32"), ir.const(2.0**-24, "float32"))
