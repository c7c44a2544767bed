"""Augmenters that take a random part of an image with boxes, or give it a random border. Draws are Python's, of
`random`, in MXNet's order."""
from __future__ import annotations

import math
import random
import warnings
from typing import Any

import numpy as np

from mxc.base import numeric_types
from mxc.compiler.error import AssertedError
from mxc.image.box_base import DetAugmenter
from mxc.image.resizing import copyMakeBorder, fixed_crop
from mxc.ndarray import NDArray

Range = tuple[float, float]
Placed = tuple[int, int, int, int, np.ndarray]  # x, y, width, height, and the boxes that are there
LEAST_PIXELS = 2  # a part of fewer pixels, or an object of as few, is none
ISOLATED = 16  # OpenCV's code of a border of one colour, whatever lies around the image in memory


def _areas(boxes: np.ndarray) -> np.ndarray:
    """The areas of rows (left, top, right, bottom); 0 for those turned over."""
    return np.maximum(0, boxes[:, 3] - boxes[:, 1]) * np.maximum(0, boxes[:, 2] - boxes[:, 0])


def _range(name: str, given: Any) -> Range:
    """Both ends of a range; a number is both. Raises AssertionError for anything else."""
    if isinstance(given, (tuple, list)):
        return given  # type: ignore[return-value]
    if not isinstance(given, numeric_types):
        raise AssertedError(f"{name} is a number, or the least and the largest, got {given!r}")
    return given, given  # type: ignore[return-value]


class _RandomPart(DetAugmenter):
    """What both have: ranges of proportions and of areas. least_area: what the largest area must be above. said: the
    arguments by name.

    It does nothing, with a warning, where a range is empty.
    """

    def __init__(self, least_area: float, said: dict[str, Any]):
        for name in ("aspect_ratio_range", "area_range"):
            said[name] = _range(name, said[name])
        super().__init__(**said)
        self.aspect_ratio_range, self.area_range = said["aspect_ratio_range"], said["area_range"]
        self.max_attempts, self.enabled = said["max_attempts"], False
        (low, high), (narrow, wide) = self.area_range, self.aspect_ratio_range
        if high <= least_area or low > high:
            warnings.warn(f"{type(self).__name__} does nothing: area_range is {self.area_range}", stacklevel=3)
        elif not 0 < narrow <= wide:
            warnings.warn(f"{type(self).__name__} does nothing: aspect_ratio_range is {self.aspect_ratio_range}",
                          stacklevel=3)
        else:
            self.enabled = True

    def _heights(self, height: int, width: int) -> tuple[float, int, int]:
        """Draws a proportion; it, and the least and the largest height that areas and it allow."""
        ratio = random.uniform(*self.aspect_ratio_range)
        least, most = (round(math.sqrt(share * height * width / ratio)) for share in self.area_range)
        return ratio, least, most


