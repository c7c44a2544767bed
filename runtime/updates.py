"""Running updates of weights: operators that change arrays in place (compiler/ops/updates.py) on a program's arrays.

Large arrays are updated by one kernel, which serves every size and every learning rate; small ones by NumPy, as long as
no large one needed that kernel. Programs update the same arrays in every step, so a kernel on given arrays is
remembered by the array that it writes.
"""
from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Node
from mxc.compiler.ops import table, updates
from mxc.compiler.ops.dtypes import converted, write
from mxc.compiler.ops.expr import evaluate
from mxc.compiler.ops.infer import infer_node
from mxc.compiler.ops.operator import Operator, Params
from mxc.runtime import device_array, engine, runner, tape
from mxc.runtime.array import LARGE, Array
from mxc.runtime.context import GPU, Context
from mxc.runtime.device_array import DeviceArray
from mxc.runtime.eager import Text, quiet
from mxc.runtime.step_table import StepTable

if TYPE_CHECKING:
    from mxc.compiler.targets.protocol import Launcher

# Elements of a weight from which on its update is compiled. Smaller ones take a kernel that is there already, which may
# round in another way, so a process whose numbers must not depend on what it updated before sets this to 0.
COMPILED = 1 << 8
QUICK = 1 << 13  # elements below which a kernel is so quick that it is called without letting go of Python's lock
HANDED_OVER = 4 * LARGE  # elements from which on another thread does it: more, for an update is one pass over memory
# What several weights have a number each of, and its name for one; arrays may hold the first two.
RATES = {"lrs": "lr", "wds": "wd", "etas": "eta", "learning_rates": "lr", "step_count": "t"}
PLAIN = Params()  # parameters to ask for an update's inputs with, which do not depend on parameters
Shape = tuple[int, ...]
# Of a kernel: its address, the integers behind the buffers, units, and what launches it (None: the runner).
UpdateCode = tuple[int, tuple[int, ...], int, "Launcher | None"]
Numbers = Callable[[], np.ndarray] | np.ndarray  # a function is called when the work runs, for rates may be in arrays
UpdateGroup = tuple[Operator, Sequence[Array], Numbers]  # an operator, its arrays and its numbers
Run = Callable[[Sequence[Array], Numbers], None]  # does an update; the last of the arrays is the result


def update(name: str, arrays: Sequence[Array], params: Mapping[str, object], out: Sequence[Array] | None = None,
           context: Context | None = None) -> list[Array]:
    """The new value of each weight: new arrays, or `out`, which may be the weights, filled with them. States change in
    place.

    As `invoke.invoke`, for an operator that changes arrays in place. Raises MXNetError when arrays do not fit it, or
    when a state shares memory with another array.
    """
    op = table.get(name)
    if out is not None and len(out) == 1 and not op.many and not tape.state.recording:
        ready = out[0].update
        if ready is not None and ready.fits(op, arrays):  # the usual case, in short
            found = numbers_of(op, params)
            engine.push(functools.partial(ready.run, [*arrays, out[0]], found), ready.reads, ready.writes, op.name,
                        ready.small)
            return [out[0]]
    if "changes" in op.rules:
        return _changed(op, arrays, params, out)
    if op.along:
        return _stepped(op, arrays, params, out, context)
    return _apply(op, _groups(op, arrays, params), arrays, out, context)


def update_all(name: str, arrays: Sequence[Sequence[Array]], params: Sequence[Mapping[str, object]],
               out: Sequence[Array]) -> None:
    """`update` of several weights as one piece of work: the arrays of each, its parameters, and where the result goes.
    The operator is one of a single weight."""
    op = table.get(name)
    names, groups = op.input_names(PLAIN), list[UpdateGroup]()
    for inputs, given in zip(arrays, params, strict=True):
        check_count(op, inputs, names)
        groups.append((op, inputs, numbers_of(op, given)))
    _apply(op, groups, [a for inputs in arrays for a in inputs], out, None)


