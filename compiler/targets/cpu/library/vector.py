"""Products of a matrix and a vector (`calls.gemm` of a single row or column), or few rows: one pass over the matrix.

y[j] = sum over k of x[k] * W[j, k]. A unit of work is a chunk of j, of one batch. It is summed up in scratch together
with the units that follow it, as far as the same thread has them and the sums stay in a near cache:

    by rows (the depth of a row lies together):  ROWS rows at a time, vectors of the depth, whose lanes are added up
    by columns (j lies together):                STEPS of the depth at a time, VECTORS of j, for each of few rows x

Then the epilogue, over vectors of j.
"""
from __future__ import annotations

from collections.abc import Sequence

from mxc.compiler.kernel.geometry import Gemm
from mxc.compiler.kernel.ir import computing_dtype
from mxc.compiler.targets.cpu.emit.builder import BYTES, Array, Value
from mxc.compiler.targets.cpu.library.blocks import prefetch
from mxc.compiler.targets.cpu.library.cutting import UNITS, N, ceil_div, least, most
from mxc.compiler.targets.cpu.library.epilogue import Lane
from mxc.compiler.targets.cpu.library.printing import KERNEL, Function, Printing
from mxc.compiler.targets.cpu.machine.isa import Isa

ROWS, CHAINS = 4, 2  # by rows, so many rows are read at once, and each has so many sums that do not wait for each other
STEPS, VECTORS = 8, 2  # by columns, so many elements of the depth, and so many vectors of j, are read at once
UNIT_PRODUCTS = 1 << 16  # a unit has at least so many multiplications
# A unit's results are a multiple of so many. By columns they are more, so that a long part of a row is read at once.
GRAIN = {"rows": 64, "columns": 2048}
LARGEST = 2048  # a unit has at most so many results
AT_ONCE = 4096  # at most so many results of units are computed at once: their sums stay in the nearest cache
SUMS = 16384  # at most so many sums of few rows are computed at once: they stay in the second cache
AHEAD = 256  # by columns, a row is asked for so many bytes before it is read


