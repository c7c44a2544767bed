"""Values of a model's inputs, as the command line gives them: files, pictures, or words for made-up ones."""
from __future__ import annotations

import argparse
import io
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mxc.cli.expected import IN, OUT
from mxc.cli.input_pictures import ENDINGS, OPTIONS, Pictures, add_picture_arguments, pictures_at
from mxc.cli.model import UsageError, listed, split_pair
from mxc.compiler.error import FileAccessError, ModelFileError, OutOfMemoryError, nearest
from mxc.compiler.system.input_files import content, is_regular, looks_like

if TYPE_CHECKING:
    import numpy as np

Shape = tuple[int, ...]
WORDS = ("random", "ones", "zeros")
ARCHIVE = ".npz"


@dataclass
class Given:
    """arrays: values of inputs by name. words: of inputs whose values are made when their shape is known. pictures:
    those that are read when it is. archives: arrays by name, of which some may be inputs, by file. unnamed: files that
    are the only input. rows: what the rows of the batch are called: the files of a folder."""

    arrays: dict[str, np.ndarray]
    words: dict[str, str]
    pictures: dict[str, Pictures] = field(default_factory=dict)
    archives: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    unnamed: dict[str, np.ndarray | Pictures] = field(default_factory=dict)
    rows: list[str] = field(default_factory=list)

    def values(self, name: str, shape: Shape, dtype: str, default: str) -> np.ndarray:
        """The values of an input of that shape and dtype. default: the word for one that was not given."""
        if name in self.arrays:
            return self.arrays[name]
        return made_up(name, self.words.get(name, default), shape, dtype)

    def has(self, name: str) -> bool:
        """Whether an input was given."""
        return name in self.arrays or name in self.words or name in self.pictures or any(
            name in arrays for arrays in self.archives.values())

    def settle(self, inputs: Sequence[str], shapes: dict[str, Shape], defaults: Mapping[str, Shape],
               model: str) -> None:
        """Find which of a model's inputs the files without a name are, and read pictures. Adds to `shapes`, those from
        --shape, the shapes of all that came from files.

        inputs: those that a caller gives. defaults: their shapes where a model has such. Raises UsageError for values
        that do not fit their --shape, or that are no input's.
        """
        for path, arrays in self.archives.items():
            self._take_archive(path, arrays, inputs, model)
        for path, value in self.unnamed.items():
            name = self._only(inputs, path, model)
            if isinstance(value, Pictures):
                self.pictures[name] = value._replace(name=name)
            else:
                self.arrays[name] = value
        self.archives, self.unnamed = {}, {}
        for name, pictures in self.pictures.items():
            default = defaults.get(name)
            self.arrays[name] = pictures.array(shapes.get(name), default)
            shapes[name] = self.arrays[name].shape
            if pictures.is_folder:
                self.rows = [os.path.basename(path) for path in pictures.paths]
        self.pictures = {}
        for name, array in self.arrays.items():
            if array.shape != shapes.get(name, array.shape):
                raise UsageError(f"--input {name}: its shape is {array.shape}; --shape says {shapes[name]}")
            shapes[name] = array.shape

    def _take_archive(self, path: str, arrays: dict[str, np.ndarray], inputs: Sequence[str], model: str) -> None:
        known = {name: array for name, array in arrays.items() if name in inputs}
        if not known and len(arrays) == 1:
            known = {self._only(inputs, path, model): next(iter(arrays.values()))}
        if not known:
            name, key = inputs[0] if inputs else "NAME", next(iter(arrays), "KEY")
            raise UsageError(f"--input {path}: it has {listed(list(arrays)) or 'nothing'}, and {model} takes "
                             f"{listed(list(inputs))}\nsay which is which: --input {name}=@{path}:{key}")
        for name, array in known.items():
            if name in self.arrays or name in self.words or name in self.pictures:
                raise UsageError(f"--input {path}: {name} was given already")
            self.arrays[name] = checked_array(name, array)

    def _only(self, inputs: Sequence[str], path: str, model: str) -> str:
        """The one input that was not given."""
        left = [name for name in inputs if not self.has(name) and not name.endswith("label")]
        if len(left) != 1:
            raise UsageError(f"--input {path}: which input is it? {model} takes {listed(list(inputs))}\n"
                             f"give it as NAME=@{path}")
        return left[0]


