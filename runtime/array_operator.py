"""Operators that a program writes as functions over whole arrays, which become kernels: mx.operator.kernel.

An operator and its gradient are one class. Its function computes what no reference of ours does, so eager calls run
compiled code whatever the size, and the reference (monitors, arrays without elements) is the function as Python runs
it.
"""
from __future__ import annotations

import inspect
import keyword
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mxc.compiler.error import MXNetError, nearest
from mxc.compiler.functions.arrays import ArrayFunction
from mxc.compiler.functions.source import FunctionSource, read
from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.ops import table
from mxc.compiler.ops.dtypes import NARROW, converted, dtype_name, numpy_dtype
from mxc.compiler.ops.operator import InputSpec, Kind, Operator, Params
from mxc.compiler.ops.params import ParamType

Shape = tuple[int, ...]
GRADIENT = "grad_"
DTYPES = frozenset([*NARROW, "float32", "float64", "bool", "int8", "uint8", "int32", "int64"])
ShapeRule = Callable[[Sequence[Shape], Params], list[Shape]]
DtypeRule = Callable[[Sequence[str]], list[str]]


class ArrayOperator(Operator):
    """function: what computes, its arrays by name among `inputs` and `outputs`. shapes, dtypes: those of the outputs.
    backward: the operator that gives gradients, of the inputs `targets`; None without. wide: whether it stands for
    another one on float32 where that has float16, which Numba cannot compute with."""

    is_native = True

    def __init__(self, name: str, function: ArrayFunction, inputs: Sequence[str], outputs: Sequence[str],
                 params: Mapping[str, ParamType], shapes: ShapeRule, dtypes: DtypeRule, wide: bool = False):
        doc = inspect.cleandoc(getattr(function.source.function, "__doc__", None) or "")
        super().__init__(name, Kind.OPAQUE, tuple(InputSpec(n) for n in inputs), params,
                         outputs=tuple(outputs) if len(outputs) > 1 else ("output",),
                         rules=dict.fromkeys(("shape", "dtype", "routine"), name), doc=doc)
        self.arrays = (*inputs, *outputs)  # by the function's names
        self.function, self.shapes, self.dtypes, self.wide = function, shapes, dtypes, wide
        self.backward: ArrayOperator | None = None
        self.targets: tuple[int, ...] = ()

    @property
    def place(self) -> str:
        """Where its function is, for messages."""
        line = self.function.lines[0]
        return f"{line.file}, line {line.number}"

    @property
    def signature(self) -> str:
        back = "" if self.backward is None else self.backward.signature
        return f"{self.function.digest} {self.function.lines} {self.wide} {back}"

    def content(self, *rules: Any) -> tuple[object, ...]:
        """What its results depend on, for those who compare. rules: functions that give shapes and dtypes."""
        return (self.function.digest, self.backward and self.backward.function.digest,
                *(getattr(rule, "__code__", rule) for rule in rules))

    @property
    def no_gradient(self) -> str:  # type: ignore[override]
        """What to do where one was asked for."""
        return (f"give one where it is defined ({self.place}), @mx.operator.kernel(..., gradient=FUNCTION), or "
                f"{Operator.no_gradient}")

    def rule(self, role: str) -> Callable | None:
        rules: dict[str, Callable | None] = {
            "shape": self._infer_shapes, "dtype": self._infer_dtypes, "routine": self._kernel,
            "grad": None if self.backward is None else _gradient, "decompose": None if self.wide else self._widened}
        return rules.get(role)

    def _infer_shapes(self, params: Params, ins: list[Shape | None], outs: list[Shape | None]) -> tuple[list, list]:
        known = [s for s in ins if s is not None and 0 not in s]
        if len(known) < len(ins):
            return ins, outs
        found = self.shapes(known, params)
        self.function.check(dict(zip(self.arrays, (*known, *found), strict=True)))
        return ins, found

    def _infer_dtypes(self, params: Params, ins: list[str | None], outs: list[str | None]) -> tuple[list, list]:
        known = [d for d in ins if d is not None]
        if len(known) < len(ins):
            return ins, outs
        found = self.dtypes(known)
        return ins, [_computing(d) for d in found] if self.wide else found

    def _kernel(self, c: Any, params: Params) -> Any:
        from mxc.compiler.kernel.routines.functions import function_kernel

        defaults: list[Any] = [kind.default for kind in self.params.values() if not kind.required]
        usual = defaults if len(defaults) == len(self.params) else ()
        return function_kernel(c, self.name, self.function, self.arrays, self._numbers(params), usual)

    def _numbers(self, params: Params) -> tuple[Any, ...]:
        return tuple(params[name] for name in self.params)

    def _widened(self, builder: GraphBuilder, node: Node, inputs: Sequence[Entry],
                 options: object) -> Sequence[Entry] | None:
        """float16 and bfloat16 as float32 inside."""
        dtypes = [builder.dtype(e) for e in inputs]
        found = self.dtypes(dtypes)
        if not {*NARROW} & {*dtypes, *found}:
            return None
        given = [builder.make("Cast", e, name=f"{node.name}_wide{i}", dtype="float32") if d in NARROW else e
                 for i, (e, d) in enumerate(zip(inputs, dtypes, strict=True))]
        count = len(self.inputs)
        inner = ArrayOperator(self.name, self.function, self.arrays[:count], self.arrays[count:], self.params,
                              self.shapes, lambda _: found, wide=True)
        outputs = builder.add(Node(inner, node.name, None, node.params, given))
        return [builder.make("Cast", e, name=f"{node.name}_narrow{i}", dtype=d) if d in NARROW else e
                for i, (e, d) in enumerate(zip(outputs, found, strict=True))]

    def reference(self, params: Params, inputs: Sequence[np.ndarray], out_dtypes: Sequence[str], is_train: bool = False,
                  rng: object = None) -> list[np.ndarray]:
        """All outputs, as Python runs the function on NumPy arrays."""
        given = [converted(a, np.dtype(_computing(dtype_name(a.dtype)))) for a in inputs]
        for i, array in enumerate(given):
            given[i] = array.view()
            given[i].flags.writeable = False
        made = [np.zeros(s, _computing(d)) for s, d in
                zip(self.shapes([a.shape for a in inputs], params), out_dtypes, strict=True)]
        arrays = dict(zip(self.arrays, (*given, *made), strict=True))
        self.function.run([arrays[name] for name in self.function.arrays], self._numbers(params))
        return [converted(a, numpy_dtype(d)) for a, d in zip(made, out_dtypes, strict=True)]


