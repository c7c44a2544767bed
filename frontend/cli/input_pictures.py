"""Pictures as inputs: one, or all of a folder as a batch, resized, cut and scaled as a network was trained."""
from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mxc.cli.model import UsageError, checked, is_number
from mxc.compiler.error import FileAccessError, ModelFileError, MXNetError, TargetError
from mxc.compiler.system.input_files import content, looks_like
from mxc.picture_inputs import COLOURS, CUT_OFF, LAYOUTS, channel_axis, decoded, resized
from mxc.runtime.picture_heads import is_cut_off

if TYPE_CHECKING:
    import numpy as np

Shape = tuple[int, ...]
ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
OPTIONS = ("resize", "crop", "mean", "scale", "layout")


def add_picture_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that say how pictures become an input."""
    parser.add_argument("--resize", type=size, metavar="S|H,W",
                        help="make a picture's shorter side S pixels long, and take the middle in the size of the "
                        "input; or make it H by W pixels")
    parser.add_argument("--crop", type=size, metavar="S|H,W",
                        help="take the S by S, or H by W, pixels in the middle, after --resize")
    parser.add_argument("--mean", type=numbers, metavar="M|R,G,B", help="subtract from values of 0 to 255")
    parser.add_argument("--scale", type=numbers, metavar="S|R,G,B", help="then multiply by")
    parser.add_argument("--layout", choices=tuple(LAYOUTS),
                        help="where the channels are (default: where --shape or the artifact has them, else NCHW)")


def size(text: str) -> Shape:
    """An option's one or two numbers of pixels."""
    parts = text.split(",")
    fits = len(parts) <= 2 and all(part.isdecimal() and int(part) >= 1 for part in parts)
    return tuple(map(int, checked(text, fits, "pixels, as 224, or height and width, as 224,320").split(",")))


def numbers(text: str) -> tuple[float, ...]:
    """An option's one number, or one for each of red, green and blue."""
    parts = text.split(",")
    fits = len(parts) in COLOURS and all(is_number(part, float("-inf")) for part in parts)
    return tuple(map(float, checked(text, fits, "a number, or one each for red, green and blue, as 124,117,104"
                                    ).split(",")))


