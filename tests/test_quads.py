"""Convolutions over numbers of 8 bits in blocks of channels: the kernel, and what passes make of such networks."""
from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from instruction_sets import InstructionSet, filled
from library_cases import check
from pass_checks import assert_same_numbers, options
from test_blocked import WINDOWS

import mxc as mx
from mxc.compiler.graph.graph import Entry, Graph
from mxc.compiler.graph.text import graph_text, parse_graph
from mxc.compiler.kernel import calls, ir
from mxc.compiler.kernel.call_rule import dense
from mxc.compiler.kernel.calls import linear
from mxc.compiler.kernel.geometry import Window
from mxc.compiler.kernel.interpret_calls import pack_rows
from mxc.compiler.kernel.ir import CallKernel, Store
from mxc.compiler.lowering.fuse import fuse
from mxc.compiler.passes.blocked import blocked
from mxc.compiler.passes.decompose import decompose
from mxc.compiler.passes.layout import layout
from mxc.compiler.targets.cpu.machine.isa import Isa

ENDS = {"uint8": (0, 1, 127, 128, 200, 255), "int8": (-128, -127, -1, 0, 1, 127)}


def case(w: Window, dtype: str, isa: Isa, planes: int = 0, rounded: bool = False,
         ) -> tuple[CallKernel, list[np.ndarray]]:
    """The call of a window that is made to fill blocks, and its arrays, all numbers drawn from the ends of what there
    are. planes: the data are plain, with so many channels. rounded: a scale for each filter, and 8 bits out."""
    rng, lanes, columns = np.random.default_rng(3), isa.lanes("int32"), isa.tile("int32")[1]
    w = filled(w, lanes)
    channels, inner = (planes, 1) if planes else (w.channels, lanes // 4)
    x = rng.choice(np.array(ENDS[dtype], dtype), (w.batch, w.groups * channels, *w.data))
    w = replace(w, channels=-(-channels // 4))
    blocks = x if planes else x.reshape(w.batch, -1, 4 * inner, *w.data).transpose(0, 1, 3, 4, 5, 2)
    data, depth = np.ascontiguousarray(blocks), w.channels * math.prod(w.kernel)
    weight = rng.choice(np.array(ENDS["int8"], np.int8), (w.groups, w.filters, depth, 4))
    if planes % 4:  # channels that are not there: those of the last four
        weight.reshape(w.filters, w.channels, -1, 4)[:, -1, :, planes % 4:] = 0
    words = weight.view(np.int32).reshape(w.groups, w.filters, depth)
    packed = np.concatenate([pack_rows(rows, columns).ravel() for rows in words])
    n, c, d, h, wide = w.batch, w.groups * w.filters // lanes, *w.out
    place = linear({0: c * d * h * wide * lanes, 1: d * h * wide * lanes, 2: 1, 3: h * wide * lanes, 4: wide * lanes,
                    5: lanes})
    operands, buffers, result = [data.ravel(), packed], [dtype, "int32"], ir.acc(0, "int32")
    if rounded:
        scale = ir.load(2, linear({1: lanes, 2: 1}), "float32")
        result = saturated(ir.apply("mul", ir.cast(result, "float32"), scale))
        operands.append(rng.uniform(1e-4, 1e-2, c * lanes).astype(np.float32))
        buffers.append("float32")
    buffers.append(result.dtype)
    strides = dense(data.shape) if planes else [s // 4 for s in dense(data.shape)]
    made = calls.blocked_quads(w, strides[:5], inner, lanes, columns, bool(planes or any(w.pad) or dtype == "int8"),
                               planes)
    call = calls.call("conv", made, tuple(buffers), [Store(len(buffers) - 1, place, result)])
    return call, [*operands, np.zeros(n * c * d * h * wide * lanes, result.dtype)]


def saturated(x: ir.Value) -> ir.Value:
    """`x` in uint8, as the operator `_mxc_saturate` and a cast have it."""
    zero, most = ir.const(0.0, "float32"), ir.const(255.0, "float32")
    cut = ir.apply("min", ir.apply("where", ir.apply("gt", x, zero), x, zero), most)
    return ir.cast(ir.apply("rint", cut), "uint8")


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("dtype", ENDS)
def test_kernel(name: str, dtype: str, instructions: InstructionSet) -> None:
    check(*case(WINDOWS[name], dtype, instructions.isa), instructions)


@pytest.mark.parametrize("planes", [1, 3, 4, 6])
@pytest.mark.parametrize("dtype", ENDS)
def test_kernel_of_plain_data(planes: int, dtype: str, instructions: InstructionSet) -> None:
    for name in ("same", "stride", "3d", "several bands", "wide"):
        check(*case(WINDOWS[name], dtype, instructions.isa, planes), instructions)


def test_kernel_that_rounds(instructions: InstructionSet) -> None:
    for name in ("same", "1x1", "several grains"):
        check(*case(WINDOWS[name], "uint8", instructions.isa, rounded=True), instructions)


def made(text: str, *passes) -> tuple[Graph, Graph]:  # type: ignore[no-untyped-def]
    """The graph of a text, and what passes make of it for a target with blocks of 4."""
    before = after = parse_graph(text)
    for each in passes:
        after = each(after, options(static=frozenset("wv")))
    return before, after


def operators(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.nodes if node.op is not None]


SAME = "kernel=(3, 3), stride=(1, 1), dilate=(1, 1), pad=(1, 1), num_group={0}, num_filter=8"
GRAPHS = {
    "blocks": ("x: uint8[2,8,5,6], w: int8[8,8,3,3]", SAME.format(1), 5),
    "blocks of int8": ("x: int8[2,8,5,6], w: int8[8,8,3,3]", SAME.format(1), 5),
    "groups": ("x: int8[2,8,5,6], w: int8[8,4,3,3]", SAME.format(2), 5),
    "plain": ("x: uint8[2,3,5,6], w: int8[8,3,3,3]", SAME.format(1), 4),
    "plain int8": ("x: int8[1,6,5,6], w: int8[8,6,3,3]", SAME.format(1), 4),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_pass(name: str) -> None:
    arguments, params, axes = GRAPHS[name]
    before, after = made(f"graph({arguments})\n y = _mxc_int8_convolution(x, w, {params})\n"
                         " c = Cast(y, dtype=float32)\n"
                         " s = _mxc_saturate(c, dtype=int8)\n z = Cast(s, dtype=int8)\n return z", blocked)
    convolution = next(node for node in after.nodes if node.op is not None and node.op.name == "_mxc_blocked_quads")
    assert len(after.shape(convolution.inputs[0])) == axes
    assert after.nodes[-1].op.name == "Reshape"  # what follows is in blocks too
    assert_same_numbers(before, after)


@pytest.mark.parametrize("arguments, params", [
    ("x: uint8[2,8,5,6], w: int8[6,8,3,3]", SAME.format(1).replace("=8", "=6")),
    ("x: int8[2,8,5,6], w: int8[12,4,3,3]", SAME.format(2).replace("=8", "=12")),
    ("x: uint8[2,8,5,6], u: int8[8,8,3,3]", SAME.format(1)),
    ("x: uint8[2,8,5,6], w: int8[8,8,1,1]", SAME.format(1).replace("3", "1").replace("pad=(1, 1)", "pad=(0, 0)")),
], ids=["filters do not fill blocks", "those of a group do not", "the weight changes", "one tap, alone"])
def test_others_stay_plain(arguments: str, params: str) -> None:
    weight = "u" if "u:" in arguments else "w"
    before, after = made(f"graph({arguments})\n y = _mxc_int8_convolution(x, {weight}, {params})\n return y", blocked,
                         layout)
    assert "_mxc_quad_convolution" in operators(after) and "_mxc_blocked_quads" not in operators(after)
    assert_same_numbers(before, after)


def test_the_largest_of_numbers_of_8_bits_is_one_of_them() -> None:
    text = ("graph(x: int8[2,8,5,6], l: float32[1], h: float32[1])\n"
            " y = _contrib_quantized_pooling(x, l, h, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type={})\n"
            " return y")
    before, after = made(text.format("max"), decompose)
    assert "_mxc_int8_pooling" in operators(after) and "Cast" not in operators(after)
    assert_same_numbers(before, after)
    assert "_mxc_int8_pooling" not in operators(made(text.format("avg"), decompose)[1])


def test_casts_of_numbers_of_8_bits_belong_to_their_readers() -> None:
    """The first convolution stores what the second one reads, and no float32 beside it."""
    text = ("graph(x: uint8[1,8,5,5], w: int8[8,8,3,3], v: int8[8,8,3,3])\n"
            f" a = _mxc_int8_convolution(x, w, {SAME.format(1)})\n b = Cast(a, dtype=float32)\n"
            " c = _mxc_saturate(b, dtype=uint8)\n d = Cast(c, dtype=uint8)\n"
            f" e = _mxc_int8_convolution(d, v, {SAME.format(1)})\n f = Cast(e, dtype=float32)\n"
            " g = Cast(d, dtype=float32)\n h = _mul_scalar(g, scalar=0.3)\n i = elemwise_add(f, h)\n return i")
    _, graph = made(text, blocked, layout)
    groups = [g for g in fuse(graph, options(static=frozenset("wv"))) if g.form.kind == "anchor"]
    stored = [graph.dtype(entry) for group in groups for entry in group.stored]
    assert sorted(stored) == ["float32", "uint8"]


NUMBERS = [-math.inf, -3e9, -128.5, -127.5, -1.5, -0.5, -0.0, 0.0, 0.5, 1.5, 2.5, 126.5, 127.49, 127.5, 254.5, 255.5,
           3e9, math.inf, math.nan]


@pytest.mark.parametrize("dtype, ends, of_nan", [("int8", (-128, 127), 127), ("uint8", (0, 255), 0)])
def test_numbers_are_cut_and_rounded(dtype: str, ends: tuple[int, int], of_nan: int) -> None:
    """Halves to the even number."""
    x = np.array(NUMBERS * 5, np.float32)
    data = mx.sym.Variable("data")
    net = mx.sym.contrib.quantize_v2(data, out_type=dtype, min_calib_range=0.0,
                                     max_calib_range={"int8": 127.5, "uint8": 255.5}[dtype])[0]
    got = net.bind(mx.cpu(), {"data": mx.nd.array(x)}, grad_req="null").forward()[0].asnumpy()
    wanted = np.where(np.isnan(x), of_nan, np.clip(np.rint(np.nan_to_num(x, posinf=1e9, neginf=-1e9)), *ends))
    np.testing.assert_array_equal(got, wanted.astype(dtype))


def test_text_names_the_operator() -> None:
    assert "_mxc_blocked_quads" in graph_text(made(
        f"graph({GRAPHS['plain'][0]})\n y = _mxc_int8_convolution(x, w, {SAME.format(1)})\n return y", blocked)[1])


def test_an_output_is_stored_as_it_is() -> None:
    """A cast whose result the graph gives out stays with the convolution."""
    text = (f"graph({GRAPHS['blocks'][0]})\n y = _mxc_int8_convolution(x, w, {SAME.format(1)})\n"
            " c = Cast(y, dtype=uint8)\n z = Cast(c, dtype=float32)\n return z")
    _, graph = made(text, layout)
    assert Entry(graph.nodes[-1]) in [e for g in fuse(graph, options()) for e in g.stored if g.form.kind == "anchor"]
