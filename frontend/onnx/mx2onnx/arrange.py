"""Operators that move, join, cut, repeat, pad or pick elements, and arrays that depend on no input."""
from __future__ import annotations

import numpy as np

from mxc.compiler.graph.graph import Entry
from mxc.onnx.extents import Extents, axes_of, is_fixed
from mxc.onnx.mx2onnx.writer import Call, Converter, Names

END = np.iinfo(np.int64).max  # an end of a slice behind every axis


def reshape(c: Call) -> str:
    return c.reshape(c.inputs[0], c.extents(), c.out_extents())


def reshape_like(c: Call) -> str:
    if is_fixed(c.out_extents()):
        return reshape(c)
    whole = c.out_extents() == c.extents(1)
    return c.emit("Reshape", c.inputs[0], c.emit("Shape", c.inputs[1])) if whole else reshape(c)


def flatten(c: Call) -> str:
    return c.emit("Flatten", c.inputs[0], axis=1)


def expand_dims(c: Call) -> str:
    return c.emit("Unsqueeze", c.inputs[0], c.ints(c.params["axis"]))


def squeeze(c: Call) -> str:
    axes = c.params["axis"]
    if axes is None:
        axes = [i for i, size in enumerate(axes_of(c.extents())) if size == (1, 1)]
    if len(axes) == c.rank():  # MXNet keeps one axis
        return reshape(c)
    return c.emit("Squeeze", c.inputs[0], c.ints(*axes))


def transpose(c: Call) -> str:
    return c.emit("Transpose", c.inputs[0], perm=c.params["axes"] or [*range(c.rank())][::-1])


def swap_axes(c: Call) -> str:
    order = [*range(c.rank())]
    one, other = c.axis(c.params["dim1"]), c.axis(c.params["dim2"])
    order[one], order[other] = other, one
    return c.emit("Transpose", c.inputs[0], perm=order)


def concat(c: Call) -> str:
    return c.emit("Concat", *c.inputs, axis=c.params["dim"])


def stack(c: Call) -> str:
    axis = c.params["axis"]
    return c.emit("Concat", *(c.emit("Unsqueeze", each, c.ints(axis)) for each in c.inputs), axis=axis)


def split(c: Call) -> Names:
    parts = c.node.num_outputs
    return squeezed(c, c.emit_many(parts, "Split", c.inputs[0], axis=c.params["axis"]))


def split_at(c: Call) -> Names:
    axis, count = c.axis(c.params["axis"]), c.node.num_outputs
    if c.params["sections"]:
        return squeezed(c, c.emit_many(count, "Split", c.inputs[0], axis=axis))
    sizes = [axes_of(c.out_extents(i))[axis][0] for i in range(count)]
    c.fixed_axis(axis)
    return squeezed(c, c.emit_many(count, "Split", c.inputs[0], c.ints(*sizes), axis=axis))


def squeezed(c: Call, parts: Names) -> Names:
    """Parts of a split, without the axis where `squeeze_axis` says so."""
    if not c.params["squeeze_axis"]:
        return parts
    return [c.emit("Squeeze", part, c.ints(c.params["axis"])) for part in parts]


def box_of(c: Call, begins: list[int], ends: list[int], axes: list[int], steps: list[int] | None = None) -> str:
    """A slice of the first input."""
    return c.emit("Slice", c.inputs[0], c.ints(*begins), c.ints(*ends), c.ints(*axes), c.ints(*(steps or
                                                                                               [1] * len(axes))))


def slice_axis(c: Call) -> str:
    end = c.params["end"]
    return box_of(c, [c.params["begin"]], [END if end is None else end], [c.axis(c.params["axis"])])


def slice_box(c: Call) -> str:
    begins, ends = list(c.params["begin"]), list(c.params["end"])
    steps = [step or 1 for step in c.params["step"] or (1,) * len(begins)]
    begins = [(END if step < 0 else 0) if begin is None else begin for begin, step in zip(begins, steps, strict=True)]
    ends = [(-END if step < 0 else END) if end is None else end for end, step in zip(ends, steps, strict=True)]
    return box_of(c, begins, ends, [*range(len(begins))], steps)


def slice_like(c: Call) -> str:
    axes = [axis % c.rank() for axis in c.params["axes"] or range(c.rank())]
    shape = axes_of(c.out_extents())
    cut = [axis for axis in axes if shape[axis] != axes_of(c.extents())[axis]]
    if all(shape[axis][0] == shape[axis][1] for axis in cut):
        return box_of(c, [0] * len(cut), [shape[axis][0] for axis in cut], cut) if cut \
            else c.emit("Identity", c.inputs[0])
    ends = c.emit("Gather", c.emit("Shape", c.inputs[1]), c.ints(*axes), axis=0)
    return c.emit("Slice", c.inputs[0], c.ints(*[0] * len(axes)), ends, c.ints(*axes))


