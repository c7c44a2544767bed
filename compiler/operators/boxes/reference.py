"""The reference of operators on boxes."""
from __future__ import annotations

import numpy as np

from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws


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


def box_order(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Which rows non-maximum suppression keeps, in the order of ranks, counted over the whole batch; then -1."""
    data, ranks = inputs
    order = np.full(data.shape[:2], -1)
    for number, rows in enumerate(data):
        boxes = rows[:, params.coord_start:params.coord_start + 4]
        kinds = rows[:, params.id_index].astype(int) if params.id_index >= 0 else np.zeros(len(rows), int)
        kept: list[int] = []
        for i in ranks[number].astype(int):
            taken = rows[i, params.score_index] > params.valid_thresh
            if params.id_index >= 0:
                taken &= rows[i, params.id_index] != params.background_id
            rivals = [j for j in kept if params.force_suppress or kinds[i] == kinds[j]]
            if taken and not (overlaps(boxes[rivals], boxes[i], params.in_format) > params.overlap_thresh).any():
                kept.append(int(i))
        order[number, :len(kept)] = np.array(kept, int) + number * len(rows)
    return [order]


def kept_boxes(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
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


def box_nms(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
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
    scores = np.array(data[..., params.score_index].reshape(-1, shape[-2]))
    if params.id_index >= 0:
        scores[data[..., params.id_index].reshape(scores.shape) == params.background_id] = -np.inf
    ranks = np.argsort(-scores, axis=1, kind="stable")
    ranks = ranks[:, :params.topk] if params.topk > 0 else ranks
    order, = box_order(params, [data.reshape(-1, *shape[-2:]), ranks], is_train, rng)
    out, = kept_boxes(params, [rows, order.reshape(-1)], is_train, rng)
    return [out.reshape(shape), order.reshape(*shape[:-1], 1)]


def box_decode(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
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


def box_iou(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Intersection over union of each box with each other; 0 where there is none."""
    lhs, rhs = inputs
    each = lhs.reshape(*lhs.shape[:-1], *(1,) * (rhs.ndim - 1), 4)
    with np.errstate(invalid="ignore"):
        found = overlaps(each, rhs, params.format)
    return [np.where(found > 0, found, 0)]


def box_encode(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Offsets of the reference boxes that anchors match, as box_decode reads them, and a mask; 0 without a match."""
    samples, matches, anchors, refs, means, stds = inputs
    matched = np.stack([refs[b, each.astype(int)] for b, each in enumerate(matches)])
    mask = np.repeat(samples[..., None] > 0.5, 4, -1)
    parts = []
    for boxes in (anchors, matched):
        size = boxes[..., 2:] - boxes[..., :2]
        parts.append((boxes[..., :2] + size / 2, size))
    (at, size), (to, grown) = parts
    with np.errstate(invalid="ignore", divide="ignore"):
        codes = np.concatenate([(to - at) / size, np.log(grown / size)], -1)
    return [np.where(mask, (codes - means) / stds, 0), mask]


def match(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The column of each row and the row of each column, paired in the order of ranks; -1 for none."""
    data, ranks = inputs
    column_of, row_of = np.full(data.shape[:2], -1), np.full((len(data), data.shape[2]), -1)
    for matrix, order, columns, rows in zip(data, ranks.astype(int), column_of, row_of, strict=True):
        pairs = 0
        for place in order:
            row, column = divmod(int(place), data.shape[2])
            score = matrix[row, column]
            beyond = score < params.threshold if params.is_ascend else score > params.threshold
            if not beyond or (params.topk > 0 and pairs > params.topk):
                break
            if columns[row] < 0 and rows[column] < 0:
                columns[row], rows[column] = column, row
                pairs += 1
    return [column_of, row_of]


def bipartite_matching(params: Params, inputs: list[np.ndarray], is_train: bool,
                       rng: Draws) -> list[np.ndarray]:
    """Rows and columns in pairs, the best score first, each at most once, while scores are beyond the threshold.

    The column of each row and the row of each column, -1 for none. With topk there are up to topk + 1 pairs.
    """
    data = inputs[0].reshape(-1, *inputs[0].shape[-2:])
    flat = data.reshape(len(data), -1)
    ranks = np.argsort(flat if params.is_ascend else -flat, axis=1, kind="stable")
    column_of, row_of = match(params, [data, ranks], is_train, rng)
    shape = inputs[0].shape
    return [column_of.reshape(shape[:-1]), row_of.reshape(*shape[:-2], shape[-1])]


def multibox_prior(params: Params, inputs: list[np.ndarray], is_train: bool,
                   rng: Draws) -> list[np.ndarray]:
    """Boxes around each place of an image, as fractions of it: sizes at the first ratio, then other ratios at the first
    size. A size is a fraction of the height; a ratio is width to height."""
    return [_priors(params, *inputs[0].shape[2:4])]


def priors(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The priors of multibox_prior for an image of height times width places, which are parameters here."""
    return [_priors(params, params.height, params.width)]


def _priors(params: Params, height: int, width: int) -> np.ndarray:
    down, across = params.steps if min(params.steps) > 0 else (1 / height, 1 / width)
    shapes = [(size, params.ratios[0]) for size in params.sizes]
    shapes += [(params.sizes[0], ratio) for ratio in params.ratios[1:]]
    boxes = []
    for y in range(height):
        for x in range(width):
            cx, cy = (x + params.offsets[1]) * across, (y + params.offsets[0]) * down
            for size, ratio in shapes:
                root = np.sqrt(np.float64(ratio)) if ratio >= 0 else np.nan
                w, h = size * height / width * root / 2, size / root / 2
                boxes.append([cx - w, cy - h, cx + w, cy + h])
    return np.clip(boxes, 0, 1)[None] if params.clip else np.array(boxes)[None]


def detect(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Rows (class, score, coordinates): sorted and suppressed as far as nms_topk says, -1 behind them."""
    scores, kinds, boxes, ranks = inputs
    rows = np.concatenate([kinds[..., None], scores[..., None], boxes], -1)
    out = np.full_like(rows, -1)
    for found, given, order in zip(out, rows, ranks.astype(int), strict=True):
        valid = given[(given[:, 1] >= params.threshold) & (given[:, 1] > -1)]
        found[:len(valid)] = valid
        if not 0 < params.nms_threshold <= 1:
            continue
        most = min(len(valid), params.nms_topk) if params.nms_topk > 0 else len(valid)
        found[:most] = given[order[:most]]
        found[most:, 0] = -1
        for i in range(most):
            for j in range(i):
                one, two = found[i], found[j]
                if min(one[0], two[0]) < 0 or not (params.force_suppress or one[0] == two[0]):
                    continue
                across = max(min(one[4], two[4]) - max(one[2], two[2]), 0)
                down = max(min(one[5], two[5]) - max(one[3], two[3]), 0)
                union = sum((r[4] - r[2]) * (r[5] - r[3]) for r in (one, two)) - across * down
                if union > 0 and across * down / union >= params.nms_threshold:
                    one[0] = -1
    return [out]


def multibox_detection(params: Params, inputs: list[np.ndarray], is_train: bool,
                       rng: Draws) -> list[np.ndarray]:
    """The likeliest class of each box besides class 0, its probability, and the box; suppressed as `detect` does."""
    scores, offsets, anchors = inputs
    batch, classes, count = scores.shape
    if classes == 1:
        return [np.full((batch, count, 6), -1)]
    decoded = Params({**{f"std{i}": v for i, v in enumerate(params.variances)}, "clip": -1.0, "format": "corner"})
    boxes, = box_decode(decoded, [offsets.reshape(batch, count, 4), anchors], is_train, rng)
    boxes = np.clip(boxes, 0, 1) if params.clip else boxes
    best = scores[:, 1:].max(1)
    ranks = np.argsort(-best, axis=1, kind="stable")
    return detect(params, [best, scores[:, 1:].argmax(1), boxes, ranks], is_train, rng)


def assign(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The label of each anchor, -1 for none, -2 where an image has no labels; and its largest overlap with a label."""
    anchors, labels = inputs
    match, best = np.full((len(labels), anchors.shape[1]), -2), np.full((len(labels), anchors.shape[1]), -1.0)
    for row, top, given in zip(match, best, labels, strict=True):
        ended = np.flatnonzero(given[:, 0] == -1)
        boxes = given[:ended[0] if len(ended) else None, 1:5]
        if not len(boxes):
            continue
        one, two = anchors[0][:, None], boxes[None]
        sides = np.maximum(np.minimum(one[..., 2:], two[..., 2:]) - np.maximum(one[..., :2], two[..., :2]), 0)
        common = sides.prod(-1)
        union = sum((b[..., 2:] - b[..., :2]).prod(-1) for b in (one, two)) - common
        pairs = np.divide(common, union, out=np.zeros_like(common), where=union != 0)
        row[:], top[:] = -1, pairs.max(1)
        left = pairs.copy()
        while (left > 1e-6).any():
            anchor, label = np.unravel_index(left.argmax(), left.shape)
            row[anchor] = label
            left[anchor], left[:, label] = 0, 0
        if params.overlap_threshold > 0:
            row[:] = np.where((row == -1) & (top > params.overlap_threshold), pairs.argmax(1), row)
    return [match, best]


def mine(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """`match`, in which -1 becomes -2 except for the negative anchors that count."""
    match, best, ranks = inputs
    out = np.where(match >= 0, match.astype(int), -2)
    for row, marks, tops, order in zip(out, match, best, ranks.astype(int), strict=True):
        wanted = int(np.float32((marks >= 0).sum()) * np.float32(params.negative_mining_ratio))
        able = [j for j in order if marks[j] == -1 and tops[j] < params.negative_mining_thresh]
        row[able[:wanted]] = -1
    return [out]


def box_targets(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Offsets of the labels that anchors have to them, as box_decode reads them, and a mask; 0 without a label."""
    match, anchors, labels = inputs
    match = match.astype(int)
    means, stds = np.zeros(4), np.array(params.variances)
    each = np.broadcast_to(anchors, (len(match), *anchors.shape[1:]))
    given = [match >= 0, np.maximum(match, 0), each, labels[..., 1:5], means, stds]
    return [a.reshape(len(match), -1) for a in box_encode(params, given, is_train, rng)]


def class_targets(params: Params, inputs: list[np.ndarray], is_train: bool,
                  rng: Draws) -> list[np.ndarray]:
    """The class of the label plus 1; 0 for a negative anchor, ignore_label for one that does not count."""
    match, labels = inputs
    match = match.astype(int)
    classes = np.take_along_axis(labels[..., 0], np.maximum(match, 0), 1) + 1
    return [np.where(match >= 0, classes, np.where(match == -1, 0, params.ignore_label))]


def multibox_target(params: Params, inputs: list[np.ndarray], is_train: bool,
                    rng: Draws) -> list[np.ndarray]:
    """Offsets and their mask, and classes that anchors should predict; negatives where the background is least likely.
    """
    anchors, labels, predictions = inputs
    match, best = assign(params, [anchors, labels], is_train, rng)
    if params.negative_mining_ratio > 0:
        powers = np.exp(predictions - predictions.max(1, keepdims=True))
        chances = (powers / powers.sum(1, keepdims=True))[:, 0]
        match, = mine(params, [match, best, np.argsort(chances, axis=1, kind="stable")], is_train, rng)
    return [*box_targets(params, [match, anchors, labels], is_train, rng),
            *class_targets(params, [match, labels], is_train, rng)]
