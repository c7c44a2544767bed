"""Convolutions of plain arrays, image by image: the kernel, and which convolutions stay plain for it."""
from __future__ import annotations

import numpy as np
import pytest
from library_cases import PANELS, check, panel_case, quad_case, window
from pass_checks import options
from programs import lowered

import mxc as mx
from mxc.compiler.graph.text import graph_text, parse_graph
from mxc.compiler.kernel.geometry import Window
from mxc.compiler.kernel.plain import fits_panels
from mxc.compiler.passes.blocked import blocked
from mxc.compiler.targets.cpu import library
from mxc.compiler.targets.cpu.machine.isa import ISAS
from mxc.compiler.targets.cpu.preferences import FIGURES


@pytest.mark.parametrize("name", PANELS)
def test_kernel(name, instructions):
    check(*panel_case(PANELS[name], "float32", instructions.isa), instructions)
    check(*panel_case(PANELS[name], "float32", instructions.isa, epilogue=True), instructions)


@pytest.mark.parametrize("name", PANELS)
def test_numbers_of_8_bits(name, instructions):
    check(*quad_case(PANELS[name], instructions.isa), instructions)


@pytest.mark.parametrize("name", ["1x1", "stride", "stride beyond two", "1x1 stride"])
def test_float64_and_a_transposed_result(name, instructions):
    check(*panel_case(PANELS[name], "float64", instructions.isa, epilogue=True), instructions)
    check(*panel_case(PANELS[name], "float32", instructions.isa, flat=False), instructions)


@pytest.mark.parametrize("isa", ISAS.values(), ids=lambda i: i.name)
def test_one_text_serves_every_size(isa):
    first, second = (panel_case(window(n, 1, c, f, (1, h, h), (1, 1, 1)), "float32", isa)[0]
                     for n, c, f, h in ((1, 16, 8, 5), (3, 32, 7, 9)))
    assert library.source(first, "k", isa) == library.source(second, "k", isa)


def test_units_pack_what_they_read_whichever_thread_runs_them(instructions):
    call, arrays = panel_case(window(1, 1, 20, 96, (1, 9, 9), (1, 1, 1)), "float32", instructions.isa)
    assert library.units(call, instructions.isa) > 1
    check(call, arrays, instructions)


def convolution(data: str, filters: int, kernel: int = 1, stride: int = 1, groups: int = 1, weight: str = "w") -> str:
    return (f"Convolution({data}, {weight}, kernel=({kernel}, {kernel}), stride=({stride}, {stride}), dilate=(1, 1), "
            f"pad=({kernel // 2}, {kernel // 2}), num_filter={filters}, num_group={groups}, no_bias=True)")


HEAD = "graph(x: float32[1,8,{0},{0}], w: float32[8,8,1,1]"
ALONE = {
    "of one tap": f"{HEAD.format(16)})\n y = {convolution('x', 8)}\n return y",
    "strided": f"{HEAD.format(32)})\n y = {convolution('x', 8, stride=2)}\n return y",
    "with what follows it": f"{HEAD.format(16)})\n y = {convolution('x', 8)}\n z = relu(y)\n return z",
    "two that are added": (f"{HEAD.format(16)}, v: float32[8,8,1,1])\n y = {convolution('x', 8)}\n"
                           f" u = {convolution('x', 8, weight='v')}\n z = elemwise_add(y, u)\n return z"),
    "channels that do not fill blocks": (f"graph(x: float32[1,3,16,16], w: float32[8,3,3,3])\n"
                                         f" y = {convolution('x', 8, 3)}\n return y"),
    "many taps": (f"graph(x: float32[1,3,64,64], w: float32[8,3,7,7])\n"
                  f" y = {convolution('x', 8, 7, 2)}\n return y"),
    "many taps of many channels": (f"graph(x: float32[1,32,32,32], w: float32[8,32,7,7])\n"
                                   f" y = {convolution('x', 8, 7, 2)}\n return y"),
    "large maps, depthwise": (f"graph(x: float32[1,4,40,40], w: float32[4,1,3,3])\n"
                              f" y = {convolution('x', 4, 3, groups=4)}\n return y"),
}
BLOCKED = {
    "small maps": f"{HEAD.format(8)})\n y = {convolution('x', 8)}\n return y",
    "small maps, depthwise": (f"graph(x: float32[1,4,9,9], w: float32[4,1,3,3])\n"
                              f" y = {convolution('x', 4, 3, groups=4)}\n return y"),
    "one after the other": (f"{HEAD.format(16)}, v: float32[8,8,1,1])\n y = {convolution('x', 8)}\n z = relu(y)\n"
                            f" u = {convolution('z', 8, weight='v')}\n return u"),
    "pooled": (f"{HEAD.format(16)})\n y = {convolution('x', 8)}\n"
               " z = Pooling(y, kernel=(2, 2), stride=(2, 2))\n return z"),
    "three by three": (f"graph(x: float32[1,64,16,16], w: float32[8,64,3,3])\n"
                       f" y = {convolution('x', 8, 3)}\n return y"),
}


