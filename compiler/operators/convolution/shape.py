"""Shapes and flops of convolutions.

Data is (N, C, *space), a convolution's weight (filters, C/groups, *kernel).
Deconvolution is the gradient of a convolution to its data; its weight is (C, filters/groups, *kernel).

Columns are (N, C * taps of the kernel, windows) for data (N, C, *space).
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from mxc.compiler.error import MXNetError
from mxc.compiler.operators.linear.shape import expect_shape
from mxc.compiler.ops import winograd
from mxc.compiler.ops.dtypes import Dtypes, merge_dtypes
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shape, Shapes, merge


class Geometry(NamedTuple):
    """A convolution's parameters with a number for every axis of space."""

    kernel: Shape
    stride: Shape
    dilate: Shape
    pad: Shape
    groups: int

    @property
    def extents(self) -> Shape:
        """The kernel's size with its gaps."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilate, strict=True))


def geometry(params: Params) -> Geometry:
    """Empty stride and dilate mean 1, empty pad 0. Raises MXNetError for other lengths and numbers out of range."""
    kernel = params["kernel"]
    assert isinstance(kernel, tuple)
    if not 1 <= len(kernel) <= 3:
        raise MXNetError(f"expected a kernel of 1, 2 or 3 axes, got {kernel}")
    layout, expected = params.get("layout"), ("NCW", "NCHW", "NCDHW")[len(kernel) - 1]
    if layout not in (None, expected):
        raise MXNetError(f"expected layout {expected} for kernel {kernel}, got {layout}")
    parts = [kernel]
    for name, default in (("stride", 1), ("dilate", 1), ("pad", 0)):
        given = params[name] or (default,) * len(kernel)
        assert isinstance(given, tuple)
        if len(given) != len(kernel):
            raise MXNetError(f"expected {name} with {len(kernel)} numbers as kernel {kernel} has, got {given}")
        if min(given) < default:
            raise MXNetError(f"expected {name} of at least {default}, got {given}")
        parts.append(given)
    if min(kernel) < 1:
        raise MXNetError(f"expected a kernel of at least 1, got {kernel}")
    groups = params["num_group"]
    assert isinstance(groups, int)
    if groups < 1:
        raise MXNetError(f"expected num_group of at least 1, got {groups}")
    return Geometry(parts[0], parts[1], parts[2], parts[3], groups)


def _divided(channels: int, groups: int, what: str) -> int:
    if channels % groups:
        raise MXNetError(f"expected {what} that num_group={groups} divides, got {channels}")
    return channels // groups


def _ranked(shape: Shape, g: Geometry, what: str) -> None:
    if len(shape) != len(g.kernel) + 2:
        raise MXNetError(f"expected {what} of {len(g.kernel) + 2} axes for kernel {g.kernel}, got {shape}")


def convolved(size: int, axis: int, g: Geometry) -> int:
    """The output's size along an axis of space; 0: unknown. Raises MXNetError when the kernel does not fit."""
    if size == 0:
        return 0
    padded = size + 2 * g.pad[axis]
    if g.extents[axis] > padded:
        raise MXNetError(f"kernel size {g.extents[axis]} (dilated) exceeds the padded input's {padded} along axis "
                         f"{axis + 2}")
    return (padded - g.extents[axis]) // g.stride[axis] + 1


