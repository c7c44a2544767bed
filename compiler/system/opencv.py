"""Images in memory: decoded, encoded, resized and framed by OpenCV, which is imported when one is.

Images are NumPy arrays (height, width, channels). OpenCV's own order of colours is blue, green, red.
"""
from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mxc.compiler.error import MXNetError

_JPEG_BEGIN, _JPEG_END = b"\xff\xd8", b"\xff\xd9"  # markers SOI and EOI (ITU T.81, table B.1)
_JPEG, _PNG = (".jpg", ".jpeg"), (".png",)
_library: Any = None


def library() -> Any:
    """The module cv2. Raises MXNetError, which says what to install, where it cannot be imported."""
    global _library
    if _library is None:
        try:
            import cv2
        except ImportError as error:
            raise MXNetError(f"images are decoded and resized by OpenCV, which cannot be imported ({error}): "
                             "`pip install 'mxc-compiler[image]'`") from None
        if hasattr(os, "register_at_fork"):  # A forked process must not wait for threads that it does not have.
            os.register_at_fork(after_in_child=lambda: cv2.setNumThreads(0))
        _library = cv2
    return _library


def _done(what: str, function: Callable[[], Any]) -> Any:
    """What a function of OpenCV's gives, by OpenCV's own code; its errors as MXNetErrors."""
    had = _library.ipp.useIPP()  # of this thread: OpenCV keeps it for each
    _library.ipp.setUseIPP(False)  # Intel's library rounds otherwise than OpenCV's own code, with which MXNet is built.
    try:
        return function()
    except _library.error as error:
        raise MXNetError(f"{what}: OpenCV says: {getattr(error, 'err', '') or error}") from None
    finally:
        _library.ipp.setUseIPP(had)


def decoded(content: bytes | np.ndarray, flag: int, to_rgb: bool = False, as_stored: bool = False) -> np.ndarray:
    """The pixels of an encoded image, JPEG, PNG and others, as OpenCV has them: uint8 (height, width, 3), or for grey
    images (height, width).

    flag: 1 for colours, 0 for grey, -1 for what the image has. as_stored: without the turn that a camera noted (EXIF's
    orientation), as always where the flag is -1. What is missing of a JPEG that is cut off is grey, as
    MXNet has it. Raises MXNetError for bytes that are no image.
    """
    cv2 = library()
    raw = np.frombuffer(content, np.uint8)
    if as_stored and flag >= 0:
        flag |= cv2.IMREAD_IGNORE_ORIENTATION
    image = _done("decoding an image", lambda: cv2.imdecode(raw, flag)) if raw.size else None
    if image is None and raw[:2].tobytes() == _JPEG_BEGIN:  # newer OpenCVs refuse one without its end
        ended = np.append(raw, np.frombuffer(_JPEG_END, np.uint8))
        image = _done("decoding an image", lambda: cv2.imdecode(ended, flag))
    if image is None:
        raise MXNetError(f"decoding an image: expected the bytes of an image, JPEG, PNG or another that OpenCV reads, "
                         f"got {raw.size} bytes that begin {raw[:8].tobytes().hex() or 'nowhere'}")
    return cv2.cvtColor(image, cv2.COLOR_BGR2RGB) if to_rgb and image.ndim == 3 else image


def merged(planes: np.ndarray) -> np.ndarray:
    """An image, (height, width, channels) of uint8, of its channels, (channels, height, width)."""
    cv2 = library()
    return _done("joining channels", lambda: cv2.merge(list(planes)))


def encoded(image: np.ndarray, quality: int, ending: str) -> bytes:
    """The bytes of an image file of the kind that `ending` (".jpg", ".png") says. quality: of JPEG 1 to 100, of PNG 0
    to 9, of others without meaning. Raises MXNetError for what OpenCV does not encode."""
    cv2 = library()
    kind = ending.lower()
    settings = [cv2.IMWRITE_JPEG_QUALITY, quality] if kind in _JPEG else \
        [cv2.IMWRITE_PNG_COMPRESSION, quality] if kind in _PNG else []
    is_done, content = _done(f"encoding an image as {ending}", lambda: cv2.imencode(ending, image, settings))
    if not is_done:
        raise MXNetError(f"encoding an image as {ending}: failed to encode image")
    return content.tobytes()


