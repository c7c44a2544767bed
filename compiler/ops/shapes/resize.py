"""Shape rules of operators that resample images."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.shapes.basic import Shape, Shapes, merge
from mxc.compiler.ops.table import Params


def image(data: Shape) -> Shape:
    """`data` itself. Raises MXNetError when it is not (batch, channels, height, width)."""
    if len(data) != 4:
        raise MXNetError(f"expected data of 4 axes (batch, channels, height, width), got {data}")
    return data


def adaptive_size(params: Params) -> Shape:
    """Height and width of an adaptive pooling's output: those given, a single number for both, (1, 1) for any other
    count of numbers."""
    given = params["output_size"]
    assert isinstance(given, tuple)
    return given * 2 if len(given) == 1 else given if len(given) == 2 else (1, 1)


def adaptive_pooling(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Batch and channels stay, space has the parameter's size."""
    if ins[0] is None:
        return ins, outs
    return ins, [merge((*image(ins[0])[:2], *adaptive_size(params)), outs[0])]


_ROUNDED: dict[object, Callable[[int], int]] = {
    "to_even_down": lambda n: n - n % 2, "to_even_up": lambda n: n + n % 2,
    "to_odd_down": lambda n: n - 1 + n % 2, "to_odd_up": lambda n: n + 1 - n % 2,
}


def _times(size: int, scale: object) -> int:
    """As MXNet counts: a product of float32, rounded down."""
    assert isinstance(scale, float)
    found = np.float32(size) * np.float32(scale)
    if not np.isfinite(found):
        raise MXNetError(f"expected finite scales, got {scale}")
    return int(found)


def resized(params: Params, size: int, which: str) -> int:
    """The output's height or width (`which`) for the input's; 0 where that is 0, not known."""
    mode, scale = params["mode"], params["scale_" + which]
    if mode == "size" and params["scale_height"] is None and params["scale_width"] is None:
        given = params[which]
        assert isinstance(given, int)
        return given
    if mode in ("size", "odd_scale") and scale is None:
        raise MXNetError(f"expected scale_height and scale_width for mode {mode}, or neither of them; "
                         f"scale_{which} is missing")
    if not size:
        return 0
    if mode in _ROUNDED:
        found = _ROUNDED[mode](size)
    elif mode == "odd_scale" and size % 2:
        found = _times(size - 1, scale) + 1
    else:
        found = _times(size, scale)
    if found < 1:
        raise MXNetError(f"expected a {which} of at least 1 after resizing {size} by mode {mode}, got {found}")
    return found


def bilinear_resize(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Batch and channels stay; space has the size that is given, or follows from the data's, or is that of `like`."""
    if ins[0] is None:
        return ins, outs
    data = image(ins[0])
    if params["mode"] != "like":
        space = (resized(params, data[2], "height"), resized(params, data[3], "width"))
    elif ins[1] is None:
        return ins, outs
    else:
        like = image(ins[1])
        space = (like[2], like[3])
    return ins, [merge((*data[:2], *space), outs[0])]
