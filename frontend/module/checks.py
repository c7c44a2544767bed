"""What modules check before they work: that they are ready, and that names and shapes of data go together."""
from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from mxc.compiler.error import ArgumentError, ArgumentTypeError, MXNetError, nearest
from mxc.io import DataDesc


class ModuleStateError(MXNetError, AssertionError):
    """A module is not ready for what it was asked; an AssertionError too, as programs written for MXNet expect."""


PARAMETER_ENDS = ("_weight", "_bias", "_gamma", "_beta")


def require(condition: Any, text: str) -> None:
    """Raise ModuleStateError with that text unless the condition holds."""
    if not condition:
        raise ModuleStateError(text)


def check_input_names(symbol: Any, names: Sequence[str], typename: str, throw: bool) -> None:
    """Every name must be an argument of the symbol. Otherwise raise ArgumentError, or with throw=False warn."""
    arguments = symbol.list_arguments()
    for name in names:
        if name in arguments:
            continue
        inputs = [one for one in arguments if not one.endswith(PARAMETER_ENDS)]
        text = (f"You created Module with Module(..., {typename}_names={list(names)}) but input with name {name!r} is "
                f"not found in symbol.list_arguments(); inputs that are no parameters: {', '.join(inputs) or 'none'}"
                f"{nearest(name, arguments)}")
        if throw:
            raise ArgumentError(text)
        warnings.warn(text, stacklevel=4)


def check_names_match(data_names: Sequence[str], data_shapes: Sequence[DataDesc], name: str, throw: bool) -> None:
    """The names of what an iterator provides must be those that the module has, in any order. Otherwise raise
    ArgumentError, or with throw=False warn. name: "data" or "label"."""
    if sorted(data_names) != sorted(desc.name for desc in data_shapes):
        text = (f"Data provided by {name}_shapes don't match names specified by {name}_names "
                f"({[*data_shapes]} vs. {list(data_names)})")
        if throw:
            raise ArgumentError(text)
        warnings.warn(text, stacklevel=4)


def parse_data_desc(data_names: Sequence[str], label_names: Sequence[str], data_shapes: Any,
                    label_shapes: Any) -> tuple[list[DataDesc], list[DataDesc] | None]:
    """DataDescs of what is given as those or as tuples (name, shape, ...), checked against the names.

    Raises TypeError for what is neither."""
    data = _descriptions(data_shapes, "data")
    check_names_match(data_names, data, "data", True)
    if label_shapes is None:
        check_names_match(label_names, [], "label", False)
        return data, None
    labels = _descriptions(label_shapes, "label")
    check_names_match(label_names, labels, "label", False)
    return data, labels


def _descriptions(given: Any, kind: str) -> list[DataDesc]:
    expected = f"{kind}_shapes must be a list of pairs (name, shape), such as [({kind!r}, (32, 10))], got"
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ArgumentTypeError(f"{expected} {given!r}")
    found = []
    for one in given:
        is_pair = isinstance(one, (tuple, list)) and len(one) >= 2 and isinstance(one[0], str)
        if not is_pair or isinstance(one[1], str) or not isinstance(one[1], Iterable):
            raise ArgumentTypeError(f"{expected} {one!r} in it")
        found.append(one if isinstance(one, DataDesc) else DataDesc(*one))
    return found
