"""Index rules and routines of operators that read and write at indices.

No index leaves its array, whatever the input holds: it is clipped, wrapped or guarded. A float index is truncated; NaN
and what no integer holds become the lowest integer.
"""
from __future__ import annotations

from dataclasses import replace
from math import prod

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.index_rule import Index, IndexNode, replaced
from mxc.compiler.kernel.ir import INDEX, Value
from mxc.compiler.kernel.routines.rule import RoutineCall, RoutineNode, call
from mxc.compiler.kernel.routines.spec import routine
from mxc.compiler.kernel.routines.words import ceil_, floor_, int64, max_, min_
from mxc.compiler.kernel.simplify_index import index as number
from mxc.compiler.ops.expr import number_as
from mxc.compiler.ops.operator import Params

COLUMNS = 4096  # the most columns of a unit
PARTS = 16  # the most parts that rows are divided into: the units of every part look at all indices
AXES = 10  # the most axes that indices are checked along
LOOK = 16  # columns: to write so many costs about as much as to look at one index


def bounded(value: Value, size: int, mode: str) -> Value:
    """An integer brought into 0..size-1: wrapped in mode "wrap", else clipped."""
    if mode == "wrap":  # The modulus of dtype index takes no negative numbers.
        return ir.cast(ir.apply("mod", ir.cast(value, "int64"), ir.cast(number(size), "int64")), INDEX)
    place = ir.cast(ir.cast(value, "int64"), INDEX)
    return ir.apply("min", ir.apply("max", place, number(0)), number(size - 1))


def take(c: IndexNode, params: Params, index: Index) -> Value:
    """The indices' axes stand in the place of the data's `axis`."""
    shape, rank = c.shape(0), len(c.shape(1))
    axis = params.axis % len(shape)
    row = bounded(c.load(1, index[axis:axis + rank]), shape[axis], params.mode)
    return c.load(0, (*index[:axis], row, *index[axis + rank:]))


def bound_index(c: IndexNode, params: Params, index: Index) -> Value:
    """Indices as integers in 0..size-1."""
    return ir.cast(bounded(c.load(0, index), params.size, params.mode), "int64")


def flat_index(c: IndexNode, params: Params, index: Index) -> Value:
    """The row-major position of the index that the first axis holds; -1 where it is outside of `shape`."""
    position, inside = number(0), ir.const(True, "bool")
    for k, extent in enumerate(params.shape):
        place = ir.cast(ir.cast(c.load(0, (number(k), *index)), "int64"), INDEX)
        here = ir.apply("and", ir.apply("ge", place, number(0)), ir.apply("lt", place, number(extent)))
        inside = ir.apply("and", inside, here)
        position = ir.apply("add", ir.apply("mul", position, number(extent)), place)
    return ir.apply("where", inside, ir.cast(position, "int64"), ir.const(-1, "int64"))


def _picked(c: IndexNode, index: Index, axis: int, params: Params, size: int) -> Value:
    """Which element along the data's `axis` pick reads where the other axes are at `index` (`axis` left out)."""
    place = (*index[:axis], number(0), *index[axis:]) if len(c.shape(1)) > len(index) else index
    return bounded(ir.cast(c.load(1, place), "int32"), size, params.mode)


def pick(c: IndexNode, params: Params, index: Index) -> Value:
    """One element of each line along `axis`; a 32-bit integer tells which."""
    shape = c.shape(0)
    axis = params.axis % len(shape)
    others = (*index[:axis], *index[axis + 1:]) if len(c.out_shape) == len(shape) else index
    row = _picked(c, others, axis, params, shape[axis])
    return c.load(0, (*others[:axis], row, *others[axis:]))


def unpick(c: IndexNode, params: Params, index: Index) -> Value:
    """pick's gradient: the incoming gradient stands where pick has read, and zeros stand everywhere else."""
    axis, others = params.axis, (*index[:params.axis], *index[params.axis + 1:])
    here = ir.apply("eq", index[axis], _picked(c, others, axis, params, params.size))
    gradient = c.load(0, replaced(index, axis, number(0)) if params.kept else others)
    return ir.apply("where", here, gradient, ir.const(0, c.out_dtype))


def one_hot(c: IndexNode, params: Params, index: Index) -> Value:
    """`on_value` where the last axis is at the index, a 32-bit integer, else `off_value`."""
    # Compared as what it is: a vector holds twice as many numbers of 32 bits as indices.
    place = ir.cast(index[-1], "int32") if c.out_shape[-1] <= 1 << 31 else index[-1]
    wanted = ir.cast(ir.cast(c.load(0, index[:-1]), "int32"), place.dtype)
    on, off = (ir.const(number_as(n, c.out_dtype), c.out_dtype) for n in (params.on_value, params.off_value))
    return ir.apply("where", ir.apply("eq", place, wanted), on, off)


def ravel(c: IndexNode, params: Params, index: Index) -> Value:
    """The row-major position of the index that a column holds, as 64-bit integers; nothing is checked."""
    position = ir.const(0, "int64")
    for k, extent in enumerate(params.shape):
        size = ir.cast(number(extent), "int64")
        position = ir.apply("add", ir.apply("mul", position, size), ir.cast(c.load(0, (number(k), *index)), "int64"))
    return ir.cast(position, c.out_dtype)


