"""The words of the typed source of kernels (targets/cpu/emit/vocabulary.py) for Numba.

What a word does for arguments of given dtypes is a function of LLVM IR, which the CPU's vocabulary prints, so a word
means the same to Numba and to the CPU's translator. Numba's code calls that function, whose name says all about it;
`definitions` prints those that a module calls, and LLVM puts them in their callers' place. A function such as `exp_`
is Python source instead, printed by targets/formulas.py, which Numba compiles in the same context.
"""
from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir as llvm_ir
from numba.core import cgutils, errors, types
from numba.core.datamodel import register_default
from numba.core.datamodel.models import OpaqueModel
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature

from mxc.compiler.error import MXNetError
from mxc.compiler.kernel.canonical import LANES
from mxc.compiler.kernel.ir import computing_dtype
from mxc.compiler.system import syntax
from mxc.compiler.targets.cpu.emit.builder import BYTES, TYPES
from mxc.compiler.targets.cpu.emit.skeletons import TILE
from mxc.compiler.targets.cpu.emit.typed import DTYPES, Buffer, Steps, Typed
from mxc.compiler.targets.cpu.emit.vocabulary import OPERATIONS, buffer_at, scratch_at, words
from mxc.compiler.targets.cpu.library.arithmetic import register_type
from mxc.compiler.targets.cpu.library.product import with_products
from mxc.compiler.targets.cpu.machine.isa import PLAIN, Isa
from mxc.compiler.targets.formulas import RANDOM, formula
from mxc.compiler.targets.numba import lowering

PREFIX = "mxc_word"
LOCALS = {"lanes": max(LANES), "tile": TILE * TILE}  # elements of the buffers that `lanes_float32()`, ... make
DIVISIONS = {"floordiv": ast.FloorDiv, "mod": ast.Mod}
POINTER = llvm_ir.IntType(8).as_pointer()


class BufferType(types.Type):
    """An address with a dtype and a position (None for memory of the function's own), like `typed.Buffer`."""

    def __init__(self, dtype: str, position: int | None):
        self.dtype, self.position = dtype, position
        super().__init__(f"mxc_buffer_{dtype}_{position}")


register_default(BufferType)(OpaqueModel)


class Word(NamedTuple):
    """A word for arguments of these kinds. A kind is a dtype, "args" for the kernel's pointers, or a buffer's dtype and
    position."""

    name: str
    kinds: tuple[Any, ...]

    @property
    def symbol(self) -> str:
        return ".".join([PREFIX, self.name, *(k if isinstance(k, str) else f"{k[0]}_{k[1]}" for k in self.kinds)])


_named: dict[str, Word] = {}  # by symbol


def numba_type(dtype: str) -> types.Type:
    """Numba's type for a dtype in registers."""
    dtype = computing_dtype(dtype)
    return types.boolean if dtype == "bool" else getattr(types, dtype)


def _kind(x: types.Type) -> Any:
    x = types.unliteral(x)
    if isinstance(x, BufferType):
        return x.dtype, x.position
    if x == types.voidptr:
        return "args"
    name = "bool" if x == types.boolean else str(x)
    if name not in DTYPES:
        raise errors.TypingError(f"{x} is no dtype of kernels")
    return name


def _llvm_type(kind: Any) -> llvm_ir.Type:
    if not isinstance(kind, str) or kind == "args":
        return POINTER
    text = register_type(kind)
    floats = {"float": llvm_ir.FloatType, "double": llvm_ir.DoubleType}
    return floats[text]() if text in floats else llvm_ir.IntType(int(text[1:]))


# --- the functions that the CPU's vocabulary prints


def _meaning(name: str) -> Callable[..., Any]:
    """What prints a word: of the vocabulary, of a kernel's buffers, of their elements, or of a division."""
    if name in DIVISIONS:
        return lambda s, x, y: s.binary(name, x, y)
    if name in ("getitem", "setitem"):
        return lambda s, b, i, *x: (s.store(b, s.whole(i), *x) if x else s.load(b, s.whole(i)))
    head, _, rest = name.partition(".")
    if head in ("buffer", "scratch"):
        dtype, position = rest.split(".")
        return (buffer_at if head == "buffer" else scratch_at)(dtype, int(position))
    return words()[name]


