"""Operators that a program writes as functions of numbers: how they become operators of the table."""
from __future__ import annotations

import ast
import hashlib
import inspect
import keyword
from collections.abc import Callable, Sequence
from typing import Any

from mxc.compiler import targets
from mxc.compiler.error import MXNetError
from mxc.compiler.functions import source as sources
from mxc.compiler.functions.checks import check
from mxc.compiler.functions.formula import NotFormula, read_formula
from mxc.compiler.functions.source import FunctionSource
from mxc.compiler.functions.unbound import check_bound
from mxc.compiler.operators.basic.shape import same_dtype
from mxc.compiler.ops import functions, table
from mxc.compiler.ops.functions import ScalarFunction
from mxc.compiler.ops.operator import InputSpec, Kind, Operator, Params
from mxc.compiler.ops.params import ParamType

BASES = {float: "double", int: "int", bool: "bool"}  # types of parameters, as ops/params.py calls them
# Names that operator functions and the expression language have a use for.
TAKEN = frozenset(["name", "attr", "out", "ctx", "shape", "dtype", "kwargs", "og", "count", "pi", "e", "inf", "nan"])


class ElementwiseOperator(Operator):
    """place: the file and line of its function. digest: a digest of all that it computes, by which it is known."""

    def __init__(self, source: FunctionSource, params: dict[str, ParamType], digest: str, expr: str):
        super().__init__(source.operator, Kind.ELEMENTWISE, tuple(InputSpec(n) for n in source.inputs), params,
                         expr=expr, rules={"shape": "same_shape"}, doc=inspect.getdoc(source.function) or "")
        self.place, self.digest = f"{source.file}, line {source.tree.lineno}", digest

    @property
    def signature(self) -> str:
        return self.digest

    def rule(self, role: str) -> Callable | None:
        return self._dtypes if role == "dtype" else super().rule(role)

    def _dtypes(self, params: Params, ins: list[str | None], outs: list[str | None]) -> tuple[list, list]:
        found = same_dtype(params, ins, outs)
        dtype = found[1][0]
        if dtype is not None and "float" not in dtype:
            raise MXNetError(f"operator {self.name} computes with floats, and its inputs are {dtype}; expected "
                             "float16, bfloat16, float32 or float64 (cast them)")
        return found


def define(name: str, function: Callable[..., Any], gradient: Callable[..., Any] | None) -> Operator:
    """The operator `name` that computes `function` for each element, which is known from now on.

    Raises MXNetError that quotes the user's line for what is no function of numbers, and for a name that is taken.
    """
    try:
        return _defined(name, function, gradient)
    except RecursionError:
        raise MXNetError(f"operator {name}: its function is nested too deeply for Python's recursion limit; expected "
                         "fewer `elif` in a row or operators in an expression, or a loop over a tuple") from None


def _defined(name: str, function: Callable[..., Any], gradient: Callable[..., Any] | None) -> Operator:
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise MXNetError(f"operator {name!r}: expected the name of a function, as 'soft_swish'")
    source = sources.read(name, "function", function)
    if not source.inputs:
        raise source.error("it has no inputs; expected positional parameters, as f(x, *, slope=0.1)")
    check(source)
    params = {key: _parameter(source, key) for key in source.keywords}
    for key in (*source.inputs, *params):
        if key in TAKEN:
            raise source.error(f"an argument is called {key}, which means something else to operators; expected "
                               "another name")
    types = _types(params)
    digest = _digest(source, types)
    made = [_function(source, f"{name}_{digest}", [*[float] * len(source.inputs), *types.values()], 0)[0]]
    derivatives: tuple[str, ...] = ()
    if gradient is not None:
        slopes = _gradient(source, gradient, types, len(made[0].arguments))
        derivatives = tuple(f"{each.name}({', '.join(arguments)})" for each, arguments in slopes)
        made += [each for each, _ in slopes]
        digest = _digest(source, types, [each.name for each, _ in slopes])
    forward = made[0]
    made[0] = ScalarFunction(forward.name, forward.count, forward.lines, forward.result, forward.source, None,
                             forward.kinds, derivatives, _no_gradient(source))
    _compile(made)
    for each in made:
        functions.add(each)
    names = ", ".join([*source.inputs, *params])
    operator = ElementwiseOperator(source, params, digest, f"{forward.name}({names})")
    table.define(operator, function, digest)
    return operator


