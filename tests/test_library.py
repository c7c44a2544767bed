"""The CPU's library kernels against the templates' definitions in NumPy."""
from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Sequence

import llvmlite.binding as llvm
import numpy as np
import pytest

from mxc.compiler.kernel import calls, ir
from mxc.compiler.kernel.calls import Window, linear, pack_rows
from mxc.compiler.kernel.ir import CallKernel, Store, Value
from mxc.compiler.targets.cpu import library
from mxc.compiler.targets.cpu.isa import AVX2, AVX512, FORMS, NEON, PLAIN, Isa, native
from mxc.compiler.targets.cpu.load import load_objects, machine

TOLERANCE = {"float16": 2e-3, "float32": 3e-6, "float64": 1e-14}
GUARD = 0xA5


@functools.cache
def compiled(text: str) -> int:
    symbol = f"k{len(_symbols)}"
    _symbols.append(symbol)
    module = llvm.parse_assembly(text.replace("@kernel(", f"@{symbol}("))
    module.verify()
    return load_objects({symbol: machine().emit_object(module)})[symbol]


_symbols: list[str] = []


def launch(call: CallKernel, arrays: Sequence[np.ndarray], isa: Isa | None = None) -> None:
    """Runs all units in two portions and checks that the scratch memory was large enough."""
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 4)(compiled(library.source(call, "kernel", isa)))
    units, size = library.units(call, isa), library.scratch_bytes(call, isa)
    memory = np.full(size + 192, GUARD, np.uint8)
    scratch = -(-memory.ctypes.data // 64) * 64
    args = np.array([*(a.ctypes.data for a in arrays), *call.values()], np.int64)
    function(args.ctypes.data, 0, units // 2, scratch)
    function(args.ctypes.data, units // 2, units, scratch)
    assert (memory[scratch - memory.ctypes.data + size :] == GUARD).all()


def check(call: CallKernel, arrays: Sequence[np.ndarray], isa: Isa | None = None) -> None:
    """The last array is the result; it begins with what modes "add" add to."""
    expected, got = arrays[-1].copy(), arrays[-1].copy()
    calls.interpret(call, [*arrays[:-1], expected])
    launch(call, [*arrays[:-1], got], isa)
    dtype = got.dtype
    if dtype.kind == "f":
        scale = max(1.0, float(np.abs(expected.astype(np.float64)).max()))
        np.testing.assert_allclose(got / scale, expected / scale, rtol=0, atol=tolerance(call) * depth_of(call))
    else:
        np.testing.assert_array_equal(got, expected)


def tolerance(call: CallKernel) -> float:
    """Of the least precise dtype in the computation."""
    dtypes = {str(dict(call.params)["dtype"]), *(v.dtype for v in ir.walk(s.value for s in call.stores))}
    return max(TOLERANCE.get(dtype, 0) for dtype in dtypes)


def depth_of(call: CallKernel) -> float:
    """Rounding errors of a sum grow with its length."""
    return max(1.0, math.sqrt(call.extents[3] if call.template == "gemm" else math.prod(call.extents[10:13])) / 4)


def values(rng: np.random.Generator, shape: Sequence[int], dtype: str) -> np.ndarray:
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(tuple(shape)).astype(dtype)
    return rng.integers(-9, 9, tuple(shape)).astype(dtype)


def dense(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def plain_store(buffer: int, shape: Sequence[int], dtype: str, mode: str = "write") -> list[Store]:
    index = linear(dict(enumerate(dense(shape))))
    return [Store(buffer, index, ir.acc(0, dtype), mode)]


# --- matrix products

GEMMS = [
    # batch, m, n, k, dtype, A transposed, B transposed, A packed, B packed
    (1, 1, 1, 1, "float32", False, False, False, False),
    (1, 7, 19, 5, "float32", False, False, False, False),
    (1, 5, 17, 0, "float32", False, False, False, False),
    (2, 13, 33, 70, "float32", True, False, False, False),
    (2, 6, 16, 33, "float32", False, True, False, False),
    (1, 1, 40, 900, "float32", False, True, False, False),
    (1, 160, 23, 11, "float32", False, False, True, True),
    (3, 20, 9, 800, "float32", False, False, False, True),
    (1, 31, 18, 40, "float64", True, True, False, False),
    (2, 9, 12, 500, "float64", False, False, True, False),
    (1, 11, 21, 30, "float16", False, True, False, False),
    (2, 11, 21, 30, "float16", False, False, True, True),
    (1, 9, 20, 15, "int32", False, True, False, False),
    (1, 9, 20, 15, "int8", False, False, False, False),
    (1, 5, 6, 7, "int64", False, False, False, False),
]


def gemm_case(case: tuple, seed: int = 0) -> tuple[CallKernel, list[np.ndarray]]:
    batch, m, n, k, dtype, a_turned, b_turned, a_packed, b_packed = case
    rng = np.random.default_rng(seed)
    a, b = values(rng, (batch, m, k), dtype), values(rng, (batch, k, n), dtype)
    mr, nr = library.tile(dtype)
    strides = []
    operands = []
    both = (a, a_turned, a_packed, mr, a), (b, b_turned, b_packed, nr, b.swapaxes(1, 2))
    for x, turned, packed, block, rows in both:
        stored = np.ascontiguousarray(x.swapaxes(1, 2) if turned else x)
        s = dense(stored.shape)
        strides.append((s[0], s[2], s[1]) if turned else s)
        if packed:
            blocks = [pack_rows(np.ascontiguousarray(part), block).ravel() for part in rows]
            stored, strides[-1] = np.concatenate(blocks), (len(blocks[0]), 0, 0)
        operands.append(stored.ravel() if stored.size else np.zeros(1, dtype))
    stores = plain_store(2, (batch, m, n), dtype)
    call = calls.gemm(
        "dot", dtype, batch, m, n, k, strides[0], strides[1], (dtype,) * 3, stores,
        mr if a_packed else 0, nr if b_packed else 0,
    )
    return call, [*operands, np.zeros(batch * m * n, dtype)]


@pytest.mark.parametrize("case", GEMMS, ids=str)
def test_gemm(case):
    check(*gemm_case(case))


def test_gemm_repeats_an_operand_of_stride_0():
    rng = np.random.default_rng(1)
    a, b = values(rng, (3, 4, 5), "float32"), values(rng, (5, 6), "float32")
    stores = plain_store(2, (3, 4, 6), "float32")
    call = calls.gemm("dot", "float32", 3, 4, 6, 5, (20, 5, 1), (0, 6, 1), ("float32",) * 3, stores)
    out = np.zeros(72, np.float32)
    launch(call, [a.ravel(), b.ravel(), out])
    np.testing.assert_allclose(out.reshape(3, 4, 6), a @ b, atol=1e-5)


# --- epilogues

Epilogue = Callable[[list[Value], list[int]], Value]


def bias(extra: list[Value], shape: list[int]) -> Value:
    return ir.apply("add", ir.acc(0, "float32"), extra[0])


def scale_shift_relu(extra: list[Value], shape: list[int]) -> Value:
    scaled = ir.apply("add", ir.apply("mul", ir.acc(0, "float32"), extra[0]), extra[1])
    return ir.apply("max", scaled, ir.const(0.0, "float32"))


def residual(extra: list[Value], shape: list[int]) -> Value:
    return ir.apply("add", ir.apply("add", ir.acc(0, "float32"), extra[0]), extra[2])


def sigmoid(extra: list[Value], shape: list[int]) -> Value:
    return ir.apply("sigmoid", ir.acc(0, "float32"))


def rounded(extra: list[Value], shape: list[int]) -> Value:
    """A chain in float16."""
    half = ir.apply("mul", ir.acc(0, "float16"), ir.cast(extra[0], "float16"))
    return ir.cast(ir.apply("add", half, ir.const(0.1, "float16")), "float32")


def compared(extra: list[Value], shape: list[int]) -> Value:
    positive = ir.apply("gt", ir.acc(0, "float32"), extra[1])
    return ir.apply("where", positive, ir.acc(0, "float32"), ir.apply("sin", extra[2]))


def whole_numbers(extra: list[Value], shape: list[int]) -> Value:
    number = ir.cast(ir.acc(0, "float32"), "int32")
    number = ir.apply("mod", ir.apply("add", number, ir.const(7, "int32")), ir.const(3, "int32"))
    return ir.cast(number, "float32")


def dropped(extra: list[Value], shape: list[int]) -> Value:
    seed, offset, index = ir.const(7, "int64"), ir.const(2, "int64"), linear(dict(enumerate(dense(shape))))
    number = ir.make("rand", (seed, offset, index), "uint32")
    return ir.apply("where", ir.apply("gt", number, ir.const(2**31, "uint32")), ir.acc(0, "float32"), extra[0])


EPILOGUES: list[Epilogue] = [
    bias, scale_shift_relu, residual, sigmoid, rounded, compared, whole_numbers, dropped,
]


@pytest.mark.parametrize("mode", ["write", "add"])
@pytest.mark.parametrize("epilogue", EPILOGUES, ids=lambda e: e.__name__)
def test_epilogue(epilogue, mode):
    rng = np.random.default_rng(2)
    w = window(2, 1, 3, 7, (1, 6, 5), (1, 3, 3), pad=(0, 1, 1))
    shape = [2, 7, *w.out]
    x, weight = image(rng, w, "float32"), packed_weight(rng, w, "float32")
    extra = [values(rng, (7,), "float32"), values(rng, (7,), "float32"), values(rng, shape, "float32").ravel()]
    loads = [ir.load(2, linear({1: 1}), "float32"), ir.load(3, linear({1: 1}), "float32"),
             ir.load(4, linear(dict(enumerate(dense(shape)))), "float32")]
    store = Store(5, linear(dict(enumerate(dense(shape)))), epilogue(loads, shape), mode)
    block = library.tile("float32")[0]
    call = calls.convolution("conv", "float32", w, dense(x.shape), ("float32",) * 6, [store], block)
    assert dict(call.params)["flat"]
    check(call, [x.ravel(), weight, *extra, values(rng, (math.prod(shape),), "float32")])


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "int8", "bool"])
@pytest.mark.parametrize("mode", ["write", "add"])
def test_store_of_another_dtype(dtype, mode):
    call, arrays = gemm_case((1, 5, 21, 6, "float32", False, False, False, False))
    value = ir.cast(ir.acc(0, "float32"), dtype)
    buffers = ("float32", "float32", dtype)
    stores = [Store(2, call.stores[0].index, value, mode)]
    call = calls.gemm("dot", "float32", 1, 5, 21, 6, call.extents[4:7], call.extents[7:], buffers, stores)
    check(call, [*arrays[:2], np.ones(105, dtype)])


def test_columns_with_a_stride_and_two_stores():
    """Stores along columns that are no neighbours, and a second result."""
    call, arrays = gemm_case((1, 5, 21, 6, "float32", False, False, False, False))
    turned, product = linear({1: 1, 2: 5}), linear({1: 21, 2: 1})
    stores = [
        Store(2, product, ir.acc(0, "float32")),
        Store(3, turned, ir.apply("mul", ir.acc(0, "float32"), ir.load(4, linear({2: 3}, 2), "float32"))),
    ]
    call = calls.gemm("dot", "float32", 1, 5, 21, 6, call.extents[4:7], call.extents[7:], ("float32",) * 5, stores)
    rng = np.random.default_rng(3)
    outs = [np.zeros(105, np.float32) for _ in range(4)]
    factors = values(rng, (64,), "float32")
    launch(call, [*arrays[:2], outs[0], outs[1], factors])
    calls.interpret(call, [*arrays[:2], outs[2], outs[3], factors])
    np.testing.assert_allclose(outs[0], outs[2], atol=1e-5)
    np.testing.assert_allclose(outs[1], outs[3], atol=1e-5)


# --- convolutions


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


def packed_weight(rng: np.random.Generator, w: Window, dtype: str, transposed: bool = False) -> np.ndarray:
    weight = values(rng, (w.groups, w.filters, w.channels, *w.kernel), dtype)
    if transposed:
        weight = weight.swapaxes(1, 2)
    rows = [np.ascontiguousarray(group.reshape(len(group), -1)) for group in weight]
    return np.concatenate([pack_rows(r, library.tile(dtype)[0]).ravel() for r in rows])


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
}
KINDS = ["forward", "data", "weight"]


def convolution_case(
    kind: str, w: Window, dtype: str, flat: bool = True, layout: str = "nchw"
) -> tuple[CallKernel, list[np.ndarray]]:
    rng = np.random.default_rng(4)
    x, grad = image(rng, w, dtype), values(rng, (w.batch, w.groups * w.filters, *w.out), dtype)
    block = library.tile(dtype)[0]
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
        call = calls.convolution("conv", dtype, w, x_strides, buffers, stores, block)
        operands = [x_flat, packed_weight(rng, w, dtype)]
    elif kind == "data":
        call = calls.convolution_data_grad("conv", dtype, w, grad_strides, buffers, stores, block)
        operands = [grad_flat, packed_weight(rng, w, dtype, transposed=True)]
    else:
        call = calls.convolution_weight_grad("conv", dtype, w, x_strides, grad_strides, buffers, stores)
        operands = [x_flat, grad_flat]
    return call, [*operands, np.zeros(math.prod(shape), dtype)]


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("kind", KINDS)
def test_convolution(kind, name):
    check(*convolution_case(kind, WINDOWS[name], "float32"))


@pytest.mark.parametrize("dtype", ["float64", "float16"])
@pytest.mark.parametrize("kind", KINDS)
def test_convolution_dtypes(kind, dtype):
    for name in ("same", "stride", "3d"):
        check(*convolution_case(kind, WINDOWS[name], dtype))


@pytest.mark.parametrize("kind", KINDS)
def test_convolution_with_a_transposed_result_or_channels_last(kind):
    for name in ("stride", "3d"):
        call, arrays = convolution_case(kind, WINDOWS[name], "float32", flat=False)
        assert not dict(call.params)["flat"]
        check(call, arrays)
        check(*convolution_case(kind, WINDOWS[name], "float32", layout="nhwc"))


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
        call = calls.depthwise("dw", dtype, w, x_strides, buffers, stores)
        operands = [x.ravel(), weight]
    elif kind == "data":
        call = calls.depthwise_data_grad("dw", dtype, w, grad_strides, buffers, stores)
        operands = [grad.ravel(), weight]
    elif kind == "weight":
        call = calls.depthwise_weight_grad("dw", dtype, w, x_strides, grad_strides, buffers, stores)
        operands = [x.ravel(), grad.ravel()]
    else:
        x = rng.integers(-3, 3, x.shape).astype(dtype)  # many equal maxima
        call = calls.max_pool_grad("pool", dtype, w, x_strides, grad_strides, buffers, stores)
        operands = [x.ravel(), grad.ravel()]
    return call, [*operands, np.zeros(math.prod(shape), dtype)]


@pytest.mark.parametrize("name", DEPTHWISE)
@pytest.mark.parametrize("kind", KINDS)
def test_depthwise(kind, name):
    check(*depthwise_case(kind, DEPTHWISE[name], "float32"))


@pytest.mark.parametrize("dtype", ["float64", "float16"])
@pytest.mark.parametrize("kind", [*KINDS, "pool"])
def test_depthwise_dtypes(kind, dtype):
    for name in ("same", "stride"):
        check(*depthwise_case(kind, DEPTHWISE[name], dtype))


@pytest.mark.parametrize("kind", [*KINDS, "pool"])
def test_depthwise_with_a_transposed_result(kind):
    check(*depthwise_case(kind, DEPTHWISE["3d"], "float32", flat=False))


POOLS = {
    "overlap": window(2, 3, 1, 1, (1, 9, 8), (1, 3, 3), stride=(1, 2, 2), pad=(0, 1, 1)),
    "full": window(1, 2, 1, 1, (1, 8, 8), (1, 3, 3), stride=(1, 2, 2), extra=1),
    "3d": window(1, 2, 1, 1, (5, 4, 6), (2, 2, 3), stride=(2, 1, 2), pad=(0, 1, 1)),
}


@pytest.mark.parametrize("name", POOLS)
def test_max_pool_grad(name):
    check(*depthwise_case("pool", POOLS[name], "float32"))


# --- other instruction sets


@pytest.mark.parametrize("isa", [PLAIN, AVX2, AVX512], ids=lambda i: i.name)
def test_forms_that_this_machine_runs(isa):
    if not runs(isa):
        pytest.skip(f"no {isa.name} here")
    check(*gemm_case(GEMMS[1]), isa)
    check(*gemm_case(GEMMS[10]), isa)
    check(*depthwise_case("forward", DEPTHWISE["stride"], "float32"), isa)
    call, arrays = convolution_case("weight", WINDOWS["stride"], "float32")
    check(call, arrays, isa)


def runs(isa: Isa) -> bool:
    have = llvm.get_host_cpu_features()
    return all(have.get(f.lstrip("+"), False) for f in isa.features.split(","))


@pytest.mark.parametrize("isa", [AVX512, AVX2, PLAIN, NEON], ids=lambda i: i.name)
def test_forms_compile(isa):
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple = "aarch64-unknown-linux-gnu" if isa is NEON else "x86_64-unknown-linux-gnu"
    try:
        target = llvm.Target.from_triple(triple)
    except RuntimeError:
        pytest.skip(f"LLVM was built without {triple}")
    generator = target.create_target_machine(cpu="", features=isa.features, opt=1, reloc="pic")
    call = convolution_case("forward", WINDOWS["stride"], "float32")[0]
    for kernel in (call, gemm_case(GEMMS[10])[0]):
        module = llvm.parse_assembly(library.source(kernel, "kernel", isa))
        module.triple = triple
        assert generator.emit_object(module)


@pytest.mark.parametrize("isa", FORMS.values(), ids=lambda i: i.name)
def test_register_tiles_fit(isa):
    assert isa.rows * isa.vectors + isa.vectors + 1 <= isa.registers


def test_native_form_is_one_of_them():
    assert runs(native()) or native() is NEON


def test_one_text_serves_every_size():
    cases = [gemm_case((1, m, 9, 8, "float32", False, False, False, False))[0] for m in (2, 7, 40)]
    assert len({library.source(call, "kernel") for call in cases}) == 1
