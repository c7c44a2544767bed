"""What names mean in the typed source of kernels, and the printing of single steps on them as LLVM IR.

A `Typed` is a scalar in registers with its dtype: float16 and bfloat16 are float32 there, bool one bit. A `Buffer` is
an address with a dtype and a position. Each position has an alias scope of its own, so LLVM knows that a store through
one buffer changes nothing read through another and vectorises without run-time checks. A store may still be in place
over a load of the same index: what it stores depends on that load.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from mxc.compiler.error import MXNetError
from mxc.compiler.kernel import ir
from mxc.compiler.targets.cpu.emit.builder import BYTES, TYPES, Builder, Value
from mxc.compiler.targets.cpu.library.arithmetic import FLOATING, UNSIGNED, Arithmetic, register_type
from mxc.compiler.targets.cpu.machine.isa import Isa

DTYPES = ("float32", "float64", "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
INVARIANT = "!invariant.load !0"  # the end of a load from memory that nothing changes while the kernel runs


class Typed(NamedTuple):
    """A value in registers."""

    value: Value
    dtype: str


@dataclass(frozen=True)
class Buffer:
    """An array in memory. pointer: its address. position: its alias scope, None for memory of the function's own."""

    pointer: Value
    dtype: str
    position: int | None = None


def promoted(x: str, y: str) -> str:
    """The dtype in which values of two dtypes are computed: integers in 64 bits, floats as NumPy does."""
    if x in FLOATING and y in FLOATING:
        return x if x == y else "float64"
    if x in FLOATING or y in FLOATING:
        other = y if x in FLOATING else x
        small = other == "bool" or BYTES[other] < 4
        return (x if x in FLOATING else y) if small else "float64"
    if "uint64" in (x, y) and not {x, y} <= UNSIGNED:
        raise MXNetError(f"{x} with {y}: one of them must be cast first")
    return "uint64" if {x, y} <= UNSIGNED - {"bool"} else "int64"