class Pictures(NamedTuple):
    """Pictures that become one input. name: of the input, for messages. paths: their files; is_folder: all of a
    folder's. options: resize, crop, mean, scale and layout, each None where it was not given."""

    name: str
    paths: Sequence[str]
    is_folder: bool
    options: argparse.Namespace

    def array(self, shape: Shape | None, default: Shape | None) -> np.ndarray:
        """The pictures as float32 (N, C, H, W) or (N, H, W, C).

        shape: of the input as --shape gives it; of a folder, N may be 1 for what there is; a picture alone is there N
        times. default: of the input where --shape says nothing, without its N; None where that is not known.
        Raises UsageError for a shape that is no picture's, and options that do not fit the pictures or the shape,
        ModelFileError for a file that is no picture, TargetError without OpenCV.
        """
        import numpy as np

        known = shape or default
        is_first, channels = self._channels(known)
        room = None if known is None else known[2:] if is_first else known[1:3]
        self._check_library()
        pictures = self._prepared(channels, room)
        found = np.stack(pictures)
        if is_first:
            found = np.ascontiguousarray(found.transpose(0, 3, 1, 2))
        rows = len(self.paths)
        if shape is not None and (not self.is_folder or shape[0] == 1):
            rows = max(shape[0], rows)
        wanted = None if known is None else (shape[0] if shape is not None and shape[0] > 1 else rows, *known[1:])
        found = found if len(found) == rows else np.repeat(found, rows, axis=0)
        if wanted is not None and found.shape != wanted:
            raise UsageError(f"--input {self.name}: {self._text()} gives the shape {found.shape}; "
                             f"{'--shape says' if shape else 'the artifact has'} {wanted}")
        return found

    def _channels(self, shape: Shape | None) -> tuple[bool, int]:
        """Whether channels come before height and width, and how many there are."""
        layout = self.options.layout
        if shape is None:
            return layout != "NHWC", 3
        axis = channel_axis(shape, layout)
        if axis is not None:
            return axis == 1, shape[axis]
        raise UsageError(f"--input {self.name}={self._text()}: a picture has the shape (N, C, H, W) or (N, H, W, C), C "
                         f"of 3, or 1 for grey{f', here {layout}' if layout else ''}; the input's is {shape}")

    def _prepared(self, channels: int, room: Shape | None) -> list[np.ndarray]:
        """Each picture (H, W, C), all of one size."""
        from concurrent.futures import ThreadPoolExecutor

        from mxc.compiler.system import env

        with ThreadPoolExecutor(env.num_threads()) as pool:
            pictures = list(pool.map(lambda path: self._one(path, channels, room), self.paths))
        for path, picture in zip(self.paths, pictures, strict=True):
            if picture.shape != pictures[0].shape:
                raise UsageError(f"--input {self.name}: {self.paths[0]} is {_pixels(pictures[0])} and {path} "
                                 f"{_pixels(picture)}: give --shape, or --resize and --crop")
        return pictures

    def _one(self, path: str, channels: int, room: Shape | None) -> np.ndarray:
        import numpy as np

        from mxc.compiler.ops.pictures import with_short_side

        resize, crop = self.options.resize, self.options.crop
        picture = _decoded(path, channels)
        if resize is not None:
            picture = resized(picture, *(with_short_side(resize[0], *picture.shape[:2]) if len(resize) == 1
                                         else resize))
        part = (crop[0], crop[-1]) if crop else room if resize and len(resize) == 1 else None
        if part is not None:
            height, width = part
            if height > picture.shape[0] or width > picture.shape[1]:
                raise UsageError(f"{'--crop' if crop else '--resize'}: {path} is {_pixels(picture)} then, less than "
                                 f"{width} x {height}: give a larger --resize")
            top, left = (picture.shape[0] - height) // 2, (picture.shape[1] - width) // 2
            picture = picture[top:top + height, left:left + width]
        elif resize is None and room is not None:
            picture = resized(picture, *room)
        values = picture.astype(np.float32)
        for option, ufunc in ((self.options.mean, np.subtract), (self.options.scale, np.multiply)):
            if option is not None:
                ufunc(values, np.asarray(option[:1] if channels == 1 else option, np.float32), out=values)
        return values

    def _check_library(self) -> None:
        from mxc.compiler.system import opencv

        try:
            opencv.library()
        except MXNetError as error:
            from mxc.cli.requirements import installed

            force = "" if installed("opencv-python-headless") is None else "--force-reinstall "
            raise TargetError(f"--input {self.name}={self._text()}: {str(error).rpartition(':')[0]}\n"
                              f"pip install {force}'mxc-compiler[image]', or give a .npy file") from None

    def _text(self) -> str:
        return f"@{Path(self.paths[0]).parent if self.is_folder else self.paths[0]}"


def pictures_at(name: str, path: str, options: argparse.Namespace) -> Pictures:
    """The picture of a file, or those of a folder, in the order of their names.

    Raises ModelFileError for a folder without any, FileAccessError for one that cannot be read.
    """
    place = Path(path)
    if not place.is_dir():
        return Pictures(name, [path], False, options)
    try:
        found = sorted(str(each) for each in place.iterdir() if each.name.lower().endswith(ENDINGS))
    except OSError as error:
        raise FileAccessError(path, "read", error) from None
    if not found:
        raise ModelFileError(path, f"expected a folder of pictures; none of its files ends in {', '.join(ENDINGS)}\n"
                             "give the folder that has them: folders inside of it are not looked into")
    return Pictures(name, found, True, options)


def _decoded(path: str, channels: int) -> np.ndarray:
    """The pixels of a file (H, W, channels): red, green and blue, or grey."""
    encoded = content(path)
    try:
        return decoded(encoded, channels)
    except MXNetError as error:
        if is_cut_off(encoded):
            raise ModelFileError(path, CUT_OFF) from None
        kind = looks_like(encoded)
        found = f"; it looks like {kind}" + " that is damaged" * kind.endswith("picture") if kind else f" ({error})"
        raise ModelFileError(path, f"expected a picture{found}") from None


def _pixels(picture: np.ndarray) -> str:
    return f"{picture.shape[1]} x {picture.shape[0]} pixels"
