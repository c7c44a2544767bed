"""Simplification of index values: what remains when index expressions were substituted into each other.

Sums are brought to the form `axis * coefficient + ... + constant`; division and modulus by constants are resolved where
the bounds of the axes allow it, so that `(i * W + j) // W` is `i` and `(i * W + j) % W` is `j`; guards that always or
never hold go. Operands of div and mod are never negative (see ir.py).
"""
from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.ir import INDEX, Value

Terms = dict[Value, int]
SUMS = frozenset(["add", "sub", "mul", "neg", "const"])


def index(number: int) -> Value:
    """An index constant."""
    return ir.const(int(number), INDEX)


def affine(value: Value) -> tuple[Terms, int]:
    """`value` as a sum of coefficient * atom, and a constant. Atoms are axes and whatever is not a sum."""
    if value.op == "const":
        return {}, int(value.data)
    if value.op in ("add", "sub"):
        (left, a), (right, b) = affine(value.args[0]), affine(value.args[1])
        sign = 1 if value.op == "add" else -1
        terms = dict(left)
        for atom, c in right.items():
            terms[atom] = terms.get(atom, 0) + sign * c
        return {atom: c for atom, c in terms.items() if c}, a + sign * b
    if value.op == "neg":
        terms, a = affine(value.args[0])
        return {atom: -c for atom, c in terms.items()}, -a
    if value.op == "mul":
        (left, a), (right, b) = affine(value.args[0]), affine(value.args[1])
        if not right or not left:
            terms, a, factor = (left, a, b) if not right else (right, b, a)
            return ({atom: c * factor for atom, c in terms.items()} if factor else {}), a * factor
    return {value: 1}, 0


def from_affine(terms: Mapping[Value, int], constant: int) -> Value:
    """The sum as a value: axes in order, then other atoms, then the constant."""
    ordered = sorted(terms.items(), key=lambda t: (0, t[0].data) if t[0].op == "axis" else (1, 0))
    result: Value | None = None
    for atom, c in ordered:
        term = atom if c == 1 else ir.apply("mul", atom, index(c))
        result = term if result is None else ir.apply("add", result, term)
    if result is None:
        return index(constant)
    return ir.apply("add", result, index(constant)) if constant else result