def convolution(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """out = (N, num_filter, (size + 2 pad - extent) // stride + 1, ...).

    Backward: batch from the output, channels from the weight, sizes from the output where the stride is 1.
    """
    g, filters = geometry(params), params["num_filter"]
    assert isinstance(filters, int)
    data, weight, *rest = ins
    if data is None:
        return ins, outs
    _ranked(data, g, "data")
    depth = _divided(data[1], g.groups, "channels of data")
    _divided(filters, g.groups, "num_filter")
    weight = merge((filters, depth, *g.kernel), weight)
    assert weight is not None
    space = [convolved(n, i, g) for i, n in enumerate(data[2:])]
    out = merge((data[0], filters, *space), outs[0])
    assert out is not None
    back = [out[i + 2] + g.extents[i] - 1 - 2 * g.pad[i] if out[i + 2] and s == 1 else 0
            for i, s in enumerate(g.stride)]
    data = merge(data, (out[0], weight[1] * g.groups, *back))
    return [data, weight, *[merge((filters,), b) for b in rest]], [out]


def deconvolution_padding(params: Params, space: Shape) -> tuple[Shape, Shape]:
    """(pad, adj) for data whose axes of space are `space`; `target_shape` overrides both.

    total = stride (size - 1) + extent - target is cut off: adj = total % 2, pad = (total + 1) // 2. Raises MXNetError
    when the target is larger than what there is, and for adj that is not below stride.
    """
    g, target = geometry(params), params["target_shape"]
    assert isinstance(target, tuple)
    adj = params["adj"] or (0,) * len(g.kernel)
    assert isinstance(adj, tuple)
    pad = g.pad
    if any(target):
        if len(target) != len(space):
            raise MXNetError(f"expected target_shape with {len(space)} numbers, got {target}")
        total = [s * (n - 1) + e - t for s, n, e, t in zip(g.stride, space, g.extents, target, strict=True)]
        if any(n and t < 0 for n, t in zip(space, total, strict=True)):
            raise MXNetError(f"too big target shape {target}: expected at most "
                             f"{tuple(t + r for t, r in zip(target, total, strict=True))}")
        adj = tuple(t % 2 for t in total)
        pad = tuple((t + 1) // 2 for t in total)
    if len(adj) != len(g.kernel):
        raise MXNetError(f"expected adj with {len(g.kernel)} numbers, got {adj}")
    if any(a >= s for a, s in zip(adj, g.stride, strict=True)):
        raise MXNetError(f"expected adj below stride {g.stride}, got {adj}")
    return pad, adj


def deconvolution(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """out = (N, num_filter, stride (size - 1) + extent - 2 pad + adj, ...); pad and adj of deconvolution_padding."""
    g, filters = geometry(params), params["num_filter"]
    assert isinstance(filters, int)
    data, weight, *rest = ins
    if data is None:
        return ins, outs
    _ranked(data, g, "data")
    _divided(data[1], g.groups, "channels of data")
    weight = merge((data[1], _divided(filters, g.groups, "num_filter"), *g.kernel), weight)
    assert weight is not None
    pad, adj = deconvolution_padding(params, data[2:])
    space = [n and g.stride[i] * (n - 1) + g.extents[i] - 2 * pad[i] + adj[i] for i, n in enumerate(data[2:])]
    if any(n and s < 1 for n, s in zip(data[2:], space, strict=True)):
        raise MXNetError(f"nothing is left of the output: its space would be {tuple(space)}")
    out = merge((data[0], filters, *space), outs[0])
    assert out is not None
    back = [out[i + 2] + 2 * pad[i] - adj[i] - g.extents[i] + 1 if out[i + 2] and s == 1 and n else 0
            for i, (s, n) in enumerate(zip(g.stride, data[2:], strict=True))]
    data = merge(data, (out[0], weight[0], *back))
    return [data, weight, *[merge((filters,), b) for b in rest]], [out]


def conv_weight_grad(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(filters, channels / groups, *kernel) of data (N, C, *space) and out_grad (N, filters, *space)."""
    g = geometry(params)
    data, grad = ins
    if data is None or grad is None:
        return ins, outs
    return ins, [merge((grad[1], _divided(data[1], g.groups, "channels of data"), *g.kernel), outs[0])]


def _windows(params: Params, space: tuple[int, ...]) -> tuple[int, ...]:
    """Spatial extents after a convolution."""
    geometry = zip(space, params.kernel, params.stride, params.dilate, params.pad, strict=True)
    return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, d, p in geometry)


def _packed(params: Params, filters: int, channels: int, by_channel: bool = False) -> tuple[int, ...]:
    """The shape of a convolution's weight. Packed, each group has rows of the numbers of one filter (`by_channel`: of
    one channel); with block 0 it is not packed: (filters, channels of a group, kernel)."""
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
    expect_shape("weight", expected, weight)
    return [data, expected], [(data[0], params.num_filter, *_windows(params, data[2:]))]


def blocked_convolution(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (N, C / block, *space, block) or (N, C, *space), packed weight -> (N, num_filter / block, *space, block)"""
    data, weight = ins
    if data is None:
        return ins, outs
    rank, filters = len(params.kernel), params.num_filter // params.num_group
    channels = data[1] * (data[-1] if len(data) == rank + 3 else 1) // params.num_group
    depth = channels * prod(params.kernel)
    rows = (depth // 2, params.columns, 2) if params.get("paired") else (depth, params.columns)
    expected = (params.num_group, -(-filters // params.columns), *rows)
    expect_shape("packed weight", expected, weight)
    space = _windows(params, data[2 : 2 + rank])
    return [data, expected], [(data[0], params.num_filter // params.block, *space, params.block)]


def tiled_convolution(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (N, C / block, *space, block) or (N, C, *space), packed words -> (N, num_filter / block, *space, block)"""
    data, weight = ins
    if data is None or weight is None:
        return ins, outs
    rank, filters, per = len(params.kernel), params.num_filter // params.num_group, weight[-1]
    channels = data[1] * (data[-1] if len(data) == rank + 3 else 1) // params.num_group
    depth = -(-channels // per) * prod(params.kernel)
    expected = (params.num_group, -(-filters // params.columns), depth, params.columns, per)
    expect_shape("packed weight", expected, weight)
    space = _windows(params, data[2 : 2 + rank])
    return [data, expected], [(data[0], params.num_filter // params.block, *space, params.block)]


def tiled_convolution_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """bfloat16, or data of int8 or uint8 and a weight of int8, whose sums are of int32."""
    if ins[0] is None:
        return ins, outs
    weight, out = ("bfloat16",) * 2 if ins[0] == "bfloat16" else ("int8", "int32")
    return [ins[0], merge_dtypes([ins[1], weight])], [merge_dtypes([outs[0], out])]


def packed_convolution_data_grad(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """out_grad (N, F, *space), weight packed by channels -> `shape`"""
    out_grad, weight = ins
    shape = params.shape
    if out_grad is not None:
        expect_shape("weight", _packed(params, out_grad[1], shape[1], by_channel=True), weight)
        expect_shape("out_grad", (shape[0], out_grad[1], *_windows(params, shape[2:])), out_grad)
    return ins, [shape]


def depthwise(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (N, C, *space), weight (C, 1, *kernel) -> (N, C, *space)"""
    data, weight = ins
    if data is None:
        return ins, outs
    expected = (data[1], 1, *params.kernel)
    expect_shape("weight", expected, weight)
    return [data, expected], [(*data[:2], *_windows(params, data[2:]))]


def blocked_depthwise(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (N, C / B, *space, B), weight (C / B, kernel, B) -> (N, C / B, *space, B)"""
    data, weight = ins
    if data is None:
        return ins, outs
    expected = (data[1], prod(params.kernel), data[-1])
    expect_shape("weight", expected, weight)
    return [data, expected], [(*data[:2], *_windows(params, data[2:-1]), data[-1])]


def depthwise_data_grad(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """out_grad (N, C, *space), weight (C, 1, *kernel) -> `shape`"""
    out_grad, weight = ins
    shape = params.shape
    expect_shape("weight", (shape[1], 1, *params.kernel), weight)
    expect_shape("out_grad", (*shape[:2], *_windows(params, shape[2:])), out_grad)
    return ins, [shape]


def depthwise_weight_grad(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (N, C, *space), out_grad (N, C, *space) -> (C, 1, *kernel)"""
    data, out_grad = ins
    if data is None:
        return ins, outs
    expect_shape("out_grad", (*data[:2], *_windows(params, data[2:])), out_grad)
    return ins, [(data[1], 1, *params.kernel)]


def winograd_weight(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(F, C, 3, 3) -> (36, filter groups, odd(C), filters of a group); turned: F and C exchanged"""
    (weight,) = ins
    if weight is None:
        return ins, outs
    expect_shape("weight", (*weight[:2], 3, 3), weight)
    rows, depth = reversed(weight[:2]) if params.turned else weight[:2]
    return ins, [(winograd.PLACES, -(-rows // params.columns), winograd.odd(depth), params.columns)]


def winograd_convolution(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (N, C / B, H, W, B), weight (36, filter groups, odd(C), filters of a group) -> `shape`; transforms: with the
    packed weight (1, filter groups, 9 C, filters of a group)"""
    data, weight = ins
    if data is not None and weight is not None:
        filters, channels = params.shape[1] * params.shape[-1], data[1] * data[-1]
        if params.transforms:
            expected = (1, -(-filters // weight[-1]), channels * winograd.TAPS, weight[-1])
            expect_shape("packed weight", expected, weight)
        else:
            _transformed(weight, filters, channels)
    return ins, [params.shape]


def _transformed(weight: Shape, filters: int, channels: int) -> None:
    """Raises MXNetError unless a weight has the shape of a transformed one."""
    columns = weight[-1]
    expect_shape("weight", (winograd.PLACES, -(-filters // columns), winograd.odd(channels), columns), weight)


def winograd_side(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(N, C, H, W) -> (36, C / B, odd(tiles of all images), B)"""
    (data,) = ins
    if data is None:
        return ins, outs
    space = tuple(n if params.of_results else n + 2 - 2 * p for n, p in zip(params.out, params.pad, strict=True))
    expect_shape("data", (*data[:2], *space), data)
    tiles = data[0] * prod(winograd.grid(params.out))
    return ins, [(winograd.PLACES, data[1] // params.block, winograd.odd(tiles), params.block)]


def _tiles_of(name: str, shape: Shape, tiles: Shape | None) -> None:
    """Raises MXNetError unless `tiles` are those of results like `shape`, of any channels."""
    if tiles is not None:
        count = winograd.odd(shape[0] * prod(winograd.grid(shape[2:])))
        expect_shape(name, (winograd.PLACES, tiles[1], count, tiles[-1]), tiles)


def plain_winograd(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (36, C / B, odd(tiles), B), weight (36, filter groups, odd(C), filters of a group) -> `shape`"""
    data, weight = ins
    _tiles_of("data", params.shape, data)
    if data is not None and weight is not None:
        _transformed(weight, params.shape[1], data[1] * data[-1])
    return ins, [params.shape]


def winograd_weight_grad(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (36, C / B, odd(tiles), B), out_grad (36, F / B, odd(tiles), B), for results of `shape`: (F, C, 3, 3)"""
    data, out_grad = ins
    _tiles_of("data", params.shape, data)
    _tiles_of("out_grad", params.shape, out_grad)
    if data is None or out_grad is None:
        return ins, outs
    return ins, [(out_grad[1] * out_grad[-1], data[1] * data[-1], 3, 3)]


def column_geometry(params: Params) -> Geometry:
    """The windows of im2col and col2im: those of a convolution without groups."""
    return geometry(Params({**params, "num_group": 1}))


def column_windows(g: Geometry, space: Shape) -> Shape:
    """How many windows there are along each axis of `space`. Raises MXNetError when it is smaller than the kernel."""
    if len(space) != len(g.kernel):
        raise MXNetError(f"expected a kernel with {len(space)} numbers, got {g.kernel}")
    return tuple(convolved(n, i, g) for i, n in enumerate(space))


def im2col(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(N, C * taps, windows)."""
    data, g = ins[0], column_geometry(params)
    if data is None:
        return ins, outs
    if len(data) < 3:
        raise MXNetError(f"expected data (N, C, *space), got {data}")
    out = (data[0], data[1] * math.prod(g.kernel), math.prod(column_windows(g, data[2:])))
    return ins, [merge(out, outs[0])]


def col2im(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(N, C, *output_size). Raises MXNetError unless there are as many columns as windows in it."""
    data, g, size = ins[0], column_geometry(params), tuple(params.output_size)
    windows, taps = math.prod(column_windows(g, size)), math.prod(g.kernel)
    if data is None:
        return ins, outs
    if len(data) != 3 or data[1] % taps or data[2] not in (0, windows):
        raise MXNetError(f"expected data (N, C * {taps}, {windows}) for kernel {g.kernel} and output_size {size}, "
                         f"got {data}")
    return ins, [merge((data[0], data[1] // taps, *size), outs[0])]


def convolution_flops(params: Params, ins: Sequence[Shape], outs: Sequence[Shape]) -> int:
    """2 channels/groups prod(kernel) for each element of the output, and 1 for a bias."""
    _, weight, *bias = ins
    return prod(outs[0]) * (2 * prod(weight[1:]) + len(bias))


def deconvolution_flops(params: Params, ins: Sequence[Shape], outs: Sequence[Shape]) -> int:
    """2 filters/groups prod(kernel) for each element of the data, and 1 for each of the output for a bias."""
    data, weight, *bias = ins
    return 2 * prod(data) * prod(weight[1:]) + prod(outs[0]) * len(bias)
