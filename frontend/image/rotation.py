"""Rotation of images, arrays (channels, height, width) of float32 or several of them."""
from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np

from mxc import ndarray
from mxc.compiler.error import ArgumentError, ArgumentTypeError
from mxc.ndarray import NDArray


def imrotate(src: NDArray, rotation_degrees: Any, zoom_in: bool = False, zoom_out: bool = False) -> NDArray:
    """The image rotated around its centre, with zeros where nothing comes to lie.

    src: (channels, height, width), or several. rotation_degrees: a number, or of several images an array with one each.
    zoom_in: enlarge until no zeros are seen; zoom_out: shrink until the whole image is seen. Raises ValueError and
    TypeError for arguments that do not fit.
    """
    if zoom_in and zoom_out:
        raise ArgumentError("`zoom_in` and `zoom_out` cannot be both True")
    if np.dtype(src.dtype) != np.float32:
        raise ArgumentTypeError(f"imrotate: only images of float32 are rotated, got {np.dtype(src.dtype)}")
    if src.ndim == 3:
        if not isinstance(rotation_degrees, Number):
            raise ArgumentTypeError(f"imrotate: the angle of a single image is a number, got {rotation_degrees!r}")
        return imrotate(src.expand_dims(0), rotation_degrees, zoom_in, zoom_out)[0]
    if src.ndim != 4:
        raise ArgumentError(f"imrotate: an image has 3 axes and several have 4, got the shape {src.shape}")
    if isinstance(rotation_degrees, NDArray):
        rotation_degrees = rotation_degrees.asnumpy()
    angles = np.asarray(rotation_degrees, np.float32)
    angles = np.full(len(src), angles) if angles.ndim == 0 else angles.ravel()
    if len(angles) != len(src):
        raise ArgumentError(f"imrotate: expected an angle for each of {len(src)} images, got {len(angles)}")
    grid = _grid(angles * np.float32(np.pi / 180), src.shape[2:], int(zoom_out) - int(zoom_in))
    return ndarray.BilinearSampler(src, ndarray.array(grid, ctx=src.context))


def _grid(angles: np.ndarray, size: Sequence[int], zoom: int) -> np.ndarray:
    """Where each pixel of the results is taken from, (count, 2, height, width), x before y, the image from -1 to 1.

    size: height and width. zoom: 1 to shrink, -1 to enlarge, 0 for neither.
    """
    height, width = size
    middle_x, middle_y = (width - 1) / 2, (height - 1) / 2
    x = np.arange(width, dtype=np.float32) - np.float32(middle_x)
    y = (np.arange(height, dtype=np.float32) - np.float32(middle_y))[:, None]
    angle = angles[:, None, None]
    across = (x * np.cos(angle) - y * np.sin(angle)) / np.float32(max(middle_x, 0.5))
    down = (x * np.sin(angle) + y * np.cos(angle)) / np.float32(max(middle_y, 0.5))
    return np.stack([across, down], 1) * _scale(angles, height, width, zoom)[:, None, None, None]


def _scale(angles: np.ndarray, height: int, width: int, zoom: int) -> np.ndarray:
    """How much larger than itself the part is that each result shows."""
    if not zoom:
        return np.ones_like(angles)
    diagonal, corner, turned = np.hypot(height, width), np.arctan(height / width), np.abs(angles)
    extents = []
    for function, extent in ((np.cos, width), (np.sin, height)):
        reach = np.maximum(*(np.abs(diagonal * function(corner + sign * turned)) for sign in (1, -1)))
        extents.append(reach / extent)
    return (np.maximum(*extents) if zoom > 0 else 1 / np.maximum(*extents)).astype(np.float32)


def random_rotate(src: NDArray, angle_limits: tuple[float, float], zoom_in: bool = False,
                  zoom_out: bool = False) -> NDArray:
    """As `imrotate`, by an angle between the limits that `np.random` draws; of several images by one for each."""
    if src.ndim == 3:
        return imrotate(src, np.random.uniform(*angle_limits), zoom_in, zoom_out)
    return imrotate(src, np.random.uniform(*angle_limits, size=len(src)), zoom_in, zoom_out)
