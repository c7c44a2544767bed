"""Values of a model's inputs, as the command line gives them: files, pictures, or words for made-up ones."""
from __future__ import annotations

import argparse
import io
import random
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mxc.cli.model import UsageError, parse_pairs
from mxc.compiler.error import FileAccessError, ModelFileError, MXNetError, OutOfMemoryError, TargetError
from mxc.compiler.system.input_files import content, is_regular, looks_like

if TYPE_CHECKING:
    import numpy as np

Shape = tuple[int, ...]
WORDS = ("random", "ones", "zeros")
PICTURES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm")


@dataclass
class Given:
    """arrays: values of inputs by name. words: of inputs whose values are made when their shape is known."""

    arrays: dict[str, np.ndarray]
    words: dict[str, str]

    def values(self, name: str, shape: Shape, dtype: str, default: str) -> np.ndarray:
        """The values of an input of that shape and dtype. default: the word for one that was not given."""
        if name in self.arrays:
            return self.arrays[name]
        return made_up(name, self.words.get(name, default), shape, dtype)


def add_input_arguments(parser: argparse.ArgumentParser, default: str) -> None:
    """The option --input. default: what an input is that is not given."""
    parser.add_argument("--input", action="append", default=[], metavar="NAME=VALUES",
                        help="values of an input: @FILE.npy, @PICTURE (RGB, 0 to 255, in the size of --shape), random, "
                        f"ones or zeros; one that has only a --shape is {default}; may be repeated")


def read_inputs(texts: list[str], shapes: dict[str, Shape]) -> Given:
    """The values of `NAME=VALUES` options. Shapes of files are added to `shapes`, those from --shape.

    Raises UsageError for values that do not fit their --shape, ModelFileError for files that cannot be read.
    """
    given = Given({}, {})
    for name, text in parse_pairs(texts, "input").items():
        if text in WORDS:
            given.words[name] = text
            continue
        path = text.removeprefix("@")
        is_picture = path.lower().endswith(PICTURES)
        array = read_picture(name, path, shapes.get(name)) if is_picture else read_array(path)
        if array.shape != shapes.get(name, array.shape):
            raise UsageError(f"--input {name}: its shape is {array.shape}; --shape says {shapes[name]}")
        if not array.size or not array.ndim:
            raise UsageError(f"--input {name}: expected an array with elements, got the shape {array.shape}")
        given.arrays[name], shapes[name] = array, array.shape
    return given


def read_array(path: str) -> np.ndarray:
    """A .npy file's array of numbers. Raises ModelFileError for anything else; pickles are refused."""
    import numpy as np

    try:
        array = np.load(path if is_regular(path) else io.BytesIO(content(path)), allow_pickle=False)
    except OSError as error:
        raise FileAccessError(path, "read", error) from None
    except MemoryError:
        raise OutOfMemoryError(f"{path}: there is no memory for the array that it says it holds") from None
    except (ValueError, EOFError) as error:
        kind = looks_like(content(path)) if is_regular(path) else ""
        what = f"it looks like {kind}" if kind and "NAME.npy" not in kind else str(error).partition(". If you trust")[0]
        if "allow_pickle" in what:
            what = "it holds objects of Python, and no numbers"
        raise ModelFileError(path, f"expected an array in NumPy's .npy format; {what}") from None
    if not isinstance(array, np.ndarray):
        raise ModelFileError(path, "expected one array in NumPy's .npy format, got an archive")
    if array.dtype.kind not in "fiub":
        raise ModelFileError(path, f"expected an array of numbers, got the dtype {array.dtype}")
    return array


def read_picture(name: str, path: str, shape: Shape | None) -> np.ndarray:
    """A picture's red, green and blue values, 0 to 255, as float32 (N, 3, H, W) or (N, H, W, 3), N times the same.

    shape: what it is resized to, as by inter_method 9 of mx.image; None: (1, 3, H, W) in its own size. Raises
    UsageError for a shape that is no picture's, ModelFileError for a file that is none, TargetError without OpenCV.
    """
    import numpy as np

    from mxc.compiler.ops.pictures import interpolation
    from mxc.compiler.system import opencv

    if shape is not None and (len(shape) != 4 or 3 not in (shape[1], shape[3])):
        raise UsageError(f"--input {name}=@{path}: a picture has the shape (N, 3, H, W) or (N, H, W, 3); --shape says "
                         f"{shape}")
    try:
        opencv.library()
    except MXNetError as error:
        from mxc.cli.requirements import installed

        force = "" if installed("opencv-python-headless") is None else "--force-reinstall "
        raise TargetError(f"--input {name}=@{path}: {str(error).rpartition(':')[0]}\n"
                          f"pip install {force}'mxc-compiler[image]', or give a .npy file") from None
    encoded = content(path)
    try:
        picture = opencv.decoded(encoded, 1, to_rgb=True)
    except MXNetError as error:
        kind = looks_like(encoded)
        found = f"; it looks like {kind}" if kind else f" ({error})"
        raise ModelFileError(path, f"expected a picture{found}") from None
    first = shape is None or shape[1] == 3
    if shape is not None:
        height, width = shape[2:] if first else shape[1:3]
        way = interpolation(9, picture.shape, (height, width), random.randint)
        picture = opencv.resized(picture, width, height, way)
    pixels = picture.astype(np.float32)[None]
    return np.repeat(pixels.transpose(0, 3, 1, 2) if first else pixels, 1 if shape is None else shape[0], axis=0)


def made_up(name: str, word: str, shape: Shape, dtype: str) -> np.ndarray:
    """ones, zeros, or numbers that look random and are the same each time: normally distributed, 0 to 9 for integers
    and for labels."""
    import numpy as np

    from mxc.compiler.ops.dtypes import converted, numpy_dtype

    if word != "random":
        return converted(np.full(shape, word == "ones"), numpy_dtype(dtype))
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    if "float" not in dtype or name.endswith("label"):
        return converted(rng.integers(0, 2 if dtype == "bool" else 10, shape), numpy_dtype(dtype))
    return converted(rng.standard_normal(shape, np.float32), numpy_dtype(dtype))


def made_up_parameter(name: str, shape: Shape, dtype: str) -> np.ndarray:
    """Values of a parameter or auxiliary state with which activations keep their size: a weight's are normally
    distributed with a variance of 2 over what a unit sums, variances and scales lie around 1, all else around 0."""
    import numpy as np

    from mxc.compiler.ops.dtypes import converted, numpy_dtype

    rng = np.random.default_rng(zlib.crc32(name.encode()))
    if name.endswith(("_var", "gamma")):
        values = rng.uniform(0.8, 1.2, shape)
    elif len(shape) > 1:
        values = rng.standard_normal(shape) * (2 / max(1, int(np.prod(shape[1:])))) ** 0.5
    else:
        values = rng.uniform(-0.1, 0.1, shape)
    return converted(np.asarray(values), numpy_dtype(dtype))
