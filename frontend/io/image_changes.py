"""How ImageRecordIter changes images before they become batches: sizes, places, rotations, colours, by OpenCV."""
from __future__ import annotations

import math
import random
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from mxc.compiler.error import ArgumentError, MXNetError
from mxc.compiler.ops.pictures import DIRECTIONS, LUMINANCE, VARIANCES, interpolation, with_short_side
from mxc.compiler.system import opencv

Part = tuple[int, int, int, int]  # the first row and column, height and width
TRIES = 10  # random parts that are tried before the centre is taken
_SHARES, _DIRECTIONS = np.array(LUMINANCE, np.float32), np.array(DIRECTIONS)
HUES = 180  # OpenCV's hues of uint8 are half degrees
# The arguments and their defaults, as MXNet documents them.
DEFAULTS: dict[str, Any] = {
    "resize": -1, "rand_crop": False, "random_resized_crop": False, "max_rotate_angle": 0, "max_aspect_ratio": 0.0,
    "min_aspect_ratio": None, "max_shear_ratio": 0.0, "max_crop_size": -1, "min_crop_size": -1,
    "max_random_scale": 1.0, "min_random_scale": 1.0, "max_random_area": 1.0, "min_random_area": 1.0,
    "max_img_size": 1e10, "min_img_size": 0.0, "brightness": 0.0, "contrast": 0.0, "saturation": 0.0, "pca_noise": 0.0,
    "random_h": 0, "random_s": 0, "random_l": 0, "rotate": -1, "fill_value": 255, "inter_method": 1, "pad": 0}


