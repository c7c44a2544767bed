"""Operators on boxes, where MXNet's answers do not tell: what it refuses while it runs."""
from __future__ import annotations

import numpy as np

from mxc import cpu, nd, sym

ANCHORS = np.array([[[0, 0, 1, 1], [0, 0, 1, 0.5], [5, 5, 6, 6], [7, 7, 8, 8]]], np.float32)


def classes(label: list[list[float]], **attrs: float) -> list[float]:
    """cls_target of MultiBoxTarget for ANCHORS and one image's labels."""
    names = ("anchor", "label", "cls_pred")
    net = sym.contrib.MultiBoxTarget(*map(sym.Variable, names), overlap_threshold=0.9, **attrs)
    arrays = (ANCHORS, np.array([label], np.float32), np.zeros((1, 3, 4), np.float32))
    executor = net.bind(cpu(), dict(zip(names, map(nd.array, arrays), strict=True)))
    return executor.forward()[2].asnumpy().ravel().tolist()


def test_fewer_negatives_than_wanted() -> None:
    assert classes([[1, 0, 0, 1, 1]], negative_mining_ratio=3, negative_mining_thresh=0.4) == [2, -1, 0, 0]


def test_a_label_of_class_minus_one_ends_the_list() -> None:
    assert classes([[1, 0, 0, 1, 1], [-1, 5, 5, 6, 6], [0, 7, 7, 8, 8]]) == [2, 0, 0, 0]
