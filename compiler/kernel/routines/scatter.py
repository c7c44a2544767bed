"""Sums and values at places that an index tells: writing, and the gradients of reading, at indices."""
from __future__ import annotations

from mxc.compiler.kernel.routines.spec import routine
from mxc.compiler.kernel.routines.words import int64, min_


@routine(inputs=("data", "indices"), outputs=("out",),
         units="outer * ((rows + block - 1) // block) * ((inner + width - 1) // width)")
def scatter_add(first, last, data, indices, out, outer, count, rows, inner, block, width, *, real):
    """out[o, r, i] = sum of data[o, j, i] over the j whose indices[j] is r, in the order of j.

    data: (outer, count, inner); indices: (count,), each in 0..rows-1 (others are left out); out: (outer, rows, inner).
    A unit is `block` rows and `width` columns of one matrix, so no two threads write one element.
    """
    parts = (inner + width - 1) // width
    blocks = (rows + block - 1) // block
    for unit in range(first, last):
        matrix = unit // (parts * blocks)
        top = unit // parts % blocks * block
        bottom = min_(top + block, rows)
        start = unit % parts * width
        stop = min_(start + width, inner)
        if parts == 1:
            for i in range((matrix * rows + top) * inner, (matrix * rows + bottom) * inner):
                out[i] = real(0)
        else:
            for row in range(top, bottom):
                for i in range((matrix * rows + row) * inner + start, (matrix * rows + row) * inner + stop):
                    out[i] = real(0)
        for j in range(count):
            wanted = int64(indices[j])
            if top <= wanted < bottom:
                base = (matrix * rows + wanted) * inner
                source = (matrix * count + j) * inner
                for i in range(start, stop):
                    out[base + i] = out[base + i] + data[source + i]


@routine(inputs=("base", "data", "indices"), outputs=("out",),
         units="((rows + block - 1) // block) * ((inner + width - 1) // width)")
def scatter_set(first, last, base, data, indices, out, count, rows, inner, block, width):
    """out = base, but out[r, i] = data[j, i] where indices[j] is r; of several such j the last one.

    base, out: (rows, inner); data: (count, inner); indices: (count,), each in 0..rows-1 (others are left out). A unit
    is `block` rows and `width` columns, so no two threads write one element.
    """
    parts = (inner + width - 1) // width
    for unit in range(first, last):
        top = unit // parts * block
        bottom = min_(top + block, rows)
        start = unit % parts * width
        stop = min_(start + width, inner)
        if parts == 1:
            for i in range(top * inner, bottom * inner):
                out[i] = base[i]
        else:
            for row in range(top, bottom):
                for i in range(row * inner + start, row * inner + stop):
                    out[i] = base[i]
        for j in range(count):
            wanted = int64(indices[j])
            if top <= wanted < bottom:
                place = wanted * inner
                source = j * inner
                for i in range(start, stop):
                    out[place + i] = data[source + i]
