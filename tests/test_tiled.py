"""Convolutions by tiles: the kernel, and what passes make of networks for a CPU that has them."""
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from instruction_sets import RUNNING, InstructionSet, filled
from library_cases import check, values
from pass_checks import FixedTiles, assert_same_numbers, outputs_of, values_for
from test_blocked import WINDOWS
from test_quads import ENDS, saturated

import mxc as mx
from mxc.compiler.graph.graph import Graph
from mxc.compiler.graph.options import Options
from mxc.compiler.graph.text import parse_graph
from mxc.compiler.kernel import calls, ir, word_calls
from mxc.compiler.kernel.call_rule import dense
from mxc.compiler.kernel.calls import linear
from mxc.compiler.kernel.geometry import Window
from mxc.compiler.kernel.interpret_calls import pack_rows
from mxc.compiler.kernel.ir import CallKernel, Store
from mxc.compiler.ops.dtypes import widened
from mxc.compiler.passes.blocked import blocked
from mxc.compiler.passes.decompose import decompose
from mxc.compiler.targets.cpu.machine.isa import AMX, AVX512, AVX512_BF16, Isa
from mxc.compiler.targets.cpu.target import CpuTarget
from mxc.compiler.targets.preferences import Preferences, Tiles

LANES, COLUMNS = 16, 32
DTYPES = ("uint8", "int8", "bfloat16")


def drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return values(rng, shape, dtype) if dtype == "bfloat16" else rng.choice(np.array(ENDS[dtype], dtype), shape)


def result_of(w: Window, operands: list[np.ndarray], buffers: list[str], made, flat: bool = True,  # type: ignore[no-untyped-def]
              rounded: bool = False) -> tuple[CallKernel, list[np.ndarray]]:
    """The call of a geometry whose result lies in blocks of LANES; not flat: with rows and columns exchanged. rounded:
    a scale for each filter, and 8 bits out."""
    dtype = "float32" if made.dtype == "bfloat16" else "int32"
    n, c, d, h, wide = w.batch, w.groups * w.filters // LANES, *w.out
    steps = [c * d * h * wide * LANES, d * h * wide * LANES, 1, h * wide * LANES, wide * LANES, LANES]
    if not flat:
        steps[4:] = [LANES, h * LANES]
    place, result = linear(dict(enumerate(steps))), ir.acc(0, dtype)
    if rounded:
        scale = ir.load(2, linear({1: LANES, 2: 1}), "float32")
        result = saturated(ir.apply("mul", ir.cast(result, "float32"), scale))
        operands.append(np.random.default_rng(4).uniform(1e-4, 1e-2, c * LANES).astype(np.float32))
        buffers.append("float32")
    buffers.append(result.dtype)
    call = calls.call("conv", made, tuple(buffers), [Store(len(buffers) - 1, place, result)])
    return call, [*operands, np.zeros(n * c * d * h * wide * LANES, result.dtype)]


def packed(weight: np.ndarray) -> np.ndarray:
    """Of (groups, filters, words, numbers of a word)."""
    rows = weight.reshape(*weight.shape[:2], -1)
    parts = np.concatenate([pack_rows(each, COLUMNS).ravel() for each in rows])
    return np.ascontiguousarray(parts.reshape(-1, weight.shape[-1], COLUMNS).swapaxes(1, 2)).ravel()


