"""The reference of losses."""
from __future__ import annotations

from itertools import pairwise

import numpy as np

from mxc.compiler.operators.softmax.reference import softmax_over
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws


def softmax_output(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                   ) -> list[np.ndarray]:
    """softmax over axis 1 (multi_output), the last axis (preserve_shape), or everything in a sample."""
    x = inputs[0].astype(np.float64)
    if params.multi_output:
        return [softmax_over(x, 1)]
    return [softmax_over(x, x.ndim - 1 if params.preserve_shape else tuple(range(1, x.ndim)) or (0,))]


def first_of(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The first input: what regression outputs pass on."""
    return [inputs[0]]


def logistic_output(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                    ) -> list[np.ndarray]:
    """sigmoid of the first input."""
    x = inputs[0].astype(np.float64)
    powers = np.exp(-np.abs(x))
    return [np.where(x >= 0, 1, powers) / (1 + powers)]


def softmax_cross_entropy(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                          ) -> list[np.ndarray]:
    """The sum of -log(softmax at the label's class). A probability below 1e-8 counts as 1e-8; so does that of a label
    that is no class."""
    x, label = inputs[0].astype(np.float64), np.trunc(inputs[1]).astype(np.int64)
    powers = np.exp(x - x.max(1, keepdims=True))
    chosen = np.where(label[:, None] == np.arange(x.shape[1]), powers / powers.sum(1, keepdims=True), 0).sum(1)
    return [-np.log(np.maximum(chosen, 1e-8)).sum(keepdims=True)]


def ctc_loss(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The loss of each row, and its gradient."""
    data, label, *rest = inputs
    data = data.astype(np.float64)
    shifted = data - data.max(2, keepdims=True)
    logits = shifted - np.log(np.exp(shifted).sum(2, keepdims=True))
    steps, batch, classes = data.shape
    data_lengths = rest.pop(0) if params.use_data_lengths else np.full(batch, steps)
    label_lengths = np.maximum(rest.pop(0), 0) if params.use_label_lengths else np.full(batch, -1)
    blank, padding = (0, 0) if params.blank_label == "first" else (classes - 1, -1)
    rows = _ctc_rows([logits, label, data_lengths, label_lengths], blank, padding)
    return [np.array([loss for loss, _ in rows]), np.stack([grad for _, grad in rows], 1)]


def ctc_steps(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The loss of each row, from logarithms of probabilities."""
    return [np.array([loss for loss, _ in _ctc_rows(inputs, params.blank, params.padding)])]


def ctc_steps_grad(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The gradient of each row's loss."""
    return [np.stack([grad for _, grad in _ctc_rows(inputs, params.blank, params.padding)], 1)]


def _ctc_rows(inputs: list[np.ndarray], blank: int, padding: int) -> list[tuple[float, np.ndarray]]:
    """Loss and gradient (steps, classes) of each row of a batch. Labels and lengths are rounded, half up."""
    logits = inputs[0]
    label, data_lengths, label_lengths = (np.floor(each + 0.5).astype(int) for each in inputs[1:])
    made = []
    for n in range(logits.shape[1]):
        stop = int(label_lengths[n])
        if stop < 0:
            stop = next((i for i, one in enumerate(label[n]) if one == padding), label.shape[1])
        names = label[n, :stop].tolist()
        count = min(max(int(data_lengths[n]), 0), len(logits))
        loss, back = _ctc(logits[:count, n].astype(np.float64), names, blank)
        made.append((loss, np.concatenate([back, np.zeros((len(logits) - count, logits.shape[2]))])))
    return made


def _ctc(logits: np.ndarray, label: list[int], blank: int) -> tuple[float, np.ndarray]:
    """Loss and gradient of one row (steps, classes). Both are 0 where the label does not fit into the steps.

    A path goes through blank, label 0, blank, label 1, ..., blank: from a place to itself or the next, or over a blank
    between two labels that differ. ahead[t, i] is the logarithm of the probability of all paths up to step t and place
    i, behind[t, i] of all that go on from there.
    """
    steps, classes = logits.shape
    repeats = sum(one == other for one, other in pairwise(label))
    if not steps or len(label) + repeats > steps:
        return 0.0, np.zeros((steps, classes))
    places = [blank]
    for one in label:
        places += [one, blank]
    emitted = np.full((steps, len(places)), -np.inf)  # A place whose label is no class keeps the probability 0.
    for i, one in enumerate(places):
        if 0 <= one < classes:
            emitted[:, i] = logits[:, one]
    before = [[i, *([i - 1] if i else []), *([i - 2] if i > 1 and places[i] not in (blank, places[i - 2]) else [])]
              for i in range(len(places))]
    ahead, behind = np.full((2, steps, len(places)), -np.inf)
    ahead[0, :2] = emitted[0, :2]
    for t in range(1, steps):
        for i, reached in enumerate(before):
            ahead[t, i] = np.logaddexp.reduce(ahead[t - 1, reached]) + emitted[t, i]
    behind[-1, -2:] = 0
    for t in range(steps - 2, -1, -1):
        for i, reached in enumerate(before):
            for j in reached:
                behind[t, j] = np.logaddexp(behind[t, j], behind[t + 1, i] + emitted[t + 1, i])
    total = np.logaddexp.reduce(ahead[-1, -2:])
    back = np.exp(logits)
    if total > -np.inf:
        for i, one in enumerate(places):
            if 0 <= one < classes:
                back[:, one] -= np.exp(ahead[:, i] + behind[:, i] - total)
    return float(-total), back
