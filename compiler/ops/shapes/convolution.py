"""Shape rules of convolution, deconvolution and their gradients.

Data is (N, C, *space), a convolution's weight (filters, C/groups, *kernel).
Deconvolution is the gradient of a convolution to its data; its weight is (C, filters/groups, *kernel).
"""
from __future__ import annotations

from typing import NamedTuple

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.shapes.basic import Shape, Shapes, merge
from mxc.compiler.ops.table import Params


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
