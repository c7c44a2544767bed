"""Register tiles: rows x vectors of sums in registers, and the functions of a kernel that compute them.

With AVX, the multiply-adds of some tiles are printed as assembly. They can be no other instructions than these,
hundreds for each tile, and LLVM takes ten times as long to select, schedule and allocate them as to assemble them. That
was most of a kernel's compilation.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mxc.compiler.kernel.ir import computing_dtype
from mxc.compiler.targets.cpu.emit.builder import (
    BYTES,
    TYPES,
    Array,
    Builder,
    Number,
    Value,
    is_float,
    lanes_of,
    vector_type,
)
from mxc.compiler.targets.cpu.library.arithmetic import Arithmetic
from mxc.compiler.targets.cpu.machine.isa import Isa

# In `chained`, at least so many vectors of sums grow independently of each other. A multiply-add takes about four
# cycles, and a core starts two in a cycle: eight that do not wait for each other keep it busy.
CHAINS = 8
STEP = 4  # one round of the loop of `chained` takes so many elements of the depth
LIFT = -0x7F7F7F80  # exclusive or with it adds 128 to each of the four bytes of a word

Shape = tuple[int, int]  # of a tile: rows, vectors


def sizes(rows: int) -> range:
    """Rows of the tiles that are printed, where the most is `rows`: more than half. Work that is cut evenly has hardly
    any smaller ones."""
    return range(rows // 2 + 1, rows + 1)


def print_tiles(
    b: Builder, shapes: Sequence[Shape], parameters: str, tile: Callable[[int, int, list[Value]], None], called: str,
    fits_of: Callable[[list[Value]], Callable[[int, int], Value]], names: tuple[str, str] = ("tiles", "multiply"),
) -> None:
    """Prints a function for each shape of a register tile, and the function that kernels call, which continues in the
    one that fits.

    parameters: those of the tiles' functions; tile(rows, vectors, values) prints the body of one. called: the
    parameters of the function that kernels call: the same, and maybe more behind them. fits_of: makes of their values a
    function that tells whether a shape is meant. names: of a tile's function, to which its shape is appended, and of
    the function that kernels call.
    """
    for rows, vectors in shapes:
        with b.function(f"{names[0]}_{rows}_{vectors}", parameters, internal=True) as values:
            tile(rows, vectors, values)
    with b.function(names[1], called, internal=True) as values:
        fits, rest = fits_of(values), values[: len(parameters.split(","))]
        for rows, vectors in shapes:
            with b.when(fits(rows, vectors)):
                b.leave(f"{names[0]}_{rows}_{vectors}", rest)


def same_shape(values: list[Value]) -> Callable[[int, int], Value]:
    """`fits_of` for functions whose last two parameters are the shape that is meant."""
    *_, rows_here, vectors_here = values
    return lambda rows, vectors: rows_here.equals(rows) & vectors_here.equals(vectors)


def zeros(b: Builder, dtype: str, lanes: int, count: int) -> list[Value]:
    """So many vectors of sums of `dtype` that have nothing in them yet."""
    return [b.zero(vector_type(TYPES[dtype], lanes)) for _ in range(count)]


@dataclass(frozen=True)
class Panel:
    """`vectors` vectors of columns for each element of a depth, which begin `pitch` elements apart."""

    array: Array
    pitch: int
    vectors: int


def chained(
    arithmetic: Arithmetic, lanes: int, rows: Sequence[Array], step: int, panel: Panel, depth: Value, whole: Value,
) -> list[Value]:
    """The sums over the depth of rows[i][k * step] * panel[k][j], for all rows i and vectors j.

    In a small tile several chains of sums grow side by side, each over every second or fourth element of the depth.
    whole: the part of the depth that STEP divides.
    """
    b, loaded = arithmetic.b, arithmetic.loaded
    grid = [(i, j) for i in range(len(rows)) for j in range(panel.vectors)]
    count = len(grid)
    chains = next(n for n in (1, 2, 4) if n == STEP or n * count >= CHAINS)
    sums = zeros(b, computing_dtype(panel.array.dtype), lanes, chains * count)
    for begin, end, steps in ((b.lift(0), whole, STEP), (whole, depth, 1)):
        for k in b.range(begin, end, steps, carry=sums):
            line, here = panel.array.at(k * panel.pitch), [row.at(k * step) for row in rows]
            for u in range(steps):
                columns = [loaded(line.vector(u * panel.pitch + j * lanes, lanes), line.dtype)
                           for j in range(panel.vectors)]
                for n, (i, j) in enumerate(grid):
                    x = loaded(here[i].broadcast(u * step, lanes), here[i].dtype)
                    at = u % chains * count + n
                    sums[at] = b.fma(x, columns[j], sums[at])
    for at in range(count, len(sums)):
        sums[at % count] = sums[at % count] + sums[at]
    return sums[:count]


def keep_sums(sums: Sequence[Value], places: Sequence[tuple[Array, Number]], add: Value) -> None:
    """tile[place] = (add ? tile[place] : 0) + a vector of sums, for each (tile, place)."""
    b = add.builder
    with b.when(add.equals(0)):
        for total, (tile, place) in zip(sums, places, strict=True):
            tile.put(place, total)
    with b.when(add.differs(0)):
        for total, (tile, place) in zip(sums, places, strict=True):
            tile.put(place, total + tile.vector(place, lanes_of(total.type)))


def multiply(
    b: Builder, isa: Isa, sums: list[Value], lines: Sequence[tuple[Array, int]], row: Array, pitch: int, count: int,
) -> None:
    """sums[i][j] += line i's element u * element (u * pitch + j * lanes) of `row` as a vector, for all u < count.

    sums: for each line, those of all its vectors. lines: for each line an array, and where in it the line begins.
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


