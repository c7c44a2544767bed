"""Decompositions and gradients of operators on boxes.

A routine finds which boxes are kept; a gather, which fuses with its neighbours, reads their rows.
"""
from __future__ import annotations

from math import inf, prod
from typing import Any

from mxc.compiler.graph.batch_rows import MixedRows, Rows, RowSite, same
from mxc.compiler.graph.building import as_dtype, as_shape, filled
from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options


def box_nms(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The order of the boxes that are kept, then their rows."""
    data, params = inputs[0], node.params
    shape = builder.shape(data)
    rows = prod(shape[:-1])
    if params.topk == 0:
        order = builder.make("_arange", start=0.0, stop=float(rows), dtype="int32")
        return [data, as_shape(builder, order, (*shape[:-1], 1))]
    batch = as_shape(builder, data, (rows // shape[-2], *shape[-2:]))
    scores = _column(builder, batch, params.score_index)
    if params.id_index >= 0:
        kinds = _column(builder, batch, params.id_index)
        others = builder.make("_not_equal_scalar", kinds, scalar=float(params.background_id))
        scores = builder.make("where", others, scores, filled(builder, builder.shape(scores), -inf,
                                                              builder.dtype(scores)))
    most = min(shape[-2], params.topk) if params.topk > 0 else shape[-2]
    ranks = builder.make("_mxc_argsort", scores, k=most, is_ascend=False)
    given: dict[str, Any] = {k: v for k, v in params.items() if k not in ("topk", "out_format")}
    order = builder.make("_mxc_box_order", batch, ranks, **given)
    order = as_shape(builder, order, (rows,))
    out = builder.make("_mxc_kept_boxes", as_shape(builder, data, (rows, shape[-1])), order, name=node.name,
                       coord_start=params.coord_start, in_format=params.in_format, out_format=params.out_format)
    return [as_shape(builder, out, shape), as_shape(builder, order, (*shape[:-1], 1))]


def _column(builder: GraphBuilder, data: Entry, column: int) -> Entry:
    """data[:, :, column]."""
    return as_shape(builder, builder.make("slice_axis", data, axis=2, begin=column, end=column + 1),
                    builder.shape(data)[:2])


def bipartite_matching(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The pairs, which a routine finds over one leading axis that stands for all; they are integers until the end."""
    data = inputs[0]
    shape, dtype = builder.shape(data), builder.dtype(data)
    batch = prod(shape[:-2])
    count = shape[-2] * shape[-1]
    ranks = builder.make("_mxc_argsort", as_shape(builder, data, (batch, count)), k=count,
                         is_ascend=node.params.is_ascend)
    given: dict[str, Any] = dict(node.params)
    made = builder.make_all("_mxc_match", as_shape(builder, data, (batch, *shape[-2:])), ranks, **given)
    wanted = (shape[:-1], (*shape[:-2], shape[-1]))
    return [as_shape(builder, as_dtype(builder, e, dtype), s) for e, s in zip(made, wanted, strict=True)]


def multibox_prior(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The priors without the data as an input: only the data's shape counts, and that is known."""
    height, width = builder.shape(inputs[0])[2:4]
    return [builder.make("_mxc_priors", name=node.name, height=height, width=width, **node.params)]


def multibox_detection(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Best classes and their scores, decoded boxes, and the routine that sorts and suppresses them."""
    scores, offsets, anchors = inputs
    params = node.params
    batch, classes, count = builder.shape(scores)
    if classes == 1:
        return [filled(builder, (batch, count, 6), -1.0, "float32")]
    stds = {f"std{i}": v for i, v in enumerate(params.variances)}
    boxes = builder.make("_contrib_box_decode", as_shape(builder, offsets, (batch, count, 4)), anchors,
                         format="corner", **stds)
    if params.clip:
        boxes = builder.make("clip", boxes, a_min=0.0, a_max=1.0)
    scores = builder.make("slice_axis", scores, axis=1, begin=1, end=None)
    kinds = builder.make("argmax", scores, axis=1)
    best = builder.make("max", scores, axis=1)
    ranks = builder.make("_mxc_argsort", best, k=count, is_ascend=False)
    given = {k: params[k] for k in ("threshold", "nms_threshold", "force_suppress", "nms_topk")}
    return [builder.make("_mxc_detect", best, kinds, boxes, ranks, name=node.name, **given)]


def multibox_target(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Labels assigned to anchors, negative anchors mined by the background's probability, then offsets and classes."""
    anchors, labels, predictions = inputs
    params = node.params
    match, best = builder.make_all("_mxc_assign", anchors, labels, overlap_threshold=params.overlap_threshold)
    if params.negative_mining_ratio > 0:
        chances = builder.make("softmax", predictions, axis=1)
        chances = as_shape(builder, builder.make("slice_axis", chances, axis=1, begin=0, end=1), builder.shape(match))
        ranks = builder.make("_mxc_argsort", chances, k=builder.shape(match)[1])
        match = builder.make("_mxc_mine", match, best, ranks, negative_mining_ratio=params.negative_mining_ratio,
                             negative_mining_thresh=params.negative_mining_thresh)
    targets = builder.make_all("_mxc_box_targets", match, anchors, labels, variances=params.variances)
    return [*targets, builder.make("_mxc_class_targets", match, labels, ignore_label=params.ignore_label)]


def box_nms_grad(g: Gradient) -> list[Entry | None]:
    """og's rows, put back to the rows that they came from, which the hidden output tells. A conversion of coordinates
    in the forward pass is not undone."""
    shape = g.shape(g.inputs[0])
    rows = prod(shape[:-1])
    order = as_shape(g.builder, g.outputs[1], (rows,))
    back = g.make("_mxc_scatter_add", as_shape(g.builder, g.og, (1, rows, shape[-1])), order, rows=rows)
    return [as_shape(g.builder, back, shape)]


def nms_rows(site: RowSite) -> list[Rows | MixedRows | None]:
    """Every axis but the last two; which boxes were kept is said by their places among all."""
    return [site.along(same(site.ins[0][:-2])), MixedRows("its second output counts the boxes of the whole batch")]


def decode_rows(site: RowSite) -> list[Rows | None]:
    """Batch and anchor."""
    return [site.along({0: 0, 1: 1}, {0: 0, 1: 1})]


def overlap_rows(site: RowSite) -> list[Rows | None]:
    """The axes of both sides but the last, one behind the other."""
    left, right = site.ins
    return [site.along(same(left[:-1]), {i: i + len(left) - 1 for i in range(len(right) - 1)})]


def detection_rows(site: RowSite) -> list[Rows | None]:
    """Axis 0 of scores and offsets; anchors are there once."""
    return [site.along({0: 0}, {0: 0}, {})]
