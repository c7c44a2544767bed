"""How large a function may be, and what the door of a package says."""
from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from test_layers import OTHERS, ROOT, SOURCES

LINES = 60  # of a function
PARAMETERS = 8
DOOR = range(3, 11)  # lines of a package's docstring
# A reason is a comment above a function, or above its decorators.
LONG = re.compile(r"# long: \w+")
MANY = re.compile(r"# many parameters: \w+|# MXNet's signature")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(path: Path) -> Iterator[tuple[Function, str, str]]:
    """Each function of a file, those inside of others too: with where it is, and the comments above it."""
    text = path.read_text()
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, Function):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
            above = first
            while above and lines[above - 1].lstrip().startswith("#"):
                above -= 1
            yield node, f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}", "\n".join(lines[above:first])


def parameters(node: Function) -> int:
    """How many parameters a function has; `self` is none, and *args and **kwargs are one each."""
    names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return (len(names) - (names[:1] in (["self"], ["cls"]))
            + (node.args.vararg is not None) + (node.args.kwarg is not None))


def is_routine(node: Function) -> bool:
    """Whether the code of kernels calls it, as `@routine` says: it has a parameter for each of a kernel's arrays and
    numbers."""
    return any(isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name)
               and decorator.func.id == "routine" for decorator in node.decorator_list)


def test_functions_are_short():
    wrong = [f"{where} has {length} lines" for path in (*SOURCES.values(), *OTHERS)
             for node, where, comment in functions(path)
             if (length := (node.end_lineno or 0) - node.lineno + 1) > LINES and not LONG.search(comment)]
    assert not wrong, "\n".join(wrong) + f"\nexpected at most {LINES}, or `# long: REASON` above"


def test_functions_have_few_parameters():
    wrong = [f"{where} has {parameters(node)} parameters" for path in SOURCES.values()
             for node, where, comment in functions(path)
             if parameters(node) > PARAMETERS and not MANY.search(comment) and not is_routine(node)]
    assert not wrong, "\n".join(wrong) + f"\nexpected at most {PARAMETERS}, or `# many parameters: REASON` above"


def test_a_reason_stands_where_one_is_needed():
    """So that it goes with what it excuses."""
    wrong = []
    for path in (*SOURCES.values(), *OTHERS):
        for node, where, comment in functions(path):
            if LONG.search(comment) and (node.end_lineno or 0) - node.lineno + 1 <= LINES:
                wrong.append(f"{where} is not long")
            if MANY.search(comment) and parameters(node) <= PARAMETERS:
                wrong.append(f"{where} has few parameters")
    assert not wrong, "\n".join(wrong)


def test_every_package_has_a_door():
    """Its docstring says what is inside, where to begin, and what may be imported from outside."""
    wrong = []
    for folder in sorted({path.parent for path in SOURCES.values()}):
        door = folder / "__init__.py"
        text = (ast.get_docstring(ast.parse(door.read_text())) or "") if door.exists() else ""
        if len(text.splitlines()) not in DOOR:
            wrong.append(f"{door.relative_to(ROOT)}: {len(text.splitlines())} lines")
    assert not wrong, "\n".join(wrong) + f"\nexpected a docstring of {DOOR[0]} to {DOOR[-1]} lines"


def test_modules_of_one_name_in_two_layers_say_which_they_are():
    """The frontend's begin with what programs call them; those below do not."""
    public = re.compile(r"MXNet's `mx\.\w+`|`mxc\.\w+`")
    below = {path.stem for folder in ("runtime", "compiler") for path in (ROOT / folder).glob("*.py")} - {"__init__"}
    shared = [path for path in (ROOT / "frontend").glob("*.py") if path.stem in below]
    assert shared
    for path in (*shared, *(ROOT / folder / path.name for path in shared for folder in ("runtime", "compiler"))):
        if path.exists():
            text = ast.get_docstring(ast.parse(path.read_text())) or ""
            assert bool(public.match(text)) == (path in shared), f"{path.relative_to(ROOT)}: {text[:60]}"
