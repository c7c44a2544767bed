"""The code in documents: its blocks, and what running them gives."""
from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TABLE = re.compile(r"(<!-- table: (\w+) -->\n)(.*?)(^<!-- end -->$)", re.S | re.M)


def with_tables(text: str, tables: Mapping[str, Callable[[], str]]) -> str:
    """The text of a document with each table as it is now. tables: what makes them, by name."""
    return TABLE.sub(lambda table: f"{table[1]}{tables[table[2]]()}{table[4]}", text)


def blocks(document: str, language: str = "") -> list[str]:
    """The code blocks of a language in a document of the checkout."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / document).read_text(), re.S | re.M)
    return [block for own, block in found if own == language]


def ran(block: str, names: dict[str, Any]) -> Any:
    """Run a block in a namespace; the value of its last line where that is an expression."""
    tree = ast.parse(block)
    last = tree.body[-1]
    if not isinstance(last, ast.Expr):
        exec(block, names)
        return None
    exec(compile(ast.Module(tree.body[:-1], []), "block", "exec"), names)
    return eval(compile(ast.Expression(last.value), "block", "eval"), names)


def comment(line: str) -> str:
    """What stands behind `#` on the line of a block."""
    return line.partition("#")[2].strip()
