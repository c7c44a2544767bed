"""How ImageDetRecordIter changes images and their boxes: colours, left for right, borders, parts, sizes."""
from __future__ import annotations

import math
import random
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from mxc.compiler.error import ArgumentError
from mxc.compiler.ops.pictures import with_short_side
from mxc.compiler.system import opencv
from mxc.io.image_changes import HUES

# The arguments and their defaults, as MXNet documents them; of samplers there is one number for all, or one for each.
NUMBERS: dict[str, Any] = {
    "resize": -1, "rand_crop_prob": 0.0, "num_crop_sampler": 1, "emit_overlap_thresh": 0.3, "rand_pad_prob": 0.0,
    "max_pad_scale": 1.0, "max_random_hue": 0, "random_hue_prob": 0.0, "max_random_saturation": 0,
    "random_saturation_prob": 0.0, "max_random_illumination": 0, "random_illumination_prob": 0.0,
    "max_random_contrast": 0.0, "random_contrast_prob": 0.0, "rand_mirror_prob": 0.0, "fill_value": 127,
    "inter_method": 1}
SAMPLERS: dict[str, tuple[float, ...]] = {
    "min_crop_scales": (0.0,), "max_crop_scales": (1.0,), "min_crop_aspect_ratios": (1.0,),
    "max_crop_aspect_ratios": (1.0,), "min_crop_overlaps": (0.0,), "max_crop_overlaps": (1.0,),
    "min_crop_sample_coverages": (0.0,), "max_crop_sample_coverages": (1.0,), "min_crop_object_coverages": (0.0,),
    "max_crop_object_coverages": (1.0,), "max_crop_trials": (25,)}
CHOICES = {"crop_emit_mode": ("center", "overlap"), "resize_mode": ("force", "shrink", "fit")}


