"""Report O18: pooling over regions of images, computed by hand."""
from __future__ import annotations

import numpy as np
import pytest

from mxc import cpu, sym

DATA, ROIS = sym.Variable("data"), sym.Variable("rois")
SQUARE = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)


def pooled(net: sym.Symbol, *rois: tuple[float, ...]) -> list:
    executor = net.simple_bind(cpu(), grad_req="null", data=SQUARE.shape, rois=(len(rois), 5))
    executor.arg_dict["data"][:] = SQUARE
    executor.arg_dict["rois"][:] = np.array(rois, np.float32)
    return executor.forward()[0].asnumpy()[:, 0].tolist()


@pytest.mark.parametrize("roi, expected", [
    ((0, 0, 0, 3, 3), [[5, 7], [13, 15]]),
    ((0, .5, .5, 2.5, 1.5), [[6, 7], [10, 11]]),  # halves go away from zero: 1 to 3, 1 to 2
    ((0, -2, -2, 1, 1), [[0, 0], [0, 5]]),  # parts outside of the image are 0
    ((0, 2, 2, 1, 1), [[10, 10], [10, 10]]),  # at least one element large
    ((0, 6, 6, 9, 9), [[0, 0], [0, 0]]),
    ((-1, 0, 0, 2, 2), [[0, 0], [0, 0]]),
    ((1, 0, 0, 2, 2), [[0, 0], [0, 0]]),
    ((float("nan"), 0, 0, 2, 2), [[0, 0], [0, 0]]),
    ((0, 0, float("nan"), 2, 2), [[0, 0], [0, 0]]),
    ((0, 0, 0, float("inf"), 2), [[0, 0], [0, 0]]),
])
def test_o18_roi_pooling(roi: tuple[float, ...], expected: list) -> None:
    assert pooled(sym.ROIPooling(DATA, ROIS, pooled_size=(2, 2), spatial_scale=1), roi) == [expected]


@pytest.mark.parametrize("roi, expected", [
    ((0, 0, 0, 3, 3), [[3.75, 5.25], [9.75, 11.25]]),  # no element more than the corners say
    ((0, 0, 0, 2, 2), [[2.5, 3.5], [6.5, 7.5]]),
    ((0, 2, 2, 1, 1), [[11.25, 11.75], [13.25, 13.75]]),  # at least one element large
    ((0, 9, 9, 12, 12), [[0, 0], [0, 0]]),
    ((-1, 0, 0, 2, 2), [[0, 0], [0, 0]]),
    ((7, 0, 0, 2, 2), [[0, 0], [0, 0]]),
])
def test_o18_roi_align(roi: tuple[float, ...], expected: list) -> None:
    found = pooled(sym.contrib.ROIAlign(DATA, ROIS, pooled_size=(2, 2), spatial_scale=1), roi)
    np.testing.assert_allclose(found, [expected], rtol=1e-6)


def test_o18_roi_align_aligned() -> None:
    """Half an element less everywhere: 0.5..3.5 covers the elements 0..3 as 0..3 does without."""
    net = sym.contrib.ROIAlign(DATA, ROIS, pooled_size=(2, 2), spatial_scale=1, aligned=True)
    assert pooled(net, (0, 3, 3, 1, 1)) == [[[0, 0], [0, 0]]]  # turned around
    np.testing.assert_allclose(pooled(net, (0, .5, .5, 3.5, 3.5)), [[[3.75, 5.25], [9.75, 11.25]]], rtol=1e-6)
