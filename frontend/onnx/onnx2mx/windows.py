"""Operators over windows: convolutions and pooling, with ONNX's ways to pad."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mxc.onnx.extents import axes_of
from mxc.onnx.onnx2mx.arrange import pad_axes
from mxc.onnx.onnx2mx.reader import Call, Converter, Tensor

Numbers = tuple[int, ...]


@dataclass(frozen=True)
class Window:
    """The window of a convolution or pooling along the spatial axes. begins, ends: what is padded before and behind."""

    kernel: Numbers
    stride: Numbers
    dilate: Numbers
    begins: Numbers
    ends: Numbers

    @property
    def reach(self) -> Numbers:
        """How many elements a window goes over, with those between its own."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilate, strict=True))


def window_of(c: Call, kernel: Numbers) -> Window:
    """The window that attributes give, for data as input 0."""
    count = len(kernel)
    stride, dilate = (tuple(c.attr(name, [1] * count)) for name in ("strides", "dilations"))
    pads, way = tuple(c.attr("pads", [0] * 2 * count)), c.attr("auto_pad", "NOTSET")
    window = Window(kernel, stride, dilate, pads[:count], pads[count:])
    if way == "NOTSET":
        return window
    if way == "VALID":
        return Window(kernel, stride, dilate, (0,) * count, (0,) * count)
    begins, ends = [], []
    for sizes, s, reach in zip(axes_of(c.tensor().extents)[2:], stride, window.reach, strict=True):
        needed = {max((-(-size // s) - 1) * s + reach - size, 0) for size in sizes}
        if len(needed) > 1:
            c.refuse(f"auto_pad={way!r} over an axis of free size")
        total = needed.pop()
        less, more = total // 2, total - total // 2
        begins.append(less if way == "SAME_UPPER" else more)
        ends.append(more if way == "SAME_UPPER" else less)
    return Window(kernel, stride, dilate, tuple(begins), tuple(ends))


def padded(c: Call, data: Tensor, begins: Numbers, ends: Numbers, value: float) -> Tensor:
    """Data padded along its spatial axes."""
    return pad_axes(c, data, {axis + 2: pair for axis, pair in enumerate(zip(begins, ends, strict=True))}, "constant",
                    value)


def convolution(c: Call) -> Tensor:
    data, weight, *bias = c.tensors()
    window = window_of(c, tuple(c.attr("kernel_shape", weight.shape[2:])))
    pad = window.begins
    if window.begins != window.ends:
        data, pad = padded(c, data, window.begins, window.ends, 0), (0,) * len(pad)
    return c.op("Convolution", data, weight, *bias, kernel=window.kernel, stride=window.stride, dilate=window.dilate,
                pad=pad, num_filter=weight.shape[0], num_group=c.attr("group", 1), no_bias=not bias)


def transposed_convolution(c: Call) -> Tensor:
    data, weight, *bias = c.tensors()
    group = c.attr("group", 1)
    window = window_of(c, tuple(c.attr("kernel_shape", weight.shape[2:])))
    more = tuple(c.attr("output_padding", [0] * len(window.kernel)))
    begins, ends, sizes = window.begins, window.ends, c.attr("output_shape")
    if sizes is not None or c.attr("auto_pad", "NOTSET") in ("SAME_UPPER", "SAME_LOWER"):
        there = [c.fixed(pair, f"axis {axis}") for axis, pair in enumerate(axes_of(data.extents))][2:]
        wanted = list(sizes)[-len(there):] if sizes is not None else [s * i for s, i in zip(window.stride, there,
                                                                                            strict=True)]
        total = [max(s * (i - 1) + m + reach - size, 0) for s, i, m, reach, size in
                 zip(window.stride, there, more, window.reach, wanted, strict=True)]
        half = tuple(t // 2 for t in total)
        rest = tuple(t - h for t, h in zip(total, half, strict=True))
        begins, ends = (half, rest) if c.attr("auto_pad") == "SAME_UPPER" else (rest, half)
    pad = tuple(map(min, begins, ends))
    made = c.op("Deconvolution", data, weight, *bias, kernel=window.kernel, stride=window.stride,
                dilate=window.dilate, pad=pad, adj=more, num_filter=weight.shape[1] * group, num_group=group,
                no_bias=not bias)
    for axis, (before, behind, both) in enumerate(zip(begins, ends, pad, strict=True)):
        if before != behind:
            made = c.op("slice_axis", made, axis=axis + 2, begin=before - both,
                        end=None if behind == both else both - behind)
    return made


def ceil_ends(c: Call, window: Window) -> Numbers:
    """What is padded behind, with `ceil_mode`: as far as the last windows reach that begin inside of the data."""
    if not c.attr("ceil_mode", 0):
        return window.ends
    ends = []
    for sizes, s, reach, before, behind in zip(axes_of(c.tensor().extents)[2:], window.stride, window.reach,
                                               window.begins, window.ends, strict=True):
        needed = set()
        for size in sizes:
            count = -(-(size + before + behind - reach) // s) + 1
            count -= (count - 1) * s >= size + before
            needed.add((count - 1) * s + reach - size - before)
        if len(needed) > 1:
            c.refuse("ceil_mode=1 over an axis of free size")
        ends.append(max(needed.pop(), behind))
    return tuple(ends)


def max_pool(c: Call) -> list[Tensor]:
    if len(c.node.output) > 1 and c.node.output[1]:
        c.refuse("the output Indices")
    return [pool(c, c.tensor(), "max", float(np.finfo(c.tensor().dtype).min))]


def magnitudes(c: Call) -> Tensor:
    """The data of a norm: MXNet takes powers of the values as they are, so odd ones need what is not below 0."""
    return c.tensor() if c.attr("p", 2) == 2 else c.op("abs", c.tensor())


def pool(c: Call, data: Tensor, kind: str, value: float, **params: object) -> Tensor:
    """A pooling whose result does not change when `value` is padded."""
    window = window_of(c, tuple(c.attr("kernel_shape")))
    c.refuse_unless(max(window.dilate) == 1, "dilations")
    pad, ends = window.begins, ceil_ends(c, window)
    if ends != pad:
        data, pad = padded(c, data, pad, ends, value), (0,) * len(pad)
    return c.op("Pooling", data, pool_type=kind, kernel=window.kernel, stride=window.stride, pad=pad, **params)


def average_pool(c: Call) -> Tensor:
    """Means over windows. What lies behind the padding, where the last windows end with `ceil_mode`, never counts."""
    window = window_of(c, tuple(c.attr("kernel_shape")))
    c.refuse_unless(max(window.dilate) == 1, "dilations")
    data, with_pad, ends = c.tensor(), bool(c.attr("count_include_pad", 0)), ceil_ends(c, window)
    how = {"kernel": window.kernel, "stride": window.stride}
    if ends == window.begins and ends == window.ends:
        return c.op("Pooling", data, pool_type="avg", pad=window.begins, count_include_pad=with_pad, **how)
    data = padded(c, data, window.begins, ends, 0)
    if with_pad and ends == window.ends:
        return c.op("Pooling", data, pool_type="avg", pad=(0,) * len(ends), **how)
    total = c.op("Pooling", data, pool_type="sum", pad=(0,) * len(ends), **how)
    counts = np.ones((1, 1), data.dtype)
    for axis, (k, s, before, behind) in enumerate(zip(window.kernel, window.stride, window.begins, window.ends,
                                                      strict=True)):
        size = c.fixed(axes_of(c.tensor().extents)[axis + 2], f"axis {axis + 2}")
        starts = np.arange(total.shape[axis + 2]) * s - before
        low, high = (-before, size + behind) if with_pad else (0, size)
        inside = np.minimum(starts + k, high) - np.maximum(starts, low)
        counts = counts[..., None] * inside.astype(data.dtype)
    return c.op("broadcast_mul", total, c.constant(1 / counts, "shares"))


def lp_pool(c: Call) -> Tensor:
    return pool(c, magnitudes(c), "lp", 0, p_value=c.attr("p", 2))


def global_pool(kind: str) -> Converter:
    """A pooling over all spatial axes."""
    def convert(c: Call) -> Tensor:
        power = {"p_value": c.attr("p", 2)} if kind == "lp" else {}
        return c.op("Pooling", magnitudes(c) if kind == "lp" else c.tensor(), pool_type=kind, global_pool=True,
                    kernel=(1,) * (c.tensor().rank - 2), **power)

    return convert


def region_pool(c: Call) -> Tensor:
    return c.op("ROIPooling", *c.tensors(), pooled_size=tuple(c.attr("pooled_shape")),
                spatial_scale=c.attr("spatial_scale", 1.0))


def region_align(c: Call) -> Tensor:
    data, boxes, numbers = c.tensors()
    c.refuse_unless(c.attr("mode", "avg") == "avg", "mode")
    way = c.attr("coordinate_transformation_mode", "half_pixel" if c.opset >= 16 else "output_half_pixel")
    first = c.reshape(c.cast(numbers, boxes.dtype), (numbers.extents[0] + (1,), numbers.extents[1] + (1,)))
    rois = c.op("Concat", first, boxes, dim=1)
    return c.op("_contrib_ROIAlign", data, rois, aligned=way == "half_pixel",
                pooled_size=(c.attr("output_height", 1), c.attr("output_width", 1)),
                sample_ratio=c.attr("sampling_ratio", 0) or -1, spatial_scale=c.attr("spatial_scale", 1.0))


CONVERTERS: dict[str, Converter] = {
    "Conv": convolution, "ConvTranspose": transposed_convolution, "MaxPool": max_pool, "AveragePool": average_pool,
    "LpPool": lp_pool, "GlobalAveragePool": global_pool("avg"), "GlobalMaxPool": global_pool("max"),
    "GlobalLpPool": global_pool("lp"), "MaxRoiPool": region_pool, "RoiAlign": region_align,
}
