"""Pictures as inputs of a model: decoded whole, and resized by one rule, so that `mxc run`, `--calibrate` and services
such as examples/serve.py give a model the same numbers for the same picture."""
from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mxc.compiler.error import MXNetError
from mxc.runtime.picture_heads import is_cut_off

if TYPE_CHECKING:
    import numpy as np

COLOURS = 1, 3  # channels of a picture: grey, or red, green and blue
LAYOUTS = {"NCHW": 1, "NHWC": 3}  # the axis of the channels
CUT_OFF = "the picture is cut off: its end is missing"
_BEST = 9  # of mx.image's ways to resize the one that depends on whether it enlarges or shrinks


def channel_axis(shape: Sequence[int], layout: str | None = None) -> int | None:
    """The axis of the channels in an input of that shape, (N, C, H, W) or (N, H, W, C), C of 3, or 1 for grey; None
    where it is no picture's. layout: NCHW or NHWC, where it is known."""
    found = [axis for name, axis in LAYOUTS.items() if layout in (None, name)]
    return next((axis for axis in found if len(shape) == 4 and shape[axis] in COLOURS), None)


def decoded(content: bytes, channels: int) -> np.ndarray:
    """The pixels of an encoded picture, uint8 (H, W, channels): red, green and blue, or grey.

    Raises MXNetError for bytes that are no picture, for a JPEG or PNG that is cut off (of which `mx.image.imdecode`
    gives, as MXNet does, what is there), and without OpenCV.
    """
    from mxc.compiler.system import opencv

    if is_cut_off(content):
        raise MXNetError(CUT_OFF)
    pixels = opencv.decoded(content, int(channels == 3), to_rgb=True)
    return pixels.reshape(*pixels.shape[:2], channels)


def resized(picture: np.ndarray, height: int, width: int) -> np.ndarray:
    """A picture (H, W, C) stretched to another size: by areas where both sides shrink, by cubic interpolation where
    both grow, else by linear interpolation.

    Raises MXNetError for a dtype other than uint8, uint16, float32 and float64, and without OpenCV.
    """
    from mxc.compiler.ops.pictures import interpolation
    from mxc.compiler.system import opencv

    way = interpolation(_BEST, picture.shape, (height, width), random.randint)
    return opencv.resized(picture, width, height, way)