def norms(arrays: Sequence[Array], out: Sequence[Array]) -> None:
    """Write the root of the sum of squares of each array to one of a single element; all are one piece of work."""

    def compute() -> None:
        for array, result in zip(arrays, out, strict=True):
            flat = array.read().reshape(-1)
            flat = converted(flat, np.dtype(updates.compute_dtype([array.dtype])))
            result.memory[...] = math.sqrt(np.dot(flat, flat))

    engine.push(compute, [a.variable for a in arrays], [a.variable for a in out], "norm",
                sum([a.size for a in arrays]) < HANDED_OVER)


def _apply(op: Operator, groups: Sequence[UpdateGroup], arrays: Sequence[Array], out: Sequence[Array] | None,
           context: Context | None) -> list[Array]:
    """Push the updates of the groups as one piece of work; the results, `out` or new arrays. arrays: all that are
    read."""
    if out is not None and len(out) != len(groups):
        raise MXNetError(f"operator {op.name} gives {len(groups)} outputs, out has {len(out)}")
    works: list[tuple[Ready, list[Array], Numbers]] = []
    results, changed, writes, elements = list[Array](), list[Array](), list[engine.Variable](), 0
    for i, (one, inputs, numbers) in enumerate(groups):
        result = None if out is None else out[i]
        ready = None if result is None else result.update
        if result is None or ready is None or not ready.fits(one, inputs):
            special = _special(one, tuple([a.shape for a in inputs]), tuple([a.dtype for a in inputs]))
            result = _result(op, i, result, special.shape, special.dtype, inputs[0])
            ready = special.ready(inputs, result)
        results.append(result)
        works.append((ready, [*inputs, result], numbers))
        writes += ready.writes
        elements += result.size
        if tape.state.recording:
            changed += [result, *[inputs[k] for k in ready.states]]
    if tape.state.recording:
        tape.check_writes(op.name, changed)

    def compute() -> None:
        for ready, given, numbers in works:
            ready.run(given, numbers)

    engine.push(compute, [a.variable for a in arrays], writes, op.name, elements < HANDED_OVER)
    return results


def _stepped(op: Operator, arrays: Sequence[Array], params: Mapping[str, object], out: Sequence[Array] | None,
             context: Context | None) -> list[Array]:
    """Updates of several weights whose steps depend on the norms of weight and direction."""
    groups, step, made = _groups(op, arrays, params), table.get(op.along), op.make_params(params)
    directions = _apply(op, groups, arrays, None, context)
    same = {name: value for name, value in params.items() if name in step.params}
    steps, measured, found = list[UpdateGroup](), list[Array](), list[Array]()
    for (_, inputs, _), direction, lr in zip(groups, directions, made.learning_rates, strict=True):
        weight, copies = inputs[0], inputs[4:]  # behind the gradient and two states
        basis = copies[0] if copies else weight
        lengths = [Array.empty((1,), basis.dtype, weight.context.computing) for _ in range(2)]
        steps.append((step, [weight, direction, *lengths, *copies], numbers_of(step, {"lr": lr, **same})))
        measured += basis, direction
        found += lengths
    norms(measured, found)
    return _apply(op, steps, [a for _, inputs, _ in steps for a in inputs], out, context)


def _changed(op: Operator, arrays: Sequence[Array], params: Mapping[str, object], out: Sequence[Array] | None,
             ) -> list[Array]:
    """What a rule of the operator's makes of arrays. Any of them may be written."""
    made = op.make_params({**params, op.variadic: len(arrays)} if op.variadic else params)
    rule = op.rule("changes")
    assert rule is not None
    check_count(op, arrays, op.input_names(made))
    shapes, dtypes = infer_node(Node(op, "", None, made), [a.shape for a in arrays], [a.dtype for a in arrays])
    given = [None] * len(shapes) if out is None else out
    if len(given) != len(shapes):
        raise MXNetError(f"operator {op.name} gives {len(shapes)} outputs, out has {len(given)}")
    results = [_result(op, i, place, shape, dtype, arrays[0])
               for i, (place, shape, dtype) in enumerate(zip(given, shapes, dtypes, strict=True))]
    if tape.state.recording:
        tape.check_writes(op.name, [*arrays, *results])

    def compute() -> None:
        for result, value in zip(results, rule(made, [a.memory for a in arrays]), strict=True):
            write(result.memory, value)

    engine.push(compute, [], [a.variable for a in (*arrays, *results)], op.name, sum(a.size for a in arrays) < LARGE)
    return results