def crop(c: Call) -> str:
    first = [(c.fixed_axis(axis), axes_of(c.out_extents())[axis][0]) for axis in (2, 3)]
    begins = [(size - out) // 2 for size, out in first] if c.params["center_crop"] else [*c.params["offset"]]
    return box_of(c, begins, [begin + out for begin, (_, out) in zip(begins, first, strict=True)], [2, 3])


def reverse(c: Call) -> str:
    axes = [*c.params["axis"]]
    return box_of(c, [-1] * len(axes), [-END] * len(axes), axes, [-1] * len(axes))


def tile(c: Call) -> str:
    reps, data, rank = [*c.params["reps"]], c.inputs[0], c.rank()
    if len(reps) > rank:
        data = c.emit("Unsqueeze", data, c.ints(*range(len(reps) - rank)))
    return c.emit("Tile", data, c.ints(*[1] * (rank - len(reps)), *reps))


def repeat(c: Call) -> str:
    """A new axis behind the repeated one, along which the data is spread."""
    data, count, axis = c.inputs[0], c.params["repeats"], c.params["axis"]
    if axis is None:
        data = c.emit("Reshape", data, c.ints(-1))
        return c.emit("Reshape", c.emit("Tile", c.emit("Unsqueeze", data, c.ints(1)), c.ints(1, count)), c.ints(-1))
    axis, rank = c.axis(axis), c.rank()
    spread = c.emit("Tile", c.emit("Unsqueeze", data, c.ints(axis + 1)),
                    c.ints(*[count if i == axis + 1 else 1 for i in range(rank + 1)]))
    first, second = ((*shape[:axis + 1], count, *shape[axis + 1:]) for shape in c.extents())
    return c.reshape(spread, (first, second), c.out_extents())


def expand(c: Call) -> str:
    """Axes of length 1 spread to the output's sizes; ONNX keeps those for which it is given 1."""
    pairs = [((1, 1) if there == out else out) for there, out in zip(axes_of(c.extents()), axes_of(c.out_extents()),
                                                                     strict=True)]
    target: Extents = tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
    return c.emit("Expand", c.inputs[0], c.shape_tensor(target))


def pad(c: Call) -> str:
    width = c.params["pad_width"]
    value = [c.writer.constant(np.array(c.params["constant_value"], c.dtype()), "value")] \
        if c.params["mode"] == "constant" else []
    return c.emit("Pad", c.inputs[0], c.ints(*width[::2], *width[1::2]), *value, mode=c.params["mode"])


def blocks(op_type: str) -> Converter:
    return lambda c: c.emit(op_type, c.inputs[0], blocksize=c.params["block_size"])


def shape_array(c: Call) -> str:
    return c.emit("Shape", c.inputs[0])


def size_array(c: Call) -> str:
    return c.emit("Reshape", c.emit("Size", c.inputs[0]), c.ints(1))


def whole_numbers(c: Call, i: int) -> str:
    """Input i as int64; ONNX takes no others as indices."""
    return c.inputs[i] if c.dtype(i) == "int64" else c.cast(c.inputs[i], "int64")


def embedding(c: Call) -> str:
    return c.emit("Gather", c.inputs[1], clipped(c, whole_numbers(c, 0), c.params["input_dim"]), axis=0)


def clipped(c: Call, indices: str, size: int) -> str:
    """Indices, those outside of an axis moved to its ends."""
    return c.emit("Clip", indices, *(c.writer.constant(np.array(end, np.int64), "end") for end in (0, size - 1)))


def take(c: Call) -> str:
    axis = c.axis(c.params["axis"])
    indices = whole_numbers(c, 1)
    if c.params["mode"] != "raise":
        size = c.fixed_axis(axis)
        indices = clipped(c, indices, size) if c.params["mode"] == "clip" else c.emit("Mod", indices, c.ints(size))
    return c.emit("Gather", c.inputs[0], indices, axis=axis)


def pick(c: Call) -> str:
    c.refuse_unless(c.params["axis"] is not None, "axis")
    axis = c.axis(c.params["axis"])
    indices, size = whole_numbers(c, 1), c.fixed_axis(axis)
    indices = clipped(c, indices, size) if c.params["mode"] == "clip" else c.emit("Mod", indices, c.ints(size))
    if c.rank(1) < c.rank():
        indices = c.emit("Unsqueeze", indices, c.ints(axis))
    made = c.emit("GatherElements", c.inputs[0], indices, axis=axis)
    return made if c.params["keepdims"] else c.emit("Squeeze", made, c.ints(axis))


def gather_nd(c: Call) -> str:
    return c.emit("GatherND", c.inputs[0], tuples_last(c, 1))


def tuples_last(c: Call, i: int) -> str:
    """Index tuples, which are the first axis of input i, as its last one."""
    return c.emit("Transpose", whole_numbers(c, i), perm=[*range(1, c.rank(i)), 0])


def scatter_nd(c: Call) -> str:
    zeros = c.constant(np.zeros(c.params["shape"], c.dtype()))
    return c.emit("ScatterND", zeros, tuples_last(c, 1), c.inputs[0])


def scatter_set_nd(c: Call) -> str:
    return c.emit("ScatterND", c.inputs[0], tuples_last(c, 2), c.inputs[1])


def one_hot(c: Call) -> str:
    values = np.array([c.params["off_value"], c.params["on_value"]], c.out_dtype())
    indices = whole_numbers(c, 0)
    there = c.emit("OneHot", c.emit("Max", indices, c.ints(-1)), c.ints(c.params["depth"]),
                   c.writer.constant(np.array([0, 1], np.int64), "values"), axis=-1)
    # a negative index is a place from the end in ONNX, and none in MXNet
    inside = c.emit("Unsqueeze", c.emit("GreaterOrEqual", indices, c.ints(0)), c.ints(-1))
    chosen = c.emit("And", c.cast(there, "bool"), inside)
    off, on = (c.writer.constant(each.reshape(1), "value") for each in values)
    return c.emit("Where", chosen, on, off)


def arange_like(c: Call) -> str:
    axis, repeated = c.params["axis"], c.params["repeat"]
    start, step = c.params["start"], c.params["step"]
    if is_fixed(c.out_extents()):
        (count,) = {int(np.prod(c.out_extents()[0]))}
        values = start + step * (np.arange(count) // repeated)
        return c.constant(values.astype(c.out_dtype()).reshape(c.out_extents()[0]))
    if axis is None or repeated != 1:
        c.refuse("an axis of free size")
    size = c.emit("Squeeze", c.emit("Gather", c.emit("Shape", c.inputs[0]), c.ints(c.axis(axis)), axis=0), c.ints(0))
    zero, one = (c.writer.constant(np.array(number, np.int64), "number") for number in (0, 1))
    numbers = c.cast(c.emit("Range", zero, size, one), c.out_dtype())
    return c.emit("Add", c.emit("Mul", numbers, c.number(step, c.out_dtype())), c.number(start, c.out_dtype()))


def without_inputs(c: Call) -> str:
    """What depends on no input is a constant; one value everywhere may have a free size."""
    value = c.writer.evaluated(Entry(c.node))
    if value is not None:
        return c.constant(np.asarray(value, order="C"))
    if c.node.op is not None and c.node.op.name in ("_zeros", "_ones", "_full", "_zeros_without_dtype"):
        number = {"_ones": 1, "_full": c.params.get("value", 0)}.get(c.node.op.name, 0)
        return c.emit("Expand", c.number(number, c.out_dtype()), c.shape_tensor(c.out_extents()))
    c.refuse("a free size of its output")


def of_shape_alone(c: Call) -> str:
    """An operator that reads nothing but its input's shape: a constant."""
    shape = c.fixed_shape(c.extents())
    assert c.node.op is not None
    (value, *_) = c.node.op.reference(c.params, [np.zeros(shape, c.dtype())], [c.out_dtype()])
    return c.constant(np.asarray(value, order="C"))


CONVERTERS: dict[str, Converter] = {
    "Reshape": reshape, "reshape_like": reshape_like, "Flatten": flatten, "expand_dims": expand_dims,
    "squeeze": squeeze, "transpose": transpose, "SwapAxis": swap_axes, "Concat": concat, "stack": stack,
    "SliceChannel": split, "_split_v2": split_at, "slice_axis": slice_axis, "slice": slice_box,
    "slice_like": slice_like, "Crop": crop, "reverse": reverse, "tile": tile, "repeat": repeat,
    "broadcast_to": expand, "broadcast_axis": expand, "broadcast_like": expand, "Pad": pad,
    "depth_to_space": blocks("DepthToSpace"), "space_to_depth": blocks("SpaceToDepth"), "shape_array": shape_array,
    "size_array": size_array, "Embedding": embedding, "take": take, "pick": pick, "gather_nd": gather_nd,
    "scatter_nd": scatter_nd, "_scatter_set_nd": scatter_set_nd, "one_hot": one_hot,
    "_contrib_arange_like": arange_like, "_contrib_MultiBoxPrior": of_shape_alone,
    **dict.fromkeys(("_zeros", "_ones", "_full", "_arange", "_eye", "_linspace", "_zeros_without_dtype"),
                    without_inputs),
}