def _computing(dtype: str) -> str:
    """The dtype in which a function has an array."""
    return "float32" if dtype in NARROW else dtype


def _gradient(g: Gradient) -> list[Entry | None]:
    op = g.node.op
    assert isinstance(op, ArrayOperator) and op.backward is not None
    entries = dict(zip(op.arrays, (*g.inputs, *g.outputs), strict=True))
    taken = [g.grad(op.arrays.index(spec.name.removeprefix(GRADIENT)) - len(op.inputs)) if spec.name not in entries
             else entries[spec.name] for spec in op.backward.inputs]
    params = Params({name: g.params[name] for name in op.backward.params})
    made = g.builder.add(Node(op.backward, f"{g.node.name}_backward", op.backward.attrs_of(params), params, taken))
    backs: list[Entry | None] = [None] * len(g.inputs)
    for target, entry in zip(op.targets, made, strict=True):
        if "float" in g.dtype(g.inputs[target]):
            backs[target] = entry
    return backs


# -- definition


def define(name: str, function: Any, shapes: Any, dtypes: Any, gradient: Any) -> None:
    """Make the operator `name` of the program's own; see mx.operator.kernel, which has the errors that it raises."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise MXNetError(f"an operator cannot be called {name!r}: expected a name of letters, digits and underscores")
    try:
        op = _made(name, function, shapes, dtypes, gradient)
    except RecursionError:
        raise MXNetError(f"operator {name}: its function is nested too deeply; expected shorter formulas and chains of "
                         "elif") from None
    try:
        table.define(op, function, op.content(shapes, dtypes))
    except MXNetError as error:
        raise op.function.source.error(str(error).removeprefix(f"operator {name}: ")) from None


def _made(name: str, function: Any, shapes: Any, dtypes: Any, gradient: Any) -> ArrayOperator:
    source = read(name, "function", function)
    names = source.inputs
    count = len(names) - 1 if shapes is None else _positional(source, "shapes", shapes)
    if not 0 < count < len(names):
        rule = "without shapes= the last parameter is the output" if shapes is None else (
            f"shapes= takes {count} inputs, so the parameters behind the first {count} are outputs")
        raise source.error(f"it has the parameters {', '.join(names) or 'none'}; {rule}, and there must be an input "
                           "and an output")
    inputs, outputs = names[:count], names[count:]
    _check_names(source, inputs)
    if dtypes is not None and (given := _positional(source, "dtypes", dtypes)) != count:
        raise source.error(f"dtypes= takes {given} inputs; expected {count}, as many as the operator has "
                           f"({', '.join(inputs)})")
    op = ArrayOperator(name, ArrayFunction(source, outputs), inputs, outputs, _params(source),
                       _shape_rule(source, shapes, outputs), _dtype_rule(source, dtypes, outputs))
    if gradient is not None:
        op.backward, op.targets = _backward(op, gradient)
    return op


def _positional(source: FunctionSource, what: str, rule: Any) -> int:
    """How many inputs a rule takes."""
    try:
        parameters = inspect.signature(rule).parameters.values()
    except (TypeError, ValueError):
        raise source.error(f"{what}= is {rule!r}; expected a function of the inputs' {what}") from None
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        raise source.error(f"{what}= has * or ** parameters; expected one for each input, so that it is known how many "
                           "there are")
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


def _check_names(source: FunctionSource, names: Sequence[str]) -> None:
    """Refuse inputs and parameters that are called as what the operator's functions have besides."""
    for name in (*names, *source.keywords):
        if name in ("out", "name", "attr", "ctx"):
            raise source.error(f"an input or parameter is called {name}, which the operator's functions have for "
                               "themselves; expected another name")


