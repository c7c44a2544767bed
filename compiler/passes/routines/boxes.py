"""Suppression and matching of boxes."""
from __future__ import annotations

from mxc.compiler.ops.table import Params
from mxc.compiler.passes.routines.context import Call, Context, call


def box_order(c: Context, params: Params) -> Call:
    """data (batch, boxes, width) -> (batch, boxes)."""
    batch, n, width = c.shape(0)
    kinds = params.id_index >= 0
    return call("box_order", (batch, n, width, min(n, params.topk) if params.topk > 0 else n),
                score_index=params.score_index, coord_start=params.coord_start, id_index=params.id_index,
                classes=kinds and not params.force_suppress, background=kinds and params.background_id >= 0,
                background_id=params.background_id, valid_thresh=params.valid_thresh,
                overlap_thresh=params.overlap_thresh, center=params.in_format == "center", real=c.dtype(0))
