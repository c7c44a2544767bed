"""Kernel values as statements of typed Python source, for the CPU's translator and numba.cuda alike.

Both widen dtypes (int8 + int8 is int64, float32 * 2 is float64), so every step is cast to its dtype and every literal
is a typed constant defined before the function. Names with a trailing underscore are the targets' vocabulary: each
target defines them, with the IR's semantics.

    c0 = float32(0.5)              # constants, before the function
    t0 = b0[i0 * n1 + i1]
    t1 = exp_(t0 * c0)
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import contextmanager

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.ir import INDEX, Value

INFIX = {"add": "+", "sub": "-", "mul": "*", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
         "and": "&", "or": "|", "bitand": "&", "bitor": "|", "bitxor": "^"}
WIDE = frozenset(["float32", "float64", "int64", INDEX])  # results of infix operators on these need no cast
ROUNDING = {"float16": "half", "bfloat16": "brain"}  # the words that round a float32 to what is narrower


class SourceLines:
    """Lines of Python, indented."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def __call__(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    @contextmanager
    def block(self, head: str):
        self(head)
        self.depth += 1
        size = len(self.lines)
        yield
        if len(self.lines) == size:
            self("pass")
        self.depth -= 1

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


class ScalarPrinter:
    """Prints values into a SourceLines, and remembers which of them already have names in the open blocks.

    leaves: names of axes, accumulators and run-time integers, looked up by the value itself.
    """

    def __init__(self, source: SourceLines, leaves: Callable[[Value], str | None]):
        self.source, self.leaves = source, leaves
        self.scopes: list[dict[int, str]] = [{}]
        self.constants: dict[tuple[str, str], str] = {}
        self.count = 0

    @contextmanager
    def scope(self, head: str):
        """A block whose names end with it."""
        with self.source.block(head), self.names():
            yield

    @contextmanager
    def names(self):
        """Lines whose names end with them."""
        self.scopes.append({})
        yield
        self.scopes.pop()

    def known(self, value: Value) -> str | None:
        for scope in reversed(self.scopes):
            if id(value) in scope:
                return scope[id(value)]
        return None

    def print(self, value: Value) -> str:
        """The name of `value`, after printing what it needs."""
        stack = [value]
        while stack:
            v = stack[-1]
            if self.known(v) is not None:
                stack.pop()
                continue
            leaf = self.leaves(v)
            missing = [] if leaf is not None else [a for a in v.args if self.known(a) is None]
            if missing:
                stack.extend(reversed(missing))
                continue
            stack.pop()
            text = leaf if leaf is not None else self.step(v, [self.known(a) or "" for a in v.args])
            if leaf is None and v.op != "const":
                self.source(f"t{self.count} = {text}")
                text = f"t{self.count}"
                self.count += 1
            self.scopes[-1][id(v)] = text
        return self.known(value) or ""

    def print_where(self, roots: Iterable[Value], ready: Callable[[Value], bool]) -> None:
        """Prints the parts of `roots` that are `ready` and more than a leaf: they move out of the loops inside."""
        for v in ir.walk(roots):
            if v.args and ready(v):
                self.print(v)

    def constant(self, value: Value) -> str:
        """The name of a typed constant."""
        data, dtype = value.data, value.dtype
        if dtype == "bool":
            return str(bool(data))
        if dtype in ("int64", INDEX):
            return str(int(data))  # type: ignore[call-overload]
        number = repr(float(data) if dtype in ir.FLOATS else int(data))  # type: ignore[arg-type, call-overload]
        if number in ("inf", "-inf", "nan"):
            number = f'"{number}"'
        text = f"{ir.computing_dtype(dtype)}({number})"
        return self.constants.setdefault((text, dtype), f"c{len(self.constants)}")

    def constant_lines(self) -> list[str]:
        return [f"{name} = {text}" for (text, _), name in self.constants.items()]

    def step(self, v: Value, args: list[str]) -> str:
        if v.op == "const":
            return self.constant(v)
        if v.op == "load":
            assert isinstance(v.data, int)
            return self.element(v.data, args[0], v.dtype) if len(args) == 1 else self.guarded(v.data, args, v.dtype)
        if v.op == "cast":
            return self.cast(args[0], v.args[0].dtype, v.dtype)
        text = self.plain(v, args)
        return text if v.op == "where" else self.rounded(text, v.dtype)

    def rounded(self, text: str, dtype: str) -> str:
        """A float32 in registers as a value of a narrower dtype; of other dtypes it is that already."""
        return f"{ROUNDING[dtype]}({text})" if dtype in ROUNDING else text

    def element(self, buffer: int, index: str, dtype: str) -> str:
        """A load, as a value in registers."""
        return f"b{buffer}[{index}]"

    def guarded(self, buffer: int, args: list[str], dtype: str) -> str:
        """A load that touches memory only where its condition holds. args: index, condition, what it is elsewhere."""
        return f"load_where(b{buffer}, {', '.join(args)})"

    def stored(self, text: str, dtype: str) -> str:
        """A value in registers as a buffer of `dtype` takes it."""
        return text

    def plain(self, v: Value, args: list[str]) -> str:
        if v.op == "where":
            return f"select({', '.join(args)})"
        if v.op == "bitcast":
            return f"bits_{v.dtype}({args[0]})"
        if v.op == "not":
            return f"not {args[0]}"
        if v.op == "neg" and v.dtype in ir.FLOATS:
            return f"-{args[0]}"
        if v.dtype == INDEX and v.op in ("div", "mod"):
            return f"u{v.op}({args[0]}, {args[1]})"
        if v.op in INFIX:
            text = f"{args[0]} {INFIX[v.op]} {args[1]}"
            return text if v.dtype in WIDE or v.dtype in ("bool", *ROUNDING) else f"{v.dtype}({text})"
        if v.op == "div" and v.dtype in ir.FLOATS:
            return f"{args[0]} / {args[1]}"
        if v.op == "neg":
            return f"{self.register(v.dtype)}(-{args[0]})"
        return f"{v.op}_({', '.join(args)})"

    def register(self, dtype: str) -> str:
        """The type's name in the source."""
        return "int64" if dtype == INDEX else ir.computing_dtype(dtype)

    def cast(self, text: str, source: str, target: str) -> str:
        if target == "bool":
            return text if source == "bool" else f"{text} != {self.constant(ir.const(0, source))}"
        if target in ROUNDING:
            return self.rounded(text if self.register(source) == "float32" else f"float32({text})", target)
        if self.register(source) == self.register(target):
            return text
        if source in ir.FLOATS and target not in ir.FLOATS:
            return f"whole_{self.register(target)}({text})"
        return f"{self.register(target)}({text})"
