"""Winograd's way over plain arrays: its kernels, and which convolutions and gradients of training take it."""
from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from guarded import first_death, needs_linux, sides
from library_cases import check, dense, values, window
from pass_checks import assert_same_numbers, options

import mxc as mx
from mxc.compiler.graph.text import graph_text, parse_graph
from mxc.compiler.kernel import calls, ir
from mxc.compiler.kernel.calls import linear
from mxc.compiler.kernel.geometry import Geometry, Window
from mxc.compiler.kernel.ir import CallKernel, Store
from mxc.compiler.ops import winograd
from mxc.compiler.passes.layout import layout
from mxc.compiler.targets.cpu import library
from mxc.compiler.targets.cpu.machine.isa import AVX512, ISAS, Isa


def geometry(batch: int, blocks: tuple[int, int], height: int, width: int, pad: int, isa: Isa) -> Window:
    """blocks: of channels, and of filters."""
    channels, filters = (n * isa.lanes("float32") for n in blocks)
    return window(batch, 1, channels, filters, (1, height, width), (1, 3, 3), pad=(0, pad, pad))


SIZES = {"one tile": (1, (1, 1), 4, 4, 1), "a part of a tile": (2, (2, 3), 3, 1, 1), "two": (1, (1, 2), 7, 9, 1),
         "no border": (3, (1, 2), 8, 5, 0), "wide border": (1, (2, 1), 5, 6, 2), "wide": (1, (1, 1), 3, 70, 1),
         "images in a band": (7, (1, 1), 6, 7, 1), "several bands": (2, (3, 5), 34, 30, 1),
         "many tiles": (3, (5, 1), 27, 26, 1), "large rows": (1, (1, 1), 5, 300, 1)}


def tiles_of(w: Window) -> int:
    return w.batch * math.prod(winograd.grid(w.out))


def blocks_of(w: Window, channels: int, isa: Isa) -> tuple[int, ...]:
    """The shape of transformed tiles."""
    lanes = isa.lanes("float32")
    return winograd.PLACES, channels // lanes, winograd.odd(tiles_of(w)), lanes


def case(made: Geometry, operands: Sequence[Sequence[int]], result: Sequence[int],
         order: Sequence[int] | None = None, mode: str = "write") -> tuple[CallKernel, list[np.ndarray]]:
    """A kernel over operands of these shapes, whose result is stored with its axes in `order`. mode "add": it is added
    to what is there, and so is an array like it."""
    rng = np.random.default_rng(7)
    order = order or range(len(result))
    steps = dict(zip(order, dense([result[i] for i in order]), strict=True))
    place, last = linear(dict(sorted(steps.items()))), len(operands)
    value = ir.acc(0, "float32")
    arrays = [values(rng, (math.prod(shape),), "float32") for shape in operands]
    if mode == "add":
        value = ir.apply("add", value, ir.load(last, place, "float32"))
        arrays.append(values(rng, (math.prod(result),), "float32"))
    arrays.append(values(rng, (math.prod(result),), "float32"))
    stores = [Store(len(arrays) - 1, place, value, mode)]
    return calls.call("k", made, ("float32",) * len(arrays), stores), arrays


def side(w: Window, isa: Isa, of_results: bool) -> tuple[CallKernel, list[np.ndarray]]:
    shape = (w.batch, w.filters, *w.out) if of_results else (w.batch, w.channels, *w.data)
    made = calls.winograd_side("float32", w, dense(shape), isa.lanes("float32"), of_results)
    return case(made, [shape], blocks_of(w, shape[1], isa))