def _print(s: Steps, word: Word) -> Typed | Buffer | None:
    """Print a word's function, whose first parameter is where its result goes if it has one, and give that result."""
    kinds = [("ptr" if isinstance(_llvm_type(k), llvm_ir.PointerType) else register_type(k)) for k in word.kinds]
    parameters = ", ".join(["ptr result", *(f"{kind} x{i}" for i, kind in enumerate(kinds))])
    with s.b.function(word.symbol, parameters) as (place, *values):
        arguments = [Typed(v, k) if isinstance(k, str) else Buffer(v, *k)
                     for v, k in zip(values, word.kinds, strict=True)]
        found = _meaning(word.name)(s, *arguments)
        if found is not None:
            value = found.value if isinstance(found, Typed) else found.pointer
            s.b.raw(f"store {value.type} {value.text}, ptr {place.text}")
    return found


@functools.cache
def _result(word: Word) -> types.Type:
    """What a word gives, as a Numba type. Raises MXNetError for arguments that it does not take."""
    found = _print(Steps(PLAIN, 0), word)
    _named[word.symbol] = word
    if found is None:
        return types.none
    return BufferType(found.dtype, found.position) if isinstance(found, Buffer) else numba_type(found.dtype)


def definitions(symbols: Iterable[str], isa: Isa, buffers: int) -> str:
    """LLVM IR that defines these functions, of a kernel with so many buffers, for CPUs that run `isa`."""
    s = Steps(isa, buffers)
    s.b.attributes = "nounwind alwaysinline"
    for symbol in symbols:
        _print(s, _named[symbol])
    return with_products(s.b.module() + s.metadata(), isa, s.products)


def _call(builder: Any, word: Word, returns: types.Type, values: Any) -> Any:
    """Numba's code that calls a word's function."""
    kind = _llvm_type(_kind(returns)) if returns != types.none else llvm_ir.IntType(8)
    place = cgutils.alloca_once(builder, kind)
    found = llvm_ir.FunctionType(llvm_ir.VoidType(), [POINTER, *map(_llvm_type, word.kinds)])
    function = cgutils.get_or_insert_function(builder.module, found, word.symbol)
    builder.call(function, [builder.bitcast(place, POINTER), *values])
    return builder.load(place) if returns != types.none else None


def _lowered(word: Word, returns: types.Type) -> Any:
    def code(context: Any, builder: Any, sig: Any, values: Any) -> Any:
        found = _call(builder, word, returns, values)
        return context.get_dummy_value() if found is None else found

    return code


# --- as Numba's functions

Code = Callable[..., Any]  # (context, builder, signature, values) -> value, as Numba lowers a call
Typing = Callable[..., "tuple[Any, Code]"]  # Numba types of the arguments -> signature, code


def _function(name: str, typed: Typing) -> Any:
    """A function of Numba's that is typed, and lowered, as `typed` says for its arguments."""

    def function(*arguments):
        raise NotImplementedError(f"{name} is there when Numba compiles")

    class Template(AbstractTemplate):
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            return typed(*map(types.unliteral, args))[0]

    def code(context: Any, builder: Any, sig: Any, values: Any) -> Any:
        return typed(*sig.args)[1](context, builder, sig, values)

    infer_global(function, types.Function(Template))
    lower_builtin(function, types.VarArg(types.Any))(code)
    return function


@functools.cache
def word_function(name: str) -> Any:
    """The word `name` as a function that Numba compiles."""
    op = name.removesuffix("_")

    def typed(*arguments: types.Type) -> tuple[Any, Code]:
        kinds = tuple(map(_kind, arguments))
        if op in OPERATIONS or op in RANDOM:
            dtypes, result = (("int64",) * 3, RANDOM[op]) if op in RANDOM else (kinds, kinds[0])
            implementation = _implementation(op, dtypes, result)
            if implementation is not None:
                return _of_formula(implementation, signature(numba_type(result), *map(numba_type, dtypes)))
        found = Word(name, kinds)
        try:
            returns = _result(found)
        except MXNetError as error:
            raise errors.TypingError(str(error)) from error
        return signature(returns, *arguments), _lowered(found, returns)

    return _function(name, typed)


def _of_formula(implementation: Callable[..., Any], sig: Any) -> tuple[Any, Code]:
    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        made = context.compile_subroutine(builder, implementation, sig, flags=lowering.flags())
        return context.call_internal(builder, made.fndesc, sig, values)

    return sig, code


@functools.cache
def _implementation(op: str, dtypes: tuple[str, ...], result: str) -> Callable[..., Any] | None:
    """The Python function of an operation that is more than a step; None for one that is not."""
    source = formula(op, dtypes, result)
    return function_of(source, f"{op}_") if source else None


@functools.cache
def local_function(name: str) -> Any:
    """`lanes_float32`, ...: memory of the function's own."""
    head, dtype = name.split("_")

    def code(context: Any, builder: Any, sig: Any, values: Any) -> Any:
        kind = llvm_ir.ArrayType(llvm_ir.IntType(8), LOCALS[head] * BYTES[dtype])
        place = cgutils.alloca_once(builder, kind)
        place.align = 64
        return builder.bitcast(place, POINTER)

    return _function(name, lambda: (signature(BufferType(dtype, None)), code))