class Steps:
    """Prints single steps of typed values through a builder, for CPUs that run `isa`. buffers: how many alias scopes
    there are."""

    def __init__(self, isa: Isa, buffers: int):
        self.b, self.isa = Builder(), isa
        self.arithmetic = Arithmetic(self.b, isa.narrow)
        self.buffers = buffers
        self.products: set[tuple[str, str]] = set()  # dtypes of the rows and matrices of `product_`

    def metadata(self) -> str:
        """The module's metadata: an empty node, the domain, a scope for each buffer, for each a list of its scope and
        one of all others, and the node that `nontemporal` refers to."""
        lines = ["!0 = !{}", '!1 = !{!"mxc"}']
        count = self.buffers
        lines += [f'!{2 + i} = !{{!"b{i}", !1}}' for i in range(count)]
        lines += [f"!{2 + count + i} = !{{!{2 + i}}}" for i in range(count)]
        lines += [f"!{2 + 2 * count + i} = !{{{', '.join(f'!{2 + j}' for j in range(count) if j != i)}}}"
                  for i in range(count)]
        return "\n".join([*lines, f"!{2 + 3 * count} = !{{i32 1}}"]) + "\n"

    def nontemporal(self) -> str:
        """The end of a store that goes past the caches."""
        return f", !nontemporal !{2 + 3 * self.buffers}"

    def scoped(self, buffer: Buffer) -> str:
        """The end of an instruction that reads or writes `buffer`."""
        if buffer.position is None:
            return ""
        first = 2 + self.buffers + buffer.position
        others = f", !noalias !{first + self.buffers}" if self.buffers > 1 else ""
        return f", !alias.scope !{first}{others}"

    def number(self, number: float, dtype: str) -> Typed:
        return Typed(self.b.number(number, register_type(dtype)), dtype)

    def cast(self, x: Typed, dtype: str) -> Typed:
        """x as a value of `dtype`. A float that lies beyond an integer's range becomes the lowest integer."""
        return x if x.dtype == dtype else Typed(self.arithmetic.cast(x.value, x.dtype, dtype), dtype)

    def whole(self, x: Typed) -> Value:
        """x as an index, of 64 bits. Raises MXNetError for a float."""
        if x.dtype in FLOATING:
            raise MXNetError(f"an index is {x.dtype}, expected an integer")
        return self.cast(x, "int64").value

    def truth(self, x: Typed) -> Value:
        return self.cast(x, "bool").value

    def both(self, x: Typed, y: Typed, dtype: str = "") -> tuple[Value, Value, str]:
        dtype = dtype or promoted(x.dtype, y.dtype)
        return self.cast(x, dtype).value, self.cast(y, dtype).value, dtype

    def compare(self, op: str, x: Typed, y: Typed) -> Typed:
        left, right, dtype = self.both(x, y, x.dtype if x.dtype == y.dtype else "")
        return Typed(self.arithmetic.compare(op, dtype, left, right), "bool")

    def binary(self, op: str, x: Typed, y: Typed) -> Typed:
        """add, sub, mul, div (of floats), floordiv and mod (of integers, as Python has them), and of bits."""
        b = self.b
        if op in ("bitand", "bitor", "bitxor") and x.dtype == y.dtype == "bool":
            return Typed(b.binary(op[3:], x.value, y.value), "bool")
        left, right, dtype = self.both(x, y, "float64" if op == "div" and not {x.dtype, y.dtype} & FLOATING else "")
        if op in ("add", "sub", "mul") or (op == "div" and dtype in FLOATING):
            return Typed(b.arithmetic(op, left, right), dtype)
        if dtype in FLOATING:
            raise MXNetError(f"{op} of {x.dtype} and {y.dtype}: expected integers")
        if op in ("floordiv", "mod"):
            return Typed(self._floor(op, dtype, left, right), dtype)
        names = {"bitand": "and", "bitor": "or", "bitxor": "xor", "shl": "shl", "shr": "ashr"}
        return Typed(b.binary("lshr" if op == "shr" and dtype in UNSIGNED else names[op], left, right), dtype)

    def _floor(self, op: str, dtype: str, x: Value, y: Value) -> Value:
        """The quotient rounded towards minus infinity, or the rest; both are 0 for a zero divisor."""
        b, steps = self.b, self.arithmetic
        places = [ir.make("acc", (), dtype, i) for i in range(2)]
        if op == "mod":
            return steps.step(ir.make("mod", places, dtype), [x, y])
        quotient = steps.step(ir.make("div", places, dtype), [x, y])
        if dtype in UNSIGNED:
            return quotient
        rest = b.binary("sub", x, b.binary("mul", quotient, y))
        below = b.compare("slt", b.binary("xor", rest, y), 0) & b.compare("ne", rest, 0) & b.compare("ne", y, 0)
        return b.binary("sub", quotient, b.convert("zext", below, y.type))

    def negative(self, x: Typed) -> Typed:
        if x.dtype in FLOATING:
            return Typed(self.b.emit(x.value.type, f"fneg {x.value.type} {x.value.text}"), x.dtype)
        return self.binary("sub", self.number(0, "int64"), x)

    # --- memory

    def address(self, buffer: Buffer, index: Value) -> Value:
        text = f"getelementptr inbounds {TYPES[buffer.dtype]}, ptr {buffer.pointer.text}, i64 {index.text}"
        return self.b.emit("ptr", text)

    def load(self, buffer: Buffer, index: Value) -> Typed:
        kind = TYPES[buffer.dtype]
        text = f"load {kind}, ptr {self.address(buffer, index).text}, align {BYTES[buffer.dtype]}{self.scoped(buffer)}"
        value = self.arithmetic.loaded(self.b.emit(kind, text), buffer.dtype)
        return Typed(value, ir.computing_dtype(buffer.dtype))

    def store(self, buffer: Buffer, index: Value, x: Typed) -> None:
        value = self.arithmetic.stored(self.cast(x, ir.computing_dtype(buffer.dtype)).value, buffer.dtype)
        place = self.address(buffer, index)
        self.b.raw(f"store {value.type} {value.text}, ptr {place.text}, align {BYTES[buffer.dtype]}"
                   f"{self.scoped(buffer)}")

    def evaluate(self, root: ir.Value, known: dict[int, Value]) -> Value:
        """Prints a kernel's value whose functions are expanded. known: the values of its leaves, by their ids."""
        done = dict(known)
        for v in ir.walk([root]):
            if id(v) not in done:
                done[id(v)] = (self.b.number(v.data, register_type(v.dtype)) if v.op == "const"
                               else self.arithmetic.step(v, [done[id(a)] for a in v.args]))
        return done[id(root)]
