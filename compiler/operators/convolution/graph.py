"""Decompositions and gradients of convolutions.

col2im is the gradient of a convolution. im2col and col2im are the gradients of each other.
"""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.building import as_shape, filled
from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.operators.convolution.shape import column_geometry, column_windows, deconvolution_padding, geometry
from mxc.compiler.operators.linear.graph import bias_grad, with_bias

_WINDOW = ("kernel", "stride", "dilate", "pad", "num_group")


def convolution(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry] | None:
    """The convolution without bias, with its geometry spelled out, plus the bias of each channel."""
    g, op = geometry(node.params), node.op
    assert op is not None
    params = {"kernel": g.kernel, "stride": g.stride, "dilate": g.dilate, "pad": g.pad, "num_group": g.groups,
              "num_filter": node.params.num_filter, "no_bias": True}
    if node.params == op.make_params(params):
        return None
    out = builder.make("Convolution", inputs[0], inputs[1], name=node.name, **params)
    return [with_bias(builder, out, inputs)]


def deconvolution(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The gradient of a convolution to its data, for the data shape that is this operator's output, plus bias."""
    assert builder.old is not None
    g = geometry(node.params)
    pad, _ = deconvolution_padding(node.params, builder.shape(inputs[0])[2:])
    out = builder.make("_mxc_conv_data_grad", inputs[0], inputs[1], name=node.name, kernel=g.kernel, stride=g.stride,
                       dilate=g.dilate, pad=pad, num_group=g.groups, shape=builder.old.shape(Entry(node)))
    return [with_bias(builder, out, inputs)]


def col2im(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """im2col of each channel is a convolution by kernels that hold a single 1, and this its gradient to the data."""
    assert builder.old is not None
    out, g = builder.old.shape(Entry(node)), column_geometry(node.params)
    taps, images, dtype = prod(g.kernel), out[0] * out[1], builder.dtype(inputs[0])
    ones = builder.make("_mxc_on_diagonal", filled(builder, (taps,), 1, dtype), shape=(taps, taps))
    data = as_shape(builder, inputs[0], (images, taps, *column_windows(g, out[2:])))
    made = builder.make("_mxc_conv_data_grad", data, as_shape(builder, ones, (taps, 1, *g.kernel)), name=node.name,
                        kernel=g.kernel, stride=g.stride, dilate=g.dilate, pad=g.pad, num_group=1,
                        shape=(images, 1, *out[2:]))
    return [as_shape(builder, made, out)]


def _window(g: Gradient) -> dict[str, object]:
    """kernel, stride, dilate, pad and num_group, with one number for every spatial axis."""
    spelled = geometry(g.params)
    return {"kernel": spelled.kernel, "stride": spelled.stride, "dilate": spelled.dilate, "pad": spelled.pad,
            "num_group": spelled.groups}


def convolution_grad(g: Gradient) -> list[Entry | None]:
    """The data get the transposed convolution of og, the weight gets the correlation of the data with og."""
    data, weight = g.inputs[:2]
    window = _window(g)
    to_data = g.make("_mxc_conv_data_grad", g.og, weight, shape=g.shape(data), **window) if g.asked[0] else None
    to_weight = g.make("_mxc_conv_weight_grad", data, g.og, **window) if g.asked[1] else None
    return [to_data, to_weight, *bias_grad(g, 1)]



def convolution_data_grad_grad(g: Gradient) -> list[Entry | None]:
    """The map is linear in both inputs: out_grad gets the convolution of og, the weight the correlation with og."""
    out_grad, weight = g.inputs
    window = {key: g.params[key] for key in _WINDOW}
    back = None
    if g.asked[0]:
        back = g.make("Convolution", g.og, weight, num_filter=g.shape(out_grad)[1], no_bias=True, **window)
    return [back, g.make("_mxc_conv_weight_grad", g.og, out_grad, **window) if g.asked[1] else None]


def convolution_weight_grad_grad(g: Gradient) -> list[Entry | None]:
    """The map is linear in both inputs, and og has the shape of a weight: the data get the transposed convolution of
    out_grad with it, and out_grad gets the convolution of the data with it."""
    data, out_grad = g.inputs
    window = {key: g.params[key] for key in _WINDOW}
    to_data = g.make("_mxc_conv_data_grad", out_grad, g.og, shape=g.shape(data), **window) if g.asked[0] else None
    back = None
    if g.asked[1]:
        back = g.make("Convolution", data, g.og, num_filter=g.shape(out_grad)[1], no_bias=True, **window)
    return [to_data, back]


def im2col_grad(g: Gradient) -> list[Entry | None]:
    """og, each element added to the place in the data that it was read from."""
    return [g.make("col2im", g.og, output_size=g.shape(g.inputs[0])[2:], **g.params)]


def col2im_grad(g: Gradient) -> list[Entry | None]:
    """The columns (im2col) of og."""
    return [g.make("im2col", g.og, **{k: v for k, v in g.params.items() if k != "output_size"})]
