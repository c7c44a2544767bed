"""What rules about shapes share: merging what is known, axes, reduced shapes.

A shape rule is `def NAME(params, ins, outs) -> (ins, outs)`: what is known of the inputs' (auxiliary states included)
and the outputs' shapes; it returns what follows. None: not even the rank is known; 0: a dimension that is not known. It
raises MXNetError with the reason alone: the caller adds the node and its inputs.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mxc.compiler.error import MXNetError

if TYPE_CHECKING:
    from mxc.compiler.ops.operator import Params

Shape = tuple[int, ...]
Shapes = list[Shape | None]
PANEL = 16  # the block in which routines read the rows of a packed matrix


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
