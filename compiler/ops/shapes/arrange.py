"""Shape rules of operators that move elements: Reshape, Flatten, transpose, expand_dims, Concat, SliceChannel, ..."""
from __future__ import annotations

import math

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.shapes.basic import Shape, Shapes, merge, normal_axis
from mxc.compiler.ops.table import Params


def reshaped(codes: Shape, data: Shape, reverse: bool) -> Shape:
    """The shape that Reshape's `shape` asks for; unknown sizes are 0.

    A positive number takes its place and consumes one axis; 0 copies an axis; -1 is what remains (once); -2 copies all
    axes left; -3 multiplies the next two; -4 splits the next one into the two numbers that follow, one of them may be
    -1. With `reverse` codes and axes are read from the right. Raises MXNetError when the codes do not fit the data.
    """
    source = list(reversed(data)) if reverse else list(data)
    pending = list(reversed(codes)) if reverse else list(codes)
    out: list[int] = []
    position = 0
    open_at: int | None = None

    def take(code: int) -> int:
        nonlocal position
        if position >= len(source):
            raise MXNetError(f"code {code} of shape {codes} finds no axis left in {data}")
        position += 1
        return source[position - 1]

    while pending:
        code = pending.pop(0)
        if code > 0:
            out.append(code)
            position += 1
        elif code == 0:
            out.append(take(0))
        elif code == -1:
            if open_at is not None:
                raise MXNetError(f"expected one -1 in shape, got {codes}")
            open_at = len(out)
            out.append(1)
            position += 1
        elif code == -2:
            out += source[position:]
            position = len(source)
        elif code == -3:
            out.append(take(-3) * take(-3))
        elif code == -4:
            if len(pending) < 2:
                raise MXNetError(f"expected two numbers after -4, got shape {codes}")
            whole, first, second = take(-4), pending.pop(0), pending.pop(0)
            if first == -1 and second == -1:
                raise MXNetError(f"expected at most one -1 after -4, got shape {codes}")
            first = whole // second if first == -1 else first
            second = whole // first if second == -1 and first else second if second != -1 else 0
            if whole and first * second != whole:
                raise MXNetError(f"code -4 cannot split {whole} into {first} and {second}")
            out += [first, second]
        else:
            raise MXNetError(f"expected codes from -4 in shape, got {code}")
    if open_at is not None:
        known = math.prod(out)
        out[open_at] = math.prod(data) // known if known and 0 not in data else 0
    return tuple(reversed(out)) if reverse else tuple(out)


def _target(params: Params, data: Shape) -> Shape:
    """The shape that the old parameters `target_shape` and `keep_highest` ask for: one 0 is what remains."""
    target = params["target_shape"]
    assert isinstance(target, tuple)
    out = list(target)
    if params["keep_highest"]:
        out[0] = data[0]
    start = 1 if params["keep_highest"] else 0
    open_axes = [i for i in range(start, len(out)) if out[i] == 0]
    if len(open_axes) == 1 and 0 not in data:
        rest = math.prod(d for i, d in enumerate(out) if i != open_axes[0])
        out[open_axes[0]] = math.prod(data) // rest if rest else 0
    return tuple(out)


def _completed(partial: Shape, whole: Shape) -> Shape:
    """`partial` with its only unknown size filled in, so that it has as many elements as `whole`."""
    unknown = [i for i, d in enumerate(partial) if d == 0]
    if len(unknown) != 1 or 0 in whole:
        return partial
    rest = math.prod(d for d in partial if d)
    return tuple(math.prod(whole) // rest if d == 0 else d for d in partial)


def reshape(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """What `reshaped` (or the old `target_shape`) says; one unknown size of the data follows from the output."""
    data, out = ins[0], outs[0]
    codes = params["shape"]
    assert isinstance(codes, tuple)
    if data is None:
        return ins, outs
    if codes:
        out = merge(reshaped(codes, data, bool(params["reverse"])), out)
    elif params["target_shape"]:
        out = merge(_target(params, data), out)
    if out is None:
        return ins, outs
    out, data = _completed(out, data), _completed(data, out)
    if 0 not in data and math.prod(data) != math.prod(out):  # 0 in out: more in the codes than in the data
        raise MXNetError(f"cannot reshape {data} of {math.prod(data)} elements to {out} of {math.prod(out)}: use 0 or "
                         "-1 for sizes that follow the data (such as the batch, which is split between devices)")
    return [data], [out]


def flatten(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(N, everything else)."""
    data = ins[0]
    if data is None:
        return ins, outs
    return ins, [merge((data[0], math.prod(data[1:])), outs[0])]


def transpose(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Axis i of the output is axis axes[i] of the data; without `axes` all are reversed. Known either way."""
    data, out = ins[0], outs[0]
    axes = params["axes"]
    assert isinstance(axes, tuple)
    known = data if data is not None else out
    if known is None:
        return ins, outs
    axes = axes or tuple(reversed(range(len(known))))
    if sorted(axes) != list(range(len(known))):
        raise MXNetError(f"expected axes that are an order of 0 to {len(known) - 1}, got {axes}")
    if data is not None:
        out = merge(tuple(data[a] for a in axes), out)
    assert out is not None
    back = [0] * len(axes)
    for position, axis in enumerate(axes):
        back[axis] = out[position]
    return [merge(tuple(back), data)], [out]


def expand_dims(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """A new axis of size 1 at position `axis` of the output. Known either way."""
    data, out = ins[0], outs[0]
    axis = params["axis"]
    assert isinstance(axis, int)
    if data is not None:
        axis = normal_axis(axis, len(data) + 1)
        out = merge((*data[:axis], 1, *data[axis:]), out)
    if out is None:
        return ins, outs
    axis = normal_axis(axis, len(out))
    return [merge((*out[:axis], *out[axis + 1:]), data)], [out]


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


def broadcast_target(params: Params, data: Shape) -> Shape:
    """The shape that broadcast_to asks for, 0 taken from `data`. Raises MXNetError where an axis cannot be repeated."""
    target = tuple(params.shape)
    if len(target) != len(data):
        raise MXNetError(f"shape {target} has {len(target)} axes; data has shape {data}")
    out = tuple(t or d for t, d in zip(target, data, strict=True))
    for axis, (t, d) in enumerate(zip(out, data, strict=True)):
        if d not in (0, 1, t):
            raise MXNetError(f"axis {axis} of data {data} cannot become {t}: only an axis of extent 1 is repeated")
    return out


def broadcast_to(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Axes of extent 1 repeated to `shape`; 0 there keeps the input's extent."""
    data = ins[0]
    if data is None:
        return ins, outs
    return ins, [merge(broadcast_target(params, data), outs[0])]
