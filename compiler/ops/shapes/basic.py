"""Shape rules of elementwise, broadcast, reduction, creation and dot operators.

A rule is `def NAME(params, ins, outs) -> (ins, outs)`: what is known of the inputs' (auxiliary states included) and the
outputs' shapes; it returns what follows. None: not even the rank is known; 0: a dimension that is not known. It raises
MXNetError with the reason alone: the caller adds the node and its inputs.
"""
from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.extent import whole_shape
from mxc.compiler.ops.table import Params

Shape = tuple[int, ...]
Shapes = list[Shape | None]


def merge(a: Shape | None, b: Shape | None) -> Shape | None:
    """What two views of one shape know together. Raises MXNetError when they contradict each other."""
    if a is None or b is None:
        return b if a is None else a
    if a == b:
        return a
    if len(a) != len(b) or any(x and y and x != y for x, y in zip(a, b, strict=True)):
        raise MXNetError(f"expected the same shape, got {a} and {b}")
    return tuple(x or y for x, y in zip(a, b, strict=True))


def merge_all(shapes: Iterable[Shape | None]) -> Shape | None:
    """`merge` of all."""
    known: Shape | None = None
    for shape in shapes:
        known = merge(known, shape)
    return known


def normal_axis(axis: int, rank: int) -> int:
    """`axis` counted from the front. Raises MXNetError when there is no such axis."""
    if not -rank <= axis < rank:
        raise MXNetError(f"expected an axis from {-rank} to {rank - 1}, got {axis}")
    return axis % rank


