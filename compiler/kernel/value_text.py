"""Text of scalar values, and the order in which they are written: arguments before their user.

Every value that is used more than once gets a line and a name of its own, so the text is as long as the graph is:

    t0 = add(a0, 1); mul(t0, t0)
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mxc.compiler.kernel.ir import Value

SHORT = {"float16": "f2", "bfloat16": "bf2", "float32": "f4", "float64": "f8", "uint8": "u1", "int8": "i1",
         "int32": "i4", "int64": "i8", "uint32": "u4", "uint64": "u8", "int16": "i2", "uint16": "u2", "bool": "b",
         "index": ""}
SHARED = frozenset(["const", "axis", "acc"])  # these get no names, because they are as short themselves


def walk(roots: Iterable[Value]) -> Iterator[Value]:
    """Every value under `roots` once, arguments before their user."""
    seen: set[int] = set()
    stack = [(root, False) for root in reversed(list(roots))]
    while stack:
        value, done = stack.pop()
        if done:
            yield value
        elif id(value) not in seen:
            seen.add(id(value))
            stack.append((value, True))
            stack.extend((a, False) for a in reversed(value.args))


class Printer:
    """Writes values in the order of `walk`. number: the text of a constant."""

    def __init__(self, roots: Iterable[Value], number: Callable[[Value], str]):
        self.number = number
        roots = list(roots)
        uses = Counter(id(a) for v in walk(roots) for a in v.args)
        uses.update(id(r) for r in roots)
        self.shared = {i for i, n in uses.items() if n > 1}
        self.names: dict[int, str] = {}
        self.texts: dict[int, str] = {}

    def lines(self, roots: Iterable[Value]) -> list[str]:
        """Lines naming the shared values under `roots` that have no name yet."""
        result = []
        for v in walk(roots):
            if id(v) in self.texts:
                continue
            text = self.step(v)
            if id(v) in self.shared and v.op not in SHARED:
                self.names[id(v)] = f"t{len(self.names)}"
                result.append(f"{self.names[id(v)]} = {text}")
                text = self.names[id(v)]
            self.texts[id(v)] = text
        return result

    def step(self, v: Value) -> str:
        """One value over the texts of its arguments."""
        args = [self.texts[id(a)] for a in v.args]
        if v.op == "const":
            return self.number(v)
        if v.op == "axis":
            return f"a{v.data}"
        if v.op == "acc":
            return f"acc{v.data}"
        if v.op == "load":
            text = f"b{v.data}[{args[0]}]:{SHORT[v.dtype]}"
            return text if len(args) == 1 else f"({text} if {args[1]} else {args[2]})"
        if v.op in ("cast", "bitcast"):
            return f"{v.op}({args[0]}, {v.dtype})"
        return f"{v.op}({', '.join(args)})"


def exact(v: Value) -> str:
    """A constant with all its digits and its dtype."""
    return f"{v.data!r}{SHORT[v.dtype]}"


def value_text(value: Value) -> str:
    """One value: lines for its shared parts, then itself."""
    printer = Printer([value], exact)
    lines = printer.lines([value])
    return "; ".join([*lines, printer.texts[id(value)]]) if printer.texts[id(value)] not in printer.names.values() \
        else "; ".join(lines)
