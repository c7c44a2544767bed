"""A program's functions over whole arrays: what they may be, and Python functions made of their source.

Statements have numbers, which depend on the syntax tree alone: not on comments, blank lines or where the function is in
its file. Compiled code says by such a number where it raised, so one code serves the function wherever it stands.
"""
from __future__ import annotations

import ast
import builtins
import copy
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.functions import array_words
from mxc.compiler.functions.faults import Faults, Line
from mxc.compiler.functions.reference import without_errors
from mxc.compiler.functions.source import FunctionSource
from mxc.compiler.functions.unbound import check_bound

DEFAULT = "default of "  # stands before a parameter's name; the spaces keep it apart from every name of Python
UNFIT = {ast.Yield: "it is a generator", ast.YieldFrom: "it is a generator", ast.Await: "it is asynchronous",
         ast.AsyncFor: "it is asynchronous", ast.AsyncWith: "it is asynchronous", ast.Global: "it changes globals",
         ast.Nonlocal: "it changes names of a function around it", ast.Import: "it imports", ast.ImportFrom:
         "it imports", ast.ClassDef: "it makes a class", ast.FunctionDef: "it makes a function", ast.AsyncFunctionDef:
         "it is asynchronous", ast.Lambda: "it makes a function", ast.JoinedStr: "it makes a text while it runs",
         ast.NamedExpr: "it assigns within an expression", ast.Starred: "it unpacks with *", ast.Delete: "it deletes",
         ast.ListComp: "it makes a list", ast.SetComp: "it makes a set", ast.DictComp: "it makes a dictionary",
         ast.GeneratorExp: "it makes a generator", ast.Try: "it handles errors", ast.TryStar: "it handles errors",
         ast.With: "it has a context manager", ast.Match: "it matches patterns"}


