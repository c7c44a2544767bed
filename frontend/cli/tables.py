"""How commands print: JSON for programs, aligned text for pipes and files, text in the terminal's width on one."""
from __future__ import annotations

import contextlib
import json
import re
import shutil
import sys
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

NARROWEST = 16  # letters: a column of words is not folded to less; a table that would need that is printed row by row


class Table(NamedTuple):
    """columns: their names. rows: the words in them. right: positions of columns that end at the right, as numbers
    do."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Collection[int] = ()


def kernel_words(operators: str) -> str:
    """A kernel's operators for a table, by short names."""
    return operators.replace("_mxc_", "")


def on_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def print_json(data: Any) -> None:
    """One JSON document on standard output."""
    print(json.dumps(data))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> None:
    """Columns under their names. right: positions of columns that end at the right, as numbers do.

    On a terminal words are folded where a line has no room for them; elsewhere lines are as long as they are.
    """
    natural = [max(len(line[i]) for line in (columns, *rows)) for i in range(len(columns))]
    widths = _widths(natural, right, shutil.get_terminal_size().columns) if on_terminal() else natural
    if widths is None:
        for row in rows:
            _print_alone(columns, row, shutil.get_terminal_size().columns)
        return
    for number, row in enumerate((columns, *rows)):
        for line in _lines(row, widths, right):
            print_head(line) if number == 0 else print(line)


def _widths(natural: Sequence[int], right: Collection[int], room: int) -> list[int] | None:
    """The width of each column in lines of `room` letters; None where that is too little."""
    widths = list(natural)
    room -= 2 * (len(widths) - 1)
    folding = [i for i in range(len(widths)) if i not in right and widths[i] > NARROWEST]
    for position, i in enumerate(sorted(folding, key=lambda i: natural[i])):
        others = sum(widths[j] for j in range(len(widths)) if j not in folding)
        done = sum(widths[j] for j in sorted(folding, key=lambda i: natural[i])[:position])
        widths[i] = min(natural[i], max(NARROWEST, (room - others - done) // (len(folding) - position)))
    return widths if sum(widths) <= room else None


def _lines(row: Sequence[str], widths: Sequence[int], right: Collection[int]) -> Iterator[str]:
    """A row of a table, in more than one line where words do not fit into their column."""
    cells = [folded(text, width) for text, width in zip(row, widths, strict=True)]
    for k in range(max(map(len, cells))):
        parts = (cell[k] if k < len(cell) else "" for cell in cells)
        yield "  ".join(text.rjust(w) if i in right else text.ljust(w)
                        for i, (text, w) in enumerate(zip(parts, widths, strict=True))).rstrip()


def _print_alone(columns: Sequence[str], row: Sequence[str], room: int) -> None:
    """Print a row that no line has room for: its first column, and below it the others with their names."""
    for line in folded(row[0], room):
        print_head(line)
    facts = ", ".join(f"{name} {text}".strip() for name, text in zip(columns[1:], row[1:], strict=True) if text)
    for line in folded(facts, max(NARROWEST, room - 2)):
        print(f"  {line}")


def print_head(line: str) -> None:
    """Print a line; on a terminal in bold, where rich is there: `mxc doctor` has to say when it is missing."""
    if on_terminal():
        with contextlib.suppress(ImportError):
            from rich.console import Console
            from rich.text import Text

            Console(soft_wrap=True).print(Text(line, "bold"))
            return
    print(line)


def folded(text: str, width: int) -> list[str]:
    """`text` in lines of at most `width` letters: broken behind a space, `+`, `,` or `/`, else behind `_`, else
    anywhere."""
    lines = [""]
    for piece in re.findall(r"[^ +,/]*[ +,/]|[^ +,/]+", text):
        finer = [piece] if len(piece.rstrip()) <= width else re.findall(r"[^_]*_|[^_]+", piece)
        for part in finer:
            while len(part.rstrip()) > width:
                room = max(0, width - len(lines[-1]))
                lines[-1] += part[:room]
                part = part[room:]
                lines.append("")
            if len(lines[-1]) + len(part.rstrip()) > width:
                lines.append("")
            lines[-1] += part
    return [line.rstrip() for line in lines]


def print_text(text: str) -> None:
    """A paragraph: on a terminal in its width, elsewhere a line."""
    print("\n".join(folded(text, shutil.get_terminal_size().columns)) if on_terminal() else text)


def print_facts(facts: dict[str, str]) -> None:
    """`name: value` lines, the values below each other; on a terminal folded where a line has no room for them."""
    width = max(map(len, facts), default=0) + 2
    room = max(NARROWEST, shutil.get_terminal_size().columns - width)
    for name, value in facts.items():
        lines = folded(value, room) if on_terminal() else [value]
        print("\n".join([f"{name + ':':{width}}{lines[0]}".rstrip(), *(f"{'':{width}}{line}" for line in lines[1:])]))


def keys_of(facts: dict[str, Any]) -> dict[str, Any]:
    """Facts by names that programs like."""
    return {name.replace(" ", "_"): value for name, value in facts.items()}
