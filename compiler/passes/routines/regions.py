"""Pooling over regions of images."""
from __future__ import annotations

from mxc.compiler.ops.table import Params
from mxc.compiler.passes.routines.context import Call, Context, call


def roi_pooling(c: Context, params: Params) -> Call:
    """data, rois (count, 5), and what flows into the output where backward."""
    sizes = (*c.shape(0), c.shape(1)[0], *params.pooled_size)
    return call("roi_pooling", sizes, backward=params.backward, scale=params.spatial_scale, real=c.dtype(0))


def roi_align(c: Context, params: Params) -> Call:
    """As roi_pooling."""
    rows, columns = params.pooled_size
    parts = c.shape(0)[1] // (rows * columns if params.position_sensitive else 1)
    sizes = (*c.shape(0), c.shape(1)[0], parts, rows, columns)
    return call("roi_align", sizes, backward=params.backward, scale=params.spatial_scale,
                samples=max(params.sample_ratio, 0), apart=params.position_sensitive, aligned=params.aligned,
                real=c.dtype(0))
