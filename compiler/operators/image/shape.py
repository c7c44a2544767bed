"""Shapes and dtypes of operators on pictures. A picture is (height, width, channels), several have a first axis."""
from __future__ import annotations

from collections.abc import Sequence

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.dtypes import Dtypes
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.pictures import DIRECTIONS, VARIANCES, with_short_side
from mxc.compiler.ops.shapes import Shape, Shapes, merge, merge_all

# The directions in which colours of ImageNet's pictures vary most, a column each, times how much they vary.
LIGHTING = tuple(tuple(v * d for v, d in zip(VARIANCES, row, strict=True)) for row in DIRECTIONS)


def pictures(data: Shape, ranks: Sequence[int], channels: Sequence[int] = (), axis: int = -1) -> Shape:
    """`data` itself. Raises MXNetError where it has not so many axes, or has other numbers of channels along `axis`."""
    if len(data) not in ranks:
        raise MXNetError(f"expected an image of {' or '.join(map(str, ranks))} axes, got the shape {data}")
    if channels and data[axis] not in (0, *channels):
        raise MXNetError(f"expected an image of {' or '.join(map(str, channels))} channels, which axis {axis} counts, "
                         f"got the shape {data}")
    return data


def to_tensor(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Channels go before height and width."""
    if ins[0] is None:
        return ins, outs
    data = pictures(ins[0], (3, 4))
    return ins, [merge((*data[:-3], data[-1], *data[-3:-1]), outs[0])]


def normalized(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(channels, height, width), or several; a mean and a deviation for each channel, or for all."""
    data = merge_all([*ins, *outs])
    if data is None:
        return ins, outs
    channels = pictures(data, (3, 4), (1, 3), -3)[-3]
    for name in ("mean", "std"):
        if channels and len(params[name]) not in (1, channels):  # type: ignore[arg-type]
            raise MXNetError(f"expected {name} of 1 or {channels} numbers, as many as channels, got {params[name]}")
    return [data], [data]


def one_picture(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """One picture of 1 or 3 channels, which keeps its shape."""
    data = merge_all([*ins, *outs])
    return [None if data is None else pictures(data, (3,), (1, 3))], [data]


def lit(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """As `one_picture`; alpha is a number for each of the three directions in which colours vary most."""
    if len(params.alpha) < 3:
        raise MXNetError(f"expected alpha as 3 numbers, got {params.alpha}")
    return one_picture(params, ins, outs)


def cropped(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The size that is given, which lies inside of the picture."""
    if ins[0] is None:
        return ins, outs
    data = pictures(ins[0], (3, 4), (1, 3))
    place, size = (params.y, params.x), (params.height, params.width)
    for name, begin, count, extent in zip(("height", "width"), place, size, data[-3:-1], strict=True):
        if count < 1 or begin < 0 or (extent and begin + count > extent):
            raise MXNetError(f"expected a part inside of the image, whose {name} is {extent}, got {count} from "
                             f"{begin} on")
    return ins, [merge((*data[:-3], *size, data[-1]), outs[0])]


def new_size(params: Params, height: int, width: int) -> tuple[int, int]:
    """Height and width that `_image_resize` gives to a picture: one number for both, or for its shorter side with
    keep_ratio; or width and height."""
    size = params.size
    assert isinstance(size, tuple)
    if len(size) not in (1, 2) or min(size) < 1:
        raise MXNetError(f"expected size as a number, or width and height, above 0, got {size}")
    if len(size) == 2:
        return size[1], size[0]
    if not params.keep_ratio:
        return size[0], size[0]
    return with_short_side(size[0], height, width)


def resized(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Channels stay, and so does how many pictures there are."""
    if ins[0] is None or 0 in ins[0][-3:-1]:
        return ins, outs
    data = pictures(ins[0], (3, 4))
    return ins, [merge((*data[:-3], *new_size(params, *data[-3:-1]), data[-1]), outs[0])]


def resized_to(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The height and width that are given."""
    if ins[0] is None:
        return ins, outs
    return ins, [merge((params.h, params.w, pictures(ins[0], (3,))[2]), outs[0])]


def framed(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Height and width grow by the border."""
    if ins[0] is None or 0 in ins[0]:
        return ins, outs
    sides = (params.top, params.bot, params.left, params.right)
    if min(sides) < 0:
        raise MXNetError(f"expected a border of no fewer than 0 pixels on each side, got {sides}")
    height, width, channels = pictures(ins[0], (3,))
    return ins, [merge((height + params.top + params.bot, width + params.left + params.right, channels), outs[0])]


def jittered(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The picture, and 8 random numbers."""
    return [ins[0], (8,)], [ins[0]]


def float32_always(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The output is float32, whatever the data is."""
    return ins, ["float32"] * len(outs)
