"""What an operator takes, in the words in which MXNet tells it."""
from __future__ import annotations

from typing import NamedTuple

from mxc.compiler.error import UnsupportedError
from mxc.compiler.ops import table
from mxc.compiler.ops.operator import Operator
from mxc.compiler.ops.params import ParamType

INTERNAL = "_mxc_"  # with which the names of operators begin that only the compiler makes
_LISTS = {"add_n": "args", "khatri_rao": "args"}  # names of inputs whose number varies; of other operators: data
_UNCOUNTED = ("add_n", "khatri_rao")  # operators whose number of inputs is no parameter in MXNet
_INPUT = "NDArray-or-Symbol"
_WORDS = {"int": "int", "float": "float", "double": "double", "bool": "boolean", "str": "string",
          "shape": "Shape(tuple)", "bounds": "Shape(tuple)", "floats": "tuple of <float>",
          "doubles": "tuple of <double>"}


class OperatorArguments(NamedTuple):
    """How many arguments an operator takes, their names and their types."""

    narg: int
    names: list[str]
    types: list[str]


def operators() -> list[str]:
    """The names of all operators that programs can use, aliases and Custom included, sorted."""
    return sorted([*(name for name in table.names() if not name.startswith(INTERNAL)), "Custom"])


def arguments(op_name: str) -> OperatorArguments:
    """The arguments of an operator, inputs first. Raises UnsupportedError for one that is not there."""
    if op_name == "Custom":
        return OperatorArguments(2, ["data", "op_type"], [f"{_INPUT}[]", "string"])
    if op_name.startswith(INTERNAL):
        raise UnsupportedError(f"operator {op_name!r} is the compiler's own")
    op = table.get(op_name)
    inputs = [_LISTS.get(op.name, "data")] if op.counter else op.listed_inputs
    types = [_INPUT + "[]" * bool(op.counter)] * len(inputs)
    params = {name: kind for name, kind in op.params.items() if not _is_uncounted(op, name)}
    types += [_described(kind) for kind in params.values()]
    return OperatorArguments(len(types), [*inputs, *params], types)


def _is_uncounted(op: Operator, name: str) -> bool:
    return op.name in _UNCOUNTED and name == op.variadic


def _described(kind: ParamType) -> str:
    """A parameter's type and default, as "int, optional, default='1'" or "{'a', 'b'}, required"."""
    if kind.base in ("enum", "dtype"):
        choices = sorted([*kind.choices, *(["None"] if kind.optional and kind.base == "dtype" else [])])
        none = ["None"] if kind.optional and kind.base == "enum" else []
        text = "{" + ", ".join([*none, *(f"'{choice}'" for choice in choices)]) + "}"
        return f"{text}, required" if kind.required else f"{text},optional, default='{kind.default}'"
    text = _WORDS[kind.base]
    if kind.optional:
        text = f"{text.removesuffix('(tuple)')} or None"
    return f"{text}, required" if kind.required else f"{text}, optional, default={_default(kind)}"


def _default(kind: ParamType) -> str:
    value = kind.default
    if kind.base in ("int", "str"):
        return f"'{value}'"
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, tuple):
        return "[" + ",".join(f"{each:g}" if isinstance(each, float) else str(each) for each in value) + "]"
    if isinstance(value, float):
        return f"{value:.9g}" if kind.base == "float" else f"{value:.17g}"
    return str(value)
