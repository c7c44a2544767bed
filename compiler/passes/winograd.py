"""Which convolutions are computed by Winograd's F(4x4, 3x3), and the operators that they become.

For each result, channel and filter it multiplies 36 / 16 = 2.25 times in place of 9 times at best. In return it cuts
images into tiles, which may not fit, and transforms data, results and weights. Transformed weights are four times as
large: only those of few channels on large maps are kept so from run to run.
"""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.graph import Entry, Graph, GraphBuilder, Node, Shape
from mxc.compiler.graph.options import Options
from mxc.compiler.ops import winograd
from mxc.compiler.ops.operator import Params


def pays(graph: Graph, node: Node, options: Options) -> bool:
    """Whether the convolution `node` of blocked data has the right form, and is faster this way on the target."""
    (n, channels, *_), out, params = graph.shape(node.inputs[0]), graph.shape(Entry(node)), node.params
    formed = (tuple(params.kernel) == (3, 3) and {*params.stride, *params.dilate} == {1} and params.num_group == 1
              and graph.dtype(node.inputs[0]) == "float32")
    costs = options.prefers.winograd
    if options.strict or not formed or costs is None:
        return False
    filters, pixels, tiles = out[1], n * prod(out[2:]), n * prod(winograd.grid(out))
    direct = 9 * channels * filters * (pixels + costs.weight)
    products = winograd.PLACES * channels * filters * (tiles + costs.weight)
    cost = products + costs.transform * tiles * (channels + filters)
    return direct > costs.gain * cost


def keeps_transformed(graph: Graph, node: Node, options: Options) -> bool:
    """Whether the transformed weight of such a convolution is made once, in the prepare part; if not, the kernel
    transforms it in each run. That takes a share of the time which grows with the bands of tiles that an image has. It
    does not depend on the batch, so that plans for several batches share what they prepare."""
    costs, (filters, channels) = options.prefers.winograd, graph.shape(node.inputs[1])[:2]
    if options.small or costs is None:
        return False
    nbytes = winograd.PLACES * winograd.odd(channels) * filters * 4
    return nbytes <= costs.kept_bytes and prod(winograd.grid(graph.shape(Entry(node)))) > costs.kept_tiles


def blocked_convolution(builder: GraphBuilder, node: Node, options: Options, data: Entry, packed: Entry,
                        shape: Shape, transforms: bool) -> Entry:
    """The convolution `node` of `data`, which lie in blocks, as the array `shape`, which does too.

    packed: what `transformed_weight` gives, or, if the kernel `transforms` it, as the direct convolution has it.
    """
    return builder.make("_mxc_winograd_convolution", data, packed, name=node.name, pad=tuple(node.params.pad),
                        shape=shape, tiles=options.target.tile("float32")[0], transforms=transforms)


def transformed_weight(builder: GraphBuilder, name: str, options: Options, weight: Entry, turned: bool = False,
                       ) -> Entry:
    """The plain weight of the convolution `name`, transformed and packed. turned: of kernels turned by half a circle,
    with filters and channels exchanged."""
    return builder.make("_mxc_winograd_weight", weight, columns=options.target.tile("float32")[1], turned=turned,
                        name=f"{name}_packed")


# --- over plain arrays, in training


def pays_in_training(options: Options, dtype: str, params: Params, data: Shape, out: Shape, to_weight: bool = False,
                     ) -> bool:
    """Whether a convolution of plain `data` to `out`, or its gradient to the data or `to_weight`, has the right form,
    and is faster this way on the target. The direct kernels spend no time on what taps read outside of small maps."""
    costs, lanes = options.prefers.training_winograd, options.target.lanes(dtype) if dtype == "float32" else 0
    if options.strict or costs is None or lanes < 2 or tuple(params.kernel) != (3, 3) or max(params.pad) > 2:
        return False
    if {*params.stride, *params.dilate} != {1} or params.num_group > 1 or data[1] % lanes or out[1] % lanes:
        return False
    channels, filters, tiles = data[1], out[1], out[0] * prod(winograd.grid(out))
    read = out[0] * prod(sum(max(0, min(o, d + p - k) - max(0, p - k)) for k in range(3))
                         for o, d, p in zip(out[2:], data[2:], params.pad, strict=True))
    kernels, place_bytes = channels * filters, winograd.PLACES * 4
    is_near = to_weight or kernels * place_bytes <= costs.cache_bytes
    cost = (winograd.PLACES * tiles + (costs.weight if is_near else costs.far_weight)) * kernels
    cost += costs.transform * tiles * (channels + filters)
    return read * kernels > costs.gain * cost and tiles * max(channels, filters) * place_bytes <= costs.most_bytes


def _side(builder: GraphBuilder, options: Options, data: Entry, pad: Shape, out: Shape, of_results: bool = False,
          ) -> Entry:
    """The transformed tiles of an array, of results with the spatial extents `out`."""
    return builder.make("_mxc_winograd_side", data, pad=pad, out=out, block=options.target.lanes("float32"),
                        of_results=of_results)


def plain_convolution(builder: GraphBuilder, name: str, options: Options, data: Entry, weight: Entry, pad: Shape,
                      shape: Shape, turned: bool = False) -> Entry:
    """The convolution `name` with a padding of `pad`, whose result has `shape`; turned: the gradient of one to its
    data, which is a convolution with the turned kernels of each channel."""
    packed = transformed_weight(builder, name, options, weight, turned)
    side = _side(builder, options, data, tuple(2 - p for p in pad) if turned else pad, shape[2:])
    return builder.make("_mxc_plain_winograd", side, packed, name=name, shape=shape)


def plain_weight_grad(builder: GraphBuilder, name: str, options: Options, data: Entry, out_grad: Entry, pad: Shape,
                      ) -> Entry:
    """The gradient `name` of a convolution to its weight."""
    shape = builder.shape(out_grad)
    sides = (_side(builder, options, data, pad, shape[2:]),
             _side(builder, options, out_grad, (0, 0), shape[2:], of_results=True))
    return builder.make("_mxc_winograd_weight_grad", *sides, name=name, shape=shape)
