"""MXNet's module `mx.image.detection`: what this package has for images with boxes."""

from __future__ import annotations

from mxc.image.box_augmenters import (
    CreateDetAugmenter,
    CreateMultiRandCropAugmenter,
    DetAugmenter,
    DetBorrowAug,
    DetHorizontalFlipAug,
    DetRandomSelectAug,
)
from mxc.image.box_iterator import ImageDetIter
from mxc.image.boxes import DetRandomCropAug, DetRandomPadAug
from mxc.runtime.elsewhere import elsewhere

__getattr__, _names = elsewhere(__name__, {
    "": "io=mxc.io json logging nd=mxc.ndarray np=numpy random warnings", "mxc.base": "numeric_types",
    "mxc.util": "is_np_array", "mxc.image.augmenters": "Augmenter CastAug ForceResizeAug RandomOrderAug ResizeAug",
    "mxc.image.colors": "ColorJitterAug ColorNormalizeAug HueJitterAug LightingAug RandomGrayAug",
    "mxc.image.iterator": "ImageIter", "mxc.image.resizing": "copyMakeBorder fixed_crop"})
__all__ = ["CreateDetAugmenter", "CreateMultiRandCropAugmenter", "DetAugmenter", "DetBorrowAug", "DetHorizontalFlipAug",
           "DetRandomCropAug", "DetRandomPadAug", "DetRandomSelectAug", "ImageDetIter", *_names]
