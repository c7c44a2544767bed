"""The definition of the library kernels' templates (calls.py) in NumPy, slow and obvious."""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mxc.compiler.kernel import geometry as records
from mxc.compiler.kernel import ir
from mxc.compiler.kernel.calls import linear, replaced, winograd_tiles
from mxc.compiler.kernel.gemm_of_parts import GemmOfParts
from mxc.compiler.kernel.geometry import Geometry, Triple, Window
from mxc.compiler.kernel.interpret import run as run_loops
from mxc.compiler.kernel.ir import CallKernel, LoopKernel, Store
from mxc.compiler.kernel.parts import output_axes
from mxc.compiler.kernel.plane_geometry import FilterConvolution, FilterDataGrad, PlaneConvolution, PlaneDataGrad
from mxc.compiler.kernel.word_geometry import TiledConvolution, WordProduct
from mxc.compiler.ops import winograd
from mxc.compiler.ops.dtypes import widened


def pack_rows(matrix: np.ndarray, block: int) -> np.ndarray:
    """(R, K) -> (ceil(R / block), K, block), the rows that fill the last block zero."""
    rows, depth = matrix.shape
    padded = np.zeros((-(-rows // block) * block, depth), matrix.dtype)
    padded[:rows] = matrix
    return np.ascontiguousarray(padded.reshape(-1, block, depth).transpose(0, 2, 1))


def _unpacked(packed: np.ndarray, rows: int, depth: int, block: int) -> np.ndarray:
    blocks = -(-rows // block)
    return packed[: blocks * depth * block].reshape(blocks, depth, block).transpose(0, 2, 1).reshape(-1, depth)[:rows]


def _strided(flat: np.ndarray, shape: Sequence[int], strides: Sequence[int]) -> np.ndarray:
    size = flat.itemsize
    return np.lib.stride_tricks.as_strided(flat, tuple(shape), [s * size for s in strides])


def interpret(call: CallKernel, buffers: Sequence[np.ndarray]) -> None:
    """Runs `call` on one-dimensional arrays in place, as a loop over whole result arrays."""
    g = call.geometry
    wide = [widened(buffer) for buffer in buffers]
    result = np.ascontiguousarray(_TEMPLATES[type(g)](g, wide), ir.computing_dtype(g.dtype))
    if isinstance(g, records.Merging) and g.flat:
        first, extents = g.merged()
        result = result.reshape(*result.shape[:first], math.prod(extents))
    position = len(call.buffers)
    strides = [s // result.itemsize for s in result.strides]
    index = linear(dict(enumerate(strides))) if result.size else ir.const(0, ir.INDEX)
    element = ir.load(position, index, str(result.dtype))
    values = [s.value for s in call.stores]
    values = replaced(values, {id(v): ir.cast(element, v.dtype) for v in ir.walk(values) if v.op == "acc"})
    stores = tuple(Store(s.buffer, s.index, v, s.mode) for s, v in zip(call.stores, values, strict=True))
    dtypes = (*call.buffers, str(result.dtype))
    run_loops(LoopKernel(call.name, dtypes, result.shape, (), (), stores), [*buffers, result.ravel()])


def _gemm(g: records.Gemm[int], buffers: Sequence[np.ndarray]) -> np.ndarray:
    a = _strided(buffers[0], (g.batch, g.m, g.k), g.a_strides)
    if g.packed_b:
        b = np.stack([_unpacked(buffers[1][i * g.b_strides[0] :], g.n, g.k, g.packed_b).T for i in range(g.batch)])
    else:
        b = _strided(buffers[1], (g.batch, g.k, g.n), g.b_strides)
    if np.issubdtype(buffers[0].dtype, np.integer):
        return a @ b
    return a.astype(np.float64) @ b.astype(np.float64)


def _gemm_of_parts(g: GemmOfParts[int], buffers: Sequence[np.ndarray]) -> np.ndarray:
    return _gemm(g, [buffer[start:] for buffer, start in zip(buffers, g.starts, strict=False)])


def _parts(g: records.Parts[int], buffers: Sequence[np.ndarray]) -> np.ndarray:
    """Each part is the whole template's result where one of the operands is zero outside of the part of the depth."""
    first, *rest = output_axes(g)
    found = [_TEMPLATES[type(g.whole)](*_part(g.whole, buffers, i * g.part, (i + 1) * g.part)) for i in range(first)]
    return np.stack(found).reshape(first, *rest)


def _part(whole: Any, buffers: Sequence[np.ndarray], start: int, stop: int) -> tuple[Any, Sequence[np.ndarray]]:
    """The record and the operands of the elements of the depth from `start` up to `stop`."""
    data, other = buffers[:2]
    if isinstance(whole, records.Gemm):
        rest = replace(whole, k=min(whole.k, stop) - start)
        return rest, (data[start * whole.a_strides[2]:], other[start * whole.b_strides[1]:])
    w, taps = whole.window, math.prod(whole.window.kernel)
    if isinstance(whole, records.ConvolutionWeightGrad):
        kept = _strided(other, (w.batch, w.groups * w.filters, *w.out), whole.out_strides).copy()
        places = np.arange(w.batch * math.prod(w.out)).reshape(w.batch, 1, *w.out)
        kept[np.broadcast_to((places < start) | (places >= stop), kept.shape)] = 0
        return replace(whole, out_strides=tuple(n // kept.itemsize for n in kept.strides)), (data, kept.ravel())
    kept = other[:w.groups * w.filters * w.channels * taps].reshape(w.groups, w.filters, w.channels, taps).copy()
    inner = w.channels if isinstance(whole, records.Convolution) else w.filters
    places = np.arange(taps) * inner + np.arange(inner)[:, None]
    outside = (places < start) | (places >= stop)
    kept[np.broadcast_to(outside if isinstance(whole, records.Convolution) else outside[:, None], kept.shape)] = 0
    return whole, (data, kept.ravel())


def _word_product(g: WordProduct[int], buffers: Sequence[np.ndarray]) -> np.ndarray:
    per, of_b = g.numbers_of_a_word, list(g.b_strides)
    a = _strided(buffers[0], (g.batch, g.m, g.k * per), (g.a_strides[0] * per, g.a_strides[1] * per, 1))
    if not g.across:
        of_b = [of_b[0] * per, 1, of_b[2] * per]
    b = _strided(buffers[1], (g.batch, g.k * per, g.n), of_b)
    return a.astype(np.float64) @ (b.astype(np.float64) + 128 * g.lifted)


def _taps(w: Window[int]) -> Iterable[tuple[Triple, tuple[slice, ...], tuple[slice, ...]]]:
    """For each tap of the kernel: its position, the slices of the output that it adds to, and the slices of the data
    that it reads for them."""
    for k in itertools.product(*map(range, w.kernel)):
        outs, datas = [], []
        for x in range(3):
            offset = k[x] * w.dilate[x] - w.pad[x]
            low = max(0, -(offset // w.stride[x]))
            high = min(w.out[x], (w.data[x] - 1 - offset) // w.stride[x] + 1)
            outs.append(slice(low, max(low, high)))
            start = low * w.stride[x] + offset
            stop = start + (high - low - 1) * w.stride[x] + 1 if high > low else start
            datas.append(slice(start, stop, w.stride[x]))
        yield k, tuple(outs), tuple(datas)  # type: ignore[misc]


def _weights(w: Window[int], block: int, flat: np.ndarray, transposed: bool) -> np.ndarray:
    """(groups, filters, channels, kd, kh, kw) in float64; block: of rows that are packed, or 0."""
    if not block:
        shape = (w.groups, w.filters, w.channels, *w.kernel)
        return flat[: math.prod(shape)].reshape(shape).astype(np.float64)
    rows, others = (w.channels, w.filters) if transposed else (w.filters, w.channels)
    depth = others * math.prod(w.kernel)
    size = -(-rows // block) * depth * block
    groups = [_unpacked(flat[g * size :], rows, depth, block) for g in range(w.groups)]
    weight = np.stack(groups).reshape(w.groups, rows, others, *w.kernel).astype(np.float64)
    return weight.swapaxes(1, 2) if transposed else weight


def _data(w: Window[int], flat: np.ndarray, strides: Sequence[int]) -> np.ndarray:
    shape = (w.batch, w.groups * w.channels, *w.data)
    return _strided(flat, shape, strides).astype(np.float64).reshape(w.batch, w.groups, w.channels, *w.data)


def _outs(w: Window[int], flat: np.ndarray, strides: Sequence[int]) -> np.ndarray:
    shape = (w.batch, w.groups * w.filters, *w.out)
    return _strided(flat, shape, strides).astype(np.float64).reshape(w.batch, w.groups, w.filters, *w.out)


_Forward = (records.Convolution[int] | records.PanelConvolution[int] | PlaneConvolution[int] |
            records.ImageConvolution[int])


def _convolution(g: _Forward, buffers: Sequence[np.ndarray]) -> np.ndarray:
    w = g.window
    return _correlated(w, _data(w, buffers[0], g.data_strides), _weights(w, g.block, buffers[1], False))


def _quad_convolution(g: records.QuadConvolution[int], buffers: Sequence[np.ndarray]) -> np.ndarray:
    w = g.window
    data, weight = (_data(w, buffers[0], g.data_strides), _weights(w, g.block, buffers[1], False))
    total = np.zeros((w.batch, w.groups * w.filters, *w.out))
    for shift in (0, 8, 16, 24):
        seen = (data.astype(np.int64) >> shift & 255).astype(np.float64)
        factor = (weight.astype(np.int64) >> shift & 255).astype(np.uint8).view(np.int8).astype(np.float64)
        total += _correlated(w, seen, factor)
    return total


def _depthwise(g: records.Depthwise[int], buffers: Sequence[np.ndarray]) -> np.ndarray:
    w = g.window
    return _correlated(w, _data(w, buffers[0], g.data_strides), _weights(w, 0, buffers[1], False))


def _correlated(w: Window[int], data: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """(n, c, d, h, w), of data (n, groups, channels, ...) and weight (groups, filters, channels, ...)."""
    out = np.zeros((w.batch, w.groups, w.filters, *w.out))
    for k, there, here in _taps(w):
        part = data[(slice(None), slice(None), slice(None), *here)]
        out[(slice(None), slice(None), slice(None), *there)] += np.einsum(
            "ngcdhw,gfc->ngfdhw", part, weight[(slice(None), slice(None), slice(None), *k)]
        )
    return out.reshape(w.batch, w.groups * w.filters, *w.out)


def _block_data(w: Window[int], flat: np.ndarray, strides: Sequence[int], channels: int, block: int) -> np.ndarray:
    """(n, channels, d, h, w) in float64, of blocks of `block` channels with `strides` over (n, block, d, h, w)."""
    shape = (w.batch, channels // block, block, *w.data)
    data = _strided(flat, shape, (*strides[:2], 1, *strides[2:])).astype(np.float64)
    return data.reshape(w.batch, channels, *w.data)


def _blocked_convolution(g: records.BlockedConvolution[int], buffers: Sequence[np.ndarray]) -> np.ndarray:
    w, inner, columns, strides, packed = g.window, g.data_block, g.columns, g.data_strides, buffers[1]
    if g.paired:
        w, inner, strides = replace(w, channels=2 * w.channels), 2 * inner, tuple(2 * step for step in strides)
        packed = packed.reshape(-1, columns, 2).swapaxes(1, 2).ravel()
    data = _block_data(w, buffers[0], strides, w.groups * w.channels, inner)
    weight = _of_blocks(packed, w, inner, columns)
    out = _correlated(w, data.reshape(w.batch, w.groups, w.channels, *w.data), weight)
    return out.reshape(w.batch, -1, g.block, *w.out)


def _blocked_quads(g: records.BlockedQuads[int], buffers: Sequence[np.ndarray]) -> np.ndarray:
    w, data = g.window, buffers[0]
    words = _of_blocks(buffers[1], w, g.data_block, g.columns).astype(np.int32)
    four = replace(w, channels=4 * w.channels)
    if g.plain:
        image = np.zeros((w.batch, 1, four.channels, *w.data))
        image[:, :, :g.planes] = _data(replace(w, channels=g.planes), data, g.data_strides)
    else:
        image = _block_data(four, data, [4 * s for s in g.data_strides], w.groups * four.channels, 4 * g.data_block)
        image = image.reshape(w.batch, w.groups, four.channels, *w.data)
    weight = np.stack([words >> shift & 255 for shift in (0, 8, 16, 24)], 3).astype(np.uint8).view(np.int8)
    weight = weight.reshape(w.groups, w.filters, four.channels, *w.kernel).astype(np.float64)
    out = _correlated(four, image, weight)
    if data.dtype == np.int8:
        out += 128 * weight.sum((2, 3, 4, 5)).reshape(-1, 1, 1, 1)
    return out.reshape(w.batch, -1, g.block, *w.out)


def _tiled_convolution(g: TiledConvolution[int], buffers: Sequence[np.ndarray]) -> np.ndarray:
    per = g.numbers_of_a_word
    w, strides = replace(g.window, channels=per * g.window.channels), [per * step for step in g.data_strides]
    packed = buffers[1].reshape(-1, g.columns, per).swapaxes(1, 2).ravel()
    weight = _of_blocks(packed, w, per * (1 if g.plain else g.depth), g.columns)
    data = np.zeros((w.batch, w.groups * w.channels, *w.data))
    if g.plain:
        data[:, :g.planes] = _data(replace(w, channels=g.planes), buffers[0], g.data_strides)[:, 0]
    else:
        data[:] = _block_data(w, buffers[0], strides, w.groups * w.channels, per * g.data_block)
    out = _correlated(w, data.reshape(w.batch, w.groups, w.channels, *w.data), weight)
    return out.reshape(w.batch, -1, g.block, *w.out)


def _of_blocks(flat: np.ndarray, w: Window[int], inner: int, columns: int) -> np.ndarray:
    """(groups, filters, channels, *kernel) in float64, of a weight as `blocked_convolution` reads it."""
    blocks, taps = w.channels // inner, math.prod(w.kernel)
    depth = blocks * taps * inner
    size = -(-w.filters // columns) * depth * columns
    weight = np.stack([_unpacked(flat[i * size :], w.filters, depth, columns) for i in range(w.groups)])
    weight = weight.reshape(w.groups, w.filters, blocks, taps, inner).swapaxes(3, 4)
    return weight.reshape(w.groups, w.filters, w.channels, *w.kernel).astype(np.float64)


def _blocked_depthwise(g: records.BlockedDepthwise[int], buffers: Sequence[np.ndarray]) -> np.ndarray:
    w, block = g.window, g.block
    blocks, taps = w.groups // block, math.prod(w.kernel)
    whole = replace(w, data=(w.data[0], g.ring, w.data[2])) if g.ring_start else w
    rows = (g.ring_start + np.arange(w.data[1])) % g.ring
    data = _block_data(whole, buffers[0], g.data_strides, w.groups, block)[:, :, :, rows]
    weight = buffers[1][: w.groups * taps].reshape(blocks, taps, block).swapaxes(1, 2).astype(np.float64)
    out = _correlated(w, data.reshape(w.batch, w.groups, 1, *w.data), weight.reshape(w.groups, 1, 1, *w.kernel))
    return out.reshape(w.batch, blocks, block, *w.out)


def _winograd_convolution(g: records.WinogradConvolution[int], buffers: Sequence[np.ndarray]) -> np.ndarray:
    w, block, u = g.window, g.block, _transformed_weight(g, buffers[1])
    if g.given:
        groups = -(-winograd_tiles(w) // g.tiles)
        shape = (winograd.PLACES, groups, w.channels // block, g.tiles, block)
        steps = (g.given, w.channels * g.tiles, g.tiles * block, block, 1)
        seen = _strided(buffers[0], shape, steps).astype(np.float64).swapaxes(2, 3)
        seen = seen.reshape(winograd.PLACES, -1, w.channels)[:, : winograd_tiles(w)]
    else:
        seen = _tiles_seen(w, buffers[0], g.data_strides, block)
    return winograd.multiplied(seen, u, w.out[1:]).reshape(w.batch, -1, block, *w.out)


def _transformed_weight(g: records.WinogradConvolution[int] | records.PlainWinograd[int], flat: np.ndarray,
                        ) -> np.ndarray:
    """(36, filters, channels)"""
    w = g.window
    if isinstance(g, records.WinogradConvolution) and g.transforms:
        plain = _of_blocks(flat, w, g.block, g.columns)
        return winograd.kernels(plain.reshape(w.filters, w.channels, winograd.TAPS))
    shape = (winograd.PLACES, -(-w.filters // g.columns), winograd.odd(w.channels), g.columns)
    return winograd.unpacked(flat[: math.prod(shape)].reshape(shape), w.filters, w.channels)


def _winograd_data(g: records.WinogradData[int], buffers: Sequence[np.ndarray]) -> np.ndarray:
    w, block, size = g.window, g.block, g.tiles
    seen = _tiles_seen(w, buffers[0], g.data_strides, block)
    groups = -(-winograd_tiles(w) // size)
    whole = np.zeros((winograd.PLACES, groups * size, w.channels))
    whole[:, : seen.shape[1]] = seen
    return whole.reshape(winograd.PLACES, groups, size, w.channels // block, block).swapaxes(2, 3)


def _winograd_side(g: records.WinogradSide[int], buffers: Sequence[np.ndarray]) -> np.ndarray:
    w = g.window
    if g.of_results:
        made = winograd.spread(_outs(w, buffers[0], g.strides)[:, 0, :, 0])
    else:
        made = winograd.transformed(_data(w, buffers[0], g.strides)[:, 0, :, 0], w.out[1:], w.pad[1:])
    return winograd.in_blocks(made, g.block)


def _of_all_tiles(w: Window[int], flat: np.ndarray, channels: int, block: int) -> np.ndarray:
    """(36, tiles, channels) of what `winograd_side` made."""
    tiles = winograd_tiles(w)
    shape = (winograd.PLACES, channels // block, winograd.odd(tiles), block)
    return winograd.of_blocks(flat[: math.prod(shape)].reshape(shape), tiles)


def _winograd_weight(g: records.WinogradWeight[int], buffers: Sequence[np.ndarray]) -> np.ndarray:
    w = g.window
    weight = _weights(w, 0, buffers[0], False).reshape(w.filters, w.channels, winograd.TAPS)
    return winograd.packed(weight, g.columns, g.turned)


def _plain_winograd(g: records.PlainWinograd[int], buffers: Sequence[np.ndarray]) -> np.ndarray:
    w = g.window
    seen = _of_all_tiles(w, buffers[0], w.channels, g.block)
    return winograd.multiplied(seen, _transformed_weight(g, buffers[1]), w.out[1:])[:, :, None]


def _winograd_weight_grad(g: records.WinogradWeightGrad[int], buffers: Sequence[np.ndarray]) -> np.ndarray:
    w = g.window
    data, out_grad = (_of_all_tiles(w, flat, n, g.block) for flat, n in zip(buffers, (w.channels, w.filters),
                                                                          strict=False))
    return winograd.weight_gradient(data, out_grad)[:, :, None]


def _tiles_seen(w: Window[int], flat: np.ndarray, strides: Sequence[int], block: int) -> np.ndarray:
    """(36, tiles, channels): the transformed data of all tiles."""
    data = _block_data(w, flat, strides, w.channels, block)
    return winograd.transformed(data.reshape(w.batch, w.channels, *w.data[1:]), w.out[1:], w.pad[1:])


def _convolution_data_grad(
    g: records.ConvolutionDataGrad[int] | PlaneDataGrad[int] | records.ImageDataGrad[int],
    buffers: Sequence[np.ndarray],
) -> np.ndarray:
    return _back_to_data(g, _weights(g.window, g.block, buffers[1], True), buffers)


def _depthwise_data_grad(g: records.DepthwiseDataGrad[int], buffers: Sequence[np.ndarray]) -> np.ndarray:
    return _back_to_data(g, _weights(g.window, 0, buffers[1], True), buffers)


def _back_to_data(
    g: records.OfOut[int] | records.DepthwiseDataGrad[int], weight: np.ndarray, buffers: Sequence[np.ndarray],
) -> np.ndarray:
    w = g.window
    out = _outs(w, buffers[0], g.out_strides)
    grad = np.zeros((w.batch, w.groups, w.channels, *w.data))
    for k, there, here in _taps(w):
        part = out[(slice(None), slice(None), slice(None), *there)]
        grad[(slice(None), slice(None), slice(None), *here)] += np.einsum(
            "ngfdhw,gfc->ngcdhw", part, weight[(slice(None), slice(None), slice(None), *k)]
        )
    return grad.reshape(w.batch, w.groups * w.channels, *w.data)


def _convolution_weight_grad(g: records.OfBoth[int], buffers: Sequence[np.ndarray]) -> np.ndarray:
    w = g.window
    data, out = _data(w, buffers[0], g.data_strides), _outs(w, buffers[1], g.out_strides)
    grad = np.zeros((w.groups, w.filters, w.channels, *w.kernel))
    for k, there, here in _taps(w):
        grad[(slice(None), slice(None), slice(None), *k)] = np.einsum(
            "ngfdhw,ngcdhw->gfc",
            out[(slice(None), slice(None), slice(None), *there)],
            data[(slice(None), slice(None), slice(None), *here)],
        )
    return grad.reshape(w.groups * w.filters, w.channels, *w.kernel)


def _max_pool_grad(g: records.MaxPoolGrad[int], buffers: Sequence[np.ndarray]) -> np.ndarray:
    w = g.window
    data = _data(w, buffers[0], g.data_strides)[:, :, 0]
    out = _outs(w, buffers[1], g.out_strides)[:, :, 0]
    grad = np.zeros_like(data)
    for place in np.ndindex(*w.out):
        starts = [place[x] * w.stride[x] - w.pad[x] for x in range(3)]
        part = [slice(max(s, 0), max(0, min(s + w.kernel[x], w.data[x]))) for x, s in enumerate(starts)]
        views = data[(slice(None), slice(None), *part)]
        if views.size == 0:
            continue
        row = views.reshape(*views.shape[:2], -1)
        best = (row == np.where(np.isnan(row), -np.inf, row).max(-1, keepdims=True)).argmax(-1)
        cells = np.unravel_index(best, views.shape[2:])
        for n, c in np.ndindex(*best.shape):
            cell = tuple(p.start + int(x[n, c]) for p, x in zip(part, cells, strict=True))
            grad[(n, c, *cell)] += out[(n, c, *place)]
    return grad


def _pool_spread(g: records.PoolSpread[int], buffers: Sequence[np.ndarray]) -> np.ndarray:
    w = g.window
    out = _outs(w, buffers[0], g.out_strides)[:, :, 0]
    grad = np.zeros((w.batch, w.groups, *w.data))
    for place in np.ndindex(*w.out):
        starts = [o * s for o, s in zip(place, w.stride, strict=True)]  # in the padded data
        part, count = [], 1
        for start, kernel, pad, data in zip(starts, w.kernel, w.pad, w.data, strict=True):
            part.append(slice(max(start - pad, 0), max(0, min(start - pad + kernel, data))))
            first, end = (0, data + 2 * pad) if g.divisor == "padded" else (pad, data + pad)
            count *= max(min(start + kernel, end) - max(start, first), 1) if g.divisor != "none" else 1
        share = out[(slice(None), slice(None), *place)] / count
        grad[(slice(None), slice(None), *part)] += share[..., None, None, None]
    return grad


_TEMPLATES: dict[type[Geometry], Callable[[Any, Sequence[np.ndarray]], np.ndarray]] = {
    records.Gemm: _gemm,
    GemmOfParts: _gemm_of_parts,
    WordProduct: _word_product,
    records.Convolution: _convolution,
    records.BlockedConvolution: _blocked_convolution,
    records.ConvolutionDataGrad: _convolution_data_grad,
    records.ConvolutionWeightGrad: _convolution_weight_grad,
    records.Depthwise: _depthwise,
    records.BlockedDepthwise: _blocked_depthwise,
    records.WinogradConvolution: _winograd_convolution,
    records.WinogradData: _winograd_data,
    records.WinogradSide: _winograd_side,
    records.WinogradWeight: _winograd_weight,
    records.PlainWinograd: _plain_winograd,
    records.WinogradWeightGrad: _winograd_weight_grad,
    records.DepthwiseDataGrad: _depthwise_data_grad,
    records.DepthwiseWeightGrad: _convolution_weight_grad,
    FilterConvolution: _convolution,
    FilterDataGrad: _convolution_data_grad,
    records.ImageConvolution: _convolution,
    records.PanelConvolution: _convolution,
    PlaneConvolution: _convolution,
    PlaneDataGrad: _convolution_data_grad,
    records.QuadConvolution: _quad_convolution,
    records.BlockedQuads: _blocked_quads,
    TiledConvolution: _tiled_convolution,
    records.ImageDataGrad: _convolution_data_grad,
    records.MaxPoolGrad: _max_pool_grad,
    records.Parts: _parts,
    records.PoolSpread: _pool_spread,
}
