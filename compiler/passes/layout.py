"""Weights of matrix operators in the layout that the target's kernels read.

Convolutions, their gradients to the data and fully connected layers read their weight in blocks of rows
(`_mxc_pack_rows`), as many as the register tile of the target has. Where the weight is a parameter the plan packs it
once, in its prepare part; one that changes in every run stays as it is where the kernel packs what it reads as fast.
For batches that fill vectors there are kernels that compute neighbouring images at once; they are faster on small maps.
Depthwise convolutions have kernels of their own, which read the weight as it is.

In training, convolutions with 3 x 3 kernels and their gradients go Winograd's way where that is faster.
"""
from __future__ import annotations

from math import prod
from typing import Any

from mxc.compiler.graph.building import as_shape, filled, geometry
from mxc.compiler.graph.graph import Entry, Graph, GraphBuilder, Node, Shape, rewrite
from mxc.compiler.graph.options import Options
from mxc.compiler.graph.purity import static_nodes
from mxc.compiler.graph.quads import convolution_by_quads
from mxc.compiler.kernel import word_calls
from mxc.compiler.kernel.call_rule import window_of
from mxc.compiler.kernel.geometry import Window
from mxc.compiler.kernel.plain import filter_block, fits_planes
from mxc.compiler.ops.operator import Params
from mxc.compiler.passes.registry import graph_pass
from mxc.compiler.passes.slices import by_slices, sliced_convolution, sliced_data_grad, sliced_weight_grad
from mxc.compiler.passes.winograd import pays_in_training, plain_convolution, plain_weight_grad


def _pack(builder: GraphBuilder, weight: Entry, rows: tuple[int, ...], block: int, name: str) -> Entry:
    """The weight as (groups, rows, depth), packed."""
    return builder.make("_mxc_pack_rows", as_shape(builder, weight, rows), block=block, name=f"{name}_packed")


def _stays(options: Options, shape: tuple[int, ...], is_static: bool) -> bool:
    """Whether the weight of a convolution with results of `shape` is not packed."""
    figures = options.prefers.packing
    return figures is None or (not is_static and shape[0] * prod(shape[2:]) <= figures.few_pixels)


def _by_images(options: Options, dtype: str, window: Window[int], shape: tuple[int, ...], transposed: bool = False,
               ) -> bool:
    """Whether a convolution (transposed: a gradient to the data) with results of `shape` computes neighbouring images
    at once."""
    lanes, figures = options.target.lanes(dtype) if "float" in dtype else 0, options.prefers.packing
    if lanes < 2 or shape[0] % lanes or figures is None:
        return False
    small = figures.window_map if prod(window.kernel) > 1 else figures.point_map
    return prod(shape[2:]) <= small or (min(window.channels, window.filters) <= figures.few_channels and not (
        fits_planes(window, dtype, options.prefers.planes, transposed)
        or _filter_block(options, dtype, window, transposed)))


def _filter_block(options: Options, dtype: str, window: Window[int], transposed: bool = False) -> int:
    return filter_block(window, dtype, options.prefers.filters, options.target.lanes(dtype), transposed)


