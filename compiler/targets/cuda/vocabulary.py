"""What the printed numba.cuda source may say beyond plain Python, as device functions with the IR's semantics."""
from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np
from numba import config, cuda
from numba.core import types
from numba.core.types import float16, float32, int64, uint32

from mxc.compiler.functions import typed
from mxc.compiler.kernel import ir
from mxc.compiler.kernel.ir import CallKernel, LoopKernel, RoutineKernel
from mxc.compiler.ops.functions import find
from mxc.compiler.ops.shapes import PANEL
from mxc.compiler.scalar_functions.records import BUILTINS
from mxc.compiler.targets.cuda.loops import FORMULAS, CudaScalars
from mxc.compiler.targets.formulas import RANDOM, formula

SIMULATED = bool(getattr(config, "ENABLE_CUDASIM", False))
# Not inlined, they compile only where a GPU's driver is. In the simulator they are plain functions, which are quicker.
_device: Any = (lambda function: function) if SIMULATED else cuda.jit(device=True, inline="always")


@_device
def select(condition, yes, no):
    return yes if condition else no


@_device
def half(x):
    return float32(float16(x))


@_device
def udiv(a, b):
    return int64(uint32(a) // uint32(b))  # of 32 bits, as launches see to (kernels.py): a GPU has no others


@_device
def umod(a, b):
    return int64(uint32(a) % uint32(b))


@_device
def min_(a, b):
    return a if a < b or a != a else b  # NaN when either is


@_device
def max_(a, b):
    return a if a > b or a != a else b


@_device
def sum_(total, x):
    return total + x


@_device
def prod_(total, x):
    return total * x


@_device
def div_(a, b):
    if b == 0:
        return a - a
    quotient = a // b
    return quotient + 1 if quotient * b != a and (a < 0) != (b < 0) else quotient  # from floor to truncation


@_device
def mod_(a, b):
    return a - a if b == 0 else a % b


@_device
def pow_(a, b):
    return a**b


@_device
def abs_(x):
    return abs(x)


@_device
def fma_(a, b, c):
    return a * b + c


@_device
def rint_(x):
    return x - x + round(x) if abs(x) < float32(4503599627370496.0) else x  # round gives int64; larger have no fraction


@_device
def cbrt_(x):
    return math.copysign(abs(x) ** (1.0 / 3.0), x)


def _whole(kind: types.Integer, low: float) -> Any:
    """The conversion of floats to integers: `low` stands for what an integer of its size cannot hold."""
    lowest = int(low)

    @_device
    def whole(x):
        return kind(int64(x) if x >= low and x < -low else int64(lowest))

    return whole


def _bits() -> dict[str, Any]:
    """The words that read a number's bits as a number of another dtype. The simulator has no libdevice, and to view a
    number as another dtype compiles only where a GPU's driver is."""
    if SIMULATED:
        return {f"bits_{dtype}": lambda x, dtype=dtype: x.view(getattr(np, dtype)) for dtype in BITS}
    from numba.cuda import libdevice

    made: dict[str, Any] = {"libdevice": libdevice}
    for dtype, name in BITS.items():
        exec(f"def bits_{dtype}(x):\n    return libdevice.{name}(x)\n", made)
    return {f"bits_{dtype}": _device(made[f"bits_{dtype}"]) for dtype in BITS}


def _of_formula(op: str, dtypes: tuple[str, ...], result: str, space: dict[str, Any]) -> Any:
    """The function of kernel/math.py, printed for numbers of these dtypes."""
    made = dict(space)
    exec(compile(formula(op, dtypes, result, CudaScalars), f"<{op}>", "exec"), made)
    return _device(made[f"{op}_"])


BITS = {"int32": "float_as_int", "float32": "int_as_float", "int64": "double_as_longlong",
        "float64": "longlong_as_double"}  # libdevice's function that gives the dtype
OF_MATH = {f"{f.step or f.name}_": f for f in BUILTINS.values() if f.c}  # words that `math` may compute


@functools.cache
def _names() -> dict[str, Any]:
    space = {name: value for name, value in globals().items()
             if name.endswith("_") or name in ("select", "half", "udiv", "umod", "cuda")}
    if SIMULATED:  # Python's own functions give integers
        space |= {"floor_": np.floor, "ceil_": np.ceil, "trunc_": np.trunc, "udiv": operator.floordiv,
                  "umod": operator.mod}
    for word, f in OF_MATH.items():
        if word not in space:  # above are those that Numba lacks, or that are no functions there
            arguments = ", ".join("ab"[:f.arity])
            made: dict[str, Any] = {"math": math}
            exec(f"def {word}({arguments}):\n    return math.{f.math}({arguments})\n", made)
            space[word] = _device(made[word])
    for dtype in ("uint8", "int8", "uint16", "int16", "int32", "uint32", "int64", "uint64"):
        kind = getattr(types, dtype)
        space[f"whole_{dtype}"] = _whole(kind, -(2.0 ** (max(kind.bitwidth, 32) - 1)))
    dtypes = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
             "boolean")
    space |= {name: getattr(types, name) for name in dtypes} | _bits()
    printed = {f"{op}_{dtype}": _of_formula(op, (dtype,), dtype, space) for op in FORMULAS
               for dtype in ("float32", "float64")}
    return space | printed | {"rand_uint32": _of_formula("rand", ("int64",) * 3, RANDOM["rand"], space)}


# many parameters: they are those of the word of routines
@_device
def product_(to, at, rows, left, start, depth, packed, columns, packed_at):
    """The word of routines, of matrices in panels; see kernel/routines/words.py."""
    for r in range(rows):
        for c in range(columns):
            panel = packed_at + c // PANEL * depth * PANEL + c % PANEL
            total = to[at + r * columns + c]
            for k in range(depth):
                total += left[start + r * depth + k] * packed[panel + k * PANEL]
            to[at + r * columns + c] = total


def names(kernel: LoopKernel | CallKernel | RoutineKernel) -> dict[str, Any]:
    """The global names of a kernel's printed function."""
    if isinstance(kernel, RoutineKernel):
        return _names() | _words(kernel)
    return _names() | _functions(kernel)


def _words(kernel: RoutineKernel) -> dict[str, Any]:
    """The words of routines whose functions are printed for one dtype: that of the routine's numbers."""
    wide = "float64" if "float64" in kernel.buffers else "float32"
    space = _names()
    random = {f"{op}_": _of_formula(op, ("int64",) * 3, result, space) for op, result in RANDOM.items()}
    return {f"{op}_": space[f"{op}_{wide}"] for op in FORMULAS} | random


def _functions(kernel: LoopKernel | CallKernel) -> dict[str, Any]:
    """The words of the running program's own functions that a kernel calls. One that it calls on numbers of several
    dtypes computes in the widest."""
    called: dict[str, str] = {}
    for v in ir.walk(kernel.roots()):
        if find(v.op) is not None:
            called[f"{v.op}_"] = max(called.get(f"{v.op}_", ""), v.dtype)
    made = {}
    for word, dtype in called.items():
        function = find(word[:-1])
        assert function is not None and function.source is not None
        text = typed.rewritten(function.source, function.kinds, function.part, word)
        rounders = dict(typed.ROUNDERS)
        if not SIMULATED:  # devices have no functions of NumPy's
            rounders = {each: _names()[f"{each.removeprefix('mxc_')}_"] for each in rounders}
        made[word] = typed.build(text, {typed.TYPE: getattr(types, dtype), typed.INTEGER: int64, **rounders}, _device)
    return made
