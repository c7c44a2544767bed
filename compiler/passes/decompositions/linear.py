"""Convolutions and fully connected layers as an anchor without bias and an addition that fuses into it."""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.ops.table import Params
from mxc.compiler.passes.building import along, as_shape, extended
from mxc.compiler.passes.registry import Options


def _geometry(params: Params) -> dict[str, tuple[int, ...]]:
    """kernel, stride, dilate and pad, each with one number for every spatial axis."""
    kernel = tuple(params.kernel)
    rank = len(kernel)
    return {"kernel": kernel, "stride": tuple(params.stride) or (1,) * rank,
            "dilate": tuple(params.dilate) or (1,) * rank, "pad": tuple(params.pad) or (0,) * rank}


def _with_bias(builder: GraphBuilder, out: Entry, inputs: list[Entry]) -> Entry:
    """`out` plus the bias, when the operator has one, along axis 1."""
    if len(inputs) < 3:
        return out
    return builder.make("broadcast_add", out, along(builder, inputs[2], 1, len(builder.shape(out))))


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
    params = node.params
    out = builder.make("Convolution", inputs[0], inputs[1], name=node.name, num_filter=params.num_filter,
                       num_group=params.num_group, no_bias=True, **_geometry(params))
    return [_with_bias(builder, out, inputs)]


def deconvolution(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The gradient of a convolution to its data, for the data shape that is this operator's output, plus bias.

    With `target_shape` MXNet ignores `pad` and splits what is cut off evenly, the odd one at the front.
    """
    assert builder.old is not None
    params, geometry = node.params, _geometry(node.params)
    if any(params.target_shape):
        space = builder.shape(inputs[0])[2:]
        full = [s * (n - 1) + d * (k - 1) + 1
                for s, n, d, k in zip(geometry["stride"], space, geometry["dilate"], geometry["kernel"], strict=True)]
        geometry["pad"] = tuple((f - t + 1) // 2 for f, t in zip(full, params.target_shape, strict=True))
    shape = builder.old.shape(Entry(node))
    # Where `adj` is a whole stride, the convolution of the output is longer than the data; zeros stand for the rest.
    reach = ((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, d, k, s in zip(
        shape[2:], geometry["pad"], geometry["dilate"], geometry["kernel"], geometry["stride"], strict=True))
    data = extended(builder, inputs[0], (*builder.shape(inputs[0])[:2], *reach))
    out = builder.make("_mxc_conv_data_grad", data, inputs[1], name=node.name, num_group=params.num_group, shape=shape,
                       **geometry)
    return [_with_bias(builder, out, inputs)]
