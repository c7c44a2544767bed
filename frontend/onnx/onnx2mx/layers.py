"""Dense layers, products of matrices, normalisation, softmax and resizing."""
from __future__ import annotations

import numpy as np

from mxc.onnx.extents import Extents, Sizes, axes_of, is_fixed
from mxc.onnx.onnx2mx.evaluation import evaluated
from mxc.onnx.onnx2mx.reader import Call, Converter, Tensor, elements


def gemm(c: Call) -> Tensor:
    a, b = c.tensor(0), c.tensor(1)
    bias = c.tensor(2) if c.has(2) else None
    alpha, beta = c.attr("alpha", 1.0), c.attr("beta", 1.0)
    turned_a, turned_b = bool(c.attr("transA", 0)), bool(c.attr("transB", 0))
    value = b.value
    if value is not None and not turned_a:
        weight = b if turned_b and alpha == 1 else c.constant(
            np.asarray((value if turned_b else value.T) * np.asarray(alpha, value.dtype), order="C"), "weight")
        rows = weight.shape[0]
        if bias is None:
            return c.op("FullyConnected", a, weight, num_hidden=rows, no_bias=True)
        if bias.value is not None and bias.value.size == bias.shape[-1] == rows:
            vector = c.constant(bias.value.reshape(-1) * np.asarray(beta, bias.dtype), "bias") \
                if beta != 1 or bias.rank != 1 else bias
            return c.op("FullyConnected", a, weight, vector, num_hidden=rows)
        alpha = 1.0
        made = c.op("FullyConnected", a, weight, num_hidden=rows, no_bias=True)
    else:
        made = c.op("dot", a, b, transpose_a=turned_a, transpose_b=turned_b)
    if alpha != 1:
        made = c.op("_mul_scalar", made, scalar=alpha)
    if bias is None:
        return made
    return c.op("broadcast_add", made, bias if beta == 1 else c.op("_mul_scalar", bias, scalar=beta))


def matmul(c: Call) -> Tensor:
    """A constant matrix on the right is a dense layer's weight; more axes are batches of matrices."""
    a, b = c.tensor(0), c.tensor(1)
    target = product_extents(a.extents, b.extents)
    if a.rank == 1:
        a = c.aligned(a, 2)
    if b.rank == 2 and b.value is not None:
        weight = c.transpose(b, (1, 0))
        return c.reshape(c.op("FullyConnected", a, weight, num_hidden=weight.shape[0], no_bias=True, flatten=False),
                         target)
    if b.rank == 1:
        b = c.reshape(b, (b.extents[0] + (1,), b.extents[1] + (1,)))
    if b.rank == 2:
        return c.reshape(c.op("dot", a, b), target)
    rank = max(a.rank, b.rank)
    a, b = c.aligned(a, rank), c.aligned(b, rank)
    batch: Extents = tuple(np.broadcast_shapes(a.extents[0][:-2], b.extents[0][:-2])), \
        tuple(np.broadcast_shapes(a.extents[1][:-2], b.extents[1][:-2]))
    a, b = (c.spread(each, (batch[0] + each.extents[0][-2:], batch[1] + each.extents[1][-2:])) for each in (a, b))
    return c.reshape(c.op("batch_dot", a, b), target)


def product_extents(a: Extents, b: Extents) -> Extents:
    """Both shapes of a product of matrices; a vector is a row on the left and a column on the right, and goes."""
    made = []
    for left, right in zip(a, b, strict=True):
        batch = np.broadcast_shapes(left[:-2], right[:-2])
        made.append((*batch, *left[-2:-1], *(right[-1:] if len(right) > 1 else ())))
    return made[0], made[1]


def einsum(c: Call) -> Tensor:
    """A sum of products of two tensors as a product of matrices: axes of both are batches or summed, others rows or
    columns."""
    text = c.attr("equation").replace(" ", "")
    terms, arrow, out = text.partition("->")
    letters = terms.split(",")
    fine = bool(arrow) and len(letters) == 2 and text.replace("->", "").replace(",", "").isalpha() and all(
        len(set(each)) == len(each) for each in (*letters, out)) and set(out) <= set(terms) and all(
        each in out or (each in letters[0] and each in letters[1]) for each in set(terms) - {","})
    c.refuse_unless(fine, "equation")
    left, right = letters
    batch = [each for each in left if each in right and each in out]
    summed = [each for each in left if each in right and each not in out]
    rows, columns = ([each for each in term if each not in other] for term, other in ((left, right), (right, left)))
    a, b = c.tensors()
    sizes = dict(zip(left + right, axes_of(a.extents) + axes_of(b.extents), strict=True))

    def flat(tensor: Tensor, term: str, *groups: list[str]) -> Tensor:
        turned = c.transpose(tensor, [term.index(each) for group in groups for each in group])
        first, second = (tuple(elements(tuple(sizes[each][i] for each in group)) for group in groups) for i in (0, 1))
        return c.reshape(turned, (first, second))

    made = c.op("batch_dot", flat(a, left, batch, rows, summed), flat(b, right, batch, summed, columns))
    order = [*batch, *rows, *columns]
    first, second = (tuple(sizes[each][i] for each in order) for i in (0, 1))
    return c.transpose(c.reshape(made, (first, second)), [order.index(each) for each in out])


