"""Sums and values at places that an index tells: writing, and the gradients of reading, at indices."""
from __future__ import annotations

from mxc.compiler.kernel.routines.spec import routine
from mxc.compiler.kernel.routines.words import int64, min_


@routine(inputs=("data", "indices"), outputs=("out",), units="outer * ((inner + 63) // 64)")
def scatter_add(first, last, data, indices, out, outer, count, rows, inner, *, real):
    """out[o, r, i] = sum of data[o, j, i] over the j whose indices[j] is r, in the order of j.

    data: (outer, count, inner); indices: (count,), each in 0..rows-1 (others are left out); out: (outer, rows, inner).
    A unit is 64 columns of one matrix, so no two threads write one element.
    """
    parts = (inner + 63) // 64
    for unit in range(first, last):
        matrix = unit // parts
        start = unit % parts * 64
        stop = min_(start + 64, inner)
        for row in range(rows):
            base = (matrix * rows + row) * inner
            for i in range(start, stop):
                out[base + i] = real(0)
        for j in range(count):
            wanted = int64(indices[j])
            if 0 <= wanted < rows:
                base = (matrix * rows + wanted) * inner
                source = (matrix * count + j) * inner
                for i in range(start, stop):
                    out[base + i] = out[base + i] + data[source + i]


@routine(inputs=("base", "data", "indices"), outputs=("out",), units="(inner + 63) // 64")
def scatter_set(first, last, base, data, indices, out, count, rows, inner):
    """out = base, but out[r, i] = data[j, i] where indices[j] is r; of several such j the last one.

    base, out: (rows, inner); data: (count, inner); indices: (count,), each in 0..rows-1 (others are left out). A unit
    is 64 columns, so no two threads write one element.
    """
    for unit in range(first, last):
        start = unit * 64
        stop = min_(start + 64, inner)
        for row in range(rows):
            place = row * inner
            for i in range(start, stop):
                out[place + i] = base[place + i]
        for j in range(count):
            wanted = int64(indices[j])
            if 0 <= wanted < rows:
                place = wanted * inner
                source = j * inner
                for i in range(start, stop):
                    out[place + i] = data[source + i]
