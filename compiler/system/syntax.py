"""Python's own parser, for texts in the syntax of Python."""
from __future__ import annotations

import ast
import time
from typing import Any

TRIES = 100  # far more than needed: threads that parse all the time meet a few times in a row at most


def parse(text: str, mode: str = "exec") -> Any:
    """The syntax tree of `text`, as ast.parse gives it. Raises SyntaxError.

    CPython 3.11 counts how deep a tree is in one place for all threads. When another thread makes a tree in between it
    raises SystemError ("recursion depth mismatch"), though nothing is wrong with either: then the text is parsed again.
    """
    for _ in range(TRIES):
        try:
            return ast.parse(text, mode=mode)
        except SystemError:
            time.sleep(0)  # lets the other thread go on
    return ast.parse(text, mode=mode)