def _types(params: dict[str, ParamType]) -> dict[str, type]:
    by_base = {base: kind for kind, base in BASES.items()}
    return {key: by_base[kind.base] for key, kind in params.items()}


def _digest(source: FunctionSource, types: dict[str, type], more: Sequence[str] = ()) -> str:
    text = repr((source.digest, [(key, kind.__name__) for key, kind in types.items()], *more))
    return hashlib.sha256(text.encode()).hexdigest()[:32 if more else 8]


def _parameter(source: FunctionSource, key: str) -> ParamType:
    """The type of a keyword-only parameter: what it is annotated with, else that of its default, else float."""
    argument = next(a for a in source.tree.args.kwonlyargs if a.arg == key)
    default = source.keywords[key]
    text = ast.unparse(argument.annotation).strip("'") if argument.annotation is not None else ""
    if text:
        kind: Any = {k.__name__: k for k in BASES}.get(text)
    else:
        kind = float if default is inspect.Parameter.empty else type(default)
    if kind not in BASES:
        said = f"annotated with {text}" if text else f"{default!r} by default"
        raise source.error(f"the parameter {key} is {said}; expected float, int or bool", argument)
    plain = ParamType(BASES[kind])
    if default is inspect.Parameter.empty:
        return plain
    try:
        return ParamType(plain.base, default=plain.convert(default))
    except MXNetError as error:
        raise source.error(f"the default of {key}: {error}", argument) from None


def _function(source: FunctionSource, name: str, kinds: Sequence[type], outputs: int) -> list[ScalarFunction]:
    """What a function computes, one record for each number that it gives."""
    count = len(kinds)
    try:
        formula = read_formula(source, kinds, outputs)
    except NotFormula:
        check_bound(source)
        parts: list[tuple[int, int] | None] = [(i, outputs) for i in range(outputs)]
        return [ScalarFunction(f"{name}_{i}" if outputs else name, count, source=source, part=part, kinds=tuple(kinds))
                for i, part in enumerate(parts or [None])]
    return [ScalarFunction(f"{name}_{i}" if outputs else name, count, formula.lines, result)
            for i, result in enumerate(formula.results)]


def _gradient(source: FunctionSource, gradient: Callable[..., Any], types: dict[str, type],
              count: int) -> list[tuple[ScalarFunction, list[str]]]:
    """The derivative by each input, and which of the function's arguments it takes."""
    found = sources.read(source.operator, "gradient", gradient)
    if len(found.inputs) != len(source.inputs):
        raise found.error(f"it has {len(found.inputs)} inputs; expected those of the function, "
                          f"{', '.join(source.inputs)}")
    unknown = [key for key in found.keywords if key not in types]
    if unknown:
        raise found.error(f"the function has no parameter {unknown[0]}; expected "
                          f"{', '.join(types) or 'no parameters'}")
    outputs = len(source.inputs) if len(source.inputs) > 1 else 0
    check(found, outputs)
    own = {key: types[key] for key in found.keywords}
    kinds = [*[float] * len(found.inputs), *own.values()]
    made = _function(found, f"{source.operator}_gradient_{_digest(found, own)}", kinds, outputs)
    places = [*range(len(found.inputs)), *(len(source.inputs) + list(types).index(key) for key in own)]
    return [(each, [f"a{i}" for i in places]) for each in made]


def _no_gradient(source: FunctionSource) -> str:
    return (f"operator {source.operator} ({source.file}, line {source.tree.lineno}) is no plain formula, so it has no "
            "gradient by itself: give it one, @mx.operator.elementwise(..., gradient=FUNCTION)")


def _compile(made: Sequence[ScalarFunction]) -> None:
    """Compile what Numba has to compile, or find it in the cache, so that errors come now."""
    native = [each for each in made if each.is_native]
    if native:
        target = targets.host().target()
        for each in native:
            target.function_text(each, "float32")
