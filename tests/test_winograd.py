"""Winograd's convolution: its formula, its kernels, and which convolutions become it."""
from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from instruction_sets import filled
from library_cases import check, values, window
from pass_checks import assert_graph, assert_same_numbers, options

import mxc as mx
from mxc.compiler.error import SettingError
from mxc.compiler.graph.text import graph_text, parse_graph
from mxc.compiler.kernel import calls, ir
from mxc.compiler.kernel.call_rule import dense
from mxc.compiler.kernel.calls import linear
from mxc.compiler.kernel.geometry import Window
from mxc.compiler.kernel.interpret_calls import pack_rows
from mxc.compiler.kernel.ir import CallKernel, Store
from mxc.compiler.lowering import split_winograd as module
from mxc.compiler.lowering.launches import Storage
from mxc.compiler.ops import winograd
from mxc.compiler.passes.blocked import blocked
from mxc.compiler.targets.cpu import library
from mxc.compiler.targets.cpu.machine.isa import AVX2, ISAS, Isa
from mxc.compiler.targets.cpu.preferences import FIGURES


def two_sides(call, storages):
    assert FIGURES.winograd is not None
    return module.two_sides(FIGURES.winograd, call, storages)


def test_formula():
    rng = np.random.default_rng(0)
    data, kernel = rng.standard_normal((6, 6)), rng.standard_normal((3, 3))
    expected = [[(data[i : i + 3, j : j + 3] * kernel).sum() for j in range(4)] for i in range(4)]
    transformed = (winograd.FACTORS @ kernel.ravel()).reshape(6, 6) * (winograd.DATA @ data @ winograd.DATA.T)
    np.testing.assert_allclose(winograd.OUTPUT @ transformed @ winograd.OUTPUT.T, expected, rtol=1e-12)


# --- kernels

def geometry(batch: int, channels: int, filters: int, height: int, width: int, pad: int) -> Window:
    return window(batch, 1, channels, filters, (1, height, width), (1, 3, 3), pad=(0, pad, pad))


