"""Shapes of pooling over regions of images."""
from __future__ import annotations

from mxc.compiler.error import MXNetError
from mxc.compiler.operators.resize.shape import image
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shapes, merge


def roi_pooling(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (batch, channels, .., ..), rois (count, 5) -> (count, channels, *pooled_size); ROIAlign with
    position_sensitive divides the channels by the parts."""
    return _pooled(params, 5, ins, outs)


def turned_roi_align(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (batch, channels, .., ..), rois (count, 6) -> (count, channels, *pooled_size)"""
    return _pooled(params, 6, ins, outs)


def _pooled(params: Params, numbers: int, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    size = params["pooled_size"]
    if not isinstance(size, tuple) or len(size) != 2:
        raise MXNetError(f"expected a pooled_size of two numbers, got {size}")
    rois = merge(ins[1], (0, numbers))
    if ins[0] is None or rois is None:
        return [ins[0], rois], outs
    channels = image(ins[0])[1]
    if params.get("position_sensitive"):
        if channels % (size[0] * size[1]):
            raise MXNetError(f"expected channels for each of {size[0]} x {size[1]} parts, got {channels}")
        channels //= size[0] * size[1]
    return [ins[0], rois], [merge((rois[0], channels, *size), outs[0])]