def resized(image: np.ndarray, width: int, height: int, interpolation: int) -> np.ndarray:
    """An image in another size. interpolation: 0 nearest, 1 bilinear, 2 cubic, 3 area, 4 Lanczos.

    Raises MXNetError for a dtype other than uint8, uint16, float32 and float64, and for another interpolation.
    """
    cv2 = library()
    if image.dtype.name not in ("uint8", "uint16", "float32", "float64"):
        raise MXNetError(f"resizing an image: expected the dtype uint8, uint16, float32 or float64, got {image.dtype}")
    made = _done("resizing an image",
                 lambda: cv2.resize(np.ascontiguousarray(image), (width, height), interpolation=interpolation))
    return made.reshape(height, width, image.shape[2])


def framed(image: np.ndarray, sides: tuple[int, int, int, int], kind: int, values: Sequence[float]) -> np.ndarray:
    """An image with a border of (top, bottom, left, right) pixels.

    kind: 0 of `values`, one for each channel, 0 where some are missing; 1 the nearest pixel, 2 reflected with the
    outermost pixel, 3 wrapped, 4 reflected without it. Raises MXNetError for anything else.
    """
    cv2 = library()
    made = _done("making a border", lambda: cv2.copyMakeBorder(np.ascontiguousarray(image), *sides, kind,
                                                               value=tuple(values)))
    return made.reshape(*made.shape[:2], image.shape[2])


def warped(image: np.ndarray, matrix: np.ndarray, size: tuple[int, int], interpolation: int,
           fill: float) -> np.ndarray:
    """An image of `size`, (width, height), in which pixel p of `image` lies at matrix (2, 3) times (p, 1); `fill` where
    nothing does."""
    cv2 = library()
    method = interpolation if interpolation != 3 else 1  # there is no area of turned pixels
    places, parts = _sources(matrix, size, method == 0)
    made = _done("turning an image", lambda: cv2.remap(
        np.ascontiguousarray(image), places, parts, method, borderMode=0, borderValue=(fill,) * 4))
    return made.reshape(*made.shape[:2], image.shape[2])


_FINE, _PARTS = 10, 5  # bits behind the point: of places as they are added up, and as pixels are weighted by


def _sources(matrix: np.ndarray, size: tuple[int, int], is_nearest: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """Where each pixel of a warped image comes from: whole places, and 32nd parts of pixels as `remap` takes them.

    Places are added up in 1024th parts of a pixel, as the OpenCV does that MXNet is built with; newer ones compute them
    in floating point.
    """
    turn = np.linalg.inv(matrix[:, :2].astype(np.float64))
    move = -turn @ matrix[:, 2]
    scale, rounding = 1 << _FINE, 1 << (_FINE - 1 if is_nearest else _FINE - _PARTS - 1)
    across = np.rint(turn[:, :1] * np.arange(size[0]) * scale).astype(np.int64)
    down = np.rint((turn[:, 1:] * np.arange(size[1]) + move[:, None]) * scale).astype(np.int64) + rounding
    places = across[:, None, :] + down[:, :, None]
    if is_nearest:
        return np.ascontiguousarray((places >> _FINE).transpose(1, 2, 0).astype(np.int16)), None
    fine = places >> (_FINE - _PARTS)
    last = (1 << _PARTS) - 1
    whole = np.clip(fine >> _PARTS, -(1 << 15), (1 << 15) - 1).transpose(1, 2, 0).astype(np.int16)
    return np.ascontiguousarray(whole), (((fine[1] & last) << _PARTS) + (fine[0] & last)).astype(np.uint16)


def shifted(image: np.ndarray, moves: Sequence[int], limits: Sequence[int]) -> np.ndarray:
    """Hue, in half degrees, lightness and saturation of an image of red, green and blue moved, from 0 to limits."""
    cv2 = library()
    parts = cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_RGB2HLS).astype(np.int16)
    parts = np.clip(parts + np.array(moves, np.int16), 0, np.array(limits, np.int16))
    return cv2.cvtColor(parts.astype(np.uint8), cv2.COLOR_HLS2RGB)