class DetRandomCropAug(_RandomPart):
    """Takes a random part, and the boxes in it.

    min_object_covered: the share of each box that is touched which the part must have. aspect_ratio_range: width over
    height. area_range: the share of the image. min_eject_coverage: boxes of which it has less are left out.
    max_attempts: parts that are tried; where none will do the image stays.
    """

    def __init__(self, min_object_covered: float = 0.1, aspect_ratio_range: Any = (0.75, 1.33),
                 area_range: Any = (0.05, 1.0), min_eject_coverage: float = 0.3, max_attempts: int = 50):
        super().__init__(0, {
            "min_object_covered": min_object_covered, "aspect_ratio_range": aspect_ratio_range,
            "area_range": area_range, "min_eject_coverage": min_eject_coverage, "max_attempts": max_attempts})
        self.min_object_covered, self.min_eject_coverage = min_object_covered, min_eject_coverage

    def __call__(self, src: NDArray, label: np.ndarray) -> tuple[NDArray, np.ndarray]:
        height, width = src.shape[:2]
        for _ in range(self.max_attempts if self.enabled else 0):
            found = self._try(label, height, width)
            if found is not None:
                return fixed_crop(src, *found[:4]), found[4]
        return src, label

    def _try(self, label: np.ndarray, height: int, width: int) -> Placed | None:
        """A part by chance, if it will do."""
        ratio, h, most = self._heights(height, width)
        if round(most * ratio) > width:
            most = int((width + 0.4999999) / ratio)  # the largest whose width, rounded, is still in the image
        most = min(most, height)
        h = random.randint(h, most) if h < most else most
        low, high = (share * height * width for share in self.area_range)
        if round(h * ratio) * h < low:
            h += 1
        if round(h * ratio) * h > high:
            h -= 1
        w = round(h * ratio)
        if not (low <= w * h <= high and 0 <= w <= width and 0 <= h <= height):
            return None
        y, x = random.randint(0, height - h), random.randint(0, width - w)
        if w * h < LEAST_PIXELS or not self._covers(label, np.array([x, y, x + w, y + h]), height, width):
            return None
        kept = self._boxes_in(label, np.array([x, y, w, h]) / (width, height, width, height))
        return (x, y, w, h, kept) if len(kept) else None

    def _covers(self, label: np.ndarray, part: np.ndarray, height: int, width: int) -> bool:
        """Whether the part, in pixels, has enough of each box that it touches, and touches one."""
        areas = _areas(label[:, 1:])
        boxes, areas = label[areas * width * height > LEAST_PIXELS, 1:5], areas[areas * width * height > LEAST_PIXELS]
        left, top, right, bottom = part / (width, height, width, height)
        common = np.stack([np.maximum(boxes[:, 0], left), np.maximum(boxes[:, 1], top),
                           np.minimum(boxes[:, 2], right), np.minimum(boxes[:, 3], bottom)], 1)
        shares = _areas(common) / areas
        shares = shares[shares > 0]
        return shares.size > 0 and bool(shares.min() > self.min_object_covered)

    def _boxes_in(self, label: np.ndarray, part: np.ndarray) -> np.ndarray:
        """The boxes in a part (left, top, width, height, as shares), as shares of it, without those that it has too
        little of."""
        x, y, w, h = part
        out = label.copy()
        out[:, (1, 3)] = (out[:, (1, 3)] - x) / w
        out[:, (2, 4)] = (out[:, (2, 4)] - y) / h
        out[:, 1:5] = np.clip(out[:, 1:5], 0, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = _areas(out[:, 1:]) * w * h / _areas(label[:, 1:])
        return out[(out[:, 3] > out[:, 1]) & (out[:, 4] > out[:, 2]) & (shares > self.min_eject_coverage)]


class DetRandomPadAug(_RandomPart):
    """Puts the image in a random place of a larger one of the colour pad_val, a number for each channel or for all.

    aspect_ratio_range: width over height of that one. area_range: how much larger it is. max_attempts: as of
    DetRandomCropAug.
    """

    def __init__(self, aspect_ratio_range: Any = (0.75, 1.33), area_range: Any = (1.0, 3.0), max_attempts: int = 50,
                 pad_val: Any = (128, 128, 128)):
        self.pad_val = tuple(pad_val) if isinstance(pad_val, (tuple, list)) else (pad_val,) * 3
        super().__init__(1.0, {"aspect_ratio_range": aspect_ratio_range, "area_range": area_range,
                               "max_attempts": max_attempts, "pad_val": pad_val})

    def __call__(self, src: NDArray, label: np.ndarray) -> tuple[NDArray, np.ndarray]:
        height, width = src.shape[:2]
        for _ in range(self.max_attempts if self.enabled else 0):
            found = self._try(label, height, width)
            if found is not None:
                x, y, w, h, label = found
                border = (y, h - y - height, x, w - x - width)
                return copyMakeBorder(src, *border, ISOLATED, values=self.pad_val), label
        return src, label

    def _try(self, label: np.ndarray, height: int, width: int) -> Placed | None:
        """A place by chance, if the border is wide enough."""
        ratio, h, most = self._heights(height, width)
        if round(h * ratio) < width:
            h = int((width + 0.499999) / ratio)
        h = min(max(h, height), most)
        if h < most:
            h = random.randint(h, most)
        w = round(h * ratio)
        if h - height < LEAST_PIXELS or w - width < LEAST_PIXELS:
            return None
        y, x = random.randint(0, h - height), random.randint(0, w - width)
        out = label.copy()
        out[:, (1, 3)] = (out[:, (1, 3)] * width + x) / w
        out[:, (2, 4)] = (out[:, (2, 4)] * height + y) / h
        return x, y, w, h, out