def transformed_shape(w: Window, columns: int) -> tuple[int, ...]:
    """Of the weight."""
    return winograd.PLACES, -(-w.filters // columns), winograd.odd(w.channels), columns


def packed_shape(w: Window, columns: int) -> tuple[int, ...]:
    """Of a weight that the kernel transforms."""
    return -(-w.filters // columns), w.channels * winograd.TAPS, columns


def kernel_case(w: Window, isa: Isa, epilogue: str = "", flat: bool = True, transforms: bool = False,
                ) -> tuple[CallKernel, list[np.ndarray]]:
    """Of a window that is made to fill blocks. epilogue: "bias" adds one for each filter, cuts off below 0; "residual"
    adds an array too, to what is there; "two" stores in another array besides. Not flat: with rows and columns
    exchanged. transforms: the kernel transforms the weight."""
    rng, lanes, (tiles, columns) = np.random.default_rng(2), isa.lanes("float32"), isa.tile("float32")
    w = filled(w, lanes)
    shape = (w.batch, w.channels // lanes, *w.data, lanes)
    data = values(rng, (math.prod(shape),), "float32")
    weight = values(rng, (packed_shape if transforms else transformed_shape)(w, columns), "float32").ravel()
    n, c, (_, h, wide) = w.batch, w.filters // lanes, w.out
    steps = [c * h * wide * lanes, h * wide * lanes, 1, h * wide * lanes, wide * lanes, lanes]
    if not flat:
        steps[4:] = [lanes, h * lanes]
    place, result, operands = linear(dict(enumerate(steps))), ir.acc(0, "float32"), [data, weight]
    size = n * steps[0]
    if epilogue:
        result = ir.apply("add", result, ir.load(2, linear({1: lanes, 2: 1}), "float32"))
        operands.append(values(rng, (w.filters,), "float32"))
    if epilogue == "residual":
        result = ir.apply("add", result, ir.load(3, place, "float32"))
        operands.append(values(rng, (size,), "float32"))
    if epilogue:
        result = ir.apply("max", result, ir.const(0, "float32"))
    last = len(operands)
    stores = [Store(last, place, result, "add" if epilogue == "residual" else "write")]
    if epilogue == "two":
        twice = linear(dict(enumerate(steps)), size)
        stores.append(Store(last, twice, ir.apply("mul", result, ir.const(2, "float32"))))
    operands.append(values(rng, (size * len(stores),), "float32"))
    made = calls.winograd_convolution("float32", w, dense(shape)[:5], lanes, tiles, columns, transforms=transforms)
    return calls.call("conv", made, ("float32",) * len(operands), stores), operands


SIZES = {f"{h}x{w} pad {p}": geometry(1, 8, 8, h, w, p)
         for h, w, p in [(1, 1, 1), (2, 3, 1), (3, 3, 0), (4, 4, 1), (5, 8, 1), (6, 6, 0), (7, 7, 1), (8, 9, 0),
                         (9, 9, 1), (9, 5, 2), (3, 30, 1), (16, 1, 1)]}
SIZES |= {"several images": geometry(5, 16, 24, 7, 9, 1), "several bands": geometry(2, 64, 40, 30, 30, 1),
          "many channels": geometry(1, 160, 16, 6, 6, 1), "many filters": geometry(1, 48, 200, 12, 20, 1)}
TRANSFORMS = pytest.mark.parametrize("transforms", [False, True], ids=["transformed", "transforms"])


@TRANSFORMS
@pytest.mark.parametrize("name", SIZES)
def test_kernels(name, transforms, instructions):
    check(*kernel_case(SIZES[name], instructions.isa, transforms=transforms), instructions)


@TRANSFORMS
@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("epilogue", ["bias", "residual", "two"])
def test_epilogue(epilogue, flat, transforms, instructions):
    check(*kernel_case(SIZES["several images"], instructions.isa, epilogue, flat, transforms), instructions)


@TRANSFORMS
@pytest.mark.parametrize("isa", ISAS.values(), ids=lambda i: i.name)
def test_one_text_serves_every_size(isa, transforms):
    first, second = (kernel_case(geometry(n, c, 32, h, h, p), isa, transforms=transforms)[0]
                     for n, c, h, p in ((1, 32, 5, 1), (3, 64, 40, 0)))
    assert library.source(first, "k", isa) == library.source(second, "k", isa)


@pytest.mark.parametrize(("tiles", "rows", "group"), [(1, 12, 4), (4, 12, 4), (5, 12, 7), (16, 12, 8), (49, 12, 10),
                                                      (196, 12, 12), (16, 6, 6), (9, 8, 5), (3, 6, 4)])
def test_groups_of_tiles_are_even(tiles, rows, group):
    """And have room for the smallest register tile that has room for them."""
    made = calls.winograd_convolution("float32", geometry(tiles, 16, 16, 4, 4, 1), (1,) * 5, 16, rows, 32)
    assert made.tiles == group


@pytest.mark.parametrize("shape", [(1, 32, 32, 14, 14, 1), (1, 256, 256, 14, 14, 1), (1, 512, 512, 7, 7, 1),
                                   (8, 64, 64, 56, 56, 1)])
def test_enough_units(shape):
    """Of the kernels that the convolution becomes."""
    call, operands = kernel_case(geometry(*shape), AVX2)
    parts = two_sides(call, [Storage("arena", "float32", (a.size,)) for a in operands])
    assert [library.units(part, AVX2) for part, _ in parts][-1] >= min(8, shape[2] // 16)


def given_case(w: Window, isa: Isa, transforms: bool = False) -> tuple[list[CallKernel], list[np.ndarray]]:
    """The kernels of a convolution of few tiles, and the arrays that they have."""
    call, operands = kernel_case(w, isa, "residual", transforms=transforms)
    storages = [Storage("arena", "float32", (a.size,)) for a in operands]
    (side, (data, made)), (rest, places) = two_sides(call, storages)
    assert data is storages[0] and places == [made, *storages[1:]]
    return [side, rest], [operands[0], np.full(made.shape, 7, "float32"), *operands[1:]]


@TRANSFORMS
@pytest.mark.parametrize("name", SIZES)
def test_data_transformed_before(name, transforms, instructions):
    (side, rest), (data, made, *others) = given_case(SIZES[name], instructions.isa, transforms)
    check(side, [data, made], instructions)
    instructions.run(side, [data, made])
    check(rest, [made, *others], instructions)


@TRANSFORMS
def test_both_kernels_compute_the_convolution(transforms, instructions):
    call, operands = kernel_case(SIZES["several images"], instructions.isa, "residual", transforms=transforms)
    (side, rest), (data, made, *others) = given_case(SIZES["several images"], instructions.isa, transforms)
    instructions.run(side, [data, made])
    instructions.run(rest, [made, *others])
    instructions.run(call, operands)
    np.testing.assert_array_equal(others[-1], operands[-1])


def test_what_follows_reads_the_data_too(instructions):
    """Both kernels together compute what the one does, whose epilogue reads its operand once more."""
    call, operands = kernel_case(geometry(2, 16, 16, 9, 10, 1), instructions.isa)
    (store,) = call.stores
    again = ir.load(0, store.index, "float32")
    call = replace(call, stores=(replace(store, value=ir.apply("add", store.value, again)),))
    (side, _), (rest, places) = two_sides(call, [Storage("arena", "float32", (a.size,)) for a in operands])
    data, weight, result = operands
    made, other = np.full(places[0].shape, np.nan, "float32"), np.zeros_like(result)
    instructions.run(side, [data, made])
    check(rest, [made, weight, other, data], instructions)
    instructions.run(rest, [made, weight, other, data])
    instructions.run(call, operands)
    np.testing.assert_array_equal(other, result)


SEVERAL = {"sum": (lambda x, y: x + y, lambda x: x), "gate": (lambda x, y: x * mx.sym.sigmoid(y), lambda x: x / 2),
           "rest": (lambda x, y: mx.sym.relu(x - y), lambda x: np.maximum(x, 0)),
           "twice": (lambda x, y: (x + y) * x, lambda x: x * x)}


@pytest.mark.parametrize("shape", [(1, 16, 16, 16), (1, 64, 14, 14), (2, 48, 7, 7), (1, 64, 56, 56)])
@pytest.mark.parametrize("name", SEVERAL)
def test_data_with_several_readers(name, shape):
    """Of weights that are 0, so that what follows the convolution must give its data back."""
    make, expected = SEVERAL[name]
    data = mx.sym.var("x")
    symbol = make(data, mx.sym.Convolution(data, name="c", kernel=(3, 3), pad=(1, 1), num_filter=shape[1]))
    executor = symbol.simple_bind(mx.cpu(), grad_req="null", x=shape)
    x = np.random.default_rng(5).uniform(-4, 4, shape).astype("float32")
    got = executor.forward(is_train=False, x=mx.nd.array(x))[0].asnumpy()
    np.testing.assert_allclose(got, expected(x), rtol=1e-6, atol=1e-6)


def test_many_tiles_are_one_kernel():
    call, operands = kernel_case(geometry(5, 16, 16, 28, 28, 1), AVX2)
    assert [part for part, _ in two_sides(call, [Storage("arena", "float32", (a.size,)) for a in operands])] == [
        call]


@TRANSFORMS
@pytest.mark.parametrize("seed", range(4))
def test_same_as_direct(seed, transforms, instructions):
    """The kernel against plain sums in float64."""
    rng, isa = np.random.default_rng(seed), instructions.isa
    lanes, columns = isa.lanes("float32"), isa.tile("float32")[1]
    n, height, width, pad = rng.integers([1, 3, 3, 0], [4, 25, 25, 2])
    w = geometry(int(n), lanes * int(rng.integers(1, 6)), lanes * int(rng.integers(1, 6)), int(height), int(width),
                 int(pad))
    x = values(rng, (w.batch, w.channels, *w.data[1:]), "float32")
    g = values(rng, (w.filters, w.channels, 9), "float32")
    call, operands = kernel_case(w, isa, transforms=transforms)
    operands[0] = np.moveaxis(x.reshape(w.batch, -1, lanes, *w.data[1:]), 2, -1).ravel()
    if transforms:
        rows = np.moveaxis(g.reshape(w.filters, -1, lanes, 9), 2, 3).reshape(w.filters, -1)
        operands[1] = pack_rows(np.ascontiguousarray(rows), columns).ravel()
    else:
        operands[1] = winograd.packed(g, columns, False).astype("float32").ravel()
    instructions.run(call, operands)
    got = np.moveaxis(operands[2].reshape(w.batch, -1, *w.out[1:], lanes), -1, 2).reshape(w.batch, -1, *w.out[1:])
    padded = np.pad(x.astype("float64"), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    expected = np.einsum("nchwij,fcij->nfhw", seen, g.reshape(w.filters, w.channels, 3, 3).astype("float64"))
    np.testing.assert_allclose(got, expected, rtol=0, atol=2e-5 * np.abs(expected).max())


# --- the pass

HEAD = "graph(x: float32[1,32,14,15], w: float32[64,32,3,3], b: float32[1,64,1,1])\n"
CONVOLUTION = ("Convolution(x, w, kernel=(3, 3), stride=(1, 1), dilate=(1, 1), pad=(1, 1), num_filter=64, num_group=1, "
               "no_bias=True)\n")


def expected_graph(head: str, weight: str, height: int, width: int, more: str = "") -> str:
    """What becomes of the convolution and the addition behind it; weight: of what it is."""
    return (f"{head} s = Reshape(x, shape=(1, 8, 4, {height}, {width}))\n t = transpose(s, axes=(0, 1, 3, 4, 2))\n"
            f"{weight} y = _mxc_winograd_convolution(t, u, pad=(1, 1), shape=(1, 16, {height}, {width}, 4), tiles=4"
            f"{more})\n c = Reshape(b, shape=(1, 16, 1, 1, 4))\n z = broadcast_add(y, c)\n"
            f" p = transpose(z, axes=(0, 1, 4, 2, 3))\n q = Reshape(p, shape=(1, 64, {height}, {width}))\n return q")


PACKED = (" k = Reshape(w, shape=(64, 8, 4, 9))\n l = transpose(k, axes=(0, 1, 3, 2))\n"
          " m = Reshape(l, shape=(1, 64, 288))\n u = _mxc_pack_rows(m, block=8)\n")
LARGE = HEAD.replace("14,15", "34,28")  # 9 x 7 tiles: more than a band has


def test_pass():
    """The weight is that of a direct convolution; the kernel transforms it."""
    graph = parse_graph(f"{HEAD} y = {CONVOLUTION} z = broadcast_add(y, b)\n return z")
    result = blocked(graph, options(static=frozenset("w")))
    assert_graph(result, expected_graph(HEAD, PACKED, 14, 15, ", transforms=True"))
    assert_same_numbers(graph, result, rtol=0, atol=1e-4)


def test_small_weights_of_large_maps_are_transformed_once():
    graph = parse_graph(f"{LARGE} y = {CONVOLUTION} z = broadcast_add(y, b)\n return z")
    result = blocked(graph, options(static=frozenset("w")))
    assert_graph(result, expected_graph(LARGE, " u = _mxc_winograd_weight(w, columns=8)\n", 34, 28))
    assert_same_numbers(graph, result, rtol=0, atol=1e-4)
    small = blocked(graph, options(static=frozenset("w"), small=True))
    assert_graph(small, expected_graph(LARGE, PACKED, 34, 28, ", transforms=True"))


@pytest.mark.parametrize(("shape", "kept"), [
    ((1, 64, 64, 56), True), ((8, 64, 64, 56), True), ((1, 128, 128, 56), False), ((1, 64, 64, 28), False),
    ((16, 64, 64, 28), False)])
def test_which_weights_are_transformed_once(shape, kept):
    """It depends on the weight and the map, not on the batch."""
    assert ("_mxc_winograd_weight" in chosen_text(*shape)) == kept
    assert "_mxc_winograd_weight" not in chosen_text(*shape, small=True)


def test_filters_that_do_not_fill_blocks():
    graph = parse_graph(f"{HEAD.replace('b: float32[1,64,1,1]', 'b: float32[62,64,3,3]')} y = {CONVOLUTION}"
                        f" z = {CONVOLUTION.replace('x, w', 'y, b').replace('=64', '=62')} return z")
    result = blocked(graph, options(static=frozenset("wb")))
    assert [n.op.name for n in result.nodes if n.op is not None].count("_mxc_winograd_convolution") == 2
    assert_same_numbers(graph, result, rtol=0, atol=1e-3)


def chosen(*shape: int, **how) -> bool:
    return "winograd" in chosen_text(*shape, **how)


def chosen_text(n: int, channels: int, filters: int, size: int, dtype: str = "float32", more: str = "",
                **fields) -> str:
    more = more or "kernel=(3, 3), stride=(1, 1), dilate=(1, 1), pad=(1, 1), num_group=1"
    graph = parse_graph(f"graph(x: {dtype}[{n},{channels},{size},{size}], w: {dtype}[{filters},{channels},3,3])\n"
                        f" y = Convolution(x, w, {more}, num_filter={filters}, no_bias=True)\n return y")
    return graph_text(blocked(graph, options(static=frozenset("w"), **fields)))


@pytest.mark.parametrize("shape", [(1, 64, 64, 56), (1, 128, 128, 28), (1, 256, 256, 14), (16, 512, 512, 7),
                                   (1, 512, 512, 7), (1, 32, 64, 112)])
def test_chosen(shape):
    assert chosen(*shape)


@pytest.mark.parametrize("shape", [(1, 512, 512, 6), (1, 8, 8, 112), (1, 64, 64, 1), (1, 64, 64, 5), (8, 512, 512, 1)])
def test_not_worth_it(shape):
    assert not chosen(*shape)


@pytest.mark.parametrize("more", [
    "kernel=(3, 3), stride=(2, 2), dilate=(1, 1), pad=(1, 1), num_group=1",
    "kernel=(3, 3), stride=(1, 1), dilate=(2, 2), pad=(2, 2), num_group=1"])
def test_other_forms(more):
    assert not chosen(1, 64, 64, 56, more=more)


def test_float32_alone_and_not_where_it_must_be_exact():
    assert not chosen(1, 64, 64, 56, "float64")
    assert not chosen(1, 64, 64, 56, strict=True)


def test_strict_switch(monkeypatch):
    """The variable counts when something is compiled; an executor that has its plan keeps it."""
    x = np.random.default_rng(3).standard_normal((1, 32, 20, 20)).astype("float32")
    symbol = mx.sym.Convolution(mx.sym.var("x"), name="c", kernel=(3, 3), pad=(1, 1), num_filter=32)
    texts, results = [], []
    for value in ("", "1", ""):
        monkeypatch.setenv("MXC_STRICT", value)
        executor = symbol.simple_bind(mx.cpu(), grad_req="null", x=x.shape)
        executor.arg_dict["c_weight"][:] = 0.01 * np.arange(32 * 32 * 9).reshape(32, 32, 3, 3) % 1
        results.append(executor.forward(is_train=False, x=mx.nd.array(x))[0].asnumpy())
        texts.append("winograd" in executor.compiled().groups)
    assert texts == [True, False, True]
    np.testing.assert_allclose(results[0], results[1], rtol=0, atol=1e-4 * np.abs(results[1]).max())
    np.testing.assert_array_equal(results[0], results[2])


def test_memory_switch(monkeypatch):
    """With MXC_MEMORY=small the plan prepares about what the parameters have; the results are the same but for
    rounding. The variable counts when something is compiled."""
    x = np.random.default_rng(3).standard_normal((1, 64, 40, 40)).astype("float32")
    symbol = mx.sym.Convolution(mx.sym.var("x"), name="c", kernel=(3, 3), pad=(1, 1), num_filter=64)
    results, prepared = [], []
    for value in ("", "small"):
        monkeypatch.setenv("MXC_MEMORY", value)
        executor = symbol.simple_bind(mx.cpu(), grad_req="null", x=x.shape)
        executor.arg_dict["c_weight"][:] = np.random.default_rng(4).standard_normal((64, 64, 3, 3))
        results.append(executor.forward(is_train=False, x=mx.nd.array(x))[0].asnumpy())
        prepared.append(executor.compiled().plan.prepared_bytes)
        assert "winograd" in executor.compiled().groups
    assert prepared[1] == 64 * 64 * 9 * 4 < prepared[0] / 4
    np.testing.assert_allclose(results[0], results[1], rtol=0, atol=1e-5 * np.abs(results[1]).max())
    monkeypatch.setenv("MXC_MEMORY", "tiny")
    with pytest.raises(SettingError, match="MXC_MEMORY: expected 'small', or nothing, got 'tiny'"):
        symbol.simple_bind(mx.cpu(), grad_req="null", x=x.shape).forward(is_train=False)


def test_calls_one_by_one_keep_no_transformed_weight(monkeypatch, capsys):
    """What an operator called by itself prepares it would prepare in every call."""
    monkeypatch.setenv("MXC_PRINT", "fuse")
    x, weight = mx.nd.ones((1, 64, 21, 23)), mx.nd.ones((64, 64, 3, 3))
    y = mx.nd.Convolution(x, weight, kernel=(3, 3), pad=(1, 1), num_filter=64, no_bias=True)
    assert y[0, 0, 1, 1].asscalar() == 9 * 64
    groups = capsys.readouterr().err
    assert "_mxc_convolution" in groups and "prepare" not in groups
