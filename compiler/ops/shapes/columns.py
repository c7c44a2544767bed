"""Shape rules of im2col and col2im: (N, C, *space) and (N, C * taps of the kernel, windows)."""
from __future__ import annotations

import math

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.shapes.basic import Shape, Shapes, merge
from mxc.compiler.ops.shapes.convolution import Geometry, convolved, geometry
from mxc.compiler.ops.table import Params


def column_geometry(params: Params) -> Geometry:
    """The windows of im2col and col2im: a convolution's without groups."""
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
