"""Shapes of correlation."""
from __future__ import annotations

from collections.abc import Sequence

from mxc.compiler.error import MXNetError
from mxc.compiler.operators.resize.shape import image
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shape, Shapes, merge


def padding(params: Params) -> int:
    """How many zeros there are around the data: none in the operator that is given padded ones."""
    size = params.get("pad_size", 0)
    assert isinstance(size, int)
    return size


def displacements(params: Params) -> int:
    """How many displacements there are along each axis, from -max_displacement to max_displacement."""
    return 2 * (params.max_displacement // params.stride2) + 1


def windows(params: Params, space: Sequence[int]) -> Shape:
    """How many kernels fit along each axis of padded data such that all displacements of them fit too."""
    border = params.max_displacement + params.kernel_size // 2
    return tuple(-((2 * border - n) // params.stride1) for n in space)


def correlation(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Two of (batch, channels, height, width) -> (batch, displacements ** 2, rows, columns)."""
    if params.kernel_size % 2 == 0:
        raise MXNetError(f"expected an odd kernel_size, got {params.kernel_size}")
    data = merge(*ins)
    if data is None or 0 in data:
        return [data, data], outs
    batch, _, *space = image(data)
    counts = windows(params, [n + 2 * padding(params) for n in space])
    if min(counts) < 1:
        raise MXNetError(f"expected data into which max_displacement={params.max_displacement} and kernel_size="
                         f"{params.kernel_size} fit, got {data}")
    return [data, data], [merge((batch, displacements(params) ** 2, *counts), outs[0])]


def correlation_grad(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The shapes of both data."""
    return ins, ins[:2]


def correlation_flops(params: Params, ins: Sequence[Shape], outs: Sequence[Shape]) -> int:
    """A product and a sum for each element of each kernel."""
    batch, places, rows, columns = outs[0]
    return 2 * batch * places * rows * columns * ins[0][1] * params.kernel_size ** 2


def correlation_grad_flops(params: Params, ins: Sequence[Shape], outs: Sequence[Shape]) -> int:
    """Twice those of the correlation whose output out_grad is as."""
    return 2 * correlation_flops(params, ins, [ins[2]])
