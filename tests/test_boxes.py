"""Operators on boxes, where MXNet's answers do not tell: what it refuses while it runs."""
from __future__ import annotations

import numpy as np
import pytest

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


@pytest.mark.parametrize("formats", [("center", "corner"), ("corner", "center")], ids="-".join)
def test_boxes_that_hold_nan_change_their_format(formats: tuple[str, str]) -> None:
    """All but those whose first coordinate is below 0 do, in compiled code as for arrays, where MXNet's answers are
    these."""
    rows = [[0.9, np.nan, 2, 3, 4], [0.8, 1, np.nan, 3, 4], [0.7, -1, 2, 3, 4], [0.6, 1, 2, 3, 4]]
    boxes = np.array([rows], np.float32)
    attrs = dict(zip(("in_format", "out_format"), formats, strict=True), coord_start=1, score_index=0, overlap_thresh=1)
    answer = nd.contrib.box_nms(nd.array(boxes), **attrs).asnumpy()
    first = [np.nan, 0, np.nan, 4] if formats[0] == "center" else [np.nan, 3, np.nan, 2]
    np.testing.assert_array_equal(answer[0, 0, 1:], np.float32(first))
    assert answer[0, 2, 1:].tolist() == [-1, 2, 3, 4]
    executor = sym.contrib.box_nms(sym.Variable("data"), **attrs).bind(cpu(), {"data": nd.array(boxes)})
    np.testing.assert_array_equal(executor.forward()[0].asnumpy(), answer)
