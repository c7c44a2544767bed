"""Finds variables that a function may use before they have a value, for which compiled code could raise no error."""
from __future__ import annotations

import ast
from collections.abc import Sequence

from mxc.compiler.functions.source import FunctionSource

Names = frozenset[str]


def check_bound(source: FunctionSource) -> None:
    """Raise MXNetError, which quotes the line, where a function, or one that it calls, may use a variable that has no
    value yet. A branch or a loop may run or not; only a loop over known numbers surely runs."""
    _Flow(source).block(source.statements, frozenset([*source.inputs, *source.keywords]))
    for called in source.names.values():
        if isinstance(called, FunctionSource):
            check_bound(called)


class _Flow:
    """Follows one function's statements. A set holds the names that surely have values at a place; None: no path leads
    to the place."""

    def __init__(self, source: FunctionSource):
        self.source = source
        self.locals = {n.id for s in source.statements for n in ast.walk(s)
                       if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.breaks: list[list[Names]] = []  # for each loop around: the names with values at each of its breaks

    def block(self, statements: Sequence[ast.stmt], bound: Names | None) -> Names | None:
        for statement in statements:
            if bound is None:
                return None
            bound = self.statement(statement, bound)
        return bound

    def statement(self, node: ast.stmt, bound: Names) -> Names | None:
        if isinstance(node, ast.If):
            self.uses(node.test, bound)
            return _either(self.block(node.body, bound), self.block(node.orelse, bound))
        if isinstance(node, (ast.For, ast.While)):
            return self.loop(node, bound)
        if isinstance(node, ast.Break):
            self.breaks[-1].append(bound)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self.use(node.target, bound)
        self.uses(node, bound)
        if isinstance(node, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
            return None
        return bound | _stored(node)

    def loop(self, node: ast.For | ast.While, bound: Names) -> Names | None:
        """The names that surely have values after a loop. It is enough to follow the body once: a later turn begins
        with all names that the first one began with."""
        self.breaks.append([])
        if isinstance(node, ast.For):
            self.uses(node.iter, bound)
            inside, is_endless, surely = bound | _stored(node.target), False, self.has_items(node.iter)
        else:
            self.uses(node.test, bound)
            known = isinstance(node.test, ast.Constant) and bool(node.test.value)
            inside, is_endless, surely = bound, known, known
        turn = self.block(node.body, inside)
        early = self.breaks.pop()
        # `continue` may leave a turn at any point: then only the names that the turn began with are sure.
        continues = any(isinstance(n, ast.Continue) for s in node.body for n in ast.walk(s))
        done = inside if continues else turn
        after: Names | None = None if is_endless else done if surely else _either(bound, done)
        after = None if after is None else self.block(node.orelse, after)
        for left in early:
            after = _either(after, left)
        return after

    def has_items(self, node: ast.expr) -> bool:
        """Whether a loop goes over something that is known not to be empty."""
        if isinstance(node, ast.Tuple):
            return bool(node.elts)
        if isinstance(node, ast.Name):
            return node.id not in self.locals and bool(self.source.names.get(node.id))
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args and not node.keywords):
            return False
        if node.func.id in ("enumerate", "reversed", "zip"):
            return all(map(self.has_items, node.args))
        known = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, int)]
        return node.func.id == "range" and len(known) == len(node.args) <= 2 and len(range(*known)) > 0

    def uses(self, node: ast.AST, bound: Names) -> None:
        inner = bound.union(*(_stored(c.target) for c in ast.walk(node) if isinstance(c, ast.comprehension)))
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
                self.use(each, inner)

    def use(self, node: ast.Name, bound: Names) -> None:
        if node.id in self.locals and node.id not in bound:
            raise self.source.error(f"{node.id} may have no value here; expected one on every path to this line, as "
                                    "before the loop or in both branches", node)


def _stored(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} - (
        {node.target.id} if isinstance(node, ast.AnnAssign) and node.value is None and isinstance(node.target, ast.Name)
        else set())


def _either(a: Names | None, b: Names | None) -> Names | None:
    """The names that surely have values where two paths meet."""
    return a if b is None else b if a is None else a & b
