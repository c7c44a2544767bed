"""The multiply-adds of a register tile.

With AVX they are printed as assembly. They can be no other instructions than these, hundreds for each tile, and LLVM
takes ten times as long to select, schedule and allocate them as to assemble them: most of a kernel's compilation.
"""
from __future__ import annotations

from collections.abc import Sequence

from mxc.compiler.targets.cpu.emit.builder import BYTES, Array, Builder, Number, Value, is_float
from mxc.compiler.targets.cpu.machine.isa import Isa


def sizes(rows: int) -> range:
    """Rows of the tiles that are printed, where the most is `rows`: more than half. Work that is cut evenly has hardly
    any smaller ones."""
    return range(rows // 2 + 1, rows + 1)


def multiply(
    b: Builder, isa: Isa, sums: list[Value], lines: Sequence[tuple[Array, int]], row: Array, pitch: int, count: int,
) -> None:
    """sums[i][j] += line i's element u * element (u * pitch + j * lanes) of `row` as a vector, for all u < count.

    sums: of each line, of all its vectors. lines: an array, and where in it a line begins.
    """
    lanes = isa.lanes(row.dtype)
    if isa.assembles and is_float(row.element):
        _assembled(b, isa, sums, lines, row, pitch, count)
        return
    for u in range(count):
        add_products(b, lanes, sums, [(line, begin + u) for line, begin in lines], row, u * pitch)


def add_products(
    b: Builder, lanes: int, sums: list[Value], factors: Sequence[tuple[Array, Number]], row: Array, begin: int = 0,
) -> None:
    """sums[i][j] += factor i * vector j of `row` from `begin` on. A factor: an array, and which of its elements."""
    vectors = len(sums) // len(factors)
    columns = [row.vector(begin + j * lanes, lanes) for j in range(vectors)]
    for i, (line, place) in enumerate(factors):
        x = line.broadcast(place, lanes)
        for j in range(vectors):
            sums[i * vectors + j] = b.fma(x, columns[j], sums[i * vectors + j])


def _assembled(
    b: Builder, isa: Isa, sums: list[Value], lines: Sequence[tuple[Array, int]], row: Array, pitch: int, count: int,
) -> None:
    """As `multiply`, as one piece of assembly. Its operands: the sums, registers for a row's vectors and a factor, the
    sums as they were, in the same registers, and pointers."""
    vectors, kind, size = len(sums) // len(lines), sums[0].type, BYTES[row.dtype]
    letter, step, places = {4: "s", 8: "d"}[size], isa.vector_bytes, len(sums)
    factor = places + vectors
    pointers = list(dict.fromkeys(array.pointer.text for array in (row, *(line for line, _ in lines))))
    at = {pointer: f"(${places + factor + 1 + i})" for i, pointer in enumerate(pointers)}
    text = []
    for u in range(count):
        text += [f"vmovup{letter} {u * pitch * size + j * step}{at[row.pointer.text]}, ${places + j}"
                 for j in range(vectors)]
        for i, (line, begin) in enumerate(lines):
            text.append(f"vbroadcasts{letter} {(begin + u) * size}{at[line.pointer.text]}, ${factor}")
            text += [f"vfmadd231p{letter} ${factor}, ${places + j}, ${i * vectors + j}" for j in range(vectors)]
    register = "v" if isa.registers > 16 else "x"
    bound = [*[f"={register}"] * places, *[f"=&{register}"] * (vectors + 1), *map(str, range(places)),
             *["r"] * len(pointers), "~{memory}"]
    given = [*(f"{kind} {x.text}" for x in sums), *(f"ptr {pointer}" for pointer in pointers)]
    result, code = f"{{ {', '.join([kind] * (factor + 1))} }}", "\\0A".join(text)
    made = b.emit(result, f'call {result} asm sideeffect "{code}", "{",".join(bound)}"({", ".join(given)})')
    sums[:] = [b.emit(kind, f"extractvalue {result} {made.text}, {i}") for i in range(places)]
