"""Shape rules of the operators of Winograd's convolution."""
from __future__ import annotations

from mxc.compiler.error import MXNetError
from mxc.compiler.ops import winograd
from mxc.compiler.ops.shapes.basic import Shapes
from mxc.compiler.ops.table import Params


def spread(data: tuple[int, ...], pad: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of the results of blocked data (N, C / B, H, W, B)."""
    return data[2] + 2 * pad[0] - 2, data[3] + 2 * pad[1] - 2


def winograd_factors(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(36, 9)"""
    return ins, [winograd.FACTORS.shape]


def winograd_data(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(N, C / B, H, W, B) -> (tile groups, C / B, 36, tiles of a group, B)"""
    (data,) = ins
    if data is None:
        return ins, outs
    rows, columns = winograd.grid(spread(data, params.pad))
    groups = -(-data[0] * rows * columns // params.tiles)
    return ins, [(groups, data[1], winograd.PLACES, params.tiles, data[4])]


def winograd_convolution(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data as `winograd_data` gives it, weight (36, filter groups, C, filters of a group) -> `shape`"""
    data, weight = ins
    if data is not None and weight is not None:
        filters = params.shape[1] * params.shape[-1]
        expected = (winograd.PLACES, -(-filters // weight[-1]), data[1] * data[-1], weight[-1])
        if weight != expected:
            raise MXNetError(f"expected packed weight of shape {expected}, got {weight}")
    return ins, [params.shape]
