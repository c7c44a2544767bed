"""Packed weights."""
from __future__ import annotations

import pytest
from pass_checks import assert_graph, assert_same_numbers, options

from mxc.compiler.graph.text import parse_graph
from mxc.compiler.passes.layout import layout

WINDOW = "kernel=(3, 3), stride=(2, 2), dilate=(1, 1), pad=(1, 1)"
DENSE = "kernel=(3, 3), stride=(1, 1), dilate=(1, 1), pad=(1, 1)"
APART = "kernel=(4, 4), stride=(2, 2), dilate=(1, 1), pad=(1, 1)"
CASES = {
    "convolution": (
        f"graph(x: float32[2,4,5,6], w: float32[6,2,3,3])\n"
        f" y = Convolution(x, w, {WINDOW}, num_filter=6, num_group=2, no_bias=True)\n return y",
        f"graph(x: float32[2,4,5,6], w: float32[6,2,3,3])\n r = Reshape(w, shape=(2, 3, 18))\n"
        f" p = _mxc_pack_rows(r, block=4)\n"
        f" y = _mxc_convolution(x, p, {WINDOW}, num_filter=6, num_group=2, block=4)\n return y"),
    "convolution in one axis": (
        "graph(x: float32[2,3,7], w: float32[5,3,3])\n y = Convolution(x, w, kernel=(3,), stride=(2,), dilate=(2,), "
        "pad=(1,), num_filter=5, no_bias=True)\n return y",
        "graph(x: float32[2,3,7], w: float32[5,3,3])\n r = Reshape(w, shape=(1, 5, 9))\n"
        " p = _mxc_pack_rows(r, block=4)\n y = _mxc_convolution(x, p, kernel=(3,), stride=(2,), dilate=(2,), pad=(1,), "
        "num_filter=5, num_group=1, block=4)\n return y"),
    "depthwise convolution": (
        f"graph(x: float32[2,4,5,6], w: float32[4,1,3,3])\n"
        f" y = Convolution(x, w, {WINDOW}, num_filter=4, num_group=4, no_bias=True)\n return y",
        f"graph(x: float32[2,4,5,6], w: float32[4,1,3,3])\n y = _mxc_depthwise(x, w, {WINDOW})\n return y"),
    "gradient to the data": (
        f"graph(g: float32[2,6,5,6], w: float32[6,2,3,3])\n"
        f" y = _mxc_conv_data_grad(g, w, {DENSE}, num_group=2, shape=(2, 4, 5, 6))\n return y",
        f"graph(g: float32[2,6,5,6], w: float32[6,2,3,3])\n a = Reshape(w, shape=(2, 3, 2, 9))\n"
        f" t = transpose(a, axes=(0, 2, 1, 3))\n r = Reshape(t, shape=(2, 2, 27))\n p = _mxc_pack_rows(r, block=4)\n"
        f" y = _mxc_convolution_data_grad(g, p, {DENSE}, num_group=2, shape=(2, 4, 5, 6), block=4)\n return y"),
    "gradient to the data, strided": (
        f"graph(g: float32[2,6,3,3], w: float32[6,2,3,3])\n"
        f" y = _mxc_conv_data_grad(g, w, {WINDOW}, num_group=2, shape=(2, 4, 5, 6))\n return y",
        f"graph(g: float32[2,6,3,3], w: float32[6,2,3,3])\n"
        f" y = _mxc_convolution_data_grad(g, w, {WINDOW}, num_group=2, shape=(2, 4, 5, 6), block=0)\n return y"),
    "gradients, strided, of one tap": (
        "graph(x: float32[2,4,5,6], g: float32[2,6,3,2], w: float32[6,4,1,1])\n"
        " y = _mxc_conv_data_grad(g, w, kernel=(1, 1), stride=(2, 3), dilate=(1, 1), pad=(0, 0), num_group=1, "
        "shape=(2, 4, 5, 6))\n"
        " z = _mxc_conv_weight_grad(x, g, kernel=(1, 1), stride=(2, 3), dilate=(1, 1), pad=(0, 0), num_group=1)\n"
        " return y, z",
        "graph(x: float32[2,4,5,6], g: float32[2,6,3,2], w: float32[6,4,1,1])\n a = Reshape(w, shape=(1, 6, 4, 1))\n"
        " t = transpose(a, axes=(0, 2, 1, 3))\n r = Reshape(t, shape=(1, 4, 6))\n p = _mxc_pack_rows(r, block=4)\n"
        " d = _mxc_convolution_data_grad(g, p, kernel=(1, 1), stride=(1, 1), dilate=(1, 1), pad=(0, 0), num_group=1, "
        "shape=(2, 4, 3, 2), block=4)\n o = _full(shape=(2, 4, 5, 6), value=0, dtype=float32)\n"
        " y = _slice_assign(o, d, begin=(0, 0, 0, 0), end=(2, 4, 5, 6), step=(1, 1, 2, 3))\n"
        " s = slice(x, begin=(0, 0, 0, 0), end=(2, 4, 5, 6), step=(1, 1, 2, 3))\n"
        " z = _mxc_conv_weight_grad(s, g, kernel=(1, 1), stride=(1, 1), dilate=(1, 1), pad=(0, 0), num_group=1)\n"
        " return y, z"),
    "depthwise gradients": (
        f"graph(x: float32[2,4,5,6], g: float32[2,4,3,3], w: float32[4,1,3,3])\n"
        f" y = _mxc_conv_data_grad(g, w, {WINDOW}, num_group=4, shape=(2, 4, 5, 6))\n"
        f" z = _mxc_conv_weight_grad(x, g, {WINDOW}, num_group=4)\n return y, z",
        f"graph(x: float32[2,4,5,6], g: float32[2,4,3,3], w: float32[4,1,3,3])\n"
        f" y = _mxc_depthwise_data_grad(g, w, {WINDOW}, shape=(2, 4, 5, 6))\n"
        f" z = _mxc_depthwise_weight_grad(x, g, {WINDOW})\n return y, z"),
    "gradient to the weight": (
        f"graph(x: float32[2,4,5,6], g: float32[2,6,3,3])\n"
        f" z = _mxc_conv_weight_grad(x, g, {WINDOW}, num_group=2)\n return z", None),
    "fully connected": (
        "graph(x: float32[9,5], w: float32[10,5])\n"
        " y = FullyConnected(x, w, num_hidden=10, no_bias=True, flatten=False)\n return y",
        "graph(x: float32[9,5], w: float32[10,5])\n r = Reshape(w, shape=(1, 10, 5))\n p = _mxc_pack_rows(r, block=8)\n"
        " y = _mxc_fully_connected(x, p, num_hidden=10, block=8)\n return y"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_static_weight(name):
    before, after = CASES[name]
    graph = parse_graph(before)
    result = layout(graph, options(static=frozenset("w")))
    assert_graph(result, after or before)
    assert_same_numbers(graph, result)


CHANGES = {
    "convolution of few pixels": (
        CASES["convolution"][0], f"graph(x: float32[2,4,5,6], w: float32[6,2,3,3])\n"
        f" y = _mxc_convolution(x, w, {WINDOW}, num_filter=6, num_group=2, block=0)\n return y"),
    "gradient to the data of few pixels": (
        CASES["gradient to the data"][0], f"graph(g: float32[2,6,5,6], w: float32[6,2,3,3])\n"
        f" y = _mxc_convolution_data_grad(g, w, {DENSE}, num_group=2, shape=(2, 4, 5, 6), block=0)\n return y"),
    "convolution of many pixels": (
        "graph(x: float32[3,2,15,9], w: float32[5,2,1,1])\n y = Convolution(x, w, kernel=(1, 1), stride=(1, 1), "
        "dilate=(1, 1), pad=(0, 0), num_filter=5, no_bias=True)\n return y",
        "graph(x: float32[3,2,15,9], w: float32[5,2,1,1])\n r = Reshape(w, shape=(1, 5, 2))\n"
        " p = _mxc_pack_rows(r, block=4)\n y = _mxc_convolution(x, p, kernel=(1, 1), stride=(1, 1), dilate=(1, 1), "
        "pad=(0, 0), num_filter=5, num_group=1, block=4)\n return y"),
    "as many images as lanes": (
        f"graph(x: float32[8,5,4,6], w: float32[6,5,3,3])\n"
        f" y = Convolution(x, w, {DENSE}, num_filter=6, no_bias=True)\n return y",
        f"graph(x: float32[8,5,4,6], w: float32[6,5,3,3])\n"
        f" y = _mxc_convolution(x, w, {DENSE}, num_filter=6, num_group=1, block=0, by_images=True)\n return y"),
    "as many images as lanes, a large map": (
        f"graph(x: float32[4,5,40,20], w: float32[6,5,3,3])\n"
        f" y = Convolution(x, w, {DENSE}, num_filter=6, no_bias=True)\n return y",
        f"graph(x: float32[4,5,40,20], w: float32[6,5,3,3])\n r = Reshape(w, shape=(1, 6, 45))\n"
        f" p = _mxc_pack_rows(r, block=4)\n"
        f" y = _mxc_convolution(x, p, {DENSE}, num_filter=6, num_group=1, block=4)\n return y"),
    "a large map of few channels": (
        f"graph(x: float32[4,3,40,20], w: float32[6,3,3,3])\n"
        f" y = Convolution(x, w, {DENSE}, num_filter=6, no_bias=True)\n return y",
        f"graph(x: float32[4,3,40,20], w: float32[6,3,3,3])\n r = Reshape(w, shape=(1, 6, 27))\n"
        f" p = _mxc_pack_rows(r, block=4)\n"
        f" y = _mxc_convolution(x, p, {DENSE}, num_filter=6, num_group=1, block=4)\n return y"),
    "a large map of few channels and short rows": (
        f"graph(x: float32[4,3,200,4], w: float32[6,3,3,3])\n"
        f" y = Convolution(x, w, {DENSE}, num_filter=6, no_bias=True)\n return y",
        f"graph(x: float32[4,3,200,4], w: float32[6,3,3,3])\n"
        f" y = _mxc_convolution(x, w, {DENSE}, num_filter=6, num_group=1, block=0, by_images=True)\n return y"),
    "gradient to the data with a stride": (
        f"graph(g: float32[3,6,12,14], w: float32[6,5,4,4])\n"
        f" y = _mxc_conv_data_grad(g, w, {APART}, num_group=1, shape=(3, 5, 24, 28))\n return y",
        f"graph(g: float32[3,6,12,14], w: float32[6,5,4,4])\n r = Reshape(w, shape=(1, 6, 5, 16))\n"
        f" t = transpose(r, axes=(0, 2, 1, 3))\n s = Reshape(t, shape=(1, 5, 96))\n p = _mxc_pack_rows(s, block=4)\n"
        f" y = _mxc_convolution_data_grad(g, p, {APART}, num_group=1, shape=(3, 5, 24, 28), block=4)\n return y"),
    "gradient to the data, as many images as lanes": (
        f"graph(g: float32[4,6,3,3], w: float32[6,5,3,3])\n"
        f" y = _mxc_conv_data_grad(g, w, {WINDOW}, num_group=1, shape=(4, 5, 5, 6))\n return y",
        f"graph(g: float32[4,6,3,3], w: float32[6,5,3,3])\n"
        f" y = _mxc_convolution_data_grad(g, w, {WINDOW}, num_group=1, shape=(4, 5, 5, 6), block=0, by_images=True)\n"
        f" return y"),
    "fully connected": (CASES["fully connected"][0], None),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_weight_that_changes(name):
    before, after = CHANGES[name]
    graph = parse_graph(before)
    result = layout(graph, options())
    assert_graph(result, after or before)
    assert_same_numbers(graph, result)