def case(w: Window, dtype: str, planes: int = 0, flat: bool = True, rounded: bool = False,
         ) -> tuple[CallKernel, list[np.ndarray]]:
    """The call of a window that is made to fill blocks, and its arrays. Whole numbers are drawn from the ends of what
    there are. planes: the data are plain, with so many channels."""
    rng, per = np.random.default_rng(3), 2 if dtype == "bfloat16" else 4
    w = filled(w, LANES)
    channels, inner = (planes, 1) if planes else (w.channels, LANES // per)
    x = drawn(rng, (w.batch, w.groups * channels, *w.data), dtype)
    w = replace(w, channels=-(-channels // per))
    blocks = x if planes else x.reshape(w.batch, -1, per * inner, *w.data).transpose(0, 1, 3, 4, 5, 2)
    data = np.ascontiguousarray(blocks)
    weight = drawn(rng, (w.groups, w.filters, w.channels * math.prod(w.kernel), per), dtype.replace("uint8", "int8"))
    if planes % per:  # channels that are not there: those of the last word
        weight.reshape(w.filters, w.channels, -1, per)[:, -1, :, planes % per:] = 0
    strides = dense(data.shape) if planes else [s // per for s in dense(data.shape)]
    depth = w.kernel[2] if planes else inner * max(n for n in (1, 2, 3, 4) if w.channels // inner % n == 0
                                                   and n * inner <= 16)
    kind, of_weight = ("bfloat16",) * 2 if dtype == "bfloat16" else ("int32", "int8")
    made = word_calls.tiled_convolution(kind, w, strides[:5], inner, LANES, COLUMNS, depth, planes)
    return result_of(w, [data.ravel(), packed(weight)], [dtype, of_weight], made, flat, rounded)


@pytest.fixture(params=[each for each in RUNNING if each.isa.tiles], ids=str)
def tiles(request: pytest.FixtureRequest) -> InstructionSet:
    """Where this machine has AMX; else its kernels are compiled only (test_instruction_sets.py)."""
    return request.param


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_kernel(name: str, dtype: str, tiles: InstructionSet) -> None:
    check(*case(WINDOWS[name], dtype), tiles)


@pytest.mark.parametrize("planes", [1, 3, 4, 6])
@pytest.mark.parametrize("dtype", DTYPES)
def test_kernel_of_plain_data(planes: int, dtype: str, tiles: InstructionSet) -> None:
    for name in ("same", "stride", "3d", "several bands", "wide", "one pixel"):
        if WINDOWS[name].dilate[2] == 1:
            check(*case(WINDOWS[name], dtype, planes), tiles)


@pytest.mark.parametrize("dtype", DTYPES)
def test_kernel_of_other_epilogues(dtype: str, tiles: InstructionSet) -> None:
    for name in ("same", "1x1", "several grains", "stride"):
        check(*case(WINDOWS[name], dtype, flat=False), tiles)
        check(*case(WINDOWS[name], dtype, rounded=True), tiles)


# --- products


PRODUCTS = [  # batch, m, n, words
    (1, 1, 1, 1), (1, 1, 40, 19), (1, 5, 17, 3), (2, 13, 33, 30), (1, 16, 16, 16), (1, 17, 32, 80), (3, 31, 31, 10),
    (1, 70, 100, 320), (1, 300, 70, 28), (1, 64, 1000, 256),
]


KINDS = ("uint8", "int8", "bfloat16", "bfloat16 across")


def product_case(sizes: tuple[int, int, int, int], kind: str, isa: Isa) -> tuple[CallKernel, list[np.ndarray]]:
    """The call of a product and its arrays. kind: the dtype, and whether B's columns lie together."""
    rng, (batch, m, n, k) = np.random.default_rng(5), sizes
    dtype, across = kind.split()[0], kind.endswith("across")
    per, of_b = 2 if dtype == "bfloat16" else 4, dtype.replace("uint8", "int8")
    a = drawn(rng, (batch, m, k * per), dtype)
    b = drawn(rng, (batch, k * per, n) if across else (batch, n, k * per), of_b)
    depth = max(d for d in range(1, 17) if k % d == 0) if isa.tiles else 1
    made = word_calls.word_product("bfloat16" if per == 2 else "int32", sizes, (m * k, k),
                                   (k * per * n, n, 1) if across else (n * k, 1, k), depth, across,
                                   lifted=dtype == "int8" and not isa.tiles)
    result = "float32" if per == 2 else "int32"
    store = Store(2, linear({0: m * n, 1: n, 2: 1}), ir.acc(0, result))
    call = calls.call("product", made, (dtype, of_b, result), [store])
    return call, [a.ravel(), b.ravel(), np.zeros(batch * m * n, result)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", PRODUCTS, ids=str)
def test_product(sizes: tuple[int, int, int, int], kind: str, instructions: InstructionSet) -> None:
    """A and B end where their memory does."""
    check(*product_case(sizes, kind, instructions.isa), instructions)


# --- what passes make


class WithTiles(FixedTiles):
    """Tiles with rows of 8 words, for blocks of 4 channels."""

    @property
    def prefers(self) -> Preferences:
        return replace(super().prefers, tiles=Tiles(8))


def made(text: str, *passes: Callable[[Graph, Options], Graph]) -> tuple[Graph, Graph]:
    """The graph of a text, and what passes make of it."""
    before = after = parse_graph(text)
    for each in passes:
        after = each(after, Options(target=WithTiles(), static=frozenset("wv")))
    return before, after


def depths(graph: Graph) -> list[int]:
    """Of the convolutions by tiles."""
    return [node.params.depth for node in graph.nodes if node.op is not None
            and node.op.name == "_mxc_tiled_convolution"]


SAME = "kernel=(3, 3), stride=(1, 1), dilate=(1, 1), pad=(1, 1), num_group={}, num_filter=8"
GRAPHS = {  # arguments, groups, words of a tile's row
    "blocks": ("x: uint8[2,8,5,6], w: int8[8,8,3,3]", 1, 2),
    "many blocks": ("x: int8[2,40,5,6], w: int8[8,40,3,3]", 1, 5),
    "groups": ("x: int8[2,24,5,6], w: int8[8,12,3,3]", 2, 3),
    "plain": ("x: uint8[2,3,5,6], w: int8[8,3,3,3]", 1, 3),
    "plain int8": ("x: int8[1,6,5,6], w: int8[8,6,3,3]", 1, 3),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_pass(name: str) -> None:
    arguments, groups, depth = GRAPHS[name]
    before, after = made(f"graph({arguments})\n y = _mxc_int8_convolution(x, w, {SAME.format(groups)})\n"
                         " c = Cast(y, dtype=float32)\n return c", blocked)
    assert depths(after) == [depth]
    assert_same_numbers(before, after)


def test_pass_of_bfloat16() -> None:
    """The first convolution reads plain data of 3 channels."""
    before, after = made(
        "graph(x: bfloat16[2,3,5,6], w: bfloat16[8,3,3,3], v: bfloat16[8,8,3,3])\n"
        f" y = Convolution(x, w, {SAME.format(1)}, no_bias=True)\n"
        f" z = Convolution(y, v, {SAME.format(1)}, no_bias=True)\n return z", blocked)
    assert depths(after) == [3, 4]
    values = values_for(before)
    for one, two in zip(outputs_of(before, values), outputs_of(after, values), strict=True):
        np.testing.assert_allclose(widened(one), widened(two), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("params", ["dilate=(1, 2)", "kernel=(3, 9)"])
def test_kernels_whose_rows_a_tile_does_not_hold(params: str) -> None:
    """They are those of plain data alone."""
    name = params.split("=")[0]
    text = SAME.format(1).replace({"dilate": "dilate=(1, 1)", "kernel": "kernel=(3, 3)"}[name], params)
    wide = 9 if name == "kernel" else 3
    before, after = made(f"graph(x: uint8[2,3,15,16], w: int8[8,3,3,{wide}])\n"
                         f" y = _mxc_int8_convolution(x, w, {text})\n return y", blocked)
    assert depths(after) == []
    assert_same_numbers(before, after)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("depth, words", [(32, 8), (20, 5), (12, 3), (30, 8), (4 * 13, 16), (1, 1)])
def test_products_of_8_bits_fill_words(dtype: str, depth: int, words: int) -> None:
    text = f"graph(x: {dtype}[3,{depth}], w: int8[5,{depth}])\n y = _mxc_int8_product(x, w)\n return y"
    before, after = made(text, decompose)
    product = next(node for node in after.nodes if node.op is not None and node.op.name == "_mxc_int8_product")
    assert after.shape(product.inputs[0])[1] == 4 * words and not product.params.lifted
    assert_same_numbers(before, after)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_products_of_8_bits_without_tiles(dtype: str) -> None:
    """Instructions take one factor to be of uint8."""
    before = parse_graph(f"graph(x: {dtype}[3,10], w: int8[5,10])\n y = _mxc_int8_product(x, w)\n return y")
    after = decompose(before, Options(target=FixedTiles(), static=frozenset("w")))
    product = next(node for node in after.nodes if node.op is not None and node.op.name == "_mxc_int8_product")
    assert product.params.lifted == (dtype == "int8") and after.shape(product.inputs[0])[1] == 12
    assert_same_numbers(before, after)


@pytest.mark.parametrize("sizes, wanted", [((1, 3, 5, 64), True), ((2, 3, 5, 6), True), ((1, 3, 5, 7), False),
                                           ((1, 0, 5, 8), False), ((1, 3, 5, 2 * 13), False)])
def test_which_products_are_of_words(sizes: tuple[int, int, int, int], wanted: bool) -> None:
    assert word_calls.by_words("bfloat16", sizes, WithTiles().prefers) == wanted
    assert not word_calls.by_words("float32", sizes, WithTiles().prefers)
    assert not word_calls.by_words("bfloat16", sizes, replace(WithTiles().prefers, tiles=None, pairs=None))


@pytest.mark.parametrize("name", ["FullyConnected", "dot", "dot, transposed", "batch_dot"])
def test_products_of_bfloat16(name: str) -> None:
    """As operators compute them here, by words where there are any."""
    rng = np.random.default_rng(2)
    x, w = rng.standard_normal((3, 17, 40)), rng.standard_normal((3, 40, 33))
    one, two = (mx.nd.array(a).astype("bfloat16") for a in (x, w))
    if name == "batch_dot":
        got = mx.nd.batch_dot(one, two)
    elif name == "dot":
        got = mx.nd.dot(one[0], two[0])
    elif name == "dot, transposed":
        got = mx.nd.dot(one[0], two[0].T, transpose_b=True)
    else:
        got = mx.nd.FullyConnected(one[0], two[0].T, num_hidden=33, no_bias=True)
    x, w = (widened(a.asnumpy()).astype(np.float64) for a in (one, two))
    want = x @ w if name == "batch_dot" else x[0] @ w[0]
    np.testing.assert_allclose(got.astype("float32").asnumpy(), want, rtol=8e-3, atol=1e-2)


@pytest.mark.parametrize("cpu, isa, pairs, tiles", [
    ("znver4", AVX512_BF16, True, False), ("cooperlake", AVX512_BF16, False, False),
    ("sapphirerapids", AMX, False, True), ("skylake-avx512", AVX512, False, False)])
def test_cpus_choose_what_is_fast_there(cpu: str, isa: Isa, pairs: bool, tiles: bool) -> None:
    """`vdpbf16ps` is slow on Intel's."""
    prefers = CpuTarget(cpu, isa.features).prefers
    assert (prefers.pairs is not None, prefers.tiles is not None) == (pairs, tiles)