def only_output(c: Call) -> None:
    """Raise UnsupportedError where more than the first output is wanted."""
    for name in list(c.node.output)[1:]:
        if name:
            c.refuse(f"the output {name!r}")


def batch_norm(c: Call) -> Tensor:
    c.refuse_unless(not c.attr("training_mode", 0), "training_mode")
    only_output(c)
    data, *scales = (c.tensor(i) for i in range(3))
    if data.dtype == "float16":  # MXNet has all else in float32 then
        scales = [c.cast(each, "float32") for each in scales]
    states = [c.reader.state(c.tensor(i).name, c.known(i, name), scales[0].dtype) for i, name in ((3, "mean"),
                                                                                              (4, "var"))]
    (made, *_) = c.many("BatchNorm", data, *scales, states=states, eps=c.attr("epsilon", 1e-5),
                        momentum=c.attr("momentum", 0.9), fix_gamma=False)
    return made


def instance_norm(c: Call) -> Tensor:
    return c.op("InstanceNorm", *c.tensors(), eps=c.attr("epsilon", 1e-5))


def layer_norm(c: Call) -> Tensor:
    only_output(c)
    data, scale = c.tensor(0), c.tensor(1)
    axis = c.axis(c.attr("axis", -1))
    shape = data.shape[axis:]
    count = elements(shape)
    if not is_fixed((shape, data.extents[1][axis:])):
        c.refuse("a free size of the normalised axes")
    bias = c.tensor(2) if c.has(2) else c.constant(np.zeros(count, data.dtype), "bias")
    vectors = [c.reshape(c.spread(each, (shape, shape)) if each.shape != (count,) else each, ((count,), (count,)))
               for each in (scale, bias)]
    merged: Extents = (*data.extents[0][:axis], count), (*data.extents[1][:axis], count)
    return c.reshape(c.op("LayerNorm", c.reshape(data, merged), *vectors, eps=c.attr("epsilon", 1e-5)), data.extents)


def group_norm(c: Call) -> Tensor:
    data, scale, bias = c.tensors()
    groups = c.attr("num_groups")
    if c.opset < 21:  # a scale for each group; later one for each channel
        return c.op("GroupNorm", data, scale, bias, num_groups=groups, eps=c.attr("epsilon", 1e-5))
    made = c.op("GroupNorm", data, c.constant(np.ones(groups, data.dtype), "ones"),
                c.constant(np.zeros(groups, data.dtype), "zeros"), num_groups=groups, eps=c.attr("epsilon", 1e-5))
    channels = (scale.shape[0], *[1] * (data.rank - 2))
    scale, bias = (c.reshape(each, (channels, channels)) for each in (scale, bias))
    return c.op("broadcast_add", c.op("broadcast_mul", made, scale), bias)


def lrn(c: Call) -> Tensor:
    return c.op("LRN", c.tensor(), nsize=c.attr("size"), alpha=c.attr("alpha", 1e-4), beta=c.attr("beta", 0.75),
                knorm=c.attr("bias", 1.0))


def lp_normalization(c: Call) -> Tensor:
    norm = c.op("norm", c.tensor(), ord=c.attr("p", 2), axis=(c.attr("axis", -1),), keepdims=True)
    return c.op("broadcast_div", c.tensor(), norm)


def softmax(name: str) -> Converter:
    return lambda c: c.op(name, c.tensor(), axis=c.attr("axis", -1))


