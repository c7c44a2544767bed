"""Which loop kernels reduce over windows that slide along their results, as pooling does, and where these windows lie.

Such a kernel combines elements that are as far apart for neighbouring results everywhere, behind a guard where windows
reach beyond the data. Neighbouring results then make a vector (slides.py), if the guard is taken apart: what it says of
the rows is asked once for each row of results, and what it says of the last axis is one stretch of the row.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.canonical import WINDOW_STEP, lanes
from mxc.compiler.kernel.interpret import identity
from mxc.compiler.kernel.ir import FLOATS, LoopKernel, Value, computing_dtype
from mxc.compiler.kernel.simplify_index import affine, index

COMBINED = ("max", "min", "sum")
UNGUARDED_STEP = 2  # windows without a guard are at most so far apart; from three elements on each is gathered
MOST_ROWS = 32  # of larger windows the rows, each of which is printed, would be too much code


@dataclass(frozen=True)
class Sliding:
    """A kernel's windows: of one accumulator, which combines the elements of one buffer.

    place: the index of the element. outer: the reduce axes that choose the rows of the data that a row of results
    reads, inner: the one along these rows, None where there is none. step, apart: how far elements are apart along the
    last axis of the domain and along `inner`. rows: the parts of the guard that are the same along these two. column: a
    number that grows as the index does along them, and has to be within 0 <= column < limit; None where nothing is
    asked of it, and so is `limit` where there is none. word: what combines them, "squares" for a sum of squares.
    """

    buffer: int
    place: Value
    outer: tuple[int, ...]
    inner: int | None
    step: int
    apart: int
    rows: tuple[Value, ...]
    column: Value | None
    limit: Value | None
    word: str


def sliding(kernel: LoopKernel) -> Sliding | None:
    """The windows of a canonical kernel; None for one that does not reduce over such windows."""
    if len(kernel.accumulators) != 1 or not kernel.domain or not kernel.reduce or lanes(kernel):
        return None
    accumulator, first = kernel.accumulators[0], len(kernel.domain)
    load, squared = _element(accumulator.body)
    if load is None or accumulator.combine not in (("sum",) if squared else COMBINED):
        return None
    if len(load.args) == 1 and len(kernel.reduce) < 2:
        return None
    nothing = identity(accumulator.combine, computing_dtype(load.dtype))
    if len(load.args) == 3 and (load.args[2].op != "const" or load.args[2].data != nothing):
        return None
    last, reduced = ir.axis(first - 1), [ir.axis(first + i) for i in range(len(kernel.reduce))]
    if any(affine(s.index)[0].get(last) != 1 or _uses([s.index, s.value], reduced) for s in kernel.stores):
        return None
    place, parts = load.args[0], list(_parts(load.args[1])) if len(load.args) == 3 else []
    rows = [part for part in parts if not _uses([part], [last])]
    columns = [part for part in parts if part not in rows]
    column, limit = _bounds(columns)
    step, inner, along = _step(place, last), reduced[-1], [last]
    apart = _step(place, inner)
    if not _uses(rows, [inner]) and apart > 0 and (column is None or _step(column, inner) == apart):
        along.append(inner)
    outer = [axis for axis in reduced if axis not in along]
    farthest = WINDOW_STEP if parts else UNGUARDED_STEP
    if not 1 <= step <= farthest or math.prod(kernel.reduce[axis.data - first] for axis in outer) > MOST_ROWS:
        return None
    if not all(n in (0, 1) or index(n) in ir.walk([place]) for n in (step, apart if inner in along else 0)):
        return None  # the number is no argument of the code
    if columns and (column is None or _step(column, last) != step):
        return None
    return Sliding(load.data, place, tuple(axis.data for axis in outer), inner.data if inner in along else None, step,
                   apart if inner in along else 0, tuple(rows), column, limit,
                   "squares" if squared else accumulator.combine)


def _element(body: Value) -> tuple[Value | None, bool]:
    """The load that an accumulator's body is, as it is computed with, and whether it is squared."""
    squared = body.op == "mul" and body.args[0] is body.args[1]
    number = body.args[0] if squared else body
    load = number.args[0] if number.op == "cast" else number
    if load.op != "load" or load.dtype not in FLOATS:
        return None, squared
    return load if computing_dtype(number.dtype) == computing_dtype(load.dtype) else None, squared


def _uses(roots: Sequence[Value], axes: Sequence[Value]) -> bool:
    return not set(axes).isdisjoint(ir.walk(roots))


def _step(place: Value, axis: Value) -> int:
    """How much an index grows with `axis`; 0 also where that differs from place to place."""
    terms, _ = affine(place)
    return 0 if any(atom is not axis and _uses([atom], [axis]) for atom in terms) else terms.get(axis, 0)


def _parts(guard: Value) -> Iterator[Value]:
    """The conditions whose conjunction a guard is."""
    if guard.op == "and":
        for part in guard.args:
            yield from _parts(part)
    else:
        yield guard


def _bounds(parts: Sequence[Value]) -> tuple[Value | None, Value | None]:
    """(column, limit) of conditions that say together that 0 <= column < limit; (None, None) for others."""
    column, limit = parts[0].args[0] if parts else None, None
    for part in parts:
        if part.args[0] is not column or part.op not in ("ge", "lt") or part.args[1].op != "const":
            return None, None
        if part.op == "lt":
            limit = part.args[1]
        elif part.args[1].data != 0:
            return None, None
    return column, limit