def weight_side(w: Window, isa: Isa, turned: bool) -> tuple[CallKernel, list[np.ndarray]]:
    columns, (rows, depth) = isa.tile("float32")[1], (w.channels, w.filters) if turned else (w.filters, w.channels)
    made = calls.winograd_weight("float32", w, columns, turned)
    return case(made, [(w.filters, w.channels, 9)],
                (winograd.PLACES, -(-rows // columns), winograd.odd(depth), columns))


def product(w: Window, isa: Isa, **how) -> tuple[CallKernel, list[np.ndarray]]:
    columns = isa.tile("float32")[1]
    weight = winograd.PLACES, -(-w.filters // columns), winograd.odd(w.channels), columns
    made = calls.plain_winograd("float32", w, isa.lanes("float32"), columns)
    return case(made, [blocks_of(w, w.channels, isa), weight], (w.batch, w.filters, *w.out), **how)


def weight_grad(w: Window, isa: Isa, **how) -> tuple[CallKernel, list[np.ndarray]]:
    made = calls.winograd_weight_grad("float32", w, isa.lanes("float32"))
    operands = [blocks_of(w, n, isa) for n in (w.channels, w.filters)]
    return case(made, operands, (w.filters, w.channels, 1, 3, 3), **how)


def every_kernel(w: Window, isa: Isa) -> list[tuple[CallKernel, list[np.ndarray]]]:
    return [side(w, isa, False), side(w, isa, True), weight_side(w, isa, False), weight_side(w, isa, True),
            product(w, isa), weight_grad(w, isa)]


@pytest.mark.parametrize("of_results", [False, True], ids=["data", "results"])
@pytest.mark.parametrize("name", SIZES)
def test_side(name, of_results, instructions):
    isa = instructions.isa
    check(*side(geometry(*SIZES[name], isa), isa, of_results), instructions)


@pytest.mark.parametrize("turned", [False, True], ids=["plain", "turned"])
@pytest.mark.parametrize("sizes", [(1, 1), (5, 40), (70, 16), (33, 37), (64, 96)])
def test_weight_side(sizes, turned, instructions):
    """Rows that fill groups and that do not, even and odd depths."""
    channels, filters = sizes
    w = window(1, 1, channels, filters, (1, 4, 4), (1, 3, 3))
    check(*weight_side(w, instructions.isa, turned), instructions)


@pytest.mark.parametrize("kernel", [product, weight_grad])
@pytest.mark.parametrize("name", SIZES)
def test_products(name, kernel, instructions):
    isa = instructions.isa
    check(*kernel(geometry(*SIZES[name], isa), isa), instructions)


@pytest.mark.parametrize("mode", ["write", "add"])
@pytest.mark.parametrize("order", [None, (1, 0, 2, 4, 3)], ids=["flat", "not flat"])
@pytest.mark.parametrize("kernel", [product, weight_grad])
def test_epilogue(kernel, order, mode, instructions):
    isa = instructions.isa
    for name in ("two", "images in a band"):
        check(*kernel(geometry(*SIZES[name], isa), isa, order=order, mode=mode), instructions)


@pytest.mark.parametrize("isa", ISAS.values(), ids=lambda i: i.name)
def test_one_text_serves_every_size(isa):
    first, second = (geometry(n, (2, 4), h, h + 1, p, isa) for n, h, p in ((1, 5, 1), (9, 40, 0)))
    for (one, _), (other, _) in zip(every_kernel(first, isa), every_kernel(second, isa), strict=True):
        assert library.source(one, "k", isa) == library.source(other, "k", isa)


@needs_linux
@pytest.mark.widest
def test_no_touch_outside_of_buffers(instructions):
    isa, works = instructions.isa, []
    for name, sizes in SIZES.items():
        w = geometry(*sizes, isa)
        for call, arrays in every_kernel(w, isa):
            instructions.address(call)
            works += [(f"{call.template} {name} reaches {where} a buffer", partial(instructions.run, call, there))
                      for where, there in sides(arrays)]
    assert first_death(works) is None


@pytest.mark.parametrize("sizes", [(16, (4, 4), 32, 32, 1), (16, (16, 16), 4, 4, 1), (1, (8, 8), 28, 28, 1)])
def test_enough_units(sizes):
    w = geometry(*sizes, AVX512)
    for call, _ in every_kernel(w, AVX512):
        assert library.units(call, AVX512) >= (8 if call.template != "winograd_weight" else 4)


def direct(x: np.ndarray, g: np.ndarray, y: np.ndarray, pad: int) -> tuple[np.ndarray, np.ndarray]:
    """The convolution of x with g, and its gradient to g for the gradient y of the results, in float64."""
    padded = np.pad(x.astype("float64"), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    return np.einsum("nchwij,fcij->nfhw", seen, g), np.einsum("nchwij,nfhw->fcij", seen, y)


@pytest.mark.parametrize("seed", range(3))
def test_same_as_direct(seed, instructions):
    """All kernels together against plain sums in float64."""
    rng, isa = np.random.default_rng(seed), instructions.isa
    n, channels, filters, height, width, pad = map(int, rng.integers([1, 1, 1, 3, 3, 0], [4, 4, 4, 25, 25, 3]))
    w = geometry(n, (channels, filters), height, width, pad, isa)
    x, y = (values(rng, shape, "float32") for shape in ((n, w.channels, height, width), (n, w.filters, *w.out[1:])))
    g = values(rng, (w.filters, w.channels, 3, 3), "float32")

    def run(made: tuple[CallKernel, list[np.ndarray]], *operands: np.ndarray) -> np.ndarray:
        call, arrays = made
        instructions.run(call, [*(a.ravel() for a in operands), arrays[-1]])
        return arrays[-1]

    data, results = run(side(w, isa, False), x), run(side(w, isa, True), y)
    out, gradient = direct(x, g, y, pad)
    for got, expected in ((run(product(w, isa), data, run(weight_side(w, isa, False), g)), out),
                          (run(weight_grad(w, isa), data, results), gradient)):
        np.testing.assert_allclose(got, expected.ravel(), rtol=0, atol=2e-5 * np.abs(expected).max())


# --- the pass

FORM = "kernel=(3, 3), stride=(1, 1), dilate=(1, 1), pad=(1, 1)"
OF = {"convolution": "Convolution(x, w, {form}, num_filter={f}, num_group=1, no_bias=True)",
      "data": "_mxc_conv_data_grad(y, w, {form}, shape=({n}, {c}, {size}, {size}), num_group=1)",
      "weight": "_mxc_conv_weight_grad(x, y, {form}, num_group=1)"}


def laid_out(of: str, n: int, c: int, f: int, size: int, form: str = FORM, out: int = 0, dtype: str = "float32",
             is_train: bool = True, **fields: object):
    out = out or size
    graph = parse_graph(f"graph(x: {dtype}[{n},{c},{size},{size}], w: {dtype}[{f},{c},3,3], "
                        f"y: {dtype}[{n},{f},{out},{out}])\n"
                        f" z = {OF[of].format(form=form, n=n, c=c, f=f, size=size)}\n return z")
    return graph, layout(graph, options(is_train=is_train, **fields))


@pytest.mark.parametrize("pad", [0, 1, 2])
@pytest.mark.parametrize("of", OF)
def test_pass(of, pad):
    form = FORM.replace("pad=(1, 1)", f"pad=({pad}, {pad})")
    graph, result = laid_out(of, 2, 64, 48, 13, form, 11 + 2 * pad)
    assert "_winograd" in graph_text(result)
    assert_same_numbers(graph, result, rtol=0, atol=2e-3)


@pytest.mark.parametrize("of", OF)
@pytest.mark.parametrize("shape", [(16, 64, 64, 32), (16, 128, 128, 16), (16, 256, 256, 4), (1, 64, 64, 28)])
def test_chosen(shape, of):
    assert "_winograd" in graph_text(laid_out(of, *shape)[1])


@pytest.mark.parametrize("of", OF)
@pytest.mark.parametrize("shape", [(16, 512, 512, 2), (16, 6, 64, 32), (1, 64, 64, 4), (64, 64, 64, 56)])
def test_not_worth_it(shape, of):
    """Maps smaller than a tile, channels that fill no blocks, few tiles, and tiles that take much memory."""
    assert "_winograd" not in graph_text(laid_out(of, *shape)[1])


def test_a_large_weight():
    """Its transformed kernels go to memory and back, which few tiles are not worth; its gradient needs none of them."""
    found = {of: "_winograd" in graph_text(laid_out(of, 16, 512, 512, 4)[1]) for of in OF}
    assert found == {"convolution": False, "data": False, "weight": True}
    assert all("_winograd" in graph_text(laid_out(of, 8, 512, 512, 7)[1]) for of in OF)


@pytest.mark.parametrize("of", OF)
def test_other_forms(of):
    for old, new, out in (("stride=(1, 1)", "stride=(2, 2)", 16), ("dilate=(1, 1)", "dilate=(2, 2)", 30)):
        form = FORM.replace(old, new)
        assert "_winograd" not in graph_text(laid_out(of, 16, 64, 64, 32, form, out)[1])
    assert "_winograd" not in graph_text(laid_out(of, 16, 64, 64, 32, dtype="float64")[1])
    assert "_winograd" not in graph_text(laid_out(of, 16, 64, 64, 32, strict=True)[1])


def test_inference_is_not_concerned():
    """Its weights are transformed once, for arrays in blocks; where they may change in each run it stays direct."""
    assert "_winograd" not in graph_text(laid_out("convolution", 16, 64, 64, 32, is_train=False)[1])
    assert "_winograd" not in graph_text(laid_out("convolution", 16, 64, 64, 32, static=frozenset("w"))[1])


def test_training_with_and_without(monkeypatch):
    """A block of a network, its results and all gradients."""
    x = mx.sym.var("x")
    for i in range(2):
        x = mx.sym.Convolution(x, name=f"c{i}", num_filter=32, kernel=(3, 3), pad=(1, 1), no_bias=True)
        x = mx.sym.Activation(mx.sym.BatchNorm(x, name=f"n{i}", fix_gamma=False), act_type="tanh")
    rng, found = np.random.default_rng(1), []
    for strict in ("", "1"):
        monkeypatch.setenv("MXC_STRICT", strict)
        executor = x.simple_bind(mx.cpu(), grad_req="write", x=(8, 32, 18, 15))
        rng = np.random.default_rng(1)
        for array in executor.arg_dict.values():
            array[:] = rng.standard_normal(array.shape)
        (out,) = executor.forward(is_train=True)
        executor.backward(mx.nd.array(rng.standard_normal(out.shape)))
        assert ("_winograd" in executor.compiled(True).groups) == (not strict)
        found.append([out, *executor.grad_dict.values()])
    for got, expected in zip(*found, strict=True):
        got, expected = got.asnumpy(), expected.asnumpy()
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-4 * np.abs(expected).max())
