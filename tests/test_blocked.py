"""Arrays whose channels lie in blocks: the pass, and the convolution kernel."""
from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from instruction_sets import SETS, filled
from library_cases import check, image, values, window
from pass_checks import FixedTiles, assert_graph, assert_same_numbers, options, outputs_of, values_for

import mxc as mx
from mxc.compiler.graph.options import Options
from mxc.compiler.graph.text import parse_graph
from mxc.compiler.kernel import calls, ir
from mxc.compiler.kernel.call_rule import dense
from mxc.compiler.kernel.calls import linear
from mxc.compiler.kernel.geometry import Window
from mxc.compiler.kernel.interpret_calls import pack_rows
from mxc.compiler.kernel.ir import CallKernel, Store
from mxc.compiler.ops.dtypes import NARROW, narrowed, widened
from mxc.compiler.passes.blocked import blocked
from mxc.compiler.targets.cpu import library
from mxc.compiler.targets.cpu.build.jobs import job_of
from mxc.compiler.targets.cpu.machine.isa import ISAS, Isa
from mxc.compiler.targets.preferences import Preferences

SAME = "kernel=(3, 3), stride=(1, 1), dilate=(1, 1), pad=(1, 1)"
HEAD = "graph(x: float32[2,3,5,6], w: float32[8,3,3,3], "
CONVOLUTION = f" y = Convolution(x, w, {SAME}, num_filter=8, num_group=1, no_bias=True)\n"
MADE = (" r = Reshape(w, shape=(1, 8, 27))\n p = _mxc_pack_rows(r, block=8)\n"
        f" y = _mxc_blocked_convolution(x, p, {SAME}, num_filter=8, num_group=1, block=4, columns=8)\n")
BACK = " t = transpose({0}, axes=(0, 1, 4, 2, 3))\n z = Reshape(t, shape={1})\n return z"
CASES = {
    "a convolution of a plain array": (
        f"{HEAD[:-2]})\n{CONVOLUTION} return y", f"{HEAD[:-2]})\n{MADE}{BACK.format('y', (2, 8, 5, 6))}"),
    "formulas of arrays, channels and numbers": (
        f"{HEAD}b: float32[1,8,1,1], c: float32[1], d: float32[2,8,5,6])\n{CONVOLUTION}"
        " u = broadcast_add(y, b)\n v = broadcast_mul(u, c)\n a = elemwise_add(v, d)\n s = relu(a)\n return s",
        f"{HEAD}b: float32[1,8,1,1], c: float32[1], d: float32[2,8,5,6])\n{MADE}"
        " b5 = Reshape(b, shape=(1, 2, 1, 1, 4))\n u = broadcast_add(y, b5)\n v = broadcast_mul(u, c)\n"
        " d5 = Reshape(d, shape=(2, 2, 4, 5, 6))\n d6 = transpose(d5, axes=(0, 1, 3, 4, 2))\n"
        f" a = elemwise_add(v, d6)\n s = relu(a)\n{BACK.format('s', (2, 8, 5, 6))}"),
    "pooling": (
        f"{HEAD[:-2]})\n{CONVOLUTION} q = Pooling(y, kernel=(2, 2), stride=(2, 2))\n return q",
        f"{HEAD[:-2]})\n{MADE} i = Reshape(y, shape=(4, 5, 6, 4))\n"
        " q = Pooling(i, kernel=(2, 2), stride=(2, 2), layout=NHWC)\n o = Reshape(q, shape=(2, 2, 2, 3, 4))\n"
        f"{BACK.format('o', (2, 8, 2, 3))}"),
    "a join with a plain array": (
        f"{HEAD}a: float32[2,4,5,6])\n{CONVOLUTION} q = Concat(y, a, num_args=2, dim=1)\n return q",
        f"{HEAD}a: float32[2,4,5,6])\n{MADE} a5 = Reshape(a, shape=(2, 1, 4, 5, 6))\n"
        " a6 = transpose(a5, axes=(0, 1, 3, 4, 2))\n q = Concat(y, a6, num_args=2, dim=1)\n"
        f"{BACK.format('q', (2, 12, 5, 6))}"),
    "filters that do not fill blocks": (
        f"{HEAD}v: float32[3,8,1,1])\n{CONVOLUTION} q = Convolution(y, v, kernel=(1, 1), stride=(1, 1), dilate=(1, 1), "
        "pad=(0, 0), num_filter=3, num_group=1, no_bias=True)\n return q",
        f"{HEAD}v: float32[3,8,1,1])\n{MADE} vr = Reshape(v, shape=(1, 3, 8))\n vp = _mxc_pack_rows(vr, block=8)\n"
        " q = _mxc_blocked_convolution(y, vp, kernel=(1, 1), stride=(1, 1), dilate=(1, 1), pad=(0, 0), num_filter=4, "
        "num_group=1, block=4, columns=8)\n t = transpose(q, axes=(0, 1, 4, 2, 3))\n"
        " z = Reshape(t, shape=(2, 4, 5, 6))\n c = slice_axis(z, axis=1, begin=0, end=3)\n return c"),
    "a mean over space": (
        f"{HEAD[:-2]})\n{CONVOLUTION} m = mean(y, axis=(2, 3), keepdims=True)\n return m",
        f"{HEAD[:-2]})\n{MADE} m = mean(y, axis=(2, 3), keepdims=True)\n"
        " q = Reshape(m, shape=(2, 8, 1, 1))\n return q"),
    "a depthwise convolution": (
        f"graph(x: float32[2,8,5,6], w: float32[8,1,3,3])\n"
        f" y = Convolution(x, w, {SAME}, num_filter=8, num_group=8, no_bias=True)\n return y",
        "graph(x: float32[2,8,5,6], w: float32[8,1,3,3])\n x5 = Reshape(x, shape=(2, 2, 4, 5, 6))\n"
        " x6 = transpose(x5, axes=(0, 1, 3, 4, 2))\n r = Reshape(w, shape=(2, 4, 9))\n"
        f" v = transpose(r, axes=(0, 2, 1))\n y = _mxc_blocked_depthwise(x6, v, {SAME})\n"
        f"{BACK.format('y', (2, 8, 5, 6))}"),
    "a convolution of blocks": (
        "graph(x: float32[2,8,5], w: float32[8,4,3])\n"
        " y = Convolution(x, w, kernel=(3,), stride=(2,), dilate=(1,), pad=(0,), num_filter=8, num_group=2, "
        "no_bias=True)\n return y", None),
}


