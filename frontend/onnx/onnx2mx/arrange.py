"""Operators that move, join, cut, repeat, pad or pick elements."""
from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np

from mxc.onnx.extents import Extents, Sizes, axes_of, is_fixed
from mxc.onnx.onnx2mx.reader import Call, Converter, Tensor, elements


def reshape(c: Call) -> Tensor:
    """The shape may be computed of the shapes of inputs; then it is known for both sizes of free dimensions."""
    data = c.tensor()
    pair = []
    for given, there in zip(c.known_both(1, "shape"), data.extents, strict=True):
        dims = [int(d) for d in given]
        if not c.attr("allowzero", 0):
            dims = [there[i] if d == 0 else d for i, d in enumerate(dims)]
        if -1 in dims:
            rest = elements(tuple(d for d in dims if d != -1))
            dims[dims.index(-1)] = elements(there) // max(rest, 1)
        pair.append(tuple(dims))
    return c.reshape(data, (pair[0], pair[1]))


def flatten(c: Call) -> Tensor:
    data, axis = c.tensor(), c.attr("axis", 1)
    axis += data.rank * (axis < 0)
    if axis == 1:
        return c.op("Flatten", data)
    first, second = ((elements(shape[:axis]), elements(shape[axis:])) for shape in data.extents)
    return c.reshape(data, (first, second))


def transpose(c: Call) -> Tensor:
    return c.transpose(c.tensor(), c.attr("perm", [*range(c.tensor().rank)][::-1]))


def squeeze(c: Call) -> Tensor:
    data, axes = c.tensor(), c.axes()
    gone = [i for i, size in enumerate(axes_of(data.extents)) if size == (1, 1)] if axes is None \
        else [axis % data.rank for axis in axes]
    rest = [[d for i, d in enumerate(shape) if i not in gone] for shape in data.extents]
    return c.reshape(data, (tuple(rest[0]), tuple(rest[1])))


def unsqueeze(c: Call) -> Tensor:
    data = c.tensor()
    axes = c.axes() or []
    rank = data.rank + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        data = c.op("expand_dims", data, axis=axis)
    return data


def concat(c: Call) -> Tensor:
    return c.op("Concat", *c.tensors(), dim=c.attr("axis"))


