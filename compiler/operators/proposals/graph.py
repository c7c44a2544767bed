"""Decompositions of region proposals.

Region proposals are made in four steps: the boxes of all anchors, their order, suppression, and a gather.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from mxc.compiler.graph.building import as_shape
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options

LOWEST = float(np.finfo(np.float32).min)


def multi_proposal(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The four steps. Right and bottom of the boxes in between are 1 more than the last pixel, so that sizes are
    differences."""
    params = node.params
    given: dict[str, Any] = {k: params[k] for k in ("scales", "ratios", "feature_stride", "rpn_min_size", "iou_loss")}
    data = builder.make("_mxc_proposals", *inputs, **given)
    batch, n, _ = builder.shape(data)
    before = min(n, params.rpn_pre_nms_top_n) if params.rpn_pre_nms_top_n > 0 else n
    scores = as_shape(builder, builder.make("slice_axis", data, axis=2, begin=0, end=1), (batch, n))
    ranks = builder.make("_mxc_argsort", scores, k=before, is_ascend=False)
    order = builder.make("_mxc_box_order", data, ranks, coord_start=1, score_index=0, valid_thresh=LOWEST,
                         overlap_thresh=params.threshold)
    kept = builder.make("sum", builder.make("_greater_equal_scalar", order, scalar=0.0), axis=1)
    count = params.rpn_post_nms_top_n
    return builder.make_all("_mxc_kept_proposals", as_shape(builder, data, (batch * n, 5)), order, kept,
                            name=node.name, count=count, most=min(count, before))
