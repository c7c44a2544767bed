"""The base of augmenters of images with boxes."""
from __future__ import annotations

import json
from typing import Any

import numpy as np

from mxc.image.augmenters import Augmenter
from mxc.ndarray import NDArray


class DetAugmenter:
    """The base of augmenters of an image and its boxes: `augmenter(image, label)` gives both.

    label: a row for each box: its class, its left, top, right and bottom as shares of the image's size, and more.
    kwargs: what it was made with, for `dumps`.
    """

    def __init__(self, **kwargs: Any):
        self._kwargs = Augmenter(**kwargs)._kwargs

    def dumps(self) -> Any:
        """Its name and arguments as JSON."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __call__(self, src: NDArray, label: np.ndarray) -> tuple[NDArray, np.ndarray]:
        raise NotImplementedError("an augmenter has a method __call__(image, label), which gives both")
