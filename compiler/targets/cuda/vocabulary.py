"""What the printed numba.cuda source may say beyond plain Python, as device functions with the IR's semantics."""
from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np
from numba import config, cuda
from numba.core import types
from numba.core.types import float16, float32, int32, int64

from mxc.compiler.functions import typed
from mxc.compiler.functions.reference import without_errors
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
def small_(x):
    return int32(x)  # what is known to fit


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
    return b - b if b == 0 else a % b  # a may be infinite


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


def _divisions() -> dict[str, Any]:
    """The words `udiv` and `umod`: the quotient and the rest of numbers that are not negative and have 32 bits, as
    launches see to (kernels.py): a GPU has no division of more. Python's own would ask for zeros first."""
    if SIMULATED:
        return {"udiv": operator.floordiv, "umod": operator.mod}
    from llvmlite import ir as llvm
    from numba.cuda.extending import intrinsic

    def word(instruction: str) -> Any:
        def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            short = [builder.trunc(argument, llvm.IntType(32)) for argument in arguments]
            return builder.zext(getattr(builder, instruction)(*short), llvm.IntType(64))

        @intrinsic
        def divide(typing_context, a, b):
            return int64(int64, int64), made

        return divide

    return {"udiv": word("udiv"), "umod": word("urem")}


def _quads() -> dict[str, Any]:
    """The words `four_(array, place)`, the elements from a place on, which is a multiple of 4, as four numbers,
    `put_four_(array, place, a, b, c, d)`, which stores there, and `put_(array, place, number)`. Of an array whose begin
    is aligned to 16 bytes a GPU loads and stores four by as few instructions as can be. An index of an array may be
    negative, which has its cost in registers; these places are not."""
    if SIMULATED:
        return {"four_": lambda array, place: array[place:place + 4], "put_four_": _put_four, "put_": operator.setitem}
    from llvmlite import ir as llvm
    from numba.cuda.extending import intrinsic

    def quad(context: Any, builder: Any, array: Any, arguments: Any) -> tuple[Any, int]:
        """The place as that of a vector, and its alignment."""
        first = builder.gep(context.make_array(array)(context, builder, arguments[0]).data, [arguments[1]])
        element = context.get_data_type(array.dtype)
        return (builder.bitcast(first, llvm.VectorType(element, 4).as_pointer()),
                min(16, 4 * context.get_abi_sizeof(element)))

    def loaded(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place, align = quad(context, builder, signature.args[0], arguments)
        found = builder.load(place, align=align)
        numbers = [builder.extract_element(found, llvm.Constant(llvm.IntType(32), i)) for i in range(4)]
        return context.make_tuple(builder, signature.return_type, numbers)

    def stored(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place, align = quad(context, builder, signature.args[0], arguments)
        made = llvm.Constant(place.type.pointee, llvm.Undefined)
        for i, number in enumerate(arguments[2:]):
            made = builder.insert_element(made, number, llvm.Constant(llvm.IntType(32), i))
        builder.store(made, place, align=align)
        return context.get_dummy_value()

    def stored_one(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, place, number = arguments
        builder.store(number, builder.gep(context.make_array(signature.args[0])(context, builder, array).data, [place]))
        return context.get_dummy_value()

    @intrinsic
    def four_(typing_context, array, place):
        return types.UniTuple(array.dtype, 4)(array, place), loaded

    @intrinsic
    def put_four_(typing_context, array, place, a, b, c, d):
        return types.void(array, place, *[array.dtype] * 4), stored

    @intrinsic
    def put_(typing_context, array, place, number):
        return types.void(array, place, array.dtype), stored_one

    return {"four_": four_, "put_four_": put_four_, "put_": put_}


def _put_four(array, place, *numbers):
    array[place:place + 4] = numbers


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
             if name.endswith("_") or name in ("select", "half", "cuda")}
    if SIMULATED:  # Python's own functions give integers
        space |= {"small_": lambda x: x, "floor_": np.floor, "ceil_": np.ceil, "trunc_": np.trunc}
    for word, f in OF_MATH.items():
        if word not in space and SIMULATED:
            space[word] = f.of_doubles
        elif word not in space:  # above are those that Numba lacks, or that are no functions there
            arguments = ", ".join("ab"[:f.arity])
            made: dict[str, Any] = {"math": math}
            exec(f"def {word}({arguments}):\n    return math.{f.math}({arguments})\n", made)
            space[word] = _device(made[word])
    for dtype in ("uint8", "int8", "uint16", "int16", "int32", "uint32", "int64", "uint64"):
        kind = getattr(types, dtype)
        space[f"whole_{dtype}"] = _whole(kind, -(2.0 ** (max(kind.bitwidth, 32) - 1)))
    dtypes = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
             "boolean")
    space |= {name: getattr(types, name) for name in dtypes} | _bits() | _divisions() | _quads()
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
        if SIMULATED:
            given = {name: without_errors(value) for name, value in text.names.items()} | typed.ROUNDERS
        else:  # devices have no functions of NumPy's
            given = {each: _names()[f"{each.removeprefix('mxc_')}_"] for each in typed.ROUNDERS}
        made[word] = typed.build(text, {typed.TYPE: getattr(types, dtype), typed.INTEGER: int64, **given}, _device)
    return made