def split(c: Call) -> list[Tensor]:
    data, axis, count = c.tensor(), c.axis(c.attr("axis", 0)), len(c.node.output)
    sizes = [int(each) for each in c.known(1, "split")] if c.has(1) else None
    size = axes_of(data.extents)[axis]
    if count == 1:
        return [c.op("_copy", data)]
    if sizes is None:
        each = -(-c.fixed(size, f"axis {axis}") // c.attr("num_outputs", count))
        sizes = [min(each, size[0] - each * i) for i in range(count)]
    if len(set(sizes)) == 1:
        return c.many("SliceChannel", data, num_outputs=count, axis=axis)
    places = pairwise(accumulate([0, *sizes]))
    return [c.op("slice_axis", data, axis=axis, begin=begin, end=end) for begin, end in places]


def slice_box(c: Call) -> Tensor:
    data = c.tensor()
    starts, ends = c.known_both(1, "starts"), c.known_both(2, "ends")
    axes = [axis % data.rank for axis in (c.known(3, "axes").tolist() if c.has(3) else range(len(starts[0])))]
    steps = c.known(4, "steps").tolist() if c.has(4) else [1] * len(axes)
    begin: list[int | None] = [None] * data.rank
    end: list[int | None] = [None] * data.rank
    step: list[int | None] = [None] * data.rank
    for i, axis in enumerate(axes):
        sizes = axes_of(data.extents)[axis]
        ranges = [range(*slice(int(starts[n][i]), int(ends[n][i]), int(steps[i])).indices(sizes[n])) for n in (0, 1)]
        if not all(map(len, ranges)):
            c.refuse(f"a slice without elements of axis {axis}")
        step[axis] = int(steps[i])
        forward = steps[i] > 0
        behind = [each[-1] + (1 if forward else -1) for each in ranges]
        last = sizes[0] - 1, sizes[1] - 1
        begin[axis] = bound(c, [each[0] for each in ranges], sizes, (0, 0) if forward else last)
        end[axis] = bound(c, behind, sizes, sizes if forward else (-1, -1))
    only = [axis for axis in range(data.rank) if (begin[axis], end[axis]) != (None, None) or
            step[axis] not in (None, 1)]
    if not only:
        return c.op("_copy", data)
    if len(only) == 1 and step[only[0]] == 1:
        (axis,) = only
        return c.op("slice_axis", data, axis=axis, begin=begin[axis] or 0, end=end[axis])
    return c.op("slice", data, begin=tuple(begin), end=tuple(end), step=tuple(step))


def bound(c: Call, places: list[int], sizes: Sizes, open_end: Sizes) -> int | None:
    """A bound of a slice, from its place for both sizes of the axis; None where it is `open_end`, the axis's own."""
    if tuple(places) == open_end:
        return None
    if places[0] == places[1]:
        return places[0]
    if places[0] - sizes[0] == places[1] - sizes[1]:
        return places[0] - sizes[0]
    c.refuse("a slice that depends on a free dimension; give all sizes as numbers")


def natural(c: Call, indices: Tensor, size: int) -> Tensor:
    """Indices from the first element on: negative ones count from the end in ONNX."""
    if indices.value is not None:
        return c.constant(np.where(indices.value < 0, indices.value + size, indices.value), "indices")
    below = c.op("_mul_scalar", c.op("_lesser_scalar", indices, scalar=0), scalar=size)
    return c.op("elemwise_add", indices, below)


def gather(c: Call) -> Tensor:
    data, indices, axis = c.tensor(0), c.tensor(1), c.axis(c.attr("axis", 0))
    value = indices.value
    if value is not None and value.ndim == 0:  # one slice, without the axis
        place = int(value)
        part = c.op("slice_axis", data, axis=axis, begin=place, end=None if place == -1 else place + 1)
        rest = [shape[:axis] + shape[axis + 1:] for shape in data.extents]
        return c.reshape(part, (rest[0], rest[1]))
    return c.op("take", data, indices, axis=axis, mode="wrap")


def positions(c: Call, like: Tensor, axis: int) -> Tensor:
    """The place along an axis of each element of a tensor, as int64."""
    if is_fixed(like.extents):
        return c.constant(np.indices(like.shape)[axis].astype(np.int64), f"axis{axis}")
    along = c.cast(c.op("_contrib_arange_like", like, axis=axis), "int64")
    first, second = (tuple(d if i == axis else 1 for i, d in enumerate(shape)) for shape in like.extents)
    return c.op("broadcast_like", c.reshape(along, (first, second)), like)


def index_tuples(c: Call, data: Tensor, indices: Tensor, axis: int) -> Tensor:
    """What picks elements as GatherElements does, as index tuples along a new first axis."""
    size = c.fixed(axes_of(data.extents)[axis], f"axis {axis}")
    places = [natural(c, c.cast(indices, "int64"), size) if i == axis else positions(c, indices, i)
              for i in range(data.rank)]
    return c.op("stack", *places, axis=0)


def gather_elements(c: Call) -> Tensor:
    data, indices = c.tensors()
    return c.op("gather_nd", data, index_tuples(c, data, indices, c.axis(c.attr("axis", 0))))


def scatter_elements(c: Call) -> Tensor:
    c.refuse_unless(c.attr("reduction", "none") == "none", "reduction")
    data, indices, updates = c.tensors()
    tuples = index_tuples(c, data, indices, c.axis(c.attr("axis", 0)))
    return c.op("_scatter_set_nd", data, updates, tuples, shape=fixed_shape(c, data))


def fixed_shape(c: Call, tensor: Tensor) -> tuple[int, ...]:
    """A shape without free dimensions."""
    return tuple(c.fixed(size, f"axis {axis}") for axis, size in enumerate(axes_of(tensor.extents)))


def tuples_first(c: Call, indices: Tensor, data: Tensor) -> Tensor:
    """Index tuples, which are the last axis, as the first one."""
    sizes = np.array(fixed_shape(c, data)[:indices.shape[-1]], np.int64) if indices.value is None or \
        (indices.value < 0).any() else None
    made = indices
    if sizes is not None and indices.value is not None:
        made = c.constant(np.where(indices.value < 0, indices.value + sizes, indices.value), "indices")
    elif sizes is not None:
        below = c.op("broadcast_mul", c.op("_lesser_scalar", indices, scalar=0), c.constant(sizes, "sizes"))
        made = c.op("elemwise_add", indices, below)
    return c.transpose(made, [indices.rank - 1, *range(indices.rank - 1)])


def gather_nd(c: Call) -> Tensor:
    """Axes of batches, which data and indices share, become indices of their own."""
    data, indices = c.tensors()
    batch = c.attr("batch_dims", 0)
    if not batch:
        return c.op("gather_nd", data, tuples_first(c, indices, data))
    inner = indices.shape[-1]
    sizes = np.array([c.fixed(axes_of(data.extents)[batch + k], f"axis {batch + k}") for k in range(inner)], np.int64)
    whole = c.cast(indices, "int64")
    below = c.op("broadcast_mul", c.op("_lesser_scalar", whole, scalar=0), c.constant(sizes, "sizes"))
    tuples = c.op("elemwise_add", whole, below)
    parts = [c.op("slice_axis", positions(c, tuples, k), axis=-1, begin=0, end=1) for k in range(batch)]
    joined = c.op("Concat", *parts, tuples, dim=-1)
    return c.op("gather_nd", data, c.transpose(joined, [joined.rank - 1, *range(joined.rank - 1)]))


def scatter_nd(c: Call) -> Tensor:
    c.refuse_unless(c.attr("reduction", "none") == "none", "reduction")
    data, indices, updates = c.tensors()
    return c.op("_scatter_set_nd", data, updates, tuples_first(c, indices, data), shape=fixed_shape(c, data))


def expand(c: Call) -> Tensor:
    data = c.tensor()
    pair = [tuple(np.broadcast_shapes(there, tuple(int(d) for d in given))) for there, given in
            zip(data.extents, c.known_both(1, "shape"), strict=True)]
    return c.spread(data, (pair[0], pair[1]))


def tile(c: Call) -> Tensor:
    return c.op("tile", c.tensor(), reps=tuple(int(each) for each in c.known(1, "repeats")))


def pad(c: Call) -> Tensor:
    data = c.tensor()
    pads = [int(each) for each in c.known(1, "pads")]
    axes = [axis % data.rank for axis in (c.known(3, "axes").tolist() if c.has(3) else range(data.rank))]
    value = float(c.known(2, "constant_value").reshape(())) if c.has(2) else 0.0
    return pad_axes(c, data, {axis: (pads[i], pads[i + len(axes)]) for i, axis in enumerate(axes)},
                    c.attr("mode", "constant"), value)


def pad_axes(c: Call, data: Tensor, pads: dict[int, tuple[int, int]], mode: str, value: float) -> Tensor:
    """A tensor padded along axes. MXNet pads the last two axes of four: others are moved there, two at a time."""
    c.refuse_unless(mode in ("constant", "edge", "reflect"), "mode")
    for axis, (begin, end) in pads.items():
        if min(begin, end) < 0:  # negative padding cuts off
            data = c.op("slice_axis", data, axis=axis, begin=max(-begin, 0), end=end if end < 0 else None)
    todo = [(axis, max(begin, 0), max(end, 0)) for axis, (begin, end) in sorted(pads.items()) if max(begin, end) > 0]
    dtype = data.dtype
    if todo and np.dtype(dtype).kind != "f":
        data = c.cast(data, "float32" if np.dtype(dtype).itemsize < 4 else "float64")
    for first in range(0, len(todo), 2):
        data = pad_two(c, data, todo[first:first + 2], mode, value)
    return c.cast(data, dtype)


def pad_two(c: Call, data: Tensor, pads: list[tuple[int, int, int]], mode: str, value: float) -> Tensor:
    """A tensor padded along one axis or two."""
    axes = [axis for axis, *_ in pads]
    others = [axis for axis in range(data.rank) if axis not in axes]
    order = others + axes
    turned = c.transpose(data, order)
    size = [[shape[axis] for axis in axes] for shape in data.extents]
    rows = [elements(tuple(shape[axis] for axis in others)) for shape in data.extents]
    flat: Extents = tuple((1, n, *[1] * (2 - len(axes)), *s) for n, s in zip(rows, size, strict=True))  # type: ignore[assignment]
    if data.rank == 4 and order == [0, 1, 2, 3] and len(axes) == 2:
        flat = data.extents
    width = [0, 0] * 4
    for i, (_, begin, end) in enumerate(pads):
        at = 8 - 2 * len(pads) + 2 * i
        width[at:at + 2] = begin, end
    made = c.op("Pad", c.reshape(turned, flat), mode=mode, pad_width=tuple(width), constant_value=value)
    grown = [tuple(shape[axis] for axis in others) + tuple(
        shape[axis] + begin + end for axis, begin, end in pads) for shape in data.extents]
    back = [order.index(axis) for axis in range(data.rank)]
    return c.transpose(c.reshape(made, (grown[0], grown[1])), back)


def depth_to_space(c: Call) -> Tensor:
    data, block = c.tensor(), c.attr("blocksize")
    if c.attr("mode", "DCR") == "DCR":
        return c.op("depth_to_space", data, block_size=block)
    apart = [(n, ch // block ** 2, block, block, h, w) for n, ch, h, w in data.extents]
    made = c.transpose(c.reshape(data, (apart[0], apart[1])), (0, 1, 4, 2, 5, 3))
    joined = [(n, ch // block ** 2, h * block, w * block) for n, ch, h, w in data.extents]
    return c.reshape(made, (joined[0], joined[1]))


def space_to_depth(c: Call) -> Tensor:
    return c.op("space_to_depth", c.tensor(), block_size=c.attr("blocksize"))


def one_hot(c: Call) -> Tensor:
    indices, depth = c.tensor(), int(c.known(1, "depth").reshape(()))
    off, on = c.known(2, "values").tolist()
    made = c.op("one_hot", natural(c, c.cast(indices, "int64"), depth), depth=depth, on_value=on, off_value=off,
                dtype=c.tensor(2).dtype)
    axis = c.attr("axis", -1) % made.rank
    order = [*range(made.rank - 1)]
    order.insert(axis, made.rank - 1)
    return c.transpose(made, order)


def triangle(c: Call) -> Tensor:
    data = c.tensor()
    shape = tuple(c.fixed(size, "a matrix") for size in axes_of(data.extents)[-2:])
    k = int(c.known(1, "k").reshape(())) if c.has(1) else 0
    ones = np.ones(shape, data.dtype)
    mask = np.triu(ones, k) if c.attr("upper", 1) else np.tril(ones, k)
    spread = c.spread(c.constant(mask, "mask"), data.extents)
    return c.op("where", spread, data, c.op("zeros_like", data))


def eye_like(c: Call) -> Tensor:
    from mxc.onnx.onnx2mx.dtypes import dtype_of

    rows, columns = fixed_shape(c, c.tensor())
    dtype = dtype_of(c.attr("dtype"), f"EyeLike {c.name!r}") if c.attr("dtype") else c.tensor().dtype
    return c.constant(np.eye(rows, columns, c.attr("k", 0), dtype=np.dtype(dtype)), "eye")


def reverse_sequence(c: Call) -> Tensor:
    data, lengths = c.tensors()
    time, batch = c.attr("time_axis", 0), c.attr("batch_axis", 1)
    turned = c.transpose(data, (1, 0, *range(2, data.rank))) if (time, batch) == (1, 0) else data
    made = c.op("SequenceReverse", turned, c.cast(lengths, "float32"), use_sequence_length=True)
    return c.transpose(made, (1, 0, *range(2, data.rank))) if (time, batch) == (1, 0) else made


CONVERTERS: dict[str, Converter] = {
    "Reshape": reshape, "Flatten": flatten, "Transpose": transpose, "Squeeze": squeeze, "Unsqueeze": unsqueeze,
    "Concat": concat, "Split": split, "Slice": slice_box, "Gather": gather, "GatherElements": gather_elements,
    "ScatterElements": scatter_elements, "GatherND": gather_nd, "ScatterND": scatter_nd, "Expand": expand,
    "Tile": tile, "Pad": pad, "DepthToSpace": depth_to_space, "SpaceToDepth": space_to_depth, "OneHot": one_hot,
    "Trilu": triangle, "EyeLike": eye_like, "ReverseSequence": reverse_sequence,
}
