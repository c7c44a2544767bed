"""Index rules of operators on batches of sequences.

`lengths` (batch,) counts the valid steps of each sequence, as 32-bit integers. Time and batch are the first two axes of
the data; `axis` is the time's.
"""
from __future__ import annotations

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.index_rule import Index, IndexNode, replaced
from mxc.compiler.kernel.ir import INDEX, Value
from mxc.compiler.kernel.simplify_index import index as number
from mxc.compiler.ops.expr import number_as
from mxc.compiler.ops.operator import Params


def _length(c: IndexNode, params: Params, index: Index) -> Value:
    return ir.cast(ir.cast(c.load(1, (index[1 - params.axis],)), "int32"), INDEX)


def sequence_mask(c: IndexNode, params: Params, index: Index) -> Value:
    """The data up to a sequence's length, `value` behind it."""
    if not params.use_sequence_length:
        return c.load(0, index)
    inside = ir.apply("lt", index[params.axis], _length(c, params, index))
    return c.load(0, index, inside, ir.const(number_as(params.value, c.out_dtype), c.out_dtype))


def sequence_reverse(c: IndexNode, params: Params, index: Index) -> Value:
    """Steps up to a sequence's length backwards, those behind it as they are; a length beyond the data is cut."""
    step, steps = index[0], number(c.shape(0)[0])
    if not params.use_sequence_length:
        back = ir.apply("sub", steps, ir.apply("add", step, number(1)))
        return c.load(0, replaced(index, 0, back))
    length = ir.apply("min", _length(c, params, index), steps)
    back = ir.apply("max", ir.apply("sub", length, ir.apply("add", step, number(1))), number(0))
    return c.load(0, replaced(index, 0, ir.apply("where", ir.apply("lt", step, length), back, step)))


def sequence_last(c: IndexNode, params: Params, index: Index) -> Value:
    """The last step of each sequence; a length beyond the data counts as the data's, one below 1 as 1."""
    axis, steps = params.axis, c.shape(0)[params.axis]
    step = number(steps - 1)
    if params.use_sequence_length:
        length = ir.cast(ir.cast(c.load(1, (index[0],)), "int32"), INDEX)
        step = ir.apply("min", ir.apply("max", ir.apply("sub", length, number(1)), number(0)), step)
    return c.load(0, (*index[:axis], step, *index[axis:]))
