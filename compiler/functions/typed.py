"""A function of numbers rewritten to compute in one float dtype, as NumPy's scalars beside Python's numbers do.

Numba's rules widen (float32 + 1 is float64), so a whole number or a literal becomes a number of the dtype where it
meets one. `TYPE(x)` is that conversion. The caller of `build` says what it is, and what `math` and `np` are: those of
Numba for the CPU, of numba.cuda, or of NumPy for the reference (reference.py). The text keeps the line numbers of the
user's file.

Whole numbers have 64 bits, and their arithmetic wraps; the reference does that by `INTEGER(x)`. The results of `int`,
`round`, `math.floor` and so on stay numbers of the dtype, which is exact, until they meet a whole number: then they
become the nearest 64-bit one, and NaN becomes 0.
"""
from __future__ import annotations

import ast
import copy
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mxc.compiler.functions.formula import REAL, TRUTH, WHOLE
from mxc.compiler.functions.integers import INTEGER, TYPE, WORDS, Simpler, fits
from mxc.compiler.functions.source import FunctionSource

ROUNDED = "rounded"  # the kind of a number of the dtype without a fraction, which is a whole number in Python
OTHER = "other"  # the kind of all else, also of numbers of a dtype that the function names: it is left as it is
ROUNDING = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "int": "trunc", "round": "rint"}  # NumPy's names
ROUNDERS = {f"mxc_{name}": getattr(np, name) for name in ROUNDING.values()}  # their names in rewritten text
OF_WHOLE = ("gcd", "len", "range")  # functions that take and give whole numbers
TRUTH_RESULTS = ("isnan", "isinf", "isfinite", "bool", "isclose")
OF_ARGUMENTS = ("abs", "min", "max", "sum")
KINDS = {float: REAL, int: WHOLE, bool: TRUTH}
OF_INTEGERS: dict[type[ast.operator], str] = {
    ast.FloorDiv: "mxc_quotient", ast.Mod: "mxc_rest", ast.LShift: "mxc_left", ast.RShift: "mxc_right"}


@dataclass
class Text:
    """A rewritten function and those that it calls.

    functions: name -> (definition, file); later ones call earlier ones, and the last is `main`. names: what their
    global names stand for, besides TYPE and the functions.
    """

    main: str
    functions: dict[str, tuple[ast.FunctionDef, str]] = field(default_factory=dict)
    names: dict[str, Any] = field(default_factory=dict)


def rewritten(source: FunctionSource, kinds: Sequence[type], part: tuple[int, int] | None,
              name: str) -> Text:
    """The text of a function whose arguments are numbers of the dtype. kinds: float, int or bool: what they are to the
    function, inputs first. part: (i, n): the i-th of the n numbers that it returns in a tuple; None: it returns one."""
    text = Text(name)
    _Rewriter(source, tuple(KINDS[k] for k in kinds), text, part)
    return text


def build(text: Text, names: Mapping[str, Any], decorate: Callable[[Any], Any] = lambda f: f) -> Any:
    """The main function as a Python function. names: values for TYPE, INTEGER and the ROUNDERS, and for those of the
    text's names that are to stand for something else. decorate: a function that is applied to each function made."""
    space = {**text.names, **names}
    for name, (definition, file) in text.functions.items():
        module = ast.fix_missing_locations(ast.Module([definition], []))
        exec(compile(module, file, "exec", dont_inherit=True, optimize=0), space)
        space[name] = decorate(space[name])
    return space[text.main]


