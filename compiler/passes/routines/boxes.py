"""Suppression and matching of boxes."""
from __future__ import annotations

from mxc.compiler.ops.table import Params
from mxc.compiler.passes.routines.context import Call, Context, call


def box_order(c: Context, params: Params) -> Call:
    """data (batch, boxes, width), ranks (batch, most) -> (batch, boxes)."""
    kinds = params.id_index >= 0
    return call("box_order", (*c.shape(0), c.shape(1)[1]),
                score_index=params.score_index, coord_start=params.coord_start, id_index=params.id_index,
                classes=kinds and not params.force_suppress, background=kinds,
                background_id=params.background_id, valid_thresh=params.valid_thresh,
                overlap_thresh=params.overlap_thresh, center=params.in_format == "center", real=c.dtype(0))


def match(c: Context, params: Params) -> Call:
    """data (batch, rows, columns), ranks (batch, rows * columns) -> (batch, rows) and (batch, columns)."""
    return call("match", c.shape(0), most=params.topk + 1 if params.topk > 0 else 0, ascending=params.is_ascend,
                threshold=params.threshold, real=c.dtype(0))


def detect(c: Context, params: Params) -> Call:
    """scores, kinds (batch, boxes), boxes (batch, boxes, 4), ranks (batch, boxes) -> (batch, boxes, 6)."""
    return call("detect", c.shape(0), most=max(params.nms_topk, 0), threshold=params.threshold,
                overlap=params.nms_threshold, suppress=0 < params.nms_threshold <= 1, force=params.force_suppress,
                real=c.dtype(0))


def assign(c: Context, params: Params) -> Call:
    """anchors (1, n, 4), labels (batch, rows, width) -> (batch, n) twice."""
    batch, rows, width = c.shape(1)
    return call("assign", (batch, c.shape(0)[1], rows, width), threshold=params.overlap_threshold, real=c.dtype(0))


def mine(c: Context, params: Params) -> Call:
    """match, best, ranks (batch, n) -> (batch, n)."""
    return call("mine", c.shape(0), ratio=params.negative_mining_ratio, threshold=params.negative_mining_thresh,
                real=c.dtype(1))
