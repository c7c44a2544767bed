"""Loop kernels that between them use every form of load, accumulator and store; and how they are run and compared."""
from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence

import numpy as np

from mxc.compiler.kernel import interpret, ir
from mxc.compiler.kernel.canonical import canonical
from mxc.compiler.kernel.ir import INDEX, Accumulator, LoopKernel, Store, Value, acc, apply, axis, const, load
from mxc.compiler.kernel.simplify_index import from_affine
from mxc.compiler.kernel.simplify_index import index as number
from mxc.compiler.ops.dtypes import NARROW, converted, dtype_name, numpy_dtype, widened

F = "float32"
TOLERANCE = {"bfloat16": 8e-3, "float16": 2e-3, "float32": 3e-6, "float64": 1e-13}


def at(*terms: tuple[int, int], offset: int = 0) -> Value:
    """The sum of axis * stride and an offset."""
    return from_affine({axis(a): s for a, s in terms}, offset)


def flat(extents: Sequence[int], first: int = 0) -> Value:
    """The row-major position of the axes from `first` on."""
    strides = [int(np.prod(extents[i + 1:], dtype=int)) for i in range(len(extents))]
    return at(*((first + i, s) for i, s in enumerate(strides)))


def pointwise(name: str, buffers: Sequence[str], values: Sequence[Value], count: int = 300) -> LoopKernel:
    """One axis; the last buffers are what `values` are stored to."""
    first = len(buffers) - len(values)
    stores = tuple(Store(first + i, axis(0), v) for i, v in enumerate(values))
    return LoopKernel(name, tuple(buffers), (count,), (), (), stores)


def reduction(combines: Sequence[str], dtype: str, rows: int, length: int, columns: bool) -> LoopKernel:
    """Accumulators over one axis, of contiguous rows or of columns."""
    body = load(0, at((1, rows), (0, 1)) if columns else at((0, length), (1, 1)), dtype)
    results = ["int64" if c.startswith("arg") else dtype for c in combines]
    stores = tuple(Store(1 + i, axis(0), acc(i, r)) for i, r in enumerate(results))
    name = f"{'columns' if columns else 'rows'} {' '.join(combines)} {dtype}"
    accumulators = tuple(Accumulator(c, body) for c in combines)
    return LoopKernel(name, (dtype, *results), (rows,), (length,), accumulators, stores)


def softmax(rows: int, length: int, columns: bool, dtype: str = F) -> LoopKernel:
    place = at((1, rows), (0, 1)) if columns else at((0, length), (1, 1))
    x = ir.cast(load(0, place, dtype), F)
    e = apply("exp", apply("sub", x, acc(0, F)))
    store = Store(1, place, ir.cast(apply("div", e, acc(1, F)), dtype))
    return LoopKernel(f"softmax {'columns' if columns else 'rows'} {dtype}", (dtype, dtype), (rows,), (length,),
                      (Accumulator("max", x), Accumulator("sum", e)), (store,))


def moves() -> Iterator[LoopKernel]:
    """Every form of load and store."""
    yield LoopKernel("transpose", (F, F), (33, 45), (), (),
                     (Store(1, flat((33, 45)), load(0, at((0, 1), (1, 33)), F)),))
    total = apply("add", load(0, flat((4, 5, 6)), F), load(1, axis(1), F))
    yield LoopKernel("broadcast", (F, F, F), (4, 5, 6), (), (), (Store(2, flat((4, 5, 6)), total),))
    total = apply("mul", load(0, at((0, 15), (1, 3), (3, 1)), F), load(1, at((0, 6), (2, 1)), F))
    yield LoopKernel("broadcast twice", (F, F, F), (4, 5, 6, 3), (), (), (Store(2, flat((4, 5, 6, 3)), total),))
    here = apply("sub", axis(1), number(2))
    inside = apply("and", apply("ge", here, number(0)), apply("lt", here, number(20)))
    padded = load(0, apply("add", apply("mul", axis(0), number(20)), here), F, inside, const(-1.0, F))
    yield LoopKernel("pad", (F, F), (3, 24), (), (), (Store(1, flat((3, 24)), padded),))
    row = ir.cast(load(0, axis(0), "int32"), INDEX)
    taken = load(1, apply("add", apply("mul", row, number(16)), axis(1)), F)
    yield LoopKernel("take", ("int32", F, F), (10, 16), (), (), (Store(2, flat((10, 16)), taken),))
    near = apply("add", apply("mul", apply("div", axis(0), number(2)), number(5)), apply("div", axis(1), number(2)))
    yield LoopKernel("repeat", (F, F), (8, 10), (), (), (Store(1, flat((8, 10)), load(0, near, F)),))
    high, low = apply("div", axis(1), number(12)), apply("mod", axis(1), number(12))
    there = apply("add", apply("add", apply("mul", high, number(48)), apply("mul", axis(0), number(12))), low)
    yield LoopKernel("split axis", (F, F), (4, 48), (), (), (Store(1, flat((4, 48)), load(0, there, F)),))
    yield LoopKernel("add to", (F, F), (777,), (), (),
                     (Store(1, axis(0), apply("mul", load(0, axis(0), F), const(2.0, F)), "add"),))
    yield LoopKernel("in place", ("float16",), (777,), (), (),
                     (Store(0, axis(0), apply("mul", load(0, axis(0), "float16"), const(1.5, "float16"))),))
    yield LoopKernel("one point", (F, F), (), (), (), (Store(1, number(0), apply("exp", load(0, number(0), F))),))
    yield LoopKernel("arange", (F,), (300,), (), (), (Store(0, axis(0), ir.cast(axis(0), F)),))


