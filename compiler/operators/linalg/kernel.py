"""Routines of triangles: systems of equations, and elements row by row."""
from __future__ import annotations

from math import prod

from mxc.compiler.kernel.routines.rule import RoutineCall, RoutineNode, call
from mxc.compiler.kernel.routines.spec import routine
from mxc.compiler.ops.operator import Params


def trsm_routine(c: RoutineNode, params: Params) -> RoutineCall:
    shape = c.shape(1)
    return call("trsm", (prod(shape[:-2]), *shape[-2:]), right=params.rightside, turned=params.transpose,
                lower=params.lower, alpha=params.alpha, real=c.dtype(0))


@routine(inputs=("a", "b"), outputs=("out",), units="batch")
def trsm(first, last, a, b, out, batch, rows, columns, *, right, turned, lower, alpha, real):
    """op(A) X = alpha * B, or X op(A) = alpha * B, by substitution: each row of X (or its columns) less what those
    before it give, over the diagonal."""
    size = columns if right else rows
    for unit in range(first, last):
        base = unit * size * size
        place = unit * rows * columns
        for i in range(place, place + rows * columns):
            out[i] = real(alpha) * b[i]
        for step in range(size):
            i = step if (lower != turned) != right else size - 1 - step
            for before in range(step):
                k = before if (lower != turned) != right else size - 1 - before
                if right:
                    factor = a[base + i * size + k] if turned else a[base + k * size + i]
                    for row in range(rows):
                        at = place + row * columns
                        out[at + i] = out[at + i] - out[at + k] * factor
                else:
                    factor = a[base + k * size + i] if turned else a[base + i * size + k]
                    for column in range(columns):
                        out[place + i * columns + column] = (
                            out[place + i * columns + column] - factor * out[place + k * columns + column])
            if right:
                for row in range(rows):
                    at = place + row * columns + i
                    out[at] = out[at] / a[base + i * size + i]
            else:
                for column in range(columns):
                    at = place + i * columns + column
                    out[at] = out[at] / a[base + i * size + i]


def _is_lower(params: Params) -> bool:
    return params.offset < 0 or (params.offset == 0 and params.lower)


def extracttrian_routine(c: RoutineNode, params: Params) -> RoutineCall:
    shape = c.shape(0)
    return call("extracttrian", (prod(shape[:-2]), shape[-1], c.out_shapes[0][-1], abs(params.offset)),
                lower=_is_lower(params))


@routine(inputs=("data",), outputs=("out",), units="batch")
def extracttrian(first, last, data, out, batch, size, count, offset, *, lower):
    """The elements of a triangle of each matrix, `offset` away from the diagonal: the lower one's row by row, the upper
    one's column by column."""
    for unit in range(first, last):
        at = unit * count
        for major in range(offset, size):
            for minor in range(major - offset + 1):
                out[at] = data[unit * size * size + (major * size + minor if lower else minor * size + major)]
                at = at + 1


def maketrian_routine(c: RoutineNode, params: Params) -> RoutineCall:
    shape = c.shape(0)
    return call("maketrian", (prod(shape[:-1]), c.out_shapes[0][-1], shape[-1], abs(params.offset)),
                lower=_is_lower(params), real=c.dtype(0))


@routine(inputs=("data",), outputs=("out",), units="batch")
def maketrian(first, last, data, out, batch, size, count, offset, *, lower, real):
    """Zeros but for a triangle of each matrix, whose elements come as those of extracttrian."""
    for unit in range(first, last):
        for i in range(unit * size * size, (unit + 1) * size * size):
            out[i] = real(0)
        at = unit * count
        for major in range(offset, size):
            for minor in range(major - offset + 1):
                out[unit * size * size + (major * size + minor if lower else minor * size + major)] = data[at]
                at = at + 1
