"""Shapes of pooling over regions where parts have channels of their own."""
from __future__ import annotations

from mxc.compiler.error import MXNetError
from mxc.compiler.operators.resize.shape import image
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shape, Shapes, merge


def _regions(params: Params, data: Shape, rois: Shape) -> Shape:
    """The output's: (count, output_dim, pooled_size, pooled_size). data has group_size ** 2 channels for each of
    output_dim."""
    least = params.output_dim * (params.group_size or params.pooled_size) ** 2
    if image(data)[1] < least:
        raise MXNetError(f"expected data of {least} or more channels, for output_dim={params.output_dim} and each "
                         f"group of parts, got {data}")
    return rois[0], params.output_dim, params.pooled_size, params.pooled_size


def ps_roi_pooling(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (batch, channels, .., ..), rois (count, 5)"""
    data, rois = ins[0], merge(ins[1], (0, 5))
    if data is None or rois is None:
        return [data, rois], outs
    return [data, rois], [merge(_regions(params, data, rois), outs[0])]


def deformable_ps_roi_pooling(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """And trans (count, 2 * classes, part_size, part_size), whose classes divide output_dim."""
    data, rois, trans = ins[0], merge(ins[1], (0, 5)), list(ins[2:])
    if data is None or rois is None:
        return [data, rois, *trans], outs
    if not params.no_trans:
        side = params.part_size or params.pooled_size
        known = merge((rois[0], 0, side, side), trans[0])
        if known is not None and known[1] and (known[1] % 2 or params.output_dim % (known[1] // 2)):
            raise MXNetError(f"expected trans of 2 channels for each class, and classes that divide output_dim="
                             f"{params.output_dim}, got {known}")
        trans = [known]
    out = merge(_regions(params, data, rois), outs[0])
    return [data, rois, *trans], [out, *[out] * (len(outs) - 1)]


def deformable_regions(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The same of an output and its count of samples, of known inputs."""
    assert ins[0] is not None and ins[1] is not None
    return ins, [_regions(params, ins[0], ins[1])] * 2


def data_and_trans(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Gradients have the shapes of data and of trans, which stands third."""
    return ins, [ins[0], ins[2]]
