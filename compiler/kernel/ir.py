"""The kernel IR: scalar values, loop kernels (map-reduce-map), calls of library kernels, routines, and functions of the
program's own.

Everything here is data. `LoopKernel` says what is computed, never how: the targets print it. All addresses are element
indices; all extents, strides and other integers of dtype "index" (except 0 and 1) are arguments of the printed
function, so one function serves every shape of the same form.

Every printed function, loop kernel or library kernel, has the ABI

    void k(void **args, i64 first, i64 last, void *scratch)

with args = the buffers' addresses in the order of `buffers`, then the integers of `values()`, each in 8 bytes. It does
units first <= u < last of the launch; units are independent of each other and may run on different threads. `scratch`
is private to the running thread.
"""
from __future__ import annotations

import struct
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mxc.compiler.kernel.value_text import value_text, walk
from mxc.compiler.ops.dtypes import NARROW
from mxc.compiler.scalar_functions.records import OF_KERNELS
from mxc.compiler.system.forks import Lock

if TYPE_CHECKING:
    from mxc.compiler.functions.arrays import ArrayFunction
    from mxc.compiler.kernel.geometry import Geometry

INDEX = "index"  # the dtype of axes and of what is computed from them; 64-bit signed when printed

FLOATS = ("float16", "bfloat16", "float32", "float64")


def computing_dtype(dtype: str) -> str:
    """The dtype in which values that are stored as `dtype` are computed: float32 for float16 and bfloat16."""
    return "float32" if dtype in NARROW else dtype


# The number of arguments of each operation that a target's scalar printer has to know; `Value` says what they mean.
ARITHMETIC = {
    "add": 2, "sub": 2, "mul": 2, "div": 2, "mod": 2, "min": 2, "max": 2, "pow": 2, "neg": 1, "abs": 1, "fma": 3,
    "lt": 2, "le": 2, "gt": 2, "ge": 2, "eq": 2, "ne": 2, "and": 2, "or": 2, "not": 1, "where": 3,
    "cast": 1, "bitcast": 1, "shl": 2, "shr": 2, "bitand": 2, "bitor": 2, "bitxor": 2, "mulhi": 2,
    "sqrt": 1, "floor": 1, "ceil": 1, "trunc": 1, "rint": 1,
}
FUNCTIONS = {name: f.arity for name, f in OF_KERNELS.items()}
COMPARISONS = frozenset(["lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"])


class Value:
    """One scalar computation, hash-consed: equal values are the same object, so a value is a shared DAG.

    op, args, dtype, data:
      const   ()                    data: a Python number
      axis    ()  dtype "index"     data: position of the axis, domain axes first, then reduce axes
      load    (index,)              data: position of the buffer; the element at `index` (an "index" value)
      load    (index, when, fill)   guarded: `fill` where the bool `when` does not hold; `index` is then not read
      acc     ()                    data: position of the accumulator, finished (of a CallKernel: 0, what it computed)
      rand    (seed, offset, index) uint32 of the counter-based generator
      else    see ARITHMETIC and FUNCTIONS, or a native function of the running program (ops/functions.py), by its
              name: all arguments and the result have `dtype`, but comparisons give "bool",
              cast and bitcast convert from their argument's dtype, and where's first argument is bool.

    Semantics: min and max give NaN when either argument is NaN; integer div truncates and gives 0 for a zero divisor;
    mod has the divisor's sign and gives 0 for a zero divisor, of floats too; integers wrap; for dtype "index" operands
    are not negative where div and mod are used; cast from float to integer truncates, by way of int32 (int64 where the
    result has 8 bytes), whose lowest number stands for NaN and for what does not fit; shr is logical; mulhi is the high
    half of an unsigned product.
    """

    __slots__ = ("__weakref__", "args", "data", "dtype", "op")

    op: str
    args: tuple[Value, ...]
    dtype: str
    data: Any  # a number or a position, by `op` as above

    def __repr__(self) -> str:
        return value_text(self)


_making = Lock()
_interned: weakref.WeakValueDictionary[tuple, Value] = weakref.WeakValueDictionary()


def make(op: str, args: Sequence[Value] = (), dtype: str = "", data: Any = None) -> Value:
    """The value with these parts, of which there is only one."""
    # repr tells 0.0 from -0.0, 1 from 1.0 and True, and keeps nan equal to itself
    key = (op, tuple(map(id, args)), dtype, repr(data))
    value = _interned.get(key)
    if value is None:
        made = object.__new__(Value)
        made.op, made.args, made.dtype, made.data = op, tuple(args), dtype, data
        with _making:  # another thread may make the same one
            value = _interned.setdefault(key, made)
    return value


def const(number: int | float | bool, dtype: str) -> Value:
    return make("const", (), dtype, number)


def axis(position: int) -> Value:
    return make("axis", (), INDEX, position)