class BoxChanges:
    """What is done to each image and its boxes, in this order: resize, colours, left for right, a border or a part, and
    the size of batches.

    options: all of NUMBERS, SAMPLERS and CHOICES by name. size: height and width of the results. Raises ValueError for
    samplers that are not as many as num_crop_sampler says.
    """

    def __init__(self, options: Mapping[str, Any], size: tuple[int, int]):
        o: Any = SimpleNamespace(**options)
        self.o = o
        self.height, self.width = size
        columns = {}
        for name in SAMPLERS:
            given = options[name]
            if len(given) not in (1, o.num_crop_sampler):
                raise ArgumentError(f"{name} has {len(given)} numbers; expected 1 or {o.num_crop_sampler}, as "
                                    "num_crop_sampler says")
            columns[name] = given * o.num_crop_sampler if len(given) == 1 else given
        self._samplers = [SimpleNamespace(**dict(zip(columns, row, strict=True)))
                          for row in zip(*columns.values(), strict=True)]

    def __call__(self, image: np.ndarray, boxes: np.ndarray, draw: random.Random) -> tuple[np.ndarray, np.ndarray]:
        """The image, and rows (class, left, top, right, bottom, ...) of its boxes as shares of its size."""
        o = self.o
        if o.resize > 0:
            height, width = with_short_side(o.resize, *image.shape[:2])
            image = self._resized(image, width, height)
        image = self._colored(image, draw)
        if draw.random() < o.rand_mirror_prob:
            image, boxes = image[:, ::-1], boxes.copy()
            boxes[:, (1, 3)] = 1 - boxes[:, (3, 1)]
        if o.max_pad_scale > 1 and draw.random() < o.rand_pad_prob:
            image, boxes = self._padded(image, boxes, draw)
        if draw.random() < o.rand_crop_prob:
            image, boxes = self._cropped(image, boxes, draw)
        return self._sized(image), boxes

    def _resized(self, image: np.ndarray, width: int, height: int) -> np.ndarray:
        method = self.o.inter_method
        if method == 9:
            method = 2 if width > image.shape[1] and height > image.shape[0] else 3
        return image if image.shape[:2] == (height, width) else opencv.resized(image, width, height, method)

    def _sized(self, image: np.ndarray) -> np.ndarray:
        """force: in the size of batches; fit: with its proportions; shrink: the same where it is larger."""
        height, width = image.shape[:2]
        if self.o.resize_mode == "force":
            return self._resized(image, self.width, self.height)
        share = min(self.height / height, self.width / width)
        if share >= 1 and self.o.resize_mode == "shrink":
            return image
        return self._resized(image, min(self.width, int(width * share)), min(self.height, int(height * share)))

    def _colored(self, image: np.ndarray, draw: random.Random) -> np.ndarray:
        """Hue, lightness and saturation moved, and the contrast multiplied, each with its own probability."""
        o = self.o
        moves = [int(draw.uniform(-most, most)) if draw.random() < chance else 0 for most, chance in (
            (o.max_random_hue, o.random_hue_prob), (o.max_random_illumination, o.random_illumination_prob),
            (o.max_random_saturation, o.random_saturation_prob))]
        if any(moves) and image.shape[2] == 3:
            image = opencv.shifted(image, moves, (HUES, 255, 255))
        if draw.random() < o.random_contrast_prob:
            factor = 1 + draw.uniform(-o.max_random_contrast, o.max_random_contrast)
            image = np.clip(image * np.float32(factor), 0, 255).astype(np.uint8)
        return image

    def _padded(self, image: np.ndarray, boxes: np.ndarray, draw: random.Random) -> tuple[np.ndarray, np.ndarray]:
        """The image in a random place of a larger one."""
        height, width = image.shape[:2]
        scale = draw.uniform(1, self.o.max_pad_scale)
        rows, columns = int(height * scale), int(width * scale)
        y, x = draw.randint(0, rows - height), draw.randint(0, columns - width)
        boxes = boxes.copy()
        boxes[:, (1, 3)] = (boxes[:, (1, 3)] * width + x) / columns
        boxes[:, (2, 4)] = (boxes[:, (2, 4)] * height + y) / rows
        sides = (y, rows - height - y, x, columns - width - x)
        return opencv.framed(image, sides, 0, (self.o.fill_value,) * 4), boxes

    def _cropped(self, image: np.ndarray, boxes: np.ndarray, draw: random.Random) -> tuple[np.ndarray, np.ndarray]:
        """A part that one of the samplers, in a random order, finds; the whole where none does."""
        height, width = image.shape[:2]
        for sampler in draw.sample(self._samplers, len(self._samplers)):
            for _ in range(int(sampler.max_crop_trials)):
                scale = draw.uniform(sampler.min_crop_scales, sampler.max_crop_scales)
                ratio = draw.uniform(max(sampler.min_crop_aspect_ratios, scale * scale),
                                     min(sampler.max_crop_aspect_ratios, 1 / max(scale * scale, 1e-6)))
                w, h = min(1.0, scale * math.sqrt(ratio)), min(1.0, scale / math.sqrt(max(ratio, 1e-6)))
                x, y = draw.uniform(0, 1 - w), draw.uniform(0, 1 - h)
                left, top = int(x * width), int(y * height)
                columns, rows = int(w * width), int(h * height)
                x, y, w, h = left / width, top / height, columns / width, rows / height  # of whole pixels
                if not columns or not rows or not _fits(boxes, (x, y, x + w, y + h), sampler):
                    continue
                kept = self._boxes_in(boxes, (x, y, w, h))
                if len(kept):
                    return image[top:top + rows, left:left + columns], kept
        return image, boxes

    def _boxes_in(self, boxes: np.ndarray, part: tuple[float, float, float, float]) -> np.ndarray:
        """The boxes whose centre is in a part, or of which it has enough, as shares of it."""
        x, y, w, h = part
        if self.o.crop_emit_mode == "center":
            across, down = (boxes[:, 1] + boxes[:, 3]) / 2, (boxes[:, 2] + boxes[:, 4]) / 2
            stays = (across >= x) & (across <= x + w) & (down >= y) & (down <= y + h)
        else:
            areas = (boxes[:, 3] - boxes[:, 1]) * (boxes[:, 4] - boxes[:, 2])
            stays = _common(boxes, (x, y, x + w, y + h)) > self.o.emit_overlap_thresh * areas
        kept = boxes[stays].copy()
        kept[:, (1, 3)] = np.clip((kept[:, (1, 3)] - x) / w, 0, 1)
        kept[:, (2, 4)] = np.clip((kept[:, (2, 4)] - y) / h, 0, 1)
        return kept


def _common(boxes: np.ndarray, part: tuple[float, float, float, float]) -> np.ndarray:
    """The area that each box has in common with a part (left, top, right, bottom)."""
    left, top, right, bottom = part
    width = np.minimum(boxes[:, 3], right) - np.maximum(boxes[:, 1], left)
    height = np.minimum(boxes[:, 4], bottom) - np.maximum(boxes[:, 2], top)
    return np.maximum(width, 0) * np.maximum(height, 0)


def _fits(boxes: np.ndarray, part: tuple[float, float, float, float], sampler: Any) -> bool:
    """Whether a part has, with one of the boxes, what a sampler asks for: the share of both together that they have in
    common, the share of the part, and the share of the box."""
    common = _common(boxes, part)
    own = (part[2] - part[0]) * (part[3] - part[1])
    areas = np.maximum((boxes[:, 3] - boxes[:, 1]) * (boxes[:, 4] - boxes[:, 2]), 1e-12)
    fine = np.ones(len(boxes), bool)
    for name, shares in (("overlaps", common / (own + areas - common)), ("sample_coverages", common / own),
                         ("object_coverages", common / areas)):
        low, high = getattr(sampler, f"min_crop_{name}"), getattr(sampler, f"max_crop_{name}")
        if low > 0 or high < 1:
            fine &= (shares >= low) & (shares <= high)
    return bool(fine.any())