def _params(source: FunctionSource) -> dict[str, ParamType]:
    """The operator's parameters: the function's keyword-only ones, of the types of their defaults."""
    found: dict[str, ParamType] = {}
    for name, default in source.keywords.items():
        if default is inspect.Parameter.empty:
            found[name] = ParamType("double")
        elif isinstance(default, bool):
            found[name] = ParamType("bool", default=default)
        elif isinstance(default, (int, float)):
            kind = ParamType("int" if isinstance(default, int) else "double", default=default)
            found[name] = kind
            try:
                kind.convert(default)
            except MXNetError as error:
                raise source.error(f"the default of {name}: {error}") from None
        else:
            raise source.error(f"the default of {name} is {default!r}; expected a number of Python's")
    return found


def _called(source: FunctionSource, what: str, rule: Callable[..., Any], given: Sequence[Any],
            keywords: Mapping[str, Any]) -> Any:
    try:
        return rule(*given, **keywords)
    except Exception as error:
        raise source.error(f"{what}= of {', '.join(map(str, given))} raises {type(error).__name__}: {error}") from error


def _shape_rule(source: FunctionSource, rule: Any, outputs: Sequence[str]) -> ShapeRule:
    if rule is None:
        return lambda given, params: [tuple(given[0])]
    takes = [name for name, p in inspect.signature(rule).parameters.items() if p.kind is p.KEYWORD_ONLY]
    unknown = [name for name in takes if name not in source.keywords]
    if unknown:
        raise source.error(f"shapes= has the parameter {unknown[0]}{nearest(unknown[0], list(source.keywords))}, which "
                           "the function has not")

    def shapes(given: Sequence[Shape], params: Params) -> list[Shape]:
        found = _called(source, "shapes", rule, [tuple(s) for s in given], {name: params[name] for name in takes})
        several = isinstance(found, (tuple, list)) and any(isinstance(s, (tuple, list)) for s in found)
        parts = list(found) if several else [found]
        if len(parts) != len(outputs):
            raise source.error(f"shapes= gives {len(parts)} shapes, {found!r}; the function has {len(outputs)} outputs "
                               f"({', '.join(outputs)})")
        return [_shape(source, found, part) for part in parts]

    return shapes


