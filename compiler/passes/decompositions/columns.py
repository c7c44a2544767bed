"""col2im as the gradient of a convolution."""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.ops.shapes.columns import column_geometry, column_windows
from mxc.compiler.passes.building import as_shape, filled
from mxc.compiler.passes.registry import Options


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
