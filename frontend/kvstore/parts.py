"""How values are spread over servers: large arrays in parts of whole rows, each part on one server."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mxc.compiler.error import SettingError
from mxc.compiler.system import env
from mxc.optimizer.base import SteppingOptimizer
from mxc.optimizer.descent import LARS

Key = int | str
BOUND = "MXNET_KVSTORE_BIGARRAY_BOUND"
# A message costs Ray 4 to 8 ms of processor time in all processes together whatever is in it (with its objects; in a
# machine of 2 cores), so small parts travel together: a message is sent once LEAST bytes are there, or nothing more is
# just being computed, and has MOST bytes, or one array, at most.
LEAST, MOST = 4 << 20, 32 << 20
INLINE = 100 << 10  # bytes: what is smaller Ray sends with a message itself, and not by its object store


class Part(NamedTuple):
    """The rows `begin` to `end` of a value, on a server. Rows are along the first axis; a number is one row."""

    key: Key
    number: int
    server: int
    begin: int
    end: int

    @property
    def name(self) -> tuple[Key, int]:
        """What servers know it by."""
        return self.key, self.number


class Layout(NamedTuple):
    """What all workers know of a value. is_whole: whether it is one part because the optimizer needs whole arrays."""

    shape: tuple[int, ...]
    dtype: str
    parts: tuple[Part, ...]
    is_whole: bool

    def row_bytes(self) -> int:
        """The bytes of a row."""
        return math.prod(self.shape[1:]) * np.dtype(self.dtype).itemsize


def bound() -> int:
    """Elements of the largest part, where that is more than one row. Raises SettingError where the environment names no
    number above 0."""
    text = env.text(BOUND, "1000000").strip()
    if not text.isdecimal() or int(text) == 0:
        raise SettingError(f"{BOUND} must be a whole number above 0, got {text!r}")
    return int(text)


class Spread:
    """Chooses servers for parts: the one that has the fewest bytes so far. What the parts are does not depend on how
    many servers there are, so neither does anything that is computed of them."""

    def __init__(self, servers: int):
        self.bytes = [0] * servers

    def layout(self, key: Key, shape: Sequence[int], dtype: str, is_whole: bool) -> Layout:
        """A new value's layout."""
        rows, inner = (shape[0] if shape else 1), math.prod(shape[1:])
        itemsize = np.dtype(dtype).itemsize
        count = 1 if is_whole else max(1, -(-rows // max(1, bound() // max(1, inner))))
        ends = [rows * i // count for i in range(count + 1)]
        parts = []
        for number in range(count):
            server = self.bytes.index(min(self.bytes))
            self.bytes[server] += (ends[number + 1] - ends[number]) * inner * itemsize
            parts.append(Part(key, number, server, ends[number], ends[number + 1]))
        return Layout(tuple(shape), dtype, tuple(parts), is_whole)


def needs_whole(optimizer: Any) -> bool:
    """Whether an optimizer may look at more than one element at a time, as for a norm."""
    return not isinstance(optimizer, SteppingOptimizer) or isinstance(optimizer, LARS)


def messages(parts: Sequence[Part]) -> dict[int, list[Part]]:
    """The parts of each server."""
    found: dict[int, list[Part]] = {}
    for part in parts:
        found.setdefault(part.server, []).append(part)
    return found


Name = tuple[Key, int]
Round = tuple[Name, int]  # a part, and how often a worker has pushed it
