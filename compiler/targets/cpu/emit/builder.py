"""Prints LLVM IR text from code that reads like its pseudo-code.

    b = Builder()
    with b.function("scale", "ptr x, i64 n") as (x, n):
        data = Array(b, x, "float32")
        for i in b.range(0, n, 8):
            data.put(i, data.vector(i, 8) * b.splat(b.number(2.0, "float"), 8))
    print(b.module())

Python runs once and prints; `b.range` is a loop of the printed program, Python's `range` unrolls.
"""
from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from mxc.compiler.targets.cpu.emit.transpose import transposed

I64 = "i64"
TYPES = {
    "float16": "half", "bfloat16": "i16", "float32": "float", "float64": "double", "bool": "i8", "int8": "i8",
    "uint8": "i8", "int16": "i16", "uint16": "i16", "int32": "i32", "uint32": "i32", "int64": "i64", "uint64": "i64",
    "index": "i64",
}
BYTES = {
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2,
    "int32": 4, "uint32": 4, "int64": 8, "uint64": 8, "index": 8,
}
_WIDTHS = {"half": 2, "float": 4, "double": 8, "i8": 1, "i16": 2, "i32": 4, "i64": 8}  # bytes
_MANGLED = {"half": "f16", "float": "f32", "double": "f64", "ptr": "p0"}


def vector_type(element: str, lanes: int) -> str:
    return f"<{lanes} x {element}>"


def element_of(kind: str) -> str:
    """The element's type of a vector type; a scalar type itself."""
    return kind[1:-1].split(" x ")[1] if kind.startswith("<") else kind


def lanes_of(kind: str) -> int:
    """The lanes of a vector type; 0 for a scalar type."""
    return int(kind[1:].split(" x ")[0]) if kind.startswith("<") else 0


def is_float(kind: str) -> bool:
    return element_of(kind) in ("half", "float", "double")


def mangled(kind: str) -> str:
    """The suffix of an overloaded intrinsic: "<8 x float>" -> "v8f32"."""
    element = element_of(kind)
    lanes = lanes_of(kind)
    return (f"v{lanes}" if lanes else "") + _MANGLED.get(element, element)


class Value:
    """An SSA value or a constant of the printed program. Operators print instructions; integers are signed."""

    __slots__ = ("builder", "text", "type")

    def __init__(self, builder: Builder, kind: str, text: str):
        self.builder, self.type, self.text = builder, kind, text

    @property
    def constant(self) -> int | None:
        """The number, if this is an integer constant."""
        return int(self.text) if self.text.lstrip("-").isdigit() else None

    def __add__(self, other: Value | int) -> Value:
        return self.builder.arithmetic("add", self, other)

    def __radd__(self, other: int) -> Value:
        return self + other

    def __sub__(self, other: Value | int) -> Value:
        return self.builder.arithmetic("sub", self, other)

    def __rsub__(self, other: int) -> Value:
        return self.builder.arithmetic("sub", self.builder.lift(other, self.type), self)

    def __mul__(self, other: Value | int) -> Value:
        return self.builder.arithmetic("mul", self, other)

    def __rmul__(self, other: int) -> Value:
        return self * other

    def __floordiv__(self, other: Value | int) -> Value:
        return self.builder.arithmetic("sdiv", self, other)

    def __rfloordiv__(self, other: int) -> Value:
        return self.builder.arithmetic("sdiv", self.builder.lift(other, self.type), self)

    def __mod__(self, other: Value | int) -> Value:
        return self.builder.arithmetic("srem", self, other)

    def __and__(self, other: Value) -> Value:
        return self.builder.binary("and", self, other)

    def __or__(self, other: Value) -> Value:
        return self.builder.binary("or", self, other)

    def __lt__(self, other: Value | int) -> Value:
        return self.builder.compare("slt", self, other)

    def __le__(self, other: Value | int) -> Value:
        return self.builder.compare("sle", self, other)

    def __gt__(self, other: Value | int) -> Value:
        return self.builder.compare("sgt", self, other)

    def __ge__(self, other: Value | int) -> Value:
        return self.builder.compare("sge", self, other)

    def equals(self, other: Value | int) -> Value:
        return self.builder.compare("eq", self, other)

    def differs(self, other: Value | int) -> Value:
        return self.builder.compare("ne", self, other)


Number = Value | int
_AGAIN = ("load", "call", "phi", "freeze")  # these may give another value each time
_ARGUMENT = re.compile(r"%arg\d+")
_FOLD = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y}


