"""References of operators on boxes."""
from __future__ import annotations

import numpy as np

from mxc.compiler.ops.table import Params


def corners(boxes: np.ndarray, form: str) -> list[np.ndarray]:
    """left, top, right, bottom of boxes (..., 4) given by their corners, or by centre and size."""
    a, b, c, d = np.moveaxis(boxes, -1, 0)
    return [a, b, c, d] if form == "corner" else [a - c / 2, b - d / 2, a + c / 2, b + d / 2]


def areas(boxes: np.ndarray, form: str) -> np.ndarray:
    """Width times height, 0 where one is negative."""
    a, b, c, d = np.moveaxis(boxes, -1, 0)
    width, height = (c - a, d - b) if form == "corner" else (c, d)
    return np.where((width < 0) | (height < 0), 0, width * height).astype(boxes.dtype)


def overlaps(lhs: np.ndarray, rhs: np.ndarray, form: str) -> np.ndarray:
    """Intersection over union of (a..., 4) and (b..., 4), which broadcast; NaN for the 0 of two boxes without area."""
    one, two = corners(lhs, form), corners(rhs, form)
    width = np.maximum(np.minimum(one[2], two[2]) - np.maximum(one[0], two[0]), 0)
    height = np.maximum(np.minimum(one[3], two[3]) - np.maximum(one[1], two[1]), 0)
    common = width * height
    with np.errstate(invalid="ignore", divide="ignore"):
        return common / (areas(lhs, form) + areas(rhs, form) - common)


def box_order(params: Params, inputs: list[np.ndarray], is_train: bool, rng: np.random.Generator) -> list[np.ndarray]:
    """Which rows non-maximum suppression keeps, best score first, counted over the whole batch; then -1."""
    data = inputs[0]
    order = np.full(data.shape[:2], -1)
    for number, rows in enumerate(data):
        scores = rows[:, params.score_index]
        valid = scores > params.valid_thresh
        if params.id_index >= 0 and params.background_id >= 0:
            valid &= rows[:, params.id_index] != params.background_id
        ranked = sorted(np.flatnonzero(valid), key=lambda i: -scores[i])
        ranked = ranked[:params.topk] if params.topk > 0 else ranked
        boxes = rows[:, params.coord_start:params.coord_start + 4]
        kept: list[int] = []
        for i in ranked:
            rivals = kept
            if params.id_index >= 0 and not params.force_suppress:
                kinds = rows[:, params.id_index]
                rivals = [j for j in kept if int(kinds[i]) == int(kinds[j])]
            if not (overlaps(boxes[rivals], boxes[i], params.in_format) > params.overlap_thresh).any():
                kept.append(int(i))
        order[number, :len(kept)] = np.array(kept, int) + number * len(rows)
    return [order]


def kept_boxes(params: Params, inputs: list[np.ndarray], is_train: bool, rng: np.random.Generator) -> list[np.ndarray]:
    """The rows of data that `order` names, -1 in all columns for -1; coordinates from one format to the other, but
    not of boxes whose first coordinate is negative."""
    data, order = inputs
    order = order.astype(int)
    out = np.where(order[:, None] >= 0, data[order], np.array(-1, data.dtype))
    if params.in_format != params.out_format:
        part = slice(params.coord_start, params.coord_start + 4)
        boxes = out[:, part]
        other = np.stack(corners(boxes, "center"), -1)
        if params.out_format == "center":
            low, high = boxes[:, :2], boxes[:, 2:]
            other = np.concatenate([(low + high) / 2, high - low], -1)
        out[:, part] = np.where(boxes[:, :1] < 0, boxes, other)
    return [out]


def box_nms(params: Params, inputs: list[np.ndarray], is_train: bool, rng: np.random.Generator) -> list[np.ndarray]:
    """The boxes that non-maximum suppression keeps, best score first; -1 in the rows behind them.

    A box goes when it overlaps one of a better score, of its class if there are classes, by more than overlap_thresh.
    Scores not above valid_thresh and background boxes take no part; nor do more than topk. With topk 0 the data is
    handed on as it is.
    """
    data = inputs[0]
    shape = data.shape
    rows = data.reshape(-1, shape[-1])
    if params.topk == 0:
        return [data, np.arange(len(rows)).reshape(*shape[:-1], 1)]
    order, = box_order(params, [data.reshape(-1, *shape[-2:])], is_train, rng)
    out, = kept_boxes(params, [rows, order.reshape(-1)], is_train, rng)
    return [out.reshape(shape), order.reshape(*shape[:-1], 1)]


def box_decode(params: Params, inputs: list[np.ndarray], is_train: bool, rng: np.random.Generator) -> list[np.ndarray]:
    """Boxes as corners from their offsets to anchors: centres in sizes of the anchor, sizes as logarithms."""
    data, anchors = inputs
    stds = np.array([params.std0, params.std1, params.std2, params.std3], data.dtype)
    at, size = anchors[..., :2], anchors[..., 2:]
    if params.format == "corner":
        size = size - at
        at = at + size / 2
    grown = data[..., 2:] * stds[2:]
    if params.clip > 0:
        grown = np.minimum(grown, np.array(params.clip, data.dtype))
    centre, half = data[..., :2] * stds[:2] * size + at, np.exp(grown) * size / 2
    return [np.concatenate([centre - half, centre + half], -1)]


def box_iou(params: Params, inputs: list[np.ndarray], is_train: bool, rng: np.random.Generator) -> list[np.ndarray]:
    """Intersection over union of each box with each other; 0 where there is none."""
    lhs, rhs = inputs
    each = lhs.reshape(*lhs.shape[:-1], *(1,) * (rhs.ndim - 1), 4)
    with np.errstate(invalid="ignore"):
        found = overlaps(each, rhs, params.format)
    return [np.where(found > 0, found, 0)]
