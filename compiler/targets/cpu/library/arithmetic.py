"""The operations of kernel values as LLVM IR, on scalars or vectors alike.

In registers float16 and bfloat16 are floats that have been rounded to these, bool is i1; all other dtypes are as in
memory.
"""
from __future__ import annotations

from collections.abc import Sequence, Set

from mxc.compiler.kernel.ir import Value as Scalar
from mxc.compiler.kernel.ir import computing_dtype
from mxc.compiler.ops import functions
from mxc.compiler.ops.dtypes import NARROW
from mxc.compiler.scalar_functions.records import BUILTINS, OF_KERNELS
from mxc.compiler.targets.cpu.emit.builder import BYTES, TYPES, Builder, Value, element_of, lanes_of

UNSIGNED = frozenset(["bool", "uint8", "uint16", "uint32", "uint64"])
FLOATING = frozenset(["float16", "bfloat16", "float32", "float64"])
ORDERED = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}
INTRINSICS = {f.step: f.c for f in BUILTINS.values() if f.step and f.c}
LIBM = {name: f.c for name, f in OF_KERNELS.items() if f.c} | {"pow": "pow", "mod": "fmod"}


def register_type(dtype: str) -> str:
    """The scalar type in registers."""
    return {"float16": "float", "bfloat16": "float", "bool": "i1"}.get(dtype, TYPES[dtype])


