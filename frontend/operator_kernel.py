"""`mx.operator.kernel`: operators written as loops over whole arrays, which become native kernels."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., None])


def kernel(name: str, shapes: Callable[..., Any] | None = None, dtypes: Callable[..., Any] | None = None,
           gradient: Callable[..., None] | None = None) -> Callable[[Function], Function]:
    """A decorator that makes a function over whole arrays the operator `name`: `mx.nd.NAME` and `mx.sym.NAME`.

    The function's positional parameters are arrays: inputs, which it reads, then outputs, which it writes and which
    are zeros when it starts. Its keyword-only parameters are numbers, and parameters of the operator. It is compiled by
    Numba, so it has loops, branches, numbers, and functions of math and NumPy on these; every index is checked.

    shapes: a function of the inputs' shapes (and of the operator's parameters that it names behind a `*`) that gives
    the output's shape, or a list of shapes for several; as many parameters as it has are inputs. None: there is one
    output, of the first input's shape. dtypes: a function of the inputs' dtypes that gives the output's, or a list;
    None: all have the first input's. gradient: a function over whole arrays whose parameters are found by name: inputs,
    outputs and grad_OUTPUT, which it reads, and grad_INPUT, which it writes. Inputs whose gradient it does not name
    get none.

    The same function defined again, as by a notebook's cell that runs again, takes its operator's place, with a warning
    where it has changed; graphs that were made before keep the one that they have.

    Raises MXNetError that quotes the line for a name that is taken or no identifier, for a function that cannot be
    compiled, and for parameters that do not fit each other; where it depends on ranks and dtypes, when the operator is
    first compiled for them. What the function raises when it runs, and an index that is out of bounds, is an MXNetError
    where the result is waited for.

    >>> @mx.operator.kernel("pairwise", shapes=lambda a, b: (a[0], b[0]))
    ... def pairwise(a, b, out, *, power=2.0):
    ...     for i in range(a.shape[0]):
    ...         for j in range(b.shape[0]):
    ...             for k in range(a.shape[1]):
    ...                 out[i, j] += abs(a[i, k] - b[j, k]) ** power
    """
    if not isinstance(name, str):
        from mxc.compiler.error import MXNetError

        raise MXNetError(f"mx.operator.kernel is given {name!r}; expected the operator's name, as in "
                         '@mx.operator.kernel("pairwise")')

    def keep(function: Function) -> Function:
        from mxc import operator_calls
        from mxc.runtime import array_operator  # only now: most programs define no operators

        operator_calls.check_free(name)
        array_operator.define(name, function, shapes, dtypes, gradient)
        operator_calls.forget(name)
        return function

    return keep
