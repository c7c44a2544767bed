"""Augmenters of images with boxes: those of images alone, flips, one of several by chance, and the usual list."""
from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from mxc import ndarray
from mxc.compiler.error import ArgumentError, ArgumentTypeError, AssertedError
from mxc.image import colors
from mxc.image.augmenters import Augmenter, CastAug, ForceResizeAug, ResizeAug
from mxc.image.box_base import DetAugmenter
from mxc.image.boxes import DetRandomCropAug, DetRandomPadAug
from mxc.ndarray import NDArray


class DetBorrowAug(DetAugmenter):
    """An augmenter of images alone, which leaves the boxes as they are. Raises TypeError for what is none."""

    def __init__(self, augmenter: Augmenter):
        if not isinstance(augmenter, Augmenter):
            raise ArgumentTypeError(f"DetBorrowAug takes an Augmenter, got {type(augmenter).__name__}")
        super().__init__(augmenter=augmenter.dumps())
        self.augmenter = augmenter

    def dumps(self) -> Any:
        """Its name, and what its augmenter says."""
        return [type(self).__name__.lower(), self.augmenter.dumps()]

    def __call__(self, src: NDArray, label: np.ndarray) -> tuple[NDArray, np.ndarray]:
        return self.augmenter(src), label


class DetRandomSelectAug(DetAugmenter):
    """One of several augmenters by chance, or none with probability skip_prob. Raises ValueError for what is no
    DetAugmenter."""

    def __init__(self, aug_list: Any, skip_prob: float = 0):
        super().__init__(skip_prob=skip_prob)
        self.aug_list: Any = aug_list if isinstance(aug_list, (list, tuple)) else [aug_list]
        for each in self.aug_list:
            if not isinstance(each, DetAugmenter):
                raise ArgumentError(f"DetRandomSelectAug takes DetAugmenters, got {type(each).__name__}")
        self.skip_prob = skip_prob if self.aug_list else 1

    def dumps(self) -> Any:
        """Its name, and what its augmenters say."""
        return [type(self).__name__.lower(), [each.dumps() for each in self.aug_list]]

    def __call__(self, src: NDArray, label: np.ndarray) -> tuple[NDArray, np.ndarray]:
        if random.random() < self.skip_prob:
            return src, label
        random.shuffle(self.aug_list)
        return self.aug_list[0](src, label)


class DetHorizontalFlipAug(DetAugmenter):
    """Changes left for right with probability p."""

    def __init__(self, p: float):
        super().__init__(p=p)
        self.p = p

    def __call__(self, src: NDArray, label: np.ndarray) -> tuple[NDArray, np.ndarray]:
        if random.random() >= self.p:
            return src, label
        label[:, (1, 3)] = 1.0 - label[:, (3, 1)]
        return ndarray.flip(src, axis=1), label


def CreateMultiRandCropAugmenter(min_object_covered: Any = 0.1, aspect_ratio_range: Any = (0.75, 1.33),
                                 area_range: Any = (0.05, 1.0), min_eject_coverage: Any = 0.3, max_attempts: Any = 50,
                                 skip_prob: float = 0) -> DetRandomSelectAug:
    """One of several DetRandomCropAug by chance. Each argument is one for all, or a list of one for each.

    Raises AssertionError for lists of different lengths.
    """
    given = [each if isinstance(each, list) else [each] for each in
             (min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts)]
    count = max(map(len, given))
    if any(len(each) not in (1, count) for each in given):
        raise AssertedError(f"expected lists of {count} arguments, or one for all, got {given}")
    columns = [each * count if len(each) == 1 else each for each in given]
    return DetRandomSelectAug([DetRandomCropAug(*row) for row in zip(*columns, strict=True)], skip_prob)


# many parameters: MXNet's signature
def CreateDetAugmenter(data_shape: Sequence[int], resize: int = 0, rand_crop: float = 0, rand_pad: float = 0,
                       rand_gray: float = 0, rand_mirror: bool = False, mean: Any = None, std: Any = None,
                       brightness: float = 0, contrast: float = 0, saturation: float = 0, pca_noise: float = 0,
                       hue: float = 0, inter_method: int = 2, min_object_covered: Any = 0.1,
                       aspect_ratio_range: Any = (0.75, 1.33), area_range: Any = (0.05, 3.0),
                       min_eject_coverage: Any = 0.3, max_attempts: Any = 50,
                       pad_val: Any = (127, 127, 127)) -> list[DetAugmenter]:
    """Augmenters that make images with boxes of data_shape (channels, height, width) and float32.

    rand_crop, rand_pad: how likely a random part is taken, or a border made; the arguments from min_object_covered on
    are of DetRandomCropAug and DetRandomPadAug. The others are of CreateAugmenter.
    """
    made: list[DetAugmenter] = [DetBorrowAug(ResizeAug(resize, inter_method))] if resize > 0 else []
    if rand_crop > 0:
        made.append(CreateMultiRandCropAugmenter(min_object_covered, aspect_ratio_range, area_range, min_eject_coverage,
                                                 max_attempts, 1 - rand_crop))
    if rand_mirror > 0:
        made.append(DetHorizontalFlipAug(0.5))
    if rand_pad > 0:  # last of these, for larger images take longer
        border = DetRandomPadAug(aspect_ratio_range, (1.0, area_range[1]), max_attempts, pad_val)
        made.append(DetRandomSelectAug([border], 1 - rand_pad))
    whole = [ForceResizeAug((data_shape[2], data_shape[1]), inter_method), CastAug(),
             *colors.changes(brightness, contrast, saturation, hue), *colors.noise(pca_noise, rand_gray),
             *colors.normalization(mean, std, np.array)]
    return [*made, *map(DetBorrowAug, whole)]
