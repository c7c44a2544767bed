"""How an eager operator is computed: by NumPy where arrays are small, else by code compiled for it once.

A `Specialization` is an operator with parameters on inputs of given shapes and dtypes, in training mode or not. It is
remembered. Expressions over arrays of one dtype become one Python function of NumPy's; other small work is done by
the operator's reference. A specialization is compiled as a graph of one node from a size on that depends on the kind of
operator, and a smaller one when its reference has taken more time than a compilation does.
"""
from __future__ import annotations

import contextvars
import math
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from mxc.compiler.error import MXNetError, OutOfMemoryError
from mxc.compiler.graph.graph import Node
from mxc.compiler.ops import expr, functions
from mxc.compiler.ops.dtypes import numpy_dtype, write
from mxc.compiler.ops.operator import Kind, Operator, Params
from mxc.compiler.ops.philox import Draws
from mxc.compiler.ops.shapes import reduced_axes
from mxc.compiler.scalar_functions.records import BUILTINS
from mxc.compiler.system.forks import Lock
from mxc.compiler.targets.reference import interpreter
from mxc.runtime.array import LARGE, Array
from mxc.runtime.eager_code import Code, compiled
from mxc.runtime.steady import Steady
from mxc.runtime.storage import MemoryBlock

# Elements from which on a specialization is compiled at its first call: arithmetic (NumPy is as fast on smaller
# arrays), other maps and reductions, and the rest (some of whose references are loops in Python).
ARITHMETIC_ELEMENTS, MAP_ELEMENTS, LIBRARY_ELEMENTS = 1 << 18, 1 << 16, 1 << 12
FEW_ARRAYS = 8  # inputs and outputs; an operator that moves elements between more arrays is never compiled
SLOW_CALL = 250e-6  # seconds from which on a call of a reference is slow: a call of compiled code takes less than half
COMPILATION = 0.3  # seconds of slow calls of a reference after which code is compiled, about what that takes
# Functions that NumPy has and computes in the dtype of their arguments: those that run at the speed of memory, and all.
_QUICK = {"add", "sub", "mul", "div", "neg", "lt", "le", "gt", "ge", "eq", "ne", 
          *(f.step for f in BUILTINS.values() if f.step)}
_KEPT = _QUICK | {"mod", "pow", *(name for name, f in BUILTINS.items() if f.is_quick)}
_LOGICAL = {"and", "or", "not"}
_TRUTH = {"lt", "le", "gt", "ge", "eq", "ne"}
_COMPUTED = ("float32", "float64", "int32", "int64")  # dtypes that NumPy's functions compute in as expressions do
_lock = Lock()


class _Quiet(threading.local):
    """A context (contextvars) of this thread in which NumPy does not warn; entering it costs less than numpy.errstate.

    enter(function, *args): call the function in the context. It raises RuntimeError where the thread is in the context
    already, which happens when a finalizer runs in the middle of a call; `run` does not raise.
    """

    def __init__(self) -> None:
        context = contextvars.Context()
        context.run(lambda: (np.seterr(all="ignore"), _is_quiet.set(True)))
        self.enter: Callable[..., Any] = context.run

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """What the function gives, called in the context."""
        if _is_quiet.get():
            return function(*args)
        return self.enter(function, *args)


_is_quiet = contextvars.ContextVar("is_quiet", default=False)


quiet = _Quiet()


