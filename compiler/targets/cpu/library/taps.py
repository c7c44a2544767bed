"""Sums over the channels and taps that a register tile of a convolution reads.

With AVX the loops over both are one piece of assembly. For each tap they do 12 to 24 multiply-adds, and the few
instructions around these count: with four taps at a time, their places read by what multiplies, a tile of an Intel Xeon
with AVX-512 went from 170 to 190 GFLOP/s.
"""
from __future__ import annotations

from dataclasses import dataclass

from mxc.compiler.targets.cpu.emit.builder import BYTES, Array, Builder, Value, is_float
from mxc.compiler.targets.cpu.library.tile import multiply
from mxc.compiler.targets.cpu.machine.isa import Isa

AT_ONCE = 4  # taps between two tests whether there are more


@dataclass(frozen=True)
class Side:
    """One of both that are multiplied: the array at the first channel, the elements from channel to channel, and which
    number of a table's entries is the place of a tap."""

    array: Array
    step: Value
    number: int


@dataclass(frozen=True)
class Walk:
    """What a tile reads. table: of int64, for each tap the places of both sides, in elements. factors: one for each row
    of the tile, next to each other. vectors: one for each column, next to each other."""

    channels: Value
    taps: Value
    table: Array
    factors: Side
    vectors: Side


def add_taps(b: Builder, isa: Isa, sums: list[Value], rows: int, walk: Walk) -> None:
    """sums[i][j] += over channels and taps: factor i * vector j, for all i < rows."""
    if isa.assembles and is_float(walk.vectors.array.element):
        _assembled(b, isa, sums, rows, walk)
        return
    sides = walk.factors, walk.vectors
    for c in b.range(0, walk.channels, carry=sums):
        here = [side.array.at(c * side.step) for side in sides]
        for n in b.range(0, walk.taps, carry=sums):
            factors, vectors = (each.at(walk.table[n * 2 + side.number])
                                for each, side in zip(here, sides, strict=True))
            multiply(b, isa, sums, [(factors, i) for i in range(rows)], vectors, 0, 1)


def _assembled(b: Builder, isa: Isa, sums: list[Value], rows: int, walk: Walk) -> None:
    """The loops as assembly. The sums are its first operands; behind these are the registers that it uses, then what it
    reads."""
    vectors, kind, size = len(sums) // rows, sums[0].type, BYTES[walk.vectors.array.dtype]
    letter, wide, count = {4: "s", 8: "d"}[size], isa.vector_bytes, len(sums)
    columns, factor = range(count, count + vectors), count + vectors
    from_factors, from_vectors, channels, cursor, left, first, second = (f"${factor + 1 + i}" for i in range(7))
    table, taps, step, other_step = (f"${factor + 8 + count + 3 + i}" for i in range(4))

    def tap(n: int) -> list[str]:
        text = [f"movq {n * 16 + 8 * side.number}({cursor}), {place}"
                for side, place in ((walk.factors, first), (walk.vectors, second))]
        text += [f"vmovup{letter} {j * wide}({from_vectors},{second},{size}), ${x}" for j, x in enumerate(columns)]
        for i in range(rows):
            text.append(f"vbroadcasts{letter} {i * size}({from_factors},{first},{size}), ${factor}")
            text += [f"vfmadd231p{letter} ${factor}, ${x}, ${i * vectors + j}" for j, x in enumerate(columns)]
        return text

    text = [
        f"testq {channels}, {channels}", "jle 6f",
        "1:", f"movq {table}, {cursor}", f"movq {taps}, {left}", f"subq $${AT_ONCE}, {left}", "jl 3f",
        "2:", *(line for n in range(AT_ONCE) for line in tap(n)),
        f"addq $${AT_ONCE * 16}, {cursor}", f"subq $${AT_ONCE}, {left}", "jge 2b",
        "3:", f"addq $${AT_ONCE}, {left}", "jle 5f",
        "4:", *tap(0), f"addq $$16, {cursor}", f"decq {left}", "jg 4b",
        "5:", f"addq {step}, {from_factors}", f"addq {other_step}, {from_vectors}", f"decq {channels}", "jg 1b",
        "6:",
    ]
    register = "v" if isa.registers > 16 else "x"
    bound = [*[f"={register}"] * count, *[f"=&{register}"] * (vectors + 1), *["=&r"] * 7, *map(str, range(count)),
             *(str(factor + 1 + i) for i in range(3)), *["r"] * 4, "~{memory}", "~{flags}", "~{dirflag}", "~{fpsr}"]
    sides = walk.factors, walk.vectors
    given = [*sums, *(side.array.pointer for side in sides), walk.channels, walk.table.pointer, walk.taps,
             *(side.step * size for side in sides)]
    result = f"{{ {', '.join([kind] * (factor + 1) + ['ptr'] * 2 + ['i64'] * 5)} }}"
    values, code = ", ".join(f"{x.type} {x.text}" for x in given), "\\0A".join(text)
    made = b.emit(result, f'call {result} asm sideeffect "{code}", "{",".join(bound)}"({values})')
    sums[:] = [b.emit(kind, f"extractvalue {result} {made.text}, {i}") for i in range(count)]
