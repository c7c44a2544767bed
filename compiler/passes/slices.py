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


def by_slices(options: Options, dtype: str, params: Params, data: Shape, out: Shape, to_data: bool = False,
              to_weight: bool = False) -> bool:
    """Whether a convolution of `data` to `out`, or its gradient to the data or the weight, has three axes, and is
    faster this way on the target."""
    if len(params.kernel) != 3 or params.stride[0] > 1 or params.dilate[0] > 1 or params.pad[0] >= params.kernel[0]:
        return False
    depth = params.kernel[0]
    images, channels, filters = data[0] * (data if to_data else out)[2], data[1], out[1]
    seen, made = (channels, filters * depth) if to_data else (channels * depth, filters)
    planes = Params({**params, **{name: params[name][1:] for name in ("kernel", "stride", "dilate", "pad")}})
    return pays_in_training(options, dtype, planes, (images, seen, *data[3:]), (images, made, *out[3:]), to_weight)


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


def sliced_convolution(builder: GraphBuilder, node: Node, options: Options, data: Entry, weight: Entry) -> Entry:
    """The convolution `node`."""
    (filters, channels, depth, *kernel), (pad, *pads) = builder.shape(weight), node.params.pad
    made = _images(builder, data, depth, pad)
    weight = builder.make("transpose", weight, axes=(0, 2, 1, 3, 4))
    weight = as_shape(builder, weight, (filters, depth * channels, *kernel))
    count, _, *plane = builder.shape(made)
    shape = (count, filters, *(p + 2 * around - 2 for p, around in zip(plane, pads, strict=True)))
    made = plain_convolution(builder, node.name, options, made, weight, tuple(pads), shape)
    return _volume(builder, made, builder.shape(data)[0])


def sliced_data_grad(builder: GraphBuilder, node: Node, options: Options, out_grad: Entry, weight: Entry) -> Entry:
    """The gradient `node` to the data: a slice of these is read by the last slice of the kernel first."""
    (filters, channels, depth, *kernel), (pad, *pads) = builder.shape(weight), node.params.pad
    made = _images(builder, out_grad, depth, depth - 1 - pad)
    parts = [as_shape(builder, builder.make("slice_axis", weight, axis=2, begin=k, end=k + 1),
                      (filters, channels, *kernel)) for k in reversed(range(depth))]
    weight = parts[0] if depth == 1 else builder.make("Concat", *parts, num_args=depth, dim=0)
    images, _, _, *plane = node.params.shape
    shape = (builder.shape(made)[0], channels, *plane)
    made = plain_convolution(builder, node.name, options, made, weight, tuple(pads), shape, turned=True)
    return _volume(builder, made, images)


def sliced_weight_grad(builder: GraphBuilder, node: Node, options: Options, data: Entry, out_grad: Entry) -> Entry:
    """The gradient `node` to the weight."""
    depth, *kernel = node.params.kernel
    (pad, *pads), channels = node.params.pad, builder.shape(data)[1]
    seen, made = _images(builder, data, depth, pad), _images(builder, out_grad, 1, 0)
    made = plain_weight_grad(builder, node.name, options, seen, made, tuple(pads))
    parts = as_shape(builder, made, (builder.shape(out_grad)[1], depth, channels, *kernel))
    return builder.make("transpose", parts, axes=(0, 2, 1, 3, 4))
