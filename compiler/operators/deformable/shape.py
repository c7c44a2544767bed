"""Shapes and flops of deformable convolutions.

Data is (N, C, H, W), the weight (filters, C / groups, *kernel), as of Convolution. The offsets are
(N, groups * taps * 2, *windows): for each group of channels and tap of the kernel how far down, then how far to the
right, the tap is moved. The mask is (N, groups * taps, *windows).
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mxc.compiler.error import MXNetError
from mxc.compiler.operators.convolution.shape import Geometry, column_geometry, column_windows, convolution, geometry
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shape, Shapes, merge


def deformable_convolution(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """As Convolution, whose first input alone tells; the offsets, and the mask where there is one, follow."""
    with_mask = len(ins) - (not params.no_bias) == 4
    data, offset, *rest = ins
    mask, others = (rest[0], rest[1:]) if with_mask else (None, rest)
    planar(geometry(params))
    if data is None:
        return ins, outs
    (data, *parameters), outs = convolution(params, [data, *others], outs)
    assert data is not None and outs[0] is not None
    if with_mask and params.num_filter % params.num_deformable_group:  # as MXNet, which asks it of this operator alone
        raise MXNetError(f"expected num_filter that num_deformable_group={params.num_deformable_group} divides, got "
                         f"{params.num_filter}")
    taps = places(params, data[1])
    offset = merge((data[0], taps * 2, *outs[0][2:]), offset)
    if not with_mask:
        return [data, offset, *parameters], outs
    return [data, offset, merge((data[0], taps, *outs[0][2:]), mask), *parameters], outs


def places(params: Params, channels: int) -> int:
    """Over groups of channels and taps of the kernel: how many places each window reads at. Raises MXNetError."""
    groups = params.num_deformable_group
    if channels % groups:
        raise MXNetError(f"expected channels of data that num_deformable_group={groups} divides, got {channels}")
    return groups * prod(params.kernel)


def planar(g: Geometry) -> None:
    """Raises MXNetError for a kernel that is not over two axes."""
    if len(g.kernel) != 2:
        raise MXNetError(f"expected a kernel of 2 axes, got {g.kernel}")


def deformable_columns(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(N, C * taps, windows), as im2col's."""
    data, g = ins[0], column_geometry(params)
    if data is None:
        return ins, outs
    return ins, [(data[0], data[1] * prod(g.kernel), prod(column_windows(g, data[2:])))]


def deformable_columns_grad(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The shapes of data and offsets."""
    return ins, ins[:2]


def deformable_flops(params: Params, ins: Sequence[Shape], outs: Sequence[Shape]) -> int:
    """Those of a convolution, and 10 for each sample of the columns: the weights' products, and four elements."""
    taps, windows = prod(params.kernel), prod(outs[0][2:])
    product = 2 * prod(ins[0][1:2]) // params.num_group * taps + (not params.no_bias)
    return prod(outs[0]) * product + 10 * ins[0][0] * ins[0][1] * taps * windows
