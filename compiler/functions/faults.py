"""How a kernel that is a program's own function reports an exception, and the error that people get of it.

A kernel has no exceptions: it writes an integer to its status. That is 0, or the number of the statement that raised
(functions/arrays.py) with the kind of the exception in the bits above it. The lines of the statements are part of the
plan.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mxc.compiler.error import MXNetError

SHIFT = 32  # bits of a status that hold the statement's number; the kind lies above them
INDEX, OTHER = 1, 2
KINDS = ("", "an index is out of bounds", "an operation failed: parts of arrays do not fit each other, or "
         "one has no elements", "AssertionError", "IndexError", "KeyError",
         "OverflowError", "ZeroDivisionError", "ArithmeticError", "RuntimeError", "TypeError", "ValueError",
         "NotImplementedError", "MemoryError", "Exception")


class Line(NamedTuple):
    """A statement of a function: the file, the line in it, and the line's text."""

    file: str
    number: int
    text: str


class Faults(NamedTuple):
    """What a kernel's errors are told with. operator, role: as in FunctionSource. arrays: names of the kernel's arrays.
    lines: the line of each statement; that of statement n is lines[n - 1]."""

    operator: str
    role: str
    arrays: tuple[str, ...]
    lines: tuple[Line, ...]

    def error(self, status: int, shapes: Sequence[tuple[int, ...]]) -> MXNetError:
        """The error of a status that is not 0. shapes: of the arrays."""
        kind, number = divmod(status, 1 << SHIFT)
        text = KINDS[kind] if kind < len(KINDS) else KINDS[OTHER]
        if kind == INDEX:
            text += f" ({', '.join(f'{n} has the shape {s}' for n, s in zip(self.arrays, shapes, strict=False))})"
        elif kind != OTHER:
            text = f"it raised {text}"
        return MXNetError(self.text(number, text))

    def text(self, number: int, message: str) -> str:
        """A message about the statement of that number, which is quoted."""
        line = self.lines[number - 1] if 0 < number <= len(self.lines) else self.lines[0]
        return (f"operator {self.operator}: its {self.role} ({line.file}, line {line.number}): {message}\n"
                f"    {line.text}")


def kind_of(error: type[BaseException]) -> int:
    """The kind, as a status has it, of an exception that a function raises."""
    return next((KINDS.index(c.__name__) for c in error.__mro__ if c.__name__ in KINDS), OTHER)
