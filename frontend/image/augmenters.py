"""Augmenters: objects that change an image, (height, width, channels), each time otherwise. Those of size and place,
and what is made of several; `colors.py` has those of colours. Draws are Python's, of `random`, as MXNet's are."""
from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from mxc import ndarray
from mxc.compiler.error import AssertedError
from mxc.image import resizing
from mxc.image.resizing import Size
from mxc.ndarray import NDArray


class Augmenter:
    """The base of augmenters: `augmenter(image)` gives an image. kwargs: what it was made with, for `dumps`."""

    def __init__(self, **kwargs: Any):
        self._kwargs = {name: _listed(value) for name, value in kwargs.items()}

    def dumps(self) -> Any:
        """Its name and arguments as JSON."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __call__(self, src: NDArray) -> NDArray:
        raise NotImplementedError("an augmenter has a method __call__(image), which gives an image")


def _listed(value: Any) -> Any:
    if isinstance(value, NDArray):
        value = value.asnumpy()
    return value.tolist() if isinstance(value, np.ndarray) else value


class SequentialAug(Augmenter):
    """Augmenters one after the other."""

    def __init__(self, ts: Sequence[Augmenter]):
        super().__init__()
        self.ts = ts

    def dumps(self) -> Any:
        """Its name, and what its augmenters say."""
        return [type(self).__name__.lower(), [each.dumps() for each in self.ts]]

    def __call__(self, src: NDArray) -> NDArray:
        for each in self.ts:
            src = each(src)
        return src


class RandomOrderAug(Augmenter):
    """Augmenters one after the other, in another order each time."""

    def __init__(self, ts: Sequence[Augmenter]):
        super().__init__()
        self.ts: Any = ts

    def dumps(self) -> Any:
        """Its name, and what its augmenters say."""
        return [type(self).__name__.lower(), [each.dumps() for each in self.ts]]

    def __call__(self, src: NDArray) -> NDArray:
        random.shuffle(self.ts)
        for each in self.ts:
            src = each(src)
        return src


class ResizeAug(Augmenter):
    """Makes the shorter side `size` long."""

    def __init__(self, size: int, interp: int = 2):
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp

    def __call__(self, src: NDArray) -> NDArray:
        return resizing.resize_short(src, self.size, self.interp)


class ForceResizeAug(Augmenter):
    """Resizes to (width, height), whatever the proportions."""

    def __init__(self, size: Size, interp: int = 2):
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp

    def __call__(self, src: NDArray) -> NDArray:
        return resizing.resized(src, *self.size, self.interp)


class RandomCropAug(Augmenter):
    """Takes a part of (width, height) in a random place."""

    def __init__(self, size: Size, interp: int = 2):
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp

    def __call__(self, src: NDArray) -> NDArray:
        return resizing.random_crop(src, self.size, self.interp)[0]


class RandomSizedCropAug(Augmenter):
    """Takes a random part and resizes it; see `random_size_crop`."""

    def __init__(self, size: Size, area: float | tuple[float, float], ratio: tuple[float, float], interp: int = 2,
                 **kwargs: Any):
        super().__init__(size=size, area=area, ratio=ratio, interp=interp)
        self.size, self.ratio, self.interp = size, ratio, interp
        self.area = kwargs.pop("min_area", area)
        if kwargs:
            raise AssertedError(f"RandomSizedCropAug: unexpected keyword arguments {', '.join(kwargs)}")

    def __call__(self, src: NDArray) -> NDArray:
        return resizing.random_size_crop(src, self.size, self.area, self.ratio, self.interp)[0]


class CenterCropAug(Augmenter):
    """Takes the centre of (width, height)."""

    def __init__(self, size: Size, interp: int = 2):
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp

    def __call__(self, src: NDArray) -> NDArray:
        return resizing.center_crop(src, self.size, self.interp)[0]


class HorizontalFlipAug(Augmenter):
    """Changes left for right with probability p."""

    def __init__(self, p: float):
        super().__init__(p=p)
        self.p = p

    def __call__(self, src: NDArray) -> NDArray:
        return ndarray.flip(src, axis=1) if random.random() < self.p else src


class CastAug(Augmenter):
    """Gives the image in another dtype."""

    def __init__(self, typ: str = "float32"):
        super().__init__(type=typ)
        self.typ = typ

    def __call__(self, src: NDArray) -> NDArray:
        return src.astype(self.typ)
