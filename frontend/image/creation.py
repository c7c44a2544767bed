"""CreateAugmenter: the usual augmenters by what is asked for."""
from __future__ import annotations

from typing import Any

from mxc.compiler.error import AssertedError
from mxc.image import colors
from mxc.image.augmenters import (
    Augmenter,
    CastAug,
    CenterCropAug,
    HorizontalFlipAug,
    RandomCropAug,
    RandomSizedCropAug,
    ResizeAug,
)


# many parameters: MXNet's signature
def CreateAugmenter(data_shape: tuple[int, int, int], resize: int = 0, rand_crop: bool = False,
                    rand_resize: bool = False, rand_mirror: bool = False, mean: Any = None, std: Any = None,
                    brightness: float = 0, contrast: float = 0, saturation: float = 0, hue: float = 0,
                    pca_noise: float = 0, rand_gray: float = 0, inter_method: int = 2) -> list[Augmenter]:
    """Augmenters that make images of data_shape (channels, height, width) and float32.

    resize: the shorter side before cropping, 0 for as it is. rand_crop: a random part, else the centre; rand_resize: of
    a random size too. rand_mirror: left for right every second time. mean, std: of each channel, True for ImageNet's.
    brightness, contrast, saturation, hue: the largest change. pca_noise: deviation of the colours along the directions
    in which they vary most. rand_gray: how likely greys are. Raises AssertionError for rand_resize without rand_crop
    and for a mean or std of another length than 1 or 3.
    """
    size = (data_shape[2], data_shape[1])
    made: list[Augmenter] = [ResizeAug(resize, inter_method)] if resize > 0 else []
    if rand_resize:
        if not rand_crop:
            raise AssertedError("CreateAugmenter: rand_resize takes a random part, so rand_crop must be True")
        made.append(RandomSizedCropAug(size, 0.08, (3.0 / 4.0, 4.0 / 3.0), inter_method))
    else:
        made.append((RandomCropAug if rand_crop else CenterCropAug)(size, inter_method))
    if rand_mirror:
        made.append(HorizontalFlipAug(0.5))
    made.append(CastAug())
    return [*made, *colors.changes(brightness, contrast, saturation, hue), *colors.noise(pca_noise, rand_gray),
            *colors.normalization(mean, std)]