class Arithmetic:
    """Prints single steps. native: which of float16 and bfloat16 the target converts in hardware."""

    def __init__(self, builder: Builder, native: Set[str]):
        self.b, self.native = builder, native

    # --- between memory and registers

    def loaded(self, x: Value, dtype: str) -> Value:
        """What was loaded from memory of `dtype`, as it is kept in registers."""
        if dtype == "float16":
            return self._from_half(x)
        if dtype == "bfloat16":
            return self.b.convert("bitcast", self._bits("shl", self.b.convert("zext", x, "i32"), 16), "float")
        return self.b.compare("ne", x, self.b.zero(x.type)) if dtype == "bool" else x

    def stored(self, x: Value, dtype: str) -> Value:
        """The inverse of `loaded`."""
        if dtype == "float16":
            return self._to_half(x)
        if dtype == "bfloat16":
            return self._to_brain(x)
        return self.b.convert("zext", x, "i8") if dtype == "bool" else x

    def _from_half(self, x: Value) -> Value:
        b = self.b
        if "float16" in self.native:
            return b.convert("fpext", x, "float")
        # the exponent is rebiased by one multiplication, which also normalises denormals
        bits = b.convert("zext", b.convert("bitcast", x, "i16"), "i32")
        magnitude = self._bits("shl", self._bits("and", bits, 0x7FFF), 13)
        tiny = b.convert("bitcast", magnitude, "float")
        scaled = tiny * b.number(2.0**112, tiny.type)
        special = b.compare("uge", magnitude, self._number(0x7C00 << 13, magnitude.type))
        plain = b.convert("bitcast", scaled, "i32")
        value = b.select(special, b.binary("or", magnitude, self._number(0x7F800000, bits.type)), plain)
        sign = self._bits("shl", self._bits("and", bits, 0x8000), 16)
        return b.convert("bitcast", b.binary("or", value, sign), "float")

    def _to_half(self, x: Value) -> Value:
        b = self.b
        if "float16" in self.native:
            return b.convert("fptrunc", x, "half")
        bits = b.convert("bitcast", x, "i32")
        magnitude = self._bits("and", bits, 0x7FFFFFFF)
        # normal: round to nearest even on the 13 bits that go; denormal: adding 0.5 leaves the rounded bits at the end
        odd = self._bits("and", self._bits("lshr", magnitude, 13), 1)
        normal = self._bits("lshr", self._bits("add", b.binary("add", magnitude, odd), 0xFFF - (112 << 23)), 13)
        shifted = b.convert("bitcast", magnitude, "float") + b.number(0.5, x.type)
        small = self._bits("sub", b.convert("bitcast", shifted, "i32"), 0x3F000000)
        result = b.select(b.compare("ult", magnitude, self._number(113 << 23, bits.type)), small, normal)
        nan = b.compare("ugt", magnitude, self._number(0x7F800000, bits.type))
        large = b.select(nan, self._number(0x7E00, bits.type), self._number(0x7C00, bits.type))
        result = b.select(b.compare("uge", magnitude, self._number(0x47800000, bits.type)), large, result)
        sign = self._bits("and", self._bits("lshr", bits, 16), 0x8000)
        return b.convert("bitcast", b.convert("trunc", b.binary("or", result, sign), "i16"), "half")

    def _to_brain(self, x: Value) -> Value:
        """The upper half of a float, rounded to the nearest, halves to the even one. Hardware makes denormals zeros."""
        b = self.b
        if "bfloat16" in self.native:
            return b.convert("bitcast", b.convert("fptrunc", x, "bfloat"), "i16")
        bits = b.convert("bitcast", x, "i32")
        upper = self._bits("lshr", bits, 16)
        odd = self._bits("and", upper, 1)
        rounded = self._bits("lshr", b.binary("add", self._bits("add", bits, 0x7FFF), odd), 16)
        result = b.select(b.compare("uno", x, x), self._bits("or", upper, 0x40), rounded)
        return b.convert("trunc", result, "i16")

    def _number(self, number: float, kind: str) -> Value:
        return self.b.number(number, kind)

    def _bits(self, op: str, x: Value, number: int) -> Value:
        return self.b.binary(op, x, self._number(number, x.type))

    # --- steps

    def rounded(self, x: Value, dtype: str) -> Value:
        """x as a value of `dtype` again: rounds for float16 and bfloat16."""
        return self.loaded(self.stored(x, dtype), dtype) if dtype in NARROW else x

    def step(self, v: Scalar, args: Sequence[Value]) -> Value:
        """Any operation but const, axis, load, acc and what kernel/math.py expands; arguments are all scalars or all
        vectors."""
        dtype = v.args[0].dtype
        if v.op == "cast":
            return self.cast(args[0], dtype, v.dtype, is_clipped(v.args[0]))
        if v.op == "where":
            return self.b.select(*args)
        if v.op == "bitcast":
            return self.b.convert("bitcast", args[0], register_type(v.dtype))
        if v.op in ORDERED:
            return self.compare(v.op, dtype, *args)
        if functions.find(v.op) is not None:
            return function_call(self.b, f"mxc_function_{v.op}_{v.dtype}", args)
        if v.op == "not":
            return self.b.negate(args[0])
        if dtype == "bool":
            return self._logical(v.op, *args)
        if v.op in ("min", "max") and dtype in FLOATING and is_number(v.args[1]):
            return self._clipped(v.op, *args)
        if dtype in FLOATING:
            return self.rounded(self._floating(v.op, args), dtype)
        return self._integer(v.op, dtype, args)

    def cast(self, x: Value, source: str, target: str, clipped: bool = False) -> Value:
        """x as a value of another dtype. clipped: whether it is known to be a number that int32 has, and not NaN."""
        b, kind = self.b, register_type(target)
        if source == target:
            return x
        if target == "bool":
            return b.compare("une" if source in FLOATING else "ne", x, b.zero(x.type))
        if source in FLOATING and target in FLOATING:
            narrower = BYTES[element_dtype(x)] > BYTES[computing_dtype(target)]
            return self.rounded(b.convert("fptrunc" if narrower else "fpext", x, kind), target)
        if source in FLOATING:
            bits = max(32, 8 * BYTES[target])
            if clipped:
                return b.convert("trunc", b.convert("fptosi", x, f"i{bits}"), kind)
            low = b.number(-2.0 ** (bits - 1), x.type)
            fits = b.compare("oge", x, low) & b.compare("olt", x, b.number(2.0 ** (bits - 1), x.type))
            return b.convert("trunc", b.convert("fptosi", b.select(fits, x, low), f"i{bits}"), kind)
        if target in FLOATING:
            op = "uitofp" if source in UNSIGNED else "sitofp"
            return self.rounded(b.convert(op, x, kind), target)
        if BYTES[source] > BYTES[target]:
            return b.convert("trunc", x, kind)
        return b.convert("zext" if source in UNSIGNED else "sext", x, kind)

    def compare(self, op: str, dtype: str, x: Value, y: Value) -> Value:
        if dtype in FLOATING:
            return self.b.compare(ORDERED[op], x, y)
        sign = "" if op in ("eq", "ne") else ("u" if dtype in UNSIGNED else "s")
        return self.b.compare(sign + op, x, y)

    def _logical(self, op: str, x: Value, y: Value) -> Value:
        names = {"and": "and", "mul": "and", "min": "and", "bitand": "and", "or": "or", "add": "or", "max": "or",
                 "bitor": "or", "bitxor": "xor", "sub": "xor"}
        return self.b.binary(names[op], x, y)

    def _floating(self, op: str, args: Sequence[Value]) -> Value:
        b, x = self.b, args[0]
        if op in ("add", "sub", "mul", "div"):
            return b.binary(f"f{op} contract", x, args[1])
        if op == "neg":
            return b.emit(x.type, f"fneg {x.type} {x.text}")
        if op == "fma":
            return b.fma(*args)
        if op in ("min", "max"):
            return b.intrinsic(f"llvm.{op}imum", x.type, args, flags="nsz")  # the sign of a zero is not promised
        if op in INTRINSICS:
            return b.intrinsic(f"llvm.{INTRINSICS[op]}", x.type, args)
        result = _library_call(b, LIBM[op], args)
        if op == "mod":  # the rest has the divisor's sign, and is 0 for a zero divisor
            zero = b.zero(x.type)
            other = b.binary("xor", b.compare("olt", x, zero), b.compare("olt", args[1], zero))
            moved = b.binary("fadd", result, b.select(b.compare("une", result, zero), args[1], zero))  # 0 becomes +0
            result = b.select(other, moved, result)
            result = b.select(b.compare("oeq", args[1], zero), zero, result)
        return result

    def _clipped(self, op: str, x: Value, limit: Value) -> Value:
        """min or max of x and a number that is no NaN: a comparison with a NaN does not hold, so that x stays."""
        return self.b.select(self.b.compare("olt" if op == "min" else "ogt", limit, x), limit, x)

    def _integer(self, op: str, dtype: str, args: Sequence[Value]) -> Value:
        b, x = self.b, args[0]
        unsigned = dtype in UNSIGNED
        if op in ("add", "sub", "mul", "shl"):
            return b.binary(op, x, args[1])
        if op == "shr":
            return b.binary("lshr", x, args[1])
        if op in ("bitand", "bitor", "bitxor"):
            return b.binary(op[3:], x, args[1])
        if op == "fma":
            return b.binary("add", b.binary("mul", x, args[1]), args[2])
        if op == "neg":
            return b.binary("sub", b.zero(x.type), x)
        if op == "abs":
            return x if unsigned else b.select(b.compare("slt", x, b.zero(x.type)), self._integer("neg", dtype, [x]), x)
        if op in ("min", "max"):
            smaller = b.compare("ult" if unsigned else "slt", x, args[1])
            return b.select(smaller, x, args[1]) if op == "min" else b.select(smaller, args[1], x)
        if op in ("div", "mod"):
            return self._divide(op, dtype, x, args[1])
        if op == "mulhi":
            bits = 8 * BYTES[dtype]
            wide = b.binary("mul", b.convert("zext", x, f"i{2 * bits}"), b.convert("zext", args[1], f"i{2 * bits}"))
            return b.convert("trunc", self._bits("lshr", wide, bits), f"i{bits}")
        if op == "pow":
            exact = [self.cast(a, dtype, "float64") for a in args]
            return self.cast(_library_call(b, "pow", exact), "float64", dtype)
        return x  # floor, ceil, trunc, rint of an integer

    def _divide(self, op: str, dtype: str, x: Value, y: Value) -> Value:
        """Quotient or rest with 0 for a zero divisor; dividing by -1 is negating: hardware would trap on overflow."""
        b, zero = self.b, self.b.zero(x.type)
        by_zero = b.compare("eq", y, zero)
        if dtype in UNSIGNED:
            safe = b.select(by_zero, self._number(1, x.type), y)
            return b.select(by_zero, zero, b.binary("udiv" if op == "div" else "urem", x, safe))
        by_minus = b.compare("eq", y, self._number(-1, y.type))
        safe = b.select(by_zero | by_minus, self._number(1, x.type), y)
        if op == "div":
            quotient = b.select(by_minus, b.binary("sub", zero, x), b.binary("sdiv", x, safe))
            return b.select(by_zero, zero, quotient)
        rest = b.binary("srem", x, safe)
        wrong = b.compare("ne", rest, zero) & b.compare("slt", b.binary("xor", rest, y), zero)
        return b.select(by_zero, zero, b.select(wrong, b.binary("add", rest, y), rest))


