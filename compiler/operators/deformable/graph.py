"""Decompositions and gradients of deformable convolutions.

The columns of samples are one operator. Their product by the weight is a convolution whose kernel is a single tap.
"""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.building import as_shape
from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.operators.convolution.shape import geometry
from mxc.compiler.ops import table
from mxc.compiler.ops.operator import Params


def deformable_convolution(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Columns, times the weight, plus the bias."""
    columns = _columns(builder, node.params, inputs, beyond=False)
    return [_product(builder, node, columns, inputs[2:])]


def modulated_deformable_convolution(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options,
                                     ) -> list[Entry]:
    """Columns, times the mask, times the weight, plus the bias."""
    columns = _columns(builder, node.params, inputs, beyond=True)
    batch, _, windows = shape = builder.shape(columns)
    groups, taps = node.params.num_deformable_group, prod(node.params.kernel)
    mask = as_shape(builder, inputs[2], (batch, groups, 1, taps, windows))
    parts = as_shape(builder, columns, (batch, groups, shape[1] // (groups * taps), taps, windows))
    masked = as_shape(builder, builder.make("broadcast_mul", parts, mask), shape)
    return [_product(builder, node, masked, inputs[3:])]


def _columns(builder: GraphBuilder, params: Params, inputs: list[Entry], beyond: bool) -> Entry:
    g = geometry(params)
    return builder.make("_mxc_deformable_columns", *inputs[:2], kernel=g.kernel, stride=g.stride, dilate=g.dilate,
                        pad=g.pad, num_deformable_group=params.num_deformable_group, beyond=beyond)


def _product(builder: GraphBuilder, node: Node, columns: Entry, parameters: list[Entry]) -> Entry:
    """The weight (parameters[0]) times the columns, in the shape of the node."""
    assert builder.old is not None
    out, (weight, *bias) = builder.old.shape(Entry(node)), parameters
    filters, depth = builder.shape(weight)[:2]
    rows = builder.shape(columns)[1]
    data = as_shape(builder, columns, (out[0], rows, *out[2:]))
    flat = as_shape(builder, weight, (filters, depth * prod(node.params.kernel), 1, 1))
    return builder.make("Convolution", data, flat, *bias, name=node.name, kernel=(1, 1), num_filter=filters,
                        num_group=node.params.num_group, no_bias=not bias)


def deformable_columns_grad(g: Gradient) -> list[Entry | None]:
    """The four elements around each place get og by their weights, the place gets it by how the weights change."""
    op = table.get("_mxc_deformable_columns_grad")
    node = Node(op, f"{g.node.name}_{g.label}_columns", None, op.make_params(g.params), [*g.inputs, g.og])
    return list(g.builder.add(node))
