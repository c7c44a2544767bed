"""A slow interpreter of loop kernels over NumPy arrays. It defines what the kernel IR means."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.kernel import ir
from mxc.compiler.kernel.ir import FLOATS, INDEX, LoopKernel, Value
from mxc.compiler.kernel.math import expand
from mxc.compiler.ops import dtypes, functions, philox
from mxc.compiler.ops.expr import as_dtype
from mxc.compiler.scalar_functions.records import OF_KERNELS


def numpy_dtype(dtype: str) -> np.dtype:
    """The NumPy dtype of an IR dtype."""
    return dtypes.numpy_dtype("int64" if dtype == INDEX else dtype)


def run(kernel: LoopKernel, arrays: Sequence[np.ndarray]) -> None:
    """Runs `kernel` on flat arrays (one for each buffer, of its dtype), writing those that it stores to.

    Raises MXNetError for an array of another dtype and for an index outside of its buffer.
    """
    for position, (array, dtype) in enumerate(zip(arrays, kernel.buffers, strict=True)):
        if array.dtype != numpy_dtype(dtype) or array.ndim != 1:
            raise MXNetError(f"buffer {position} of {kernel.name}: expected a flat array of {dtype}, got "
                             f"{array.ndim}-dimensional {array.dtype}")
    Interpreter(kernel, arrays).run()


class Interpreter:
    """One run of a kernel. Axes are index arrays that broadcast against each other, so a value is an array over its
    axes."""

    def __init__(self, kernel: LoopKernel, arrays: Sequence[np.ndarray]):
        self.kernel, self.arrays = kernel, arrays
        extents = kernel.domain + kernel.reduce
        self.extents = extents
        self.axes = [np.arange(n, dtype=np.int64).reshape([-1 if i == k else 1 for i in range(len(extents))])
                     for k, n in enumerate(extents)]
        self.accumulators: list[np.ndarray] = []
        self.done: dict[int, np.ndarray] = {}

    def run(self) -> None:
        kernel = self.kernel
        for accumulator in kernel.accumulators:
            self.accumulators.append(self.reduced(accumulator))
        reduce_axes = set(range(len(kernel.domain), len(self.extents)))
        results = []
        for store in kernel.stores:  # all values before any store: an in-place store must not be seen
            index, value = self.value(store.index), self.value(store.value)
            used = {v.data for v in ir.walk([store.index, store.value]) if v.op == "axis"}
            over = self.extents if used & reduce_axes else kernel.domain + (1,) * len(kernel.reduce)
            results.append((np.broadcast_to(index, over).ravel(), np.broadcast_to(value, over).ravel()))
        for store, (index, value) in zip(kernel.stores, results, strict=True):
            target = self.arrays[store.buffer]
            self.check(index, target.size, store.buffer)
            if store.mode == "add":
                value = dtypes.converted(computed(target[index]) + computed(value), target.dtype)
            target[index] = value

    def reduced(self, accumulator: ir.Accumulator) -> np.ndarray:
        """The accumulator over the domain, with the reduce axes kept as 1."""
        domain, reduce = self.kernel.domain, self.kernel.reduce
        body = np.broadcast_to(self.value(accumulator.body), self.extents)
        dtype = body.dtype
        flat = dtypes.widened(body).reshape((*domain, math.prod(reduce)))
        kept = domain + (1,) * len(reduce)
        if accumulator.combine in ("sum", "prod"):
            combine: np.ufunc = np.add if accumulator.combine == "sum" else np.multiply
            wide = flat.astype(np.float64) if flat.dtype.kind == "f" else flat  # the IR leaves the order open
            with np.errstate(all="ignore"):
                return dtypes.converted(combine.reduce(wide, axis=-1, dtype=wide.dtype), dtype).reshape(kept)
        if flat.shape[-1] == 0:
            return dtypes.converted(np.full(kept, identity(accumulator.combine, accumulator.body.dtype)), dtype)
        function = getattr(np, accumulator.combine)  # max, min, argmax, argmin
        return dtypes.converted(function(flat, axis=-1), numpy_dtype(result_dtype(accumulator))).reshape(kept)

    def value(self, value: Value) -> np.ndarray:
        for v in ir.walk([value]):
            if id(v) not in self.done:
                with np.errstate(all="ignore"):
                    self.done[id(v)] = self.step(v, [self.done[id(a)] for a in v.args])
        return self.done[id(value)]

    def step(self, v: Value, args: list[np.ndarray]) -> np.ndarray:
        if v.op == "axis":
            return self.axes[v.data]
        if v.op == "acc":
            return self.accumulators[v.data]
        if v.op == "load":
            return self.load(v, args)
        return scalar(v, args)

    def load(self, v: Value, args: list[np.ndarray]) -> np.ndarray:
        buffer = self.arrays[v.data]
        if len(args) == 1:
            self.check(args[0], buffer.size, v.data)
            return buffer[args[0]]
        index, when, fill = np.broadcast_arrays(*args)
        self.check(index[when], buffer.size, v.data)
        result = dtypes.converted(fill, buffer.dtype).copy()
        result[when] = buffer[index[when]]
        return result

    def check(self, index: np.ndarray, size: int, buffer: object) -> None:
        if index.size and (index.min() < 0 or index.max() >= size):
            raise MXNetError(f"kernel {self.kernel.name}: index {index.min()}..{index.max()} outside of buffer "
                             f"{buffer} of {size} elements")


def result_dtype(accumulator: ir.Accumulator) -> str:
    """The dtype of an accumulator's `acc` value: that of its body, int64 positions for argmax and argmin."""
    return "int64" if accumulator.combine in ("argmax", "argmin") else accumulator.body.dtype


