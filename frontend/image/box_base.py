"""The base of augmenters of images with boxes."""
from __future__ import annotations

import json
from typing import Any

import numpy as np

from mxc.compiler.error import MXNetError
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


def boxes_in(label: Any) -> np.ndarray:
    """The boxes of an image's labels, as rows, without those that have no area. Raises RuntimeError where there is
    none."""
    raw = (label.asnumpy() if isinstance(label, NDArray) else np.asarray(label)).ravel()
    if raw.size < 7:
        raise MXNetError(f"labels of boxes have 7 numbers or more, got {raw.size}: {raw.tolist()}")
    head, width = int(raw[0]), int(raw[1])
    if head < 2 or width < 5 or (raw.size - head) % width:
        raise MXNetError(f"an image has {raw.size} numbers in its label, of which {head} stand before boxes of "
                         f"{width}; expected 2 or more, and boxes of 5 or more that come out even")
    boxes = raw[head:].reshape(-1, width)
    boxes = boxes[(boxes[:, 3] > boxes[:, 1]) & (boxes[:, 4] > boxes[:, 2])]
    if not len(boxes):
        raise MXNetError("an image has no box with an area among its labels")
    return boxes