def reductions() -> Iterator[LoopKernel]:
    """Every accumulator, in both skeletons; sweeps that use others' results; stores over domain and reduce axes."""
    for columns in (False, True):
        for dtype in (F, *NARROW, "int32", "uint8"):
            combines = ("sum", "max", "min", "argmax", "argmin") + (("prod",) if dtype not in NARROW else ())
            yield reduction(combines, dtype, 70, 29, columns)
    yield reduction(("sum",), F, 3, 10000, False)
    yield reduction(("sum",), F, 5000, 7, True)
    for columns in (False, True):
        yield softmax(17, 100, columns)
        for dtype in NARROW:
            yield softmax(17, 100, columns, dtype)
    x = load(0, flat((6, 30)), F)
    mean = apply("div", acc(0, F), const(30.0, F))
    off = apply("sub", x, mean)
    deviation = apply("sqrt", apply("add", apply("div", acc(1, F), const(30.0, F)), const(1e-5, F)))
    moments = (Accumulator("sum", x), Accumulator("sum", apply("mul", off, off)))
    yield LoopKernel("normalise", (F, F, F), (6,), (30,), moments,
                     (Store(1, axis(0), mean), Store(2, flat((6, 30)), apply("div", off, deviation))))
    yield LoopKernel("all", (F, F), (), (12345,), (Accumulator("sum", load(0, axis(0), F)),),
                     (Store(1, number(0), acc(0, F)),))
    x = load(0, at((0, 480), (1, 1), (2, 120), (3, 20)), F)
    yield LoopKernel("two axes", (F, F), (3, 20), (4, 6), (Accumulator("sum", x),),
                     (Store(1, flat((3, 20)), acc(0, F)),))
    y, x = (apply("sub", apply("add", apply("mul", axis(d), number(2)), axis(r)), number(1))
            for d, r in ((1, 3), (2, 4)))
    inside = [apply(op, v, number(n)) for v in (y, x) for op, n in (("ge", 0), ("lt", 12))]
    guard = apply("and", apply("and", inside[0], inside[1]), apply("and", inside[2], inside[3]))
    place = apply("add", apply("mul", apply("add", apply("mul", axis(0), number(12)), y), number(12)), x)
    seen = load(0, place, F, guard, const(-np.inf, F))
    yield LoopKernel("pooling", (F, F), (3, 6, 6), (3, 3), (Accumulator("max", seen),),
                     (Store(1, flat((3, 6, 6)), acc(0, F)),))


UNARY = ("exp", "expm1", "log", "log1p", "log2", "log10", "tanh", "sigmoid", "softrelu", "erf", "sin", "cos", "tan",
         "arcsin", "arctan", "arcsinh", "arccosh", "arctanh", "cbrt", "gamma", "lgamma", "digamma", "erfinv", "sinh",
         "polygamma1", "polygamma2", "polygamma3", "polygamma4", "cosh", "sqrt", "floor", "ceil", "trunc", "rint",
         "abs", "neg")
BINARY = ("add", "sub", "mul", "div", "mod", "min", "max")
DTYPES = ("float16", "float32", "float64", "uint8", "int8", "int32", "int64", "bool")


