"""Shape rules of more operators that move elements: slice, Crop, tile, repeat, UpSampling, stack, Pad, diag, ..."""
from __future__ import annotations

import math
from itertools import pairwise

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.shapes.basic import Shape, Shapes, merge, merge_all, normal_axis
from mxc.compiler.ops.shapes.convolution import deconvolution
from mxc.compiler.ops.table import Params, get


def _spread(found: tuple[int, ...], rank: int) -> Shape:
    """`found` with ones before it, up to `rank` axes."""
    return (1,) * (rank - len(found)) + tuple(found)


# -- cutting

def slice_ranges(params: Params, data: Shape) -> list[range]:
    """For each axis of `data` the places that slice takes: as NumPy, with begin, end and step that may be None.

    An unknown extent gives an empty range, as does a slice that takes nothing. Raises MXNetError for parameters that do
    not fit the data.
    """
    begin, end = tuple(params.begin), tuple(params.end)
    step = tuple(params.step) or (None,) * len(begin)
    if not len(begin) == len(end) == len(step) or len(begin) > len(data):
        raise MXNetError(f"expected as many begin as end (and step), for at most {len(data)} axes, got begin {begin}, "
                         f"end {end} and step {tuple(params.step)}")
    if 0 in step:
        raise MXNetError(f"expected a step other than 0, got {step}")
    named = [range(*slice(b, e, s).indices(d)) for b, e, s, d in zip(begin, end, step, data, strict=False)]
    return [*named, *(range(d) for d in data[len(named):])]


def _length(axis: int, places: range, extent: int) -> int:
    if extent and not places:
        raise MXNetError(f"nothing is left of axis {axis} of {extent} elements: from {places.start} to {places.stop} "
                         f"by {places.step} (to go back to the first element, end must be None)")
    return len(places)


