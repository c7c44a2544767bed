"""Shapes of operators that resample images."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.operators.convolution.shape import deconvolution
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shape, Shapes, merge, merge_all
from mxc.compiler.ops.table import get

_ROUNDED: dict[object, Callable[[int], int]] = {
    "to_even_down": lambda n: n - n % 2, "to_even_up": lambda n: n + n % 2,
    "to_odd_down": lambda n: n - 1 + n % 2, "to_odd_up": lambda n: n + 1 - n % 2,
}


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

    With `bilinear` it is the shape of its Deconvolution; the weight is (channels, 1, kernel, kernel).
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


def _times(size: int, scale: object) -> int:
    """`size` times `scale` as MXNet computes it: a product of float32 numbers, rounded down."""
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