def same_shape(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """All inputs and outputs have one shape."""
    known = merge_all([*ins, *outs])
    return [known] * len(ins), [known] * len(outs)


def broadcast(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """NumPy's broadcasting. Backward: a dimension of the output that all but one input leave at 1 is that input's."""
    if any(s is None for s in ins):
        return ins, outs
    shapes: list[Shape] = [s for s in ins if s is not None]
    rank = max(len(s) for s in shapes)
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    out = []
    for column in zip(*padded, strict=True):
        sizes = {d for d in column if d > 1}
        if len(sizes) > 1:
            raise MXNetError(f"the shapes {' and '.join(map(str, shapes))} do not broadcast: "
                             f"expected equal sizes or 1, got {' and '.join(map(str, column))}")
        out.append(sizes.pop() if sizes else 0 if 0 in column else 1)
    if len(outs) == 1 and outs[0] is not None and len(outs[0]) == rank:
        for j in range(rank):
            unknown = [i for i, s in enumerate(padded) if s[j] == 0]
            size = outs[0][j]
            if len(unknown) == 1 and size and all(s[j] == 1 for i, s in enumerate(padded) if i not in unknown):
                padded[unknown[0]] = (*padded[unknown[0]][:j], size, *padded[unknown[0]][j + 1:])
    ins_known: Shapes = [p[rank - len(s):] for p, s in zip(padded, shapes, strict=True)]
    return ins_known, [merge(tuple(out), o) for o in outs]


def reduced_axes(params: Params, rank: int) -> tuple[int, ...]:
    """The axes that a reduction with `axis`, `exclude` combines, ascending. axis None or () means all of them."""
    axis = params["axis"]
    given: Sequence[int] = (axis,) if isinstance(axis, int) else axis or ()  # type: ignore[assignment]
    axes = {normal_axis(a, rank) for a in given}
    if len(axes) != len(given):
        raise MXNetError(f"expected different axes, got {tuple(given)}")
    if not given:
        return tuple(range(rank))
    return tuple(a for a in range(rank) if (a in axes) != bool(params.get("exclude")))


def reduced_shape(params: Params, shape: Shape, keepdims: bool) -> Shape:
    """What remains of `shape`: reduced axes as 1 with `keepdims`, else left out; (1,) when nothing is left."""
    axes = reduced_axes(params, len(shape))
    if keepdims:
        return tuple(1 if i in axes else d for i, d in enumerate(shape))
    return tuple(d for i, d in enumerate(shape) if i not in axes) or (1,)


def reduce(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """sum, mean and the like. A dimension that is not reduced is known from the output too."""
    data = ins[0]
    if data is None:
        return ins, outs
    keepdims = bool(params.get("keepdims"))
    out = merge(reduced_shape(params, data, keepdims), outs[0])
    assert out is not None
    axes = reduced_axes(params, len(data))
    kept = [i for i in range(len(data)) if i not in axes]
    known = list(data)
    for position, i in enumerate(kept):
        known[i] = known[i] or (out[i] if keepdims else out[position])
    return [tuple(known)], [out]


def creation(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """`shape`, whose -1 (and, outside of NumPy's shape semantics, 0 and all of ()) are completed from its users."""
    return ins, [merge(whole_shape(params.shape), outs[0])]


def arange_length(params: Params) -> int | None:
    """How many numbers `_arange` makes; None when its length is inferred from what uses it."""
    if params["infer_range"] and params["stop"] is None:
        return None
    start, stop, step, repeat = (params[k] for k in ("start", "stop", "step", "repeat"))
    assert isinstance(start, float) and isinstance(step, float) and isinstance(repeat, int)
    if stop is None:
        start, stop = 0.0, start
    assert isinstance(stop, float)
    if step == 0:
        raise MXNetError("expected a step other than 0")
    if not all(map(math.isfinite, (start, stop, step, (stop - start) / step))):
        raise MXNetError(f"the range from {start} to {stop} by {step} has no finite number of elements")
    count = math.ceil((stop - start) / step) * repeat
    if count <= 0:
        raise MXNetError(f"the range from {start} to {stop} by {step} is empty")
    return count


def arange(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(number of values,)."""
    count = arange_length(params)
    return ins, [merge(None if count is None else (count,), outs[0])]


def where(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """x, y and the output agree; the condition has their shape too, or is a vector over their first axis."""
    known = merge_all([ins[1], ins[2], outs[0]])
    condition = ins[0]
    if known is not None and condition is not None and (len(condition) != 1 or len(known) == 1):
        known = condition = merge(known, condition)
    elif known is not None and condition is not None:
        (first,) = merge(condition, known[:1]) or (0,)
        condition, known = (first,), (first, *known[1:])
    return [condition, known, known], [known]


def dot(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Contracts the last axis of lhs (the first with transpose_a) with the first of rhs (the last with transpose_b)."""
    lhs, rhs = ins
    if lhs is None or rhs is None:
        return ins, outs
    if len(lhs) == len(rhs) == 1 and (params["transpose_a"] or params["transpose_b"]):
        raise MXNetError(f"expected no transpose_a and transpose_b for two vectors, got {params['transpose_a']} and "
                         f"{params['transpose_b']}")
    a = 0 if params["transpose_a"] else len(lhs) - 1
    b = len(rhs) - 1 if params["transpose_b"] else 0
    if lhs[a] and rhs[b] and lhs[a] != rhs[b]:
        raise MXNetError(f"expected equal contracted axes, got {lhs[a]} (axis {a} of lhs {lhs}) and {rhs[b]} "
                         f"(axis {b} of rhs {rhs})")
    inner = lhs[a] or rhs[b]
    lhs = (*lhs[:a], inner, *lhs[a + 1:])
    rhs = (*rhs[:b], inner, *rhs[b + 1:])
    out = merge((*lhs[:a], *lhs[a + 1:], *rhs[:b], *rhs[b + 1:]) or (1,), outs[0])
    return [lhs, rhs], [out]


def batch_dot(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(..., m, k) times (..., k, n), or (..., k, m) with transpose_a and (..., n, k) with transpose_b; the leading axes
    are equal."""
    rank = next((len(s) for s in (*ins, outs[0]) if s is not None), 3)
    for name, shape in zip(("lhs", "rhs"), ins, strict=True):
        if shape is not None and len(shape) < 3:
            raise MXNetError(f"expected {name} of 3 dimensions or more, got {shape}")
        if shape is not None and len(shape) != rank:
            raise MXNetError(f"expected lhs and rhs of equally many dimensions, got {ins[0]} and {ins[1]}")
    lhs, rhs, out = (s or (0,) * rank for s in (*ins, outs[0]))
    m, left = (-1, -2) if params["transpose_a"] else (-2, -1)
    n, right = (-2, -1) if params["transpose_b"] else (-1, -2)
    batch = merge_all([lhs[:-2], rhs[:-2], out[:-2]]) or (0,) * (rank - 2)
    if lhs[left] and rhs[right] and lhs[left] != rhs[right]:
        raise MXNetError(f"expected equal contracted axes, got {lhs[left]} (axis {left + rank} of lhs {lhs}) and "
                         f"{rhs[right]} (axis {right + rank} of rhs {rhs})")
    depth = lhs[left] or rhs[right]
    rows, columns = lhs[m] or out[-2], rhs[n] or out[-1]
    lhs = (*batch, depth, rows) if params["transpose_a"] else (*batch, rows, depth)
    rhs = (*batch, columns, depth) if params["transpose_b"] else (*batch, depth, columns)
    return [lhs, rhs], [merge((*batch, rows, columns), outs[0])]