def _result(op: Operator, number: int, place: Array | None, shape: Shape, dtype: str, like: Array) -> Array:
    """Where an output goes: a new array, or `place`. Raises MXNetError where that does not fit."""
    if place is None:
        return Array.empty(shape, dtype, like.context.computing)
    if place.shape != shape or place.dtype != dtype:
        raise MXNetError(f"operator {op.name}: output {number} is {dtype} of shape {shape}, out is {place.dtype} of "
                         f"shape {place.shape}; they must be the same")
    return place


def _groups(op: Operator, arrays: Sequence[Array], params: Mapping[str, object]) -> list[UpdateGroup]:
    """The update of each weight, its arrays and its numbers."""
    if not op.many:
        check_count(op, arrays, op.input_names(PLAIN))
        return [(op, arrays, numbers_of(op, params))]
    made = op.make_params(params)
    one, count = table.get(op.many), op.num_weights(made)
    check_count(op, arrays, op.input_names(made))
    each, behind = op.inputs_of_one, arrays[count * op.inputs_of_one:]
    preloaded, common = "wds" not in op.params, behind[:op.common]
    rates: dict[str, Sequence[float] | Array] = {}
    for at, key in enumerate(list(RATES)[:2] if preloaded else [key for key in RATES if key in op.params]):
        values = behind[at] if preloaded else made[key]
        assert isinstance(values, (tuple, Array))
        shape = values.shape if isinstance(values, Array) else np.shape(values)
        if shape != (count,):
            raise MXNetError(f"operator {op.name}: expected {count} numbers in {key}, got the shape {shape}")
        rates[key] = values
    same = {name: value for name, value in params.items() if name in one.params}

    def numbers(i: int) -> np.ndarray:
        known = {RATES[key]: values for key, values in rates.items() if RATES[key] in one.params}
        return numbers_of(one, {**{name: (values.read() if isinstance(values, Array) else values)[i]
                                   for name, values in known.items()}, **same})

    return [(one, [*arrays[i * each:(i + 1) * each], *common], functools.partial(numbers, i) if preloaded
             else numbers(i)) for i in range(count)]


def check_count(op: Operator, arrays: Sequence[Array], names: Sequence[str]) -> None:
    """Raises MXNetError where there are not as many arrays as the operator takes."""
    if len(arrays) != len(names):
        raise MXNetError(f"operator {op.name} takes {len(names)} arrays ({', '.join(names)}), got {len(arrays)}")


def numbers_of(op: Operator, params: Mapping[str, object]) -> np.ndarray:
    """The values that the operator's lines take besides arrays: those of `updates.number_names`."""
    try:
        return _remembered_numbers(op, tuple(params.items()))
    except TypeError:  # a parameter that cannot be hashed
        return _numbers(op, op.make_params(params))


@functools.lru_cache(maxsize=4096)
def _remembered_numbers(op: Operator, params: tuple[tuple[str, object], ...]) -> np.ndarray:
    return _numbers(op, op.make_params(dict(params)))


def _numbers(op: Operator, params: Mapping[str, object]) -> np.ndarray:
    """The values of `updates.number_names`; lines of numbers are computed in float64."""
    given = [np.float64(params.get(name, 0)) for name in op.params]  # type: ignore[arg-type]
    return np.array(quiet.run(_number_function(op), *given))


