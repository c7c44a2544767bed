"""Arguments in lists of lists: as one flat list, and back."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mxc.ndarray import NDArray
from mxc.symbol import Symbol

# The structure of a value: 0 for an array or a symbol, -1 for None, a tuple of structures for a list or a tuple. As
# MXNet's, regrouping makes lists.
Form = int | tuple["Form", ...]


def flatten(values: Sequence[Any], what: str) -> tuple[list[Any], Form]:
    """The arrays, symbols and None's in nested lists, and the structure. what: "input" or "output", for messages.

    Raises ValueError for anything else.
    """
    flat: list[Any] = []

    def visit(value: Any) -> Form:
        if isinstance(value, Symbol) and len(value) > 1:
            flat.extend(value)
            return (0,) * len(value)
        if value is None or isinstance(value, (NDArray, Symbol)):
            flat.append(value)
            return -1 if value is None else 0
        if isinstance(value, (list, tuple)):
            return tuple([visit(each) for each in value])
        raise ValueError(f"an {what} of a hybridised block is an array or a symbol, or a list of these, got "
                         f"{type(value).__name__}")

    return flat, tuple([visit(value) for value in values])


def regroup(flat: Sequence[Any], form: Form) -> Any:
    """The nested lists of a structure."""
    rest = iter(flat)

    def build(form: Form) -> Any:
        return next(rest) if isinstance(form, int) else [build(each) for each in form]

    return build(form)


def leaves(values: Sequence[Any]) -> Iterator[Any]:
    """Everything in nested lists."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from leaves(value)
        else:
            yield value
