"""Decompositions and gradients of matrix products.

A product with a bias is an anchor without bias and an addition that fuses into it.
"""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.batch_rows import Rows, RowSite, same
from mxc.compiler.graph.building import as_shape
from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options


def with_bias(builder: GraphBuilder, out: Entry, inputs: list[Entry]) -> Entry:
    """`out` plus the bias, when the operator has one, along axis 1."""
    if len(inputs) < 3:
        return out
    shape = [n if axis == 1 else 1 for axis, n in enumerate(builder.shape(out))]
    return builder.make("broadcast_add", out, as_shape(builder, inputs[2], shape))


def fully_connected(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry] | None:
    """x (N, K) times weight (num_hidden, K) transposed, plus bias; more axes than two are folded into N or K."""
    assert builder.old is not None
    shape, params = builder.shape(inputs[0]), node.params
    if len(shape) == 2 and params.no_bias and not params.flatten:
        return None
    rows = shape[0] if params.flatten else prod(shape[:-1])
    data = as_shape(builder, inputs[0], (rows, prod(shape) // rows))
    out = builder.make("FullyConnected", data, inputs[1], name=node.name, num_hidden=params.num_hidden, no_bias=True,
                       flatten=False)
    return [as_shape(builder, with_bias(builder, out, inputs), builder.old.shape(Entry(node)))]


def dot(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry] | None:
    """The product of two matrices: all axes of each side but the contracted one folded into one."""
    assert builder.old is not None
    left, right = (builder.shape(e) for e in inputs)
    if len(left) == len(right) == 2:
        return None
    params = node.params
    depth = left[0] if params.transpose_a else left[-1]
    a = (depth, prod(left) // depth) if params.transpose_a else (prod(left) // depth, depth)
    b = (prod(right) // depth, depth) if params.transpose_b else (depth, prod(right) // depth)
    product = builder.make("dot", as_shape(builder, inputs[0], a), as_shape(builder, inputs[1], b), name=node.name,
                           transpose_a=params.transpose_a, transpose_b=params.transpose_b)
    return [as_shape(builder, product, builder.old.shape(Entry(node)))]


def batch_dot(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry] | None:
    """The product of matrices along one axis: all leading axes folded into it."""
    assert builder.old is not None
    left, right = (builder.shape(e) for e in inputs)
    if len(left) == 3:
        return None
    batch = prod(left[:-2])
    product = builder.make("batch_dot", as_shape(builder, inputs[0], (batch, *left[-2:])),
                           as_shape(builder, inputs[1], (batch, *right[-2:])), name=node.name,
                           transpose_a=node.params.transpose_a, transpose_b=node.params.transpose_b)
    return [as_shape(builder, product, builder.old.shape(Entry(node)))]


def khatri_rao(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Takes in one matrix after the other: each row of the product so far times each row of the next matrix."""
    result = inputs[0]
    for entry in inputs[1:]:
        (rows, columns), (more, _) = builder.shape(result), builder.shape(entry)
        product = builder.make("broadcast_mul", as_shape(builder, result, (rows, 1, columns)),
                               as_shape(builder, entry, (1, more, columns)))
        result = as_shape(builder, product, (rows * more, columns))
    return [result]


def bias_grad(g: Gradient, axis: int) -> list[Entry | None]:
    """The bias gradient, where there is a bias and it is asked for: the sum over everything but the channels."""
    if len(g.inputs) < 3:
        return []
    return [g.make("sum", g.og, axis=(axis,), exclude=True) if g.asked[2] else None]


def fully_connected_grad(g: Gradient) -> list[Entry | None]:
    """y (N, H) = x (N, K) W^T + b: dx = og W, dW = og^T x, db = the sum of og's rows."""
    data, weight = g.inputs[:2]
    hidden, depth = g.shape(weight)
    og = as_shape(g.builder, g.og, (prod(g.shape(g.og)) // hidden, hidden))
    to_data = to_weight = None
    if g.asked[0]:
        to_data = as_shape(g.builder, g.make("dot", og, weight), g.shape(data))
    if g.asked[1]:
        rows = as_shape(g.builder, data, (g.shape(og)[0], depth))
        to_weight = g.make("dot", og, rows, transpose_a=True)
    return [to_data, to_weight, *bias_grad(g, len(g.shape(g.og)) - 1)]


def dot_grad(g: Gradient) -> list[Entry | None]:
    """The last axis of lhs (its first, transposed) times the first of rhs (its last, transposed); axes beyond two are
    folded, so that each gradient is a product of two matrices."""
    lhs, rhs = g.inputs
    first, second = g.params.transpose_a, g.params.transpose_b
    a, b = g.shape(lhs), g.shape(rhs)
    depth = a[0] if first else a[-1]
    a2 = as_shape(g.builder, lhs, (depth, prod(a) // depth) if first else (prod(a) // depth, depth))
    b2 = as_shape(g.builder, rhs, (prod(b) // depth, depth) if second else (depth, prod(b) // depth))
    og = as_shape(g.builder, g.og, (prod(a) // depth, prod(b) // depth))
    to_lhs = to_rhs = None
    if g.asked[0]:
        to_lhs = (g.make("dot", b2, og, transpose_a=second, transpose_b=True) if first
                  else g.make("dot", og, b2, transpose_b=not second))
        to_lhs = as_shape(g.builder, to_lhs, a)
    if g.asked[1]:
        to_rhs = (g.make("dot", og, a2, transpose_a=True, transpose_b=first) if second
                  else g.make("dot", a2, og, transpose_a=not first))
        to_rhs = as_shape(g.builder, to_rhs, b)
    return [to_lhs, to_rhs]


def batch_dot_grad(g: Gradient) -> list[Entry | None]:
    """The gradients of dot, for every matrix of the batch."""
    lhs, rhs = g.inputs
    first, second = g.params.transpose_a, g.params.transpose_b
    to_lhs = to_rhs = None
    if g.asked[0]:
        to_lhs = (g.make("batch_dot", rhs, g.og, transpose_a=second, transpose_b=True) if first
                  else g.make("batch_dot", g.og, rhs, transpose_b=not second))
    if g.asked[1]:
        to_rhs = (g.make("batch_dot", g.og, lhs, transpose_a=True, transpose_b=first) if second
                  else g.make("batch_dot", lhs, g.og, transpose_a=not first))
    return [to_lhs, to_rhs]


def fully_connected_rows(site: RowSite) -> list[Rows | None]:
    """Every axis of the data but those that are summed."""
    axes = {0: 0} if site.params.flatten else same(site.ins[0][:-1])
    return [site.along(axes, *({} for _ in site.ins[1:]))]


def dot_rows(site: RowSite) -> list[Rows | None]:
    """The axes of both sides that are not summed, one behind the other."""
    left, right = (len(shape) for shape in site.ins)
    lhs = range(1, left) if site.params.transpose_a else range(left - 1)
    rhs = range(right - 1) if site.params.transpose_b else range(1, right)
    return [site.along({axis: i for i, axis in enumerate(lhs)}, {axis: i + len(lhs) for i, axis in enumerate(rhs)})]


def batch_dot_rows(site: RowSite) -> list[Rows | None]:
    """The leading axes, and of the matrices those that are not summed."""
    ndim = len(site.outs[0])
    leading = same(site.outs[0][:-2])
    lhs, rhs = ndim - 1 if site.params.transpose_a else ndim - 2, ndim - 2 if site.params.transpose_b else ndim - 1
    return [site.along({**leading, lhs: ndim - 2}, {**leading, rhs: ndim - 1})]