def _convolution(builder: GraphBuilder, node: Node, shape: tuple[int, ...], options: Options, is_static: bool) -> Entry:
    data, weight = (builder.map[e] for e in node.inputs)
    groups, filters, channels = node.params.num_group, node.params.num_filter, builder.shape(data)[1]
    if groups == filters == channels:
        return builder.make("_mxc_depthwise", data, weight, name=node.name, **geometry(node))
    dtype, is_point = builder.dtype(data), prod(node.params.kernel) == 1
    if options.is_train and not is_static and pays_in_training(options, dtype, node.params, builder.shape(data), shape):
        return plain_convolution(builder, node.name, options, data, weight, tuple(node.params.pad), shape)
    if by_slices(options, dtype, node.params, builder.shape(data), shape):
        return sliced_convolution(builder, node, options, data, weight)
    # A convolution of one tap that skips pixels reads few of its data; kernels over neighbouring images copy all of it.
    picks = is_point and any(s > 1 for s in node.params.stride)
    window = window_of(node.params, builder.shape(data), shape, groups)
    by_images = not is_static and not picks and _by_images(options, dtype, window, shape)
    filters_block = _filter_block(options, dtype, window)
    block = filters_block or options.target.tile(dtype)[0]
    if by_images or _stays(options, shape, is_static):
        block = 0
    if block:
        rows = (groups, filters // groups, prod(builder.shape(weight)[1:]))
        weight = _pack(builder, weight, rows, block, node.name)
    return builder.make("_mxc_convolution", data, weight, name=node.name, num_filter=filters, num_group=groups,
                        block=block, by_images=by_images, by_filters=0 < block == filters_block, **geometry(node))


# --- gradients


def _skips(params: Params) -> bool:
    """Whether a convolution has one tap, and skips pixels: it is one of stride 1 over the pixels that it reads."""
    return prod(params.kernel) == 1 and max(params.stride) > 1 and not any(params.pad)


def _read(params: Params, shape: Shape) -> dict[str, Any]:
    """The slice of an array of `shape` that such a convolution reads."""
    return {"begin": (0,) * len(shape), "end": shape, "step": (1, 1, *params.stride)}


def _dense(params: Params) -> Params:
    """Its parameters with stride 1."""
    return Params({**params, "stride": (1,) * len(params.stride)})


def _data_grad(builder: GraphBuilder, node: Node, options: Options, is_static: bool) -> Entry:
    out_grad, weight = (builder.map[e] for e in node.inputs)
    if _skips(node.params):
        shape = node.params.shape
        dense = Params({**_dense(node.params), "shape": (*shape[:2], *builder.shape(out_grad)[2:])})
        made = _data_grad(builder, Node(node.op, node.name, node.attrs, dense, node.inputs), options, is_static)
        zeros = filled(builder, shape, 0, builder.dtype(out_grad))
        return builder.make("_slice_assign", zeros, made, **_read(node.params, shape))
    groups, filters, shape = node.params.num_group, builder.shape(out_grad)[1], node.params.shape
    if groups == filters == shape[1]:
        return builder.make("_mxc_depthwise_data_grad", out_grad, weight, name=node.name, shape=shape,
                            **geometry(node))
    dtype = builder.dtype(out_grad)
    if pays_in_training(options, dtype, node.params, shape, builder.shape(out_grad)):
        return plain_convolution(builder, node.name, options, out_grad, weight, tuple(node.params.pad), shape,
                                 turned=True)
    if by_slices(options, dtype, node.params, shape, builder.shape(out_grad)):
        return sliced_data_grad(builder, node, options, out_grad, weight)
    filters, channels, taps = filters // groups, shape[1] // groups, prod(node.params.kernel)
    strided = any(s > 1 for s in node.params.stride)
    window = window_of(node.params, shape, builder.shape(out_grad), groups)
    by_images = (strided or not is_static) and _by_images(options, dtype, window, shape, transposed=True)
    filters_block = _filter_block(options, dtype, window, transposed=True)
    block = filters_block or options.target.tile(dtype)[0]
    unpacked = strided and not filters_block and not fits_planes(window, dtype, options.prefers.planes, transposed=True)
    if by_images or unpacked or _stays(options, shape, is_static):  # such kernels read the weight unpacked
        block = 0
    if block:
        by_filter = as_shape(builder, weight, (groups, filters, channels, taps))
        by_channel = builder.make("transpose", by_filter, axes=(0, 2, 1, 3))
        weight = _pack(builder, by_channel, (groups, channels, filters * taps), block, node.name)
    return builder.make("_mxc_convolution_data_grad", out_grad, weight, name=node.name, shape=shape, num_group=groups,
                        block=block, by_images=by_images, by_filters=0 < block == filters_block, **geometry(node))


def _weight_grad(builder: GraphBuilder, node: Node, options: Options) -> Entry | None:
    data, out_grad = (builder.map[e] for e in node.inputs)
    shapes = builder.shape(data), builder.shape(out_grad)
    if node.params.num_group == shapes[0][1] == shapes[1][1]:
        return builder.make("_mxc_depthwise_weight_grad", data, out_grad, name=node.name, **geometry(node))
    if pays_in_training(options, builder.dtype(data), node.params, *shapes, to_weight=True):
        return plain_weight_grad(builder, node.name, options, data, out_grad, tuple(node.params.pad))
    if by_slices(options, builder.dtype(data), node.params, *shapes, to_weight=True):
        return sliced_weight_grad(builder, node, options, data, out_grad)
    if _skips(node.params):
        read = builder.make("slice", data, **_read(node.params, shapes[0]))
        return builder.make("_mxc_conv_weight_grad", read, out_grad, name=node.name, **_dense(node.params))
    return None


# --- the pass


def _fully_connected(builder: GraphBuilder, node: Node, options: Options) -> Entry | None:
    data, weight = (builder.map[e] for e in node.inputs)
    block, (rows, depth) = options.target.tile(builder.dtype(data))[1], builder.shape(data)
    if not block or word_calls.by_words(builder.dtype(data), (1, rows, node.params.num_hidden, depth), options.prefers):
        return None
    packed = _pack(builder, weight, (1, *builder.shape(weight)), block, node.name)
    return builder.make("_mxc_fully_connected", data, packed, name=node.name, num_hidden=node.params.num_hidden,
                        block=block)


@graph_pass(needs=("shape", "dtype", "primitive"), gives=("packed",))
def layout(graph: Graph, options: Options) -> Graph:
    """Packs weights of matrix operators as the target's kernels read them.

    The matrix operators are convolutions, of numbers of 8 bits too, data gradients of these, and fully connected
    layers; a depthwise one has a form of its own. A convolution of few pixels keeps a weight that is not static, and so
    does every fully connected layer: the product packs the parts that it uses, as products of words always do.
    """
    static = static_nodes(graph, options.static)
    fours: dict[tuple[Entry, Shape], Entry] = {}

    def packed(builder: GraphBuilder, node: Node) -> list[Entry] | None:
        assert node.op is not None
        made: Entry | None = None
        is_static = len(node.inputs) > 1 and node.inputs[1].node in static
        if node.op.name == "Convolution":
            made = _convolution(builder, node, graph.shape(Entry(node)), options, is_static)
        elif node.op.name == "_mxc_conv_data_grad":
            made = _data_grad(builder, node, options, is_static)
        elif node.op.name == "_mxc_conv_weight_grad":
            made = _weight_grad(builder, node, options)
        elif node.op.name == "_mxc_int8_convolution":
            data, weight = (builder.map[e] for e in node.inputs)
            made = convolution_by_quads(builder, node, data, weight, options, fours)
        elif node.op.name == "FullyConnected":
            made = _fully_connected(builder, node, options) if is_static else None
        return None if made is None else [made]

    return rewrite(graph, packed)