def load(buffer: int, index: Value, dtype: str, when: Value | None = None, fill: Value | None = None) -> Value:
    args = (index,) if when is None or fill is None else (index, when, fill)
    return make("load", args, dtype, buffer)


def acc(position: int, dtype: str) -> Value:
    return make("acc", (), dtype, position)


def apply(op: str, *args: Value) -> Value:
    """`op` of `args`, which all have the result's dtype (comparisons: bool; where: that of its branches)."""
    dtype = "bool" if op in COMPARISONS else args[-1].dtype
    return make(op, args, dtype)


def cast(value: Value, dtype: str) -> Value:
    return value if value.dtype == dtype else make("cast", (value,), dtype)


@dataclass(frozen=True)
class Accumulator:
    """A reduction over all reduce axes. combine: sum, prod, max, min, or argmax/argmin (value: the flat reduce index).

    `body` may use accumulators of lower position, finished: it is then evaluated in a later sweep over the reduce axes
    (softmax: max first, then the sum of exponentials).
    """

    combine: str
    body: Value


@dataclass(frozen=True)
class Store:
    """buffer[index] = value, or += value for mode "add".

    A store whose index or value uses reduce axes runs at every point of domain x reduce, after all accumulators are
    finished; any other store runs once for each point of the domain. The printer tells them apart by walking the
    values.
    """

    buffer: int
    index: Value
    value: Value
    mode: str = "write"


# Operation of "index" values -> constants of it that are part of the code: LLVM makes vectors of loops with known short
# strides, and division by an argument would take longer than all else in a loop.
OF_CODE = {"mul": (-1, 2, 3, 4), "div": range(2, 9), "mod": range(2, 9)}


def run_time_integers(roots: Iterable[Value]) -> list[Value]:
    """The "index" constants that become arguments (all but 0, 1, and those of OF_CODE), each once, in the order in
    which they occur."""
    values = list(walk(roots))
    fixed = {0, 1, *(v.args[1].data for v in values if v.dtype == INDEX and v.args[1:] and v.args[1].op == "const"
                     and v.args[1].data in OF_CODE.get(v.op, ()))}
    return [v for v in values if v.op == "const" and v.dtype == INDEX and v.data not in fixed]


@dataclass(frozen=True)
class LoopKernel:
    """Map-reduce-map over a domain.

    buffers: the dtype of each buffer. domain, reduce: extents of the axes (axis i of `domain` is axis(i), axis j of
    `reduce` is axis(len(domain) + j)). accumulators, stores: see `Accumulator` and `Store`. name: made of the names of
    its operators, for people.
    """

    name: str
    buffers: tuple[str, ...]
    domain: tuple[int, ...]
    reduce: tuple[int, ...]
    accumulators: tuple[Accumulator, ...]
    stores: tuple[Store, ...]

    def roots(self) -> list[Value]:
        """Every value that the kernel computes, in the order that fixes the arguments."""
        bodies = [a.body for a in self.accumulators]
        return bodies + [v for s in self.stores for v in (s.index, s.value)]

    def values(self) -> tuple[int, ...]:
        """The run-time integers: extents of domain and reduce, then the constants of `run_time_integers`."""
        constants = [int(v.data) for v in run_time_integers(self.roots())]
        return (*self.domain, *self.reduce, *constants)

    def reads(self) -> frozenset[int]:
        """Positions of the buffers that are loaded (an adding store counts as a load)."""
        loads = {v.data for v in walk(self.roots()) if v.op == "load"}
        return frozenset(loads | {s.buffer for s in self.stores if s.mode == "add"})

    def writes(self) -> frozenset[int]:
        return frozenset(s.buffer for s in self.stores)


@dataclass(frozen=True)
class CallKernel:
    """A library kernel with an epilogue.

    geometry: what its template is, and all of the template's numbers. buffers: dtypes, the template's own operands
    first (in the order that the template documents), then what the epilogue loads and stores.
    stores: what becomes of each element computed: `value` over acc(0) and loads, whose indices are affine in the
    template's output axes (axis(0), axis(1), ...; the template documents them): sums of axis * constant and a constant.
    """

    name: str
    geometry: Geometry[int]
    buffers: tuple[str, ...]
    stores: tuple[Store, ...]

    @property
    def template(self) -> str:
        return self.geometry.template

    @property
    def operands(self) -> int:
        """How many of `buffers` are the template's own."""
        return self.geometry.operands

    @property
    def params(self) -> tuple[tuple[str, object], ...]:
        """What is baked into its code, as (name, value) pairs."""
        return self.geometry.params

    @cached_property
    def extents(self) -> tuple[int, ...]:
        """The template's run-time integers."""
        return self.geometry.extents

    def roots(self) -> list[Value]:
        return [v for s in self.stores for v in (s.index, s.value)]

    def values(self) -> tuple[int, ...]:
        """The run-time integers: `extents`, then the constants of `run_time_integers` of the stores."""
        constants = [int(v.data) for v in run_time_integers(self.roots())]
        return (*self.extents, *constants)

    def reads(self) -> frozenset[int]:
        loads = {v.data for v in walk(self.roots()) if v.op == "load"}
        adding = {s.buffer for s in self.stores if s.mode == "add"}
        return frozenset(range(self.operands)) | frozenset(loads | adding)

    def writes(self) -> frozenset[int]:
        return frozenset(s.buffer for s in self.stores)


