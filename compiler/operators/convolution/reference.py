"""The reference of convolutions.

Each is a loop over the kernel's taps. Everything is computed in float64 and rounded by the caller. The operators that
the layout pass makes unpack their weight and run the plain operator.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from mxc.compiler.operators.convolution.shape import (
    Geometry,
    column_geometry,
    column_windows,
    convolved,
    deconvolution_padding,
    geometry,
)
from mxc.compiler.operators.linear.reference import run_plain, unpacked
from mxc.compiler.ops import winograd
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws

ALL = (slice(None), slice(None))  # selects all of batch and channels


def _taps(g: Geometry) -> Iterator[tuple[tuple[slice | int, ...], tuple[int, ...]]]:
    """(index of the weight that picks it, offset in the padded data) of every tap."""
    for tap in itertools.product(*map(range, g.kernel)):
        yield (slice(None), slice(None), *tap), tuple(t * d for t, d in zip(tap, g.dilate, strict=True))


def _window(offset: tuple[int, ...], size: tuple[int, ...], g: Geometry) -> tuple[slice, ...]:
    """Where in the padded data (N, C, *space) a tap at `offset` meets each of `size` outputs."""
    return (slice(None), slice(None),
            *(slice(o, o + s * (n - 1) + 1, s) for o, n, s in zip(offset, size, g.stride, strict=True)))


def _padded(data: np.ndarray, g: Geometry) -> np.ndarray:
    return np.pad(data.astype(np.float64), [(0, 0), (0, 0), *((p, p) for p in g.pad)])


def _grouped(array: np.ndarray, groups: int, axis: int) -> list[np.ndarray]:
    return np.split(array, groups, axis)


def _forward(data: np.ndarray, weight: np.ndarray, g: Geometry) -> np.ndarray:
    padded = _padded(data, g)
    size = tuple(convolved(n, i, g) for i, n in enumerate(data.shape[2:]))
    parts = []
    for x, w in zip(_grouped(padded, g.groups, 1), _grouped(weight.astype(np.float64), g.groups, 0), strict=True):
        out = np.zeros((len(x), len(w), *size))
        for tap, offset in _taps(g):
            seen = x[_window(offset, size, g)]
            out += np.einsum("nc...,fc->nf...", seen, w[tap])
        parts.append(out)
    return np.concatenate(parts, 1)


def _data_grad(grad: np.ndarray, weight: np.ndarray, g: Geometry, shape: tuple[int, ...]) -> np.ndarray:
    """The gradient of `_forward` with respect to data of `shape`; elements of `grad` that meet no data are left out."""
    room = [max(n + 2 * p, s * (m - 1) + e)
            for n, p, s, m, e in zip(shape[2:], g.pad, g.stride, grad.shape[2:], g.extents, strict=True)]
    parts = []
    for dy, w in zip(_grouped(grad.astype(np.float64), g.groups, 1), _grouped(weight.astype(np.float64), g.groups, 0),
                     strict=True):
        padded = np.zeros((shape[0], w.shape[1], *room))
        for tap, offset in _taps(g):
            padded[_window(offset, grad.shape[2:], g)] += np.einsum("nf...,fc->nc...", dy, w[tap])
        parts.append(padded)
    inner = tuple(slice(p, p + n) for p, n in zip((0, 0, *g.pad), shape, strict=True))
    return np.concatenate(parts, 1)[inner]


def _with_bias(out: np.ndarray, inputs: list[np.ndarray]) -> np.ndarray:
    if len(inputs) < 3:
        return out
    return out + inputs[2].astype(np.float64).reshape(1, -1, *(1,) * (out.ndim - 2))


def convolution(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """out[n, f, y] = bias[f] + sum over c and taps t of data[n, c, stride y + dilate t - pad] weight[f, c, t]."""
    return [_with_bias(_forward(inputs[0], inputs[1], geometry(params)), inputs)]


def deconvolution(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                  ) -> list[np.ndarray]:
    """out[n, f, stride y + dilate t - pad] += data[n, c, y] weight[c, f, t], plus the bias."""
    data, weight = inputs[:2]
    g = geometry(params)
    pad, adj = deconvolution_padding(params, data.shape[2:])
    g = g._replace(pad=pad)
    space = [s * (n - 1) + e - 2 * p + a
             for s, n, e, p, a in zip(g.stride, data.shape[2:], g.extents, pad, adj, strict=True)]
    shape = (data.shape[0], weight.shape[1] * g.groups, *space)
    return [_with_bias(_data_grad(data, weight, g, shape), inputs)]


def conv_data_grad(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                   ) -> list[np.ndarray]:
    """The gradient of a convolution to its data, of the shape that the parameter `shape` states."""
    return [_data_grad(inputs[0], inputs[1], geometry(params), tuple(params.shape))]


def conv_weight_grad(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                     ) -> list[np.ndarray]:
    """The gradient of a convolution to its weight."""
    data, grad = inputs
    g = geometry(params)
    parts = []
    grads = _grouped(grad.astype(np.float64), g.groups, 1)
    for x, dy in zip(_grouped(_padded(data, g), g.groups, 1), grads, strict=True):
        weight = np.zeros((dy.shape[1], x.shape[1], *g.kernel))
        for tap, offset in _taps(g):
            seen = x[_window(offset, grad.shape[2:], g)]
            flat = (a.reshape(*a.shape[:2], -1) for a in (seen, dy))
            weight[tap] = np.einsum("nci,nfi->fc", *flat)
        parts.append(weight)
    return [np.concatenate(parts)]


def packed_convolution(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                       ) -> list[np.ndarray]:
    """Convolution without bias."""
    data, weight = inputs
    channels = data.shape[1] // params.num_group
    if params.block:
        weight = unpacked(weight, params.num_filter // params.num_group)
    plain = weight.reshape(params.num_filter, channels, *params.kernel)
    return run_plain("Convolution", params, [data, plain], is_train, rng, no_bias=True)


def blocked_convolution(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Convolution without bias, whose result lies in blocks of channels; so do the data, or they are plain."""
    data, packed = inputs
    if params.paired:
        packed = packed.swapaxes(-1, -2).reshape(*packed.shape[:2], -1, params.columns)
    rank, groups, filters = len(params.kernel), params.num_group, params.num_filter
    inner = data.shape[-1] if data.ndim == rank + 3 else 1
    if data.ndim == rank + 3:
        data = plain_of(data)
    weight = of_blocks(packed, (filters, data.shape[1] // groups, *params.kernel), groups, inner)
    (out,) = run_plain("Convolution", params, [data, weight.astype(data.dtype)], is_train, rng, no_bias=True)
    return [blocks_of(out, params.block)]


def tiled_convolution(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Convolution without bias, whose result lies in blocks of channels; so do the data, or they are plain. The weight
    has the words of `depth` pixels, or of so many channels, side by side."""
    data, packed = inputs
    per, groups, is_plain = packed.shape[-1], params.num_group, data.ndim == len(params.kernel) + 2
    plain = data if is_plain else plain_of(data)
    channels, inner = plain.shape[1] // groups, per * (1 if is_plain else params.depth)
    packed = packed.swapaxes(-1, -2).reshape(*packed.shape[:2], -1, params.columns)
    weight = of_blocks(packed, (params.num_filter, -(-channels // per) * per, *params.kernel), groups, inner)
    weight = weight[:, :channels].astype(np.float64)
    (out,) = run_plain("Convolution", params, [plain.astype(np.float64), weight], is_train, rng, no_bias=True)
    return [blocks_of(out, params.block)]


def of_blocks(packed: np.ndarray, shape: Sequence[int], groups: int, inner: int) -> np.ndarray:
    """The weight of `shape` that was packed for data with blocks of `inner` channels."""
    filters, channels, *kernel = shape
    rows = unpacked(packed, filters // groups).reshape(filters, channels // inner, *kernel, inner)
    return np.moveaxis(rows, -1, 2).reshape(shape)


def plain_of(blocks: np.ndarray) -> np.ndarray:
    """(N, C / B, *space, B) -> (N, C, *space)"""
    return np.moveaxis(blocks, -1, 2).reshape(blocks.shape[0], -1, *blocks.shape[2:-1])


def blocks_of(plain: np.ndarray, block: int) -> np.ndarray:
    """(N, C, *space) -> (N, C / B, *space, B)"""
    parts = plain.reshape(plain.shape[0], plain.shape[1] // block, block, *plain.shape[2:])
    return np.moveaxis(parts, 2, -1)


def packed_convolution_data_grad(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                                 ) -> list[np.ndarray]:
    """`_mxc_conv_data_grad`."""
    out_grad, weight = inputs
    groups = params.num_group
    filters, channels = out_grad.shape[1] // groups, params.shape[1] // groups
    if params.block:
        weight = unpacked(weight, channels).reshape(groups, channels, filters, *params.kernel).swapaxes(1, 2)
    plain = weight.reshape(-1, channels, *params.kernel)
    return run_plain("_mxc_conv_data_grad", params, [out_grad, plain], is_train, rng)


def depthwise(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Convolution without bias, a filter of one channel for each channel."""
    return run_plain("Convolution", params, inputs, is_train, rng, no_bias=True, num_filter=inputs[0].shape[1],
                     num_group=inputs[0].shape[1])


def blocked_depthwise(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """`depthwise` of an array whose channels lie in blocks."""
    data, weight = inputs
    plain, rows = plain_of(data), weight.swapaxes(1, 2).reshape(-1, 1, *params.kernel)
    (out,) = depthwise(params, [plain, rows.astype(data.dtype)], is_train, rng)
    return [blocks_of(out, data.shape[-1])]


def depthwise_data_grad(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                        ) -> list[np.ndarray]:
    """`_mxc_conv_data_grad` of a depthwise convolution."""
    return run_plain("_mxc_conv_data_grad", params, inputs, is_train, rng, num_group=inputs[0].shape[1])


def depthwise_weight_grad(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                          ) -> list[np.ndarray]:
    """`_mxc_conv_weight_grad` of a depthwise convolution."""
    return run_plain("_mxc_conv_weight_grad", params, inputs, is_train, rng, num_group=inputs[0].shape[1])


def winograd_weight(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The transformed kernels, packed."""
    (weight,) = inputs
    taps = weight.reshape(*weight.shape[:2], winograd.TAPS)
    return [np.ascontiguousarray(winograd.packed(taps, params.columns, params.turned), weight.dtype)]


def winograd_convolution(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The convolution of data in blocks, into blocks."""
    data, weight = inputs
    _, blocks, height, width, lanes = params.shape
    plain = plain_of(data)
    filters, channels = blocks * lanes, plain.shape[1]
    if params.transforms:
        kernels = winograd.kernels(of_blocks(weight, (filters, channels, winograd.TAPS), 1, lanes))
    else:
        kernels = winograd.unpacked(weight, filters, channels)
    out = winograd.convolved(plain, kernels, params.pad, (height, width))
    return [blocks_of(out, lanes).astype(data.dtype)]


def winograd_side(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The transformed tiles of the data, or of what has the shape of the results."""
    (data,) = inputs
    made = winograd.spread(data) if params.of_results else winograd.transformed(data, params.out, params.pad)
    return [np.ascontiguousarray(winograd.in_blocks(made, params.block), data.dtype)]


def _of_tiles(params: Params, blocks: np.ndarray) -> np.ndarray:
    return winograd.of_blocks(blocks, params.shape[0] * math.prod(winograd.grid(params.shape[2:])))


def plain_winograd(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The convolution of transformed data, to a plain array."""
    data, weight = inputs
    kernels = winograd.unpacked(weight, params.shape[1], data.shape[1] * data.shape[3])
    return [winograd.multiplied(_of_tiles(params, data), kernels, params.shape[2:]).astype(data.dtype)]


def winograd_weight_grad(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The gradient to the weight, of the transformed tiles of the data and of the results' gradient."""
    made = winograd.weight_gradient(*(_of_tiles(params, blocks) for blocks in inputs))
    return [made.astype(inputs[0].dtype)]


def _places(params: Params, space: tuple[int, ...]) -> list[tuple[slice, ...]]:
    """For each tap of the kernel where it meets the windows, in padded images (N, C, *space)."""
    g = column_geometry(params)
    counts = column_windows(g, space)
    return [(*ALL, *(slice(t * d, t * d + s * (n - 1) + 1, s)
                     for t, d, s, n in zip(tap, g.dilate, g.stride, counts, strict=True)))
            for tap in itertools.product(*map(range, g.kernel))]


def im2col(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """A column for each window, a row for each channel and tap."""
    data = inputs[0]
    g = column_geometry(params)
    padded = np.pad(data, [(0, 0), (0, 0), *((p, p) for p in g.pad)])
    rows = [padded[place].reshape(*data.shape[:2], -1) for place in _places(params, data.shape[2:])]
    return [np.stack(rows, 2).reshape(len(data), data.shape[1] * len(rows), -1)]


def col2im(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Each element of the columns, added to the place in the data that im2col reads it from."""
    data, size = inputs[0], tuple(params.output_size)
    g = column_geometry(params)
    taps, counts = math.prod(g.kernel), column_windows(g, size)
    columns = data.reshape(len(data), -1, taps, *counts)
    wide = np.float64 if data.dtype.kind == "f" else data.dtype
    padded = np.zeros((*columns.shape[:2], *(n + 2 * p for n, p in zip(size, g.pad, strict=True))), wide)
    for tap, place in enumerate(_places(params, size)):
        padded[place] += columns[:, :, tap]
    return [padded[(*ALL, *(slice(p, p + n) for p, n in zip(g.pad, size, strict=True)))]]
