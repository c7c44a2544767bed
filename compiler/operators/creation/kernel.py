"""Index rules of operators that make arrays from numbers and shapes."""
from __future__ import annotations

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.index_rule import Index, IndexNode, flatten
from mxc.compiler.kernel.ir import Value
from mxc.compiler.kernel.simplify_index import index as number
from mxc.compiler.operators.creation.shape import index_axes
from mxc.compiler.ops.expr import number_as
from mxc.compiler.ops.operator import Params


def _progression(params: Params, first: float, position: Value, dtype: str) -> Value:
    """first + step * (position // repeat), first and step cast to the dtype first."""
    start, step = (ir.const(number_as(n, dtype), dtype) for n in (first, params.step))
    place = ir.cast(ir.apply("div", position, number(params.repeat)), dtype)
    return ir.apply("add", start, ir.apply("mul", step, place))


def arange(c: IndexNode, params: Params, index: Index) -> Value:
    """start + step * (i // repeat); where only one number is given, it is the stop, and start is 0."""
    return _progression(params, 0.0 if params.stop is None else params.start, index[0], c.out_dtype)


def arange_like(c: IndexNode, params: Params, index: Index) -> Value:
    """start + step * (row-major position // repeat)."""
    return _progression(params, params.start, flatten(index, c.out_shape), c.out_dtype)


def index_array(c: IndexNode, params: Params, index: Index) -> Value:
    """The index of the element along one axis of the data; the place along the last axis chooses which axis."""
    axes = index_axes(params, len(index) - 1)
    value = index[axes[0]]
    for position, axis in enumerate(axes[1:], 1):
        value = ir.apply("where", ir.apply("eq", index[-1], number(position)), index[axis], value)
    return ir.cast(value, c.out_dtype)
