"""Convolutions and fully connected layers as an anchor without bias and an addition that fuses into it."""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.ops.shapes.convolution import deconvolution_padding, geometry
from mxc.compiler.passes.building import as_shape
from mxc.compiler.passes.registry import Options


def _with_bias(builder: GraphBuilder, out: Entry, inputs: list[Entry]) -> Entry:
    """`out` plus the bias, when the operator has one, along axis 1."""
    if len(inputs) < 3:
        return out
    shape = [n if axis == 1 else 1 for axis, n in enumerate(builder.shape(out))]
    return builder.make("broadcast_add", out, as_shape(builder, inputs[2], shape))


def fully_connected(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """x (N, K) times weight (num_hidden, K) transposed, plus bias; more axes than two are folded into N or K."""
    assert builder.old is not None
    shape, params = builder.shape(inputs[0]), node.params
    rows = shape[0] if params.flatten else prod(shape[:-1])
    data = as_shape(builder, inputs[0], (rows, prod(shape) // rows))
    out = builder.make("FullyConnected", data, inputs[1], name=node.name, num_hidden=params.num_hidden, no_bias=True,
                       flatten=False)
    return [as_shape(builder, _with_bias(builder, out, inputs), builder.old.shape(Entry(node)))]


def convolution(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The convolution without bias, with its geometry spelled out, plus the bias of each channel."""
    g = geometry(node.params)
    out = builder.make("Convolution", inputs[0], inputs[1], name=node.name, kernel=g.kernel, stride=g.stride,
                       dilate=g.dilate, pad=g.pad, num_group=g.groups, num_filter=node.params.num_filter, no_bias=True)
    return [_with_bias(builder, out, inputs)]


def deconvolution(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The gradient of a convolution to its data, for the data shape that is this operator's output, plus bias."""
    assert builder.old is not None
    g = geometry(node.params)
    pad, _ = deconvolution_padding(node.params, builder.shape(inputs[0])[2:])
    out = builder.make("_mxc_conv_data_grad", inputs[0], inputs[1], name=node.name, kernel=g.kernel, stride=g.stride,
                       dilate=g.dilate, pad=pad, num_group=g.groups, shape=builder.old.shape(Entry(node)))
    return [_with_bias(builder, out, inputs)]


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