class Specialization:
    """An operator on given shapes and dtypes.

    shapes, dtypes: those of all outputs. results: shape and dtype of each visible one. function: makes a new NumPy
    array, the only output, of the inputs' memory, by the operator's expression; None where no such function can be
    made. short: the same, or the reference, for small work that waits for nothing and changes no other array; None
    where that does not hold. small: see `engine.push`. is_empty: whether some input or output has no elements.
    in_scope: whether it is for the scope `np_shape` only. refusal: why the values of parameters cannot be computed
    with, or ""; as in MXNet that is told where the result is waited for. learned: the positions of parameters and
    auxiliary states among the inputs. steady: the way of calls whose parameters stay as they are, which gives no hidden
    outputs; None where there is none. is_only_code: whether the reference serves tests only and compiled code alone
    computes it. wants_code: whether it is to be compiled. can_gather, is_long: whether it may be a part of a bulk (see
    `runtime/bulk.py`), and begin one.
    """

    def __init__(self, node: Node, in_shapes: Sequence[tuple[int, ...]], in_dtypes: Sequence[str],
                 shapes: Sequence[tuple[int, ...]], dtypes: Sequence[str], is_train: bool):
        op = node.op
        assert op is not None
        self.node, self.op, self.params, self.is_train = node, op, node.params, is_train
        self.in_shapes, self.in_dtypes, self.shapes, self.dtypes = in_shapes, in_dtypes, shapes, dtypes
        self.visible = op.num_visible(node.params)
        self.results = list(zip(shapes[:self.visible], dtypes[:self.visible], strict=True))
        self.is_empty = any(0 in shape for shape in (*in_shapes, *shapes))
        self.refusal = op.refusal(node.params)
        self.in_scope = any(0 in shape for shape in in_shapes) or (
            "shape" in node.params and not in_shapes and (self.is_empty or shapes[0] == ()))
        self.draws = not (self.is_empty or self.refusal) and _draws(node, in_shapes, in_dtypes, is_train)
        elements = max(map(math.prod, (*in_shapes, *shapes)), default=0)
        is_library = op.kind >= Kind.ANCHOR or (op.kind == Kind.REDUCTION and op.reduce is None)
        self.small = elements < (LARGE >> 3 if is_library else LARGE) and not op.is_native
        function, is_quick = numpy_function(node, in_shapes, in_dtypes, shapes[0], dtypes[0])
        least = LIBRARY_ELEMENTS if is_library else ARITHMETIC_ELEMENTS if is_quick else MAP_ELEMENTS
        self.is_only_code = op.is_native or (
            op.kind < Kind.ANCHOR and functions.calls_native(op.expression(node.params) or "0"))
        # A kernel of a join or division serves one number of arrays only, and copies no faster than NumPy.
        self._moves_many = op.kind == Kind.INJECTIVE and len(in_shapes) + len(shapes) > FEW_ARRAYS
        is_large = elements >= least or self.is_only_code  # of these the references are Python
        self.wants_code = is_large and not (self.is_empty or self._moves_many or self.refusal or op.is_host)
        self.function = None if self.wants_code else function
        self.short: Callable[..., np.ndarray] | None = self.function
        if function is None and self.small and not (self.wants_code or self.draws or op.aux) and len(shapes) == 1:
            self.short, self._dtype = self._by_reference, numpy_dtype(dtypes[0])
        # A busy machine's waits are no work, but CPU time costs a call of the system (up to 20 us, as long as a small
        # reference takes), so it is asked for only where a call took long.
        self._clock: Callable[[], float] = time.perf_counter
        kept = {*op.parameters, *op.aux}
        self.learned = [i for i, name in enumerate(op.all_names(node.params)) if name in kept]
        can_stay = self.learned and self.wants_code and self.visible == 1 and not (is_train or self.draws)
        self.steady = Steady(node, in_shapes, in_dtypes, self.learned) if can_stay else None
        self.can_gather = bool(in_shapes) and not (
            is_train or self.draws or self.is_empty or self.in_scope or self.refusal or op.is_host
            or self.is_only_code)
        self.is_long = False
        self._slow = 0.0  # seconds of slow calls of the reference so far; -inf: it was compiled, or cannot be
        self._code: Code | None = None

    def _by_reference(self, *memory: np.ndarray) -> np.ndarray:
        value = np.asarray(self.values(memory)[0])
        if (value.base is None and (value.shape, value.dtype) == (self.shapes[0], self._dtype)
                and value.flags.c_contiguous and not [0 for array in memory if value is array]):
            return value
        made = np.empty(self.shapes[0], self._dtype)
        _write(made, value)
        return made

    def _by_code(self, code: Code, *memory: np.ndarray) -> np.ndarray:
        made = Array.empty(self.shapes[0], self.dtypes[0])
        code.run([m.__array_interface__["data"][0] for m in memory], [made.address], made.context, (0, 0))
        return made.memory

    def code(self) -> Code | None:
        """The compiled specialization, where it is worth it and the compiler can make it."""
        if self.wants_code and self._code is None:
            with _lock:
                if self._code is None:
                    self._code = self._compiled()
                    self.wants_code = self._code is not None
                    self._slow = -math.inf
                    self.is_long = self.can_gather and self._code is not None and not self._code.small
                    if self._code is not None and self._code.is_plain and self._code.small and not self.op.aux:
                        self.short = partial(self._by_code, self._code)
        return self._code

    def _compiled(self) -> Code | None:
        try:
            made = compiled(self.node, self.in_shapes, self.in_dtypes, len(self.shapes), self.is_train)
            return None if made is None else Code(made)
        except MXNetError:  # the reference serves what the target does not
            if self.is_only_code:
                raise
            return None

    def compute(self, inputs: Sequence[Array], results: Sequence[Array], code: Code | None,
                draw: tuple[int, int], prepared: MemoryBlock | None = None) -> None:
        """Write the first outputs to the memory of `results`. code, prepared: what `code()` gave, or `steady`. draw:
        seed and offset."""
        if code is not None:
            self._run_code(code, inputs, results, draw, prepared)
            return
        values = quiet.run(self.values, [a.read() for a in inputs], draw)
        if len(results) > 1:
            values = _apart(values, results)
        for result, value in zip(results, values, strict=False):
            quiet.run(_write, result.memory, value)

    def values(self, memory: Sequence[np.ndarray], draw: tuple[int, int] = (0, 0)) -> Sequence[np.ndarray]:
        """All outputs, computed by NumPy; they may be views of the inputs' memory. Call it in the context of
        `quiet`."""
        if self.function is not None:
            return [self.function(*memory)]
        if self.is_empty:
            return interpreter.of_nothing(self.node, memory, self.shapes, self.dtypes, self.is_train)
        if self.refusal:
            raise MXNetError(f"operator {self.op.name}: {self.refusal}")
        start = self._clock()
        try:
            found = self.op.reference(self.params, memory, self.dtypes, self.is_train, Draws(*draw))
        except MemoryError as error:
            raise OutOfMemoryError(f"operator {self.op.name}: out of memory: {error}") from None
        took = self._clock() - start
        if took > SLOW_CALL and not self._moves_many:
            if self._clock is time.thread_time:
                self._slow += took
                self.wants_code = self.wants_code or self._slow > COMPILATION
                self.short = None if self.wants_code else self.short
            self._clock = time.thread_time
        else:
            self._clock = time.perf_counter
        return found

    def _run_code(self, code: Code, inputs: Sequence[Array], results: Sequence[Array], draw: tuple[int, int],
                  prepared: MemoryBlock | None) -> None:
        """Run the kernels. They may write an output before they have read all inputs, so a result that shares memory
        with an input, or has another dtype, is computed into a new array and copied afterwards."""
        read = {a.variable for a in inputs}
        targets = [r if r.dtype == d and r.variable not in read else Array.empty(s, d, r.context)
                   for r, s, d in zip(results, self.shapes, self.dtypes, strict=False)]
        where, outputs = (*inputs, *results)[0].context, targets
        if prepared is None:
            hidden = zip(self.shapes[len(results):], self.dtypes[len(results):], strict=True)
            outputs = [*targets, *(Array.empty(s, d, where) for s, d in hidden)]
        code.run([a.address for a in inputs], [a.address for a in outputs], where, draw,
                 0 if prepared is None else prepared.address)
        for result, target in zip(results, targets, strict=True):
            if target is not result:
                quiet.run(_write, result.memory, target.memory)