class Changes:
    """What is done to each image, in this order: resize, rotate and scale, pad, crop, colours.

    options: all of DEFAULTS by name. size: height and width of the results. Raises ValueError for options that do not
    go together.
    """

    def __init__(self, options: Mapping[str, Any], size: tuple[int, int]):
        o: Any = SimpleNamespace(**options)
        self.o = o
        self.height, self.width = size
        sized = (o.min_random_scale, o.max_random_scale, o.min_crop_size, o.max_crop_size) != (1, 1, -1, -1)
        if o.random_resized_crop and (sized or o.rand_crop):
            raise ArgumentError("random_resized_crop does not go with rand_crop, random scales or crop sizes: it "
                                "chooses places and sizes itself, by min_random_area and max_random_area")
        if not 0 <= o.min_crop_size <= o.max_crop_size and (o.min_crop_size, o.max_crop_size) != (-1, -1):
            raise ArgumentError(f"expected 0 <= min_crop_size <= max_crop_size, got {o.min_crop_size} and "
                                f"{o.max_crop_size}")
        if o.inter_method not in (0, 1, 2, 3, 4, 9, 10):
            raise ArgumentError(f"inter_method is 0 to 4, 9 or 10, got {o.inter_method}")
        self._is_affine = (o.max_rotate_angle > 0 or o.max_shear_ratio > 0 or o.rotate > 0 or o.max_img_size != 1e10
                           or o.min_img_size != 0 or (o.min_random_scale, o.max_random_scale) != (1, 1)
                           or (o.max_aspect_ratio != 0 and not o.random_resized_crop))
        self._has_colors = any((o.brightness, o.contrast, o.saturation, o.pca_noise))
        self.has_shades = bool(o.random_h or o.random_s or o.random_l or self._has_colors)
        self.begins_with_part = not (o.resize != -1 or self._is_affine or o.pad > 0)

    def __call__(self, image: np.ndarray, draw: random.Random) -> np.ndarray:
        """The image, (height, width, channels) of uint8, in the order red, green, blue; draw: its random numbers."""
        o = self.o
        if o.resize != -1:
            height, width = with_short_side(o.resize, *image.shape[:2])
            image = self._resized(image, width, height, draw)
        if self._is_affine:
            image = self._warped(image, draw)
        if o.pad > 0:
            image = opencv.framed(image, (o.pad,) * 4, 0, (o.fill_value,) * 4)
        return self.of_part(image, self.part(image.shape[0], image.shape[1], draw), draw)

    def of_part(self, image: np.ndarray, part: Part | None, draw: random.Random) -> np.ndarray:
        """What becomes of a part of an image, as `part` gives it; None: of one that has to be enlarged first."""
        o = self.o
        if part is None:
            image = self._enlarged(image, draw)
            part = self._somewhere(image.shape[0], image.shape[1], self.height, self.width, o.rand_crop, draw)
        y, x, height, width = part
        image = self._resized(image[y:y + height, x:x + width], self.width, self.height, draw)
        if o.random_h or o.random_s or o.random_l:
            image = self._shifted(image, draw)
        return self._colored(image, draw) if self._has_colors else image

    def _resized(self, image: np.ndarray, width: int, height: int, draw: random.Random) -> np.ndarray:
        if image.shape[:2] == (height, width):
            return image
        method = interpolation(self.o.inter_method, image.shape, (height, width), draw.randint)
        return opencv.resized(image, width, height, method)

    def _warped(self, image: np.ndarray, draw: random.Random) -> np.ndarray:
        """Sheared, rotated and scaled around its centre."""
        o, (height, width) = self.o, image.shape[:2]
        shear = draw.uniform(-o.max_shear_ratio, o.max_shear_ratio)
        angle = o.rotate if o.rotate > 0 else draw.randint(-o.max_rotate_angle, o.max_rotate_angle)
        a, b = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        scale = draw.uniform(o.min_random_scale, o.max_random_scale)
        ratio = 1.0 if o.random_resized_crop else 1 + draw.uniform(-o.max_aspect_ratio, o.max_aspect_ratio)
        down = 2 * scale / (1 + ratio)
        across = ratio * down
        new = [max(o.min_img_size, min(o.max_img_size, scale * n)) for n in (width, height)]
        turn = np.array([[down * a - shear * b * across, down * b + shear * a * across], [-b * across, a * across]])
        move = (np.array(new) - turn @ (width, height)) / 2
        size = (int(new[0]), int(new[1]))
        method = interpolation(o.inter_method, image.shape, size[::-1], draw.randint)
        return opencv.warped(image, np.column_stack([turn, move]).astype(np.float32), size, method, o.fill_value)

    def part(self, rows: int, columns: int, draw: random.Random) -> Part | None:
        """The part that is taken of an image of that size, and then resized to the size that is wanted; None where the
        image has to be enlarged first. Raises MXNetError for one that is smaller than max_crop_size."""
        o = self.o
        if o.max_crop_size != -1:
            if min(rows, columns) < o.max_crop_size:
                raise MXNetError(f"an image of {columns} x {rows} pixels is smaller than max_crop_size, "
                                 f"{o.max_crop_size}")
            size = draw.randint(o.min_crop_size, o.max_crop_size)
            return self._somewhere(rows, columns, size, size, o.rand_crop, draw)
        if o.random_resized_crop and (part := self._random_part(rows, columns, draw)) is not None:
            return part
        if rows < self.height or columns < self.width:
            return None
        return self._somewhere(rows, columns, self.height, self.width, o.rand_crop, draw)

    def _enlarged(self, image: np.ndarray, draw: random.Random) -> np.ndarray:
        """An image whose sides are both as long as is wanted, or longer."""
        rows, columns = image.shape[:2]
        if rows < self.height:
            image = self._resized(image, columns * self.height // rows, self.height, draw)
        rows, columns = image.shape[:2]
        return self._resized(image, self.width, rows * self.width // columns, draw) if columns < self.width else image

    @staticmethod
    def _somewhere(rows: int, columns: int, height: int, width: int, by_chance: bool, draw: random.Random) -> Part:
        """A part of that height and width of an image: in a random place, or the centre."""
        y, x = rows - height, columns - width
        y, x = (draw.randint(0, y), draw.randint(0, x)) if by_chance else (y // 2, x // 2)
        return y, x, height, width

    def _random_part(self, rows: int, columns: int, draw: random.Random) -> Part | None:
        """A part of a random size and proportion; None where none of ten fits."""
        o = self.o
        low, high = (1 - o.max_aspect_ratio if o.min_aspect_ratio is None else o.min_aspect_ratio,
                     1 + o.max_aspect_ratio if o.min_aspect_ratio is None else o.max_aspect_ratio)
        for _ in range(TRIES):
            area, ratio = draw.uniform(o.min_random_area, o.max_random_area) * rows * columns, draw.uniform(low, high)
            if ratio <= 0:
                continue
            width, height = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < width <= columns and 0 < height <= rows:
                return self._somewhere(rows, columns, height, width, True, draw)
        return None

    def _shifted(self, image: np.ndarray, draw: random.Random) -> np.ndarray:
        """Hue, lightness and saturation moved."""
        if image.shape[2] != 3:
            return image
        limits = (self.o.random_h, self.o.random_l, self.o.random_s)
        moves = [int(draw.uniform(-limit, limit)) for limit in limits]
        return opencv.shifted(image, moves, (HUES, 255, 255))

    def _colored(self, image: np.ndarray, draw: random.Random) -> np.ndarray:
        """Brightness, contrast and saturation multiplied in a random order, and noise along the colours' directions."""
        x, o = image.astype(np.float32), self.o
        kinds = [("brightness", o.brightness), ("contrast", o.contrast), ("saturation", o.saturation)]
        draw.shuffle(kinds)
        for kind, most in kinds:
            factor = 1 + draw.uniform(-most, most)
            if most and kind == "brightness":
                x = x * factor
            elif most:
                grey = (x * _SHARES).sum(2, keepdims=True) if x.shape[2] == 3 else x
                x = x * factor + (grey.mean() if kind == "contrast" else grey) * (1 - factor)
        if o.pca_noise > 0 and x.shape[2] == 3:
            alpha = np.array([draw.gauss(0, o.pca_noise) for _ in range(3)])
            x = x + (_DIRECTIONS @ (alpha * VARIANCES)).astype(np.float32)
        return np.clip(x, 0, 255).astype(np.uint8)