@pytest.mark.parametrize("name", ALONE)
def test_a_convolution_that_stands_alone_stays_plain(name):
    text = ALONE[name]
    assert graph_text(blocked(parse_graph(text), options(static=frozenset("wv")))) == graph_text(parse_graph(text))


@pytest.mark.parametrize("name", BLOCKED)
def test_others_lie_in_blocks(name):
    assert "transpose" in graph_text(blocked(parse_graph(BLOCKED[name]), options(static=frozenset("wv"))))


@pytest.mark.parametrize("params", [
    {"kernel": (1, 1)}, {"kernel": (1, 1), "stride": (2, 2)}, {"kernel": (3, 3), "pad": (1, 1), "num_group": 8}])
def test_a_graph_of_one_convolution_is_one_kernel(params):
    """Nothing turns its arrays into blocks or back."""
    y = mx.sym.Convolution(mx.sym.Variable("data"), name="conv", num_filter=8, no_bias=True, **params)
    launches = lowered(y.graph, {"data": (2, 8, 40, 40)}).launches
    label = "_mxc_depthwise" if "num_group" in params else "_mxc_convolution"
    assert [launch.label for launch in launches if launch.phase == "forward"] == [label]


@pytest.mark.parametrize("kernel,stride,groups", [(1, 1, 1), (1, 2, 2), (3, 2, 1), (3, 1, 16), (3, 2, 16)])
def test_executors_with_a_bias_and_relu(kernel, stride, groups):
    rng = np.random.default_rng(3)
    y = mx.sym.Activation(mx.sym.Convolution(
        mx.sym.Variable("data"), name="conv", num_filter=16, kernel=(kernel, kernel), stride=(stride, stride),
        pad=(kernel // 2, kernel // 2), num_group=groups), act_type="relu")
    executor = y.simple_bind(mx.cpu(), data=(2, 16, 60, 61), grad_req="null")
    for array in executor.arg_dict.values():
        array[:] = rng.standard_normal(array.shape)
    got = executor.forward()[0].asnumpy()
    data, weight, bias = (executor.arg_dict[n].asnumpy() for n in ("data", "conv_weight", "conv_bias"))
    padded = np.pad(data, ((0, 0), (0, 0), (kernel // 2,) * 2, (kernel // 2,) * 2))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (2, 3))[:, :, ::stride, ::stride]
    parts = [np.einsum("nchwij,fcij->nfhw", part, w, optimize=True)
             for part, w in zip(np.split(windows, groups, 1), np.split(weight, groups), strict=True)]
    want = np.maximum(np.concatenate(parts, 1) + bias[:, None, None], 0)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_which_windows_there_is_a_kernel_for():
    def fits(*arguments: object, dtype: str = "float32", **others: object) -> bool:
        w: Window = window(*arguments, **others)  # type: ignore[arg-type]
        return fits_panels(w, dtype, FIGURES.panels)

    assert fits(1, 1, 64, 64, (1, 56, 56), (1, 1, 1))
    assert not fits(1, 1, 64, 64, (1, 56, 56), (1, 1, 1), dtype="float16")
    assert not fits(1, 1, 64, 64, (1, 7, 7), (1, 1, 1))  # images that do not fill panels
    assert not fits(1, 1, 64, 64, (1, 56, 56), (1, 3, 3))  # taps of many channels
    assert not fits(1, 1, 3, 64, (4, 56, 56), (2, 3, 3))  # several slices
    assert fits(1, 1, 3, 64, (4, 56, 56), (1, 1, 1))