class Builder:
    """One module's text. `attributes` go on every function. opaque: hides from LLVM that loops count. What LLVM does
    with that knowledge takes a third of code generation, and gains nothing where code is printed in its final form."""

    def __init__(self, attributes: str = "nounwind", opaque: bool = False):
        self.attributes, self.opaque = attributes, opaque
        self._functions: list[str] = []
        self._declared: dict[str, str] = {}
        self._begin()

    def _begin(self) -> None:
        """Begins a function, which has no lines yet."""
        self._lines: list[str] = []
        self._locals: list[str] = []
        self._arguments: dict[str, str] = {}  # the lines that read an argument, if it is used
        self._known: dict[str, Value] = {}  # what the present block has computed, by its text
        self._count, self._block = 0, "entry"

    # --- module and functions

    def module(self) -> str:
        return "\n".join([*self._functions, *self._declared.values(), f"attributes #0 = {{ {self.attributes} }}", ""])

    @contextmanager
    def function(self, name: str, parameters: str, internal: bool = False) -> Iterator[list[Value]]:
        """A void function; `parameters` as "ptr noalias x, i64 n"; yields their values."""
        split = [p.split() for p in parameters.split(",")]
        signature = ", ".join(" ".join([*p[:-1], "%" + p[-1]]) for p in split)
        linkage = "internal " if internal else ""
        self._begin()
        yield [Value(self, p[0], "%" + p[-1]) for p in split]
        body, head = "\n".join(self._lines), f"define {linkage}void @{name}({signature}) #0 {{\nentry:"
        used = set(_ARGUMENT.findall(body))
        read = (lines for name, lines in self._arguments.items() if name in used)
        self._functions.append("\n".join([head, *self._locals, *read, body, "  ret void\n}"]))

    def argument(self, args: Value, position: int, kind: str = I64) -> Value:
        """The number or pointer at a position of the table `args`: read when the function begins, if it is used."""
        name = f"%arg{position}"
        self._arguments[name] = (f"  %at{position} = getelementptr i64, ptr {args.text}, i64 {position}\n"
                                 f"  {name} = load {kind}, ptr %at{position}, align 8")
        return Value(self, kind, name)

    def call(self, name: str, arguments: Sequence[Value]) -> None:
        """Calls a void function of this module."""
        self._lines.append(f"  call void @{name}({self._list(arguments)})")

    def leave(self, name: str, arguments: Sequence[Value]) -> None:
        """Goes on in a void function of this module, and does not come back. Cheap where this function's parameters
        begin with the arguments: they stay where they are."""
        self._lines += [f"  tail call void @{name}({self._list(arguments)})", "  ret void"]
        self._open(f"after.{self._block}")

    def intrinsic(
        self, name: str, kind: str, arguments: Sequence[Value], overloads: Sequence[str] | None = None, flags: str = "",
    ) -> Value:
        """Calls LLVM's `name`, overloaded on `overloads` (default: the result's type); kind "void" gives no value.
        flags: LLVM's of floating arithmetic."""
        full = ".".join([name, *map(mangled, [kind] if overloads is None else overloads)])
        types = ", ".join(a.type for a in arguments)
        self._declared[full] = f"declare {kind} @{full}({types})"
        text = f"call {f'{flags} ' if flags else ''}{kind} @{full}({self._list(arguments)})"
        if kind == "void":
            self._lines.append("  " + text)
            return Value(self, kind, "")
        return self.emit(kind, text)

    def external(self, name: str, kind: str, arguments: Sequence[Value]) -> Value:
        """Calls a function of the C library."""
        self._declared[name] = f"declare {kind} @{name}({', '.join(a.type for a in arguments)})"
        return self.emit(kind, f"call {kind} @{name}({self._list(arguments)})")

    # --- values

    def emit(self, kind: str, instruction: str) -> Value:
        """Prints one instruction that gives a value of type `kind`; not again what the block has computed already."""
        known = self._known.get(instruction)
        if known is not None:
            return known
        self._count += 1
        name = f"%v{self._count}"
        self._lines.append(f"  {name} = {instruction}")
        value = Value(self, kind, name)
        if not instruction.startswith(_AGAIN):
            self._known[instruction] = value
        return value

    def lift(self, number: Number | float, kind: str = I64) -> Value:
        """A Python number as a constant of scalar or vector type `kind`; a Value stays."""
        return number if isinstance(number, Value) else self.number(number, kind)

    def number(self, number: float, kind: str = I64) -> Value:
        element, lanes = element_of(kind), lanes_of(kind)
        if is_float(kind):
            value = float(number)
            if element == "float":
                value = struct.unpack("f", struct.pack("f", value))[0]
            text = f"0x{struct.unpack('Q', struct.pack('d', value))[0]:016X}"
        else:
            text = str(int(number))
        if lanes:
            text = "<" + ", ".join([f"{element} {text}"] * lanes) + ">"
        return Value(self, kind, text)

    def zero(self, kind: str) -> Value:
        return Value(self, kind, "zeroinitializer" if lanes_of(kind) else ("0.0" if is_float(kind) else "0"))

    def iota(self, kind: str) -> Value:
        """0, 1, 2, ... of an integer vector type."""
        return Value(self, kind, "<" + ", ".join(f"{element_of(kind)} {i}" for i in range(lanes_of(kind))) + ">")

    def arithmetic(self, op: str, x: Value, other: Number) -> Value:
        """add, sub, mul, sdiv or srem by the operands' type; folds what is constant."""
        y = self.lift(other, x.type)
        if is_float(x.type):
            return self.emit(x.type, f"f{op} contract {x.type} {x.text}, {y.text}")
        p, q = x.constant, y.constant
        if p is not None and q is not None and op in _FOLD:
            return self.number(_FOLD[op](p, q), x.type)
        if (q == 0 and op in ("add", "sub")) or (q == 1 and op in ("mul", "sdiv")):
            return x
        if (p == 0 and op == "add") or (p == 1 and op == "mul"):
            return y
        if op == "mul" and 0 in (p, q):
            return self.number(0, x.type)
        return self.binary(op, x, y)

    def binary(self, op: str, x: Value, y: Value) -> Value:
        return self.emit(x.type, f"{op} {x.type} {x.text}, {y.text}")

    def compare(self, predicate: str, x: Value, other: Number) -> Value:
        """icmp, or fcmp for floats."""
        y = self.lift(other, x.type)
        lanes = lanes_of(x.type)
        op = "fcmp" if is_float(x.type) else "icmp"
        return self.emit(vector_type("i1", lanes) if lanes else "i1", f"{op} {predicate} {x.type} {x.text}, {y.text}")

    def convert(self, op: str, x: Value, element: str) -> Value:
        """sext, zext, trunc, fpext, sitofp, bitcast, ... to `element`, lane by lane."""
        lanes = lanes_of(x.type)
        kind = vector_type(element, lanes) if lanes else element
        return x if kind == x.type else self.emit(kind, f"{op} {x.type} {x.text} to {kind}")

    def pointer(self, address: Value) -> Value:
        return self.emit("ptr", f"inttoptr i64 {address.text} to ptr")

    def select(self, condition: Value, x: Value, y: Value) -> Value:
        return self.emit(x.type, f"select {condition.type} {condition.text}, {x.type} {x.text}, {y.type} {y.text}")

    def negate(self, condition: Value) -> Value:
        ones = self.splat(self.number(-1, "i1"), lanes_of(condition.type)) if lanes_of(condition.type) else None
        return self.binary("xor", condition, ones or self.number(1, "i1"))

    def minimum(self, x: Number, y: Number) -> Value:
        x, y = self.lift(x), self.lift(y)
        return self.select(x < y, x, y)

    def maximum(self, x: Number, y: Number) -> Value:
        x, y = self.lift(x), self.lift(y)
        return self.select(x > y, x, y)

    def inside(self, x: Value, limit: Number) -> Value:
        """0 <= x < limit, by one unsigned comparison."""
        return self.compare("ult", x, limit)

    def fma(self, x: Value, y: Value, z: Value) -> Value:
        """x * y + z, in one instruction where the target has it."""
        if not is_float(x.type):
            return x * y + z
        return self.intrinsic("llvm.fmuladd", x.type, [x, y, z])

    def splat(self, x: Value, lanes: int) -> Value:
        kind = vector_type(x.type, lanes)
        first = self.emit(kind, f"insertelement {kind} poison, {x.type} {x.text}, i64 0")
        picks = vector_type("i32", lanes)
        return self.emit(kind, f"shufflevector {kind} {first.text}, {kind} poison, {picks} zeroinitializer")

    def shuffle(self, x: Value, y: Value, picks: Sequence[int]) -> Value:
        """Lanes of x followed by y, by number."""
        mask = "<" + ", ".join(f"i32 {p}" for p in picks) + ">"
        kind = vector_type(element_of(x.type), len(picks))
        return self.emit(kind, f"shufflevector {x.type} {x.text}, {y.type} {y.text}, <{len(picks)} x i32> {mask}")

    def transpose(self, rows: Sequence[Value]) -> list[Value]:
        """A square of as many vectors as they have lanes, transposed."""
        return transposed(self, rows, _WIDTHS[element_of(rows[0].type)])

    def lane(self, x: Value, lane: int) -> Value:
        return self.emit(element_of(x.type), f"extractelement {x.type} {x.text}, i64 {lane}")

    def sum_lanes(self, x: Value) -> Value:
        if not is_float(x.type):
            return self.intrinsic("llvm.vector.reduce.add", element_of(x.type), [x], [x.type])
        element = element_of(x.type)
        return self.intrinsic("llvm.vector.reduce.fadd", element, [self.zero(element), x], [x.type])

    def first_lanes(self, count: Value, lanes: int) -> Value:
        """The mask of the lanes l < count; a count may be beyond what a lane's 32 bits hold."""
        count = self.minimum(count, lanes)
        return self.iota(vector_type("i32", lanes)) < self.splat(self.convert("trunc", count, "i32"), lanes)

    # --- control

    def range(self, start: Number, stop: Number, step: Number = 1, carry: list[Value] | None = None) -> Iterator[Value]:
        """A loop, body printed once. `carry`: a list whose elements the body replaces; each round sees the last one's,
        and after the loop it holds the final ones (the first ones, if no round ran)."""
        first, end = self.lift(start), self.lift(stop)
        self._count += 1
        name = f"l{self._count}"
        before, carried = self._block, carry if carry is not None else []
        initial = list(carried)
        self._lines.append(f"  br label %{name}.head")
        self._open(f"{name}.head")
        place = len(self._lines)
        counter = Value(self, I64, f"%{name}.i")
        phis = [Value(self, v.type, f"%{name}.c{i}") for i, v in enumerate(initial)]
        carried[:] = phis
        self._lines += [""] * (1 + len(phis))
        self._branch(counter < end, f"{name}.body", f"{name}.end")
        self._open(f"{name}.body")
        yield counter
        following = f"add nsw i64 {counter.text}, {self.lift(step).text}"
        if self.opaque:
            following = f"freeze i64 {self.emit(I64, following).text}"
        self._lines.append(f"  %{name}.n = {following}")
        self._lines.append(f"  br label %{name}.head")
        last = self._block
        self._lines[place] = f"  {counter.text} = phi i64 [{first.text}, %{before}], [%{name}.n, %{last}]"
        for i, (phi, old, new) in enumerate(zip(phis, initial, carried, strict=True)):
            self._lines[place + 1 + i] = (
                f"  {phi.text} = phi {phi.type} [{old.text}, %{before}], [{new.text}, %{last}]"
            )
        carried[:] = phis
        self._open(f"{name}.end")

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """The body runs where `condition` holds."""
        self._count += 1
        name = f"w{self._count}"
        self._branch(condition, f"{name}.then", f"{name}.end")
        self._open(f"{name}.then")
        yield
        self._lines.append(f"  br label %{name}.end")
        self._open(f"{name}.end")

    def when_not(self, condition: Value):
        return self.when(self.negate(condition))

    def either(self, condition: Value, yes: Callable[[], None], no: Callable[[], None]) -> None:
        """Prints two ways; the program takes one of them."""
        self._count += 1
        name = f"e{self._count}"
        self._branch(condition, f"{name}.then", f"{name}.else")
        for label, way in ((f"{name}.then", yes), (f"{name}.else", no)):
            self._open(label)
            way()
            self._lines.append(f"  br label %{name}.end")
        self._open(f"{name}.end")

    def choose(self, condition: Value, yes: Callable[[], Value], no: Callable[[], Value]) -> Value:
        """The value of one of two ways; the program takes only that way."""
        ends: list[tuple[Value, str]] = []

        def way(print_it: Callable[[], Value]) -> Callable[[], None]:
            return lambda: ends.append((print_it(), self._block))

        self.either(condition, way(yes), way(no))
        choices = ", ".join(f"[{value.text}, %{block}]" for value, block in ends)
        return self.emit(ends[0][0].type, f"phi {ends[0][0].type} {choices}")

    def repeat(self, condition: Callable[[], Value], body: Callable[[], None]) -> None:
        """A loop that goes on while what `condition` prints holds."""
        self._count += 1
        name = f"r{self._count}"
        self._lines.append(f"  br label %{name}.head")
        self._open(f"{name}.head")
        self._branch(condition(), f"{name}.body", f"{name}.end")
        self._open(f"{name}.body")
        body()
        self._lines.append(f"  br label %{name}.head")
        self._open(f"{name}.end")

    def local(self, kind: str, count: int = 1) -> Value:
        """Memory that the function has for itself, for `count` values of type `kind`."""
        name = f"%m{len(self._locals)}"
        self._locals.append(f"  {name} = alloca [{count} x {kind}], align 64" if count > 1 else
                            f"  {name} = alloca {kind}")
        return Value(self, "ptr", name)

    # --- the bottom

    def _open(self, label: str) -> None:
        self._lines.append(f"{label}:")
        self._block, self._known = label, {}

    def _branch(self, condition: Value, yes: str, no: str) -> None:
        self._lines.append(f"  br i1 {condition.text}, label %{yes}, label %{no}")

    def raw(self, line: str) -> None:
        self._lines.append("  " + line)

    @staticmethod
    def _list(arguments: Sequence[Value]) -> str:
        return ", ".join(f"{a.type} {a.text}" for a in arguments)


