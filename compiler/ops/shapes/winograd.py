"""Shape rules of the operators of Winograd's convolution."""
from __future__ import annotations

from mxc.compiler.error import MXNetError
from mxc.compiler.ops import winograd
from mxc.compiler.ops.shapes.basic import Shapes
from mxc.compiler.ops.table import Params


def winograd_factors(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(36, 9)"""
    return ins, [winograd.FACTORS.shape]


def winograd_convolution(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (N, C / B, H, W, B), weight (36, filter groups, C, filters of a group) -> `shape`"""
    data, weight = ins
    if data is not None and weight is not None:
        filters = params.shape[1] * params.shape[-1]
        expected = (winograd.PLACES, -(-filters // weight[-1]), data[1] * data[-1], weight[-1])
        if weight != expected:
            raise MXNetError(f"expected packed weight of shape {expected}, got {weight}")
    return ins, [params.shape]