def scalars() -> Iterator[LoopKernel]:
    """Every operation in every dtype, several to a kernel."""
    for dtype in ("float32", "float64", *NARROW):
        x, y = load(0, axis(0), dtype), load(1, axis(0), dtype)
        for part in (UNARY[:16], UNARY[16:]):
            yield pointwise(f"unary {part[0]} {dtype}", (dtype,) * (len(part) + 1), [apply(n, x) for n in part])
        names = (*BINARY, "pow", "arctan2")
        yield pointwise(f"binary {dtype}", (dtype,) * (len(names) + 2), [apply(n, x, y) for n in names])
    for dtype in ("int8", "uint8", "int32", "int64"):
        x, y = load(0, axis(0), dtype), load(1, axis(0), dtype)
        names = (*BINARY, "bitand", "bitor", "bitxor")
        tests = ("lt", "le", "gt", "ge", "eq", "ne")
        values = [apply(n, x, y) for n in (*names, *tests)] + [apply("abs", x), apply("neg", x)]
        yield pointwise(f"integer {dtype}", (dtype, dtype, *(v.dtype for v in values)), values)
    for source in ("bfloat16", *DTYPES):
        values = [ir.cast(load(0, axis(0), source), d) for d in DTYPES if d != source]
        yield pointwise(f"cast {source}", (source, *(v.dtype for v in values)), values)
        if source != "bfloat16":
            yield pointwise(f"cast {source} to bfloat16", (source, "bfloat16"),
                            [ir.cast(load(0, axis(0), source), "bfloat16")])
    x, y = load(0, axis(0), F), load(1, axis(0), F)
    positive = apply("gt", x, const(0.0, F))
    either = apply("or", apply("lt", x, y), apply("eq", x, const(0.0, F)))
    yield pointwise("logic", (F, F, "bool", F),
                    [apply("and", apply("lt", x, y), apply("not", positive)), apply("where", either, x, y)])
    word = ir.make("bitcast", (load(0, axis(0), "int32"),), "uint32")
    yield pointwise("bits", ("int32", *["uint32"] * 3), [apply("shr", word, const(3, "uint32")), apply(
        "shl", word, const(3, "uint32")), apply("mulhi", word, const(0xD2511F53, "uint32"))])
    seed = [load(i, number(0), "int64") for i in (0, 1)]
    yield pointwise("rand", ("int64", "int64", "uint32"), [ir.make("rand", (*seed, axis(0)), "uint32")])


def arrays_for(kernel: LoopKernel, size: int = 36000, seed: int = 0) -> list[np.ndarray]:
    """Flat arrays with the edges of each dtype among random numbers."""
    rng = np.random.default_rng(seed)
    result = []
    for dtype in kernel.buffers:
        if dtype == "bool":
            made = rng.integers(0, 2, size).astype(bool)
        elif "float" in dtype:
            wide = "float32" if dtype == "bfloat16" else dtype
            made = (rng.standard_normal(size) * 3).astype(wide)
            if not kernel.accumulators:
                made[:11] = [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 100, -100, 1e-7, np.finfo(wide).tiny]
                if kernel.name.startswith("cast"):
                    made[11:17] = [300.7, -129.5, 255.9, 65504, -3e4, -1.5]
                    made[17:23] = 0 if dtype == "float16" else [3e9, -3e9, 2147483904, 2**31, -2.0**31, 1e20]
            elif not any(a.combine in ("sum", "prod") for a in kernel.accumulators):
                made[[5, 80]] = np.nan
            made = converted(made, numpy_dtype(dtype))
        elif kernel.name == "take":
            made = rng.integers(0, 20, size).astype(dtype)
        else:
            info = np.iinfo(dtype)
            made = rng.integers(info.min, info.max, size, dtype=dtype, endpoint=True)
            made[:6] = [0, 1, info.max, info.min, 2, 3]
            made[100:200] %= 5
        result.append(made)
    return result


def call(address: int, kernel: LoopKernel, arrays: Sequence[np.ndarray], units: Sequence[tuple[int, int]],
         scratch_bytes: int) -> None:
    """Run compiled code over stretches of units."""
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(address)
    args = np.array([*(a.ctypes.data for a in arrays), *kernel.values()], np.int64)
    scratch = np.zeros(scratch_bytes + 64, np.uint8)
    for first, last in units:
        function(args.ctypes.data, first, last, scratch.ctypes.data)


def expected(kernel: LoopKernel, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What the interpreter makes of copies of `arrays`."""
    copies = [a.copy() for a in arrays]
    interpret.run(kernel, copies)
    return copies


def compare(kernel: LoopKernel, got: Sequence[np.ndarray], want: Sequence[np.ndarray]) -> None:
    for position, (one, other) in enumerate(zip(got, want, strict=True)):
        tolerance = TOLERANCE.get(dtype_name(one.dtype), 0)
        one, other = (widened(array).astype("float64") for array in (one, other))
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance,
                                   err_msg=f"{kernel.name}, buffer {position}")


def every_kernel() -> list[LoopKernel]:
    return [canonical(k) for k in (*moves(), *reductions(), *scalars())]
