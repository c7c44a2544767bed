"""Shape rules of the operators that the layout pass makes: packed weights and the anchors that read them."""
from __future__ import annotations

from math import prod

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.shapes.basic import Shapes
from mxc.compiler.ops.table import Params

PANEL = 16  # the block in which routines read the rows of a packed matrix


def pack_rows(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(G, R, K) -> (G, ceil(R / block), K, block)"""
    if ins[0] is None:
        return ins, outs
    groups, rows, depth = ins[0]
    return ins, [(groups, -(-rows // params.block), depth, params.block)]


def _expect(what: str, expected: tuple[int, ...], got: tuple[int, ...] | None) -> None:
    if got is not None and got != expected:
        raise MXNetError(f"expected {what} of shape {expected}, got {got}")


def _window(params: Params, space: tuple[int, ...]) -> tuple[int, ...]:
    """Spatial extents after a convolution."""
    geometry = zip(space, params.kernel, params.stride, params.dilate, params.pad, strict=True)
    return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, d, p in geometry)


def _packed(params: Params, filters: int, channels: int, by_channel: bool = False) -> tuple[int, ...]:
    """The weight of a convolution: per group rows of a filter's (or a channel's) numbers packed, or with block 0 as it
    is, (filters, channels of a group, kernel)."""
    groups, block = params.num_group, params.block
    if not block:
        return (filters, channels // groups, *params.kernel)
    rows, others = (channels, filters) if by_channel else (filters, channels)
    return (groups, -(-(rows // groups) // block), others // groups * prod(params.kernel), block)


def packed_convolution(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (N, C, *space), weight packed by filters -> (N, num_filter, *space)"""
    data, weight = ins
    if data is None:
        return ins, outs
    expected = _packed(params, params.num_filter, data[1])
    _expect("weight", expected, weight)
    return [data, expected], [(data[0], params.num_filter, *_window(params, data[2:]))]


def blocked_convolution(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (N, C / block, *space, block) or (N, C, *space), packed weight -> (N, num_filter / block, *space, block)"""
    data, weight = ins
    if data is None:
        return ins, outs
    rank, filters = len(params.kernel), params.num_filter // params.num_group
    channels = data[1] * (data[-1] if len(data) == rank + 3 else 1) // params.num_group
    expected = (params.num_group, -(-filters // params.columns), channels * prod(params.kernel), params.columns)
    _expect("packed weight", expected, weight)
    space = _window(params, data[2 : 2 + rank])
    return [data, expected], [(data[0], params.num_filter // params.block, *space, params.block)]


def packed_convolution_data_grad(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """out_grad (N, F, *space), weight packed by channels -> `shape`"""
    out_grad, weight = ins
    shape = params.shape
    if out_grad is not None:
        _expect("weight", _packed(params, out_grad[1], shape[1], by_channel=True), weight)
        _expect("out_grad", (shape[0], out_grad[1], *_window(params, shape[2:])), out_grad)
    return ins, [shape]


def packed_fully_connected(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (M, K), weight (1, ceil(num_hidden / block), K, block) -> (M, num_hidden)"""
    data, weight = ins
    if data is None:
        return ins, outs
    expected = (1, -(-params.num_hidden // params.block), data[1], params.block)
    _expect("packed weight", expected, weight)
    return [data, expected], [(data[0], params.num_hidden)]


def depthwise(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (N, C, *space), weight (C, 1, *kernel) -> (N, C, *space)"""
    data, weight = ins
    if data is None:
        return ins, outs
    expected = (data[1], 1, *params.kernel)
    _expect("weight", expected, weight)
    return [data, expected], [(*data[:2], *_window(params, data[2:]))]


def blocked_depthwise(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (N, C / B, *space, B), weight (C / B, kernel, B) -> (N, C / B, *space, B)"""
    data, weight = ins
    if data is None:
        return ins, outs
    expected = (data[1], prod(params.kernel), data[-1])
    _expect("weight", expected, weight)
    return [data, expected], [(*data[:2], *_window(params, data[2:-1]), data[-1])]


def depthwise_data_grad(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """out_grad (N, C, *space), weight (C, 1, *kernel) -> `shape`"""
    out_grad, weight = ins
    shape = params.shape
    _expect("weight", (shape[1], 1, *params.kernel), weight)
    _expect("out_grad", (*shape[:2], *_window(params, shape[2:])), out_grad)
    return ins, [shape]


def depthwise_weight_grad(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (N, C, *space), out_grad (N, C, *space) -> (C, 1, *kernel)"""
    data, out_grad = ins
    if data is None:
        return ins, outs
    _expect("out_grad", (*data[:2], *_window(params, data[2:])), out_grad)
    return ins, [(data[1], 1, *params.kernel)]
