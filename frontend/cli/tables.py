"""How commands print: JSON for programs, aligned text for pipes and files, a table with colours on a terminal."""
from __future__ import annotations

import json
import sys
from collections.abc import Collection, Sequence
from typing import Any

WORDS = 56  # letters that a table shows of a kernel's operators, at most


def kernel_words(operators: str) -> str:
    """A kernel's operators for a table: short names, cut where they are many."""
    words = operators.replace("_mxc_", "")
    return words if len(words) <= WORDS else words[:WORDS - 1] + "…"


def on_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def print_json(data: Any) -> None:
    """One JSON document on standard output."""
    print(json.dumps(data))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> None:
    """Columns under their names. right: positions of columns that end at the right, as numbers do."""
    if on_terminal() and _print_coloured(columns, rows, right):
        return
    widths = [max(len(line[i]) for line in (columns, *rows)) for i in range(len(columns))]
    for line in (columns, *rows):
        print("  ".join(text.rjust(w) if i in right else text.ljust(w)
                        for i, (text, w) in enumerate(zip(line, widths, strict=True))).rstrip())


def _print_coloured(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int]) -> bool:
    """Print a table for a terminal. False without rich: `mxc doctor` has to say then that it is missing."""
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    table = Table(*columns, box=None)
    table.columns[0].overflow = "fold"  # where there is no room: names are not cut
    for i in right:
        table.columns[i].justify = "right"
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)
    return True


def print_facts(facts: dict[str, str]) -> None:
    """`name: value` lines, the values below each other."""
    width = max(map(len, facts), default=0) + 2
    for name, value in facts.items():
        print(f"{name + ':':{width}}{value}".rstrip())
