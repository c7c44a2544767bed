"""Products of a matrix and a vector (`calls.gemm` of a single row or column), or few rows: one pass over the matrix.

y[j] = sum over k of x[k] * W[j, k]. A unit of work is a chunk of j, of one batch, summed up in scratch, together with
the units that follow it, as far as one thread has them and the sums stay near:

    by rows (the depth of a row lies together):  ROWS rows at a time, vectors of the depth, whose lanes are added up
    by columns (j lies together):                STEPS of the depth at a time, VECTORS of j, for each of few rows x

Then the epilogue, over vectors of j.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mxc.compiler.kernel.ir import CallKernel, computing_dtype
from mxc.compiler.targets.cpu.emit.builder import BYTES, TYPES, Array, Builder, Number, Value, vector_type
from mxc.compiler.targets.cpu.library.blocks import UNITS, ceil_div, least, most, prefetch
from mxc.compiler.targets.cpu.library.epilogue import Epilogue, Lane
from mxc.compiler.targets.cpu.machine.isa import Isa

ROWS, CHAINS = 4, 2  # rows at once, and sums of each that grow independently
STEPS, VECTORS = 8, 2  # of the depth and of j at once, by columns
UNIT_PRODUCTS = 1 << 16  # of a unit, at least
GRAIN = {"rows": 64, "columns": 2048}  # results of a unit: a multiple of it; what is read of a row at once is long
LARGEST = 2048  # results of a unit, at most
AT_ONCE = 4096  # of units that are computed at once, at most: their sums stay in the nearest cache
SUMS = 16384  # of few rows, at most: they stay in the second cache
AHEAD = 256  # bytes of a row that are asked for before they are read, by columns


def chunk_of(results: Number, depth: Number, grain: int) -> Any:
    """Results of a unit."""
    wanted: Any = most(1, least(UNITS, results * depth // UNIT_PRODUCTS))  # type: ignore[operator]
    return least(LARGEST, most(1, ceil_div(ceil_div(results, wanted), grain)) * grain)  # type: ignore[operator]


def _at_once(chunk: Number, rows: int) -> Any:
    """Results of a row that are computed at once, at most: of a unit, or of several."""
    return most(1, min(AT_ONCE, SUMS // rows) // chunk) * chunk  # type: ignore[operator]


def _grain(kernel: CallKernel) -> int:
    return GRAIN[str(dict(kernel.params)["vector"])]


def _rows(kernel: CallKernel) -> int:
    return int(dict(kernel.params)["few"])  # type: ignore[call-overload]


def units(kernel: CallKernel) -> int:
    batch, m, n, k = kernel.extents[:4]
    results = m * n // _rows(kernel)
    return batch * int(ceil_div(results, chunk_of(results, k, _grain(kernel))))  # type: ignore[arg-type]


def scratch_elements(kernel: CallKernel, isa: Isa) -> int:
    _, m, n, k = kernel.extents[:4]
    lanes, rows = isa.lanes(computing_dtype(str(dict(kernel.params)["dtype"]))), _rows(kernel)
    return rows * int(_at_once(chunk_of(m * n // rows, k, _grain(kernel)), rows)) + lanes


def print_kernel(
    kernel: CallKernel, symbol: str, b: Builder, isa: Isa, dtype: str, epilogue_of: Callable[[Value], Epilogue],
) -> None:
    params, lanes = dict(kernel.params), isa.lanes(dtype)
    with b.function(symbol, "ptr args, i64 first, i64 last, ptr scratch") as (args, first, last, scratch):
        e, sums = epilogue_of(args), Array(b, scratch, dtype)
        (x, w), (_, m, n, k), strides = e.buffers[:2], e.extents[:4], (e.extents[4:7], e.extents[7:10])
        of_x, step, of_w, line, deep = strides[0][0], strides[0][2], strides[1][0], strides[1][2], strides[1][1]
        if params["turned"]:
            x, w = w, x
            of_x, step, of_w, line, deep = strides[1][0], strides[1][1], strides[0][0], strides[0][1], strides[0][2]
        results, rows = n if not params["turned"] else m, _rows(kernel)
        chunk = b.lift(chunk_of(results, k, _grain(kernel)))
        chunks, at_once = b.maximum(ceil_div(results, chunk), 1), _at_once(chunk, rows)
        for batch in b.range(first // chunks, ceil_div(last, chunks)):
            end = b.minimum((last - batch * chunks) * chunk, results)
            for start in b.range(b.maximum(first - batch * chunks, 0) * chunk, end, at_once):
                count = b.minimum(at_once, end - start)
                vector, matrix = x.at(batch * of_x), w.at(batch * of_w + start * line)
                if params["vector"] == "rows":
                    _by_rows(e, sums, vector, matrix, line, count, k, lanes, dtype)
                else:
                    of_rows = [sums.at(r * at_once) for r in range(rows)]
                    vectors = [vector.at(strides[0][1] * r) for r in range(rows)]
                    _by_columns(e, of_rows, vectors, step, matrix, deep, count, k, lanes, dtype, isa.registers)
                for r in range(rows):
                    for j in b.range(0, count, lanes):
                        along = Lane(start + j)
                        axes = (batch, along, b.lift(r)) if params["turned"] else (batch, b.lift(r), along)
                        e.store(axes, sums.vector(r * at_once + j, lanes), dtype, b.first_lanes(count - j, lanes))


def _by_rows(
    e: Epilogue, sums: Array, x: Array, w: Array, line: Value, count: Value, depth: Value, lanes: int, dtype: str,
) -> None:
    b, kind, loaded = e.b, vector_type(TYPES[dtype], lanes), e.arithmetic.loaded
    whole = depth - depth % (CHAINS * lanes)
    for j in b.range(0, count, ROWS):
        # where rows end, the last one is read again; its results are overwritten, or behind the end
        rows = [w.at(b.minimum(j + i, count - 1) * line) for i in range(ROWS)]
        totals = [b.zero(kind) for _ in range(ROWS * CHAINS)]
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


def _by_columns(
    e: Epilogue, sums: Sequence[Array], xs: Sequence[Array], step: Value, w: Array, deep: Value, count: Value,
    depth: Value, lanes: int, dtype: str, registers: int,
) -> None:
    b, loaded = e.b, e.arithmetic.loaded
    for of_row in sums:
        for j in b.range(0, count, lanes):
            of_row.put(j, b.zero(vector_type(TYPES[dtype], lanes)))
    together = VECTORS if (len(xs) + 1) * VECTORS < registers else 1  # whose sums stay in registers
    whole, within = depth - depth % STEPS, count - count % (together * lanes)
    for begin, end, steps in ((b.lift(0), whole, STEPS), (whole, depth, 1)):
        for k in b.range(begin, end, steps):
            factors = [[loaded(x.at((k + u) * step).broadcast(0, lanes), x.dtype) for x in xs] for u in range(steps)]
            lines = [w.at((k + u) * deep) for u in range(steps)]
            for start, stop, vectors in ((b.lift(0), within, together), (within, count, 1)):
                for j in b.range(start, stop, vectors * lanes):
                    mask = None if stop is within else b.first_lanes(count - j, lanes)
                    totals = [[of_row.vector(j + v * lanes, lanes) for of_row in sums] for v in range(vectors)]
                    for of_step, row in zip(factors, lines, strict=True):
                        prefetch(row.at(j + AHEAD // BYTES[w.dtype]), 0)
                        for v in range(vectors):
                            here = loaded(row.vector(j + v * lanes, lanes, mask), w.dtype)
                            totals[v] = [b.fma(x, here, t) for x, t in zip(of_step, totals[v], strict=True)]
                    for v, of_vector in enumerate(totals):
                        for of_row, total in zip(sums, of_vector, strict=True):
                            of_row.put(j + v * lanes, total)
