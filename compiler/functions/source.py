"""The source of a function that a program has written: its syntax tree, what it refers to, and errors that quote it."""
from __future__ import annotations

import ast
import builtins
import functools
import hashlib
import inspect
import linecache
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.system import syntax

MODULES = ("math", "numpy")  # modules whose members a function may use
Definition = ast.FunctionDef | ast.Lambda


@dataclass(frozen=True)
class FunctionSource:
    """A Python function as it was when it was read.

    operator: the name that it is registered under, for messages. role: what it is to the operator: "function" or
    "gradient". tree: its definition, with the lines of its file. names: what its free names stood for (modules,
    numbers, tuples of numbers, other functions' FunctionSources). Names of Python's own (`range`, `abs`) are not among
    them.
    """

    operator: str
    role: str
    function: Callable[..., Any]
    file: str
    tree: Definition
    names: Mapping[str, Any]

    @property
    def inputs(self) -> list[str]:
        """The names of its positional parameters."""
        return [a.arg for a in (*self.tree.args.posonlyargs, *self.tree.args.args)]

    @property
    def keywords(self) -> dict[str, Any]:
        """Its keyword-only parameters with their defaults, `inspect.Parameter.empty` for those without."""
        # inspect.signature would give that of the function which functools.wraps names.
        defaults = self.function.__kwdefaults__ or {}
        return {a.arg: defaults.get(a.arg, inspect.Parameter.empty) for a in self.tree.args.kwonlyargs}

    @functools.cached_property
    def digest(self) -> str:
        """32 hexadecimal digits of all that its results depend on: its text without comments, and its names' values."""
        parts = [ast.dump(_bare(self.tree))]
        for name, value in sorted(self.names.items()):
            meaning = value.digest if isinstance(value, FunctionSource) else getattr(value, "__name__",
                                                                                     None) or repr(value)
            parts.append(f"{name}={type(value).__name__} {meaning}")
        parts.append(repr(sorted((k, repr(v)) for k, v in self.keywords.items())))
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]

    @property
    def statements(self) -> list[ast.stmt]:
        """Its body without the docstring; of a lambda, the return of its expression."""
        if isinstance(self.tree, ast.Lambda):
            return [ast.copy_location(ast.Return(self.tree.body), self.tree.body)]
        body = list(self.tree.body)
        return body[1:] if ast.get_docstring(self.tree) is not None else body

    def line(self, number: int) -> str:
        """A line of its file, without the space around it."""
        return linecache.getline(self.file, number).strip()

    def error(self, message: str, where: ast.AST | int | None = None) -> MXNetError:
        """An error that names the operator, the function, its file and a line of it (default: the first), and quotes
        the line."""
        number = where if isinstance(where, int) else getattr(where, "lineno", self.tree.lineno)
        name = getattr(self.tree, "name", "lambda")
        return MXNetError(f"operator {self.operator}: {self.role} {name} ({self.file}, line {number}): {message}\n"
                          f"    {self.line(number)}")


def read(operator: str, role: str, function: Callable[..., Any]) -> FunctionSource:
    """The source of `function`, and of the functions in Python that it calls. What its names mean is kept as it is now.

    Raises MXNetError where the source cannot be found, and for a name that means something else than numbers, tuples of
    numbers, functions in Python and members of `math` and `numpy`.
    """
    return _read(operator, role, function, ())


def _read(operator: str, role: str, function: Any, callers: tuple[Any, ...]) -> FunctionSource:
    function = getattr(function, "py_func", function)  # Numba's decorator keeps the Python function there.
    if not isinstance(function, types.FunctionType):
        raise MXNetError(f"operator {operator}: its {role} is {function!r}; expected a function written in Python")
    file, tree = _definition(operator, role, function)
    names: dict[str, Any] = {}
    source = FunctionSource(operator, role, function, file, tree, names)
    _check_parameters(source)
    loads = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    free = {*function.__code__.co_freevars, *_globals_of(function.__code__)}
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for node in loads:
        name = node.id
        if name in names or name not in free:
            continue
        if name in cells:
            try:
                value = cells[name].cell_contents
            except ValueError:
                raise source.error(f"{name} has no value yet", node) from None
        elif name in function.__globals__:
            value = function.__globals__[name]
        elif hasattr(builtins, name):
            continue
        else:
            raise source.error(f"{name} is not defined", node)
        names[name] = _meaning(source, node, value, (*callers, function))
    return source


def _meaning(source: FunctionSource, node: ast.Name, value: Any, callers: tuple[Any, ...]) -> Any:
    """The value that a free name keeps. Raises MXNetError for one that no function of an operator may refer to."""
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        return value
    if isinstance(value, tuple) and all(isinstance(v, (bool, int, float)) for v in value):
        return value
    if isinstance(value, types.ModuleType) and value.__name__ in MODULES:
        return value
    if getattr(value, "__module__", None) in ("math", "_operator") or isinstance(value, np.ufunc) or (
            isinstance(value, type) and value in _TYPES):
        return value
    plain = getattr(value, "py_func", value)
    if isinstance(plain, types.FunctionType):
        if plain in callers:
            raise source.error(f"{node.id} calls itself; expected loops instead", node)
        return _read(source.operator, source.role, plain, callers)
    what = "tuple of more than numbers" if isinstance(value, tuple) else type(value).__name__
    raise source.error(f"{node.id} is a {what}; expected numbers, tuples of numbers, functions written "
                       "in Python, or members of math and numpy (an array is to be an input)", node)


