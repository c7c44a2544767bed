"""What the printed Numba source of the CPU may say beyond plain Python: buffers and typed primitives, as LLVM IR.

A buffer is an address with a dtype and a position; `b[i]` loads and `b[i] = x` stores. Each position has an alias scope
of its own, so LLVM knows that a store through one buffer changes nothing read through another and vectorises without
run-time checks. A store may still be in place over a load of the same index: what it stores depends on that load.

Functions such as `exp` are expanded to arithmetic here, not in the source, which stays short and quick to compile.
Imports Numba: only the compiling process does so.
"""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir as llvm
from numba.core import types
from numba.core.cgutils import alloca_once, get_or_insert_function
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, models, register_model

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.canonical import LANES
from mxc.compiler.kernel.math import expand
from mxc.compiler.kernel.philox import uniform
from mxc.compiler.targets.cpu.emit import LLVM, Emitter, align, narrowed, widened
from mxc.compiler.targets.cpu.library.product import product_symbol
from mxc.compiler.targets.cpu.loop_forms import TILE

POINTER = llvm.PointerType()
WORD = llvm.IntType(64)
SCALARS: dict[str, types.Type] = {
    name: getattr(types, name)
    for name in ("float32", "float64", "uint8", "int8", "uint16", "int16", "int32", "uint32", "int64", "uint64")
}
NAMES = {t: name for name, t in SCALARS.items()} | {types.boolean: "bool"}
SCALARS |= {"bool": types.boolean, "float16": types.float32}  # float16 in registers is a float32
ROLES = ("add", "sub", "mul", "div", "mod", "min", "max", "abs", "fma", "bitcast", "shl", "shr", "mulhi", "sqrt",
         "floor", "ceil", "trunc", "rint", "pow", *ir.FUNCTIONS)  # vocabulary names are these with "_" appended


class Buffer(types.Type):
    """`position`: its alias scope, one of `count` (0: none). float16 is float32 once loaded."""

    def __init__(self, dtype: str, position: int, count: int):
        self.dtype, self.position, self.count = dtype, position, count
        super().__init__(name=f"buffer({dtype}, {position} of {count})")

    @property
    def element(self) -> types.Type:
        return SCALARS[self.dtype]


@register_model(Buffer)
class _BufferModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any):
        super().__init__(dmm, fe_type, WORD)  # the address