@functools.cache
def _number_function(op: Operator) -> Callable[..., list]:
    lines = {name: text for name, text in op.update.items() if name not in updates.steps(op)}
    return _function(lines, list(op.params), updates.number_names(op), "float64")


@functools.cache
def function_of(op: Operator, dtype: str) -> Callable[..., list]:
    """A function of NumPy arrays, of all inputs, and of `numbers_of`: the new states, and the result."""
    names = [spec.name for spec in op.inputs]
    return _function(updates.steps(op), [*names, *updates.number_names(op)], [*updates.states(op), updates.OUT], dtype)


def _function(lines: Mapping[str, str], names: Sequence[str], results: Sequence[str],
              dtype: str) -> Callable[..., list]:
    """A function of the values of `names`, by NumPy: computes the lines in order, gives what `results` name."""
    reading, env = Text(dtype), {n: (f"i_{n}", False) for n in names}
    source = [f"def function({', '.join(text for text, _ in env.values())}):"]
    for name, text in lines.items():
        source.append(f"    i_{name} = {evaluate(text, reading, env)[0]}")
        env[name] = f"i_{name}", False
    source.append(f"    return [{', '.join(f'i_{r}' for r in results)}]")
    space = reading.names()
    exec("\n".join(source), space)  # expressions are checked
    function = space["function"]
    assert callable(function)
    return function


class _Specialization:
    """An update of arrays of given shapes and dtypes. shape, dtype: of the result; states: positions of the inputs
    that change."""

    def __init__(self, op: Operator, shapes: tuple[Shape, ...], dtypes: tuple[str, ...]):
        (self.shape,), (self.dtype,) = infer_node(Node(op, "", None, Params()), shapes, dtypes)
        names, changed = [i.name for i in op.inputs], updates.states(op)
        for name, shape in zip(names, shapes, strict=True):
            if 0 in shape:
                raise MXNetError(f"operator {op.name}: {name} has the shape {shape}; operators take arrays with "
                                 "elements")
        self.op, self.dtypes, self.sizes = op, dtypes, tuple(int(np.prod(shape)) for shape in shapes)
        self.states = [names.index(name) for name in changed]
        self.compute = np.dtype(updates.compute_dtype(dtypes))
        self.function = function_of(op, self.compute.name)

    def ready(self, inputs: Sequence[Array], result: Array) -> Ready:
        """The update of these arrays, remembered by the result where it is a kernel's. Raises MXNetError when a state
        shares memory."""
        over = result is inputs[0] or (_overlap(result, inputs[0]) and result.address == inputs[0].address)
        for k in self.states:
            if any(_overlap(a, inputs[k]) for a in (result, *inputs[:k], *inputs[k + 1:])):
                raise MXNetError(f"operator {self.op.name}: {self.op.inputs[k].name} is changed in place, but shares "
                                 "memory with another of its arrays; give it memory of its own")
        kind = self.op, self.dtypes, tuple(size == 1 for size in self.sizes), over  # updates of one kind share a kernel
        # a kernel goes through all arrays at once: where the result lies across an input, it may overwrite what is
        # still to be read
        shifted = any(_overlap(a, result) and not (over and a.address == result.address) for a in inputs)
        other = next((a for a in (*inputs, result) if a.context.gpu_number != inputs[0].context.gpu_number), None)
        if other is not None:
            raise MXNetError(f"operator {self.op.name} takes arrays of one device: the first is on "
                             f"{inputs[0].context}, another one on {other.context}")
        if result.context.device_typeid == GPU and not shifted:
            launch = _DeviceLaunch(self, inputs, None if over else result)
            made = result.update = Ready(self, inputs, result, launch.run)
            return made
        if shifted or (self.sizes[0] < COMPILED and kind not in _compiled):
            return Ready(self, inputs, result, self.by_numpy)
        _compiled.add(kind)
        made = result.update = Ready(self, inputs, result, _Launch(self, inputs, None if over else result).run)
        return made

    def by_numpy(self, arrays: Sequence[Array], numbers: Numbers) -> None:
        *inputs, result = arrays
        given = [converted(a.read(), self.compute) for a in inputs]
        found = numbers if isinstance(numbers, np.ndarray) else numbers()
        values = quiet.run(self.function, *given, *found.astype(self.compute))
        for array, value in zip((*[inputs[k] for k in self.states], result), values, strict=True):
            write(array.memory, np.asarray(value))

    @functools.cache  # noqa: B019  # forms are kept anyway
    def code(self, over: bool, context: Context | None = None) -> UpdateCode:
        """The kernel. over: it writes the result over the weight. context: a GPU; None for the CPU."""
        from mxc.compiler.api import compile_update  # only now: small arrays need no compiler

        target = None if context is None else context.target()
        return compile_update(self.op, self.dtypes, self.sizes, None if over else self.dtype, target)


