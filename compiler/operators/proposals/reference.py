"""The reference of region proposals."""
from __future__ import annotations

import numpy as np

from mxc.compiler.operators.boxes.reference import box_order
from mxc.compiler.operators.proposals.shape import base_anchors
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws


def proposals(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Score, left, top, and right and bottom plus 1 of the box of each anchor at each place."""
    scores, offsets, images = inputs
    batch, _, height, width = scores.shape
    anchors = np.array(base_anchors(params), np.float32)
    count = len(anchors)
    y, x = np.mgrid[:height, :width] * params.feature_stride
    boxes = np.stack([x, y, x, y], -1)[None, :, :, None] + anchors
    moves = offsets.reshape(batch, count, 4, height, width).transpose(0, 3, 4, 1, 2)
    if params.iou_loss:
        boxes = boxes + moves
    else:
        size = boxes[..., 2:] - boxes[..., :2] + 1
        centre = moves[..., :2] * size + boxes[..., :2] + (size - 1) / 2
        half = (np.exp(moves[..., 2:]) * size - 1) / 2
        boxes = np.concatenate([centre - half, centre + half], -1)
    rows = []
    for part, found, image in zip(boxes, scores, images, strict=True):
        part = np.maximum(np.minimum(part, np.tile(image[1::-1] - 1, 2)), 0)
        smallest = params.rpn_min_size * image[2]
        small = (part[..., 2:] - part[..., :2] + 1 < smallest).any(-1)
        part = part + small[..., None] * np.array([-0.5, -0.5, 0.5, 0.5]) * smallest
        score = found[count:2 * count].transpose(1, 2, 0)
        inside = (y < int(image[0] / params.feature_stride) * params.feature_stride) & (
            x < int(image[1] / params.feature_stride) * params.feature_stride)
        score = np.where(small | ~inside[..., None], -1, score)
        part[..., 2:] += 1
        rows.append(np.concatenate([score[..., None], part], -1).reshape(-1, 5))
    return [np.array(rows)]


def kept_proposals(params: Params, inputs: list[np.ndarray], is_train: bool,
                   rng: Draws) -> list[np.ndarray]:
    """Rows (image, box) and their scores: those that are kept, repeated until there are `count` for each image."""
    data, order, kept = inputs
    out, scores = [], []
    for image, (rows, number) in enumerate(zip(order.astype(int), kept.astype(int), strict=True)):
        for i in range(params.count):
            score, *box = data[max(rows[i % max(min(number, params.most), 1)], 0)]
            out.append([image, *box[:2], box[2] - 1, box[3] - 1])
            scores.append([score])
    return [np.array(out), np.array(scores)]


def multi_proposal(params: Params, inputs: list[np.ndarray], is_train: bool,
                   rng: Draws) -> list[np.ndarray]:
    """The best boxes of each image that are left by suppression: (image, corners), and their scores."""
    data, = proposals(params, inputs, is_train, rng)
    data = data.astype(np.float32)
    before = params.rpn_pre_nms_top_n if params.rpn_pre_nms_top_n > 0 else data.shape[1]
    ranks = np.argsort(-data[..., 0], axis=1, kind="stable")[:, :before]
    given = Params({"coord_start": 1, "score_index": 0, "id_index": -1, "background_id": -1, "force_suppress": False,
                    "in_format": "corner", "valid_thresh": -np.inf, "overlap_thresh": params.threshold})
    order, = box_order(given, [data, ranks], is_train, rng)
    last = Params({"count": params.rpn_post_nms_top_n, "most": min(params.rpn_post_nms_top_n, ranks.shape[1])})
    return kept_proposals(last, [data.reshape(-1, 5), order, (order >= 0).sum(1)], is_train, rng)