_TYPES = frozenset(getattr(np, name) for name in ("float16", "float32", "float64", "bool_", "int8", "int16", "int32",
                                                   "int64", "uint8", "uint16", "uint32", "uint64"))


def _check_parameters(source: FunctionSource) -> None:
    arguments = source.tree.args
    if arguments.vararg or arguments.kwarg:
        raise source.error("it has * or ** parameters; expected one name for each argument")
    if arguments.defaults:
        raise source.error("an input has a default; expected parameters with defaults behind a `*`: "
                           "f(x, *, slope=0.1)")


def _globals_of(code: types.CodeType) -> set[str]:
    """Names that a code object, or one within it, reads as globals or attributes."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _globals_of(constant)
    return found


def _definition(operator: str, role: str, function: types.FunctionType) -> tuple[str, Definition]:
    """The file of a function, and its syntax tree there. The function is compared with what the file compiles to now:
    a file may have been edited since it was imported."""
    code = function.__code__
    linecache.checkcache(code.co_filename)  # drops lines that were read before the file changed
    lines = linecache.getlines(code.co_filename, function.__globals__)
    where = f"operator {operator}: its {role} {function.__name__}"
    if not lines:
        raise MXNetError(f"{where} was made from text that is not kept ({code.co_filename}); expected a function in a "
                         "file or a notebook's cell")
    try:
        module, codes = _module("".join(lines))
    except (SyntaxError, ValueError) as error:
        raise MXNetError(f"{where}: {code.co_filename} has changed since it was imported ({error})") from None
    fitting = [n for n in ast.walk(module) if isinstance(n, Definition) and _first_line(n) == code.co_firstlineno
               and getattr(n, "name", "<lambda>") == code.co_name]
    if len(fitting) > 1:  # A line may hold several lambdas.
        fitting = [n for n in fitting if _is_within(code, n)] or fitting
    if len(fitting) > 1 and len({ast.dump(n) for n in fitting}) > 1:
        raise MXNetError(f"{where} ({code.co_filename}, line {code.co_firstlineno}) is one of several functions on its "
                         "line; expected a line of its own")
    # Names that no source text can have come from a tool that rewrites functions, as pytest rewrites `assert`.
    is_rewritten = any(name.startswith("@") for name in (*code.co_names, *code.co_varnames))
    if not fitting or not (is_rewritten or _essence(code) in codes):
        kind = "an asynchronous function" if inspect.iscoroutinefunction(function) else "not in its file as it is now"
        raise MXNetError(f"{where} ({code.co_filename}, line {code.co_firstlineno}) is {kind}; expected a plain "
                         "function of a file that has not changed since it was imported (import it again)")
    return code.co_filename, fitting[0]


@functools.lru_cache(maxsize=8)
def _module(text: str) -> tuple[ast.Module, frozenset[object]]:
    """The syntax tree of a file, and the `_essence` of each code object in it. Raises SyntaxError, and ValueError for
    null bytes."""
    module = syntax.parse(text)
    found, waiting = set(), [compile(text, "<source>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)]
    while waiting:
        code = waiting.pop()
        found.add(_essence(code))
        waiting += [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return module, frozenset(found)


def _first_line(node: Definition) -> int:
    decorators = getattr(node, "decorator_list", [])
    return decorators[0].lineno if decorators else node.lineno


def _is_within(code: types.CodeType, node: Definition) -> bool:
    """Whether the code's places in the file are those of a definition's body."""
    body = node.body if isinstance(node, ast.Lambda) else node
    first, last = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    places = [(line, column, end, to) for line, end, column, to in code.co_positions()
              if None not in (line, end, column, to) and column != to]  # Instructions that do nothing have no columns.
    return bool(places) and all(first <= p[:2] and p[2:] <= last for p in places)


def _essence(code: types.CodeType) -> tuple[object, ...]:
    """All that decides what a code object does, and the line and name that it has."""
    constants = tuple(_essence(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts)
    return (code.co_name, code.co_firstlineno, code.co_code, constants, code.co_names, code.co_varnames,
            code.co_freevars, code.co_cellvars)


def _bare(tree: Definition) -> ast.AST:
    """A definition without its name, docstring, decorators and annotations, on which no result depends."""
    if isinstance(tree, ast.Lambda):
        return tree
    source = FunctionSource("", "", lambda: None, "", tree, {})
    plain = syntax.parse(ast.unparse(ast.Module(source.statements or [ast.Pass()], [])))
    names = [a.arg for a in (*tree.args.posonlyargs, *tree.args.args)], [a.arg for a in tree.args.kwonlyargs]
    return ast.Module([ast.Expr(ast.Constant(repr(names))), *plain.body], [])
