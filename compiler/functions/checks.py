"""Finds, before anything else, what no function of an elementwise operator may be or do, in its text alone."""
from __future__ import annotations

import ast
from collections.abc import Sequence

from mxc.compiler.functions.formula import wrong_count
from mxc.compiler.functions.source import FunctionSource

REFUSED: dict[type[ast.AST], str] = {
    ast.Raise: "raises an error", ast.Assert: "asserts", ast.Try: "catches errors", ast.With: "has a with block",
    ast.Yield: "yields", ast.YieldFrom: "yields", ast.Await: "awaits", ast.Global: "changes global names",
    ast.Nonlocal: "changes names outside of it", ast.Import: "imports", ast.ImportFrom: "imports",
    ast.ClassDef: "defines a class", ast.Delete: "deletes names", ast.Match: "has a match statement",
}
NO_NUMBERS: dict[type[ast.AST], str] = {
    ast.List: "a list", ast.Dict: "a dict", ast.Set: "a set", ast.JoinedStr: "a string", ast.ListComp: "a list",
    ast.SetComp: "a set", ast.DictComp: "a dict", ast.GeneratorExp: "a generator", ast.Lambda: "a function",
}
CONSTANTS = {str: "a string", bytes: "bytes", type(None): "None", complex: "a complex number", type(...): "an ellipsis"}


def check(source: FunctionSource, outputs: int = 0) -> None:
    """Raise MXNetError that quotes a line for what has no place in a function of numbers, in it or in one that it
    calls. outputs: how many numbers it returns in a tuple; 0: one by itself."""
    for node in _own_nodes(source.tree):
        for kind, what in REFUSED.items():
            if isinstance(node, kind):
                raise source.error(f"it {what}; expected a function that always gives a number", node)
        if isinstance(node, ast.NamedExpr):
            raise source.error("it assigns within an expression; expected an assignment of its own", node)
        if isinstance(node, ast.Starred):
            raise source.error("it has a * before a name or value; expected each by itself", node)
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            raise source.error("it writes to a part of something; expected variables alone before =", node)
        if isinstance(node, ast.Return):
            _check_return(source, node, outputs)
    statements = source.statements
    if not _ends(statements):
        last = statements[-1] if statements else source.tree
        raise source.error("a path through it ends without a return; expected a number on each", last)
    for called in source.names.values():
        if isinstance(called, FunctionSource):
            check(called, -1)


def _own_nodes(tree: ast.AST) -> list[ast.AST]:
    """All nodes of a function but those of functions within it."""
    found, waiting = [], list(ast.iter_child_nodes(tree))
    while waiting:
        node = waiting.pop()
        found.append(node)
        if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)
    return found


def _check_return(source: FunctionSource, node: ast.Return, outputs: int) -> None:
    """Raise MXNetError where a `return` surely does not give `outputs` numbers; below 0 it may give any number."""
    value = node.value
    what = "None" if value is None else NO_NUMBERS.get(type(value), "")
    if isinstance(value, ast.Constant):
        what = CONSTANTS.get(type(value.value), "")
    if what:
        raise source.error(f"it returns {what}; expected a number" + (f" for each of {outputs} inputs" if outputs > 0
                                                                    else ""), node)
    count = len(value.elts) if isinstance(value, ast.Tuple) else 0
    certain = isinstance(value, (ast.Tuple, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare))
    if outputs >= 0 and certain and count != outputs:
        raise source.error(wrong_count(count, outputs), node)


def _ends(statements: Sequence[ast.stmt]) -> bool:
    """Whether no path leads to the end of these statements."""
    if not statements:
        return False
    last = statements[-1]
    if isinstance(last, ast.If):
        return _ends(last.body) and _ends(last.orelse)
    if isinstance(last, (ast.For, ast.While)):
        test = getattr(last, "test", None)
        endless = isinstance(test, ast.Constant) and bool(test.value)
        return (endless or _ends(last.orelse)) and not any(isinstance(n, ast.Break) for n in ast.walk(last))
    return isinstance(last, ast.Return)
