"""Shapes of slices, splits, joins and borders."""
from __future__ import annotations

from itertools import pairwise

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shape, Shapes, merge, merge_all, normal_axis


def concat(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """All shapes agree but along `dim`, where the output's size is the sum; one unknown size there follows from it."""
    known: Shape | None = None
    dim = params["dim"]
    assert isinstance(dim, int)
    for shape in (*ins, *outs):
        if shape is not None:
            axis = normal_axis(dim, len(shape))
            known = merge(known, (*shape[:axis], 0, *shape[axis + 1:]))
    if known is None:
        return ins, outs
    axis = normal_axis(dim, len(known))
    sizes = [0 if s is None else s[axis] for s in ins]
    total = 0 if outs[0] is None else outs[0][axis]
    if all(sizes):
        total = sum(sizes)
    elif total and sizes.count(0) == 1:
        rest = total - sum(sizes)
        if rest < 1:
            raise MXNetError(f"expected inputs of {total} together along axis {axis}, got {sum(sizes)} without one of "
                             "them")
        sizes[sizes.index(0)] = rest
    made: Shapes = [(*known[:axis], size, *known[axis + 1:]) for size in sizes]
    return made, [(*known[:axis], total, *known[axis + 1:])]


def slice_channel(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Equal parts of the data along `axis`; with `squeeze_axis` parts of size 1, without that axis.

    Backward: the data from a part.
    """
    data = ins[0]
    count, axis = params["num_outputs"], params["axis"]
    assert isinstance(count, int) and isinstance(axis, int)
    if data is None:
        return ins, outs
    axis = normal_axis(axis, len(data))
    if data[axis] % count:
        raise MXNetError(f"expected axis {axis} to be divisible by num_outputs={count}, got {data[axis]}")
    if params["squeeze_axis"]:
        if data[axis] not in (0, count):
            raise MXNetError(f"expected axis {axis} of size num_outputs={count} to squeeze, got {data[axis]}")
        part: Shape | None = (*data[:axis], *data[axis + 1:])
    else:
        part = (*data[:axis], data[axis] // count, *data[axis + 1:])
    for out in outs:
        part = merge(part, out)
    assert part is not None
    if params["squeeze_axis"]:
        data = merge(data, (*part[:axis], count, *part[axis:]))
    else:
        data = merge(data, (*part[:axis], part[axis] * count, *part[axis + 1:]))
    return [data], [part] * len(outs)


def slice_axis(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Elements begin to end of `axis`; negative ones count from its end, end None is the end."""
    data = ins[0]
    axis = params["axis"]
    assert isinstance(axis, int)
    if data is None:
        return ins, outs
    axis = normal_axis(axis, len(data))
    if data[axis] == 0:
        return ins, [merge(data, outs[0])]
    begin, end = slice_bounds(params, data[axis])
    return ins, [merge((*data[:axis], end - begin, *data[axis + 1:]), outs[0])]


def slice_bounds(params: Params, size: int) -> tuple[int, int]:
    """(begin, end) of slice_axis along an axis of `size`, counted from the front. Raises MXNetError for empty ones."""
    begin, end = params["begin"], params["end"]
    assert isinstance(begin, int) and (end is None or isinstance(end, int))
    first = begin + size if begin < 0 else begin
    last = size if end is None else end + size if end < 0 else end
    if not 0 <= first < last <= size:
        raise MXNetError(f"expected begin before end within an axis of {size}, got begin {begin} and end {end}")
    return first, last


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


def stack(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The inputs have one shape, and the output a new axis at `axis`, one place for each input. Either shape gives the
    other."""
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
    """For a vector, the matrix that has it as diagonal k; else the diagonals over axis1 and axis2, as the last axis."""
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
