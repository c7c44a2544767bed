"""Convolutions over three axes that go Winograd's way over the last two of them.

A slice of the result is a convolution over two axes: of the slices of the data that it reads, with the channels of one
behind those of the other. So the slices of a result are images, of as many times the channels as kernels have slices.
"""
from __future__ import annotations

from mxc.compiler.graph.building import as_shape
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node, Shape
from mxc.compiler.graph.options import Options
from mxc.compiler.ops.operator import Params
from mxc.compiler.passes.winograd import pays_in_training, plain_convolution, plain_weight_grad


def by_slices(options: Options, dtype: str, params: Params, data: Shape, out: Shape, to_weight: bool = False) -> bool:
    """Whether a convolution of `data` to `out`, or its gradient to the data or `to_weight`, has three axes, and is
    faster this way on the target. In inference the weight is transformed once, and kept so, which takes memory."""
    if options.small and not options.is_train:
        return False
    if len(params.kernel) != 3 or params.stride[0] > 1 or params.dilate[0] > 1 or params.pad[0] >= params.kernel[0]:
        return False
    images, channels = data[0] * out[2], data[1] * params.kernel[0]
    inner = {"kernel": params.kernel[1:], "stride": params.stride[1:], "dilate": params.dilate[1:],
             "pad": params.pad[1:]}
    planes = Params({**params, **inner})
    return pays_in_training(options, dtype, planes, (images, channels, *data[3:]), (images, *out[1:2], *out[3:]),
                            to_weight)


def _images(builder: GraphBuilder, volume: Entry, depth: int, pad: int) -> Entry:
    """(images * slices, depth * channels, height, width): what each slice of a convolution with `depth` slices of a
    kernel reads of a volume (images, channels, slices, height, width) that has a padding of `pad` slices."""
    images, channels, slices, *plane = builder.shape(volume)
    if pad:
        volume = builder.make("Pad", volume, mode="constant", constant_value=0,
                              pad_width=(0, 0, 0, 0, pad, pad, 0, 0, 0, 0))
    count, parts = slices + 2 * pad - depth + 1, []
    for k in range(depth):
        part = builder.make("slice_axis", volume, axis=2, begin=k, end=k + count)
        part = builder.make("transpose", part, axes=(0, 2, 1, 3, 4))
        parts.append(as_shape(builder, part, (images * count, channels, *plane)))
    return parts[0] if depth == 1 else builder.make("Concat", *parts, num_args=depth, dim=1)


def _volume(builder: GraphBuilder, planes: Entry, images: int) -> Entry:
    """Slices, (images * slices, channels, height, width), as (images, channels, slices, height, width)."""
    count, channels, *plane = builder.shape(planes)
    made = as_shape(builder, planes, (images, count // images, channels, *plane))
    return builder.make("transpose", made, axes=(0, 2, 1, 3, 4))


def _of_planes(builder: GraphBuilder, weight: Entry) -> Entry:
    """A weight (filters, channels, depth, height, width) as (filters, depth * channels, height, width)."""
    filters, channels, depth, *kernel = builder.shape(weight)
    weight = builder.make("transpose", weight, axes=(0, 2, 1, 3, 4))
    return as_shape(builder, weight, (filters, depth * channels, *kernel))


def sliced_convolution(builder: GraphBuilder, node: Node, options: Options, data: Entry, weight: Entry) -> Entry:
    """The convolution `node`."""
    (filters, _, depth, *_), (pad, *pads) = builder.shape(weight), node.params.pad
    made = _images(builder, data, depth, pad)
    count, _, *plane = builder.shape(made)
    shape = (count, filters, *(p + 2 * around - 2 for p, around in zip(plane, pads, strict=True)))
    made = plain_convolution(builder, node.name, options, made, _of_planes(builder, weight), tuple(pads), shape)
    return _volume(builder, made, builder.shape(data)[0])


def sliced_data_grad(builder: GraphBuilder, node: Node, options: Options, out_grad: Entry, weight: Entry) -> Entry:
    """The gradient `node` to the data: a slice of these is the sum of what the slices that read it give back."""
    depth, (pad, *pads), (images, channels, slices, *plane) = node.params.kernel[0], node.params.pad, node.params.shape
    made = _images(builder, out_grad, 1, 0)
    shape = (builder.shape(made)[0], depth * channels, *plane)
    made = plain_convolution(builder, node.name, options, made, _of_planes(builder, weight), tuple(pads), shape,
                             turned=True)
    parts = []
    for k in range(depth):
        part = builder.make("slice_axis", made, axis=1, begin=k * channels, end=(k + 1) * channels)
        part, count = _volume(builder, part, images), shape[0] // images
        begin, before = max(0, pad - k), max(0, k - pad)
        end = min(count, slices + pad - k)
        if end <= begin:  # all that it reads is padding
            continue
        part = builder.make("slice_axis", part, axis=2, begin=begin, end=end)
        behind = slices - before - (end - begin)
        if before or behind:
            part = builder.make("Pad", part, mode="constant", constant_value=0,
                                pad_width=(0, 0, 0, 0, before, behind, 0, 0, 0, 0))
        parts.append(part)
    return parts[0] if len(parts) == 1 else builder.make("add_n", *parts, num_args=len(parts))


def sliced_weight_grad(builder: GraphBuilder, node: Node, options: Options, data: Entry, out_grad: Entry) -> Entry:
    """The gradient `node` to the weight."""
    depth, *kernel = node.params.kernel
    (pad, *pads), channels = node.params.pad, builder.shape(data)[1]
    seen, made = _images(builder, data, depth, pad), _images(builder, out_grad, 1, 0)
    made = plain_weight_grad(builder, node.name, options, seen, made, tuple(pads))
    parts = as_shape(builder, made, (builder.shape(out_grad)[1], depth, channels, *kernel))
    return builder.make("transpose", parts, axes=(0, 2, 1, 3, 4))
