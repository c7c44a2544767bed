"""Functions of one image, an array (height, width, channels): decoding, resizing, cropping, normalising.

`interp` says how an image is resized: 0 nearest pixel, 1 bilinear, 2 cubic, 3 area, 4 Lanczos, 9 cubic to enlarge and
area to shrink, 10 one of the first five by chance. Sizes are (width, height). Draws are Python's, of `random`.
"""
from __future__ import annotations

import math
import random
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from mxc.base import numeric_types
from mxc.compiler.error import ArgumentError, ArgumentTypeError, AssertedError, MXNetError
from mxc.compiler.ops.pictures import interpolation, with_short_side
from mxc.ndarray import NDArray, decoding
from mxc.ndarray import functions as operators

Size = tuple[int, int]
Box = tuple[int, int, int, int]  # x, y, width, height
TRIES = 10  # random parts that random_size_crop draws before it takes the centre


def imread(filename: str, *args: Any, **kwargs: Any) -> NDArray:
    """The pixels of an image file or URL, uint8 (height, width, channels).

    flag: 1 for colours, 0 for grey. to_rgb: in the order red, green, blue, else blue, green, red. out: where they are
    written. Raises MXNetError for a file that cannot be read or is no image.
    """
    return decoding._cvimread(filename, *args, **kwargs)


def imdecode(buf: Any, *args: Any, **kwargs: Any) -> NDArray:
    """The pixels of an encoded image. buf: bytes, a bytearray, or an array of uint8. Arguments as of `imread`.

    Raises ValueError for another kind of buf, MXNetError for bytes that are no image.
    """
    if isinstance(buf, NDArray):
        return decoding._cvimdecode(buf, *args, **kwargs)
    if not isinstance(buf, (bytes, bytearray, memoryview, np.ndarray)):
        raise ArgumentError(f"imdecode: buf must be bytes, a bytearray or an array of uint8, got {type(buf).__name__}")
    return _decoded(buf, *args, **kwargs)


def _decoded(buf: Any, flag: int = 1, to_rgb: bool = True, out: NDArray | None = None) -> NDArray:
    return decoding.decoded(buf, flag, to_rgb, out)


def imresize(src: NDArray, w: int, h: int, *args: Any, **kwargs: Any) -> NDArray:
    """An image of uint8, float32 or float64 in another size. interp: bilinear by default, 0 to 4 alone."""
    return operators.find("_cvimresize")(_image(src, "imresize"), w, h, *args, **kwargs)  # type: ignore[return-value]


def copyMakeBorder(src: NDArray, *args: Any, **kwargs: Any) -> NDArray:
    """An image with a border: top, bot, left, right say how many pixels wide.

    type: 0 of one colour (values, or value for all channels), 1 the nearest pixel, 2 reflected with the outermost
    pixel, 3 wrapped, 4 reflected without it.
    """
    return operators.find("_cvcopyMakeBorder")(_image(src, "copyMakeBorder"), *args, **kwargs)  # type: ignore[return-value]


def _image(src: Any, function: str) -> NDArray:
    if not isinstance(src, NDArray):
        raise AssertedError(f"{function}: src must be an NDArray (height, width, channels), got {type(src).__name__}")
    return src


def scale_down(src_size: Size, size: Size) -> Size:
    """`size`, made smaller with its proportions kept until it fits into `src_size`."""
    (width, height), (w, h) = src_size, size
    if height < h:
        w, h = float(w * height) / h, height  # type: ignore[assignment]
    if width < w:
        w, h = width, float(h * width) / w  # type: ignore[assignment]
    return int(w), int(h)


def _get_interp_method(interp: int, sizes: Sequence[int] = ()) -> int:
    """One of the codes 0 to 4 for a code. sizes: height and width before, height and width after.

    Raises ValueError for a code that there is not.
    """
    if interp not in (0, 1, 2, 3, 4, 9, 10):
        raise ArgumentError(f"Unknown interp method {interp}: expected 0 to 4, 9 or 10")
    if interp == 9 and not sizes:
        return 2
    if interp == 9 and len(sizes) != 4:
        raise AssertedError(f"expected two heights and widths, got {sizes}")
    return interpolation(interp, sizes[:2], sizes[2:], random.randint)


