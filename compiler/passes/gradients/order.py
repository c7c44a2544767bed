"""Gradients of sorting and running sums."""
from __future__ import annotations

from mxc.compiler.graph.graph import Entry
from mxc.compiler.ops.shapes.order import around, count_of
from mxc.compiler.passes.building import as_dtype, as_shape
from mxc.compiler.passes.gradients.context import Gradient, ignores
from mxc.compiler.passes.sorting import Rows


def topk(g: Gradient) -> list[Entry | None]:
    """Each value's gradient goes where the value came from; none goes through places and masks."""
    if g.params.ret_typ in ("indices", "mask"):
        return [None]
    rows = Rows(g.builder, g.shape(g.inputs[0]), g.params.axis)
    return [_back(g, rows, count_of(g.params, rows.length))]


def sort(g: Gradient) -> list[Entry | None]:
    """Each value's gradient goes where the value came from."""
    rows = Rows(g.builder, g.shape(g.inputs[0]), g.params.axis)
    return [_back(g, rows, rows.length)]


def _back(g: Gradient, rows: Rows, count: int) -> Entry:
    order = g.make("_mxc_argsort", rows.apart(g.inputs[0]), k=count, is_ascend=g.params.is_ascend)
    back = g.make("_mxc_put_along", rows.apart(g.og), order, n=rows.length)
    return as_shape(g.builder, rows.together(back), rows.shape)


def cumsum(g: Gradient) -> list[Entry | None]:
    """The running sum of og from the end."""
    shape = g.shape(g.inputs[0])
    sums = g.make("_mxc_cumsum", as_shape(g.builder, g.og, around(shape, g.params.axis)), reverse=True)
    return [as_dtype(g.builder, as_shape(g.builder, sums, shape), g.dtype(g.inputs[0]))]


def cumsum_rows(g: Gradient) -> list[Entry | None]:
    """The running sum of og from the other end."""
    return [g.make("_mxc_cumsum", g.og, reverse=not g.params.reverse)]


@ignores("order")
def put_along(g: Gradient) -> list[Entry | None]:
    """og where each value was put."""
    return [g.make("_mxc_take_along", g.og, g.inputs[1]), None]


@ignores("order")
def take_along(g: Gradient) -> list[Entry | None]:
    """og back to where each value came from: an order reads none twice."""
    return [g.make("_mxc_put_along", g.og, g.inputs[1], n=g.shape(g.inputs[0])[1]), None]
