"""The CPU's library kernels against the templates' definitions in NumPy."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import pytest
from guarded import first_death, needs_linux, sides
from library_cases import (
    DEPTHWISE,
    GEMMS,
    KINDS,
    PANELS,
    POOLS,
    SMALL_MAPS,
    WINDOWS,
    check,
    convolution_case,
    dense,
    depthwise_case,
    gemm_case,
    image,
    packed_weight,
    panel_case,
    plain_store,
    spread_case,
    values,
    window,
)

from mxc.compiler.kernel import calls, interpret_calls, ir
from mxc.compiler.kernel.calls import linear
from mxc.compiler.kernel.geometry import Window
from mxc.compiler.kernel.interpret_calls import pack_rows
from mxc.compiler.kernel.ir import CallKernel, Store, Value
from mxc.compiler.ops import table
from mxc.compiler.ops.dtypes import NARROW, converted, numpy_dtype, ones, widened
from mxc.compiler.targets.cpu import library
from mxc.compiler.targets.cpu.machine.isa import AVX2, AVX512, ISAS, NEON, PLAIN, Isa, fitting, native
from mxc.compiler.targets.cpu.preferences import FIGURES

# --- matrix products


@pytest.mark.parametrize("case", GEMMS, ids=str)
def test_gemm(case, instructions):
    check(*gemm_case(case, instructions.isa), instructions)


@pytest.mark.parametrize("case", [(1, 70, 301, 500, "float32", False, True, False),
                                  (1, 200, 290, 167, "float32", True, False, False),
                                  (2, 1, 8901, 57, "float32", False, False, False)], ids=str)
def test_gemm_gives_the_same_bits_whoever_computes_which_units(case, instructions):
    call, (*operands, out) = gemm_case(case, instructions.isa)
    units, found = library.units(call, instructions.isa), []
    assert units > 3
    for order in ([(0, units)], [(i, i + 1) for i in reversed(range(units))], [(units // 3, units), (0, units // 3)]):
        found.append(np.zeros_like(out))
        instructions.run(call, [*operands, found[-1]], order)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_gemm_repeats_an_operand_of_stride_0(instructions):
    rng = np.random.default_rng(1)
    a, b = values(rng, (3, 4, 5), "float32"), values(rng, (5, 6), "float32")
    stores = plain_store(2, (3, 4, 6), "float32")
    product = calls.gemm("float32", (3, 4, 6, 5), (20, 5, 1), (0, 6, 1), figures=FIGURES.products)
    call = calls.call("dot", product, ("float32",) * 3, stores)
    out = np.zeros(72, np.float32)
    instructions.run(call, [a.ravel(), b.ravel(), out])
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
def test_epilogue(epilogue, mode, instructions):
    rng = np.random.default_rng(2)
    w = window(2, 1, 3, 7, (1, 6, 5), (1, 3, 3), pad=(0, 1, 1))
    shape = [2, 7, *w.out]
    block = instructions.isa.tile("float32")[0]
    x, weight = image(rng, w, "float32"), packed_weight(rng, w, "float32", block)
    extra = [values(rng, (7,), "float32"), values(rng, (7,), "float32"), values(rng, shape, "float32").ravel()]
    loads = [ir.load(2, linear({1: 1}), "float32"), ir.load(3, linear({1: 1}), "float32"),
             ir.load(4, linear(dict(enumerate(dense(shape)))), "float32")]
    store = Store(5, linear(dict(enumerate(dense(shape)))), epilogue(loads, shape), mode)
    call = calls.call("conv", calls.convolution("float32", w, dense(x.shape), block), ("float32",) * 6, [store])
    assert dict(call.params)["flat"]
    check(call, [x.ravel(), weight, *extra, values(rng, (math.prod(shape),), "float32")], instructions)


EDGES = [0, -0.0, np.inf, -np.inf, np.nan, 300.7, -129.5, 255.9, 3e9, -3e9, 2147483904, 2**31, -2.0**31, 1e20, -1.5, 7]


@pytest.mark.parametrize("source", ["float32", "float64", *NARROW])
def test_edges_of_steps(source, instructions):
    """Casts from floats to everything and remainders, vector by vector and in a last one that is masked."""
    count = 21
    with np.errstate(over="ignore"):
        edges = converted(np.resize(np.array(EDGES), count), numpy_dtype(source))
    x = ir.load(2, linear({2: 1}), source)
    targets = [d for d in ("float32", "float64", *NARROW, "int8", "uint8", "int32", "int64", "bool") if d != source]
    results = [ir.cast(x, d) for d in targets]
    results += [ir.apply("mod", x, ir.const(d, source)) for d in (3.0, -3.0, 0.0)]
    stores = [Store(3 + i, linear({2: 1}), v) for i, v in enumerate(results)]
    buffers = ("float32", "float32", source, *(v.dtype for v in results))
    product = calls.gemm("float32", (1, 1, count, 1), (1, 1, 1), (count, count, 1), figures=FIGURES.products)
    call = calls.call("dot", product, buffers, stores)
    operands = [np.ones(1, np.float32), np.ones(count, np.float32), edges]
    got, expected = ([np.zeros(count, numpy_dtype(v.dtype)) for v in results] for _ in range(2))
    instructions.run(call, [*operands, *got])
    interpret_calls.interpret(call, [*operands, *expected])
    for one, other, value in zip(got, expected, results, strict=True):
        np.testing.assert_array_equal(widened(one), widened(other), err_msg=repr(value))


@pytest.mark.parametrize("dtype", [*NARROW, "float64", "int32", "int8", "bool"])
@pytest.mark.parametrize("mode", ["write", "add"])
def test_store_of_another_dtype(dtype, mode, instructions):
    call, arrays = gemm_case((1, 5, 21, 6, "float32", False, False, False), instructions.isa)
    value = ir.cast(ir.acc(0, "float32"), dtype)
    buffers = ("float32", "float32", dtype)
    stores = [Store(2, call.stores[0].index, value, mode)]
    call = calls.call("dot", call.geometry, buffers, stores)
    check(call, [*arrays[:2], ones((105,), dtype)], instructions)


@pytest.mark.parametrize("case", [(1, 70, 301, 500, "float32", False, True, False),
                                  (2, 13, 40, 30, "float32", False, True, False),
                                  (1, 3, 1030, 260, "float32", False, False, False),
                                  (1, 61, 45, 400, "float32", False, False, False)], ids=str)
def test_epilogue_of_products_turned_or_not(case, instructions):
    """A bias of each column and a value of each element, where rows and columns end within vectors."""
    call, arrays = gemm_case(case, instructions.isa)
    batch, m, n, _, dtype = case[:5]
    place = call.stores[0].index
    sums = ir.apply("add", ir.acc(0, dtype), ir.load(2, linear({2: 1}), dtype))
    value = ir.apply("max", sums, ir.load(3, place, dtype))
    call = calls.call("dot", call.geometry, (dtype,) * 5, [Store(4, place, value)])
    assert dict(call.params)["turned"] == case[6]
    rng = np.random.default_rng(5)
    check(call, [*arrays[:2], values(rng, (n,), dtype), values(rng, (batch * m * n,), dtype), arrays[2]], instructions)


def test_columns_with_a_stride_and_two_stores(instructions):
    """Stores along columns that are no neighbours, and a second result."""
    call, arrays = gemm_case((1, 5, 21, 6, "float32", False, False, False), instructions.isa)
    turned, product = linear({1: 1, 2: 5}), linear({1: 21, 2: 1})
    stores = [
        Store(2, product, ir.acc(0, "float32")),
        Store(3, turned, ir.apply("mul", ir.acc(0, "float32"), ir.load(4, linear({2: 3}, 2), "float32"))),
    ]
    call = calls.call("dot", call.geometry, ("float32",) * 5, stores)
    rng = np.random.default_rng(3)
    outs = [np.zeros(105, np.float32) for _ in range(4)]
    factors = values(rng, (64,), "float32")
    instructions.run(call, [*arrays[:2], outs[0], outs[1], factors])
    interpret_calls.interpret(call, [*arrays[:2], outs[2], outs[3], factors])
    np.testing.assert_allclose(outs[0], outs[2], atol=1e-5)
    np.testing.assert_allclose(outs[1], outs[3], atol=1e-5)


# --- convolutions


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("kind", ["forward", "data"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_convolution_packs_its_weight(dtype, kind, name, instructions):
    check(*convolution_case(kind, WINDOWS[name], dtype, instructions.isa, packed=False), instructions)


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("kind", KINDS)
def test_convolution(kind, name, instructions):
    check(*convolution_case(kind, WINDOWS[name], "float32", instructions.isa), instructions)


@pytest.mark.parametrize("name", SMALL_MAPS)
@pytest.mark.parametrize("kind", ["forward", "data"])
def test_convolution_by_images(kind, name, instructions):
    check(*convolution_case(kind, SMALL_MAPS[name], "float32", instructions.isa, by_images=True), instructions)


@pytest.mark.parametrize("kind", ["forward", "data"])
def test_convolution_by_images_of_any_kind(kind, instructions):
    for name in WINDOWS:
        check(*convolution_case(kind, WINDOWS[name], "float32", instructions.isa, by_images=True), instructions)
    for name in ("two vectors", "3d"):
        for dtype in ("float64", "float16"):
            check(*convolution_case(kind, SMALL_MAPS[name], dtype, instructions.isa, by_images=True), instructions)
        for form in ({"layout": "nhwc"}, {"flat": False}):
            case = convolution_case(kind, SMALL_MAPS[name], "float32", instructions.isa, by_images=True, **form)
            check(*case, instructions)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_weight_gradient_of_small_maps(dtype, instructions):
    for w in SMALL_MAPS.values():
        check(*convolution_case("weight", w, dtype, instructions.isa), instructions)


@pytest.mark.parametrize("dtype", ["float64", *NARROW])
@pytest.mark.parametrize("kind", KINDS)
def test_convolution_dtypes(kind, dtype, instructions):
    for name in ("same", "stride", "3d"):
        check(*convolution_case(kind, WINDOWS[name], dtype, instructions.isa), instructions)


@pytest.mark.parametrize("kind", KINDS)
def test_convolution_with_a_transposed_result_or_channels_last(kind, instructions):
    for name in ("stride", "3d"):
        call, arrays = convolution_case(kind, WINDOWS[name], "float32", instructions.isa, flat=False)
        assert not dict(call.params)["flat"]
        check(call, arrays, instructions)
        check(*convolution_case(kind, WINDOWS[name], "float32", instructions.isa, layout="nhwc"), instructions)


@pytest.mark.parametrize("name", DEPTHWISE)
@pytest.mark.parametrize("kind", KINDS)
def test_depthwise(kind, name, instructions):
    check(*depthwise_case(kind, DEPTHWISE[name], "float32"), instructions)


@pytest.mark.parametrize("dtype", ["float64", *NARROW])
@pytest.mark.parametrize("kind", [*KINDS, "pool"])
def test_depthwise_dtypes(kind, dtype, instructions):
    for name in ("same", "stride"):
        check(*depthwise_case(kind, DEPTHWISE[name], dtype), instructions)


@pytest.mark.parametrize("kind", [*KINDS, "pool"])
def test_depthwise_with_a_transposed_result(kind, instructions):
    check(*depthwise_case(kind, DEPTHWISE["3d"], "float32", flat=False), instructions)


@pytest.mark.parametrize("name", POOLS)
def test_max_pool_grad(name, instructions):
    check(*depthwise_case("pool", POOLS[name], "float32"), instructions)


@pytest.mark.parametrize("dtype", ["float64", *NARROW])
def test_max_pool_grad_dtypes(dtype, instructions):
    for name in ("overlap", "wide", "stride 3", "squares, odd"):
        check(*depthwise_case("pool", POOLS[name], dtype), instructions)


@pytest.mark.parametrize("divisor", ["none", "padded", "inside"])
@pytest.mark.parametrize("name", POOLS)
def test_pool_spread(name, divisor, instructions):
    check(*spread_case(POOLS[name], "float32", divisor), instructions)


@pytest.mark.parametrize("dtype", ["float64", *NARROW])
def test_pool_spread_dtypes(dtype, instructions):
    for name in ("overlap", "wide", "stride 3"):
        check(*spread_case(POOLS[name], dtype, "padded"), instructions)
    check(*spread_case(POOLS["overlap"], dtype, "inside", last=True), instructions)


def test_max_pool_grad_with_channels_last(instructions):
    rng, w = np.random.default_rng(8), POOLS["wide"]
    x = rng.integers(-3, 3, (*w.data, w.groups)).astype(np.float32)
    grad = values(rng, (*w.out, w.groups), "float32")
    strides = [(0, 1, *dense(array.shape)[:3]) for array in (x, grad)]
    stores = [Store(2, linear({1: 1, **dict(enumerate(strides[0][2:], 2))}), ir.acc(0, "float32"))]
    call = calls.call("pool", calls.max_pool_grad("float32", w, *strides), ("float32",) * 3, stores)
    check(call, [x.ravel(), grad.ravel(), np.zeros(x.size, np.float32)], instructions)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_max_pool_grad_of_nan(dtype, instructions):
    """As MXNet's CPU: NaN is passed over."""
    w = window(1, 1, 1, 1, (1, 1, 8), (1, 1, 2), stride=(1, 1, 2))
    x = np.array([np.nan, 1, 2, np.nan, np.nan, np.nan, np.nan, -np.inf], dtype)
    grad, out = np.array([10, 20, 30, 40], dtype), [np.zeros(8, dtype) for _ in range(2)]
    pool = calls.max_pool_grad(dtype, w, dense((1, 1, 1, 1, 8)), dense((1, 1, 1, 1, 4)))
    call = calls.call("pool", pool, (dtype,) * 3, plain_store(2, (1, 1, 1, 1, 8), dtype))
    instructions.run(call, [x, grad, out[0]])
    interpret_calls.interpret(call, [x, grad, out[1]])
    op = table.get("_mxc_max_pool_grad")
    params = op.make_params({"kernel": (2,), "stride": (2,)})
    for got in (*out, op.reference(params, [x.reshape(1, 1, 8), grad.reshape(1, 1, 4)], [dtype])[0].ravel()):
        np.testing.assert_array_equal(got, [0, 10, 20, 0, 30, 0, 0, 40])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_max_pool_grad_of_nan_in_a_plane(dtype, instructions):
    """The first of the largest numbers of the plane, wherever the vectors end; its first element where none is one."""
    w = window(1, 6, 1, 1, (1, 1, 37), (1, 1, 37))
    x = np.zeros((6, 37), dtype)
    x[0, [3, 20, 36]] = 5  # in three vectors
    x[1] = np.nan
    x[2], x[2, 35] = np.nan, -np.inf
    x[3, [17, 18]], x[3, 1] = 7, np.nan
    x[4] = -np.inf
    x[5, 36] = 1
    grad, out = np.arange(1, 7).astype(dtype), np.zeros(6 * 37, dtype)
    pool = calls.max_pool_grad(dtype, w, dense((1, 6, 1, 1, 37)), dense((1, 6, 1, 1, 1)))
    call = calls.call("pool", pool, (dtype,) * 3, plain_store(2, (1, 6, 1, 1, 37), dtype))
    instructions.run(call, [x.ravel(), grad, out])
    want = np.zeros((6, 37), dtype)
    want[range(6), [3, 0, 35, 17, 0, 36]] = grad
    np.testing.assert_array_equal(out.reshape(6, 37), want)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_max_pool_grad_of_nan_in_squares(dtype, instructions):
    """The first of the largest numbers in the order of rows, or of all where none is one."""
    w = window(1, 1, 1, 1, (1, 2, 12), (1, 2, 2), stride=(1, 2, 2))
    nan, inf = np.nan, np.inf
    x = np.array([[nan, 1, nan, nan, -inf, nan, 2, 3, 5, 5, nan, 7],
                  [1, 2, nan, nan, nan, -inf, 3, 3, 5, 5, 7, 7]], dtype)
    grad = np.arange(1, 7).astype(dtype)
    out = np.zeros(24, dtype)
    pool = calls.max_pool_grad(dtype, w, dense((1, 1, 1, 2, 12)), dense((1, 1, 1, 1, 6)))
    call = calls.call("pool", pool, (dtype,) * 3, plain_store(2, (1, 1, 1, 2, 12), dtype))
    instructions.run(call, [x.ravel(), grad, out])
    expected = np.zeros(24, dtype)
    interpret_calls.interpret(call, [x.ravel(), grad, expected])
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(out.reshape(2, 12), [[0, 0, 2, 0, 3, 0, 0, 4, 5, 0, 0, 6],
                                                       [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]])