class ArrayFunction:
    """A function over whole arrays: its positional parameters are arrays, and it writes to those that `written` names;
    its keyword-only parameters are numbers.

    lines: the line of each statement; that of statement n is lines[n - 1]. Making one raises MXNetError, which quotes
    the line, where the function does what it may not: returns a value, writes to an input, or calls what cannot be
    compiled.
    """

    def __init__(self, source: FunctionSource, written: Sequence[str]):
        self.source, self.written = source, tuple(written)
        self.arrays, self.digest = tuple(source.inputs), source.digest
        self.lines: list[Line] = []
        self._trees: dict[Any, ast.FunctionDef] = {}  # Python function -> its rewritten definition
        self._defaults: dict[Any, dict[str, Any]] = {}  # Python function -> values of the names that stand for defaults
        _check_stores(source, self.written)
        stored = (n for n in ast.walk(source.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        self._changed = {name.id for name in stored}  # names that may stand for other arrays than its parameters
        self._number(source, is_called=False)
        check_bound(source)
        self._plain: Callable[..., None] | None = None

    def error(self, message: str, number: int = 1) -> MXNetError:
        """An error that quotes the statement of that number."""
        return MXNetError(self.faults(()).text(number, message))

    def check(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Refuse what can be seen without types: an array that is read or written at more indices than it has axes.
        shapes: the arrays' shapes, by name. Raises MXNetError quoting the line."""
        for node in ast.walk(self.source.tree):
            count = _count_indices(node)
            name = node.value.id if count else ""  # type: ignore[attr-defined]
            if name in shapes and count > len(shapes[name]) and name not in self._changed:
                raise self.source.error(f"{name} is read or written at {count} indices; its shape is {shapes[name]}",
                                        node)

    def faults(self, arrays: Sequence[str]) -> Faults:
        """What the errors of a kernel of this function are told with. arrays: names of the kernel's arrays."""
        return Faults(self.source.operator, self.source.role, tuple(arrays), tuple(self.lines))

    def made(self, decorate: Callable[[Any], Any], stands: Callable[[Any], Any] = lambda value: value,
             ) -> Callable[..., None]:
        """The function with positional parameters only, made in a module of its own in which a statement's line is its
        number. decorate: a function that is applied to each function that it calls. stands: gives what stands for a
        value that it takes from around it."""
        found: dict[Any, Any] = {}

        def make(source: FunctionSource, is_called: bool) -> Any:
            plain = getattr(source.function, "py_func", source.function)
            if plain not in found:
                space = {name: make(value, True) if isinstance(value, FunctionSource) else stands(value)
                         for name, value in source.names.items()}
                tree = self._trees[plain]
                module = ast.Module([tree], [])
                space |= {"__name__": "mxc_function", **self._defaults[plain]}
                # With optimize=0 asserts count, whatever options Python was started with.
                exec(compile(module, self._file, "exec", dont_inherit=True, optimize=0), space)
                found[plain] = decorate(space[tree.name]) if is_called else space[tree.name]
            return found[plain]

        return make(self.source, False)

    def run(self, arrays: Sequence[np.ndarray], numbers: Sequence[object]) -> None:
        """Run the function in Python, on arrays in place. This defines what its compiled code has to do; numbers have
        the dtypes of NumPy's scalars. Raises MXNetError, which quotes the line, for whatever the function raises."""
        if self._plain is None:
            self._plain = self.made(lambda function: function, without_errors)
        try:
            with np.errstate(all="ignore"):
                self._plain(*arrays, *numbers)
        except Exception as error:
            number, trace = 1, error.__traceback__
            while trace is not None:
                if trace.tb_frame.f_code.co_filename == self._file:
                    number = trace.tb_lineno
                trace = trace.tb_next
            raise self.error(f"{type(error).__name__}: {error}", number) from error

    @property
    def _file(self) -> str:
        return f"<{self.source.role} of {self.source.operator}>"

    def _number(self, source: FunctionSource, is_called: bool) -> None:
        plain = getattr(source.function, "py_func", source.function)
        if plain in self._trees:
            return
        if not is_called and isinstance(source.tree, ast.Lambda):
            raise source.error("it is a lambda; expected a function of statements, which write to its last arrays")
        arguments = copy.deepcopy(source.tree.args)
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            argument.annotation = None
        # Compiled code takes numbers as positional arguments after the arrays. Only a function that another one calls
        # has defaults for them.
        keywords = source.keywords
        with_default = [a for a in arguments.kwonlyargs if is_called and keywords[a.arg] is not inspect.Parameter.empty]
        arguments.args += [*(a for a in arguments.kwonlyargs if a not in with_default), *with_default]
        arguments.defaults = [ast.Name(f"{DEFAULT}{a.arg}", ast.Load(), lineno=0) for a in with_default]
        self._defaults[plain] = {f"{DEFAULT}{a.arg}": keywords[a.arg] for a in with_default}
        arguments.kwonlyargs, arguments.kw_defaults = [], []
        body = copy.deepcopy(source.statements) or [ast.Pass(lineno=source.tree.lineno)]
        tree = ast.FunctionDef(getattr(source.tree, "name", "lambda_"), arguments, body, [], lineno=source.tree.lineno)
        if "type_params" in ast.FunctionDef._fields:
            tree.type_params = []  # type: ignore[attr-defined]
        self._check(source, body, is_called)
        self._trees[plain] = tree
        self._visit(source, tree, 0)
        for _, value in sorted(source.names.items()):
            if isinstance(value, FunctionSource):
                self._number(value, True)

    def _visit(self, source: FunctionSource, node: ast.AST, number: int) -> None:
        if isinstance(node, ast.stmt):
            self.lines.append(Line(source.file, node.lineno, source.line(node.lineno)))
            number = len(self.lines)
        if "lineno" in node._attributes:
            node.lineno = node.end_lineno = number  # type: ignore[attr-defined]
            node.col_offset = node.end_col_offset = 0  # type: ignore[attr-defined]
        for child in ast.iter_child_nodes(node):
            self._visit(source, child, number)

    def _check(self, source: FunctionSource, body: Sequence[ast.stmt], is_called: bool) -> None:
        for node in (n for statement in body for n in ast.walk(statement)):
            if type(node) in UNFIT:
                raise source.error(f"{UNFIT[type(node)]}; expected assignments, loops, branches and numbers", node)
            if isinstance(node, ast.Attribute):
                _check_attribute(source, node)
            if isinstance(node, ast.Raise) and (node.exc is None or node.cause is not None):
                raise source.error("it raises what another error was, or one from another; expected `raise` and an "
                                   "error alone", node)
            is_value = isinstance(node, ast.Return) and getattr(node.value, "value", node.value) is not None
            if is_value and not is_called:
                raise source.error("it returns a value; expected that it writes to its last arrays "
                                   f"({', '.join(self.written)}) and returns nothing", node)
            if isinstance(node, ast.Name) and node.id not in source.names and _is_unfit(node, source):
                raise source.error(f"{node.id} cannot be compiled; expected loops over numbers, functions written in "
                                   "Python, and members of math and numpy", node)


def _count_indices(node: ast.AST) -> int:
    """The number of indices in `name[i, j, ...]`; 0 where the node is something else, or the number cannot be seen."""
    if not (isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and isinstance(node.slice, ast.Tuple)):
        return 0
    numbers = (ast.Slice, ast.Name, ast.BinOp, ast.UnaryOp)
    plain = (isinstance(part, numbers) or isinstance(getattr(part, "value", None), int) for part in node.slice.elts)
    return len(node.slice.elts) if all(plain) else 0


def _check_attribute(source: FunctionSource, node: ast.Attribute) -> None:
    """Refuse a member of a module or an array unless it is known to be safe."""
    value = source.names.get(node.value.id) if isinstance(node.value, ast.Name) else None
    if isinstance(node.value, ast.Attribute):
        _check_attribute(source, node.value)
    if not isinstance(node.ctx, ast.Load):
        raise source.error(f"it sets .{node.attr}; expected that it writes to elements of its arrays", node)
    if isinstance(value, types.ModuleType):
        if value is np and not array_words.is_known(node.attr):
            raise source.error(f"numpy.{node.attr} cannot be compiled; expected loops, numpy's functions of numbers, "
                               f"and of arrays {', '.join(sorted(array_words.OF_ARRAYS))} (an array to work in can be "
                               "an output)", node)
    elif node.attr not in array_words.ATTRIBUTES:
        raise source.error(f".{node.attr} cannot be compiled, or is a way to memory that is not checked; expected "
                           f"an index for each axis, or {', '.join(sorted(array_words.ATTRIBUTES))}", node)


def _is_unfit(node: ast.Name, source: FunctionSource) -> bool:
    """Whether a name is one of Python's own that compiled code does not have."""
    if not isinstance(node.ctx, ast.Load) or node.id in source.function.__code__.co_varnames:
        return False
    value = getattr(builtins, node.id, None)
    is_error = isinstance(value, type) and issubclass(value, BaseException)
    return value is not None and not is_error and node.id not in array_words.CALLED


def _check_stores(source: FunctionSource, written: Sequence[str]) -> None:
    """Refuse assignments to elements of arrays that are inputs."""
    for node in ast.walk(source.tree):
        target = node.target if isinstance(node, ast.AugAssign) else node
        if isinstance(target, ast.Subscript) and isinstance(target.ctx, ast.Store):
            target = target.value
        elif not isinstance(node, ast.AugAssign):
            continue
        if isinstance(target, ast.Name):
            name = target.id
            if name in source.inputs and name not in written:
                raise source.error(f"it writes to {name}, an input; expected that it writes to {', '.join(written)}",
                                   node)