def _shape(source: FunctionSource, found: Any, part: Any) -> Shape:
    try:
        if not isinstance(part, (tuple, list)) or any(isinstance(n, bool) for n in part):
            raise TypeError
        shape = tuple(operator.index(n) for n in part)
    except TypeError:
        raise source.error(f"shapes= gives {found!r}; expected a tuple of integers for each output") from None
    if min(shape, default=0) < 0:
        raise source.error(f"shapes= gives {found!r}; expected extents that are not negative")
    return shape


def _dtype_rule(source: FunctionSource, rule: Any, outputs: Sequence[str]) -> DtypeRule:
    if rule is None:
        return lambda given: [given[0]] * len(outputs)

    def dtypes(given: Sequence[str]) -> list[str]:
        found = _called(source, "dtypes", rule, [numpy_dtype(d) for d in given], {})
        parts = list(found) if isinstance(found, (tuple, list)) else [found]
        if len(parts) != len(outputs):
            raise source.error(f"dtypes= gives {len(parts)} dtypes, {found!r}; the function has {len(outputs)} outputs "
                               f"({', '.join(outputs)})")
        try:
            names = [dtype_name(d) for d in parts]
        except TypeError:
            names = [""]
        wrong = [d for d, n in zip(parts, names, strict=False) if n not in DTYPES]
        if wrong:
            raise source.error(f"dtypes= gives {wrong[0]!r}; expected one of {', '.join(sorted(DTYPES))}")
        return names

    return dtypes


def _backward(op: ArrayOperator, gradient: Any) -> tuple[ArrayOperator, tuple[int, ...]]:
    """The operator of a gradient function, and the positions of the inputs whose gradients it gives."""
    source = read(op.name, "gradient", gradient)
    count = len(op.inputs)
    inputs, heads = op.arrays[:count], [f"{GRADIENT}{name}" for name in op.arrays[count:]]
    targets = [name for name in source.inputs if name in {f"{GRADIENT}{n}" for n in inputs} and name not in heads]
    known = [*op.arrays, *heads, *(f"{GRADIENT}{n}" for n in inputs)]
    for name in source.inputs:
        if name not in known:
            raise source.error(f"it has the parameter {name}{nearest(name, known)}; expected some of "
                               f"{', '.join(known)}")
    for name in source.keywords:
        if name not in op.params:
            raise source.error(f"it has the parameter {name}{nearest(name, list(op.params))}, which the operator has "
                               "not")
    if not targets:
        raise source.error(f"it writes no gradient; expected parameters among "
                           f"{', '.join(f'{GRADIENT}{n}' for n in inputs)}, which it writes")
    positions = tuple(inputs.index(name.removeprefix(GRADIENT)) for name in targets)
    taken = [name for name in source.inputs if name not in targets]
    taken += [inputs[p] for p in positions if inputs[p] not in taken]  # which say the shape
    places = [taken.index(inputs[p]) for p in positions]
    made = ArrayOperator(f"_backward_{op.name}", ArrayFunction(source, targets), taken, targets,
                         {name: op.params[name] for name in source.keywords},
                         lambda given, params: [tuple(given[p]) for p in places],
                         lambda given: [given[p] for p in places])
    return made, positions