# --- sizes beyond 32 bits


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_offsets_beyond_32_bits(stride, instructions):
    """Two taps 2**31 elements apart: untouched memory between them costs nothing."""
    if instructions.is_emulated:
        pytest.skip("an emulator may read all of it")
    apart, count = 2**31, 9
    try:
        row = np.zeros(apart + count, np.float32)
    except MemoryError:
        pytest.skip("the system gives no 8 GB that nobody touches")
    near, far = np.arange(count, dtype=np.float32), np.arange(count, dtype=np.float32) * 100
    row[:count], row[apart:] = near, far
    outs = (count - 1) // stride + 1
    w = Window(1, 1, 1, 1, (1, 1, len(row)), (1, 1, outs), (1, 1, 2), (1, 1, stride), (1, 1, apart))
    stores = plain_store(2, (1, 1, 1, 1, outs), "float32")
    block, got = instructions.isa.tile("float32")[0], np.zeros(outs, np.float32)
    call = calls.call("far", calls.convolution("float32", w, (0, 0, 0, 0, 1), block), ("float32",) * 3, stores)
    instructions.run(call, [row, pack_rows(np.array([[1, 2]], np.float32), block).ravel(), got])
    np.testing.assert_array_equal(got, (near + 2 * far)[::stride])


# --- memory