class Array:
    """A typed pointer: `array[i]` loads, `array[i] = x` stores one element; indices count elements."""

    def __init__(self, builder: Builder, pointer: Value, dtype: str):
        self.builder, self.pointer, self.dtype, self.element = builder, pointer, dtype, TYPES[dtype]

    def at(self, index: Number) -> Array:
        """The array that begins at `index`."""
        return Array(self.builder, self._address(index), self.dtype)

    def _address(self, index: Number) -> Value:
        offset = self.builder.lift(index)
        if offset.constant == 0:
            return self.pointer
        text = f"getelementptr {self.element}, ptr {self.pointer.text}, i64 {offset.text}"
        return self.builder.emit("ptr", text)

    def __getitem__(self, index: Number) -> Value:
        pointer = self._address(index)
        return self.builder.emit(self.element, f"load {self.element}, ptr {pointer.text}, align {BYTES[self.dtype]}")

    def __setitem__(self, index: Number, value: Value) -> None:
        pointer = self._address(index)
        self.builder.raw(f"store {self.element} {value.text}, ptr {pointer.text}, align {BYTES[self.dtype]}")

    def vector(self, index: Number, lanes: int, mask: Value | None = None) -> Value:
        """`lanes` elements from `index` on; where the mask does not hold, nothing is read and the lane is 0."""
        pointer, kind = self._address(index), vector_type(self.element, lanes)
        b = self.builder
        if mask is None:
            return b.emit(kind, f"load {kind}, ptr {pointer.text}, align {BYTES[self.dtype]}")
        align = b.number(BYTES[self.dtype], "i32")
        return b.intrinsic("llvm.masked.load", kind, [pointer, align, mask, b.zero(kind)], [kind, "ptr"])

    def put(self, index: Number, value: Value, mask: Value | None = None) -> None:
        """Stores a vector from `index` on, only where the mask holds."""
        pointer, b = self._address(index), self.builder
        if mask is None:
            b.raw(f"store {value.type} {value.text}, ptr {pointer.text}, align {BYTES[self.dtype]}")
        else:
            align = b.number(BYTES[self.dtype], "i32")
            b.intrinsic("llvm.masked.store", "void", [value, pointer, align, mask], [value.type, "ptr"])

    def broadcast(self, index: Number, lanes: int) -> Value:
        return self.builder.splat(self[index], lanes)

    def gather(self, offsets: Value, mask: Value) -> Value:
        """The elements at a vector of indices; 0 where the mask does not hold."""
        b, lanes = self.builder, lanes_of(offsets.type)
        kind, pointers = vector_type(self.element, lanes), self._addresses(offsets)
        align = b.number(BYTES[self.dtype], "i32")
        return b.intrinsic("llvm.masked.gather", kind, [pointers, align, mask, b.zero(kind)], [kind, pointers.type])

    def scatter(self, offsets: Value, value: Value, mask: Value) -> None:
        b, pointers = self.builder, self._addresses(offsets)
        align = b.number(BYTES[self.dtype], "i32")
        b.intrinsic("llvm.masked.scatter", "void", [value, pointers, align, mask], [value.type, pointers.type])

    def _addresses(self, offsets: Value) -> Value:
        kind = vector_type("ptr", lanes_of(offsets.type))
        text = f"getelementptr {self.element}, ptr {self.pointer.text}, {offsets.type} {offsets.text}"
        return self.builder.emit(kind, text)