def chunk_of(results: N, depth: N, grain: int) -> N:
    """How many results a unit has."""
    wanted: N = most(1, least(UNITS, results * depth // UNIT_PRODUCTS))
    return least(LARGEST, most(1, ceil_div(ceil_div(results, wanted), grain)) * grain)


def _at_once(chunk: N, rows: int) -> N:
    """How many results of a row are computed at once, at most: those of one unit, or of several."""
    return most(1, min(AT_ONCE, SUMS // rows) // chunk) * chunk


def units(g: Gemm[int]) -> int:
    results = g.m * g.n // g.few
    return g.batch * ceil_div(results, chunk_of(results, g.k, GRAIN[g.vector]))


def scratch_elements(g: Gemm[int], isa: Isa) -> int:
    chunk = chunk_of(g.m * g.n // g.few, g.k, GRAIN[g.vector])
    return g.few * _at_once(chunk, g.few) + isa.lanes(computing_dtype(g.dtype))


def print_kernel(p: Printing) -> None:
    with p.b.function(p.symbol, KERNEL) as (args, first, last, scratch):
        _Vector(p, args).units(first, last, p.array(scratch))


class _Vector(Function):
    """The kernel's function. x: the vector, or few rows; w: the matrix.

    step: elements between those of x; line, deep: between neighbours of the results, and of the depth, in the matrix.
    """

    g: Gemm[Value]

    def __init__(self, printing: Printing, args: Value):
        super().__init__(printing, args)
        g, (self.x, self.w) = self.g, self.epilogue.buffers[:2]
        (self.of_x, _, self.step), (self.of_w, self.deep, self.line) = g.a_strides, g.b_strides
        self.results = g.n
        if g.turned:
            self.x, self.w, self.results = self.w, self.x, g.m
            (self.of_w, self.line, self.deep), (self.of_x, self.step, _) = g.a_strides, g.b_strides

    def units(self, first: Value, last: Value, sums: Array) -> None:
        b, g, lanes, rows = self.b, self.g, self.lanes, self.g.few
        chunk = chunk_of(self.results, g.k, GRAIN[g.vector])
        chunks, at_once = b.maximum(ceil_div(self.results, chunk), 1), _at_once(chunk, rows)
        for batch in b.range(first // chunks, ceil_div(last, chunks)):
            end = b.minimum((last - batch * chunks) * chunk, self.results)
            for start in b.range(b.maximum(first - batch * chunks, 0) * chunk, end, at_once):
                count = b.minimum(at_once, end - start)
                x, matrix = self.x.at(batch * self.of_x), self.w.at(batch * self.of_w + start * self.line)
                if g.vector == "rows":
                    self._by_rows(sums, x, matrix, count)
                else:
                    of_rows = [sums.at(r * at_once) for r in range(rows)]
                    self._by_columns(of_rows, [x.at(g.a_strides[1] * r) for r in range(rows)], matrix, count)
                for r in range(rows):
                    for j in b.range(0, count, lanes):
                        along = Lane(start + j)
                        axes = (batch, along, b.lift(r)) if g.turned else (batch, b.lift(r), along)
                        total = sums.vector(r * at_once + j, lanes)
                        self.epilogue.store(axes, total, self.dtype, b.first_lanes(count - j, lanes))

    def _by_rows(self, sums: Array, x: Array, w: Array, count: Value) -> None:
        b, lanes, depth, loaded = self.b, self.lanes, self.g.k, self.loaded
        whole = depth - depth % (CHAINS * lanes)
        for j in b.range(0, count, ROWS):
            # where rows end, the last one is read again; its results are overwritten, or behind the end
            rows = [w.at(b.minimum(j + i, count - 1) * self.line) for i in range(ROWS)]
            totals = [self.zero for _ in range(ROWS * CHAINS)]
            for begin, end, chains in ((b.lift(0), whole, CHAINS), (whole, depth, 1)):
                for k in b.range(begin, end, chains * lanes, carry=totals):
                    mask = b.first_lanes(depth - k, lanes) if chains == 1 else None
                    for u in range(chains):
                        factor = loaded(x.at(k).vector(u * lanes, lanes, mask), x.dtype)
                        for i, row in enumerate(rows):
                            here = loaded(row.at(k).vector(u * lanes, lanes, mask), w.dtype)
                            totals[i * CHAINS + u] = b.fma(factor, here, totals[i * CHAINS + u])
            for i in range(ROWS):
                total = totals[i * CHAINS]
                for u in range(1, CHAINS):
                    total = total + totals[i * CHAINS + u]
                sums[j + i] = b.sum_lanes(total)

    def _by_columns(self, sums: Sequence[Array], xs: Sequence[Array], w: Array, count: Value) -> None:
        b, lanes, depth, loaded = self.b, self.lanes, self.g.k, self.loaded
        for of_row in sums:
            for j in b.range(0, count, lanes):
                of_row.put(j, self.zero)
        together = VECTORS if (len(xs) + 1) * VECTORS < self.isa.registers else 1  # sums stay in registers
        whole, within = depth - depth % STEPS, count - count % (together * lanes)
        for begin, end, steps in ((b.lift(0), whole, STEPS), (whole, depth, 1)):
            for k in b.range(begin, end, steps):
                factors = [[loaded(x.at((k + u) * self.step).broadcast(0, lanes), x.dtype) for x in xs]
                           for u in range(steps)]
                lines = [w.at((k + u) * self.deep) for u in range(steps)]
                for start, stop, vectors in ((b.lift(0), within, together), (within, count, 1)):
                    for j in b.range(start, stop, vectors * lanes):
                        mask = None if stop is within else b.first_lanes(count - j, lanes)
                        self._add_step(sums, lines, factors, j, vectors, mask)

    def _add_step(
        self, sums: Sequence[Array], lines: Sequence[Array], factors: Sequence[Sequence[Value]], j: Value, vectors: int,
        mask: Value | None,
    ) -> None:
        """sums[row][j...] += factors[step][row] * lines[step][j...], for so many vectors from j on."""
        b, lanes = self.b, self.lanes
        totals = [[of_row.vector(j + v * lanes, lanes) for of_row in sums] for v in range(vectors)]
        for of_step, row in zip(factors, lines, strict=True):
            prefetch(row.at(j + AHEAD // BYTES[row.dtype]), 0)
            for v in range(vectors):
                here = self.loaded(row.vector(j + v * lanes, lanes, mask), row.dtype)
                totals[v] = [b.fma(x, here, t) for x, t in zip(of_step, totals[v], strict=True)]
        for v, of_vector in enumerate(totals):
            for of_row, total in zip(sums, of_vector, strict=True):
                of_row.put(j + v * lanes, total)
