"""The operator functions of `mx.sym`, made from the operator table when they are first asked for."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mxc import operator_calls
from mxc.base import _Null
from mxc.compiler.error import ArgumentTypeError
from mxc.compiler.ops import table
from mxc.compiler.ops.operator import Operator
from mxc.operator_calls import public_names
from mxc.operator_docs import describe
from mxc.symbol import construct
from mxc.symbol.arithmetic import Arithmetic

__all__ = ["find", "lookup", "namespace", "public_names"]


@functools.cache
def find(name: str, space: str = "") -> Callable[..., Any]:
    """The function for the operator of that name or alias, in a namespace: find("box_nms", "contrib").

    Raises UnsupportedError with the nearest name.
    """
    op = table.get(operator_calls.operator_name(name, space))
    function = _variadic(op, name) if op.takes_any_number else _fixed(op, name)
    function.__name__ = function.__qualname__ = name
    function.__module__ = f"mxc.symbol.{space}" if space else "mxc.symbol"
    function.__doc__ = describe(op, name, "Symbol")
    return function


def lookup(name: str, space: str = "") -> Callable[..., Any]:
    """The function for `name`. Raises AttributeError, as a module's `__getattr__` must, when there is none."""
    if not operator_calls.is_function(name, space):
        raise AttributeError(operator_calls.no_such("mxc.symbol", name, space))
    return find(name, space)


def namespace(space: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of the module `mx.sym.SPACE`, whose functions are the operators `_SPACE_NAME`."""
    return operator_calls.namespace("mxc.symbol", space, lookup)


def _fixed(op: Operator, name: str) -> Callable[..., Any]:
    """The function of an operator whose inputs have names: inputs, then parameters, by position or by name."""
    inputs = operator_calls.inputs_of(op)
    order = [*inputs, *op.params, "name", "attr", "out"]
    hint = name.lower()

    def function(*args: Any, **kwargs: Any) -> Any:
        operator_calls.by_name(name, order, args, kwargs)
        own = {key: kwargs.pop(key, None) for key in ("name", "attr", "out")}
        given = {key: kwargs.pop(key) for key in inputs if key in kwargs}
        symbols = {key: _symbol(key, value) for key, value in given.items() if value is not None}
        symbols.update(_symbols_of(kwargs))
        return construct.apply(op, hint, symbols, kwargs, own["name"], own["attr"])

    operator_calls.set_fixed_signature(function, op, ("name", "attr", "out"))
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
        if op.variadic and kwargs.get(op.variadic, _Null) is _Null:
            kwargs[op.variadic] = len(args) + len(symbols)
        return construct.apply(op, hint, symbols or args, kwargs, own["name"], own["attr"])

    operator_calls.set_variadic_signature(function)
    return function


def _symbol(key: str, value: object) -> Any:
    if not isinstance(value, Arithmetic):
        raise ArgumentTypeError(f"Argument {key} must be Symbol instances, but got {value}")
    return value


def _symbols_of(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Take the symbols out of keyword arguments, and return them."""
    return {key: kwargs.pop(key) for key in list(kwargs) if isinstance(kwargs[key], Arithmetic)}