class Simplifier:
    """Simplifies values whose axes have the given extents."""

    def __init__(self, extents: Sequence[int]):
        self.extents = extents
        self.done: dict[int, Value] = {}
        self.keep: list[Value] = []  # keeps ids of `done` from being used again
        self.limits: dict[Value, tuple[float, float]] = {}

    def __call__(self, value: Value) -> Value:
        done, stack = self.done, [value]
        while stack:
            v = stack[-1]
            waiting = [a for a in v.args if id(a) not in done]
            if waiting:  # what is done is not looked into again: most of a value is, in most calls
                stack += waiting
                continue
            stack.pop()
            if id(v) not in done:
                self.keep.append(v)
                done[id(v)] = self.step(v, tuple([done[id(a)] for a in v.args]))
        return done[id(value)]

    def step(self, v: Value, args: tuple[Value, ...]) -> Value:
        if v.op == "axis":
            return index(0) if self.extents[v.data] == 1 else v
        made = v if args == v.args else ir.make(v.op, args, v.dtype, v.data)
        if v.op == "load" and len(args) == 3 and args[1].op == "const":
            return ir.load(v.data, args[0], v.dtype) if args[1].data else args[2]
        if v.op in ("where", "and", "or", "not"):
            return self.logic(made, args)
        if v.op in ir.COMPARISONS and args[0].dtype == INDEX:
            return self.compare(made, *args)
        if v.dtype != INDEX:
            return made
        if v.op in SUMS:
            return from_affine(*affine(made))
        if v.op in ("div", "mod") and args[1].op == "const":
            return self.quotient(v.op, args[0], int(args[1].data))
        return made

    def logic(self, made: Value, args: tuple[Value, ...]) -> Value:
        if made.op == "where":
            if args[0].op == "const":
                return args[1] if args[0].data else args[2]
            return args[1] if args[1] is args[2] else made
        if made.op == "not":
            return ir.const(not args[0].data, "bool") if args[0].op == "const" else made
        for one, other in (args, args[::-1]):
            if one.op == "const":
                return other if bool(one.data) == (made.op == "and") else one
        return args[0] if args[0] is args[1] else made

    def compare(self, made: Value, left: Value, right: Value) -> Value:
        terms, constant = affine(ir.apply("sub", left, right))
        low, high = self.bounds_of(terms, constant)
        always, never = {
            "lt": (high < 0, low >= 0), "le": (high <= 0, low > 0), "gt": (low > 0, high <= 0),
            "ge": (low >= 0, high < 0), "eq": (low == high == 0, low > 0 or high < 0),
            "ne": (low > 0 or high < 0, low == high == 0),
        }.get(made.op, (False, False))
        return ir.const(bool(always), "bool") if always or never else made

    def quotient(self, op: str, value: Value, divisor: int) -> Value:
        """value // divisor or value % divisor."""
        if divisor == 1:
            return value if op == "div" else index(0)
        terms, constant = affine(value)
        whole = {atom: c // divisor for atom, c in terms.items() if c % divisor == 0}
        rest = {atom: c for atom, c in terms.items() if c % divisor}
        kept = constant % divisor
        low, high = self.bounds_of(rest, kept)
        if low < 0:  # the constant must stay with what it makes positive
            whole, rest, kept = {}, terms, constant
            low, high = self.bounds_of(rest, kept)
        if low >= 0 and high < divisor:
            return from_affine(whole, (constant - kept) // divisor) if op == "div" else from_affine(rest, kept)
        inner = self.single(op, rest, kept, divisor)
        if op == "mod":
            return inner
        sums, a = affine(inner)
        for atom, c in whole.items():
            sums[atom] = sums.get(atom, 0) + c
        return from_affine({t: c for t, c in sums.items() if c}, a + (constant - kept) // divisor)

    def single(self, op: str, terms: Terms, constant: int, divisor: int) -> Value:
        """The quotient or rest of a sum none of whose terms is a multiple of the divisor."""
        if len(terms) == 1 and constant == 0:
            (atom, c), = terms.items()
            inner = int(atom.args[1].data) if atom.op in ("div", "mod") and atom.args[1].op == "const" else 0
            if c == 1 and atom.op == "div" and op == "div" and inner:
                return self.quotient("div", atom.args[0], inner * divisor)
            if c == 1 and atom.op == "mod" and inner and inner % divisor == 0:
                if op == "mod":
                    return self.quotient("mod", atom.args[0], divisor)
                return self.quotient("mod", self.quotient("div", atom.args[0], divisor), inner // divisor)
        common = math.gcd(divisor, *terms.values())
        if common > 1 and (op == "div" or constant % common == 0):
            smaller = {atom: c // common for atom, c in terms.items()}
            result = self.quotient(op, from_affine(smaller, constant // common), divisor // common)
            return result if op == "div" else from_affine(*affine(ir.apply("mul", result, index(common))))
        return ir.apply(op, from_affine(terms, constant), index(divisor))

    def bounds_of(self, terms: Mapping[Value, int], constant: int) -> tuple[float, float]:
        low: float = constant
        high: float = constant
        for atom, c in terms.items():
            a, b = self.bounds(atom)
            low, high = low + min(a * c, b * c), high + max(a * c, b * c)
        return low, high

    def bounds(self, value: Value) -> tuple[float, float]:
        """Least and greatest possible number of an index value."""
        if value not in self.limits:
            self.limits[value] = self.find_bounds(value)
        return self.limits[value]

    def find_bounds(self, v: Value) -> tuple[float, float]:
        if v.op == "axis":
            return 0, max(0, self.extents[v.data] - 1)
        if v.op in SUMS:
            terms, constant = affine(v)
            if v not in terms:
                return self.bounds_of(terms, constant)
        if v.op in ("div", "mod") and v.args[1].op == "const":
            divisor = int(v.args[1].data)
            low, high = self.bounds(v.args[0])
            if v.op == "mod":
                return 0, min(max(high, 0), divisor - 1)
            return low // divisor if low > -math.inf else low, high // divisor if high < math.inf else high
        if v.op in ("min", "max", "where"):
            (a, b), (c, d) = self.bounds(v.args[-2]), self.bounds(v.args[-1])
            if v.op == "where":
                return min(a, c), max(b, d)
            return (min(a, c), min(b, d)) if v.op == "min" else (max(a, c), max(b, d))
        return -math.inf, math.inf


def substitute(roots: Iterable[Value], axes: Mapping[int, Value]) -> list[Value]:
    """`roots` with axes replaced by other index values."""
    roots = list(roots)
    done: dict[int, Value] = {}
    for v in ir.walk(roots):
        if v.op == "axis":
            done[id(v)] = axes.get(v.data, v)
        else:
            args = tuple(done[id(a)] for a in v.args)
            done[id(v)] = v if args == v.args else ir.make(v.op, args, v.dtype, v.data)
    return [done[id(r)] for r in roots]