@functools.cache
def function_of_users(name: str) -> Any:
    """A function that comes with the job: the word's symbol is `mxc_function_NAME_DTYPE`."""

    def typed(*arguments: types.Type) -> tuple[Any, Code]:
        dtype = _kind(arguments[0])

        def code(context: Any, builder: Any, sig: Any, values: Any) -> Any:
            kind = llvm_ir.FunctionType(_llvm_type(dtype), [_llvm_type(dtype)] * len(values))
            symbol = f"mxc_function_{name.removesuffix('_')}_{dtype}"
            return builder.call(cgutils.get_or_insert_function(builder.module, kind, symbol), values)

        return signature(numba_type(dtype), *[numba_type(dtype)] * len(arguments)), code

    return _function(name, typed)


@infer_global(operator.getitem)
class _GetItem(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if len(args) == 2 and isinstance(args[0], BufferType) and isinstance(args[1], types.Integer):
            return signature(numba_type(args[0].dtype), args[0], types.unliteral(args[1]))
        return None


@infer_global(operator.setitem)
class _SetItem(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if isinstance(args[0], BufferType) and isinstance(args[1], types.Integer):
            return signature(types.none, args[0], *map(types.unliteral, args[1:]))
        return None


@lower_builtin(operator.getitem, BufferType, types.Integer)
@lower_builtin(operator.setitem, BufferType, types.Integer, types.Any)
def _element(context: Any, builder: Any, sig: Any, values: Any) -> Any:
    word = Word("getitem" if len(sig.args) == 2 else "setitem", tuple(map(_kind, sig.args)))
    returns = _result(word)
    return _lowered(word, returns)(context, builder, sig, values)


# --- the names that the source may use


@functools.cache
def _space() -> dict[str, Any]:
    locals_ = {f"{head}_{dtype}" for head in LOCALS for dtype in TYPES}
    return {name: local_function(name) if name in locals_ else word_function(name) for name in (*words(), *DIVISIONS)}


class _Rewritten(ast.NodeTransformer):
    """Rewrites source for Numba. `//` and `%` become words, because Numba's may overflow, by -1. A loop whose step is
    no constant becomes one that counts by itself, because Numba's raises an exception where the step is 0."""

    def visit_For(self, node: ast.For) -> ast.stmt | list[ast.stmt]:
        self.generic_visit(node)
        bounds = node.iter.args if isinstance(node.iter, ast.Call) else []
        if len(bounds) < 3 or isinstance(bounds[2], ast.Constant):
            return node
        at, stop, step = (f"{name}_of_line_{node.lineno}" for name in ("at", "stop", "step"))
        head, loop = syntax.parse(f"{at}, {stop}, {step} = {', '.join(map(ast.unparse, bounds))}\n"
                               f"while {at} < {stop}:\n    {ast.unparse(node.target)} = {at}\n    {at} += {step}").body
        assert isinstance(loop, ast.While)
        loop.body[1:1] = node.body
        return [head, loop]

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        name = next((name for name, op in DIVISIONS.items() if isinstance(node.op, op)), "")
        return ast.Call(ast.Name(name, ast.Load()), [node.left, node.right], []) if name else node


def function_of(source: str, name: str, buffers: Iterable[str] = (), scratch: Iterable[str] = ()) -> Callable[..., Any]:
    """The function `name` that typed source defines. buffers, scratch: dtypes of those of a kernel."""
    buffers = list(buffers)
    numbers = {dtype: getattr(np, dtype) for dtype in DTYPES if dtype != "bool"}  # what constants are made with
    space: dict[str, Any] = _space() | numbers
    for i, dtype in enumerate(buffers):
        space[f"buffer{i}"] = word_function(f"buffer.{dtype}.{i}")
    for i, dtype in enumerate(scratch):
        space[f"scratch{i}"] = word_function(f"scratch.{dtype}.{len(buffers) + i}")
    tree = ast.fix_missing_locations(_Rewritten().visit(syntax.parse(source)))
    exec(compile(tree, f"<{name}>", "exec"), space)
    casts = {id(kind): word_function(dtype) for dtype, kind in numbers.items()}
    space.update({key: casts[id(value)] for key, value in space.items() if id(value) in casts})
    made = space[name]
    space.update({unknown: function_of_users(unknown) for unknown in made.__code__.co_names
                  if unknown.endswith("_") and unknown not in space})
    return made