def multiply_quads(
    b: Builder, isa: Isa, sums: list[Value], lines: Sequence[tuple[Array, int]], row: Array, pitch: int = 0,
    count: int = 1, signed_row: bool = False,
) -> None:
    """Does what `multiply` does, for elements that are four numbers of 8 bits each, in sums of int32. Those of the row
    are uint8 and those of the lines int8, or, `signed_row`, the other way round. No product or sum is cut."""
    lanes, vectors = isa.lanes(row.dtype), len(sums) // len(lines)
    if isa.dots:
        _assembled(b, isa, sums, lines, row, pitch, count, "vpdpbusd", signed_row)
        return
    for u in range(count):
        columns = [row.vector(u * pitch + j * lanes, lanes) for j in range(vectors)]
        for i, (line, begin) in enumerate(lines):
            x = line.broadcast(begin + u, lanes)
            for j, column in enumerate(columns):
                pair = (x, column) if signed_row else (column, x)
                sums[i * vectors + j] = _dots(b, isa, sums[i * vectors + j], *pair)


def multiply_pairs(
    b: Builder, isa: Isa, sums: list[Value], lines: Sequence[tuple[Array, int]], row: Array, pitch: int, count: int,
) -> None:
    """Does what `multiply` does, for elements that are two numbers of bfloat16 each, in sums of float32."""
    if isa.pairs:
        _assembled(b, isa, sums, lines, row, pitch, count, "vdpbf16ps")
        return
    lanes, vectors = isa.lanes(row.dtype), len(sums) // len(lines)
    for u in range(count):
        columns = [_halves(b, row.vector(u * pitch + j * lanes, lanes)) for j in range(vectors)]
        for i, (line, begin) in enumerate(lines):
            factors = _halves(b, line.broadcast(begin + u, lanes))
            for j in range(vectors):
                for factor, column in zip(factors, columns[j], strict=True):
                    sums[i * vectors + j] = b.fma(factor, column, sums[i * vectors + j])


def _halves(b: Builder, x: Value) -> list[Value]:
    """The two numbers of bfloat16 in each lane, as float32: the one in the lower half first."""
    bits = _as(b, x, vector_type("i32", lanes_of(x.type)))
    lower = b.binary("shl", bits, b.number(16, bits.type))
    return [_as(b, lower, x.type), _as(b, b.binary("and", bits, b.number(-65536, bits.type)), x.type)]


# Of the products of 16 bits that AVX and SSE add in pairs, by the bytes of a vector.
_PAIRS = {64: "llvm.x86.avx512.pmaddw.d.512", 32: "llvm.x86.avx2.pmadd.wd", 16: "llvm.x86.sse2.pmadd.wd"}


def _dots(b: Builder, isa: Isa, total: Value, bytes_: Value, signed: Value) -> Value:
    """total + the four products of each lane's bytes: of uint8 by int8."""
    kind, lanes = total.type, lanes_of(total.type)
    if not isa.assembles and "+sse" not in isa.features:
        for shift in (0, 8, 16, 24):
            here = b.binary("and", b.binary("lshr", bytes_, b.number(shift, kind)), b.number(255, kind))
            by = b.binary("ashr", b.binary("shl", signed, b.number(24 - shift, kind)), b.number(24, kind))
            total = total + here * by
        return total
    words = vector_type("i16", 2 * lanes)

    def halves(x: Value, extend: str) -> list[Value]:
        whole, eight = _as(b, x, words), b.number(8, words)
        low = b.binary(extend, b.binary("shl", whole, eight), eight)
        return [low, b.binary(extend, whole, eight)]

    for left, right in zip(halves(bytes_, "lshr"), halves(signed, "ashr"), strict=True):
        total = total + b.intrinsic(_PAIRS[isa.vector_bytes], kind, [left, right], [])
    return total