def identity(combine: str, dtype: str) -> int | float:
    """What a reduction over nothing gives: the combination's neutral element; argmax and argmin give 0."""
    if combine in ("sum", "argmax", "argmin"):
        return 0
    if combine == "prod":
        return 1
    if dtype in FLOATS:
        return -math.inf if combine == "max" else math.inf
    if dtype == "bool":
        return combine == "min"
    info = np.iinfo(numpy_dtype(dtype))
    return int(info.min if combine == "max" else info.max)


def computed(array: np.ndarray) -> np.ndarray:
    """The array in the dtype in which its steps are computed: float16 and bfloat16 in float32."""
    return array.astype(np.float32) if array.dtype == np.float16 else dtypes.widened(array)


def scalar(v: Value, args: Sequence[np.ndarray]) -> np.ndarray:
    """One step of a value other than axis, acc and load, on arrays."""
    dtype = numpy_dtype(v.dtype)
    if v.op == "const":
        return dtypes.converted(np.asarray(v.data), dtype)
    if v.op == "cast":
        return converted(args[0], dtype)
    if v.op == "bitcast":
        return np.ascontiguousarray(args[0]).view(dtype).reshape(args[0].shape)
    if v.op == "rand":
        return philox.words(*args)
    if v.op in ir.FUNCTIONS:
        return _function(v, args)
    added = functions.find(v.op)
    if added is not None:
        return dtypes.converted(np.asarray(functions.numpy_function(added, v.dtype)(*args)), dtype)
    result = np.asarray(STEPS[v.op](*map(computed, args)))
    return result if v.op in ir.COMPARISONS else dtypes.converted(result, dtype)


def _function(v: Value, args: Sequence[np.ndarray]) -> np.ndarray:
    """A function's value by the arithmetic that it expands to; what stays a call of the C library in that is asked of
    Python's math module."""
    places = [ir.make("const", (), a.dtype, f"argument {i}") for i, a in enumerate(v.args)]
    expanded = expand(ir.make(v.op, places, v.dtype))
    done: dict[int, np.ndarray] = {id(p): a for p, a in zip(places, args, strict=True)}
    for step in ir.walk([expanded]):
        if id(step) in done:
            continue
        inputs = [done[id(a)] for a in step.args]
        if step.op in ir.FUNCTIONS:
            call = np.frompyfunc(OF_KERNELS[step.op].of_doubles, len(inputs), 1)
            done[id(step)] = np.asarray(call(*[i.astype(np.float64) for i in inputs])).astype(numpy_dtype(step.dtype))
        else:
            done[id(step)] = scalar(step, inputs)
    return done[id(expanded)]


def converted(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """`array` cast to `dtype`: to bool by comparing with 0, else as `as_dtype` does it."""
    if dtype.kind == "b":
        return dtypes.widened(array) != 0
    return as_dtype(array, dtype)


def _divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "f":
        return a / b
    safe = np.where(b == 0, 1, b).astype(b.dtype)
    floored = a // safe
    truncated = floored + ((floored * safe != a) & ((a < 0) != (safe < 0)))
    return np.where(b == 0, 0, truncated)


def _modulus(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    safe = np.where(b == 0, 1, b)
    if a.dtype.kind != "f":
        return np.where(b == 0, 0, np.mod(a, safe))
    rest = np.fmod(a, safe)  # it has a's sign, even where it is 0; where the divisor has the other sign, 0 becomes +0
    moved = rest + np.where(rest != 0, b, 0)
    return np.where(b == 0, 0, np.where((a < 0) == (b < 0), rest, moved))


def _fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c with an exact product, rounded once (in rare cases twice)."""
    if a.dtype != np.float64:
        return (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(a.dtype)
    product = a * b
    high = [x * 134217729.0 - (x * 134217729.0 - x) for x in (a, b)]
    low = [x - h for x, h in zip((a, b), high, strict=True)]
    error = ((high[0] * high[1] - product) + high[0] * low[1] + low[0] * high[1]) + low[0] * low[1]
    total = product + c
    back = total - product
    rounding = (product - (total - back)) + (c - back)
    correction = error + rounding
    return np.where(np.isfinite(correction) & np.isfinite(total), total + correction, total)


def _power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "f":
        return np.power(a, b)
    return np.power(a.astype(np.float64), b.astype(np.float64)).astype(np.int64)


def _shift_right(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    unsigned = np.dtype(f"uint{a.dtype.itemsize * 8}")
    return np.right_shift(a.view(unsigned) if a.ndim else a.astype(unsigned), b.astype(unsigned)).astype(a.dtype)


def _high_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    bits = np.uint64(a.dtype.itemsize * 8)
    assert a.dtype.itemsize <= 4, "mulhi is for 32 bits and less"
    mask = np.uint64(2 ** int(bits) - 1)
    return ((a.astype(np.uint64) & mask) * (b.astype(np.uint64) & mask) >> bits).astype(a.dtype)


STEPS: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": _divide, "mod": _modulus, "min": np.minimum,
    "max": np.maximum, "pow": _power, "neg": np.negative, "abs": np.abs, "fma": _fma,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
    "and": np.logical_and, "or": np.logical_or, "not": np.logical_not, "where": np.where,
    "shl": np.left_shift, "shr": _shift_right, "bitand": np.bitwise_and, "bitor": np.bitwise_or,
    "bitxor": np.bitwise_xor, "mulhi": _high_product,
    "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint,
}
