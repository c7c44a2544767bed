"""Blocks that change images: to tensors, normalised, resized, cropped, rotated, recoloured.

Images are arrays (height, width, channels), as decoding gives them; ToTensor makes them (channels, height, width),
which Normalize and rotations take.
"""
from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from mxc import image
from mxc.base import numeric_types
from mxc.compiler.error import ArgumentError, ArgumentTypeError
from mxc.gluon.block import Block
from mxc.gluon.hybrid_block import HybridBlock
from mxc.gluon.nn import HybridSequential, Sequential
from mxc.ndarray import NDArray
from mxc.runtime.elsewhere import elsewhere

__getattr__, _names = elsewhere(__name__, {"mxc.util": "is_np_array"})
__all__ = [
    "Block", "Cast", "CenterCrop", "Compose", "CropResize", "HybridBlock", "HybridSequential", "Normalize",
    "RandomApply", "RandomBrightness", "RandomColorJitter", "RandomContrast", "RandomFlipLeftRight",
    "RandomFlipTopBottom", "RandomHue", "RandomLighting", "RandomResizedCrop", "RandomRotation", "RandomSaturation",
    "Resize", "Rotate", "Sequential", "ToTensor", "image", "np", "numeric_types", "random", *_names]

Size = int | tuple[int, int]  # width and height, or a number for both


class Compose(Sequential):
    """Blocks one after the other; hybrid ones that follow each other stand together in a HybridSequential."""

    def __init__(self, transforms: Sequence[Block]):
        super().__init__()
        run: list[HybridBlock] = []
        for each in [*transforms, None]:
            if isinstance(each, HybridBlock):
                run.append(each)
                continue
            if len(run) > 1:
                group = HybridSequential()
                group.add(*run)
                self.add(group)
            else:
                self.add(*run)
            run = []
            if each is not None:
                self.add(each)


class Cast(HybridBlock):
    """The image in another dtype."""

    def __init__(self, dtype: Any = "float32"):
        super().__init__()
        self._dtype = dtype

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.cast(x, self._dtype)


class RandomApply(Sequential):
    """A block, or several one after the other, with probability p; else the image as it is."""

    def __init__(self, transforms: Any, p: float = 0.5):
        super().__init__()
        self.transforms = Compose(transforms) if isinstance(transforms, (list, tuple)) else transforms
        self.p = p

    def forward(self, x: Any) -> Any:
        return x if self.p < random.random() else self.transforms(x)


class ToTensor(HybridBlock):
    """An image, or several, as float32 between 0 and 1 with channels before height and width."""

    def __init__(self) -> None:
        super().__init__()

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.to_tensor(x)


class Normalize(HybridBlock):
    """(x - mean) / std of a tensor (channels, height, width), or several; numbers for all channels or for each."""

    def __init__(self, mean: float | Sequence[float] = 0.0, std: float | Sequence[float] = 1.0):
        super().__init__()
        self._mean, self._std = mean, std

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.normalize(x, self._mean, self._std)


class Rotate(Block):
    """A tensor (channels, height, width) of float32 rotated by a fixed angle; see mx.image.imrotate."""

    def __init__(self, rotation_degrees: float, zoom_in: bool = False, zoom_out: bool = False):
        super().__init__()
        self._args = (rotation_degrees, zoom_in, zoom_out)

    def forward(self, x: NDArray) -> NDArray:
        return image.imrotate(_float32(x), *self._args)


class RandomRotation(Block):
    """A tensor (channels, height, width) of float32 rotated by an angle between the limits, with a probability.

    Raises ValueError for limits that are not ordered and for what is no probability.
    """

    def __init__(self, angle_limits: tuple[float, float], zoom_in: bool = False, zoom_out: bool = False,
                 rotate_with_proba: float = 1.0):
        super().__init__()
        lower, upper = angle_limits
        if lower >= upper:
            raise ArgumentError(f"angle_limits are a lower and an upper one, got {angle_limits}")
        if not 0 <= rotate_with_proba <= 1:
            raise ArgumentError(f"rotate_with_proba is a probability, from 0 to 1, got {rotate_with_proba}")
        self._args, self._rotate_with_proba = (angle_limits, zoom_in, zoom_out), rotate_with_proba

    def forward(self, x: NDArray) -> NDArray:
        if np.random.random() > self._rotate_with_proba:
            return x
        return image.random_rotate(_float32(x), *self._args)


