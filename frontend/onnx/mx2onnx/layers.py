"""Layers: convolutions, dense ones, pooling, normalisation, softmax."""
from __future__ import annotations

import math

import numpy as np

from mxc.onnx.extents import axes_of
from mxc.onnx.mx2onnx.writer import Call, Converter


def channels_first(c: Call) -> None:
    """Raise UnsupportedError for a layout in which channels are last."""
    layout = c.params["layout"]
    c.refuse_unless(layout is None or layout.startswith("NC"), "layout")


def spatial(c: Call, name: str, default: int) -> tuple[int, ...]:
    """A parameter with a number for each spatial axis."""
    return tuple(c.params[name]) or (default,) * (c.rank() - 2)


def convolution(c: Call) -> str:
    channels_first(c)
    pad = spatial(c, "pad", 0)
    return c.emit("Conv", *c.inputs, kernel_shape=c.params["kernel"], strides=spatial(c, "stride", 1),
                  dilations=spatial(c, "dilate", 1), pads=pad + pad, group=c.params["num_group"])


def deconvolution(c: Call) -> str:
    channels_first(c)
    stride, dilate, pad = spatial(c, "stride", 1), spatial(c, "dilate", 1), spatial(c, "pad", 0)
    adjusted = spatial(c, "adj", 0)
    if c.params["target_shape"]:  # it says the size; pads and adj follow from it
        kernel = [(k - 1) * d + 1 for k, d in zip(c.params["kernel"], dilate, strict=True)]
        total = [s * (c.fixed_axis(i + 2) - 1) + k - t for i, (s, k, t) in
                 enumerate(zip(stride, kernel, c.params["target_shape"], strict=True))]
        pad = tuple((t + 1) // 2 for t in total)
        adjusted = tuple(t % 2 for t in total)
    return c.emit("ConvTranspose", *c.inputs, kernel_shape=c.params["kernel"], strides=stride, dilations=dilate,
                  pads=pad + pad, output_padding=adjusted, group=c.params["num_group"])


def fully_connected(c: Call) -> str:
    data, weight, *bias = c.inputs
    if c.params["flatten"] or c.rank() == 2:
        flat = data if c.rank() == 2 else c.emit("Flatten", data, axis=1)
        return c.emit("Gemm", flat, weight, *bias, transB=1)
    value = c.value(1)
    turned = c.emit("Transpose", weight, perm=[1, 0]) if value is None else \
        c.writer.constant(np.ascontiguousarray(value.T), f"{weight}_transposed")
    product = c.emit("MatMul", data, turned)
    return c.emit("Add", product, bias[0]) if bias else product


def batch_norm(c: Call) -> str:
    c.refuse_unless(not c.params["output_mean_var"], "output_mean_var")
    data, gamma, beta, mean, variance = c.inputs
    axis = c.axis(c.params["axis"])
    if c.params["fix_gamma"]:
        gamma = c.writer.constant(np.ones(c.fixed_axis(0, 1), c.dtype(1)), f"{gamma}_fixed")
    exchanged = [*range(c.rank())]
    if axis != 1:
        exchanged[1], exchanged[axis] = axis, 1
        data = c.emit("Transpose", data, perm=exchanged)
    made = c.emit("BatchNormalization", data, gamma, beta, mean, variance, epsilon=c.params["eps"],
                  momentum=c.params["momentum"])
    return made if axis == 1 else c.emit("Transpose", made, perm=exchanged)


def layer_norm(c: Call) -> str:
    c.refuse_unless(not c.params["output_mean_var"], "output_mean_var")
    axis, last = c.axis(c.params["axis"]), c.rank() - 1
    exchanged = [*range(c.rank())]
    exchanged[axis], exchanged[last] = last, axis
    data = c.inputs[0] if axis == last else c.emit("Transpose", c.inputs[0], perm=exchanged)
    made = c.emit("LayerNormalization", data, *c.inputs[1:], axis=-1, epsilon=c.params["eps"])
    return made if axis == last else c.emit("Transpose", made, perm=exchanged)


def group_norm(c: Call) -> str:
    c.refuse_unless(not c.params["output_mean_var"], "output_mean_var")
    groups = c.emit("Reshape", c.inputs[0], c.ints(0, c.params["num_groups"], -1))
    made = c.emit("InstanceNormalization", groups, *c.inputs[1:], epsilon=c.params["eps"])
    return c.emit("Reshape", made, c.emit("Shape", c.inputs[0]))


def instance_norm(c: Call) -> str:
    return c.emit("InstanceNormalization", *c.inputs, epsilon=c.params["eps"])


def l2_normalization(c: Call) -> str:
    axes = {"instance": range(1, c.rank()), "channel": (1,), "spatial": range(2, c.rank())}[c.params["mode"]]
    total = c.emit("ReduceSum", c.emit("Mul", c.inputs[0], c.inputs[0]), c.ints(*axes), keepdims=1)
    return c.emit("Div", c.inputs[0], c.emit("Sqrt", c.emit("Add", total, c.number(c.params["eps"]))))


def lrn(c: Call) -> str:
    return c.emit("LRN", c.inputs[0], size=c.params["nsize"], alpha=c.params["alpha"], beta=c.params["beta"],
                  bias=c.params["knorm"])


def pooling(c: Call) -> str:
    channels_first(c)
    kind, axes = c.params["pool_type"], range(2, c.rank())
    c.refuse_unless(c.params["pooling_convention"] != "same" or c.params["global_pool"], "pooling_convention")
    if kind == "lp" and c.params["p_value"] == 1:
        kind = "sum"  # of the values as they are; ONNX takes their magnitudes
    if kind == "lp":
        c.refuse_unless(c.params["p_value"] == 2, "p_value")
    if c.params["global_pool"]:
        if kind == "sum":
            return c.emit("ReduceSum", c.inputs[0], c.ints(*axes), keepdims=1)
        power = {"p": c.params["p_value"]} if kind == "lp" else {}
        return c.emit({"max": "GlobalMaxPool", "avg": "GlobalAveragePool", "lp": "GlobalLpPool"}[kind], c.inputs[0],
                      **power)
    kernel, stride, pad = tuple(c.params["kernel"]), spatial(c, "stride", 1), spatial(c, "pad", 0)
    beyond = overhang(c, kernel, stride, pad)
    window = {"kernel_shape": kernel, "strides": stride, "pads": pad + tuple(p + b for p, b in zip(pad, beyond,
                                                                                                   strict=True))}
    if kind == "max":
        return c.emit("MaxPool", c.inputs[0], **window)
    if kind == "lp":
        return c.emit("LpPool", c.inputs[0], p=c.params["p_value"], **window)
    if kind == "sum":
        mean = c.emit("AveragePool", c.inputs[0], count_include_pad=1, **window)
        return c.emit("Mul", mean, c.number(math.prod(kernel)))
    with_pad = c.params["count_include_pad"] is not False
    if with_pad and any(beyond):  # windows that end behind the padding count what lies in it, and no more
        return c.emit("AveragePool", c.inputs[0], count_include_pad=1, ceil_mode=1, **{**window, "pads": pad + pad})
    return c.emit("AveragePool", c.inputs[0], count_include_pad=int(with_pad), **window)


def overhang(c: Call, kernel: tuple[int, ...], stride: tuple[int, ...], pad: tuple[int, ...]) -> list[int]:
    """How far the last windows end behind the padding, for each spatial axis."""
    if c.params["pooling_convention"] != "full":
        return [0] * len(kernel)
    ends = []
    for i, (k, s, p) in enumerate(zip(kernel, stride, pad, strict=True)):
        pairs = zip(axes_of(c.extents())[i + 2], axes_of(c.out_extents())[i + 2], strict=True)
        over = {max(0, (out - 1) * s + k - size - 2 * p) for size, out in pairs}
        if len(over) > 1:
            c.refuse("pooling_convention=full over an axis of free size")
        ends.append(over.pop())
    return ends


def resized(c: Call, **how: object) -> str:
    """The last two axes resized to what the output has."""
    sizes = c.ints(*c.fixed_shape((c.out_extents()[0][2:], c.out_extents()[1][2:])))
    shape = c.emit("Shape", c.inputs[0])
    first = c.emit("Slice", shape, c.ints(0), c.ints(2))
    return c.emit("Resize", c.inputs[0], "", "", c.emit("Concat", first, sizes, axis=0), **how)


def up_sampling(c: Call) -> str:
    scale = c.params["scale"]
    if c.params["sample_type"] == "bilinear":
        pad = math.ceil((scale - 1) / 2)
        return c.emit("ConvTranspose", *c.inputs, kernel_shape=[2 * scale - scale % 2] * 2, strides=[scale] * 2,
                      pads=[pad] * 4, group=c.fixed_axis(1))
    c.refuse_unless(c.params["num_args"] == 1, "num_args")
    scales = c.writer.constant(np.array([1, 1, scale, scale], np.float32), "scales")
    return c.emit("Resize", c.inputs[0], "", scales, mode="nearest", coordinate_transformation_mode="asymmetric",
                  nearest_mode="floor")


def bilinear_resize(c: Call) -> str:
    way = "align_corners" if c.params["align_corners"] else "half_pixel"
    return resized(c, mode="linear", coordinate_transformation_mode=way)


def adaptive_pooling(c: Call) -> str:
    sizes = [(c.fixed_axis(axis), out) for axis, (out, _) in enumerate(axes_of(c.out_extents())) if axis > 1] \
        if c.params["output_size"] not in ((), (1,), (1, 1)) else []
    if not sizes:
        return c.emit("GlobalAveragePool", c.inputs[0])
    if all(size % out == 0 for size, out in sizes):
        kernel = [size // out for size, out in sizes]
        return c.emit("AveragePool", c.inputs[0], kernel_shape=kernel, strides=kernel)
    down, along = (pooling_matrix(size, out).astype(c.dtype()) for size, out in sizes)
    return c.emit("MatMul", c.constant(down), c.emit("MatMul", c.inputs[0], c.constant(along.T.copy())))


def pooling_matrix(size: int, out: int) -> np.ndarray:
    """The matrix (out, size) whose product with `size` values are the means of adaptive pooling."""
    matrix = np.zeros((out, size))
    for i in range(out):
        first, end = i * size // out, -(-(i + 1) * size // out)
        matrix[i, first:end] = 1 / (end - first)
    return matrix


def softmax(op_type: str, sign: float = 1.0) -> Converter:
    """The softmax or its logarithm along an axis."""
    def convert(c: Call) -> str:
        c.refuse_unless(not c.params["use_length"], "use_length")
        temperature = sign * (c.params["temperature"] or 1.0)
        data = c.inputs[0]
        if temperature != 1:
            data = c.emit("Div", data, c.number(temperature))
        made = c.emit(op_type, data, axis=c.params["axis"])
        return made if c.out_dtype() == c.dtype() else c.cast(made, c.out_dtype())

    return convert


def of_rows(c: Call) -> str:
    """The softmax over all elements of each sample."""
    if c.rank() == 2:
        return c.emit("Softmax", c.inputs[0], axis=1)
    made = c.emit("Softmax", c.emit("Flatten", c.inputs[0], axis=1), axis=1)
    return c.emit("Reshape", made, c.emit("Shape", c.inputs[0]))


def softmax_activation(c: Call) -> str:
    """Over channels, or over the last axis, whatever else `instance` says (docs/differences.md)."""
    return c.emit("Softmax", c.inputs[0], axis=1 if c.params["mode"] == "channel" else -1)


def softmax_output(c: Call) -> str:
    if c.params["multi_output"]:
        return c.emit("Softmax", c.inputs[0], axis=1)
    return c.emit("Softmax", c.inputs[0], axis=-1) if c.params["preserve_shape"] else of_rows(c)


def dropout(c: Call) -> str:
    c.refuse_unless(c.params["mode"] != "always", "mode")
    return c.emit("Dropout", c.inputs[0], c.writer.constant(np.array(c.params["p"], np.float32), "ratio"))


def region_pooling(c: Call) -> str:
    return c.emit("MaxRoiPool", *c.inputs, pooled_shape=c.params["pooled_size"],
                  spatial_scale=c.params["spatial_scale"])


def region_align(c: Call) -> str:
    c.refuse_unless(not c.params["position_sensitive"], "position_sensitive")
    rois, size = c.inputs[1], c.params["pooled_size"]
    numbers = c.emit("Reshape", c.emit("Slice", rois, c.ints(0), c.ints(1), c.ints(1)), c.ints(-1))
    boxes = c.emit("Slice", rois, c.ints(1), c.ints(5), c.ints(1))
    way = "half_pixel" if c.params["aligned"] else "output_half_pixel"
    return c.emit("RoiAlign", c.inputs[0], boxes, c.cast(numbers, "int64"), output_height=size[0],
                  output_width=size[-1], sampling_ratio=max(c.params["sample_ratio"], 0),
                  spatial_scale=c.params["spatial_scale"], coordinate_transformation_mode=way)


CONVERTERS: dict[str, Converter] = {
    "Convolution": convolution, "Deconvolution": deconvolution, "FullyConnected": fully_connected,
    "BatchNorm": batch_norm, "LayerNorm": layer_norm, "GroupNorm": group_norm, "InstanceNorm": instance_norm,
    "L2Normalization": l2_normalization, "LRN": lrn, "Pooling": pooling, "UpSampling": up_sampling,
    "_contrib_BilinearResize2D": bilinear_resize, "_contrib_AdaptiveAvgPooling2D": adaptive_pooling,
    "softmax": softmax("Softmax"), "softmin": softmax("Softmax", -1.0), "log_softmax": softmax("LogSoftmax"),
    "SoftmaxActivation": softmax_activation, "SoftmaxOutput": softmax_output, "Dropout": dropout,
    "ROIPooling": region_pooling, "_contrib_ROIAlign": region_align,
}