def some_cases(isa: Isa) -> Iterator[tuple[str, CallKernel, Sequence[np.ndarray]]]:
    """Every template, flat or not, with channels in front or last; several dtypes."""
    for case in GEMMS:
        yield f"gemm {case}", *gemm_case(case, isa)
    for dtype, names in (("float32", [*WINDOWS]), ("float16", ["stride", "3d"]), ("bfloat16", ["stride"])):
        for kind in KINDS:
            for name in names:
                yield f"convolution {kind} {name} {dtype}", *convolution_case(kind, WINDOWS[name], dtype, isa)
            for name in DEPTHWISE:
                yield f"depthwise {kind} {name} {dtype}", *depthwise_case(kind, DEPTHWISE[name], dtype)
        for name in POOLS:
            yield f"max_pool_grad {name} {dtype}", *depthwise_case("pool", POOLS[name], dtype)
            yield f"pool_spread {name} {dtype}", *spread_case(POOLS[name], dtype, "inside")
    for name, w in SMALL_MAPS.items():
        yield f"weight gradient {name}", *convolution_case("weight", w, "float32", isa)
        for kind in ("forward", "data"):
            yield f"convolution by images {kind} {name}", *convolution_case(kind, w, "float32", isa, by_images=True)
    for name, w in PANELS.items():
        yield f"convolution by panels {name}", *panel_case(w, "float32", isa)
    for kind in KINDS:
        yield f"convolution {kind}, transposed", *convolution_case(kind, WINDOWS["3d"], "float32", isa, flat=False)
        yield (f"convolution {kind}, channels last",
               *convolution_case(kind, WINDOWS["3d"], "float32", isa, layout="nhwc"))
        yield f"depthwise {kind}, transposed", *depthwise_case(kind, DEPTHWISE["3d"], "float32", flat=False)


