"""The words of the typed source of kernels beyond plain Python: dtypes, buffers and typed primitives.

Functions such as `exp_` are expanded to arithmetic here, not in the source, which stays short.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from mxc.compiler.error import MXNetError
from mxc.compiler.kernel import ir
from mxc.compiler.kernel.canonical import LANES
from mxc.compiler.targets.cpu.emit.builder import BYTES, TYPES, Array, Value, vector_type
from mxc.compiler.targets.cpu.emit.skeletons import TILE
from mxc.compiler.targets.cpu.emit.slides import slid
from mxc.compiler.targets.cpu.emit.sliding import COMBINED
from mxc.compiler.targets.cpu.emit.streams import claim, elsewhere, fence, fetch, streamed
from mxc.compiler.targets.cpu.emit.typed import DTYPES, INVARIANT, Buffer, Steps, Typed
from mxc.compiler.targets.cpu.library.arithmetic import register_type
from mxc.compiler.targets.cpu.library.product import product_symbol
from mxc.compiler.targets.formulas import RANDOM, expanded

OPERATIONS = ("add", "sub", "mul", "div", "mod", "min", "max", "abs", "fma", "shl", "shr", "mulhi", "sqrt", "floor",
              "ceil", "trunc", "rint", "pow", *ir.FUNCTIONS)  # their words are these with "_" appended
Word = Callable[..., Any]  # (Steps, arguments...) -> Typed, Buffer or None


def _apply(s: Steps, op: str, arguments: Sequence[Typed], result: str) -> Typed:
    root, places = expanded(op, tuple(a.dtype for a in arguments), result)
    return Typed(s.evaluate(root, {id(p): a.value for p, a in zip(places, arguments, strict=True)}), result)


def _operation(op: str, s: Steps, *arguments: Typed) -> Typed:
    """One operation of the kernel IR; arguments and result have one dtype."""
    dtypes = {a.dtype for a in arguments}
    if len(dtypes) != 1:
        raise MXNetError(f"{op}_: expected arguments of one dtype, got {', '.join(a.dtype for a in arguments)}")
    return _apply(s, op, arguments, dtypes.pop())


def operation(op: str) -> Word:
    """The word of one operation."""
    return functools.partial(_operation, op)


def _index(op: str, s: Steps, x: Typed, y: Typed) -> Typed:
    """Quotient and rest of integers that are not negative; the divisor is not 0."""
    if y.value.constant == 1:
        return x if op == "udiv" else s.number(0, "int64")
    return Typed(s.b.binary(op, s.whole(x), s.whole(y)), "int64")


def _bits(dtype: str, s: Steps, x: Typed) -> Typed:
    return Typed(s.b.convert("bitcast", x.value, register_type(dtype)), dtype)


def _collected(op: str, s: Steps, total: Typed, x: Typed) -> Typed:
    """total combined with x, in any order: LLVM may keep several partial results."""
    if total.dtype in ir.FLOATS:
        kind, y = total.value.type, s.cast(x, total.dtype).value
        return Typed(s.b.emit(kind, f"f{op} reassoc contract {kind} {total.value.text}, {y.text}"), total.dtype)
    return s.cast(s.binary(op, total, x), total.dtype)


def _random(op: str, result: str, s: Steps, *arguments: Typed) -> Typed:
    return _apply(s, op, [s.cast(a, "int64") for a in arguments], result)


def select(s: Steps, condition: Typed, yes: Typed, no: Typed) -> Typed:
    return Typed(s.b.select(s.truth(condition), yes.value, s.cast(no, yes.dtype).value), yes.dtype)


def half(s: Steps, x: Typed) -> Typed:
    """float32 rounded to float16 and back."""
    return Typed(s.arithmetic.rounded(x.value, "float16"), "float32")


def brain(s: Steps, x: Typed) -> Typed:
    """float32 rounded to bfloat16 and back."""
    return Typed(s.arithmetic.rounded(x.value, "bfloat16"), "float32")


def integer(s: Steps, args: Typed, position: Typed) -> Typed:
    """The int64 at `position` of args."""
    return Typed(_word(s, args, position, "i64"), "int64")


def _word(s: Steps, args: Typed, position: Typed, kind: str) -> Value:
    place = s.b.emit("ptr", f"getelementptr inbounds i64, ptr {args.value.text}, i64 {position.value.text}")
    return s.b.emit(kind, f"load {kind}, ptr {place.text}, align 8, {INVARIANT}")


def buffer_at(dtype: str, number: int) -> Word:
    """`f(args, i)`: the buffer whose address is the i-th of `args`."""
    return lambda s, args, position: Buffer(_word(s, args, position, "ptr"), dtype, number)


def scratch_at(dtype: str, number: int) -> Word:
    """`f(scratch, offset)`: the buffer that many bytes into the thread's private memory."""

    def scratch(s: Steps, base: Typed, offset: Typed) -> Buffer:
        text = f"getelementptr inbounds i8, ptr {base.value.text}, i64 {s.whole(offset).text}"
        return Buffer(s.b.emit("ptr", text), dtype, number)

    return scratch


