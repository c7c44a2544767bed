"""The reference of convolution, deconvolution and the gradients of convolution: loops over the kernel's taps.

Everything is computed in float64 and rounded by the caller.
"""
from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from mxc.compiler.ops.philox import Draws
from mxc.compiler.ops.shapes.convolution import Geometry, convolved, deconvolution_padding, geometry
from mxc.compiler.ops.table import Params


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
    """The gradient of `_forward` with respect to data of `shape`; what of `grad` meets no data is left out."""
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
