"""Shapes and dtypes of operators on boxes.

A box has four coordinates: two corners, or its centre and its size.
"""
from __future__ import annotations

from mxc.compiler.error import MXNetError
from mxc.compiler.operators.basic.shape import floating
from mxc.compiler.ops.dtypes import Dtypes
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shape, Shapes, merge


def box_nms(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (..., boxes, width) gives the same shape, and a hidden (..., boxes, 1): which input row a row was."""
    data = merge(ins[0], outs[0])
    if data is None:
        return ins, outs
    if len(data) < 2:
        raise MXNetError(f"expected data with at least 2 axes, (..., boxes, width), got {data}")
    columns_of(params, data[-1])
    return [data], [data, (*data[:-1], 1)]


def columns_of(params: Params, width: int) -> None:
    """Raises MXNetError unless score, class and coordinates are different columns of rows of `width` (0: unknown)."""
    score, kind, start = params.score_index, params.id_index, params.coord_start
    columns = {"score_index": [score], "coord_start": list(range(start, start + 4))}
    if kind >= 0:
        columns["id_index"] = [kind]
    for name, used in columns.items():
        if min(used) < 0 or (width and max(used) >= width):
            raise MXNetError(f"expected {name} to name columns of the {width} of a row, got {used}")
    every = [column for used in columns.values() for column in used]
    if len(set(every)) < len(every):
        raise MXNetError(f"expected different columns, got {columns}")


def box_order(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (batch, boxes, width), ranks (batch, most) -> (batch, boxes)."""
    return ins, [None if ins[0] is None else ins[0][:2]]


def match(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (batch, rows, columns), ranks (batch, rows * columns) -> (batch, rows) and (batch, columns)."""
    data = ins[0]
    if data is None:
        return ins, outs
    return [data, (data[0], data[1] * data[2])], [data[:2], (data[0], data[2])]


def detect(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """scores, kinds (batch, boxes), boxes (batch, boxes, 4), ranks (batch, boxes) -> (batch, boxes, 6)."""
    scores = ins[0]
    return ins, [None if scores is None else (*scores, 6)]


def kept_boxes(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (rows, width), order (rows,) -> data's shape."""
    return ins, [ins[0]]


def box_decode(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (batch, boxes, 4), anchors (1, boxes, 4) -> data's shape."""
    data, anchors = merge(ins[0], outs[0]), ins[1]
    for name, shape in (("data", data), ("anchors", anchors)):
        if shape is not None and (len(shape) != 3 or shape[2] not in (0, 4)):
            raise MXNetError(f"expected {name} of shape (batch, boxes, 4), got {shape}")
    if data is not None and anchors is not None and (
            anchors[0] > 1 or (data[1] and anchors[1] and data[1] != anchors[1])):
        raise MXNetError(f"expected anchors of shape {(1, data[1], 4)}, got {anchors}")
    return [data, anchors], [data]


def box_iou(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """lhs (a..., 4), rhs (b..., 4) -> (a..., b...)."""
    known: list[Shape] = []
    for name, shape in zip(("lhs", "rhs"), ins, strict=True):
        if shape is None:
            return ins, outs
        if len(shape) < 2 or shape[-1] != 4:
            raise MXNetError(f"expected {name} of shape (..., 4) with at least 2 axes, got {shape}")
        known.append(shape[:-1])
    return ins, [merge(known[0] + known[1], outs[0])]


def box_encode(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """samples, matches (batch, boxes), anchors (batch, boxes, 4), refs (batch, others, 4), means, stds (4,) -> two
    (batch, boxes, 4)."""
    pairs = merge(ins[0], ins[1])
    boxes = ins[2] if pairs is None else merge((*pairs, 4), ins[2])
    refs = merge(ins[3], None if boxes is None else (boxes[0], 0, 4))
    return [pairs, pairs, boxes, refs, merge((4,), ins[4]), merge((4,), ins[5])], [boxes, boxes]


def bipartite_matching(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (..., rows, columns) -> (..., rows) and (..., columns)."""
    data = ins[0]
    if data is None:
        return ins, outs
    if len(data) < 2:
        raise MXNetError(f"expected data with at least 2 axes, (..., rows, columns), got {data}")
    return ins, [data[:-1], (*data[:-2], data[-1])]


def multibox_prior(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (batch, channels, height, width) -> (1, height * width * anchors at each place, 4)."""
    for name, length in (("steps", 2), ("offsets", 2)):
        if len(params[name]) != length:  # type: ignore[arg-type]
            raise MXNetError(f"expected {name} (y, x), got {params[name]}")
    if not params.sizes or not params.ratios:
        raise MXNetError(f"expected at least one of sizes and of ratios, got {params.sizes} and {params.ratios}")
    if params.steps[0] * params.steps[1] < 0:
        raise MXNetError(f"expected two steps or none, got {params.steps}")
    data = ins[0]
    if data is None:
        return ins, outs
    if len(data) < 4:
        raise MXNetError(f"expected data of shape (batch, channels, height, width), got {data}")
    return ins, [prior_shape(params, data[2], data[3])]


def prior_shape(params: Params, height: int, width: int) -> Shape:
    """The shape of MultiBoxPrior's output for an image of height times width places."""
    return (1, height * width * (len(params.sizes) + len(params.ratios) - 1), 4)


def priors(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """No inputs; height and width are parameters."""
    return [], [prior_shape(params, params.height, params.width)]


def multibox_detection(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """cls_prob (batch, classes, boxes), loc_pred (batch, boxes * 4), anchor (1, boxes, 4) -> (batch, boxes, 6)."""
    if len(params.variances) != 4:
        raise MXNetError(f"expected four variances, got {params.variances}")
    if any(shape is None for shape in ins):
        return ins, outs
    scores, offsets, anchors = (shape for shape in ins if shape is not None)
    if (len(scores), len(offsets), len(anchors)) != (3, 2, 3):
        raise MXNetError("expected cls_prob (batch, classes, boxes), loc_pred (batch, boxes * 4) and anchor "
                         f"(1, boxes, 4), got {scores}, {offsets} and {anchors}")
    boxes = scores[2]
    return [scores, merge(offsets, (scores[0], boxes * 4)), merge(anchors, (1, boxes, 4))], [(scores[0], boxes, 6)]


def assign(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """anchors (1, n, 4), labels (batch, rows, width) -> (batch, n) twice."""
    anchors, labels = ins
    out = None if anchors is None or labels is None else (labels[0], anchors[1])
    return ins, [out, out]


def box_targets(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """match (batch, n), anchors (1, n, 4), labels (batch, rows, width) -> (batch, n * 4) twice."""
    out = None if ins[0] is None else (ins[0][0], ins[0][1] * 4)
    return ins, [out, out]


def class_targets(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """match (batch, n), labels (batch, rows, width) -> (batch, n)."""
    return ins, [ins[0]]


def multibox_target(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """anchor (1, n, 4), label (batch, rows, at least 5), cls_pred (batch, classes, n) -> (batch, n * 4) twice and
    (batch, n)."""
    if len(params.variances) != 4:
        raise MXNetError(f"expected four variances, got {params.variances}")
    if any(shape is None for shape in ins):
        return ins, outs
    anchors, labels, predictions = (shape for shape in ins if shape is not None)
    wanted = "anchor (1, n, 4), label (batch, rows, at least 5) and cls_pred (batch, classes, n)"
    if {len(anchors), len(labels), len(predictions)} != {3} or labels[2] < 5:
        raise MXNetError(f"expected {wanted}, got {anchors}, {labels} and {predictions}")
    batch, count = labels[0], anchors[1]
    return ([merge(anchors, (1, count, 4)), labels, merge(predictions, (batch, 0, count))],
            [(batch, count * 4), (batch, count * 4), (batch, count)])


def box_nms_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Floats; the hidden output counts rows."""
    ins, out = floating(params, ins, outs[:1])
    return ins, [out[0], "int32"]


def assign_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """An index, and a number of the first input's dtype."""
    return ins, ["int32", ins[0]]