def _library_call(b: Builder, name: str, arguments: Sequence[Value]) -> Value:
    """The C library's double function `name`, or its float sister, lane by lane."""
    single = element_of(arguments[0].type) == "float"
    return function_call(b, name + ("f" if single else ""), arguments)


def function_call(b: Builder, name: str, arguments: Sequence[Value]) -> Value:
    """A function of scalars that is defined elsewhere, lane by lane."""
    kind, lanes = arguments[0].type, lanes_of(arguments[0].type)
    if not lanes:
        return b.external(name, kind, arguments)
    result = Value(b, kind, "poison")
    for i in range(lanes):
        one = function_call(b, name, [b.lane(a, i) for a in arguments])
        result = b.emit(kind, f"insertelement {kind} {result.text}, {one.type} {one.text}, i64 {i}")
    return result


def is_number(v: Scalar) -> bool:
    """Whether it is a constant, and not NaN."""
    return v.op == "const" and v.data == v.data


def is_clipped(v: Scalar) -> bool:
    """Whether a value is a number between two constants of int32, also where it is computed of a NaN: the form in which
    `_mxc_saturate` says it."""
    outer = v.args[0] if v.op == "rint" else v
    if outer.op not in ("max", "min") or outer.args[0].op != "where":
        return False
    test, x, end = outer.args[0].args
    return (test.op == {"max": "lt", "min": "gt"}[outer.op] and test.args == (x, end)
            and all(is_number(c) and abs(c.data) < 2**31 for c in (end, outer.args[1])))


def element_dtype(x: Value) -> str:
    """The float dtype that a register holds."""
    return {"float": "float32", "double": "float64"}[element_of(x.type)]
