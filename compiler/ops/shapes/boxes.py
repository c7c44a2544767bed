"""Shapes of operators on boxes. A box has four coordinates: two corners, or its centre and its size."""
from __future__ import annotations

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.shapes.basic import Shape, Shapes, merge
from mxc.compiler.ops.table import Params


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
    """Raises MXNetError unless score, class and coordinates are columns of their own of rows of `width` (0: unknown)."""
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
    """data (batch, boxes, width) -> (batch, boxes)."""
    return ins, [None if ins[0] is None else ins[0][:2]]


def kept_boxes(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (rows, width), order (rows,) -> data's shape."""
    return ins, [ins[0]]


def box_decode(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (batch, boxes, 4), anchors (1, boxes, 4) -> data's shape."""
    data, anchors = merge(ins[0], outs[0]), ins[1]
    for name, shape in (("data", data), ("anchors", anchors)):
        if shape is not None and (len(shape) != 3 or shape[2] not in (0, 4)):
            raise MXNetError(f"expected {name} of shape (batch, boxes, 4), got {shape}")
    if data is not None and anchors is not None:
        if anchors[0] > 1 or (data[1] and anchors[1] and data[1] != anchors[1]):
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
