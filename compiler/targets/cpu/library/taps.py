"""Sums over the channels and taps that a register tile of a convolution reads.

With AVX the loops over both are one piece of assembly. For each tap they do 12 to 24 multiply-adds, and the few
instructions around these count: with four taps at a time, their places read by what multiplies, a tile of an Intel Xeon
with AVX-512 went from 170 to 190 GFLOP/s.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mxc.compiler.targets.cpu.emit.builder import BYTES, Array, Builder, Value, is_float
from mxc.compiler.targets.cpu.library.tile import multiply
from mxc.compiler.targets.cpu.machine.isa import Isa

AT_ONCE = 4  # taps between two tests whether there are more


@dataclass(frozen=True)
class Walk:
    """What a tile reads. table: for each tap, of int64, where its data and its weights begin, in elements. data,
    weights: those of the first channel; plane, depth: elements from channel to channel in them."""

    channels: Value
    taps: Value
    table: Array
    data: Array
    plane: Value
    weights: Array
    depth: Value


def add_taps(b: Builder, isa: Isa, sums: list[Value], rows: int, walk: Walk) -> None:
    """sums[i][j] += over channels and taps: element i of the tap's weights * vector j of its data, for i < rows."""
    if isa.assembles and is_float(walk.data.element):
        _assembled(b, isa, sums, rows, walk)
        return
    for c in b.range(0, walk.channels, carry=sums):
        data, weights = walk.data.at(c * walk.plane), walk.weights.at(c * walk.depth)
        for n in b.range(0, walk.taps, carry=sums):
            row = weights.at(walk.table[n * 2 + 1])
            multiply(b, isa, sums, [(row, i) for i in range(rows)], data.at(walk.table[n * 2]), 0, 1)


def _assembled(b: Builder, isa: Isa, sums: list[Value], rows: int, walk: Walk) -> None:
    """The loops as assembly: in its operands, the sums are in front, and behind these are registers that it uses, then
    what it reads."""
    vectors, kind, size = len(sums) // rows, sums[0].type, BYTES[walk.data.dtype]
    letter, wide, count = {4: "s", 8: "d"}[size], isa.vector_bytes, len(sums)
    columns, factor = range(count, count + vectors), count + vectors
    data, weights, channels, cursor, left, place, weight = (f"${factor + 1 + i}" for i in range(7))
    table, taps, plane, depth = (f"${factor + 8 + count + 3 + i}" for i in range(4))

    def tap(n: int) -> list[str]:
        text = [f"movq {n * 16}({cursor}), {place}", f"movq {n * 16 + 8}({cursor}), {weight}"]
        text += [f"vmovup{letter} {j * wide}({data},{place},{size}), ${column}" for j, column in enumerate(columns)]
        for i in range(rows):
            text.append(f"vbroadcasts{letter} {i * size}({weights},{weight},{size}), ${factor}")
            text += [f"vfmadd231p{letter} ${factor}, ${column}, ${i * vectors + j}" for j, column in enumerate(columns)]
        return text

    text = [
        f"testq {channels}, {channels}", "jle 5f",
        "1:", f"movq {table}, {cursor}", f"movq {taps}, {left}", f"subq $${AT_ONCE}, {left}", "jl 3f",
        "2:", *(line for n in range(AT_ONCE) for line in tap(n)),
        f"addq $${AT_ONCE * 16}, {cursor}", f"subq $${AT_ONCE}, {left}", "jge 2b",
        "3:", f"addq $${AT_ONCE}, {left}", "jle 4f",
        "6:", *tap(0), f"addq $$16, {cursor}", f"decq {left}", "jg 6b",
        "4:", f"addq {plane}, {data}", f"addq {depth}, {weights}", f"decq {channels}", "jg 1b",
        "5:",
    ]
    register = "v" if isa.registers > 16 else "x"
    bound = [*[f"={register}"] * count, *[f"=&{register}"] * (vectors + 1), *["=&r"] * 7, *map(str, range(count)),
             *(str(factor + 1 + i) for i in range(3)), *["r"] * 4, "~{memory}", "~{flags}", "~{dirflag}", "~{fpsr}"]
    given = [*sums, walk.data.pointer, walk.weights.pointer, walk.channels, walk.table.pointer, walk.taps,
             walk.plane * size, walk.depth * size]
    made = _called(b, "\\0A".join(text), bound, [kind] * (factor + 1) + ["ptr", "ptr"] + ["i64"] * 5, given)
    sums[:] = [b.emit(kind, f"extractvalue {made.type} {made.text}, {i}") for i in range(count)]


def _called(b: Builder, text: str, bound: Sequence[str], kinds: Sequence[str], given: Sequence[Value]) -> Value:
    result, values = f"{{ {', '.join(kinds)} }}", ", ".join(f"{x.type} {x.text}" for x in given)
    return b.emit(result, f'call {result} asm sideeffect "{text}", "{",".join(bound)}"({values})')