def _float32(x: NDArray) -> NDArray:
    if np.dtype(x.dtype) != np.float32:
        raise ArgumentTypeError(f"images of float32 alone are rotated, got {np.dtype(x.dtype)}; rotate after ToTensor")
    return x


def _pair(size: Size) -> tuple[int, int]:
    return (size, size) if isinstance(size, numeric_types) else size  # type: ignore[return-value]


class RandomResizedCrop(Block):
    """A random part of the image, resized to `size`. scale: its share of the image, least and most; ratio: its width
    over height, least and most. interpolation: 0 to 4, 9 or 10; see mx.image."""

    def __init__(self, size: Size, scale: float | tuple[float, float] = (0.08, 1.0),
                 ratio: tuple[float, float] = (3.0 / 4.0, 4.0 / 3.0), interpolation: int = 1):
        super().__init__()
        self._args = (_pair(size), scale, ratio, interpolation)

    def forward(self, x: NDArray) -> NDArray:
        return image.random_size_crop(x, *self._args)[0]


class CropResize(HybridBlock):
    """The part of an image, or of several, that begins at column x and row y, resized to `size` where that is given."""

    def __init__(self, x: int, y: int, width: int, height: int, size: Size | None = None,
                 interpolation: int | None = None):
        super().__init__()
        self._part = (x, y, width, height)
        self._size, self._interpolation = size, 1 if interpolation is None else interpolation

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        out = F.image.crop(x, *self._part)
        return F.image.resize(out, self._size, False, self._interpolation) if self._size else out


class CenterCrop(Block):
    """The centre of an image, of `size`; a smaller image's is enlarged."""

    def __init__(self, size: Size, interpolation: int = 1):
        super().__init__()
        self._args = (_pair(size), interpolation)

    def forward(self, x: NDArray) -> NDArray:
        return image.center_crop(x, *self._args)[0]


class Resize(HybridBlock):
    """An image, or several, in another size. keep_ratio: a number is the shorter side's, else both sides'."""

    def __init__(self, size: Size, keep_ratio: bool = False, interpolation: int = 1):
        super().__init__()
        self._args = (size, keep_ratio, interpolation)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.resize(x, *self._args)


class RandomFlipLeftRight(HybridBlock):
    """Left for right every second time, by chance."""

    def __init__(self) -> None:
        super().__init__()

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_flip_left_right(x)


class RandomFlipTopBottom(HybridBlock):
    """Top for bottom every second time, by chance."""

    def __init__(self) -> None:
        super().__init__()

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_flip_top_bottom(x)


class _RandomChange(HybridBlock):
    """A change of colours by a factor between 1 - width, which is not below 0, and 1 + width."""

    _operator = ""

    def __init__(self, width: float):
        super().__init__()
        self._range = (max(0, 1 - width), 1 + width)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return getattr(F.image, self._operator)(x, *self._range)


class RandomBrightness(_RandomChange):
    """Colours times a factor between 1 - brightness and 1 + brightness."""

    _operator = "random_brightness"

    def __init__(self, brightness: float):
        super().__init__(brightness)


class RandomContrast(_RandomChange):
    """Colours drawn to, or from, the mean brightness by a factor between 1 - contrast and 1 + contrast."""

    _operator = "random_contrast"

    def __init__(self, contrast: float):
        super().__init__(contrast)


class RandomSaturation(_RandomChange):
    """Colours drawn to, or from, a grey by a factor between 1 - saturation and 1 + saturation."""

    _operator = "random_saturation"

    def __init__(self, saturation: float):
        super().__init__(saturation)


class RandomHue(_RandomChange):
    """Hues turned by up to `hue` circles either way."""

    _operator = "random_hue"

    def __init__(self, hue: float):
        super().__init__(hue)


class RandomColorJitter(HybridBlock):
    """Brightness, contrast, saturation and hue changed by chance, in a random order; 0 leaves one as it is."""

    def __init__(self, brightness: float = 0, contrast: float = 0, saturation: float = 0, hue: float = 0):
        super().__init__()
        self._args = (brightness, contrast, saturation, hue)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_color_jitter(x, *self._args)


class RandomLighting(HybridBlock):
    """Colours moved by normal numbers of deviation alpha along the directions in which ImageNet's vary most."""

    def __init__(self, alpha: float):
        super().__init__()
        self._alpha = alpha

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_lighting(x, self._alpha)