def resized(src: NDArray, width: int, height: int, interp: int) -> NDArray:
    """The image in that size, by any of the codes."""
    return imresize(src, width, height, interp=_get_interp_method(interp, (*src.shape[:2], height, width)))


def resize_short(src: NDArray, size: int, interp: int = 2) -> NDArray:
    """The image with its shorter side `size` long, its proportions kept."""
    height, width = with_short_side(size, *src.shape[:2])
    return resized(src, width, height, interp)


def fixed_crop(src: NDArray, x0: int, y0: int, w: int, h: int, size: Size | None = None, interp: int = 2) -> NDArray:
    """The part that begins at column x0 and row y0; resized to `size` where that is another one."""
    height, width = src.shape[:2]
    if not (0 <= x0 < width and 0 <= y0 < height and w > 0 and h > 0):
        raise MXNetError(f"expected a part of an image of {width} x {height} pixels, got {w} x {h} at ({x0}, {y0})")
    out = src[y0:y0 + h, x0:x0 + w]
    return out if size is None or (w, h) == tuple(size) else resized(out, *size, interp)


def random_crop(src: NDArray, size: Size, interp: int = 2) -> tuple[NDArray, Box]:
    """A part in a random place, of `size` or, in smaller images, of its proportions and enlarged; and where it was."""
    height, width, _ = src.shape
    w, h = scale_down((width, height), size)
    x, y = random.randint(0, width - w), random.randint(0, height - h)
    return fixed_crop(src, x, y, w, h, size, interp), (x, y, w, h)


def center_crop(src: NDArray, size: Size, interp: int = 2) -> tuple[NDArray, Box]:
    """As `random_crop`, of the centre."""
    height, width, _ = src.shape
    w, h = scale_down((width, height), size)
    x, y = int((width - w) / 2), int((height - h) / 2)
    return fixed_crop(src, x, y, w, h, size, interp), (x, y, w, h)


def random_size_crop(src: NDArray, size: Size, area: float | tuple[float, float], ratio: tuple[float, float],
                     interp: int = 2, **kwargs: Any) -> tuple[NDArray, Box]:
    """A random part, resized to `size`; and where it was.

    area: what share of the image it has at least, or at least and at most. ratio: the least and the largest width over
    height. Where no part fits in ten tries it is the centre. Raises AssertionError for other arguments.
    """
    if "min_area" in kwargs:
        warnings.warn("random_size_crop: `area` has taken the place of `min_area`", DeprecationWarning, stacklevel=2)
        area = kwargs.pop("min_area")
    if kwargs:
        raise AssertedError(f"random_size_crop: unexpected keyword arguments {', '.join(kwargs)}")
    least, most = (area, 1.0) if isinstance(area, numeric_types) else area  # type: ignore[misc]
    height, width, _ = src.shape
    for _ in range(TRIES):
        pixels = random.uniform(least, most) * height * width
        proportion = math.exp(random.uniform(math.log(ratio[0]), math.log(ratio[1])))
        w, h = round(math.sqrt(pixels * proportion)), round(math.sqrt(pixels / proportion))
        if w <= width and h <= height:
            x, y = random.randint(0, width - w), random.randint(0, height - h)
            return fixed_crop(src, x, y, w, h, size, interp), (x, y, w, h)
    return center_crop(src, size, interp)


def color_normalize(src: NDArray, mean: NDArray | None, std: NDArray | None = None) -> NDArray:
    """The image minus a mean and over a deviation, arrays that broadcast to it; each may be None.

    Raises TypeError for an image whose dtype is not theirs.
    """
    for name, numbers in (("mean", mean), ("std", std)):
        if isinstance(numbers, NDArray) and numbers.dtype != src.dtype:
            raise ArgumentTypeError(f"color_normalize: {name} is of {np.dtype(numbers.dtype)}, the image of "
                                    f"{np.dtype(src.dtype)}; expected the same, as src.astype gives it")
    if mean is not None:
        src = src - mean
    return src if std is None else src / std
