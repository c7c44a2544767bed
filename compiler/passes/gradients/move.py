"""Gradients of more operators that move elements: back to where they came from, added where one was read often."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from mxc.compiler.graph.graph import Entry, Shape
from mxc.compiler.ops.shapes.convolution import geometry
from mxc.compiler.ops.shapes.move import (
    bilinear,
    crop_ranges,
    diagonal_axes,
    like_ranges,
    split_places,
    upsampling_factors,
)
from mxc.compiler.passes.building import as_shape, filled
from mxc.compiler.passes.gradients.context import Gradient


def _placed(g: Gradient, part: Entry, shape: Shape, places: Sequence[range]) -> Entry:
    """Zeros of `shape` with `part` at `places`, which rise by 1."""
    if shape == g.shape(part):
        return part
    return g.make("_slice_assign", filled(g.builder, shape, 0, g.dtype(part)), part,
                  begin=tuple(r.start for r in places), end=tuple(r.stop for r in places))


def strided_slice(g: Gradient) -> list[Entry | None]:
    """slice: og where the elements were, zeros elsewhere."""
    zeros = filled(g.builder, g.shape(g.inputs[0]), 0, g.dtype(g.og))
    return [g.make("_slice_assign", zeros, g.og, begin=g.params.begin, end=g.params.end, step=g.params.step)]


def slice_assign(g: Gradient) -> list[Entry | None]:
    """og outside of the box to the left array, inside of it to the right one."""
    box = {key: g.params[key] for key in ("begin", "end", "step")}
    outside = g.make("_slice_assign", g.og, filled(g.builder, g.shape(g.inputs[1]), 0, g.dtype(g.og)), **box)
    return [outside, g.make("slice", g.og, **box)]


def slice_like(g: Gradient) -> list[Entry | None]:
    """og where the elements were; nothing for the input that gives the shape."""
    shape, like = (g.shape(e) for e in g.inputs)
    return [_placed(g, g.og, shape, like_ranges(g.params, shape, like)), None]


def crop(g: Gradient) -> list[Entry | None]:
    """og where the elements were; nothing for the input that gives the size."""
    shape, *like = (g.shape(e) for e in g.inputs)
    places = crop_ranges(g.params, shape, like[0] if like else None)
    return [_placed(g, g.og, shape, places), *[None] * len(like)]


def _summed(g: Gradient, entry: Entry, wide: Shape, axes: Sequence[int], shape: Shape) -> Entry:
    """`entry` as `wide`, summed over `axes`, as `shape`."""
    entry = as_shape(g.builder, entry, wide)
    axes = tuple(a for a in axes if wide[a] > 1)
    if axes:
        entry = g.make("sum", entry, axis=axes, keepdims=True)
    return as_shape(g.builder, entry, shape)


def tile(g: Gradient) -> list[Entry | None]:
    """The sum over what was repeated: each axis split into how often it is there and its own extent."""
    shape, reps = g.shape(g.inputs[0]), tuple(g.params.reps)
    rank = max(len(shape), len(reps))
    ones = (1,) * rank
    pairs = zip((ones + reps)[-rank:], (ones + shape)[-rank:], strict=True)
    wide = tuple(n for pair in pairs for n in pair)
    return [_summed(g, g.og, wide, range(0, len(wide), 2), shape)]


def repeat(g: Gradient) -> list[Entry | None]:
    """The sum over what was repeated, as an axis after the axis (after all without one)."""
    shape, axis = g.shape(g.inputs[0]), g.params.axis
    after = len(shape) if axis is None else axis % len(shape) + 1
    return [_summed(g, g.og, (*shape[:after], g.params.repeats, *shape[after:]), (after,), shape)]


def upsampling(g: Gradient) -> list[Entry | None]:
    """The sum over each square, of an input's channels or of all; `bilinear` as the deconvolution it is."""
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
        backs.append(_summed(g, part, (n, c, h, factor, w, factor), (3, 5), (n, c, h, w)) if asked else None)
    return backs