class _Rewriter(ast.NodeTransformer):
    """Rewrites one function for arguments of certain kinds, and adds it to the text after those that it calls. name:
    its name in the text. returns: the kind of its result. The main function gives only the part of its result that is
    asked for."""

    def __init__(self, source: FunctionSource, kinds: tuple[str, ...], text: Text, part: tuple[int, int] | None = None,
                 is_main: bool = True):
        self.source, self.text, self.part, self.is_main = source, text, part, is_main
        names = [*source.inputs, *source.keywords]
        self.kinds: dict[str, str] = dict(zip(names, kinds, strict=True))
        self.called: dict[tuple[str, tuple[str, ...]], _Rewriter] = {}
        self.locals = {n.id for s in source.statements for n in ast.walk(s) if isinstance(n, ast.Name)
                       and isinstance(n.ctx, ast.Store)} | self.kinds.keys()
        statements = [Simpler(self._captured).visit(s) for s in copy.deepcopy(source.statements)]
        self._infer(statements)
        self.returns = self._returned(statements)
        given = [f"a{i}" for i in range(len(names))]
        body: list[ast.stmt] = [
            ast.Assign([ast.Name(n, ast.Store())], self._argument(ast.Name(a, ast.Load()), kind, self.kinds[n]))
            for n, a, kind in zip(names, given, kinds, strict=True)]
        for statement in statements:
            made = self.visit(statement)
            body += made if isinstance(made, list) else [made]
        called = f"mxc_{len(text.functions)}_{getattr(source.tree, 'name', 'function')}"
        self.name = text.main if is_main else called
        arguments = ast.arguments([], [ast.arg(a) for a in given], None, [], [], None, [])
        definition = ast.FunctionDef(self.name, arguments, body, [], None, None)
        for node in (definition, *body[:len(names)]):
            ast.copy_location(node, source.tree)
        text.functions[self.name] = ast.fix_missing_locations(definition), source.file
        text.names |= {self._own(n): v for n, v in source.names.items()
                       if not isinstance(v, (FunctionSource, bool, int, float, np.generic))}

    def _argument(self, node: ast.expr, kind: str, wanted: str) -> ast.expr:
        """The value that a parameter begins with: the main function's arguments come as numbers of the dtype, whatever
        their kind is."""
        ast.copy_location(node, self.source.tree)
        if self.is_main and kind == WHOLE:
            node = self._word("mxc_whole", node)
        elif self.is_main and kind == TRUTH:
            node = ast.copy_location(ast.Compare(node, [ast.NotEq()], [ast.Constant(0)]), node)
        return self._converted(node, kind, wanted)

    def _own(self, name: str) -> str:
        """The name that a global name gets in the text, as functions of several files may use one for different
        things."""
        return f"{name}_of_{self.source.digest[:8]}"

    # --- kinds

    def _infer(self, statements: Sequence[ast.stmt]) -> None:
        """Finds the kind of each variable: the one that holds all values that the variable gets."""
        before: dict[str, str] = {}
        while before != self.kinds:
            before = dict(self.kinds)
            for statement in statements:
                for node in ast.walk(statement):
                    if isinstance(node, ast.Assign):
                        for target in node.targets:
                            self._given(target, node.value)
                    elif isinstance(node, ast.AnnAssign) and node.value is not None:
                        self._given(node.target, node.value)
                    elif isinstance(node, ast.AugAssign):
                        self._keep(node.target, self._of_operation(node.op, node.target, node.value))
                    elif isinstance(node, ast.For):
                        self._keep(node.target, self._of_items(node.iter))

    def _given(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for one, part in zip(target.elts, value.elts, strict=True):
                self._given(one, part)
        else:
            self._keep(target, self.kind(value))

    def _keep(self, target: ast.expr, kind: str) -> None:
        if isinstance(target, ast.Name):
            known = self.kinds.get(target.id, "")
            self.kinds[target.id] = _joined([known, kind])
        elif isinstance(target, ast.Tuple):
            for one in target.elts:
                self._keep(one, OTHER)

    def _of_items(self, node: ast.expr) -> str:
        if isinstance(node, ast.Call):
            return WHOLE if isinstance(node.func, ast.Name) and node.func.id == "range" else OTHER
        return self.kind(node) if isinstance(node, ast.Tuple) else _of_number(self._captured(node), True)

    def kind(self, node: ast.AST) -> str:
        """The kind of an expression; "" where nothing is known yet."""
        if isinstance(node, ast.Constant):
            return _of_number(node.value)
        if isinstance(node, ast.Name):
            return self.kinds.get(node.id, "") if node.id in self.locals else _of_number(self._captured(node))
        if isinstance(node, ast.Attribute):
            return _of_number(self._captured(node))
        if isinstance(node, ast.BinOp):
            return self._of_operation(node.op, node.left, node.right)
        if isinstance(node, ast.UnaryOp):
            kind = self.kind(node.operand)
            is_whole = kind == TRUTH or (kind == ROUNDED and isinstance(node.op, ast.Invert))
            return TRUTH if isinstance(node.op, ast.Not) else WHOLE if is_whole else kind
        if isinstance(node, ast.Compare):
            return TRUTH
        if isinstance(node, ast.BoolOp):
            return _joined([self.kind(n) for n in node.values])
        if isinstance(node, ast.Tuple):
            return _in_tuple(_joined([self.kind(n) for n in node.elts]))
        if isinstance(node, ast.IfExp):
            return _joined([self.kind(node.body), self.kind(node.orelse)])
        if isinstance(node, ast.Subscript):
            return self.kind(node.value) if isinstance(node.value, ast.Tuple) else _of_number(
                self._captured(node.value), True)
        return self._of_call(node) if isinstance(node, ast.Call) else OTHER

    def _of_operation(self, op: ast.operator, left: ast.expr, right: ast.expr) -> str:
        a, b = self.kind(left), self.kind(right)
        if OTHER in (a, b):
            return OTHER
        # A whole number to a power that may be negative is a real number.
        is_root = isinstance(op, ast.Pow) and not (isinstance(right, ast.Constant) and isinstance(right.value, int)
                                                    and right.value >= 0)
        if REAL in (a, b) or isinstance(op, ast.Div) or is_root:
            return REAL
        is_bits = isinstance(op, (ast.BitAnd, ast.BitOr, ast.BitXor)) and a == b == TRUTH
        return TRUTH if is_bits else WHOLE

    def _of_call(self, node: ast.Call) -> str:
        function = self._captured(node.func)
        kinds = [self.kind(a) for a in node.args]
        if isinstance(function, FunctionSource):
            return self._callee(function, node).returns if "" not in kinds else ""
        name = getattr(function, "__name__", function)
        if name in TRUTH_RESULTS:
            return TRUTH
        if _rounds(function, node):
            return ROUNDED if kinds[0] in (REAL, ROUNDED) else WHOLE if kinds[0] else ""
        if name in OF_WHOLE:
            return WHOLE
        if function in OF_ARGUMENTS:
            return _joined(kinds)
        if isinstance(function, type):  # The user names a dtype.
            return OTHER
        return REAL if OTHER not in kinds else OTHER

    def _callee(self, function: FunctionSource, node: ast.Call) -> _Rewriter:
        """The called function, rewritten for the kinds of these arguments, which may come by position or keyword."""
        given = _given(function, node)
        kinds = tuple(self.kind(given[n]) if n in given else _of_number(function.keywords.get(n))
                      for n in (*function.inputs, *function.keywords))
        if (function.digest, kinds) not in self.called:
            self.called[function.digest, kinds] = _Rewriter(function, kinds, self.text, is_main=False)
        return self.called[function.digest, kinds]

    def _captured(self, node: ast.AST) -> Any:
        """What a name from outside of the function stands for, or a member of a module. For one of Python's own
        functions that is its name; for all other nodes None."""
        if isinstance(node, ast.Name) and node.id not in self.locals:
            return self.source.names.get(node.id, node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = self.source.names.get(node.value.id)
            if isinstance(module, types.ModuleType):
                if not hasattr(module, node.attr):
                    raise self.source.error(f"{module.__name__} has no member {node.attr}", node)
                return getattr(module, node.attr)
        return None

    def _returned(self, statements: Sequence[ast.stmt]) -> str:
        return _joined([self.kind(n.value) for s in statements for n in ast.walk(s)
                        if isinstance(n, ast.Return) and n.value is not None])

    # --- rewriting

    def _wrap(self, node: ast.expr) -> ast.expr:
        return ast.copy_location(ast.Call(ast.copy_location(ast.Name(TYPE, ast.Load()), node), [node], []), node)

    def _word(self, name: str, *arguments: ast.expr) -> ast.expr:
        """A call of one of the functions that the rewritten text has besides the user's."""
        if name in WORDS:
            self.text.functions.setdefault(name, (WORDS[name], "<mxc>"))
        made = ast.Call(ast.Name(name, ast.Load()), list(arguments), [])
        return ast.fix_missing_locations(ast.copy_location(made, arguments[0]))

    def _converted(self, made: ast.expr, kind: str, wanted: str) -> ast.expr:
        """An expression of one kind converted to another kind that holds it."""
        if wanted == REAL and kind in (WHOLE, TRUTH):
            return self._wrap(made)
        if wanted == WHOLE and kind in (ROUNDED, TRUTH):
            return self._word("mxc_whole" if kind == ROUNDED else "int", made)
        return made

    def _as(self, node: ast.expr, wanted: str) -> ast.expr:
        """An expression, rewritten and converted to another kind."""
        kind = self.kind(node)
        return self._converted(self.visit(node), kind, wanted)

    def _real(self, node: ast.expr) -> ast.expr:
        """An expression, rewritten; a whole number becomes a number of the dtype."""
        return self._as(node, REAL)

    def _all(self, nodes: Sequence[ast.expr]) -> list[ast.expr]:
        """Expressions that meet in an operation, rewritten: all become numbers of the dtype where one of them is one,
        else whole numbers where one of them is one."""
        wanted = _joined(list(map(self.kind, nodes)))
        return [self._as(n, wanted) if wanted in (REAL, WHOLE) else self.visit(n) for n in nodes]

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if not fits(node.value):
            raise self.source.error("it has a whole number of more than 64 bits; expected a float, as 2.0**70", node)
        return self._wrap(node) if isinstance(node.value, float) else node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.locals or node.id not in self.source.names:
            return node
        value = self.source.names[node.id]
        if isinstance(value, (bool, int, float, np.generic)):
            number = value.item() if isinstance(value, np.generic) else value
            return self.visit(ast.copy_location(_number(number), node))
        return ast.copy_location(ast.Name(self._own(node.id), ast.Load()), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        value = self._captured(node)
        if isinstance(value, float):
            return self.visit(ast.copy_location(_number(value), node))
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        kind = self.kind(node)
        if kind not in (REAL, WHOLE):
            return self.generic_visit(node)  # type: ignore[return-value]
        left, right = self._as(node.left, kind), self._as(node.right, kind)
        word = OF_INTEGERS.get(type(node.op), "") if kind == WHOLE else ""
        if word:
            return self._word(word, left, right)
        made = ast.copy_location(ast.BinOp(left, node.op, right), node)
        return self._word(INTEGER, made) if kind == WHOLE else made

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        kind = self.kind(node)
        if kind != WHOLE:
            return self.generic_visit(node)  # type: ignore[return-value]
        return self._word(INTEGER, ast.copy_location(ast.UnaryOp(node.op, self._as(node.operand, WHOLE)), node))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        left, *rest = self._all([node.left, *node.comparators])
        return ast.copy_location(ast.Compare(left, node.ops, rest), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        return ast.copy_location(ast.BoolOp(node.op, self._all(node.values)), node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        return ast.copy_location(ast.IfExp(self.visit(node.test), *self._all([node.body, node.orelse])), node)

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        if isinstance(node.ctx, ast.Store):
            return node
        parts = [self._as(n, _in_tuple(self.kind(n))) for n in node.elts]
        return ast.copy_location(ast.Tuple(parts, node.ctx), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        index = self._as(node.slice, WHOLE) if self.kind(node.slice) == ROUNDED else self.visit(node.slice)
        return ast.copy_location(ast.Subscript(self.visit(node.value), index, node.ctx), node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        function = self._captured(node.func)
        if isinstance(function, FunctionSource):
            return self._call_of(function, node)
        if node.keywords:
            raise self.source.error(f"the argument {node.keywords[0].arg} of {ast.unparse(node.func)} is given by its "
                                    "name; expected arguments by position", node)
        if function == "round" and len(node.args) > 1:
            raise self.source.error("it rounds to digits; expected round of one argument: round(x * 100) / 100", node)
        if function is np.power and len(node.args) == 2:
            return ast.copy_location(ast.BinOp(self._real(node.args[0]), ast.Pow(), self._real(node.args[1])), node)
        if function == "float" and len(node.args) == 1:
            return self._real(node.args[0])
        if _rounds(function, node):
            return self._rounded(str(getattr(function, "__name__", function)), node.args[0])
        kinds = [self.kind(a) for a in node.args]
        name = getattr(function, "__name__", function)
        library = isinstance(function, np.ufunc) or getattr(function, "__module__", "") == "math"
        if name == "bool":
            arguments = list(map(self.visit, node.args))
        elif function in OF_ARGUMENTS:
            arguments = self._all(node.args)
        elif library and name not in OF_WHOLE and OTHER not in kinds:
            arguments = list(map(self._real, node.args))
        else:
            arguments = [self._as(a, _in_tuple(k)) for a, k in zip(node.args, kinds, strict=True)]
        made = ast.copy_location(ast.Call(self.visit(node.func), arguments, node.keywords), node)
        return self._word(INTEGER, made) if function == "abs" and kinds == [WHOLE] else made

    def _rounded(self, name: str, node: ast.expr) -> ast.expr:
        """A number without its fraction, as Python's `name` makes it."""
        if self.kind(node) != REAL:
            return self._word("int", self.visit(node)) if self.kind(node) in (TRUTH, OTHER) else self.visit(node)
        return self._word(f"mxc_{ROUNDING[name]}", self.visit(node))

    def _call_of(self, function: FunctionSource, node: ast.Call) -> ast.expr:
        """A call of a user's function with all arguments by position, defaults filled in."""
        callee = self._callee(function, node)
        given = _given(function, node)
        names = (*function.inputs, *function.keywords)
        values = []
        for name in names:
            value = given.pop(name, None)
            if value is None and function.keywords.get(name, inspect.Parameter.empty) is inspect.Parameter.empty:
                raise self.source.error(f"the argument {name} is missing", node)
            values.append(self.visit(value if value is not None
                                     else ast.copy_location(_number(function.keywords[name]), node)))
        if given or len(node.args) > len(function.inputs):
            raise self.source.error("a call with other arguments than the function has", node)
        return ast.copy_location(ast.Call(ast.copy_location(ast.Name(callee.name, ast.Load()), node), values, []), node)

    def _stored(self, target: ast.expr, value: ast.expr) -> ast.expr:
        """The value for a variable, converted to a number of the dtype where the variable holds one elsewhere."""
        if isinstance(target, ast.Name) and self.kinds.get(target.id) in (REAL, WHOLE):
            return self._as(value, self.kinds[target.id])
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            parts = [self._stored(t, v) for t, v in zip(target.elts, value.elts, strict=True)]
            return ast.copy_location(ast.Tuple(parts, ast.Load()), value)
        return self.visit(value)

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        return ast.copy_location(ast.Assign(node.targets, self._stored(node.targets[0], node.value)), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], self._stored(node.target, node.value)), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        if not isinstance(node.target, ast.Name):
            return self.generic_visit(node)  # type: ignore[return-value]
        old = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
        value = ast.copy_location(ast.BinOp(old, node.op, node.value), node)
        return self.visit_Assign(ast.copy_location(ast.Assign([node.target], value), node))

    def visit_Return(self, node: ast.Return) -> ast.stmt | list[ast.stmt]:
        assert node.value is not None
        if isinstance(node.value, ast.Tuple):  # Other returns may give numbers of other kinds in their tuples.
            parts = [self._real(v) for v in node.value.elts]
            value: ast.expr = ast.copy_location(ast.Tuple(parts, ast.Load()), node.value)
        else:
            value = self._as(node.value, self.returns) if self.returns in (REAL, WHOLE) else self.visit(node.value)
        if not self.is_main:
            return ast.copy_location(ast.Return(value), node)
        if self.part is None:
            return ast.copy_location(ast.Return(self._wrap(value)), node)
        place, count = self.part
        names = [f"{TYPE}_{i}" for i in range(count)]
        target = ast.Tuple([ast.Name(n, ast.Store()) for n in names], ast.Store())
        result = ast.copy_location(ast.Name(names[place], ast.Load()), node)
        return [ast.fix_missing_locations(ast.copy_location(statement, node))
                for statement in (ast.Assign([target], value), ast.Return(self._wrap(result)))]


def _given(function: FunctionSource, node: ast.Call) -> dict[str, ast.expr]:
    """The arguments of a call by name."""
    given = dict(zip(function.inputs, node.args, strict=False))
    given.update({str(k.arg): k.value for k in node.keywords})
    return given


def _joined(kinds: Sequence[str]) -> str:
    found = {k for k in kinds if k}
    for kind in (OTHER, REAL):
        if kind in found:
            return kind
    return found.pop() if len(found) == 1 else WHOLE if found else ""


def _in_tuple(kind: str) -> str:
    """The kind that a number has in a tuple, or as an argument of a function that knows no rounded numbers."""
    return WHOLE if kind == ROUNDED else kind


def _rounds(function: Any, node: ast.Call) -> bool:
    """Whether a call rounds a single number to a whole one."""
    name = getattr(function, "__name__", function)
    return name in ROUNDING and not isinstance(function, np.ufunc) and len(node.args) == 1 and not node.keywords


def _of_number(value: Any, in_tuple: bool = False) -> str:
    """The kind of a number, or of the numbers of a tuple."""
    if in_tuple:
        return _joined([_of_number(v) for v in value]) if isinstance(value, tuple) else OTHER
    if isinstance(value, np.generic):
        value = value.item()
    return KINDS.get(type(value), OTHER)


def _number(number: float) -> ast.Constant:
    return ast.Constant(number)
