"""Routines over compressed rows: the parts of csr and row_sparse arrays (ops/storage.py).

How many elements are stored is not known before the work runs, so these are no steps of plans: the runtime calls them
with parts. All numbers in the parts are in range. Which unit adds up a result, and in which order, does not depend on
how many units there are.
"""
from __future__ import annotations

from mxc.compiler.kernel.routines.spec import routine
from mxc.compiler.kernel.routines.words import int8, int32, int64, min_


@routine(inputs=("values", "columns", "starts", "rhs"), outputs=("out",), units="(rows + block - 1) // block")
def csr_dot(first, last, values, columns, starts, rhs, out, rows, inner, block, *, real, fixed):
    """out = csr . rhs. The matrix has `rows` rows; rhs: (its columns, inner); out: (rows, inner). A unit is `block`
    rows. fixed: `inner` where that is a part of the code, so that no loop over it has a rest; or 0."""
    width = inner
    if fixed:
        width = fixed
    for unit in range(first, last):
        for row in range(unit * block, min_(unit * block + block, rows)):
            base = row * width
            for i in range(base, base + width):
                out[i] = real(0)
            j = starts[row]
            end = starts[row + 1]
            # Four rows of rhs at once: each element of out is read and written a fourth as often. They are added up
            # first, so that an addition waits for a fourth of those before it.
            while j + 4 <= end:
                value0 = values[j]
                value1 = values[j + 1]
                value2 = values[j + 2]
                value3 = values[j + 3]
                row0 = columns[j] * width
                row1 = columns[j + 1] * width
                row2 = columns[j + 2] * width
                row3 = columns[j + 3] * width
                for i in range(width):
                    pair0 = value0 * rhs[row0 + i] + value1 * rhs[row1 + i]
                    pair1 = value2 * rhs[row2 + i] + value3 * rhs[row3 + i]
                    out[base + i] = out[base + i] + (pair0 + pair1)
                j = j + 4
            while j < end:
                value = values[j]
                source = columns[j] * width
                for i in range(width):
                    out[base + i] = out[base + i] + value * rhs[source + i]
                j = j + 1


@routine(inputs=("values", "targets", "starts", "rhs"), outputs=("out",), units="parts")
def csr_transposed_dot(first, last, values, targets, starts, rhs, out, rows, results, inner, parts, *, real, fixed):
    """out[targets[j]] = sum of values[j] * rhs[row of j], in the order of j.

    targets: which row of out each element belongs to, its column if out has a row for each. rhs: (rows, inner); out:
    (results, inner). A unit is one of `parts` stretches of out's rows: it looks at all elements, and adds up its own.
    fixed: as of csr_dot.
    """
    width = inner
    if fixed:
        width = fixed
    for unit in range(first, last):
        low = unit * results // parts
        high = (unit + 1) * results // parts
        for i in range(low * width, high * width):
            out[i] = real(0)
        for row in range(rows):
            source = row * width
            for j in range(starts[row], starts[row + 1]):
                target = targets[j]
                if low <= target < high:
                    value = values[j]
                    base = target * width
                    for i in range(width):
                        out[base + i] = out[base + i] + value * rhs[source + i]


@routine(inputs=("numbers",), outputs=("marks", "before", "found", "places", "total"), units="1")
def rank_numbers(first, last, numbers, marks, before, found, places, total, count, limit):
    """found: the different ones of `count` numbers below `limit`, ascending; total[0] says how many there are, and
    there is room for one more. places: for each of the numbers its place among these. marks, before: memory of `limit`
    int8 and int32."""
    for unit in range(first, last):
        for i in range(limit):
            marks[i] = int8(0)
        for j in range(count):
            marks[numbers[j]] = int8(1)
        known = int64(0)
        for i in range(limit):  # without branches, which nobody could predict
            found[known] = i
            before[i] = int32(known)
            known = known + int64(marks[i])
        for j in range(count):
            places[j] = int64(before[numbers[j]])
        total[unit] = known


@routine(inputs=("lhs", "values", "columns", "starts"), outputs=("out",), units="outer")
def dot_csr(first, last, lhs, values, columns, starts, out, outer, rows, inner, *, transposed, real):
    """out = lhs . csr, or lhs . csr transposed. lhs: (outer, rows), or (outer, inner); out: the other way round. The
    matrix: (rows, inner)."""
    for unit in range(first, last):
        if transposed:
            source = unit * inner
            for row in range(rows):
                total = real(0)
                for j in range(starts[row], starts[row + 1]):
                    total = total + values[j] * lhs[source + columns[j]]
                out[unit * rows + row] = total
        else:
            base = unit * inner
            for i in range(base, base + inner):
                out[i] = real(0)
            for row in range(rows):
                factor = lhs[unit * rows + row]
                for j in range(starts[row], starts[row + 1]):
                    place = base + columns[j]
                    out[place] = out[place] + factor * values[j]


@routine(inputs=("data", "order", "starts"), outputs=("out",), units="(groups + block - 1) // block")
def sum_groups(first, last, data, order, starts, out, groups, inner, block, *, real):
    """out[g] = sum of data[order[j]] over j from starts[g] to starts[g + 1], in this order. data: (count, inner); out:
    (groups, inner). A unit is `block` groups."""
    for unit in range(first, last):
        for group in range(unit * block, min_(unit * block + block, groups)):
            base = group * inner
            for i in range(base, base + inner):
                out[i] = real(0)
            for j in range(starts[group], starts[group + 1]):
                source = order[j] * inner
                for i in range(inner):
                    out[base + i] = out[base + i] + data[source + i]


@routine(inputs=("data", "places"), outputs=("out",), units="(count + block - 1) // block")
def pick_rows(first, last, data, places, out, count, inner, block, *, zero):
    """out[k] = data[places[k]], zeros where that is negative. data: (rows, inner); out: (count, inner). A unit is
    `block` rows."""
    for unit in range(first, last):
        for k in range(unit * block, min_(unit * block + block, count)):
            base = k * inner
            if places[k] < 0:
                for i in range(base, base + inner):
                    out[i] = zero(0)
            else:
                source = places[k] * inner
                for i in range(inner):
                    out[base + i] = data[source + i]
