"""Decompositions and gradients of convolutions.

col2im is the gradient of a convolution. im2col and col2im are the gradients of each other.
"""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.building import as_shape, filled
from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.operators.convolution.shape import (
    Geometry,
    column_geometry,
    column_windows,
    deconvolution_padding,
    geometry,
)
from mxc.compiler.operators.linear.graph import bias_grad, with_bias

FEWEST = 64  # channels on either side from which on a dilated convolution is computed as a plain one
_WINDOW = ("kernel", "stride", "dilate", "pad", "num_group")


def convolution(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry] | None:
    """The convolution without bias, with its geometry spelled out, plus the bias of each channel."""
    g, op = geometry(node.params), node.op
    assert op is not None
    params = {"kernel": g.kernel, "stride": g.stride, "dilate": g.dilate, "pad": g.pad, "num_group": g.groups,
              "num_filter": node.params.num_filter, "no_bias": True}
    if _pays_apart(g, builder.shape(inputs[1])):
        return [with_bias(builder, _apart(builder, node, inputs, g), inputs)]
    if node.params == op.make_params(params):
        return None
    out = builder.make("Convolution", inputs[0], inputs[1], name=node.name, **params)
    return [with_bias(builder, out, inputs)]


def _pays_apart(g: Geometry, weight: tuple[int, ...]) -> bool:
    """Whether a dilated convolution is faster as a plain one, for which there are better ways (passes/winograd.py):
    where the products outweigh moving the data."""
    return (g.kernel == (3, 3) and max(g.dilate) > 1 and g.stride == (1, 1) and g.groups == 1
            and min(weight[:2]) >= FEWEST and all(p % d == 0 for p, d in zip(g.pad, g.dilate, strict=True)))


def _apart(builder: GraphBuilder, node: Node, inputs: list[Entry], g: Geometry) -> Entry:
    """A dilated convolution without bias: a result is made of every dilate-th pixel, so those of each remainder are
    an image of their own, of which this is a plain convolution."""
    (images, channels, *extents), filters = builder.shape(inputs[0]), node.params.num_filter
    (high, wide), (rows, columns) = g.dilate, (-(-e // d) for e, d in zip(extents, g.dilate, strict=True))
    data = inputs[0]
    if (rows * high, columns * wide) != tuple(extents):  # zeros behind, as the padding has them
        behind = (0, 0, 0, 0, 0, rows * high - extents[0], 0, columns * wide - extents[1])
        data = builder.make("Pad", data, mode="constant", pad_width=behind, constant_value=0)
    data = as_shape(builder, data, (images, channels, rows, high, columns, wide))
    data = builder.make("transpose", data, axes=(0, 3, 5, 1, 2, 4))
    data = as_shape(builder, data, (images * high * wide, channels, rows, columns))
    made = builder.make("Convolution", data, inputs[1], name=node.name, kernel=g.kernel, stride=g.stride,
                        dilate=(1, 1), pad=(g.pad[0] // high, g.pad[1] // wide), num_group=1,
                        num_filter=filters, no_bias=True)
    rows, columns = builder.shape(made)[2:]
    made = as_shape(builder, made, (images, high, wide, filters, rows, columns))
    made = builder.make("transpose", made, axes=(0, 3, 4, 1, 5, 2))
    made = as_shape(builder, made, (images, filters, rows * high, columns * wide))
    for axis, (extent, pad, dilate) in enumerate(zip(extents, g.pad, g.dilate, strict=True), 2):
        wanted = extent + 2 * pad - 2 * dilate
        if builder.shape(made)[axis] != wanted:
            made = builder.make("slice_axis", made, axis=axis, begin=0, end=wanted)
    return made


def deconvolution(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The gradient of a convolution to its data, for the data shape that is this operator's output, plus bias."""
    assert builder.old is not None
    g = geometry(node.params)
    pad, _ = deconvolution_padding(node.params, builder.shape(inputs[0])[2:])
    out = builder.make("_mxc_conv_data_grad", inputs[0], inputs[1], name=node.name, kernel=g.kernel, stride=g.stride,
                       dilate=g.dilate, pad=pad, num_group=g.groups, shape=builder.old.shape(Entry(node)))
    return [with_bias(builder, out, inputs)]


def col2im(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry] | None:
    """im2col of each channel is a convolution by kernels that hold a single 1, and this its gradient to the data.

    With stride 1 it stays as it is: each element of the image has one of each column's rows.
    """
    assert builder.old is not None
    out, g = builder.old.shape(Entry(node)), column_geometry(node.params)
    if max(g.stride) == 1:
        return None
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
