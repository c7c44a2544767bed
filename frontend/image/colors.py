"""Augmenters of colours. Images are arrays (height, width, 3) of float32 in the order red, green, blue."""
from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from mxc import ndarray
from mxc.compiler.error import AssertedError
from mxc.compiler.ops.pictures import DIRECTIONS, LUMINANCE, VARIANCES
from mxc.image.augmenters import Augmenter, RandomOrderAug
from mxc.image.resizing import color_normalize
from mxc.ndarray import NDArray

GREY = (0.21, 0.72, 0.07)  # their shares in a grey, about as of Rec. 709
# From red, green and blue to brightness and two axes of colour (YIQ), and back.
TO_YIQ = np.array([LUMINANCE, (0.596, -0.274, -0.321), (0.211, -0.523, 0.311)])
FROM_YIQ = np.array([(1.0, 0.956, 0.621), (1.0, -0.272, -0.647), (1.0, -1.107, 1.705)])
MEAN, DEVIATION = (123.68, 116.28, 103.53), (58.395, 57.12, 57.375)  # of ImageNet's colours, from 0 to 255


class BrightnessJitterAug(Augmenter):
    """Multiplies colours by a factor between 1 - brightness and 1 + brightness."""

    def __init__(self, brightness: float):
        super().__init__(brightness=brightness)
        self.brightness = brightness

    def __call__(self, src: NDArray) -> NDArray:
        src *= 1.0 + random.uniform(-self.brightness, self.brightness)
        return src


class ContrastJitterAug(Augmenter):
    """Draws colours to, or from, the mean brightness, by a factor between 1 - contrast and 1 + contrast."""

    def __init__(self, contrast: float):
        super().__init__(contrast=contrast)
        self.contrast = contrast
        self.coef = ndarray.array([[LUMINANCE]])

    def __call__(self, src: NDArray) -> NDArray:
        alpha = 1.0 + random.uniform(-self.contrast, self.contrast)
        grey = (src * self.coef).sum() * (3.0 * (1.0 - alpha) / src.size)
        src *= alpha
        src += grey
        return src


class SaturationJitterAug(Augmenter):
    """Draws colours to, or from, the grey as bright, by a factor between 1 - saturation and 1 + saturation."""

    def __init__(self, saturation: float):
        super().__init__(saturation=saturation)
        self.saturation = saturation
        self.coef = ndarray.array([[LUMINANCE]])

    def __call__(self, src: NDArray) -> NDArray:
        alpha = 1.0 + random.uniform(-self.saturation, self.saturation)
        grey = ndarray.sum(src * self.coef, axis=2, keepdims=True) * (1.0 - alpha)
        src *= alpha
        src += grey
        return src


class HueJitterAug(Augmenter):
    """Turns hues by up to `hue` half circles either way, in the plane of YIQ's two axes of colour."""

    def __init__(self, hue: float):
        super().__init__(hue=hue)
        self.hue, self.tyiq, self.ityiq = hue, TO_YIQ, FROM_YIQ

    def __call__(self, src: NDArray) -> NDArray:
        angle = random.uniform(-self.hue, self.hue) * math.pi
        u, w = math.cos(angle), math.sin(angle)
        turn = self.ityiq @ np.array([[1.0, 0.0, 0.0], [0.0, u, -w], [0.0, w, u]]) @ self.tyiq
        return ndarray.dot(src, ndarray.array(turn.T))


class ColorJitterAug(RandomOrderAug):
    """Changes brightness, contrast and saturation in a random order; what is not above 0 stays."""

    def __init__(self, brightness: float, contrast: float, saturation: float):
        made: list[Augmenter] = []
        for kind, most in ((BrightnessJitterAug, brightness), (ContrastJitterAug, contrast),
                           (SaturationJitterAug, saturation)):
            if most > 0:
                made.append(kind(most))
        super().__init__(made)


class LightingAug(Augmenter):
    """Moves colours along the directions eigvec (columns), by eigval times normal numbers of `np.random`."""

    def __init__(self, alphastd: float, eigval: Any, eigvec: Any):
        super().__init__(alphastd=alphastd, eigval=eigval, eigvec=eigvec)
        self.alphastd, self.eigval, self.eigvec = alphastd, eigval, eigvec

    def __call__(self, src: NDArray) -> NDArray:
        alpha = np.random.normal(0, self.alphastd, size=(3,))
        src += ndarray.array(np.dot(self.eigvec * alpha, self.eigval))
        return src


class ColorNormalizeAug(Augmenter):
    """Subtracts a mean and divides by a deviation; each may be None."""

    def __init__(self, mean: Any, std: Any):
        super().__init__(mean=mean, std=std)
        self.mean, self.std = (numbers if numbers is None or isinstance(numbers, NDArray) else ndarray.array(numbers)
                               for numbers in (mean, std))

    def __call__(self, src: NDArray) -> NDArray:
        return color_normalize(src, self.mean, self.std)


class RandomGrayAug(Augmenter):
    """Makes the image grey with probability p; it keeps its three channels."""

    def __init__(self, p: float):
        super().__init__(p=p)
        self.p = p
        self.mat = ndarray.array([[share] * 3 for share in GREY])

    def __call__(self, src: NDArray) -> NDArray:
        return ndarray.dot(src, self.mat) if random.random() < self.p else src


def changes(brightness: float, contrast: float, saturation: float, hue: float) -> list[Augmenter]:
    """The augmenters of changes that are not 0."""
    made: list[Augmenter] = []
    if brightness or contrast or saturation:
        made.append(ColorJitterAug(brightness, contrast, saturation))
    if hue:
        made.append(HueJitterAug(hue))
    return made


def noise(pca_noise: float, rand_gray: float) -> list[Augmenter]:
    """The augmenters of colours' noise and of greys that are above 0."""
    made: list[Augmenter] = [LightingAug(pca_noise, np.array(VARIANCES), np.array(DIRECTIONS))] if pca_noise > 0 else []
    return [*made, RandomGrayAug(rand_gray)] if rand_gray > 0 else made


def normalization(mean: Any, std: Any, usual: Callable[[Any], Any] = ndarray.array) -> list[Augmenter]:
    """The augmenter that subtracts a mean and divides by a deviation, if there are any; True for ImageNet's, of which
    `usual` makes an array. Raises AssertionError for others than of 1 or 3 channels."""
    mean, std = _numbers("mean", mean, usual(MEAN)), _numbers("std", std, usual(DEVIATION))
    return [] if mean is None and std is None else [ColorNormalizeAug(mean, std)]


def _numbers(name: str, given: Any, usual: Any) -> Any:
    if given is True:
        return usual
    if given is not None and (not np.ndim(given) or len(given) not in (1, 3)):
        raise AssertedError(f"{name} is True, or a number for each of 1 or 3 channels; got {given!r}")
    return given
