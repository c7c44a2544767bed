"""The operator functions of `mx.nd`, made from the operator table when they are first asked for."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mxc import operator_calls
from mxc.base import _Null
from mxc.compiler.error import ArgumentTypeError
from mxc.compiler.ops import table
from mxc.compiler.ops.operator import Operator
from mxc.ndarray.ndarray import NDArray, apply
from mxc.operator_docs import describe
from mxc.runtime import invoke, update_calls
from mxc.runtime.context import context_of

Result = NDArray | list[NDArray]


@functools.cache
def find(name: str, space: str = "") -> Callable[..., Result]:
    """The function for the operator of that name or alias, in a namespace: find("box_nms", "contrib").

    It takes the inputs, the parameters, `out` (where results are written) and `name` (only symbols have one), by
    position or by name, and gives an array, or the list of them where the operator shows several.
    Raises UnsupportedError with the nearest name.
    """
    op = table.get(operator_calls.operator_name(name, space))
    function = _variadic(op, name) if op.takes_any_number else _fixed(op, name)
    function.__name__ = function.__qualname__ = name
    function.__module__ = f"mxc.ndarray.{space}" if space else "mxc.ndarray"
    function.__doc__ = describe(op, name, "NDArray")
    return function


def lookup(name: str, space: str = "") -> Callable[..., Result]:
    """The function for `name`. Raises AttributeError, as a module's `__getattr__` must, when there is none."""
    if not operator_calls.is_function(name, space):
        raise AttributeError(operator_calls.no_such("mxc.ndarray", name, space))
    return find(name, space)


def namespace(space: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of the module `mx.nd.SPACE`, whose functions are the operators `_SPACE_NAME`."""
    return operator_calls.namespace("mxc.ndarray", space, lookup)


def _fixed(op: Operator, name: str) -> Callable[..., Result]:
    """The function of an operator whose inputs have names."""
    inputs = operator_calls.inputs_of(op)
    order = [*inputs, *op.params, "out", "name"]

    def function(*args: Any, **kwargs: Any) -> Result:
        operator_calls.by_name(name, order, args, kwargs)
        arrays = []
        for key in inputs:
            value = kwargs.pop(key, None)
            if value is not None:
                if not isinstance(value, NDArray):
                    raise ArgumentTypeError(f"{name}: argument {key} must be an NDArray, got {_shown(value)}")
                arrays.append(value)
        return _call(op, arrays, kwargs)

    operator_calls.set_fixed_signature(function, op, ("out", "name"))
    return function


def _variadic(op: Operator, name: str) -> Callable[..., Result]:
    """The function of an operator that takes any number of arrays, all by position."""

    def function(*args: Any, **kwargs: Any) -> Result:
        for value in args:
            if not isinstance(value, NDArray):
                raise ArgumentTypeError(f"{name}: positional arguments must be NDArrays, got {_shown(value)}")
        kwargs.pop(op.variadic or "", None)  # The number of arrays follows from the arrays themselves.
        return _call(op, list(args), kwargs)

    operator_calls.set_variadic_signature(function)
    return function


def _call(op: Operator, arrays: list[NDArray], kwargs: dict[str, Any]) -> Result:
    """Apply an operator. kwargs: the keyword arguments that are no inputs: `out`, `name`, `ctx` and parameters."""
    out, ctx = kwargs.pop("out", None), kwargs.pop("ctx", None)
    kwargs.pop("name", None)
    params = {key: value for key, value in kwargs.items() if value is not _Null}
    return apply(op.name, arrays, params, out, None if ctx is None else context_of(ctx),
                 update_calls.update if op.in_place else invoke.invoke)


def _shown(value: object) -> str:
    text = repr(value)
    return f"{text if len(text) < 60 else '...'} of {type(value)}"
