"""Decompositions and gradients of operators that resample images."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mxc.compiler.graph.building import as_dtype, own_shape, widened
from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node, Shape
from mxc.compiler.graph.options import Options
from mxc.compiler.operators.arrange.graph import sum_over
from mxc.compiler.operators.convolution.shape import geometry
from mxc.compiler.operators.pooling.graph import tiled
from mxc.compiler.operators.resize.shape import adaptive_size, bilinear, upsampling_factors


def upsampling(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Height and width repeated, the results joined or added; or the deconvolution."""
    params, out = node.params, own_shape(builder, node)
    if params.sample_type == "bilinear":
        g = geometry(bilinear(params))
        return [builder.make("_mxc_conv_data_grad", *inputs, name=node.name, kernel=g.kernel, stride=g.stride,
                             dilate=g.dilate, pad=g.pad, num_group=g.groups, shape=out)]
    large = []
    for entry, factor in zip(inputs, upsampling_factors(params, [builder.shape(e) for e in inputs]), strict=True):
        for axis in (2, 3) if factor > 1 else ():
            entry = builder.make("repeat", entry, repeats=factor, axis=axis)
        large.append(entry)
    if len(large) == 1:
        return large
    if params.multi_input_mode == "sum":
        return [builder.make("add_n", *large, name=node.name, num_args=len(large))]
    return [builder.make("Concat", *large, name=node.name, num_args=len(large), dim=1)]


def longest_windows(size: Sequence[int], out: Sequence[int]) -> tuple[int, ...]:
    """Along each axis the largest number of elements, of `size`, that one element of `out` is the mean of."""
    return tuple(max(-(-(i + 1) * n // o) - i * n // o for i in range(o)) for n, o in zip(size, out, strict=True))


def most_readers(size: Sequence[int], out: Sequence[int], align_corners: bool) -> tuple[int, ...]:
    """Along each axis the largest number of elements of `out` from the last one at or before the input element y - 1
    to the last one at or before y + 1: all that bilinear resizing computes from y are among them."""
    return tuple(max(_last(y + 1, n, o, align_corners) - max(_last(y - 1, n, o, align_corners), 0) + 1
                     for y in range(n)) for n, o in zip(size, out, strict=True))


def _last(y: int, size: int, out: int, align_corners: bool) -> int:
    """The last element of `out` that lies at or before element y of `size`; all lie before one behind the last."""
    if y >= size or size == 1:
        return out - 1 if y > 0 else 0
    if align_corners:
        return y * (out - 1) // (size - 1)
    return ((2 * y + 1) * out - size) // (2 * size)


def adaptive_pooling(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The mean over space where the output has one element, average pooling where all windows are of one size."""
    data = inputs[0]
    shape, out = builder.shape(data), adaptive_size(node.params)
    if out == (1, 1):
        return [builder.make("mean", data, axis=(2, 3), keepdims=True, name=node.name)]
    kernel = longest_windows(shape[2:], out)
    if all(n % o == 0 for n, o in zip(shape[2:], out, strict=True)):
        return [builder.make("Pooling", data, kernel=kernel, stride=kernel, pool_type="avg", name=node.name)]
    return [builder.make("_mxc_adaptive_pool", data, kernel=kernel, shape=(*shape[:2], *out), name=node.name)]


def upsampling_grad(g: Gradient) -> list[Entry | None]:
    """nearest: og summed over the square of each pixel, in the channels that the input went to. bilinear: the gradient
    of its deconvolution."""
    shapes = [g.shape(e) for e in g.inputs]
    if g.params.sample_type == "bilinear":
        window = geometry(bilinear(g.params))
        shared = {"kernel": window.kernel, "stride": window.stride, "dilate": window.dilate, "pad": window.pad,
                  "num_group": window.groups}
        data, weight = g.inputs
        return [g.make("Convolution", g.og, weight, num_filter=shapes[0][1], no_bias=True, **shared)
                if g.asked[0] else None,
                g.make("_mxc_conv_weight_grad", g.og, data, **shared) if g.asked[1] else None]
    backs: list[Entry | None] = []
    begin = 0
    for (n, c, h, w), factor, asked in zip(shapes, upsampling_factors(g.params, shapes), g.asked, strict=True):
        part = g.og
        if g.params.multi_input_mode == "concat" and len(shapes) > 1:
            part = g.make("slice_axis", part, axis=1, begin=begin, end=begin + c)
            begin += c
        backs.append(sum_over(g, part, (n, c, h, factor, w, factor), (3, 5), (n, c, h, w)) if asked else None)
    return backs


def adaptive_pooling_grad(g: Gradient) -> list[Entry | None]:
    """Each mean's gradient, over the count of its elements, to all of them."""
    shape, out = g.shape(g.inputs[0]), g.shape(g.og)
    if out[2:] == (1, 1):
        return [g.broadcast_to(g.scaled(g.og, 1.0 / prod(shape[2:])), shape)]
    if all(n % o == 0 for n, o in zip(shape[2:], out[2:], strict=True)):
        kernel = longest_windows(shape[2:], out[2:])
        return [tiled(g, g.scaled(g.og, 1.0 / prod(kernel)), shape, 2, kernel)]
    return [g.make("_mxc_adaptive_pool", g.og, kernel=longest_windows(out[2:], shape[2:]), shape=shape,
                   pool_type="spread")]


def bilinear_resize_grad(g: Gradient) -> list[Entry | None]:
    """og back to the elements that were read, by the same weights; `like` gets none.

    The weights are products of one along the height and one along the width, so these are done one after the other,
    both along rows, whose elements then have one weight: for the width the array is transposed.
    """
    data, others = g.inputs[0], [None] * (len(g.inputs) - 1)
    back = widened(g.builder, g.og)
    (*images, height, width), out = g.shape(data), g.shape(g.og)
    if width != out[3]:
        turned = g.make("transpose", back, axes=(0, 1, 3, 2))
        back = g.make("transpose", _resized_back(g, turned, (*images, width, out[2])), axes=(0, 1, 3, 2))
    if height != out[2]:
        back = _resized_back(g, back, (*images, height, width))
    return [as_dtype(g.builder, back, g.dtype(data)), *others]


def _resized_back(g: Gradient, grad: Entry, shape: Shape) -> Entry:
    """`grad` brought back to the rows of an array of `shape`."""
    align = g.params.align_corners
    kernel = *most_readers(shape[2:3], g.shape(grad)[2:3], align), 1
    return g.make("_mxc_bilinear_resize_grad", grad, kernel=kernel, shape=shape, align_corners=align)


def bilinear_resize_grad_grad(g: Gradient) -> list[Entry | None]:
    """The gradient is linear in og, and its transpose is the resizing."""
    height, width = g.shape(g.inputs[0])[2:]
    return [g.make("_contrib_BilinearResize2D", g.og, height=height, width=width,
                   align_corners=g.params.align_corners)]


def adaptive_spread_grad(g: Gradient) -> list[Entry | None]:
    """Spreading is the transpose of taking means, so the means of og flow back; and the other way round."""
    shape, out = g.shape(g.inputs[0]), g.shape(g.og)
    kind = "avg" if g.params.pool_type == "spread" else "spread"
    return [g.make("_mxc_adaptive_pool", g.og, kernel=longest_windows(out[2:], shape[2:]), shape=shape,
                   pool_type=kind)]