@dataclass(frozen=True)
class RoutineKernel:
    """A kernel that is written as loops (operators/*/kernel.py), because it is no map-reduce.

    routine: the routine's name. constants: what is baked into its code, as (name, value) pairs. buffers: dtypes of the
    `inputs` arrays that it reads, then of those that it writes. extents: its run-time integers. refusals: what its last
    buffer, a status, may tell (kernel/routines/rule.py).
    """

    name: str
    routine: str
    constants: tuple[tuple[str, object], ...]
    buffers: tuple[str, ...]
    extents: tuple[int, ...]
    inputs: int
    refusals: tuple[tuple[str, bool], ...] = ()

    def values(self) -> tuple[int, ...]:
        return self.extents

    def reads(self) -> frozenset[int]:
        return frozenset(range(self.inputs))

    def writes(self) -> frozenset[int]:
        return frozenset(range(self.inputs, len(self.buffers)))


@dataclass(frozen=True)
class FunctionKernel:
    """A kernel that is a program's own function over whole arrays: one unit of work.

    buffers: dtypes of the `inputs` arrays that it reads, of the arrays that it writes (it sets them to zeros first),
    and of its status: an int64 that is 0, or says where the function raised (functions/faults.py). arrays, shapes:
    names and shapes of the buffers without the status; inputs that the function does not name may be among them.
    numbers: the values of the function's keyword-only parameters, in their order: truth values, integers of 64 bits,
    float64. usual: values of the same types for which the kernel has code of its own, in which they are constants; ()
    if there is no such code.
    """

    name: str
    function: ArrayFunction
    buffers: tuple[str, ...]
    arrays: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    inputs: int
    numbers: tuple[bool | int | float, ...] = ()
    usual: tuple[bool | int | float, ...] = ()

    def extents(self) -> tuple[int, ...]:
        """The different extents of its arrays."""
        return tuple(dict.fromkeys(n for shape in self.shapes for n in shape))

    def pattern(self) -> tuple[tuple[int, ...], ...]:
        """For each axis of each array, the position of its extent in `extents`."""
        places = {n: i for i, n in enumerate(self.extents())}
        return tuple(tuple(places[n] for n in shape) for shape in self.shapes)

    def values(self) -> tuple[int, ...]:
        """The extents, then the bits of the numbers."""
        return (*self.extents(), *map(bits_of, self.numbers))

    def reads(self) -> frozenset[int]:
        return frozenset(range(self.inputs))

    def writes(self) -> frozenset[int]:
        return frozenset(range(self.inputs, len(self.buffers)))


def bits_of(number: bool | int | float) -> int:
    """A number as a signed integer of 64 bits; of a float, these are the bits of its float64."""
    return struct.unpack("<q", struct.pack("<d", number))[0] if isinstance(number, float) else int(number)


@dataclass(frozen=True)
class Place:
    """Where a call of a chain finds an array: from element `offset` of a buffer on, `step` more for each image. A
    `buffer` from len(ChainKernel.buffers) on is a private one."""

    buffer: int
    offset: int = 0
    step: int = 0


@dataclass(frozen=True)
class ChainKernel:
    """Library kernels over bands of rows, image by image: what passes from one to the next stays small, and in a cache.

    A unit of work is a segment of one of `images` images: its calls run in order, each with the places of its buffers.
    private: how many elements each of the float32 arrays has that a unit keeps for itself. No two units write the same
    elements of `buffers`.
    """

    name: str
    buffers: tuple[str, ...]
    images: int
    private: tuple[int, ...]
    segments: tuple[tuple[tuple[CallKernel, tuple[Place, ...]], ...], ...]

    def values(self) -> tuple[int, ...]:
        """There are none here: a target makes its own integers of the calls."""
        return ()

    def calls(self) -> list[tuple[CallKernel, tuple[Place, ...]]]:
        return [call for segment in self.segments for call in segment]

    def reads(self) -> frozenset[int]:
        found = {places[i].buffer for kernel, places in self.calls() for i in kernel.reads()}
        return frozenset(i for i in found if i < len(self.buffers))

    def writes(self) -> frozenset[int]:
        found = {places[i].buffer for kernel, places in self.calls() for i in kernel.writes()}
        return frozenset(i for i in found if i < len(self.buffers))


Kernel = LoopKernel | CallKernel | RoutineKernel | FunctionKernel | ChainKernel
