"""Names that may have no value where a function reads them. Python raises an error there when it comes to it; compiled
code would go on with 0. Of statements and expressions there are those that functions over whole arrays may have."""
from __future__ import annotations

import ast
from collections.abc import Sequence

from mxc.compiler.functions.source import Source

Known = frozenset[str] | None  # names that have a value on every path to a statement; None: no path leads there


def check_assigned(source: Source) -> None:
    """Raises MXNetError quoting the line where a name of the function's own may have no value."""
    arguments = source.tree.args
    parameters = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    flow = _Flow(source, frozenset([*source.function.__code__.co_varnames, *source.function.__code__.co_cellvars]))
    flow.block(source.statements, frozenset(a.arg for a in parameters))


class _Flow:
    """own: the function's own names. leaves: of each loop around, what is known where `break` leaves it."""

    def __init__(self, source: Source, own: frozenset[str]):
        self.source, self.own = source, own
        self.leaves: list[list[Known]] = []

    def block(self, statements: Sequence[ast.stmt], known: Known) -> Known:
        """What is known behind the statements."""
        for statement in statements:
            if known is None:
                return None
            known = self.statement(statement, known)
        return known

    def statement(self, node: ast.stmt, known: frozenset[str]) -> Known:
        if isinstance(node, ast.If):
            known = self.read(node.test, known)
            return _both(self.block(node.body, known), self.block(node.orelse, known))
        if isinstance(node, ast.While):
            known = self.read(node.test, known)
            always = isinstance(node.test, ast.Constant) and bool(node.test.value)
            return self.loop(node, known, None if always else known)
        if isinstance(node, ast.For):
            known = self.read(node.iter, known)
            inside = self.read(node.target, known)
            return self.loop(node, inside, known, _runs(node.iter))
        known = self.read(node, known)
        if isinstance(node, ast.Break):
            self.leaves[-1].append(known)
        return None if isinstance(node, (ast.Return, ast.Raise, ast.Break, ast.Continue)) else known

    def loop(self, node: ast.While | ast.For, inside: frozenset[str], without: Known, runs: bool = False) -> Known:
        """What is known behind a loop. without: where its body never runs; runs: it does at least once."""
        self.leaves.append([])
        end = self.block(node.body, inside)
        if runs and not any(isinstance(n, ast.Continue) for n in ast.walk(node)):
            without = end
        found = self.block(node.orelse, without)
        for known in self.leaves.pop():
            found = _both(found, known)
        return found

    def read(self, node: ast.AST, known: frozenset[str]) -> frozenset[str]:
        """What is known behind an expression, or a statement without others in it."""
        if isinstance(node, ast.Name):
            return self.name(node, known)
        parts = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.Assign):
            parts = [node.value, *node.targets]
        elif isinstance(node, ast.AnnAssign):
            parts = [] if node.value is None else [node.value, node.target]
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            parts = [node.value, ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)]
        for part in parts:
            known = self.read(part, known)
        return known

    def name(self, node: ast.Name, known: frozenset[str]) -> frozenset[str]:
        if isinstance(node.ctx, ast.Store):
            return known | {node.id}
        if node.id in self.own and node.id not in known:
            raise self.source.error(f"{node.id} may have no value here; expected that it is given one on every way to "
                                    f"this line, as by {node.id} = 0.0 before branches and loops", node)
        return known


def _both(one: Known, other: Known) -> Known:
    """What is known where two paths meet."""
    if one is None or other is None:
        return one if other is None else other
    return one & other


def _runs(node: ast.expr) -> bool:
    """Whether a loop over this runs at least once: over known numbers or a tuple."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return bool(node.elts)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range" and node.args:
        try:
            return len(range(*map(ast.literal_eval, node.args))) > 0
        except (ValueError, TypeError):
            return False
    return False