def add_input_arguments(parser: argparse.ArgumentParser, default: str) -> None:
    """The option --input, and those for pictures. default: what an input is that is not given."""
    parser.add_argument("--input", action="append", default=[], metavar="NAME=VALUES",
                        help="values of an input: @FILE.npy, @FILE.npz:KEY, @PICTURE or @FOLDER of pictures (RGB, 0 to "
                        "255), random, ones or zeros; or a file alone: FILE.npz with arrays by the names of inputs, "
                        f"else of the only input. One that has only a --shape is {default}; may be repeated")
    add_picture_arguments(parser)


def read_inputs(options: argparse.Namespace) -> Given:
    """The values of the `--input` options. Which inputs files without a name are, and what pictures become, is known
    when the model is: `Given.settle`.

    Raises UsageError for what is no value, ModelFileError for files that cannot be read.
    """
    given, names = Given({}, {}), set[str]()
    for text in options.input:
        name, equals, value = split_pair(text, "input")
        if not equals and text in WORDS:
            raise UsageError(f"--input {text}: for which input? give NAME={text}")
        if not equals or os.path.exists(text):
            _take_file(given, text.removeprefix("@"), options)
            continue
        if not name or not value:
            raise UsageError(f"--input {text}: expected NAME=VALUES, or a file")
        if name in names:
            raise UsageError(f"--input {text}: {name} was given already")
        names.add(name)
        path = value.removeprefix("@")
        if value in WORDS:
            given.words[name] = value
        elif is_picture(path):
            given.pictures[name] = pictures_at(name, path, options)
        else:
            given.arrays[name] = checked_array(name, read_values(path))
    used = [option for option in OPTIONS if getattr(options, option) is not None]
    if used and not given.pictures and not any(isinstance(each, Pictures) for each in given.unnamed.values()):
        raise UsageError(f"--{used[0]}: it is for pictures, and no --input is one")
    return given


def _take_file(given: Given, path: str, options: argparse.Namespace) -> None:
    """Take a file that is given without the name of an input."""
    if path in given.archives or path in given.unnamed:
        raise UsageError(f"--input {path}: it was given already")
    if is_picture(path):
        given.unnamed[path] = pictures_at("", path, options)
    elif path.lower().endswith(ARCHIVE):
        arrays = read_archive(path)
        inputs = {name.removeprefix(IN): array for name, array in arrays.items() if name.startswith(IN)}
        given.archives[path] = inputs or {name.removeprefix(OUT): array for name, array in arrays.items()}
    elif path.lower().endswith(".npy"):
        given.unnamed[path] = checked_array("", read_array(path))
    else:
        raise UsageError(f"--input {path}: expected NAME=VALUES, or a file .npz or .npy, a picture or a folder of "
                         "pictures")


def is_picture(path: str) -> bool:
    """Whether a file is named as a picture, or is a folder."""
    return path.lower().endswith(ENDINGS) or os.path.isdir(path)


def read_values(path: str) -> np.ndarray:
    """The array of a file: .npy, the only one of .npz, or one of several, FILE.npz:KEY."""
    file, colon, key = path.rpartition(":")
    if colon and file.lower().endswith(ARCHIVE):
        arrays = read_archive(file)
        if key not in arrays:
            raise UsageError(f"--input: {file} has no array {key!r}{nearest(key, arrays)}; it has "
                             f"{listed(list(arrays)) or 'none'}")
        return arrays[key]
    if not path.lower().endswith(ARCHIVE):
        return read_array(path)
    arrays = read_archive(path)
    if len(arrays) != 1:
        raise UsageError(f"--input: {path} has {len(arrays)} arrays: {listed(list(arrays))}\n"
                         f"say which: {path}:{next(iter(arrays), 'KEY')}")
    return next(iter(arrays.values()))


def read_archive(path: str) -> dict[str, np.ndarray]:
    """The arrays of numbers of a .npz file. Raises ModelFileError for anything else; pickles are refused."""
    from mxc.compiler.ops.dtypes import is_number
    from mxc.runtime import npz_file

    arrays = npz_file.read(path)
    for name, array in arrays.items():
        if not is_number(array.dtype):
            raise ModelFileError(path, f"{name} is no array of numbers: its dtype is {array.dtype}")
    return arrays


def checked_array(name: str, array: np.ndarray) -> np.ndarray:
    """The array. Raises UsageError for one without elements, or without axes."""
    if not array.size or not array.ndim:
        raise UsageError(f"--input {name}: expected an array with elements, got the shape {array.shape}")
    return array


def read_array(path: str) -> np.ndarray:
    """A .npy file's array of numbers. Raises ModelFileError for anything else; pickles are refused."""
    import numpy as np

    from mxc.compiler.ops.dtypes import is_number

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
    if not is_number(array.dtype):
        raise ModelFileError(path, f"expected an array of numbers, got the dtype {array.dtype}")
    return array


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
