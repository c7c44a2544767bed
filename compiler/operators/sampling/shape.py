"""Shapes of grids and sampling images at them."""
from __future__ import annotations

from mxc.compiler.error import MXNetError
from mxc.compiler.operators.resize.shape import image
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shape, Shapes, merge


def _target(params: Params) -> Shape:
    target = params["target_shape"]
    if not isinstance(target, tuple) or len(target) != 2 or min(target) < 2:
        raise MXNetError(f"expected a target_shape of two numbers of at least 2, got {target}")
    return target


def grid_generator(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """affine: data (batch, 6) -> (batch, 2, height, width) of `target_shape`. warp: the data's shape, that one."""
    if params["transform_type"] == "affine":
        batch = outs[0][0] if outs[0] else 0
        data = merge(ins[0], (batch, 6))
        assert data is not None
        return [data], [merge((data[0], 2, *_target(params)), outs[0])]
    known = merge(ins[0], outs[0])
    if known is not None and (len(known) != 4 or known[1] not in (0, 2) or 1 in known[2:]):
        raise MXNetError(f"expected data (batch, 2, height, width), at least 2 high and wide, got {known}")
    return [known], [known]


def bilinear_sampler(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (batch, channels, .., ..), grid (batch, 2, height, width) -> (batch, channels, height, width)."""
    data, grid = ins
    if data is None or grid is None:
        return ins, outs
    image(data)
    grid = merge(grid, (data[0], 2, 0, 0))
    assert grid is not None
    return [data, grid], [merge((*data[:2], *grid[2:]), outs[0])]


def spatial_transformer(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (batch, channels, .., ..), loc (batch, 6) -> (batch, channels, height, width) of `target_shape`."""
    data = ins[0]
    if data is None:
        return ins, outs
    image(data)
    return [data, merge(ins[1], (data[0], 6))], [merge((*data[:2], *_target(params)), outs[0])]


def bilinear_sampler_grad(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The gradients have the shapes of data and grid."""
    return ins, ins[:2]