def local(dtype: str, size: int) -> Word:
    """`f()`: a buffer of the function's own, which LLVM keeps in vector registers where it can."""
    return lambda s: Buffer(s.b.local(TYPES[dtype], size), dtype)


def load_where(s: Steps, buffer: Buffer, index: Typed, when: Typed, fill: Typed) -> Typed:
    """buffer[index] where `when` holds, else fill; memory is not touched where it does not."""
    other = s.cast(fill, ir.computing_dtype(buffer.dtype))
    value = s.b.choose(s.truth(when), lambda: s.load(buffer, s.whole(index)).value, lambda: other.value)
    return Typed(value, other.dtype)


def moved(s: Steps, buffer: Buffer, place: Typed) -> Buffer:
    """The buffer from index `place` on, which may lie outside of it."""
    return Buffer(Array(s.b, buffer.pointer, buffer.dtype).at(s.whole(place)).pointer, buffer.dtype, buffer.position)


def transposed(s: Steps, tile: Buffer, source: Buffer, index: Typed, stride: Typed) -> None:
    """tile[TILE * r + q] = source[index + r + stride * q] for r and q below TILE, in vector registers."""
    kind, size = vector_type(f"i{8 * BYTES[source.dtype]}", TILE), BYTES[source.dtype]
    rows = []
    for q in range(TILE):
        place = s.address(source, index.value + stride.value * q)
        rows.append(s.b.emit(kind, f"load {kind}, ptr {place.text}, align {size}{s.scoped(source)}"))
    for r, row in enumerate(s.b.transpose(rows)):
        place = s.address(tile, s.b.number(TILE * r))
        s.b.raw(f"store {kind} {row.text}, ptr {place.text}, align {size}")


# many parameters: the arguments of the word as routines write it (kernel/routines/words.py).
def product_(s: Steps, to: Buffer, at: Typed, rows: Typed, left: Buffer, start: Typed, depth: Typed, packed: Buffer,
             columns: Typed) -> None:
    """A product of rows with a packed matrix, by a function that targets/cpu/library/product.py prints."""
    places = [s.address(to, s.whole(at)), s.address(left, s.whole(start)), packed.pointer]
    s.products.add((left.dtype, packed.dtype))
    s.b.call(product_symbol(left.dtype, packed.dtype), [*places, *map(s.whole, (rows, depth, columns))])


@functools.cache
def words() -> dict[str, Word]:
    """Every word but those of a kernel's own buffers."""
    found: dict[str, Word] = {f"{op}_": operation(op) for op in OPERATIONS}
    for dtype in DTYPES:
        found[f"whole_{dtype}"] = found[dtype] = lambda s, x, dtype=dtype: s.cast(x, dtype)
        found[f"bits_{dtype}"] = functools.partial(_bits, dtype)
        found[f"lanes_{dtype}"] = local(dtype, max(LANES))
    found |= {f"tile_{dtype}": local(dtype, TILE * TILE) for dtype in TYPES if dtype != ir.INDEX}
    found |= {"udiv": functools.partial(_index, "udiv"), "umod": functools.partial(_index, "urem")}
    found |= {"sum_": functools.partial(_collected, "add"), "prod_": functools.partial(_collected, "mul")}
    found |= {f"slid_{op}": functools.partial(slid, op) for op in (*COMBINED, "squares")}
    found |= {f"{op}_": functools.partial(_random, op, result) for op, result in RANDOM.items()}
    found |= {word.__name__: word for word in (select, half, brain, integer, load_where, moved, transposed, product_,
                                                    elsewhere, streamed, fence, fetch, claim)}
    return found
