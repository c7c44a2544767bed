"""What the operator functions of `mx.sym` and `mx.nd` share: names, arguments by position, signatures, namespaces,
methods."""
from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

from mxc.base import _Null
from mxc.compiler.error import ArgumentTypeError, MXNetError, nearest
from mxc.compiler.ops import table
from mxc.compiler.ops.operator import Operator

Lookup = Callable[[str, str], Any]  # the function of a name in a namespace ("" for the module itself)

# The operators that are methods of both symbols and arrays; the arguments are the operator's own after the first. Which
# are methods is a fact of MXNet's classes, not of the operators. It is here and not in ops.yaml because the classes are
# made with it, and a program that runs an artifact would read the whole table for it (137 KB, 8 ms on an AMD EPYC).
METHODS = (
    "abs", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "argmax", "argmax_channel", "argmin",
    "argsort", "broadcast_axes", "cbrt", "ceil", "clip", "cos", "cosh", "degrees", "depth_to_space", "exp", "expm1",
    "fix", "flip", "floor", "log", "log10", "log1p", "log2", "log_softmax", "max", "mean", "min", "nanprod", "nansum",
    "norm", "one_hot", "ones_like", "pad", "pick", "prod", "radians", "rcbrt", "reciprocal", "relu", "repeat",
    "reshape_like", "rint", "round", "rsqrt", "shape_array", "sigmoid", "sign", "sin", "sinh", "size_array", "slice",
    "slice_axis", "slice_like", "softmax", "softmin", "sort", "space_to_depth", "split", "sqrt", "square", "sum",
    "swapaxes", "take", "tan", "tanh", "tile", "topk", "transpose", "trunc", "zeros_like",
)


def add_methods(owner: type, names: Sequence[str], title: str, text: str, find: Callable[[str], Any]) -> None:
    """Give `owner` the methods `names`, each the operator function that `find` gives, with the object first.

    title: of the class that people see. text: the docstring, with {} for the name.
    """

    def method_of(name: str) -> Callable[..., Any]:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            return find(name)(self, *args, **kwargs)

        method.__name__, method.__qualname__ = name, f"{title}.{name}"
        method.__doc__ = text.format(name)
        return method

    for name in names:
        setattr(owner, name, method_of(name))


def operator_name(name: str, space: str = "") -> str:
    """The operator whose function is `name` in a namespace: `box_nms` in `contrib` is `_contrib_box_nms`."""
    return f"_{space}_{name}" if space else name


def public_names(space: str = "") -> list[str]:
    """The operators that a namespace shows; the module itself those whose name does not begin with an underscore."""
    if not space:
        return [name for name in table.names() if not name.startswith("_")]
    prefix = operator_name("", space)
    return [name.removeprefix(prefix) for name in table.names() if name.startswith(prefix)]


def is_function(name: str, space: str = "") -> bool:
    """Whether a namespace has a function of that name; operators `_mxc_` are for passes alone."""
    return not name.startswith(("__", "_mxc_")) and table.has(operator_name(name, space))


def no_such(module: str, name: str, space: str = "") -> str:
    """The text of an AttributeError: what the module does not have, and what is meant perhaps."""
    where = f"module '{module}{'.' if space else ''}{space}' has no attribute {name!r}"
    if name.startswith("__"):
        return where
    known = public_names(space) if space else table.names()
    return f"{where}: operator {operator_name(name, space)!r} is not known{nearest(name, known)}"


def namespace(module: str, space: str, lookup: Lookup) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of the module MODULE.SPACE, whose functions are the operators `_SPACE_NAME`."""
    own = sys.modules[f"{module}.{space}"]

    def get(name: str) -> Any:
        return lookup(name, space)

    def names() -> list[str]:
        return sorted({*vars(own).get("__all__", ()), *public_names(space)})

    return get, names


_MODULES = {"mxc.ndarray": "mx.nd", "mxc.symbol": "mx.sym"}


def check_free(name: str) -> None:
    """Raises MXNetError where `mx.nd` or `mx.sym` has something of that name which is no operator's function."""
    for module, short in _MODULES.items():
        if not table.has(name) and name in dir(importlib.import_module(module)):
            raise MXNetError(f"operator {name}: there is {short}.{name} already; expected another name")


def forget(name: str) -> None:
    """Have all that is remembered of an operator's name made anew: another operator may have had it."""
    importlib.import_module("mxc.runtime.specializations").forget(name)
    for module in _MODULES:
        vars(importlib.import_module(module)).pop(name, None)
        importlib.import_module(f"{module}.functions").find.cache_clear()


def inputs_of(op: Operator) -> list[str]:
    """The names of an operator's inputs and auxiliary states, in the order of its function's parameters."""
    return op.listed_inputs


def by_name(function: str, order: Sequence[str], args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Add the arguments given by position to those given by name. Raises TypeError for too many, or one given twice."""
    if len(args) > len(order):
        raise ArgumentTypeError(f"{function}() takes at most {len(order)} arguments, {len(args)} given")
    for key, value in zip(order, args, strict=False):
        if key in kwargs:
            raise ArgumentTypeError(f"{function}() got multiple values for argument {key!r}")
        kwargs[key] = value


def set_fixed_signature(function: Callable[..., Any], op: Operator, last: Sequence[str]) -> None:
    """Inputs, then parameters, then `last`, then **kwargs: what help shows."""
    defaults = [*((key, None) for key in inputs_of(op)), *((key, _Null) for key in op.params),
                *((key, None) for key in last)]
    _set_signature(function, [inspect.Parameter(key, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
                              for key, default in defaults])


def set_variadic_signature(function: Callable[..., Any]) -> None:
    """`*data, **kwargs`."""
    _set_signature(function, [inspect.Parameter("data", inspect.Parameter.VAR_POSITIONAL)])


def _set_signature(function: Callable[..., Any], parameters: list[inspect.Parameter]) -> None:
    signature = inspect.Signature([*parameters, inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)])
    function.__signature__ = signature  # type: ignore[attr-defined]
