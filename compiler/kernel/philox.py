"""The counter-based random generator as arithmetic: Philox-4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011).

key = seed, counter = (index, offset); a `rand` value is the first of the four words. Element by element independent, so
it fuses, and its numbers are the same on every target and number of threads.
"""
from __future__ import annotations

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.ir import Value
from mxc.compiler.ops.philox import PHILOX, ROUNDS

WORD = "uint32"


def _halves(value: Value) -> tuple[Value, Value]:
    """The low and the high 32 bits of an integer."""
    wide = ir.cast(ir.cast(value, "int64"), "uint64")
    return ir.cast(wide, WORD), ir.cast(ir.apply("shr", wide, ir.const(32, "uint64")), WORD)


def expanded(seed: Value, offset: Value, index: Value) -> Value:
    """rand(seed, offset, index) written out over uint32."""
    (c0, c1), (c2, c3), (k0, k1) = _halves(index), _halves(offset), _halves(seed)
    m0, m1 = (ir.const(m, WORD) for m in PHILOX[:2])
    for _ in range(ROUNDS):
        high0, low0 = ir.apply("mulhi", c0, m0), ir.apply("mul", c0, m0)
        high1, low1 = ir.apply("mulhi", c2, m1), ir.apply("mul", c2, m1)
        c0, c1 = ir.apply("bitxor", ir.apply("bitxor", high1, c1), k0), low1
        c2, c3 = ir.apply("bitxor", ir.apply("bitxor", high0, c3), k1), low0
        k0, k1 = (ir.apply("add", k, ir.const(i, WORD)) for k, i in zip((k0, k1), PHILOX[2:], strict=True))
    return c0