def test_one_pixel_of_several_images_is_a_product():
    graph = parse_graph("graph(x: float32[2,8,1,1], w: float32[12,8,1,1])\n"
                        " y = Convolution(x, w, kernel=(1, 1), stride=(1, 1), dilate=(1, 1), pad=(0, 0), "
                        "num_filter=12, num_group=1, no_bias=True)\n return y")
    result = blocked(graph, options(static=frozenset("w")))
    assert_graph(result, "graph(x: float32[2,8,1,1], w: float32[12,8,1,1])\n r = Reshape(x, shape=(2, 8))\n"
                 " c = Reshape(w, shape=(12, 8))\n y = FullyConnected(r, c, num_hidden=12, no_bias=True)\n"
                 " z = Reshape(y, shape=(2, 12, 1, 1))\n return z")
    assert_same_numbers(graph, result, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_pass(name):
    before, after = CASES[name]
    graph = parse_graph(before)
    result = blocked(graph, options(static=frozenset("wv")))
    if after is not None:
        assert_graph(result, after)
    assert any(n.op is not None and n.op.name.startswith("_mxc_blocked") for n in result.nodes)
    assert_same_numbers(graph, result)


STAYS = {
    "the weight changes in every run": (f"{HEAD[:-2]})\n{CONVOLUTION} return y", frozenset()),
    "filters do not fill blocks": (
        "graph(x: float32[2,4,5], w: float32[6,4,3])\n y = Convolution(x, w, kernel=(3,), stride=(1,), dilate=(1,), "
        "pad=(0,), num_filter=6, num_group=1, no_bias=True)\n return y", frozenset("w")),
    "channels of a group do not fill blocks": (
        "graph(x: float32[2,4,5], w: float32[8,2,3])\n y = Convolution(x, w, kernel=(3,), stride=(1,), dilate=(1,), "
        "pad=(0,), num_filter=8, num_group=2, no_bias=True)\n return y", frozenset("w")),
}


@pytest.mark.parametrize("name", STAYS)
def test_stays_plain(name):
    text, static = STAYS[name]
    graph = parse_graph(text)
    assert_graph(blocked(graph, options(static=static)), text)


WINDOWS = {
    "same": window(1, 1, 16, 24, (1, 9, 11), (1, 3, 3), pad=(0, 1, 1)),
    "stride": window(2, 1, 8, 40, (1, 7, 7), (1, 3, 3), stride=(1, 2, 2), pad=(0, 1, 1)),
    "groups": window(2, 3, 16, 16, (1, 6, 5), (1, 3, 3), dilate=(1, 2, 1)),
    "3d": window(2, 1, 8, 16, (4, 6, 5), (2, 3, 3), dilate=(2, 1, 1), pad=(1, 2, 1)),
    "rows only": window(1, 1, 8, 8, (1, 30, 1), (1, 5, 1), stride=(1, 3, 1), pad=(0, 2, 0)),
    "several grains": window(1, 1, 288, 16, (1, 4, 5), (1, 3, 3), pad=(0, 1, 1)),
    "1x1": window(2, 1, 16, 32, (1, 7, 7), (1, 1, 1)),
    "1x1 stride": window(1, 2, 16, 16, (1, 9, 8), (1, 1, 1), stride=(1, 2, 2)),
    "far": window(1, 1, 16, 8, (1, 3, 3), (1, 3, 3), pad=(0, 4, 4)),
    "several bands": window(1, 1, 8, 8, (1, 40, 100), (1, 3, 3), pad=(0, 1, 1)),
    "wide": window(1, 1, 8, 8, (1, 4, 40), (1, 1, 13), pad=(0, 0, 6)),
    "one pixel": window(3, 1, 16, 16, (1, 3, 3), (1, 3, 3)),
    "two pixels": window(2, 1, 16, 40, (1, 1, 2), (1, 1, 1)),
    "seven pixels": window(1, 1, 768, 24, (1, 1, 7), (1, 1, 3), pad=(0, 0, 1)),
}


def case(w: Window, dtype: str, isa: Isa, plain: bool = False, epilogue: bool = False, flat: bool = True,
         paired: bool = False) -> tuple[CallKernel, list[np.ndarray]]:
    """The call of a window that is made to fill blocks, and its arrays. The result is in blocks; not flat: with rows
    and columns exchanged. paired: products of bfloat16 are added two by two."""
    rng, lanes, columns = np.random.default_rng(6), isa.lanes(dtype), isa.tile(dtype)[1]
    w = filled(w, lanes)
    inner = 1 if plain else lanes
    x = image(rng, w, dtype)
    blocks = x.reshape(w.batch, -1, inner, *w.data).transpose(0, 1, 3, 4, 5, 2)
    data = np.ascontiguousarray(blocks)
    real = ir.computing_dtype(dtype)
    depth = w.channels * math.prod(w.kernel)
    rows = [values(rng, (w.filters, depth), real) for _ in range(w.groups)]
    weight = np.concatenate([pack_rows(r, columns).ravel() for r in rows])
    n, c, d, h, wide = w.batch, w.groups * w.filters // lanes, *w.out
    steps = [c * d * h * wide * lanes, d * h * wide * lanes, 1, h * wide * lanes, wide * lanes, lanes]
    if not flat:
        steps[4:] = [lanes, h * lanes]
    place, result = linear(dict(enumerate(steps))), ir.acc(0, dtype)
    operands, buffers = [data.ravel(), weight], [dtype, real]
    if epilogue:
        result = ir.apply("add", result, ir.load(2, linear({1: lanes, 2: 1}), dtype))
        result = ir.apply("max", result, ir.load(3, place, dtype))
        operands += [values(rng, (c * lanes,), dtype), values(rng, (n * steps[0],), dtype)]
        buffers += [dtype, dtype]
    stores = [Store(len(buffers), place, result, "add" if epilogue else "write")]
    copied, apart = plain or any(w.pad) or (dtype in NARROW and not paired), dense(data.shape)[:5]
    if paired:
        w, inner, apart = replace(w, channels=w.channels // 2), inner // 2, tuple(step // 2 for step in apart)
        operands[1], buffers[1] = narrowed(weight.reshape(-1, 2, columns).swapaxes(1, 2).ravel()), dtype
    made = calls.blocked_convolution(dtype, w, apart, inner, lanes, columns, copied, paired=paired)
    return calls.call("conv", made, (*buffers, dtype), stores), [*operands, values(rng, (n * steps[0],), dtype)]


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("plain", [False, True], ids=("blocks", "plain"))
def test_kernel(name, plain, instructions):
    w = WINDOWS[name]
    if plain and w.groups > 1:
        pytest.skip("plain data have one group")
    check(*case(w, "float32", instructions.isa, plain), instructions)


@pytest.mark.parametrize("dtype", ["float64", "float16"])
@pytest.mark.parametrize("name", ["same", "1x1"])
def test_kernel_dtypes(name, dtype, instructions):
    check(*case(WINDOWS[name], dtype, instructions.isa), instructions)


@pytest.mark.parametrize("name", WINDOWS)
def test_kernel_of_pairs(name, instructions):
    if instructions.isa.lanes("float32") > 2:
        check(*case(WINDOWS[name], "bfloat16", instructions.isa, epilogue=name == "same", paired=True), instructions)


def test_pairs_are_of_bfloat16_in_blocks():
    """Where the target multiplies pairs; the first convolution reads plain data of 3 channels."""
    text = ("graph(x: {0}[2,3,5,6], w: {0}[8,3,3,3], v: {0}[8,8,3,3])\n"
            f"{CONVOLUTION} z = Convolution(y, v, {SAME}, num_filter=8, num_group=1, no_bias=True)\n return z")
    figures = FixedTiles().prefers
    for dtype, paired in (("bfloat16", [False, True]), ("float16", [False, False])):
        graph = parse_graph(text.format(dtype))
        for given, wanted in ((figures, paired), (replace(figures, pairs=None), [False, False])):
            made = blocked(graph, Options(target=Chosen(given), static=frozenset({"w", "v"})))
            assert [node.params.paired for node in made.nodes
                    if node.op is not None and node.op.name == "_mxc_blocked_convolution"] == wanted
            values = values_for(graph)
            for one, two in zip(outputs_of(graph, values), outputs_of(made, values), strict=True):
                np.testing.assert_allclose(widened(one), widened(two), rtol=2e-2, atol=2e-2)


class Chosen(FixedTiles):
    """With figures of its own."""

    def __init__(self, figures: Preferences):
        self.figures = figures

    @property
    def prefers(self) -> Preferences:
        return self.figures


@pytest.mark.parametrize("flat", [True, False])
def test_kernel_epilogue(flat, instructions):
    check(*case(WINDOWS["same"], "float32", instructions.isa, epilogue=True, flat=flat), instructions)


@pytest.mark.parametrize("instructions", [each for each in SETS if each.isa.assembles], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tiles_assemble(instructions, dtype):
    """Also where the machine lacks the set."""
    w = window(1, 1, 32, 48, (1, 5, 6), (1, 3, 3), pad=(0, 1, 1))
    job = job_of(case(w, dtype, instructions.isa)[0], "kernel", instructions.isa)
    assert "asm sideeffect" in job.text
    assert instructions.object_of(job)


@pytest.mark.parametrize("isa", ISAS.values(), ids=lambda i: i.name)
def test_one_text_serves_every_size(isa):
    first, second = (case(window(1, 1, c, 32, (1, h, h), (1, 3, 3), pad=(0, 1, 1)), "float32", isa)[0]
                     for c, h in ((16, 5), (32, 9)))
    assert library.source(first, "k", isa) == library.source(second, "k", isa)


DEPTHWISE = {
    "same": window(1, 16, 1, 1, (1, 9, 11), (1, 3, 3), pad=(0, 1, 1)),
    "stride": window(2, 8, 1, 1, (1, 7, 20), (1, 3, 3), stride=(1, 2, 2), pad=(0, 1, 1)),
    "3d": window(2, 8, 1, 1, (4, 6, 5), (2, 3, 3), dilate=(1, 2, 1), pad=(1, 2, 1)),
    "dilated": window(1, 8, 1, 1, (1, 12, 12), (1, 3, 3), dilate=(1, 2, 2), pad=(0, 2, 2)),
    "rows only": window(1, 8, 1, 1, (1, 30, 1), (1, 5, 1), stride=(1, 3, 1), pad=(0, 2, 0)),
    "several bands": window(1, 8, 1, 1, (1, 40, 100), (1, 5, 5), pad=(0, 2, 2)),
    "more taps than are unrolled": window(1, 8, 1, 1, (1, 9, 20), (1, 7, 7), stride=(1, 1, 2), pad=(0, 3, 3)),
    "larger than the image": window(1, 8, 1, 1, (1, 2, 2), (1, 5, 5), pad=(0, 2, 2)),
    "far": window(1, 8, 1, 1, (1, 3, 3), (1, 3, 3), pad=(0, 4, 4)),
    "one pixel": window(3, 16, 1, 1, (1, 3, 3), (1, 3, 3)),
}


def depthwise_case(w: Window, dtype: str, isa: Isa) -> tuple[CallKernel, list[np.ndarray]]:
    """A depthwise convolution, of a window that is made to fill blocks, with a bias and relu."""
    rng, lanes = np.random.default_rng(7), isa.lanes(dtype)
    w = filled(w, lanes)
    blocks = image(rng, w, dtype).reshape(w.batch, -1, lanes, *w.data).transpose(0, 1, 3, 4, 5, 2)
    data = np.ascontiguousarray(blocks)
    weight = values(rng, (w.groups * math.prod(w.kernel),), ir.computing_dtype(dtype))
    shape = (w.batch, w.groups // lanes, *w.out, lanes)
    steps = dense(shape)
    place = linear({0: steps[0], 1: steps[1], 2: 1, 3: steps[2], 4: steps[3], 5: steps[4]})
    shifted = ir.apply("add", ir.acc(0, dtype), ir.load(2, linear({1: lanes, 2: 1}), dtype))
    stores = [Store(3, place, ir.apply("max", shifted, ir.const(0, dtype)))]
    buffers = (dtype, ir.computing_dtype(dtype), dtype, dtype)
    call = calls.call("conv", calls.blocked_depthwise(dtype, w, dense(data.shape)[:5], lanes), buffers, stores)
    return call, [data.ravel(), weight, values(rng, (w.groups,), dtype), np.zeros(math.prod(shape), dtype)]


@pytest.mark.parametrize("name", DEPTHWISE)
def test_depthwise(name, instructions):
    check(*depthwise_case(DEPTHWISE[name], "float32", instructions.isa), instructions)


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_depthwise_dtypes(dtype, instructions):
    check(*depthwise_case(DEPTHWISE["stride"], dtype, instructions.isa), instructions)


def test_relu_keeps_nan(instructions):
    call, arrays = depthwise_case(DEPTHWISE["same"], "float32", instructions.isa)
    height, width = DEPTHWISE["same"].data[1:]
    arrays[0].reshape(-1, height, width, instructions.isa.lanes("float32"))[0, 4, 5, 1] = np.nan
    instructions.run(call, arrays)
    assert np.isnan(arrays[-1]).sum() == 9  # the windows over it, none of which is at an edge


@pytest.mark.parametrize("groups", [1, 16], ids=["whole", "depthwise"])
def test_float16_networks_keep_their_dtype(groups):
    """The kernels read weights in the computing dtype, float32, and give what the data are."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (2, 16, 5, 5)).astype("float16")
    w = rng.uniform(-1, 1, (16, 16 // groups, 3, 3)).astype("float16")
    data, weight = mx.sym.Variable("data"), mx.sym.Variable("weight")
    net = mx.sym.Convolution(data, weight, kernel=(3, 3), pad=(1, 1), num_filter=16, num_group=groups, no_bias=True)
    results = [net.bind(mx.cpu(), {"data": mx.nd.array(x, dtype=dtype), "weight": mx.nd.array(w, dtype=dtype)},
                        grad_req="null").forward()[0].asnumpy() for dtype in ("float16", "float64")]
    assert results[0].dtype == "float16"
    np.testing.assert_allclose(results[0], results[1], atol=1e-3 * np.abs(results[1]).max())


def test_weights_are_packed_again_whatever_writes_them() -> None:
    """Through handles, views, operators that update in place, memory that was handed out, and training steps."""
    net = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=16, pad=(1, 1), name="c")
    net = mx.sym.Convolution(mx.sym.relu(mx.sym.BatchNorm(net, name="b")), kernel=(1, 1), num_filter=8, name="d")
    rng = np.random.default_rng(0)

    def bound() -> mx.executor.Executor:
        return net.simple_bind(mx.cpu(), data=(2, 16, 12, 12))

    executor = bound()
    for array in (*executor.arg_arrays, *executor.aux_arrays):
        array[:] = rng.uniform(0.5, 1, array.shape)
    weight, variance = executor.arg_dict["c_weight"], executor.aux_dict["b_moving_var"]
    shared = weight._array.share()

    def step() -> None:
        executor.forward(is_train=True)
        executor.backward(mx.nd.ones((2, 8, 12, 12)))
        mx.nd.sgd_update(weight, executor.grad_dict["c_weight"], lr=1e-3, out=weight)

    writes = [lambda: weight.__setitem__(slice(None), rng.uniform(0, 1, weight.shape)),
              lambda: weight[1:3].__setitem__(slice(None), 2), lambda: variance.__setitem__(slice(None), 3),
              lambda: executor.copy_params_from({"d_weight": mx.nd.ones((8, 16, 1, 1))}, allow_extra_params=True),
              lambda: shared.__setitem__(0, 5), step, lambda: shared.__setitem__(1, 7)]
    for write in writes:
        before = executor.forward(is_train=False)[0].asnumpy()
        write()
        other = bound()
        other.copy_params_from(executor.arg_dict, executor.aux_dict)
        now, wanted = executor.forward(is_train=False)[0].asnumpy(), other.forward(is_train=False)[0].asnumpy()
        np.testing.assert_array_equal(now, wanted)
        assert np.abs(now - before).max() > 1e-3