@infer_global(operator.getitem)
class _GetItem(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if isinstance(args[0], Buffer):
            return signature(args[0].element, args[0], types.int64)
        return None


@infer_global(operator.setitem)
class _SetItem(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if isinstance(args[0], Buffer):
            return signature(types.none, args[0], types.int64, args[0].element)
        return None


def _place(builder: Any, buffer: Buffer, base: Any, index: Any) -> Any:
    return builder.gep(builder.inttoptr(base, POINTER), [index], inbounds=True, source_etype=LLVM[buffer.dtype])


def _scoped(module: Any, instruction: Any, buffer: Buffer) -> None:
    """Alias metadata: in the scope of its own position, apart from all others."""
    if buffer.count == 0:
        return
    domain = module.add_metadata(["mxc"])
    scopes = [module.add_metadata([f"b{i}", domain]) for i in range(buffer.count)]
    instruction.set_metadata("alias.scope", module.add_metadata([scopes[buffer.position]]))
    others = [s for i, s in enumerate(scopes) if i != buffer.position]
    if others:
        instruction.set_metadata("noalias", module.add_metadata(others))


def _load(builder: Any, buffer: Buffer, base: Any, index: Any) -> Any:
    value = builder.load(_place(builder, buffer, base, index), typ=LLVM[buffer.dtype], align=align(buffer.dtype))
    _scoped(builder.module, value, buffer)
    return widened(builder, buffer.dtype, value)


@lower_builtin(operator.getitem, Buffer, types.int64)
def _get(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _load(builder, sig.args[0], *args)


@lower_builtin(operator.setitem, Buffer, types.int64, types.Any)
def _set(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    buffer, (base, index, value) = sig.args[0], args
    place = _place(builder, buffer, base, index)
    store = builder.store(narrowed(builder, buffer.dtype, value), place, align=align(buffer.dtype))
    _scoped(builder.module, store, buffer)
    return context.get_dummy_value()


@intrinsic
def load_where(typingctx, buffer, index, when, fill):
    """buffer[index] where `when` holds, else fill; memory is not touched where it does not."""
    result = buffer.element

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        base, place, condition, other = args
        before = builder.basic_block
        with builder.if_then(condition):
            value = _load(builder, sig.args[0], base, place)
            inside = builder.basic_block
        merged = builder.phi(other.type)
        merged.add_incoming(value, inside)
        merged.add_incoming(other, before)
        return merged

    return signature(result, buffer, types.int64, types.boolean, result), codegen


def buffer_at(dtype: str, position: int, count: int, scratch: bool = False) -> Callable[..., Any]:
    """`f(args, i)`: the buffer whose address is the i-th of `args`; or `f(scratch, offset)`, `offset` bytes into it."""
    made = Buffer(dtype, position, count)

    @intrinsic
    def buffer(typingctx, args, where):
        def codegen(context: Any, builder: Any, sig: Any, values: Any) -> Any:
            base, offset = values
            element = llvm.IntType(8) if scratch else POINTER
            place = builder.gep(builder.inttoptr(base, POINTER), [offset], inbounds=True, source_etype=element)
            if scratch:
                return builder.ptrtoint(place, WORD)
            pointer = builder.load(place, typ=WORD, align=8)
            pointer.set_metadata("invariant.load", builder.module.add_metadata([]))
            return pointer

        return signature(made, types.int64, types.int64), codegen

    return buffer


def local(dtype: str, size: int) -> Callable[..., Any]:
    """`f()`: a buffer of its own, which LLVM keeps in vector registers where it can."""
    made = Buffer(dtype, 0, 0)

    @intrinsic
    def buffer(typingctx):
        def codegen(context: Any, builder: Any, sig: Any, values: Any) -> Any:
            return builder.ptrtoint(alloca_once(builder, llvm.ArrayType(LLVM[dtype], size)), WORD)

        return signature(made), codegen

    return buffer


@intrinsic
def transposed(typingctx, tile, source, index, stride):
    """tile[TILE * r + q] = source[index + r + stride * q] for r and q below TILE, in vector registers."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        to, base, start, step = args
        dtype = sig.args[1].dtype
        vector = llvm.VectorType(llvm.IntType(8 * align(dtype)), TILE)
        rows = []
        for q in range(TILE):
            place = builder.add(start, builder.mul(step, llvm.Constant(WORD, q)))
            row = builder.load(_place(builder, sig.args[1], base, place), typ=vector, align=align(dtype))
            _scoped(builder.module, row, sig.args[1])
            rows.append(row)
        for size in (1, 2, 4):  # exchange squares of `size` with those beside them
            low = [k + (0 if k & size == 0 else TILE - size) for k in range(TILE)]
            pairs = [(r, r + size) for r in range(TILE) if r & size == 0]
            for one, other in pairs:
                masks = [llvm.Constant(llvm.VectorType(llvm.IntType(32), TILE), [k + more for k in low])
                         for more in (0, size)]
                rows[one], rows[other] = (builder.shuffle_vector(rows[one], rows[other], m) for m in masks)
        for r, row in enumerate(rows):
            place = _place(builder, sig.args[0], to, llvm.Constant(WORD, TILE * r))
            builder.store(row, place, align=align(dtype))
        return context.get_dummy_value()

    return signature(types.none, tile, source, types.int64, types.int64), codegen


@intrinsic
def product_(typingctx, to, at, rows, left, start, depth, packed, columns):
    """A product of rows with a packed matrix, by a function that targets/cpu/library/product.py prints."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        (out, at, rows, x, start, depth, matrix, columns), kinds = args, sig.args
        places = [_place(builder, kinds[0], out, at), _place(builder, kinds[3], x, start),
                  builder.inttoptr(matrix, POINTER)]
        numbers = [rows, depth, columns]
        kind = llvm.FunctionType(llvm.VoidType(), [POINTER] * 3 + [WORD] * 3)
        function = get_or_insert_function(builder.module, kind, product_symbol(kinds[6].dtype))
        builder.call(function, [*places, *numbers])
        return context.get_dummy_value()

    whole = types.int64
    return signature(types.none, to, whole, whole, left, whole, whole, packed, whole), codegen


@intrinsic
def integer(typingctx, args, position):
    """The int64 at `position` of args."""

    def codegen(context: Any, builder: Any, sig: Any, values: Any) -> Any:
        place = builder.gep(builder.inttoptr(values[0], POINTER), [values[1]], inbounds=True, source_etype=WORD)
        value = builder.load(place, typ=WORD, align=8)
        value.set_metadata("invariant.load", builder.module.add_metadata([]))
        return value

    return signature(types.int64, types.int64, types.int64), codegen


@intrinsic
def select(typingctx, condition, yes, no):
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.select(*args)

    return signature(yes, types.boolean, yes, yes), codegen


@intrinsic
def half(typingctx, x):
    """float32 rounded to float16 and back."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return widened(builder, "float16", narrowed(builder, "float16", args[0]))

    return signature(types.float32, types.float32), codegen


@intrinsic
def sum_(typingctx, total, x):
    """total + x in any order: LLVM may keep several partial sums."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if isinstance(sig.args[0], types.Float):
            return builder.fadd(*args, flags=("reassoc", "contract"))
        return builder.add(*args)

    return signature(total, total, total), codegen


@intrinsic
def prod_(typingctx, total, x):
    """total * x in any order."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if isinstance(sig.args[0], types.Float):
            return builder.fmul(*args, flags=("reassoc", "contract"))
        return builder.mul(*args)

    return signature(total, total, total), codegen


def _typed(op: str, result: str | None = None, index: bool = False) -> Callable[..., Any]:
    """The intrinsic of one IR operation; its dtype is that of its last argument (`index`: nonnegative int64)."""

    def typing(typingctx: Any, *args: Any) -> Any:
        dtype = ir.INDEX if index else NAMES[args[-1]]
        output = result or dtype

        def codegen(context: Any, builder: Any, sig: Any, values: Any) -> Any:
            places = [ir.make("const", (), dtype, f"argument {i}") for i in range(len(values))]
            emitter = Emitter(builder, dict(zip(map(id, places), values, strict=True)))
            return emitter.emit(expand(ir.make(op, places, output)))

        return signature(SCALARS["int64" if output == ir.INDEX else output], *args), codegen

    count = ir.ARITHMETIC.get(op) or ir.FUNCTIONS[op]
    names = ", ".join("abc"[:count])
    space: dict[str, Any] = {"typing": typing}
    exec(f"def {op}_(typingctx, {names}):\n    return typing(typingctx, {names})\n", space)
    return intrinsic(space[f"{op}_"])


@intrinsic
def rand_(typingctx, seed, offset, index):
    """uint32 of the counter-based generator."""
    return _random(lambda *places: ir.make("rand", places, "uint32"), types.uint32)


@intrinsic
def uniform_(typingctx, seed, offset, index):
    """float64 in [0, 1) of the counter-based generator."""
    return _random(uniform, types.float64)


def _random(value: Callable[..., ir.Value], result: types.Type) -> tuple[Any, Callable[..., Any]]:
    """Signature and code of a value over seed, offset and index."""

    def codegen(context: Any, builder: Any, sig: Any, values: Any) -> Any:
        places = [ir.make("const", (), "int64", f"argument {i}") for i in range(3)]
        emitter = Emitter(builder, dict(zip(map(id, places), values, strict=True)))
        return emitter.emit(expand(value(*places)))

    return signature(result, types.int64, types.int64, types.int64), codegen


def names() -> dict[str, Any]:
    """The global names of a printed function."""
    space: dict[str, Any] = {f"{op}_": _typed(op) for op in ROLES if op != "bitcast"}
    space |= {f"bits_{dtype}": _typed("bitcast", dtype) for dtype in SCALARS if dtype not in ("bool", "float16")}
    space |= {f"whole_{dtype}": _typed("cast", dtype) for dtype in SCALARS if "int" in dtype}
    space |= {"udiv": _typed("div", index=True), "umod": _typed("mod", index=True)}
    space |= {"load_where": load_where, "integer": integer, "select": select, "half": half, "sum_": sum_}
    space |= {f"lanes_{dtype}": local(dtype, max(LANES)) for dtype in SCALARS if dtype != "float16"}
    space |= {f"tile_{dtype}": local(dtype, TILE * TILE) for dtype in SCALARS} | {"transposed": transposed}
    space |= {"prod_": prod_, "product_": product_, "rand_": rand_, "uniform_": uniform_}
    space |= {name: t for name, t in SCALARS.items() if name not in ("bool", "float16")}
    return space
