"""Shapes of operators that rearrange or repeat elements."""
from __future__ import annotations

import math

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shape, Shapes, merge, normal_axis


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
    if 0 not in data and math.prod(data) != math.prod(out):  # `out` has a 0 where the codes ask for more than the data.
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
    """Axis i of the output is axis axes[i] of the data; without `axes` all are reversed. Either shape gives the other.
    """
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
    """A new axis of size 1 at position `axis` of the output. Either shape gives the other."""
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


def _spread(found: tuple[int, ...], rank: int) -> Shape:
    """`found` with ones before it, up to `rank` axes."""
    return (1,) * (rank - len(found)) + tuple(found)


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
    """Each element `repeats` times along `axis`; without an axis, all elements in a row are repeated."""
    data, times, axis = ins[0], params["repeats"], params["axis"]
    assert isinstance(times, int)
    if data is None:
        return ins, outs
    if axis is None:
        return ins, [merge((times * math.prod(data),), outs[0])]
    assert isinstance(axis, int)
    axis = normal_axis(axis, len(data))
    return ins, [merge((*data[:axis], data[axis] * times, *data[axis + 1:]), outs[0])]


def swap_axis(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Axes dim1 and dim2 in each other's place. Either shape gives the other."""
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


def reverse(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape. Raises MXNetError for an axis that does not exist; negative ones are refused too."""
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
