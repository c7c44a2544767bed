"""Sorting as an order of rows and reads in that order; running sums and histograms over plain layouts."""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.ops.shapes.order import around, count_of
from mxc.compiler.passes.building import as_dtype, as_shape, filled
from mxc.compiler.passes.registry import Options
from mxc.compiler.passes.sorting import Rows


def topk(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The first k places of each row's order, the values there, or ones put there."""
    data, params = inputs[0], node.params
    rows = Rows(builder, builder.shape(data), params.axis)
    apart = rows.apart(data)
    order = builder.make("_mxc_argsort", apart, k=count_of(params, rows.length), is_ascend=params.is_ascend,
                         name=node.name)
    if params.ret_typ == "mask":
        ones = filled(builder, builder.shape(order), 1.0, builder.dtype(data))
        mask = builder.make("_mxc_put_along", ones, order, n=rows.length)
        return [as_shape(builder, rows.together(mask), builder.shape(data))]
    places = as_dtype(builder, rows.together(order), params.dtype)
    if params.ret_typ == "indices":
        return [places]
    return [rows.together(builder.make("_mxc_take_along", apart, order)), places]


def sort(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The values in each row's order, and the order."""
    rows = Rows(builder, builder.shape(inputs[0]), node.params.axis)
    apart = rows.apart(inputs[0])
    order = builder.make("_mxc_argsort", apart, k=rows.length, is_ascend=node.params.is_ascend, name=node.name)
    return [rows.together(builder.make("_mxc_take_along", apart, order)), rows.together(order)]


def argsort(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Each row's order."""
    rows = Rows(builder, builder.shape(inputs[0]), node.params.axis)
    order = builder.make("_mxc_argsort", rows.apart(inputs[0]), k=rows.length, is_ascend=node.params.is_ascend,
                         name=node.name)
    return [as_dtype(builder, rows.together(order), node.params.dtype)]


def cumsum(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Running sums along the middle one of three axes."""
    assert builder.old is not None
    own = Entry(node)
    data = as_dtype(builder, inputs[0], builder.old.dtype(own))
    parts = around(builder.shape(data), node.params.axis)
    sums = builder.make("_mxc_cumsum", as_shape(builder, data, parts), name=node.name)
    return [as_shape(builder, sums, builder.old.shape(own))]


def histogram(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Counts between edges; equally spaced ones are computed in float64 and rounded."""
    data, count = inputs[0], node.params.bin_cnt
    if count is None:
        edges = inputs[1]
    else:
        low, high = node.params.range
        step = builder.make("_arange", start=0.0, stop=float(count + 1), dtype="float64")
        from_low = builder.make("_mul_scalar", builder.make("_rminus_scalar", step, scalar=float(count)), scalar=low)
        total = builder.make("elemwise_add", from_low, builder.make("_mul_scalar", step, scalar=high))
        edges = as_dtype(builder, builder.make("_div_scalar", total, scalar=float(count)), builder.dtype(data))
    flat = as_shape(builder, data, (prod(builder.shape(data)),))
    return [builder.make("_mxc_histogram", flat, edges, name=node.name), edges]
