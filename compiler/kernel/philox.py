"""The counter-based random generator as arithmetic: Philox-4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011).

The key is the seed, the counter is (index, offset); a `rand` value is the first of the four words. Each element is
computed without the others, so the generator fuses, and its numbers are the same on every target and with any number of
threads.
"""
from __future__ import annotations

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.ir import Value
from mxc.compiler.ops.philox import PHILOX, ROUNDS, TURN

WORD = "uint32"


def _halves(value: Value) -> tuple[Value, Value]:
    """The low and the high 32 bits of an integer."""
    wide = ir.cast(ir.cast(value, "int64"), "uint64")
    return ir.cast(wide, WORD), ir.cast(ir.apply("shr", wide, ir.const(32, "uint64")), WORD)


def uniform(seed: Value, offset: Value, index: Value) -> Value:
    """A float64 in [0, 1) of 53 random bits: 27 of the word at `index`, and 26 of a word far behind it."""
    second = ir.apply("add", index, ir.const(1 << TURN, "int64"))
    high, low = _upper(seed, offset, index, 27), _upper(seed, offset, second, 26)
    bits = ir.apply("add", ir.apply("mul", ir.cast(high, "float64"), ir.const(2.0**26, "float64")),
                    ir.cast(low, "float64"))
    return ir.apply("mul", bits, ir.const(2.0**-53, "float64"))


def single(seed: Value, offset: Value, index: Value) -> Value:
    """A float32 in [0, 1) of 24 random bits."""
    return ir.apply("mul", ir.cast(_upper(seed, offset, index, 24), "float32"), ir.const(2.0**-24, "float32"))


def _upper(seed: Value, offset: Value, index: Value, count: int) -> Value:
    """The upper `count` bits of a word, as an int32."""
    word = ir.make("rand", (seed, offset, index), WORD)
    return ir.cast(ir.apply("shr", word, ir.const(32 - count, WORD)), "int32")


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
