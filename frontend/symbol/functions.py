"""The operator functions of `mx.sym`, made from the operator table when they are first asked for."""
from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

from mxc.base import _Null
from mxc.compiler.error import ArgumentTypeError, nearest
from mxc.compiler.ops import table
from mxc.compiler.ops.table import Operator
from mxc.operator_docs import describe
from mxc.symbol import construct
from mxc.symbol.arithmetic import Arithmetic


@functools.cache
def find(name: str, space: str = "") -> Callable[..., Any]:
    """The function for the operator of that name or alias, in a namespace: find("box_nms", "contrib").

    Raises UnsupportedError with the nearest name.
    """
    op = table.get(_operator_name(name, space))
    function = _variadic(op, name) if op.variadic else _fixed(op, name)
    function.__name__ = function.__qualname__ = name
    function.__module__ = f"mxc.symbol.{space}" if space else "mxc.symbol"
    function.__doc__ = describe(op, name, "Symbol")
    return function


def public_names(space: str = "") -> list[str]:
    """The operators that a namespace shows; mx.sym itself those whose name does not begin with an underscore."""
    if not space:
        return [name for name in table.names() if not name.startswith("_")]
    prefix = _operator_name("", space)
    return [name.removeprefix(prefix) for name in table.names() if name.startswith(prefix)]


def namespace(space: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of the module `mx.sym.SPACE`, whose functions are the operators `_SPACE_NAME`."""
    module = sys.modules[f"mxc.symbol.{space}"]

    def get(name: str) -> Any:
        return lookup(name, space)

    def names() -> list[str]:
        return sorted({*vars(module).get("__all__", ()), *public_names(space)})

    return get, names


def _operator_name(name: str, space: str) -> str:
    return f"_{space}_{name}" if space else name


def _fixed(op: Operator, name: str) -> Callable[..., Any]:
    """The function of an operator whose inputs have names: inputs, then parameters, by position or by name."""
    inputs = [*(spec.name for spec in op.inputs), *op.aux]
    order = [*inputs, *op.params]
    hint = name.lower()

    def function(*args: Any, **kwargs: Any) -> Any:
        for key, value in zip([*order, "name", "attr", "out"], args, strict=False):
            if key in kwargs:
                raise ArgumentTypeError(f"{name}() got multiple values for argument {key!r}")
            kwargs[key] = value
        if len(args) > len(order) + 3:
            raise ArgumentTypeError(f"{name}() takes at most {len(order) + 3} arguments, {len(args)} given")
        own = {key: kwargs.pop(key, None) for key in ("name", "attr", "out")}
        given = {key: kwargs.pop(key) for key in inputs if key in kwargs}
        symbols = {key: _symbol(key, value) for key, value in given.items() if value is not None}
        symbols.update(_symbols_of(kwargs))
        return construct.apply(op, hint, symbols, kwargs, own["name"], own["attr"])

    _set_signature(function, [inspect.Parameter(key, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
                              for key, default in [*((k, None) for k in inputs), *((k, _Null) for k in op.params),
                                                   ("name", None), ("attr", None), ("out", None)]])
    return function


def _variadic(op: Operator, name: str) -> Callable[..., Any]:
    """The function of an operator that takes any number of symbols: those by position, the rest by name."""
    hint = name.lower()

    def function(*args: Any, **kwargs: Any) -> Any:
        own = {key: kwargs.pop(key, None) for key in ("name", "attr", "out")}
        for value in args:
            if not isinstance(value, Arithmetic):
                raise ArgumentTypeError(f"Positional arguments must be Symbol instances, but got {value}")
        symbols = _symbols_of(kwargs)
        if args and symbols:
            raise ArgumentTypeError(f"{name}() accepts symbols either as positional or keyword arguments, not both")
        if kwargs.get(op.variadic, _Null) is _Null:
            kwargs[op.variadic] = len(args) + len(symbols)
        return construct.apply(op, hint, symbols or args, kwargs, own["name"], own["attr"])

    _set_signature(function, [inspect.Parameter("data", inspect.Parameter.VAR_POSITIONAL)])
    return function


def _symbol(key: str, value: object) -> Any:
    if not isinstance(value, Arithmetic):
        raise ArgumentTypeError(f"Argument {key} must be Symbol instances, but got {value}")
    return value


def _symbols_of(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Take the symbols out of keyword arguments."""
    return {key: kwargs.pop(key) for key in list(kwargs) if isinstance(kwargs[key], Arithmetic)}


def _set_signature(function: Callable[..., Any], parameters: list[inspect.Parameter]) -> None:
    signature = inspect.Signature([*parameters, inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)])
    function.__signature__ = signature  # type: ignore[attr-defined]


def lookup(name: str, space: str = "") -> Callable[..., Any]:
    """The function for `name`, or AttributeError: what a module's `__getattr__` needs."""
    if name.startswith(("__", "_mxc_")) or not table.has(_operator_name(name, space)):  # _mxc_: only passes make those
        raise AttributeError(_no_such(name, space))
    return find(name, space)


def _no_such(name: str, space: str) -> str:
    where = f"module 'mxc.symbol{'.' if space else ''}{space}' has no attribute {name!r}"
    if name.startswith("__"):
        return where
    known = public_names(space) if space else table.names()
    return f"{where}: operator {_operator_name(name, space)!r} is not known{nearest(name, known)}"