@needs_linux
@pytest.mark.widest
def test_no_touch_outside_of_buffers(instructions):
    works = []
    for name, kernel, arrays in some_cases(instructions.isa):
        instructions.address(kernel)
        works += [(f"{name} reaches {side} a buffer", partial(instructions.run, kernel, there))
                  for side, there in sides(arrays)]
    assert first_death(works) is None


# --- instruction sets


@pytest.mark.parametrize("isa", ISAS.values(), ids=lambda i: i.name)
def test_register_tiles_fit(isa):
    assert isa.rows * isa.vectors + isa.vectors + 1 <= isa.registers


@pytest.mark.skipif(native() is NEON, reason="forms of x86-64")
def test_the_widest_form_that_the_features_allow():
    assert fitting("") is PLAIN
    assert fitting("+neon,+fullfp16") is NEON
    assert fitting("+sse4.1,+avx2,+fma,-f16c") is PLAIN
    assert fitting("+f16c,+avx2,+fma") is AVX2
    assert fitting(f"{AVX2.features},+avx512f,-avx512bw,+avx512dq,+avx512vl") is AVX2
    assert fitting(AVX512.features) is AVX512


def test_one_text_serves_every_size(instructions):
    cases = [gemm_case((1, m, 9, 8, "float32", False, False, False), instructions.isa)[0] for m in (2, 7, 40)]
    assert len({library.source(call, "kernel", instructions.isa) for call in cases}) == 1