def again(g: Gradient) -> list[Entry | None]:
    """SwapAxis, reverse: the same once more."""
    assert g.node.op is not None
    return [g.make(g.node.op.name, g.og, **g.params)]


def stack(g: Gradient) -> list[Entry | None]:
    """Each input's slice."""
    axis = g.params.axis % len(g.shape(g.outputs[0]))
    return [as_shape(g.builder, g.make("slice_axis", g.og, axis=axis, begin=i, end=i + 1), g.shape(entry))
            if asked else None for i, (entry, asked) in enumerate(zip(g.inputs, g.asked, strict=True))]


def depth_to_space(g: Gradient) -> list[Entry | None]:
    """The inverse."""
    return [g.make("space_to_depth", g.og, **g.params)]


def space_to_depth(g: Gradient) -> list[Entry | None]:
    """The inverse."""
    return [g.make("depth_to_space", g.og, **g.params)]


def pad(g: Gradient) -> list[Entry | None]:
    """og without its border, and the border added where its elements were read."""
    back, mode = g.og, g.params.mode
    for axis, (n, before, after) in enumerate(zip(g.shape(g.inputs[0]), g.params.pad_width[::2],
                                                  g.params.pad_width[1::2], strict=True)):
        if before or after:
            parts = [g.make("slice_axis", back, axis=axis, begin=before, end=before + n)]
            if mode != "constant":
                parts += [_border(g, back, axis, n, ends, at) for ends, at in
                          (((0, before), 0), ((before + n, before + n + after), n - 1)) if ends[0] < ends[1]]
            back = parts[0] if len(parts) == 1 else g.make("add_n", *parts, num_args=len(parts))
    return [back]


def _border(g: Gradient, grad: Entry, axis: int, n: int, ends: tuple[int, int], edge: int) -> Entry:
    """What the border between `ends` of `axis` adds to the n elements there: all to the one at `edge`, or mirrored."""
    part = g.make("slice_axis", grad, axis=axis, begin=ends[0], end=ends[1])
    count = ends[1] - ends[0]
    if g.params.mode == "edge":
        part, begin, count = g.make("sum", part, axis=(axis,), keepdims=True), edge, 1
    else:
        part, begin = g.make("reverse", part, axis=(axis,)), 1 if edge == 0 else n - 1 - count
    shape = g.shape(part)
    places = [range(begin, begin + count) if a == axis else range(d) for a, d in enumerate(shape)]
    return _placed(g, part, (*shape[:axis], n, *shape[axis + 1:]), places)


def diag(g: Gradient) -> list[Entry | None]:
    """og on the diagonal of zeros; of a vector the diagonal of og."""
    shape = g.shape(g.inputs[0])
    if len(shape) == 1:
        return [g.make("diag", g.og, k=g.params.k)]
    first, second = diagonal_axes(g.params, len(shape))
    return [g.make("_mxc_on_diagonal", g.og, k=g.params.k, axis1=first, axis2=second, shape=shape)]


def on_diagonal(g: Gradient) -> list[Entry | None]:
    """og's diagonal."""
    return [g.make("diag", g.og, k=g.params.k, axis1=g.params.axis1, axis2=g.params.axis2)]


def split_v2(g: Gradient) -> list[Entry | None]:
    """The outputs' gradients joined, zeros where nothing flows."""
    shape = g.shape(g.inputs[0])
    axis = g.params.axis % len(shape)
    places = split_places(g.params, shape[axis])
    parts = [as_shape(g.builder, g.grad(i), (*shape[:axis], end - begin, *shape[axis + 1:]))
             for i, (begin, end) in enumerate(pairwise(places))]
    return [parts[0] if len(parts) == 1 else g.make("Concat", *parts, num_args=len(parts), dim=axis)]


def div_sqrt_dim(g: Gradient) -> list[Entry | None]:
    """og over the same root."""
    return [g.make("_contrib_div_sqrt_dim", g.og)]
