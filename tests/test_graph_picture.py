"""The picture of a graph: where boxes lie, what is one box, what is drawn once."""
from __future__ import annotations

import random
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

import mxc as mx
from mxc.visualization.graph import graph_svg
from mxc.visualization.placing import GAP, place

SVG = "{http://www.w3.org/2000/svg}"


def words(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg.encode()).iter(f"{SVG}text")]


def random_graph(seed: int) -> tuple[list[tuple[float, float]], list[tuple[int, int]]]:
    rng = random.Random(seed)
    count = rng.randrange(1, 25)
    arrows = {(a, b) for b in range(1, count) for a in rng.sample(range(b), min(b, rng.randrange(3)))}
    return [(rng.uniform(20, 300), rng.uniform(10, 200)) for _ in range(count)], sorted(arrows)


@pytest.mark.parametrize("seed", range(30))
def test_boxes_do_not_overlap_and_arrows_go_down(seed: int):
    sizes, arrows = random_graph(seed)
    placed = place(sizes, arrows)
    assert len(placed.arrows) == len(arrows)
    rows: dict[float, list[tuple[float, float]]] = {}
    for (width, height), x, y in zip(sizes, placed.centres, placed.tops, strict=True):
        assert x - width / 2 >= -1e-6 and x + width / 2 <= placed.width + 1e-6
        assert y >= 0 and y + height <= placed.height + 1e-6
        rows.setdefault(y, []).append((x - width / 2, x + width / 2))
    for row in rows.values():
        assert all(right[0] - left[1] >= GAP - 1e-6 for left, right in pairwise(sorted(row)))
    for (start, end), line in zip(arrows, placed.arrows, strict=True):
        heights = [y for _, y in line]
        assert heights == sorted(heights)
        assert line[0] == (placed.centres[start], placed.tops[start] + sizes[start][1])
        assert line[-1] == (placed.centres[end], placed.tops[end])


def test_nothing_has_a_place_too():
    assert place([], []).width == 0


def test_a_ladder_has_no_crossings_and_straight_sides():
    """Two chains with rungs between them stay two columns."""
    arrows = [(i, i + 2) for i in range(10)] + [(0, 3), (4, 7)]
    placed = place([(50.0, 20.0)] * 12, arrows)
    left = [placed.centres[i] for i in range(0, 12, 2)]
    right = [placed.centres[i] for i in range(1, 12, 2)]
    assert max(left) < min(right) or max(right) < min(left)


def residual() -> mx.sym.Symbol:
    data = mx.sym.Variable("data")
    net = mx.sym.Convolution(data, kernel=(3, 3), stride=(2, 2), pad=(1, 1), num_filter=4, name="conv")
    net = mx.sym.Activation(mx.sym.BatchNorm(net, name="bn"), act_type="relu", name="relu")
    inner = mx.sym.Convolution(net, kernel=(1, 1), num_filter=4, name="inner")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Flatten(net + inner), num_hidden=3, name="fc"),
                                name="softmax")


def test_chains_are_boxes():
    svg = graph_svg(residual(), {"data": (1, 2, 8, 8)}, "net & more")
    assert words(svg)[:2] == ["net & more", "10 operators and inputs in 6 boxes"]
    rows = words(svg)[2:]
    assert ("Convolution 3x3/2x2, 4", "1x4x4x4") in pairwise(rows) and ("BatchNorm", "1x4x4x4") in pairwise(rows)
    assert not [row for row in rows if "weight" in row or "moving" in row]
    assert len(re.findall('class="arrow"', svg)) == 6  # data, both branches, their sum, the sum's chain, the label
    assert "<title>conv: Convolution(kernel=(3, 3), " in svg and "<title>data to conv</title>" in svg


def test_equal_work_for_many_classes_is_drawn_once():
    data = mx.sym.Variable("data")
    parts = [mx.sym.exp(mx.sym.slice_axis(data, axis=1, begin=i, end=i + 1)) for i in range(20)]
    other = mx.sym.slice_axis(data, axis=1, begin=0, end=1)
    found = words(graph_svg(mx.sym.Concat(*parts, other, dim=1), {"data": (2, 20)}, "many"))
    assert found[1] == "43 operators and inputs in 23 boxes, 4 of them drawn"
    assert "20 times" in found and found.count("exp") == 1 and "slice_axis axis=1, begin=0, end=1" in found


def test_branches_that_differ_stay_apart():
    data = mx.sym.Variable("data")
    parts = [mx.sym.Convolution(data, kernel=(1, 1), num_filter=n) for n in (1, 2, 3, 4, 5)]
    found = words(graph_svg(mx.sym.Concat(*parts), {"data": (1, 2, 4, 4)}, "several"))
    assert [row for row in found if row.startswith("Convolution")] == [f"Convolution 1x1, {n}" for n in range(1, 6)]


def test_shapes_that_are_not_known_are_question_marks():
    assert words(graph_svg(residual(), {}, "open")).count("?") >= 5
