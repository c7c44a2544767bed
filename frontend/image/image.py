"""MXNet's module `mx.image.image`: what this package has for images without boxes."""
# ruff: noqa: F401 (what is imported is what the module gives)
from __future__ import annotations

from mxc.image.augmenters import (
    Augmenter,
    CastAug,
    CenterCropAug,
    ForceResizeAug,
    HorizontalFlipAug,
    RandomCropAug,
    RandomOrderAug,
    RandomSizedCropAug,
    ResizeAug,
    SequentialAug,
)
from mxc.image.colors import (
    BrightnessJitterAug,
    ColorJitterAug,
    ColorNormalizeAug,
    ContrastJitterAug,
    HueJitterAug,
    LightingAug,
    RandomGrayAug,
    SaturationJitterAug,
)
from mxc.image.creation import CreateAugmenter
from mxc.image.iterator import ImageIter
from mxc.image.resizing import (
    _get_interp_method,
    center_crop,
    color_normalize,
    copyMakeBorder,
    fixed_crop,
    imdecode,
    imread,
    imresize,
    random_crop,
    random_size_crop,
    resize_short,
    scale_down,
)
from mxc.image.rotation import imrotate, random_rotate
from mxc.runtime.elsewhere import elsewhere

__getattr__, _names = elsewhere(
    __name__, {"": "io=mxc.io json logging nd=mxc.ndarray np=numpy os random recordio=mxc.recordio sys warnings",
               "numbers": "Number", "mxc.base": "numeric_types", "mxc.util": "is_np_array"},
    {"": "_internal=mxc.ndarray._internal"})
__all__ = [
    "Augmenter", "BrightnessJitterAug", "CastAug", "CenterCropAug", "ColorJitterAug", "ColorNormalizeAug",
    "ContrastJitterAug", "CreateAugmenter", "ForceResizeAug", "HorizontalFlipAug", "HueJitterAug", "ImageIter",
    "LightingAug", "RandomCropAug", "RandomGrayAug", "RandomOrderAug", "RandomSizedCropAug", "ResizeAug",
    "SaturationJitterAug", "SequentialAug", "center_crop", "color_normalize", "copyMakeBorder", "fixed_crop",
    "imdecode", "imread", "imresize", "imrotate", "random_crop", "random_rotate", "random_size_crop", "resize_short",
    "scale_down", *_names]
