"""Index rules of operators that read at indices held by another input: a load whose index is computed from a load.

No index leaves its array, whatever the input holds: it is clipped, wrapped or guarded. A float index is truncated; NaN
and what no integer holds become the lowest integer.
"""
from __future__ import annotations

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.index_rules.context import Context, Index, replaced
from mxc.compiler.kernel.ir import INDEX, Value
from mxc.compiler.kernel.simplify_index import index as number
from mxc.compiler.ops.expr import number_as
from mxc.compiler.ops.table import Params


def bounded(value: Value, size: int, mode: str) -> Value:
    """An integer brought into 0..size-1: wrapped in mode "wrap", else clipped."""
    if mode == "wrap":  # of dtype index the modulus takes no negative numbers
        return ir.cast(ir.apply("mod", ir.cast(value, "int64"), ir.cast(number(size), "int64")), INDEX)
    place = ir.cast(ir.cast(value, "int64"), INDEX)
    return ir.apply("min", ir.apply("max", place, number(0)), number(size - 1))


def take(c: Context, params: Params, index: Index) -> Value:
    """The indices' axes stand in the place of the data's `axis`."""
    shape, rank = c.shape(0), len(c.shape(1))
    axis = params.axis % len(shape)
    row = bounded(c.load(1, index[axis:axis + rank]), shape[axis], params.mode)
    return c.load(0, (*index[:axis], row, *index[axis + rank:]))


def bound_index(c: Context, params: Params, index: Index) -> Value:
    """Indices as integers in 0..size-1."""
    return ir.cast(bounded(c.load(0, index), params.size, params.mode), "int64")


def flat_index(c: Context, params: Params, index: Index) -> Value:
    """The row-major position of the index that the first axis holds; -1 where it is outside of `shape`."""
    position, inside = number(0), ir.const(True, "bool")
    for k, extent in enumerate(params.shape):
        place = ir.cast(ir.cast(c.load(0, (number(k), *index)), "int64"), INDEX)
        here = ir.apply("and", ir.apply("ge", place, number(0)), ir.apply("lt", place, number(extent)))
        inside = ir.apply("and", inside, here)
        position = ir.apply("add", ir.apply("mul", position, number(extent)), place)
    return ir.apply("where", inside, ir.cast(position, "int64"), ir.const(-1, "int64"))


def _picked(c: Context, index: Index, axis: int, params: Params, size: int) -> Value:
    """Which element along the data's `axis` pick reads where the other axes are at `index` (`axis` left out)."""
    place = (*index[:axis], number(0), *index[axis:]) if len(c.shape(1)) > len(index) else index
    return bounded(ir.cast(c.load(1, place), "int32"), size, params.mode)


def pick(c: Context, params: Params, index: Index) -> Value:
    """One element of each line along `axis`; a 32-bit integer tells which."""
    shape = c.shape(0)
    axis = params.axis % len(shape)
    others = (*index[:axis], *index[axis + 1:]) if len(c.out_shape) == len(shape) else index
    row = _picked(c, others, axis, params, shape[axis])
    return c.load(0, (*others[:axis], row, *others[axis:]))


def unpick(c: Context, params: Params, index: Index) -> Value:
    """pick's gradient: what flows in stands where pick had read, zeros beside it."""
    axis, others = params.axis, (*index[:params.axis], *index[params.axis + 1:])
    here = ir.apply("eq", index[axis], _picked(c, others, axis, params, params.size))
    return c.load(0, replaced(index, axis, number(0)) if params.kept else others, here, ir.const(0, c.out_dtype))


def one_hot(c: Context, params: Params, index: Index) -> Value:
    """`on_value` where the last axis is at the index, a 32-bit integer, else `off_value`."""
    wanted = ir.cast(ir.cast(c.load(0, index[:-1]), "int32"), INDEX)
    on, off = (ir.const(number_as(n, c.out_dtype), c.out_dtype) for n in (params.on_value, params.off_value))
    return ir.apply("where", ir.apply("eq", index[-1], wanted), on, off)


def ravel(c: Context, params: Params, index: Index) -> Value:
    """The row-major position of the index that a column holds, as 64-bit integers; nothing is checked."""
    position = ir.const(0, "int64")
    for k, extent in enumerate(params.shape):
        size = ir.cast(number(extent), "int64")
        position = ir.apply("add", ir.apply("mul", position, size), ir.cast(c.load(0, (number(k), *index)), "int64"))
    return ir.cast(position, c.out_dtype)


def unravel(c: Context, params: Params, index: Index) -> Value:
    """The index of a row-major position; the first axis takes what is left, quotients truncate as in C."""
    position, result = ir.cast(c.load(0, index[1:]), "int64"), ir.const(0, "int64")
    for k, extent in reversed(list(enumerate(params.shape))):
        part = position
        if k:
            size = ir.cast(number(extent), "int64")
            position = ir.apply("div", part, size)
            part = ir.apply("sub", part, ir.apply("mul", position, size))
        result = ir.apply("where", ir.apply("eq", index[0], number(k)), part, result)
    return ir.cast(result, c.out_dtype)