def resize(c: Call) -> Tensor:
    """Each axis is resized by itself, as a product with a matrix; what MXNet has an operator for is that."""
    data, mode = c.tensor(), c.attr("mode", "nearest")
    # The matrices are made with all attributes; some of them mean something in some modes alone.
    c.read |= {"nearest_mode", "cubic_coeff_a", "exclude_outside", "extrapolation_value", "antialias"}
    way = c.attr("coordinate_transformation_mode", "half_pixel")
    c.refuse_unless(way != "tf_crop_and_resize", "coordinate_transformation_mode")
    c.refuse_unless(c.attr("keep_aspect_ratio_policy", "stretch") == "stretch", "keep_aspect_ratio_policy")
    axes = [axis % data.rank for axis in c.attr("axes", range(data.rank))]
    by_scale = c.has(2) and elements(c.tensor(2).shape) == len(axes)
    given = c.known_both(2, "scales") if by_scale else c.known_both(3, "sizes")
    sizes: dict[int, Sizes] = {}
    for i, axis in enumerate(axes):
        there = axes_of(data.extents)[axis]
        out = tuple(int(np.floor(np.float32(size) * g[i])) if by_scale else int(g[i])
                    for size, g in zip(there, given, strict=True))
        if out != there:
            sizes[axis] = out[0], out[1]
    if not sizes:
        return c.op("_copy", data)
    ratios = {axis: out[0] / data.shape[axis] for axis, out in sizes.items()}
    last_two = data.rank == 4 and set(sizes) <= {2, 3}
    is_repeat = (way == "asymmetric" and c.attr("nearest_mode", "round_prefer_floor") == "floor") or \
        (way == "half_pixel" and c.attr("nearest_mode", "round_prefer_floor") in ("round_prefer_floor",
                                                                                 "round_prefer_ceil"))
    if mode == "nearest" and last_two and len(sizes) == 2 and len(set(ratios.values())) == 1 and is_repeat and \
            ratios[2].is_integer() and all(out[1] == data.extents[1][axis] * ratios[2] for axis, out in sizes.items()):
        return c.op("UpSampling", data, scale=int(ratios[2]), sample_type="nearest")
    exact = not by_scale or all(abs(given[0][axes.index(axis)] * data.shape[axis] - out[0]) < 1e-4
                                for axis, out in sizes.items())
    if mode == "linear" and last_two and exact and not c.attr("antialias", 0) and \
            way in ("align_corners", "half_pixel", "pytorch_half_pixel"):
        height, width = (c.fixed(sizes.get(axis, axes_of(data.extents)[axis]), f"axis {axis}") for axis in (2, 3))
        if way != "pytorch_half_pixel" or min(height, width) > 1:
            return c.op("_contrib_BilinearResize2D", data, height=height, width=width,
                        align_corners=way == "align_corners")
    for axis, out in sizes.items():
        size = c.fixed(axes_of(data.extents)[axis], f"axis {axis}")
        scale = float(given[0][axes.index(axis)]) if by_scale else None
        data = along_axis(c, data, axis, resize_matrix(c, size, c.fixed(out, f"axis {axis}"), scale), mode)
    return data


def resize_matrix(c: Call, size: int, out: int, scale: float | None) -> np.ndarray:
    """The matrix (out, size) that resizes an axis: what the operator makes of each unit vector."""
    attributes = {name: value for name, value in c.attributes.items() if name != "axes"}
    empty = np.zeros(0, np.float32)
    how = [empty, np.array([scale, 1], np.float32)] if scale is not None else \
        [empty, empty, np.array([out, size], np.int64)]
    (matrix,) = evaluated("Resize", [np.eye(size, dtype=np.float32), *how], attributes, c.opset)
    return matrix


def along_axis(c: Call, data: Tensor, axis: int, matrix: np.ndarray, mode: str) -> Tensor:
    """The product of a matrix with an axis; one that picks elements is an indexing."""
    if mode == "nearest":
        return c.op("take", data, c.constant(matrix.argmax(1).astype(np.int32), "places"), axis=axis)
    last, back = c.move_last(data, axis)
    made = c.op("FullyConnected", last, c.constant(matrix.astype(data.dtype), "matrix"), num_hidden=len(matrix),
                no_bias=True, flatten=False)
    return c.transpose(made, back)


CONVERTERS: dict[str, Converter] = {
    "Gemm": gemm, "MatMul": matmul, "Einsum": einsum, "BatchNormalization": batch_norm,
    "InstanceNormalization": instance_norm,
    "LayerNormalization": layer_norm, "GroupNormalization": group_norm, "LRN": lrn,
    "LpNormalization": lp_normalization, "Softmax": softmax("softmax"), "LogSoftmax": softmax("log_softmax"),
    "Resize": resize,
}
