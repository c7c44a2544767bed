"""`mx.operator.elementwise`: an operator of the program's own, written as a Python function of numbers."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def elementwise(name: str, gradient: Callable[..., Any] | None = None) -> Callable[[F], F]:
    """A decorator that makes a function of numbers the operator `name`: `mx.nd.NAME` and `mx.sym.NAME`.

        @mx.operator.elementwise("soft_swish")
        def soft_swish(x, *, beta=1.0):
            if x < -20:
                return 0.0
            return x / (1 + math.exp(-beta * x))

    The function's positional parameters are inputs, arrays of one shape; keyword-only ones are parameters of the
    operator: float, int or bool, as their annotation or default says. It is called for each element. Numbers are as
    NumPy 2 has them: inputs and parameters are scalars of the arrays' dtype (float16 is computed in float32 and rounded
    at the end), and Python's numbers beside them take it. Nothing raises an error: what Python's `math` refuses is inf
    or NaN. What the function refers to outside of itself, numbers and other functions, stays as it is now.

    A plain formula, with branches and with loops over known numbers, is differentiated by itself. Anything else that
    Numba compiles (`while`, loops over what depends on the data) needs `gradient` where gradients are asked for: a
    function of the same arguments, with or without the parameters, that returns the partial derivative by the input, or
    a tuple of one for each input.

    The operator fuses with its neighbours as others do. The function itself is returned unchanged. A graph is saved
    with the operator's name and parameters, and loads where the operator is registered.

    Raises MXNetError that quotes a line of the function where it is no function of numbers or does not compile, and
    when the name is taken.
    """
    if callable(name):
        from mxc.compiler.error import MXNetError

        called = getattr(name, "__name__", "function")
        raise MXNetError(f"mx.operator.elementwise got the function {called} where a name is expected: write "
                         f'@mx.operator.elementwise("{called}")')

    def define(function: F) -> F:
        from mxc import operator_calls
        from mxc.runtime import elementwise as runtime

        operator_calls.check_free(name)
        runtime.define(name, function, gradient)
        operator_calls.forget(name)
        return function

    return define