def unravel(c: IndexNode, params: Params, index: Index) -> Value:
    """The index of a row-major position; the first axis takes what is left, quotients truncate as in C."""
    position, result = ir.cast(c.load(0, index[1:]), "int64"), ir.const(0, "int64")
    for k, extent in reversed(list(enumerate(params.shape))):
        part = position
        if k:
            size = ir.cast(number(extent), "int64")
            position = ir.apply("div", part, size)
            part = ir.apply("sub", part, ir.apply("mul", position, size))
        result = ir.apply("where", ir.apply("eq", index[0], number(k)), part, result)
    return ir.cast(result, c.out_dtype)


def _cut(rows: int, inner: int) -> tuple[int, int]:
    """(rows, columns) of a unit. Columns lie together and are written in one go; rows are divided into as many parts as
    their length pays for, since each part looks at all indices."""
    parts = max(1, min(PARTS, rows, inner // LOOK))
    return max(1, -(-rows // parts)), max(1, min(COLUMNS, inner))


def scatter_add_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """data (outer, count, inner), indices (count,) -> (outer, rows, inner)."""
    outer, count, inner = c.shape(0)
    return call("scatter_add", (outer, count, params.rows, inner, *_cut(params.rows, inner)), real=c.dtype(0),
                summed=True)


def scatter_rows_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """data (count, inner), indices (count,) -> (rows, inner)."""
    count, inner = c.shape(0)
    return call("scatter_add", (1, count, params.rows, inner, *_cut(params.rows, inner)), real=c.dtype(0), summed=False)


def scatter_set_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """base (rows, inner), data (count, inner), indices (count,) -> (rows, inner)."""
    (rows, inner), (count, _) = c.shape(0), c.shape(1)
    return call("scatter_set", (count, rows, inner, *_cut(rows, inner)))


@routine(inputs=("data", "indices"), outputs=("out",),
         units="outer * ((rows + block - 1) // block) * ((inner + width - 1) // width)")
def scatter_add(first, last, data, indices, out, outer, count, rows, inner, block, width, *, real, summed):
    """out[o, r, i] = sum of data[o, j, i] over the j whose indices[j] is r, in the order of j; where not `summed`, the
    last of these.

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
                    if summed:
                        out[base + i] = out[base + i] + data[source + i]
                    else:
                        out[base + i] = data[source + i]


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


def checked_index_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """indices (axes of shape, ...) -> row-major positions. Shapes with fewer axes than AXES get more of extent 1."""
    shape = tuple(params.shape)
    texts = [(f"expected indices from {-n if params.negative else 0} to {n - 1} of extent {n}, row {k}, got {{}}",
              params.negative) for k, n in enumerate(shape)]
    wide = "float64" if "float" in c.dtype(0) else "int64"
    made = call("checked_index", (len(shape), prod(c.shape(0)[1:]), *shape, *(1,) * (AXES - len(shape))),
                negative=params.negative, wide=wide)
    return replace(made, refusals=tuple(texts))


@routine(inputs=("indices",), outputs=("out", "status"), units="(count + 4095) // 4096")
def checked_index(first, last, indices, out, status, rows, count, n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, *, negative,
                  wide):
    """out[i] = the row-major position of the index indices[:, i] in a shape (n0, n1, ...) of `rows` axes.

    An index outside, before it is truncated, is refused: status tells its row and the index, rounded away from 0.
    negative: those from -extent on count from the end.
    """
    for unit in range(first, last):
        begin = unit * 4096
        end = min_(begin + 4096, count)
        for i in range(begin, end):
            out[i] = int64(0)
        for row in range(rows):
            extent = n0 if row == 0 else n1 if row == 1 else n2 if row == 2 else n3 if row == 3 else n4
            if row > 4:
                extent = n5 if row == 5 else n6 if row == 6 else n7 if row == 7 else n8 if row == 8 else n9
            least = wide(-extent) if negative else wide(0)
            for i in range(begin, end):
                index = wide(indices[row * count + i])
                place = int64(0)
                if index >= least and index <= wide(extent - 1):
                    place = int64(index + wide(extent) if index < wide(0) else index)
                else:
                    told = int64(-(1 << 54))
                    if index == index:
                        index = min_(max_(index, wide(-(1 << 53))), wide(1 << 53))
                        told = int64(floor_(index) if index < wide(0) else ceil_(index))
                    status[0] = row + 1 + told * 256
                out[i] = out[i] * extent + place


def count_sketch_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """data, places and signs."""
    data = c.shape(0)
    return call("count_sketch", (prod(data[:-1]), data[-1], params.size), backward=params.backward, real=c.dtype(0))


@routine(inputs=("data", "places", "signs"), outputs=("out",), units="rows")
def count_sketch(first, last, data, places, signs, out, rows, count, size, *, backward, real):
    """The sum of all numbers of a row that have the same place, times their signs; backward, its gradient.

    data: (rows, count); out: (rows, size); places, signs: (count,), or (size,) where backward. Places that there are
    not are left out.
    """
    for row in range(first, last):
        for i in range(row * size, (row + 1) * size):
            out[i] = real(0)
        for j in range(size if backward else count):
            place = places[j]
            if place >= real(0) and place < real(count if backward else size):
                if backward:
                    out[row * size + j] = signs[j] * data[row * count + int64(place)]
                else:
                    at = row * size + int64(place)
                    out[at] = out[at] + signs[j] * data[row * count + j]