class _Launch:
    """The kernel of an update on given arrays, which it does not keep alive. result: None, it writes over the weight.

    The numbers lie in memory that all runs share: each run writes the arrays, so no two are under way at a time.
    """

    def __init__(self, special: _Specialization, inputs: Sequence[Array], result: Array | None):
        address, integers, units, _ = special.code(result is None)
        self.given, self.last = np.empty(len(updates.number_names(special.op)), special.compute), np.empty(0)
        places = [*[a.address for a in inputs], self.given.ctypes.data, *([] if result is None else [result.address])]
        self.table = StepTable([(address, [*places, *integers], units)])
        self.call = runner.bound(self.table, special.sizes[0] < QUICK)

    def run(self, arrays: Sequence[Array], numbers: Numbers) -> None:
        found = numbers if isinstance(numbers, np.ndarray) else numbers()
        if found is not self.last:
            self.given[:] = self.last = found
        self.call()


class _DeviceLaunch:
    """As `_Launch`, on a GPU."""

    def __init__(self, special: _Specialization, inputs: Sequence[Array], result: Array | None):
        context = inputs[0].context
        address, integers, units, launcher = special.code(result is None, context)
        assert launcher is not None
        count = len(updates.number_names(special.op))
        self.given = Array.empty((count,), special.compute.name, context)
        places = [*[a.address for a in inputs], self.given.address, *([] if result is None else [result.address])]
        self.table, self.launcher = launcher.table([(address, [*places, *integers], units)]), launcher
        self.writes = [*special.states, 0 if result is None else len(inputs)]

    def run(self, arrays: Sequence[Array], numbers: Numbers) -> None:
        self.given.memory[:] = numbers if isinstance(numbers, np.ndarray) else numbers()
        used = [(cast(DeviceArray, array), i in self.writes) for i, array in enumerate((*arrays, self.given))]
        device_array.run(self.launcher, self.table, used)


class Ready:
    """An update of given arrays. run: what does it. states: see `_Specialization`. reads, writes, small: see
    `engine.push`."""

    __slots__ = ("op", "reads", "run", "small", "sources", "states", "writes")

    def __init__(self, special: _Specialization, inputs: Sequence[Array], result: Array, run: Run):
        self.op, self.run, self.states, self.small = special.op, run, special.states, special.sizes[0] < HANDED_OVER
        self.sources = [weakref.ref(a) for a in inputs]
        self.reads = [a.variable for a in inputs]
        self.writes = [result.variable, *[inputs[k].variable for k in special.states]]

    def fits(self, op: Operator, inputs: Sequence[Array]) -> bool:
        """Whether it is that operator of these arrays."""
        return op is self.op and [source() for source in self.sources] == [*inputs]


_compiled: set[tuple] = set()  # kinds of updates whose kernel this process has


@functools.lru_cache(maxsize=4096)
def _special(op: Operator, shapes: tuple[Shape, ...], dtypes: tuple[str, ...]) -> _Specialization:
    return _Specialization(op, shapes, dtypes)


def _overlap(a: Array, b: Array) -> bool:
    return a.variable is b.variable and np.may_share_memory(a.layout, b.layout)
