"""The reference of operators on pictures: what each computes, by NumPy, or by OpenCV where kernels do not."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mxc.compiler.operators.image.shape import LIGHTING, new_size
from mxc.compiler.operators.random.reference import draw_normal
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws
from mxc.compiler.ops.pictures import LUMINANCE
from mxc.compiler.system import opencv

Arrays = list[np.ndarray]
_DIRECTIONS = np.array(LIGHTING, np.float32)
LEAST = np.finfo(np.float32).eps  # a difference of colours up to this is none: the hue of a grey is 0


def to_tensor(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Channels first, divided by 255."""
    return [np.moveaxis(inputs[0].astype(np.float32) / np.float32(255), -1, -3)]


def normalized(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """(data - mean) / std, channel by channel."""
    data = inputs[0] if inputs[0].dtype.kind == "f" else inputs[0].astype(np.float32)
    mean, std = (np.array(numbers, data.dtype).reshape(-1, 1, 1) for numbers in (params.mean, params.std))
    return [(data - mean) / std]


def cropped(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The part that begins at (x, y)."""
    return [inputs[0][..., params.y:params.y + params.height, params.x:params.x + params.width, :]]


def flipped_across(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Left for right."""
    return [inputs[0][:, ::-1]]


def flipped_down(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Top for bottom."""
    return [inputs[0][::-1]]


def perhaps_across(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Left for right, every second time."""
    return [inputs[0][:, ::-1] if rng.random((1, 1, 1)).item() < 0.5 else inputs[0]]


def perhaps_down(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Top for bottom, every second time."""
    return [inputs[0][::-1] if rng.random((1, 1, 1)).item() < 0.5 else inputs[0]]


def _stored(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Colours in the dtype of the picture: of uint8 between 0 and 255."""
    return np.clip(values, 0, 255) if dtype == np.uint8 else values


def _brighter(x: np.ndarray, factor: np.float32) -> np.ndarray:
    return x * factor


def _grey(x: np.ndarray) -> np.ndarray:
    """How bright each pixel is, (height, width, 1)."""
    return x if x.shape[2] == 1 else (x * np.array(LUMINANCE, np.float32)).sum(2, keepdims=True)


def _contrasted(x: np.ndarray, factor: np.float32) -> np.ndarray:
    return x * factor + _grey(x).mean() * (np.float32(1) - factor)


def _saturated(x: np.ndarray, factor: np.float32) -> np.ndarray:
    """MXNet's grey of this change is the blue's share alone."""
    return x if x.shape[2] == 1 else x * factor + x[..., 2:] * np.float32(LUMINANCE[2]) * (np.float32(1) - factor)


def _turned(x: np.ndarray, turn: np.float32) -> np.ndarray:
    """Hues turned by so many circles, lightness and saturation as they are."""
    if x.shape[2] == 1:
        return x
    red, green, blue = np.moveaxis(x / np.float32(255), 2, 0)
    most, least = np.maximum(np.maximum(red, green), blue), np.minimum(np.minimum(red, green), blue)
    width, total = most - least, most + least
    light = total * np.float32(0.5)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(light < 0.5, width / total, width / (2 - most - least))
        step = np.float32(60) / width
    hue = np.where(most == red, (green - blue) * step,
                   np.where(most == green, (blue - red) * step + 120, (red - green) * step + 240))
    hue = np.where(hue < 0, hue + 360, hue)
    is_grey = ~(width > LEAST)
    hue, share = np.where(is_grey, 0, hue), np.where(is_grey, 0, share)
    sixth = np.mod((hue + turn * np.float32(360)) * np.float32(6 / 360), np.float32(6))
    upper = np.where(light <= 0.5, light * (1 + share), light + share - light * share)
    lower = 2 * light - upper
    parts = [np.maximum(2 - sixth, sixth - 4), np.minimum(sixth, 4 - sixth), np.minimum(sixth - 2, 6 - sixth)]
    colours = [np.where(part >= 1, upper, lower + (upper - lower) * np.maximum(part, 0)) for part in parts]
    return np.stack([np.where(share == 0, light, colour) for colour in colours], 2) * np.float32(255)


Adjustment = Callable[[np.ndarray, np.float32], np.ndarray]


def _factor(rng: Draws, low: float, high: float) -> np.float32:
    """A uniform number between the two."""
    return np.float32(low) + np.float32(high - low) * np.float32(rng.random((1, 1, 1)).item())


def _adjusted(params: Params, data: np.ndarray, rng: Draws, adjust: Adjustment) -> Arrays:
    return [_stored(adjust(data.astype(np.float32), _factor(rng, params.min_factor, params.max_factor)), data.dtype)]


def brightness(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Colours times a random factor."""
    return _adjusted(params, inputs[0], rng, _brighter)


def contrast(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Colours drawn from, or to, the picture's mean brightness by a random factor."""
    return _adjusted(params, inputs[0], rng, _contrasted)


def saturation(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Colours drawn from, or to, a grey by a random factor."""
    return _adjusted(params, inputs[0], rng, _saturated)


def hue(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Hues turned by a random part of a circle."""
    return _adjusted(params, inputs[0], rng, _turned)


def _lit(data: np.ndarray, alpha: np.ndarray) -> Arrays:
    if data.shape[2] == 1:
        return [data]
    return [_stored(data.astype(np.float32) + _DIRECTIONS @ alpha.astype(np.float32), data.dtype)]


def lighting(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Colours moved by so much along each of the directions in which they vary most."""
    return _lit(inputs[0], np.array(params.alpha[:3]))


def random_lighting(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """As `lighting`, by normal numbers."""
    drawn = Params({"loc": 0.0, "scale": params.alpha_std, "shape": (3, 1, 1), "dtype": "float32"})
    return _lit(inputs[0], draw_normal(drawn, [], is_train, rng)[0].ravel())


def color_jitter(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Brightness, contrast, saturation and hue changed by random factors, in a random order."""
    return jittered(params, [inputs[0], rng.random((8,))], is_train, rng)


def jittered(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The same by 8 numbers in [0, 1): four factors, and four numbers whose order is that of the changes. A change
    whose range is not above 0 is left out."""
    data, numbers = inputs
    x = data.astype(np.float32)
    changes: list[tuple[Adjustment, float, float]] = [
        (_brighter, params.brightness, 1), (_contrasted, params.contrast, 1), (_saturated, params.saturation, 1),
        (_turned, params.hue, 0)]
    for i in np.argsort(numbers[4:], kind="stable"):
        adjust, width, middle = changes[i]
        if width > 0:
            factor = np.float32(middle - width) + np.float32(2 * width) * np.float32(numbers[i])
            x = _stored(adjust(x, factor), data.dtype)
            x = x.astype(data.dtype).astype(np.float32)
    return [x]


def resized(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Each picture in another size, by OpenCV."""
    data = inputs[0]
    height, width = new_size(params, *data.shape[-3:-1])
    if data.ndim == 3:
        return [opencv.resized(data, width, height, params.interp)]
    return [np.stack([opencv.resized(each, width, height, params.interp) for each in data])]


def resized_to(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The picture in another size, by OpenCV."""
    return [opencv.resized(inputs[0], params.w, params.h, params.interp)]


def framed(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The picture with a border around it, by OpenCV."""
    values: Any = params["values"] or (params.value,) * 4
    return [opencv.framed(inputs[0], (params.top, params.bot, params.left, params.right), params.type, values)]