def _draws(node: Node, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[str], is_train: bool) -> bool:
    """Whether an operator draws random numbers."""
    op = node.op
    assert op is not None
    if "reference" not in op.rules:
        return False  # expressions draw none
    from mxc.compiler.passes.decompose import draws  # only now: most programs draw no numbers at first

    return draws(op, node.params, shapes, dtypes, is_train)


def _apart(values: Sequence[np.ndarray], results: Sequence[Array]) -> list[np.ndarray]:
    """The values. One that is a view of memory to which an earlier result will be written is copied."""
    return [value.copy() if any(np.may_share_memory(value, r.memory) for r in results[:i]) else value
            for i, value in enumerate(map(np.asarray, values))]


def _write(target: np.ndarray, value: np.ndarray) -> None:
    if target.dtype == value.dtype:
        np.copyto(target, value)
    else:
        write(target, value)


class Text:
    """The reading of an expression that writes Python over NumPy's functions; raises Long where that will not do.
    Values are pairs: text, and whether it is a truth value. is_quick: whether it was arithmetic so far. lines: of
    formulas, as assignments."""

    def __init__(self, dtype: str):
        self.dtype, self.numbers, self.is_quick = dtype, {}, True  # type: str, dict[str, object], bool
        self.lines: list[str] = []

    def const(self, number: int | float) -> tuple[str, bool]:
        name = f"n{len(self.numbers)}"
        self.numbers[name] = np.dtype(self.dtype).type(expr.number_as(number, self.dtype))
        return name, False

    def cast(self, value: tuple[str, bool], dtype: str) -> tuple[str, bool]:
        raise Long

    def line(self, value: tuple[str, bool]) -> tuple[str, bool]:
        self.lines.append(f"(v{len(self.lines)} := {value[0]})")
        return f"v{len(self.lines) - 1}", value[1]

    def apply(self, op: str, *args: tuple[str, bool]) -> tuple[str, bool]:
        if op in _LOGICAL:
            tests = [text if truth else f"({text} != 0)" for text, truth in args]
            return f"f_{op}({', '.join(tests)})", True
        if op not in _KEPT:
            raise Long
        self.is_quick = self.is_quick and op in _QUICK
        numbers = [f"as_dtype({text}, dtype)" if truth else text for text, truth in args]
        if op == "where":
            test = args[0][0] if args[0][1] else f"({args[0][0]} != 0)"
            return f"where({test}, {', '.join(numbers[1:])})", False
        return f"f_{op}({', '.join(numbers)})", op in _TRUTH

    def names(self) -> dict[str, object]:
        """What the text's names stand for."""
        return {**{f"f_{k}": f for k, f in expr.NUMPY.items()}, **self.numbers,
                "as_dtype": expr.as_dtype, "dtype": np.dtype(self.dtype), "where": np.where,
                "contiguous": np.ascontiguousarray, "__builtins__": {}}


