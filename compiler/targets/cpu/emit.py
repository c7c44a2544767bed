"""Kernel values as LLVM instructions, through llvmlite's builder."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir as llvm

from mxc.compiler.error import MXNetError
from mxc.compiler.kernel import ir
from mxc.compiler.kernel.ir import Value

LLVM: dict[str, llvm.Type] = {
    "float16": llvm.HalfType(), "float32": llvm.FloatType(), "float64": llvm.DoubleType(), "bool": llvm.IntType(8),
    "uint8": llvm.IntType(8), "int8": llvm.IntType(8), "uint16": llvm.IntType(16), "int16": llvm.IntType(16),
    "uint32": llvm.IntType(32), "int32": llvm.IntType(32), "uint64": llvm.IntType(64), "int64": llvm.IntType(64),
    ir.INDEX: llvm.IntType(64),
}  # in memory
BIT = llvm.IntType(1)
LIBRARY = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh",
           "arccosh": "acosh", "arctanh": "atanh", "gamma": "tgamma"}  # C names that differ from ours
CALLED = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "nearbyint", "abs": "fabs"}


def align(dtype: str) -> int:
    """Bytes of one element in memory."""
    return {"bool": 1, "uint8": 1, "int8": 1, "float16": 2, "uint16": 2, "int16": 2, "float32": 4, "int32": 4,
            "uint32": 4}.get(dtype, 8)


def register(dtype: str) -> llvm.Type:
    """The type of a value in registers: float16 as float, bool as one bit."""
    if dtype == "bool":
        return BIT
    return llvm.FloatType() if dtype == "float16" else LLVM[dtype]


def widened(builder: Any, dtype: str, value: Any) -> Any:
    """From memory to registers."""
    if dtype == "float16":
        return builder.fpext(value, llvm.FloatType())
    return builder.icmp_unsigned("!=", value, llvm.Constant(LLVM["bool"], 0)) if dtype == "bool" else value


def narrowed(builder: Any, dtype: str, value: Any) -> Any:
    """From registers to memory."""
    if dtype == "float16":
        return builder.fptrunc(value, LLVM[dtype])
    return builder.zext(value, LLVM["bool"]) if dtype == "bool" else value


def is_float(dtype: str) -> bool:
    return dtype in ir.FLOATS


def is_signed(dtype: str) -> bool:
    return dtype.startswith("int") or dtype == ir.INDEX


class Emitter:
    """Emits values whose leaves are given: `done` maps id(value) to an instruction."""

    def __init__(self, builder: Any, done: dict[int, Any]):
        self.builder, self.done = builder, done

    def emit(self, value: Value) -> Any:
        for v in ir.walk([value]):
            if id(v) not in self.done:
                self.done[id(v)] = self.step(v, [self.done[id(a)] for a in v.args])
        return self.done[id(value)]

    def step(self, v: Value, args: list[Any]) -> Any:
        if v.op == "const":
            return self.const(v.data, v.dtype)
        if v.op == "cast":
            return self.cast(args[0], v.args[0].dtype, v.dtype)
        if v.op == "bitcast":
            return self.builder.bitcast(args[0], register(v.dtype))
        if v.op == "where":
            return self.builder.select(*args)
        if v.op in ir.COMPARISONS:
            return self.compare(v.op, v.args[0].dtype, args)
        if is_float(v.dtype):
            result = self.floating(v.op, v.dtype, args)
            return self.cast(result, "float32", "float16") if v.dtype == "float16" else result
        return self.integer(v.op, v.dtype, args)

    def const(self, number: Any, dtype: str) -> Any:
        if is_float(dtype):
            return llvm.Constant(register(dtype), float(number))
        return llvm.Constant(register(dtype), int(number))

    def cast(self, x: Any, source: str, target: str) -> Any:
        b, to = self.builder, register(target)
        if target == "bool":
            zero = llvm.Constant(x.type, 0.0 if is_float(source) else 0)
            return x if source == "bool" else (
                b.fcmp_unordered("!=", x, zero) if is_float(source) else b.icmp_unsigned("!=", x, zero))
        if is_float(source) and is_float(target):
            if target == "float16":
                single = b.fptrunc(x, llvm.FloatType()) if source == "float64" else x
                return widened(b, target, narrowed(b, target, single))
            wide, width = source == "float64", target == "float64"
            return x if wide == width else (b.fpext(x, to) if width else b.fptrunc(x, to))
        if is_float(source):
            wide = b.fptosi(self.within(x, max(to.width, 32)), llvm.IntType(max(to.width, 32)))
            return wide if wide.type == to else b.trunc(wide, to)
        if is_float(target):
            single = (b.sitofp if is_signed(source) else b.uitofp)(x, to)
            return self.cast(single, "float32", target) if target == "float16" else single
        if x.type == to:
            return x
        if x.type.width > to.width:
            return b.trunc(x, to)
        return b.sext(x, to) if is_signed(source) else b.zext(x, to)

    def within(self, x: Any, width: int) -> Any:
        """A float where a signed integer of `width` bits can hold it, else the lowest such number: LLVM leaves open
        what the conversion of others gives."""
        b, low, end = self.builder, llvm.Constant(x.type, -2.0**(width - 1)), llvm.Constant(x.type, 2.0**(width - 1))
        return b.select(b.and_(b.fcmp_ordered(">=", x, low), b.fcmp_ordered("<", x, end)), x, low)

    def compare(self, op: str, dtype: str, args: list[Any]) -> Any:
        b = self.builder
        if op in ("and", "or"):
            return b.and_(*args) if op == "and" else b.or_(*args)
        if op == "not":
            return b.not_(args[0])
        sign = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}[op]
        if is_float(dtype):
            return (b.fcmp_unordered if op == "ne" else b.fcmp_ordered)(sign, *args)
        return (b.icmp_signed if is_signed(dtype) else b.icmp_unsigned)(sign, *args)

    def call(self, name: str, args: list[Any]) -> Any:
        module = self.builder.module
        kind = llvm.FunctionType(args[0].type, [a.type for a in args])
        return self.builder.call(module.globals.get(name) or llvm.Function(module, kind, name), args)

    def library(self, op: str, dtype: str, args: list[Any]) -> Any:
        return self.call(LIBRARY.get(op, op) + ("" if dtype == "float64" else "f"), args)

    def floating(self, op: str, dtype: str, args: list[Any]) -> Any:
        b, suffix = self.builder, "f64" if dtype == "float64" else "f32"
        if op in CALLED:
            return self.call(f"llvm.{CALLED[op]}.{suffix}", args)
        if op in ("min", "max"):
            module, name = b.module, f"llvm.{op}imum.{suffix}"
            kind = llvm.FunctionType(args[0].type, [a.type for a in args])
            function = module.globals.get(name) or llvm.Function(module, kind, name)
            return b.call(function, args, fastmath=("nsz",))  # the sign of a zero is not promised
        plain: dict[str, Callable[..., Any]] = {
            "add": b.fadd, "sub": b.fsub, "mul": b.fmul, "div": b.fdiv, "neg": b.fneg, "fma": b.fma,
        }
        if op in plain:
            return plain[op](*args)
        if op == "mod":  # fmod, moved to the divisor's sign; 0 for a zero divisor
            zero = llvm.Constant(args[0].type, 0.0)
            rest = self.library("fmod", dtype, args)
            other = b.and_(b.fcmp_unordered("!=", rest, zero),
                           b.xor(b.fcmp_ordered("<", rest, zero), b.fcmp_ordered("<", args[1], zero)))
            moved = b.select(other, b.fadd(rest, args[1]), rest)
            return b.select(b.fcmp_ordered("==", args[1], zero), zero, moved)
        return self.library(op, dtype, args)

    def integer(self, op: str, dtype: str, args: list[Any]) -> Any:
        b, signed, kind = self.builder, is_signed(dtype), register(dtype)
        zero = llvm.Constant(kind, 0)
        if op == "neg":
            return b.sub(zero, args[0])
        if op == "abs":
            return b.select(b.icmp_signed("<", args[0], zero), b.sub(zero, args[0]), args[0]) if signed else args[0]
        if op in ("min", "max"):
            less = (b.icmp_signed if signed else b.icmp_unsigned)("<" if op == "min" else ">", *args)
            return b.select(less, *args)
        if op in ("div", "mod"):
            return self.quotient(op, dtype, *args)
        if op == "mulhi":
            double = llvm.IntType(2 * kind.width)
            product = b.mul(b.zext(args[0], double), b.zext(args[1], double))
            return b.trunc(b.lshr(product, llvm.Constant(double, kind.width)), kind)
        if op == "pow":
            wide = [self.cast(a, dtype, "float64") for a in args]
            return self.cast(self.call("pow", wide), "float64", dtype)
        plain: dict[str, Callable[..., Any]] = {
            "add": b.add, "sub": b.sub, "mul": b.mul, "shl": b.shl, "shr": b.lshr, "bitand": b.and_, "bitor": b.or_,
            "bitxor": b.xor,
        }
        if op not in plain:
            raise MXNetError(f"{op} of {dtype} is not an operation of the kernel IR; cast to a float dtype first")
        return plain[op](*args)

    def quotient(self, op: str, dtype: str, x: Any, y: Any) -> Any:
        """Truncating division, modulus with the divisor's sign; 0 for a zero divisor. index: both not negative."""
        b = self.builder
        if dtype == ir.INDEX:
            return b.udiv(x, y) if op == "div" else b.urem(x, y)
        zero, one = llvm.Constant(x.type, 0), llvm.Constant(x.type, 1)
        empty = b.icmp_unsigned("==", y, zero)
        if not is_signed(dtype):
            safe = b.select(empty, one, y)
            return b.select(empty, zero, b.udiv(x, safe) if op == "div" else b.urem(x, safe))
        minus = b.icmp_signed("==", y, llvm.Constant(x.type, -1))  # x / -1 traps at the smallest x: it is -x
        safe = b.select(b.or_(empty, minus), one, y)
        if op == "div":
            return b.select(empty, zero, b.select(minus, b.sub(zero, x), b.sdiv(x, safe)))
        rest = b.srem(x, safe)
        other = b.and_(b.icmp_signed("!=", rest, zero),
                       b.xor(b.icmp_signed("<", rest, zero), b.icmp_signed("<", y, zero)))
        return b.select(other, b.add(rest, y), rest)
