"""The arguments of iterators over files, which programs give as values or as their texts."""
from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mxc.compiler.error import ArgumentError, ArgumentTypeError

_REQUIRED = object()
_NAMES = ("data_name", "label_name")


class Options:
    """The arguments of an iterator by name, as `value(name, read, default)` takes them one by one."""

    def __init__(self, iterator: str, args: tuple, given: dict[str, Any]):
        self.iterator, self._given = iterator, dict(given)
        if args:
            raise ArgumentTypeError(f"{iterator} takes its arguments by name, as in {iterator}(batch_size=32), got "
                                    f"{', '.join(map(repr, args))}")
        self.names = {name: self._given.pop(name) for name in _NAMES if name in self._given}

    def value(self, name: str, read: Callable[[Any], Any], default: Any = _REQUIRED) -> Any:
        """One argument. Raises ValueError for one that is missing or not what `read` takes."""
        if name not in self._given:
            if default is _REQUIRED:
                raise ArgumentError(f"{self.iterator} needs the argument {name}")
            return default
        given = self._given.pop(name)
        try:
            return read(given)
        except (TypeError, ValueError, SyntaxError) as error:
            raise ArgumentError(f"{self.iterator}: {name} is {given!r}: {error}") from None

    def size(self, default: Any = _REQUIRED) -> int:
        """The batch size."""
        return self.value("batch_size", partial(to_whole, least=1), default)

    def dtype(self, *known: str) -> str:
        """One of these; the first by default."""
        def read(given: Any) -> str:
            return known[0] if given in (None, "None") else np.dtype(given).name

        found = self.value("dtype", read, known[0])
        if found not in known:
            raise ArgumentError(f"{self.iterator}: dtype {found} is not supported; expected {' or '.join(known)}")
        return found

    def end(self, *more: str) -> None:
        """Leave out arguments that have no meaning here, `more` among them, and warn of those that are not known."""
        for name in ("prefetch_buffer", "ctx", "preprocess_threads", "input_shape", *more):
            self._given.pop(name, None)
        if self._given:
            warnings.warn(f"{self.iterator} has no arguments {', '.join(self._given)}; they are passed over",
                          stacklevel=3)


def _literal(given: Any) -> Any:
    return ast.literal_eval(given) if isinstance(given, str) else given


def to_whole(given: Any, least: int = 0) -> int:
    """A whole number. Raises ValueError below `least`."""
    number = operator.index(_literal(given))
    if number < least:
        raise ValueError(f"expected a whole number from {least} on")
    return number


def to_flag(given: Any) -> bool:
    """True or False, also as text or number."""
    found = {"true": True, "false": False}.get(given.lower()) if isinstance(given, str) else None
    return bool(to_whole(given)) if found is None else found


def to_shape(given: Any) -> tuple[int, ...]:
    """Whole numbers from 1 on, one or several."""
    found = _literal(given)
    return tuple(to_whole(n, 1) for n in (found if isinstance(found, (tuple, list)) else (found,)))


def to_path(given: Any) -> str | None:
    """The name of a file, or None."""
    return None if given in (None, "", "NULL") else str(given)


def to_needed_path(given: Any) -> str:
    """The name of a file. Raises ValueError without one."""
    found = to_path(given)
    if found is None:
        raise ValueError("expected the name of a file")
    return found


def to_integer(given: Any) -> int:
    """A whole number of either sign."""
    return operator.index(_literal(given))


def to_real(given: Any) -> float:
    """A number."""
    return float(_literal(given))


def to_reals(given: Any) -> tuple[float, ...]:
    """Numbers, one or several."""
    found = _literal(given)
    return tuple(map(float, found if isinstance(found, (tuple, list)) else (found,)))


def part_of(options: Options) -> tuple[int, int]:
    """Which part is to be read, of how many. Raises ValueError for one that there is not."""
    parts, part = options.value("num_parts", partial(to_whole, least=1), 1), options.value("part_index", to_whole, 0)
    if part >= parts:
        raise ArgumentError(f"{options.iterator}: part_index is {part}; expected 0 to {parts - 1}, as there are "
                            f"{parts} parts")
    return part, parts
