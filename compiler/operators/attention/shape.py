"""Shapes of attention's products, and how the projections lie.

Of attention to itself they are (length, batch, heads * 3 * depth): of each head its queries, then its keys, then its
values. Of attention to something else the queries, (length, batch, heads * depth), are apart, and what there is to
attend to is (other length, batch, heads * 2 * depth). The attention is (batch * heads, length, other length).
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shape, Shapes, merge

NAMES = {1: "queries", 2: "keys_values", 3: "queries_keys_values"}


def depth(params: Params, shape: Shape, parts: int = 3) -> int:
    """How many numbers a query of a head has, where the projections have so many parts. Raises MXNetError for
    projections of another form."""
    name = NAMES[parts]
    if len(shape) != 3:
        raise MXNetError(f"expected {name} (length, batch, heads * {parts} * depth), got {shape}")
    if shape[2] % (params.heads * parts):
        raise MXNetError(f"expected {name} whose last axis heads * {parts} = {params.heads * parts} divides, got "
                         f"{shape}")
    return shape[2] // (params.heads * parts)


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


def encdec_qk(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(batch * heads, length, other length)"""
    queries, other = ins
    if queries is None or other is None:
        return ins, outs
    size = depth(params, queries, 1)
    other = merge(other, (0, queries[1], params.heads * 2 * size))
    assert other is not None
    return [queries, other], [merge((queries[1] * params.heads, queries[0], other[0]), outs[0])]


def encdec_valatt(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(length, batch, heads * depth)"""
    other, attention = ins
    if other is None or attention is None:
        return ins, outs
    size = depth(params, other, 2)
    attention = merge(attention, (other[1] * params.heads, 0, other[0]))
    assert attention is not None
    return [other, attention], [merge((attention[1], other[1], params.heads * size), outs[0])]


def encdec_qk_flops(params: Params, ins: Sequence[Shape], outs: Sequence[Shape]) -> int:
    """As selfatt_flops."""
    return 2 * prod(outs[0]) * depth(params, ins[0], 1)


def encdec_valatt_flops(params: Params, ins: Sequence[Shape], outs: Sequence[Shape]) -> int:
    """As selfatt_flops."""
    return 2 * prod(ins[1]) * depth(params, ins[0], 2)
