"""Shapes of attention's products, and how the projections lie.

They are (length, batch, heads * 3 * depth): of each head its queries, then its keys, then its values. The attention is
(batch * heads, length, length).
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shape, Shapes, merge


def depth(params: Params, shape: Shape) -> int:
    """How many numbers a query of a head has. Raises MXNetError for projections of another form."""
    if len(shape) != 3:
        raise MXNetError(f"expected queries_keys_values (length, batch, heads * 3 * depth), got {shape}")
    if shape[2] % (params.heads * 3):
        raise MXNetError(f"expected queries_keys_values whose last axis heads * 3 = {params.heads * 3} divides, got "
                         f"{shape}")
    return shape[2] // (params.heads * 3)


def selfatt_qk(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(batch * heads, length, length)"""
    (data,) = ins
    if data is None:
        return ins, outs
    depth(params, data)
    return ins, [merge((data[1] * params.heads, data[0], data[0]), outs[0])]


def selfatt_valatt(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(length, batch, heads * depth)"""
    data, attention = ins
    if data is None:
        return ins, outs
    size = depth(params, data)
    attention = merge((data[1] * params.heads, data[0], data[0]), attention)
    return [data, attention], [merge((*data[:2], params.heads * size), outs[0])]


def selfatt_flops(params: Params, ins: Sequence[Shape], outs: Sequence[Shape]) -> int:
    """2 for each product of an element of the attention and one of the queries' or values' depth."""
    length, batch, _ = ins[0]
    return 2 * prod((batch, params.heads, length, length)) * depth(params, ins[0])
