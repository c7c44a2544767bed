"""Shapes of region proposals."""
from __future__ import annotations

import math

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shape, Shapes, merge


def base_anchors(params: Params) -> list[tuple[float, float, float, float]]:
    """Corners of the anchors at the first place: a square of feature_stride pixels for each ratio, then each scale."""
    side = params.feature_stride
    centre = (side - 1) / 2
    anchors = []
    for ratio in params.ratios:
        width = math.floor(math.sqrt(side * side // ratio) + 0.5)
        height = math.floor(width * ratio + 0.5)
        for scale in params.scales:
            w, h = (width * scale - 1) / 2, (height * scale - 1) / 2
            anchors.append((centre - w, centre - h, centre + w, centre + h))
    return anchors


def proposal(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The shapes of multi_proposal, for one image."""
    if ins[0] is not None and ins[0][:1] not in ((), (0,), (1,)):
        raise MXNetError(f"expected one image, got cls_prob {ins[0]}; MultiProposal takes more")
    return multi_proposal(params, ins, outs)


def multi_proposal(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """cls_prob (batch, 2 * anchors, height, width), bbox_pred (batch, 4 * anchors, height, width), im_info (batch, 3)
    -> (batch * rpn_post_nms_top_n, 5) and (batch * rpn_post_nms_top_n, 1)."""
    scores = ins[0]
    if scores is None:
        return ins, outs
    if len(scores) != 4:
        raise MXNetError(f"expected cls_prob of shape (batch, 2 * anchors, height, width), got {scores}")
    offsets = merge(ins[1], (scores[0], scores[1] * 2, *scores[2:]))
    rows = scores[0] * params.rpn_post_nms_top_n
    return [scores, offsets, merge(ins[2], (scores[0], 3))], [(rows, 5), (rows, 1)]


def proposals(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """cls_prob, bbox_pred, im_info as multi_proposal has them -> (batch, height * width * anchors, 5)."""
    out: Shape | None = None
    if ins[0] is not None:
        batch, _, height, width = ins[0]
        out = (batch, height * width * len(params.ratios) * len(params.scales), 5)
    return ins, [out]


def kept_proposals(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (rows, 5), order (batch, n), kept (batch,) -> (batch * count, 5) and (batch * count, 1)."""
    if ins[2] is None:
        return ins, outs
    rows = ins[2][0] * params.count
    return ins, [(rows, 5), (rows, 1)]
