"""Shapes of operators on batches of sequences.

Data is (time, batch, ...), or (batch, time, ...) with axis 1.
"""
from __future__ import annotations

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shapes, merge


def _checked(params: Params, ins: Shapes, last_axis: int) -> Shapes:
    """The inputs, with the lengths' shape; raises MXNetError for an axis that is no time, or without a batch."""
    data = ins[0]
    if not 0 <= params.axis <= last_axis:
        raise MXNetError(f"expected axis {'0 or 1' if last_axis else '0'}, got {params.axis}")
    if data is not None and len(data) < 2:
        raise MXNetError(f"expected data of at least 2 dimensions, got {data}")
    if len(ins) == 1 or data is None:
        return ins
    return [data, merge(ins[1], (data[1 - params.axis],))]


def sequence_mask(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape; lengths (batch,)."""
    known = merge(ins[0], outs[0])
    return _checked(params, [known, *ins[1:]], 1), [known]


def sequence_reverse(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape; lengths (batch,). Time is the first axis."""
    known = merge(ins[0], outs[0])
    return _checked(params, [known, *ins[1:]], 0), [known]


def sequence_last(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape without its time."""
    ins, data = _checked(params, ins, 1), ins[0]
    if data is None:
        return ins, outs
    return ins, [merge((*data[:params.axis], *data[params.axis + 1:]), outs[0])]
