"""Decompositions and gradients of sorting, scans and histograms.

To sort is to find the order of each row and to read in that order. Running sums and histograms are routines over plain
arrays.
"""
from __future__ import annotations

from dataclasses import dataclass
from math import prod

from mxc.compiler.graph.batch_rows import MixedRows, RowSite, same
from mxc.compiler.graph.batch_rows import Rows as BatchRows
from mxc.compiler.graph.building import as_dtype, as_shape, filled
from mxc.compiler.graph.gradient_rule import Gradient, ignores
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.operators.order.shape import around, count_of

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Rows:
    """Data of `shape` seen as rows of the elements along `axis`; None: all elements are one row."""

    builder: GraphBuilder
    shape: Shape
    axis: int | None

    @property
    def length(self) -> int:
        return prod(self.shape) if self.axis is None else self.shape[self.axis]

    def apart(self, entry: Entry) -> Entry:
        """An entry of the shape, or of another length along the axis, as (rows, length)."""
        shape = self.builder.shape(entry)
        if self.axis is None:
            return as_shape(self.builder, entry, (1, prod(shape)))
        length = shape[self.axis]
        return as_shape(self.builder, self._moved(entry), (prod(shape) // length, length))

    def together(self, rows: Entry) -> Entry:
        """(rows, length) back in the shape, with that length along the axis; (length,) for axis None."""
        length = self.builder.shape(rows)[1]
        if self.axis is None:
            return as_shape(self.builder, rows, (length,))
        last = len(self.shape) - 1
        order = self._order()
        sizes = tuple(length if i == last else self.shape[a] for i, a in enumerate(order))
        entry = as_shape(self.builder, rows, sizes)
        return entry if self.axis % len(self.shape) == last else self.builder.make(
            "transpose", entry, axes=tuple(order.index(i) for i in range(last + 1)))

    def _order(self) -> Shape:
        """The axes with the sorted one last."""
        assert self.axis is not None
        rank = len(self.shape)
        return (*(i for i in range(rank) if i != self.axis % rank), self.axis % rank)

    def _moved(self, entry: Entry) -> Entry:
        order = self._order()
        return entry if order == tuple(range(len(order))) else self.builder.make("transpose", entry, axes=order)


def topk(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The first k places of each row's order, the values at these places, or a mask with ones there."""
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
    parts = around(builder.shape(inputs[0]), node.params.axis)
    data = as_shape(builder, inputs[0], parts)
    sums = builder.make("_mxc_cumsum", data, dtype=builder.old.dtype(own), name=node.name)
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



def cumsum_rows_grad(g: Gradient) -> list[Entry | None]:
    """The running sum of og from the other end."""
    return [as_dtype(g.builder, g.make("_mxc_cumsum", g.og, reverse=not g.params.reverse), g.dtype(g.inputs[0]))]


@ignores("order")
def put_along_grad(g: Gradient) -> list[Entry | None]:
    """og where each value was put."""
    return [g.make("_mxc_take_along", g.og, g.inputs[1]), None]


@ignores("order")
def take_along_grad(g: Gradient) -> list[Entry | None]:
    """og, put back to where each value came from; an order reads no value twice, so nothing has to be added up."""
    return [g.make("_mxc_put_along", g.og, g.inputs[1], n=g.shape(g.inputs[0])[1]), None]


def ordered_rows(site: RowSite) -> list[BatchRows | None]:
    """Every axis but the one along which it sorts or adds up."""
    if site.params.axis is None:
        raise MixedRows("without `axis` it works on all elements of the batch")
    return site.everywhere(same(site.ins[0], [site.params.axis % len(site.ins[0])]))
