"""Shapes and flops of matrix products."""
from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shape, Shapes, merge, merge_all


def dot(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Contracts the last axis of lhs (the first with transpose_a) with the first of rhs (the last with transpose_b)."""
    lhs, rhs = ins
    if lhs is None or rhs is None:
        return ins, outs
    if len(lhs) == len(rhs) == 1 and (params["transpose_a"] or params["transpose_b"]):
        raise MXNetError(f"expected no transpose_a and transpose_b for two vectors, got {params['transpose_a']} and "
                         f"{params['transpose_b']}")
    a = 0 if params["transpose_a"] else len(lhs) - 1
    b = len(rhs) - 1 if params["transpose_b"] else 0
    if lhs[a] and rhs[b] and lhs[a] != rhs[b]:
        raise MXNetError(f"expected equal contracted axes, got {lhs[a]} (axis {a} of lhs {lhs}) and {rhs[b]} "
                         f"(axis {b} of rhs {rhs})")
    inner = lhs[a] or rhs[b]
    lhs = (*lhs[:a], inner, *lhs[a + 1:])
    rhs = (*rhs[:b], inner, *rhs[b + 1:])
    out = merge((*lhs[:a], *lhs[a + 1:], *rhs[:b], *rhs[b + 1:]) or (1,), outs[0])
    return [lhs, rhs], [out]


def batch_dot(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(..., m, k) times (..., k, n), or (..., k, m) with transpose_a and (..., n, k) with transpose_b; the leading axes
    are equal."""
    rank = next((len(s) for s in (*ins, outs[0]) if s is not None), 3)
    for name, shape in zip(("lhs", "rhs"), ins, strict=True):
        if shape is not None and len(shape) < 3:
            raise MXNetError(f"expected {name} of 3 dimensions or more, got {shape}")
        if shape is not None and len(shape) != rank:
            raise MXNetError(f"expected lhs and rhs of equally many dimensions, got {ins[0]} and {ins[1]}")
    lhs, rhs, out = (s or (0,) * rank for s in (*ins, outs[0]))
    m, left = (-1, -2) if params["transpose_a"] else (-2, -1)
    n, right = (-2, -1) if params["transpose_b"] else (-1, -2)
    batch = merge_all([lhs[:-2], rhs[:-2], out[:-2]]) or (0,) * (rank - 2)
    if lhs[left] and rhs[right] and lhs[left] != rhs[right]:
        raise MXNetError(f"expected equal contracted axes, got {lhs[left]} (axis {left + rank} of lhs {lhs}) and "
                         f"{rhs[right]} (axis {right + rank} of rhs {rhs})")
    depth = lhs[left] or rhs[right]
    rows, columns = lhs[m] or out[-2], rhs[n] or out[-1]
    lhs = (*batch, depth, rows) if params["transpose_a"] else (*batch, rows, depth)
    rhs = (*batch, columns, depth) if params["transpose_b"] else (*batch, depth, columns)
    return [lhs, rhs], [merge((*batch, rows, columns), outs[0])]


def khatri_rao(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """All matrices have the same number of columns, and so has the output; its rows are the product of their rows."""
    for shape in ins:
        if shape is not None and len(shape) != 2:
            raise MXNetError(f"expected matrices, got {shape}")
    known: list[Shape] = [s or (0, 0) for s in ins]
    (columns,) = merge_all(s[1:] for s in known) or (0,)
    return [(s[0], columns) for s in known], [merge((math.prod(s[0] for s in known), columns), outs[0])]


def fully_connected(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """out = (N, num_hidden) of data flattened to (N, K), or (..., num_hidden) without `flatten`.

    The weight is (num_hidden, K), the bias (num_hidden,) or (num_hidden, 1). Backward: the batch (without `flatten`:
    every axis but the last) from the output, K from the weight.
    """
    data, weight, *rest = ins
    hidden, out = params["num_hidden"], outs[0]
    assert isinstance(hidden, int)
    if data is None:
        return ins, outs
    if params["flatten"]:
        width = math.prod(data[1:])
        out = merge((data[0], hidden), out)
        assert out is not None
        data = (out[0], *data[1:])
    else:
        width = data[-1]
        out = merge((*data[:-1], hidden), out)
        assert out is not None
        data = (*out[:-1], width)
    weight = merge((hidden, width), weight)
    if len(data) == 2 or not params["flatten"]:
        assert weight is not None
        data = (*data[:-1], weight[1])
    biases = [merge((hidden, 1) if b is not None and len(b) == 2 else (hidden,), b) for b in rest]
    return [data, weight, *biases], [out]


def pack_rows(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(G, R, K) -> (G, ceil(R / block), K, block)"""
    if ins[0] is None:
        return ins, outs
    groups, rows, depth = ins[0]
    return ins, [(groups, -(-rows // params.block), depth, params.block)]


def expect_shape(what: str, expected: tuple[int, ...], got: tuple[int, ...] | None) -> None:
    if got is not None and got != expected:
        raise MXNetError(f"expected {what} of shape {expected}, got {got}")


def packed_fully_connected(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (M, K), weight (1, ceil(num_hidden / block), K, block) -> (M, num_hidden)"""
    data, weight = ins
    if data is None:
        return ins, outs
    expected = (1, -(-params.num_hidden // params.block), data[1], params.block)
    expect_shape("packed weight", expected, weight)
    return [data, expected], [(data[0], params.num_hidden)]


def fully_connected_flops(params: Params, ins: Sequence[Shape], outs: Sequence[Shape]) -> int:
    """2 K for each element of the output, with K the columns of the weight, and 1 for a bias."""
    _, weight, *bias = ins
    return prod(outs[0]) * (2 * weight[1] + len(bias))


def dot_flops(params: Params, ins: Sequence[Shape], outs: Sequence[Shape]) -> int:
    """2 K for each element of the output, with K the axis that is summed: the first or last of the left side."""
    return 2 * prod(outs[0]) * ins[0][0 if params.transpose_a else -1]


def batch_dot_flops(params: Params, ins: Sequence[Shape], outs: Sequence[Shape]) -> int:
    """2 K for each element of the output, with K the axis that is summed: one of the left side's last two."""
    return 2 * prod(outs[0]) * ins[0][-2 if params.transpose_a else -1]
