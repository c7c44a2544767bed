"""Calls of library kernels that between them use every template; and how they are run and compared."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from instruction_sets import InstructionSet

from mxc.compiler.kernel import calls, interpret_calls, ir, plane_calls
from mxc.compiler.kernel.calls import linear
from mxc.compiler.kernel.geometry import Gemm, Window, WinogradConvolution
from mxc.compiler.kernel.interpret_calls import pack_rows
from mxc.compiler.kernel.ir import CallKernel, Store
from mxc.compiler.kernel.word_geometry import WordProduct
from mxc.compiler.ops.dtypes import converted, numpy_dtype, widened
from mxc.compiler.targets.cpu.machine.isa import Isa
from mxc.compiler.targets.cpu.preferences import FIGURES

TOLERANCE = {"bfloat16": 1e-2, "float16": 2e-3, "float32": 3e-6, "float64": 1e-14}


def check(call: CallKernel, arrays: Sequence[np.ndarray], instructions: InstructionSet) -> None:
    """The last array is the result; it begins with what modes "add" add to."""
    expected, got = arrays[-1].copy(), arrays[-1].copy()
    interpret_calls.interpret(call, [*arrays[:-1], expected])
    instructions.run(call, [*arrays[:-1], got])
    got, expected = widened(got), widened(expected)
    if got.dtype.kind == "f":
        scale = max(1.0, float(np.abs(expected.astype(np.float64)).max()))
        np.testing.assert_allclose(got / scale, expected / scale, rtol=0, atol=tolerance(call) * depth_of(call))
    else:
        np.testing.assert_array_equal(got, expected)


def tolerance(call: CallKernel) -> float:
    """Of the least precise dtype in the computation."""
    dtypes = {call.geometry.dtype, *(v.dtype for v in ir.walk(s.value for s in call.stores))}
    return max(TOLERANCE.get(dtype, 0) for dtype in dtypes)


def depth_of(call: CallKernel) -> float:
    """Rounding errors of a sum grow with its length; those of weights that a kernel transforms are amplified when its
    products are transformed back."""
    g: Any = call.geometry
    if isinstance(g, WinogradConvolution) and g.transforms:
        return 4.0
    return max(1.0, math.sqrt(g.k if isinstance(g, Gemm | WordProduct) else math.prod(g.window.kernel)) / 4)


def values(rng: np.random.Generator, shape: Sequence[int], dtype: str) -> np.ndarray:
    if "float" in dtype:
        return converted(rng.standard_normal(tuple(shape)), numpy_dtype(dtype))
    return rng.integers(-9, 9, tuple(shape)).astype(dtype)


def dense(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def plain_store(buffer: int, shape: Sequence[int], dtype: str, mode: str = "write") -> list[Store]:
    index = linear(dict(enumerate(dense(shape))))
    return [Store(buffer, index, ir.acc(0, dtype), mode)]


GEMMS = [
    # batch, m, n, k, dtype, A transposed, B transposed, B packed
    (1, 1, 1, 1, "float32", False, False, False),
    (1, 7, 19, 5, "float32", False, False, False),
    (1, 5, 17, 0, "float32", False, False, False),
    (2, 13, 33, 70, "float32", True, False, False),
    (2, 6, 16, 33, "float32", False, True, False),
    (1, 1, 40, 900, "float32", False, True, False),
    (1, 160, 23, 11, "float32", False, False, True),
    (1, 155, 23, 400, "float32", True, False, False),
    (3, 20, 9, 800, "float32", False, False, True),
    (1, 31, 18, 40, "float64", True, True, False),
    (2, 5, 37, 700, "float32", False, True, False),
    (2, 1, 701, 130, "float32", False, True, False),
    (2, 1, 701, 131, "float32", False, False, False),
    (1, 1, 4100, 9, "float32", True, False, False),
    (1, 4, 4100, 67, "float32", False, False, False),
    (2, 3, 2500, 110, "float32", True, False, False),
    (1, 8, 4101, 520, "float32", False, False, False),
    (1, 2, 601, 500, "float64", False, False, False),
    (1, 2, 601, 500, "float16", False, False, False),
    (2, 1, 8901, 17, "float32", False, False, False),
    (3, 1, 2300, 60, "float64", False, False, False),
    (2, 301, 1, 700, "float32", False, False, False),
    (1, 301, 1, 70, "float32", True, True, False),
    (1, 1, 21, 30, "float16", False, True, False),
    (1, 1, 21, 30, "float16", False, False, False),
    (1, 1, 40, 19, "int8", False, True, False),
    (1, 1, 40, 0, "float32", False, True, False),
    (1, 70, 800, 33, "float32", True, False, False),
    (1, 770, 771, 30, "float32", False, False, False),
    (1, 770, 769, 9, "float64", False, True, False),
    (1, 300, 40, 800, "float32", True, False, False),
    (1, 70, 301, 500, "float32", False, True, False),
    (1, 300, 37, 90, "float64", True, True, False),
    (1, 200, 290, 67, "float32", True, False, False),
    (2, 9, 12, 500, "float64", False, False, False),
    (1, 11, 21, 30, "float16", False, True, False),
    (2, 11, 21, 30, "float16", False, False, True),
    (1, 1, 21, 30, "bfloat16", False, True, False),
    (1, 11, 21, 31, "bfloat16", True, True, False),
    (2, 70, 301, 500, "bfloat16", False, False, False),
    (2, 11, 21, 30, "bfloat16", False, False, True),
    (1, 301, 1, 70, "bfloat16", True, True, False),
    (1, 9, 20, 15, "int32", False, True, False),
    (1, 9, 20, 15, "int8", False, False, False),
    (1, 5, 6, 7, "int64", False, False, False),
]


def gemm_case(case: tuple, isa: Isa, seed: int = 0) -> tuple[CallKernel, list[np.ndarray]]:
    batch, m, n, k, dtype, a_turned, b_turned, b_packed = case
    rng = np.random.default_rng(seed)
    a, b = values(rng, (batch, m, k), dtype), values(rng, (batch, k, n), dtype)
    nr = isa.tile(dtype)[1]
    strides = []
    operands = []
    for x, turned, packed in ((a, a_turned, False), (b, b_turned, b_packed)):
        stored = np.ascontiguousarray(x.swapaxes(1, 2) if turned else x)
        s = dense(stored.shape)
        strides.append((s[0], s[2], s[1]) if turned else s)
        if packed:
            blocks = [pack_rows(np.ascontiguousarray(part), nr).ravel() for part in b.swapaxes(1, 2)]
            stored, strides[-1] = np.concatenate(blocks), (len(blocks[0]), 0, 0)
        operands.append(stored.ravel() if stored.size else np.zeros(1, numpy_dtype(dtype)))
    stores = plain_store(2, (batch, m, n), dtype)
    product = calls.gemm(dtype, (batch, m, n, k), strides[0], strides[1], nr if b_packed else 0, FIGURES.products)
    return calls.call("dot", product, (dtype,) * 3, stores), [*operands, np.zeros(batch * m * n, numpy_dtype(dtype))]


def window(
    batch: int, groups: int, channels: int, filters: int, data: tuple, kernel: tuple, stride: tuple = (1, 1, 1),
    dilate: tuple = (1, 1, 1), pad: tuple = (0, 0, 0), extra: int = 0,
) -> Window:
    out = tuple(
        (data[i] + 2 * pad[i] - dilate[i] * (kernel[i] - 1) - 1 + extra) // stride[i] + 1 for i in range(3)
    )
    return Window(batch, groups, channels, filters, data, out, kernel, stride, dilate, pad)  # type: ignore[arg-type]


def image(rng: np.random.Generator, w: Window, dtype: str) -> np.ndarray:
    return values(rng, (w.batch, w.groups * w.channels, *w.data), dtype)


def packed_weight(rng: np.random.Generator, w: Window, dtype: str, block: int, transposed: bool = False) -> np.ndarray:
    """Packed in blocks of so many rows, or with block 0 as it is."""
    weight = values(rng, (w.groups, w.filters, w.channels, *w.kernel), dtype)
    if not block:
        return weight.ravel()
    if transposed:
        weight = weight.swapaxes(1, 2)
    rows = [np.ascontiguousarray(group.reshape(len(group), -1)) for group in weight]
    return np.concatenate([pack_rows(r, block).ravel() for r in rows])


WINDOWS = {
    "same": window(1, 1, 3, 7, (1, 9, 11), (1, 3, 3), pad=(0, 1, 1)),
    "stride": window(2, 1, 5, 13, (1, 7, 7), (1, 3, 3), stride=(1, 2, 2), pad=(0, 1, 1)),
    "3d": window(2, 3, 4, 5, (4, 6, 5), (2, 3, 3), dilate=(1, 2, 1), pad=(1, 2, 1)),
    "1d": window(1, 1, 8, 8, (1, 1, 30), (1, 1, 5), stride=(1, 1, 3), pad=(0, 0, 2)),
    "deep": window(1, 1, 90, 20, (1, 6, 6), (1, 3, 3), pad=(0, 1, 1)),
    "1x1": window(2, 1, 5, 30, (1, 7, 7), (1, 1, 1)),
    "1x1 stride": window(1, 2, 4, 9, (1, 9, 8), (1, 1, 1), stride=(1, 2, 2)),
    "far": window(1, 1, 2, 3, (1, 3, 3), (1, 3, 3), pad=(0, 4, 4)),
    "one pixel": window(3, 1, 4, 6, (1, 3, 3), (1, 3, 3)),
    "few pixels": window(5, 2, 9, 20, (1, 3, 3), (1, 3, 3), pad=(0, 1, 1)),
    "strides and dilations": window(2, 2, 3, 4, (5, 11, 16), (3, 4, 3), (2, 3, 4), (3, 1, 2), pad=(2, 1, 1)),
    "stride beyond the kernel": window(2, 1, 9, 8, (1, 7, 9), (1, 2, 1), (1, 4, 3)),
    "1x1, many channels": window(2, 1, 30, 19, (1, 4, 5), (1, 1, 1)),
    "eight taps": window(2, 1, 20, 19, (1, 4, 5), (1, 2, 4)),
    "several blocks": window(7, 1, 90, 8, (1, 2, 2), (1, 3, 3), pad=(0, 1, 1)),
}
# Small maps, on which taps outside are left out; batches that fill one vector of images, two, or not the last one.
SMALL_MAPS = {
    "2x2": window(8, 1, 9, 20, (1, 2, 2), (1, 3, 3), pad=(0, 1, 1)),
    "two vectors": window(16, 1, 50, 27, (1, 5, 4), (1, 3, 3), pad=(0, 1, 1)),
    "stride": window(24, 2, 7, 13, (1, 8, 9), (1, 3, 3), stride=(1, 2, 2), pad=(0, 1, 1)),
    "images and a rest": window(11, 1, 30, 14, (1, 4, 4), (1, 3, 3), pad=(0, 1, 1)),
    "3d": window(8, 2, 9, 7, (3, 4, 5), (2, 3, 2), dilate=(2, 1, 1), pad=(1, 1, 1)),
    "a channel": window(9, 1, 1, 5, (1, 9, 9), (1, 5, 5)),
    "bands": window(8, 1, 6, 40, (1, 20, 21), (1, 3, 3), pad=(0, 1, 1)),
    "1x1": window(8, 1, 70, 90, (1, 4, 4), (1, 1, 1), stride=(1, 2, 2)),
}
KINDS = ["forward", "data", "weight"]


def convolution_case(
    kind: str, w: Window, dtype: str, isa: Isa, flat: bool = True, layout: str = "nchw", packed: bool = True,
    by_images: bool = False,
) -> tuple[CallKernel, list[np.ndarray]]:
    rng = np.random.default_rng(4)
    x, grad = image(rng, w, dtype), values(rng, (w.batch, w.groups * w.filters, *w.out), dtype)
    strided = kind == "data" and any(s > 1 for s in w.stride)
    block = isa.tile(dtype)[0] if packed and not strided and not by_images else 0
    shape = {"forward": grad.shape, "data": x.shape, "weight": (w.groups * w.filters, w.channels, *w.kernel)}[kind]
    strides = list(dense(shape))
    if not flat:
        strides[-1], strides[-2] = shape[-2], 1
    stores = [Store(2, linear(dict(enumerate(strides))), ir.acc(0, dtype))]
    buffers = (dtype,) * 3

    def laid_out(array: np.ndarray) -> tuple[np.ndarray, tuple[int, ...]]:
        if layout == "nchw":
            return array.ravel(), dense(array.shape)
        last = np.ascontiguousarray(np.moveaxis(array, 1, -1))
        s = dense(last.shape)
        return last.ravel(), (s[0], s[4], s[1], s[2], s[3])

    (x_flat, x_strides), (grad_flat, grad_strides) = laid_out(x), laid_out(grad)
    if kind == "forward":
        made = (calls.image_convolution(dtype, w, x_strides) if by_images else
                calls.convolution(dtype, w, x_strides, block))
        operands = [x_flat, packed_weight(rng, w, dtype, block)]
    elif kind == "data":
        made = (calls.image_data_grad(dtype, w, grad_strides) if by_images else
                calls.convolution_data_grad(dtype, w, grad_strides, block))
        operands = [grad_flat, packed_weight(rng, w, dtype, block, transposed=True)]
    else:
        made = calls.convolution_weight_grad(dtype, w, x_strides, grad_strides)
        operands = [x_flat, grad_flat]
    return calls.call("conv", made, buffers, stores), [*operands, np.zeros(math.prod(shape), numpy_dtype(dtype))]


PANELS = {
    "1x1": window(2, 1, 5, 13, (1, 7, 11), (1, 1, 1)),
    "1x1, groups": window(1, 3, 4, 8, (1, 4, 8), (1, 1, 1)),
    "1x1, several bands": window(1, 1, 9, 24, (1, 30, 31), (1, 1, 1)),
    "1x1, deep": window(1, 1, 700, 7, (2, 5, 8), (1, 1, 1)),
    "1x1 stride": window(2, 2, 4, 9, (1, 9, 20), (1, 1, 1), stride=(1, 2, 2)),
    "1x1 padded": window(1, 1, 3, 5, (1, 6, 9), (1, 1, 1), pad=(0, 1, 2)),
    "same": window(2, 1, 3, 12, (1, 9, 11), (1, 3, 3), pad=(0, 1, 1)),
    "stride": window(1, 1, 3, 16, (1, 33, 41), (1, 3, 3), stride=(1, 2, 2), pad=(0, 1, 1)),
    "7x7": window(1, 1, 3, 6, (1, 40, 70), (1, 7, 7), stride=(1, 2, 2), pad=(0, 3, 3)),
    "stride beyond two": window(1, 1, 4, 7, (1, 17, 40), (1, 2, 5), stride=(1, 4, 3), pad=(0, 1, 2)),
    "dilated": window(1, 2, 3, 4, (1, 14, 16), (1, 3, 3), dilate=(1, 2, 3), pad=(0, 2, 3)),
    "far": window(1, 1, 2, 3, (1, 3, 3), (1, 3, 3), stride=(1, 1, 2), pad=(0, 4, 9)),
    "one pixel": window(3, 1, 4, 6, (1, 3, 3), (1, 3, 3)),
}


def panel_case(w: Window, dtype: str, isa: Isa, flat: bool = True, epilogue: bool = False,
               ) -> tuple[CallKernel, list[np.ndarray]]:
    """The call, and its arrays. flat: else with rows and columns of the result exchanged. epilogue: a bias, relu."""
    rng, block = np.random.default_rng(9), isa.tile(dtype)[0]
    x, shape = image(rng, w, dtype), (w.batch, w.groups * w.filters, *w.out)
    weight = values(rng, (w.groups, w.filters, w.channels * math.prod(w.kernel)), dtype)
    packed = np.concatenate([pack_rows(np.ascontiguousarray(group), block).ravel() for group in weight])
    strides = list(dense(shape))
    if not flat:
        strides[-1], strides[-2] = shape[-2], 1
    result, operands = ir.acc(0, dtype), [x.ravel(), packed]
    if epilogue:
        result = ir.apply("max", ir.apply("add", result, ir.load(2, linear({1: 1}), dtype)), ir.const(0, dtype))
        operands.append(values(rng, (shape[1],), dtype))
    stores = [Store(len(operands), linear(dict(enumerate(strides))), result)]
    made = calls.panel_convolution(dtype, w, dense(x.shape), block)
    call = calls.call("conv", made, (dtype,) * (len(operands) + 1), stores)
    return call, [*operands, np.zeros(math.prod(shape), numpy_dtype(dtype))]


PLANES = {
    **{name: w for name, w in PANELS.items() if not name.startswith("1x1") or name == "1x1 stride"},
    "padded on one side": window(2, 1, 5, 9, (1, 6, 21), (1, 2, 2), pad=(0, 1, 1)),
    "deconvolution": window(1, 1, 13, 6, (1, 12, 14), (1, 4, 4), stride=(1, 2, 2), pad=(0, 1, 1)),
    "several bands": window(1, 1, 3, 25, (1, 60, 37), (1, 3, 3), pad=(0, 1, 1)),
    "a row": window(3, 1, 7, 10, (1, 1, 90), (1, 1, 5), pad=(0, 0, 2)),
    "3d": window(2, 1, 4, 5, (5, 8, 17), (3, 3, 3), stride=(2, 1, 1), pad=(1, 1, 1)),
    "3d, dilated": window(1, 2, 3, 13, (6, 7, 9), (2, 3, 2), stride=(1, 2, 3), dilate=(2, 2, 1), pad=(1, 2, 0)),
    "many small groups": window(1, 6, 4, 4, (1, 11, 18), (1, 3, 3), pad=(0, 1, 1)),
    "one filter": window(1, 2, 3, 1, (1, 19, 40), (1, 3, 3), stride=(1, 2, 1), pad=(0, 1, 1)),
    "far padding": window(1, 1, 3, 2, (1, 5, 6), (1, 2, 2), stride=(1, 2, 2), pad=(0, 5, 6)),
}


def plane_case(kind: str, w: Window, dtype: str, isa: Isa, flat: bool = True, epilogue: bool = False, vectors: int = 0,
               ) -> tuple[CallKernel, list[np.ndarray]]:
    """The call, "forward" or "data", and its arrays. flat, epilogue: see `panel_case`. vectors: of filters, in a tile;
    0: vectors hold pixels."""
    rng, block = np.random.default_rng(6), vectors * isa.lanes(dtype) or isa.tile(dtype)[0]
    x, grad = image(rng, w, dtype), values(rng, (w.batch, w.groups * w.filters, *w.out), dtype)
    given, shape = (x, grad.shape) if kind == "forward" else (grad, x.shape)
    makers = ((plane_calls.filter_convolution, plane_calls.filter_data_grad) if vectors else
              (plane_calls.plane_convolution, plane_calls.plane_data_grad))
    made = makers[kind != "forward"](dtype, w, dense(given.shape), block)
    operands = [given.ravel(), packed_weight(rng, w, dtype, block, transposed=kind == "data")]
    strides, result = list(dense(shape)), ir.acc(0, dtype)
    if not flat:
        strides[-1], strides[-2] = shape[-2], 1
    if epilogue:
        result = ir.apply("max", ir.apply("add", result, ir.load(2, linear({1: 1}), dtype)), ir.const(0, dtype))
        operands.append(values(rng, (shape[1],), dtype))
    stores = [Store(len(operands), linear(dict(enumerate(strides))), result)]
    call = calls.call("conv", made, (dtype,) * (len(operands) + 1), stores)
    return call, [*operands, np.zeros(math.prod(shape), numpy_dtype(dtype))]


def quad_case(w: Window, isa: Isa) -> tuple[CallKernel, list[np.ndarray]]:
    """A convolution of four numbers of 8 bits at a time, all of them drawn, the largest and least ones too."""
    rng, block = np.random.default_rng(4), isa.tile("int32")[0]
    shape = (w.batch, w.groups * w.filters, *w.out)

    def quads(*sizes: int) -> np.ndarray:
        drawn = rng.choice(np.array([0, 1, 127, 128, 200, 255], np.uint8), (*sizes, 4))
        return drawn.view(np.int32).reshape(sizes)

    x = quads(w.batch, w.groups * w.channels, *w.data)
    weight = quads(w.groups, w.filters, w.channels * math.prod(w.kernel))
    packed = np.concatenate([pack_rows(np.ascontiguousarray(group), block).ravel() for group in weight])
    stores = [Store(2, linear(dict(enumerate(dense(shape)))), ir.acc(0, "int32"))]
    call = calls.call("conv", calls.quad_convolution(w, dense(x.shape), block), ("int32",) * 3, stores)
    return call, [x.ravel(), packed, np.zeros(math.prod(shape), "int32")]


DEPTHWISE = {
    "same": window(1, 3, 1, 1, (1, 9, 11), (1, 3, 3), pad=(0, 1, 1)),
    "stride": window(2, 5, 1, 1, (1, 7, 80), (1, 3, 3), stride=(1, 2, 2), pad=(0, 1, 1)),
    "3d": window(2, 3, 1, 1, (4, 6, 5), (2, 3, 3), dilate=(1, 2, 1), pad=(1, 2, 1)),
    "1d": window(1, 8, 1, 1, (1, 1, 30), (1, 1, 5), stride=(1, 1, 3), pad=(0, 0, 2)),
    "bands": window(1, 1, 1, 1, (1, 90, 200), (1, 9, 9), pad=(0, 4, 4)),
}


def depthwise_case(kind: str, w: Window, dtype: str, flat: bool = True) -> tuple[CallKernel, list[np.ndarray]]:
    rng = np.random.default_rng(5)
    x, grad = image(rng, w, dtype), values(rng, (w.batch, w.groups, *w.out), dtype)
    weight = values(rng, (w.groups * math.prod(w.kernel),), dtype)
    shape = {"forward": grad.shape, "data": x.shape, "weight": (w.groups, 1, *w.kernel), "pool": x.shape}[kind]
    strides = list(dense(shape))
    if not flat:
        strides[-1], strides[-2] = shape[-2], 1
    stores = [Store(2, linear(dict(enumerate(strides))), ir.acc(0, dtype))]
    buffers, x_strides, grad_strides = (dtype,) * 3, dense(x.shape), dense(grad.shape)
    if kind == "forward":
        made = calls.depthwise(dtype, w, x_strides)
        operands = [x.ravel(), weight]
    elif kind == "data":
        made = calls.depthwise_data_grad(dtype, w, grad_strides)
        operands = [grad.ravel(), weight]
    elif kind == "weight":
        made = calls.depthwise_weight_grad(dtype, w, x_strides, grad_strides)
        operands = [x.ravel(), grad.ravel()]
    else:
        x = converted(rng.integers(-3, 3, x.shape), numpy_dtype(dtype))  # many equal maxima
        made = calls.max_pool_grad(dtype, w, x_strides, grad_strides)
        operands = [x.ravel(), grad.ravel()]
    return calls.call("dw", made, buffers, stores), [*operands, np.zeros(math.prod(shape), numpy_dtype(dtype))]


def spread_case(w: Window, dtype: str, divisor: str, last: bool = False) -> tuple[CallKernel, list[np.ndarray]]:
    """The spread of the numbers of windows. last: their channels lie together."""
    rng = np.random.default_rng(9)
    shape = (w.batch, w.groups, *w.data)
    if last:
        out_strides = (w.groups * math.prod(w.out), 1, *(s * w.groups for s in dense(w.out)))
    else:
        out_strides = dense((w.batch, w.groups, *w.out))
    operand = values(rng, (w.batch * w.groups * math.prod(w.out),), dtype)
    made = calls.pool_spread(dtype, w, out_strides, divisor)
    call = calls.call("spread", made, (dtype,) * 2, plain_store(1, shape, dtype))
    return call, [operand, np.zeros(math.prod(shape), numpy_dtype(dtype))]


POOLS = {
    "overlap": window(2, 3, 1, 1, (1, 9, 8), (1, 3, 3), stride=(1, 2, 2), pad=(0, 1, 1)),
    "full": window(1, 2, 1, 1, (1, 8, 8), (1, 3, 3), stride=(1, 2, 2), extra=1),
    "3d": window(1, 2, 1, 1, (5, 4, 6), (2, 2, 3), stride=(2, 1, 2), pad=(0, 1, 1)),
    "stride 1": window(1, 2, 1, 1, (1, 5, 19), (1, 3, 3), pad=(0, 1, 1)),
    "wide": window(1, 2, 1, 1, (1, 7, 45), (1, 3, 3), stride=(1, 2, 2), pad=(0, 1, 1)),
    "stride 3": window(1, 2, 1, 1, (1, 9, 40), (1, 2, 4), stride=(1, 2, 3)),
    "windows outside": window(1, 2, 1, 1, (1, 3, 3), (1, 2, 2), pad=(0, 4, 4)),
    "squares": window(2, 3, 1, 1, (1, 8, 8), (1, 2, 2), stride=(1, 2, 2)),
    "a plane": window(2, 3, 1, 1, (1, 5, 7), (1, 5, 7)),
    "a volume": window(1, 2, 1, 1, (2, 4, 4), (2, 4, 4)),
    "a plane, padded": window(1, 2, 1, 1, (1, 5, 5), (1, 6, 6), pad=(0, 1, 1), stride=(1, 9, 9)),
    "a point": window(1, 2, 1, 1, (1, 1, 1), (1, 1, 1)),
    "rows of 16": window(1, 2, 1, 1, (1, 3, 16), (1, 3, 3), pad=(0, 1, 1)),
    "rows of 17": window(1, 2, 1, 1, (1, 3, 17), (1, 3, 3), stride=(1, 2, 2), pad=(0, 1, 1)),
    "rows of 34": window(1, 2, 1, 1, (1, 4, 34), (1, 1, 5), stride=(1, 1, 2), pad=(0, 0, 2)),
    "squares, odd": window(1, 2, 1, 1, (2, 5, 47), (1, 2, 2), stride=(1, 2, 2)),
}