def _as(b: Builder, x: Value, kind: str) -> Value:
    """The bits of `x` as another type."""
    return b.emit(kind, f"bitcast {x.type} {x.text} to {kind}")


def add_in_turn(b: Builder, isa: Isa, sums: list[Value], factors: Sequence[tuple[Array, Number]], row: Array) -> None:
    """Does what `add_products` does, for factors that lie far from each other. With AVX each factor is loaded where it
    is used, by assembly: LLVM would load all of them first, and have no registers left for some of the sums."""
    lanes, vectors = isa.lanes(row.dtype), len(sums) // len(factors)
    if not (isa.assembles and is_float(row.element)):
        add_products(b, lanes, sums, factors, row)
        return
    kind, letter = sums[0].type, {4: "s", 8: "d"}[BYTES[row.dtype]]
    register, result = "v" if isa.registers > 16 else "x", f"{{ {', '.join([kind] * (vectors + 1))} }}"
    columns = [row.vector(j * lanes, lanes) for j in range(vectors)]
    text = "\\0A".join([f"vbroadcasts{letter} ${3 * vectors + 1}, ${vectors}", *(
        f"vfmadd231p{letter} ${vectors}, ${2 * vectors + 1 + j}, ${j}" for j in range(vectors))])
    bound = ",".join([*[f"={register}"] * vectors, f"=&{register}", *map(str, range(vectors)), *[register] * vectors,
                      "*m"])
    for i, (line, place) in enumerate(factors):
        given = [f"{x.type} {x.text}" for x in (*sums[i * vectors : (i + 1) * vectors], *columns)]
        given.append(f"ptr elementtype({line.element}) {line.at(place).pointer.text}")
        made = b.emit(result, f'call {result} asm sideeffect "{text}", "{bound}"({", ".join(given)})')
        for j in range(vectors):
            sums[i * vectors + j] = b.emit(kind, f"extractvalue {result} {made.text}, {j}")


# many parameters: those of `multiply`, and what a step does
def _assembled(
    b: Builder, isa: Isa, sums: list[Value], lines: Sequence[tuple[Array, int]], row: Array, pitch: int, count: int,
    step: str = "", row_first: bool = False,
) -> None:
    """Does what `multiply` does, in one piece of assembly. Its operands are the sums, registers for a row's vectors and
    a factor, the sums as they were (in the same registers), and pointers. step: the instruction that adds, where it is
    no multiply-add of floats; row_first: whether its first operand is the row's vector, and not the factor."""
    vectors, kind, size = len(sums) // len(lines), sums[0].type, BYTES[row.dtype]
    letter, wide, places = {4: "s", 8: "d"}[size], isa.vector_bytes, len(sums)
    step = step or f"vfmadd231p{letter}"
    factor = places + vectors
    pointers = list(dict.fromkeys(array.pointer.text for array in (row, *(line for line, _ in lines))))
    at = {pointer: f"(${places + factor + 1 + i})" for i, pointer in enumerate(pointers)}
    text = []
    for u in range(count):
        text += [f"vmovup{letter} {u * pitch * size + j * wide}{at[row.pointer.text]}, ${places + j}"
                 for j in range(vectors)]
        for i, (line, begin) in enumerate(lines):
            text.append(f"vbroadcasts{letter} {(begin + u) * size}{at[line.pointer.text]}, ${factor}")
            for j in range(vectors):
                pair = (places + j, factor) if row_first else (factor, places + j)
                text.append(f"{step} ${pair[0]}, ${pair[1]}, ${i * vectors + j}")
    register = "v" if isa.registers > 16 else "x"
    bound = [*[f"={register}"] * places, *[f"=&{register}"] * (vectors + 1), *map(str, range(places)),
             *["r"] * len(pointers), "~{memory}"]
    given = [*(f"{kind} {x.text}" for x in sums), *(f"ptr {pointer}" for pointer in pointers)]
    result, code = f"{{ {', '.join([kind] * (factor + 1))} }}", "\\0A".join(text)
    made = b.emit(result, f'call {result} asm sideeffect "{code}", "{",".join(bound)}"({", ".join(given)})')
    sums[:] = [b.emit(kind, f"extractvalue {result} {made.text}, {i}") for i in range(places)]