def strided_slice(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """slice: as many elements of each axis as `slice_ranges` has. Raises MXNetError when nothing is left of an axis."""
    data = ins[0]
    if data is None:
        return ins, outs
    lengths = tuple(_length(i, r, d) for i, (r, d) in enumerate(zip(slice_ranges(params, data), data, strict=True)))
    return ins, [merge(lengths, outs[0])]


def slice_assign(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """lhs and the output agree; rhs has the shape of the slice of lhs that it replaces."""
    data = merge(ins[0], outs[0])
    if data is None:
        return ins, outs
    _, (part,) = strided_slice(params, [data], [None])
    return [data, *(merge(part, rhs) for rhs in ins[1:])], [data]


def like_ranges(params: Params, data: Shape, like: Shape) -> list[range]:
    """slice_like: the first elements of the axes in `axes` (without them: of all), as many as `like` has there.

    A negative axis is counted from the end of the data, for both. Raises MXNetError when there are not as many.
    """
    axes = tuple(params.axes)
    if not axes and len(data) != len(like):
        raise MXNetError(f"expected shapes of one rank, or axes, got {data} and {like}")
    extents = list(data)
    for axis in axes or range(len(data)):
        place = normal_axis(axis, len(data))
        if place >= len(like):
            raise MXNetError(f"expected shape_like with an axis {place}, for axes={axes} of data {data}, got {like}")
        if data[place] and data[place] < like[place]:
            raise MXNetError(f"expected at least {like[place]} elements of axis {axis}, got data {data}")
        extents[place] = like[place]
    return [range(n) for n in extents]


def slice_like(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape, with the extents of `shape_like` in the axes that are cut."""
    data, like = ins
    if data is None or like is None:
        return ins, outs
    return ins, [merge(tuple(map(len, like_ranges(params, data, like))), outs[0])]


def crop_ranges(params: Params, data: Shape, like: Shape | None) -> list[range]:
    """Crop: `h_w`, or the height and width of `like`, from `offset` on, or of the middle with `center_crop`.

    Raises MXNetError for data that is not 4-D or smaller than what is to be cut out.
    """
    for shape in (data, like):
        if shape is not None and len(shape) != 4:
            raise MXNetError(f"expected inputs of 4 dimensions, got {shape}")
    size, offset = tuple(params.h_w) if like is None else like[2:], tuple(params.offset)
    if len(size) != 2 or len(offset) != 2 or (like is None and 0 in size):
        raise MXNetError(f"expected two numbers in h_w (without a second input) and in offset, got {size} and {offset}")
    places = [range(data[0]), range(data[1])]
    for n, wanted, start in zip(data[2:], size, offset, strict=True):
        start = (n - wanted) // 2 if params.center_crop else start
        if n and not 0 <= start <= n - wanted:
            raise MXNetError(f"cannot cut {size} out of {data}" + ("" if params.center_crop else f" from {offset} on"))
        places.append(range(start, start + wanted))
    return places


def crop(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(N, C, height and width that `crop_ranges` gives)."""
    data, *rest = ins
    if data is None or (rest and rest[0] is None):
        return ins, outs
    return ins, [merge(tuple(map(len, crop_ranges(params, data, rest[0] if rest else None))), outs[0])]


# -- repeating

def tile(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Axis i of the data reps[i] times, aligned at the last axis."""
    data, reps = ins[0], tuple(params.reps)
    if any(r < 1 for r in reps):
        raise MXNetError(f"expected reps from 1 on, got {reps}")
    if data is None:
        return ins, outs
    rank = max(len(data), len(reps))
    pairs = zip(_spread(data, rank), _spread(reps, rank), strict=True)
    return ins, [merge(tuple(d * r for d, r in pairs), outs[0])]


def repeat(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """`repeats` of each element along `axis`; without an axis of all elements in a row."""
    data, times, axis = ins[0], params["repeats"], params["axis"]
    assert isinstance(times, int)
    if data is None:
        return ins, outs
    if axis is None:
        return ins, [merge((times * math.prod(data),), outs[0])]
    assert isinstance(axis, int)
    axis = normal_axis(axis, len(data))
    return ins, [merge((*data[:axis], data[axis] * times, *data[axis + 1:]), outs[0])]


def bilinear(params: Params) -> Params:
    """The Deconvolution that UpSampling with `bilinear` is: each channel by its own kernel of twice the scale."""
    scale, filters = params["scale"], params["num_filter"]
    assert isinstance(scale, int) and isinstance(filters, int)
    kernel, pad = 2 * scale - scale % 2, scale // 2
    return get("Deconvolution").make_params({
        "kernel": (kernel, kernel), "stride": (scale, scale), "pad": (pad, pad), "num_filter": filters,
        "num_group": filters, "no_bias": True})


def upsampling_factors(params: Params, ins: list[Shape]) -> list[int]:
    """How often UpSampling with `nearest` repeats each input: the first by `scale`, the others to that size.

    Raises MXNetError for inputs that are not 4-D or do not fit that size.
    """
    if any(len(s) != 4 for s in ins):
        raise MXNetError(f"expected inputs of 4 dimensions, got {' and '.join(map(str, ins))}")
    scale = params["scale"]
    assert isinstance(scale, int)
    height, width = (n * scale for n in ins[0][2:])
    factors = []
    for shape in ins:
        factor = height // shape[2] if shape[2] else 0
        if 0 not in (*shape[2:], height, width) and (shape[2] * factor, shape[3] * factor) != (height, width):
            raise MXNetError(f"cannot repeat {shape} to a height and width of {(height, width)}, {scale} times those "
                             "of the first input")
        factors.append(factor)
    return factors


def upsampling(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(N, channels, scale * height, scale * width): the channels of all inputs together, or one input's for `sum`.

    Of `bilinear` that of its Deconvolution; the weight is (channels, 1, kernel, kernel).
    """
    if params["sample_type"] == "bilinear":
        return deconvolution(bilinear(params), ins, outs)
    known = [s for s in ins if s is not None]
    if len(known) < len(ins):
        return ins, outs
    upsampling_factors(params, known)
    scale = params["scale"]
    assert isinstance(scale, int)
    height, width = (n * scale for n in known[0][2:])
    (batch,) = merge_all(s[:1] for s in known) or (0,)
    if params["multi_input_mode"] == "sum":
        (channels,) = merge_all(s[1:2] for s in known) or (0,)
    else:
        channels = 0 if any(s[1] == 0 for s in known) else sum(s[1] for s in known)
    return ins, [merge((batch, channels, height, width), outs[0])]


# -- axes

def swap_axis(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Axes dim1 and dim2 in each other's place. Known either way."""
    known = ins[0] if ins[0] is not None else outs[0]
    if known is None:
        return ins, outs
    order = swapped(params, len(known))
    data = None if ins[0] is None else tuple(ins[0][a] for a in order)
    out = merge(data, outs[0])
    assert out is not None
    return [tuple(out[a] for a in order)], [out]


def swapped(params: Params, rank: int) -> Shape:
    """The order of axes that SwapAxis gives."""
    one, other = (normal_axis(params[k], rank) for k in ("dim1", "dim2"))  # type: ignore[arg-type]
    order = list(range(rank))
    order[one], order[other] = other, one
    return tuple(order)


def squeeze(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Without the axes of extent 1 in `axis`, or without all of them; one axis stays."""
    data, axis = ins[0], params["axis"]
    if data is None:
        return ins, outs
    if axis is None:
        if 0 in data:
            return ins, outs
        return ins, [merge(tuple(d for d in data if d != 1) or (1,), outs[0])]
    assert isinstance(axis, tuple)
    axes = {normal_axis(a, len(data)) for a in axis}
    if len(axes) != len(axis):
        raise MXNetError(f"expected different axes, got {axis}")
    if any(data[a] > 1 for a in axes):
        raise MXNetError(f"expected extent 1 in the axes {axis} of {data}")
    return ins, [merge(tuple(d for i, d in enumerate(data) if i not in axes) or (1,), outs[0])]


def stack(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """A new axis at `axis`, as long as there are inputs; these agree. Known either way."""
    axis = params["axis"]
    assert isinstance(axis, int)
    known = merge_all(ins)
    if outs[0] is not None:
        axis = normal_axis(axis, len(outs[0]))
        known = merge(known, (*outs[0][:axis], *outs[0][axis + 1:]))
    if known is None:
        return ins, outs
    axis = normal_axis(axis, len(known) + 1)
    return [known] * len(ins), [(*known[:axis], len(ins), *known[axis:])]


def reverse(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape. Raises MXNetError for an axis that there is not; negative ones are none."""
    known = merge(ins[0], outs[0])
    axes = tuple(params.axis)
    if known is not None and any(not 0 <= a < len(known) for a in axes):
        raise MXNetError(f"expected axes from 0 to {len(known) - 1}, got {axes}")
    return [known], [known]


def reversed_axes(params: Params) -> list[int]:
    """The axes that reverse turns round: one that is named twice comes out as it was."""
    axes = list(params.axis)
    return sorted(a for a in set(axes) if axes.count(a) % 2)


def blocks_of(params: Params, data: Shape | None) -> int:
    """The block size of depth_to_space and space_to_depth. Raises MXNetError unless it is positive and data is 4-D."""
    size = params["block_size"]
    assert isinstance(size, int)
    if size < 1 or (data is not None and len(data) != 4):
        raise MXNetError(f"expected data of 4 dimensions and a block_size from 1 on, got {data} and {size}")
    return size


def depth_to_space(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(N, C, H, W) -> (N, C / block_size**2, H * block_size, W * block_size)."""
    data, size = ins[0], blocks_of(params, ins[0])
    if data is None:
        return ins, outs
    n, c, h, w = data
    if c % size**2:
        raise MXNetError(f"expected channels divisible by block_size squared, {size**2}, got {c}")
    return ins, [merge((n, c // size**2, h * size, w * size), outs[0])]


def space_to_depth(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(N, C, H, W) -> (N, C * block_size**2, H / block_size, W / block_size)."""
    data, size = ins[0], blocks_of(params, ins[0])
    if data is None:
        return ins, outs
    n, c, h, w = data
    if h % size or w % size:
        raise MXNetError(f"expected height and width divisible by block_size={size}, got {h} and {w}")
    return ins, [merge((n, c * size**2, h // size, w // size), outs[0])]


def pad(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Each axis longer by what pad_width has before and after it: none in the first two, of 4-D or 5-D data."""
    data, width, mode = ins[0], tuple(params.pad_width), params["mode"]
    if any(width[:4]) or len(width) not in (8, 10) or min(width) < 0:
        raise MXNetError(f"expected 8 or 10 numbers from 0 on in pad_width, the first four 0, got {width}")
    if data is None:
        return ins, outs
    if len(width) != 2 * len(data):
        raise MXNetError(f"expected two numbers for each axis of {data} in pad_width, got {width}")
    pairs = list(zip(width[::2], width[1::2], strict=True))
    if mode == "reflect" and any(d and max(pair) >= d for d, pair in zip(data, pairs, strict=True)):
        raise MXNetError(f"expected data longer than what is reflected, got {data} and pad_width {width}")
    return ins, [merge(tuple(d and d + sum(pair) for d, pair in zip(data, pairs, strict=True)), outs[0])]


def diagonal_extent(params: Params, data: Shape, first: int, second: int) -> int:
    """How many elements diagonal k over two axes has, 0 for unknown. Raises MXNetError when there are none."""
    k = params["k"]
    assert isinstance(k, int)
    rows, columns = data[first], data[second]
    if not rows or not columns:
        return 0
    extent = min(rows - max(0, -k), columns - max(0, k))
    if extent < 1:
        raise MXNetError(f"there is no diagonal {k} over the axes {first} and {second} of {data}")
    return extent


def diagonal_axes(params: Params, rank: int) -> tuple[int, int]:
    """The two axes of diag. Raises MXNetError when they are one."""
    first, second = (normal_axis(params[k], rank) for k in ("axis1", "axis2"))  # type: ignore[arg-type]
    if first == second:
        raise MXNetError(f"expected two different axes, got {first} twice")
    return first, second


def diag(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Of a vector the matrix that has it as diagonal k; else the diagonals over axis1 and axis2, as the last axis."""
    data, k = ins[0], params["k"]
    assert isinstance(k, int)
    if data is None:
        return ins, outs
    if len(data) == 1:
        side = data[0] and data[0] + abs(k)
        return ins, [merge((side, side), outs[0])]
    axes = diagonal_axes(params, len(data))
    rest = tuple(d for i, d in enumerate(data) if i not in axes)
    return ins, [merge((*rest, diagonal_extent(params, data, *axes)), outs[0])]


# -- like others, and facts about shapes

def broadcast_axis(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The axes `axis`, of extent 1, repeated to `size`."""
    data, axes, sizes = ins[0], tuple(params.axis), tuple(params.size)
    if len(axes) != len(sizes) or len(set(axes)) != len(axes):
        raise MXNetError(f"expected different axes and a size for each, got axis {axes} and size {sizes}")
    if data is None:
        return ins, outs
    out = list(data)
    for axis, size in zip(axes, sizes, strict=True):
        if not 0 <= axis < len(data) or data[axis] > 1:
            raise MXNetError(f"expected axes of extent 1, from 0 to {len(data) - 1}, got axis {axes} of {data}")
        out[axis] = size
    return ins, [merge(tuple(out), outs[0])]


def broadcast_like(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Axes of extent 1 of lhs repeated as rhs has them: all, or lhs_axes as rhs_axes of rhs."""
    lhs, rhs = ins
    left, right = params["lhs_axes"], params["rhs_axes"]
    if lhs is None or rhs is None:
        return ins, outs
    if left is None or right is None:
        if len(lhs) != len(rhs):
            raise MXNetError(f"expected shapes of one rank, or lhs_axes and rhs_axes, got {lhs} and {rhs}")
        left = right = tuple(range(len(lhs)))
    assert isinstance(left, tuple) and isinstance(right, tuple)
    if len(left) != len(right) or (not left and (lhs or rhs)):
        raise MXNetError(f"expected as many lhs_axes as rhs_axes, at least one, got {left} and {right}")
    out = list(lhs)
    for a, b in zip(left, right, strict=True):
        here, there = normal_axis(a, len(lhs)), normal_axis(b, len(rhs))
        if lhs[here] > 1 and rhs[there] not in (0, lhs[here]):
            raise MXNetError(f"axis {a} of lhs {lhs} cannot become {rhs[there]}: only an axis of extent 1 is repeated")
        out[here] = lhs[here] if lhs[here] > 1 else rhs[there] if lhs[here] else 0
    return ins, [merge(tuple(out), outs[0])]


def _part(params: Params, side: str, shape: Shape) -> tuple[int, int]:
    """The axes from SIDE_begin to SIDE_end of reshape_like. Raises MXNetError when these are none."""
    given = []
    for key, default in ((f"{side}_begin", 0), (f"{side}_end", len(shape))):
        value = params[key]
        place = default if value is None else value
        assert isinstance(place, int)
        given.append(place + len(shape) if place < 0 else place)
    begin, end = given
    if not 0 <= begin < end <= len(shape):
        raise MXNetError(f"expected {side}_begin before {side}_end within the {len(shape)} axes of {shape}, got "
                         f"{params[f'{side}_begin']} and {params[f'{side}_end']}")
    return begin, end


def reshape_like(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """lhs with its axes lhs_begin to lhs_end replaced by those of rhs from rhs_begin to rhs_end."""
    lhs, rhs = ins
    if lhs is None or rhs is None:
        return ins, outs
    begin, end = _part(params, "lhs", lhs)
    part = rhs[slice(*_part(params, "rhs", rhs))]
    if 0 not in (*lhs[begin:end], *part) and math.prod(lhs[begin:end]) != math.prod(part):
        raise MXNetError(f"cannot reshape {lhs[begin:end]} of lhs {lhs} to {part} of rhs {rhs}")
    return ins, [merge((*lhs[:begin], *part, *lhs[end:]), outs[0])]


def shape_array(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(rank,)."""
    return ins, [merge((0 if ins[0] is None else len(ins[0]),), outs[0])]


def size_array(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(1,)."""
    return ins, [merge((1,), outs[0])]


def index_axes(params: Params, rank: int) -> Shape:
    """The axes that index_array tells the index in."""
    axes = params["axes"]
    assert axes is None or isinstance(axes, tuple)
    return tuple(range(rank)) if axes is None else tuple(normal_axis(a, rank) for a in axes)


def index_array(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape and an axis more, of an index for each of `axes`."""
    data = ins[0]
    if data is None:
        return ins, outs
    return ins, [merge((*data, len(index_axes(params, len(data)))), outs[0])]


def arange_like(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape, or (its extent along `axis`,)."""
    data, axis = ins[0], params["axis"]
    if data is None:
        return ins, outs
    assert axis is None or isinstance(axis, int)
    shape = data if axis is None else (data[normal_axis(axis, len(data))],)
    return ins, [merge(shape, outs[0])]


# -- joining and splitting

def split_places(params: Params, extent: int) -> list[int]:
    """Where the parts of _split_v2 along an axis of `extent` begin, and the end of the last.

    `sections` parts, the first ones longer by 1 where they cannot be equal; else the parts begin at `indices`.
    """
    sections = params["sections"]
    assert isinstance(sections, int)
    if not sections:
        return [*params.indices, extent]
    length, longer = divmod(extent, sections)
    return [i * length + min(i, longer) for i in range(sections + 1)]


def split_v2(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The parts between `split_places`; with squeeze_axis parts of extent 1, without that axis.

    Backward: the other axes from a part. Raises MXNetError for parts without elements.
    """
    data, axis = ins[0], params["axis"]
    assert isinstance(axis, int)
    if data is None:
        return ins, outs
    axis = normal_axis(axis, len(data))
    if data[axis] == 0:
        lengths = [1 if params["squeeze_axis"] else 0] * len(outs)
    else:
        places = split_places(params, data[axis])
        lengths = [b - a for a, b in pairwise(places)]
        if places[0] != 0 or min(lengths) < 1:
            raise MXNetError(f"expected places that rise from 0 to below {data[axis]}, the extent of axis {axis}, got "
                             f"{tuple(places[:-1])}")
    if params["squeeze_axis"] and (set(lengths) != {1} or len(data) == 1):
        raise MXNetError(f"expected parts of extent 1 along one of several axes to squeeze, got {lengths} of {data}")
    known: Shape | None = (*data[:axis], *data[axis + 1:])
    for out in outs:
        if out is not None:
            known = merge(known, out if params["squeeze_axis"] else (*out[:axis], *out[axis + 1:]))
    assert known is not None
    before, after = known[:axis], known[axis:]
    parts: Shapes = [(*before, *(() if params["squeeze_axis"] else (n,)), *after) for n in lengths]
    return [(*before, data[axis], *after)], [merge(p, o) for p, o in zip(parts, outs, strict=True)]


def khatri_rao(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Matrices of one number of columns: as many rows as the product of theirs."""
    for shape in ins:
        if shape is not None and len(shape) != 2:
            raise MXNetError(f"expected matrices, got {shape}")
    known: list[Shape] = [s or (0, 0) for s in ins]
    (columns,) = merge_all(s[1:] for s in known) or (0,)
    return [(s[0], columns) for s in known], [merge((math.prod(s[0] for s in known), columns), outs[0])]
