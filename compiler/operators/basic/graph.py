"""Decompositions and gradients of elementwise operators.

Rules that operators of several families name are here, too. A sum of many arrays becomes several sums of a few each.
"""
from __future__ import annotations

from math import sqrt

from mxc.compiler.graph.batch_rows import MixedRows, Rows, RowSite, by_shapes, same
from mxc.compiler.graph.building import along, as_dtype, filled, widened
from mxc.compiler.graph.gradient_rule import Gradient, ignores
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options

MOST_TERMS = 23  # arrays that one node adds up: with their sum they are MAX_BUFFERS, see lowering/fuse.py


def where(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry] | None:
    """A condition that is a vector over the rows of x gets x's shape."""
    condition, x, y = inputs
    shape = builder.shape(x)
    if builder.shape(condition) == shape:
        return None
    condition = builder.make("broadcast_to", along(builder, condition, 0, len(shape)), shape=shape)
    return [builder.make("where", condition, x, y, name=node.name)]


def first_input(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Operators that matter to the gradient alone (BlockGrad, MakeLoss, regression outputs): their first input."""
    return inputs[:1]


def add_n(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry] | None:
    """A chain of sums: the first terms are added up, then that sum and the next terms, and so on. Terms are thus added
    in their order, whatever their number is. Sums of float16 are rounded once, at the end."""
    if len(inputs) <= MOST_TERMS:
        return None
    terms = [widened(builder, e) for e in inputs]
    total = terms[0]
    for start in range(1, len(terms), MOST_TERMS - 1):
        some = [total, *terms[start:start + MOST_TERMS - 1]]
        total = builder.make("add_n", *some, num_args=len(some))
    return [as_dtype(builder, total, builder.dtype(inputs[0]))]


def div_sqrt_dim(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The data divided by a number, the root of their last extent."""
    return [builder.make("_div_scalar", inputs[0], name=node.name, scalar=sqrt(builder.shape(inputs[0])[-1]))]


def cast_grad(g: Gradient) -> list[Entry | None]:
    """What flows in; every gradient is cast to its input's dtype."""
    return [g.og]


@ignores("condition")
def where_grad(g: Gradient) -> list[Entry | None]:
    """og where its side was chosen, else 0; the condition gets none."""
    condition = g.inputs[0]
    zero = filled(g.builder, g.shape(g.og), 0.0, g.dtype(g.og))
    return [None, g.make("where", condition, g.og, zero), g.make("where", condition, zero, g.og)]


@by_shapes("shape")
def filled_rows(site: RowSite) -> list[Rows | None]:
    """An array with one value everywhere: the same in every row."""
    return [None] * len(site.outs)


def first_axis(site: RowSite) -> list[Rows | None]:
    """Axis 0 of every input that is no parameter is axis 0 of every output."""
    return site.everywhere(*({} if learned else {0: 0} for learned in site.learned))


def data_axis(site: RowSite) -> list[Rows | None]:
    """Axis 0 of the first input is axis 0 of every output."""
    return site.everywhere({0: 0}, *({} for _ in site.ins[1:]))


def where_rows(site: RowSite) -> list[Rows | None]:
    """All axes; a condition that is a vector has the first one."""
    return site.everywhere(*({0: 0} if len(shape) == 1 else same(shape) for shape in site.ins))


def all_but_last(site: RowSite) -> list[Rows | None]:
    """Every axis but the last."""
    return site.everywhere(*(same(shape, [len(shape) - 1]) for shape in site.ins))


def matrix_rows(site: RowSite) -> list[Rows | None]:
    """Every axis but the last two."""
    return site.everywhere(*(same(shape[:-2]) for shape in site.ins))


def numbered_pictures(site: RowSite) -> list[Rows | None]:
    """Regions tell their pictures by places in the batch."""
    raise MixedRows("it tells the pictures of a batch by their places in it")