class Long(Exception):
    """There is no short way for an expression."""


def numpy_function(node: Node, in_shapes: Sequence[tuple[int, ...]], in_dtypes: Sequence[str],
                   shape: tuple[int, ...], dtype: str) -> tuple[Callable[..., np.ndarray] | None, bool]:
    """A function of NumPy arrays for an operator whose expression is computed in its inputs' dtype all along, and
    whether it is arithmetic alone."""
    op, params = node.op, node.params
    assert op is not None
    if not in_shapes or not shape or set(in_dtypes) != {dtype} or dtype not in _COMPUTED:
        return None, False
    if op.sums:
        return (_sum, True) if len(in_shapes) > 1 else (None, False)
    if op.reduce is not None:
        return _reduction(op, params, in_shapes[0], shape, dtype), False
    text = op.expression(params) if "reference" not in op.rules else None
    if text is None or expr.compute_dtype(text, dtype) != dtype:
        return None, False
    names = op.input_names(params)
    if not set(names) <= expr.names_of(text):
        return None, False
    reading = Text(dtype)
    env = {n: (f"i_{n}", False) for n in names}
    try:
        for name in op.params:
            value = params[name]
            if isinstance(value, (bool, int, float)):
                env[name] = reading.const(value)
        body, truth = expr.evaluate(text, reading, env)
    except (Long, MXNetError):
        return None, False
    if not any(f"i_{n}" in text for n in names for text in (*reading.lines, body)):  # a formula that is a constant
        return None, False
    if "(" not in body and body[0] != "v":  # an input as it is
        return None, False
    if truth:
        body = f"as_dtype({body}, dtype)"
    if any(s != shape for s in in_shapes):
        body = f"contiguous({body})"
    if len(names) == 2 and body == f"f_{body[2:].split('(')[0]}(i_{names[0]}, i_{names[1]})":
        return expr.NUMPY[body[2:].split("(")[0]], reading.is_quick
    if reading.lines:
        body = f"({', '.join([*reading.lines, body])})[-1]"
    text = f"lambda {', '.join(f'i_{n}' for n in names)}: {body}"
    return eval(text, reading.names()), reading.is_quick  # checked


def _reduction(op: Operator, params: Params, whole: tuple[int, ...], shape: tuple[int, ...], dtype: str,
               ) -> Callable[[np.ndarray], np.ndarray] | None:
    """A function for sums, means and their like of plain elements, in float64 as the reference has it."""
    assert op.reduce is not None
    combine = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}.get(op.reduce.combine)
    if (combine is None or "reference" in op.rules or 0 in whole or not dtype.startswith("float")
            or op.reduce.body not in op.input_names(params) or op.reduce.final not in ("acc", "acc / count")):
        return None
    axes = reduced_axes(params, len(whole))
    count = math.prod(whole[a] for a in axes) if op.reduce.final != "acc" else 1

    def reduced(values: np.ndarray) -> np.ndarray:
        total = combine.reduce(values, axis=axes, dtype=np.float64)
        return (total / count if count > 1 else total).astype(dtype, order="C").reshape(shape)

    return reduced


def _sum(first: np.ndarray, second: np.ndarray, *more: np.ndarray) -> np.ndarray:
    """The sum of arrays of one shape, added in their order."""
    total = np.add(first, second)
    for term in more:
        np.add(total, term, out=total)
    return total
