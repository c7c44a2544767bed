"""Files that commands write: whole or not at all, and only under names that say what is in them."""
from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from mxc.cli.model import UsageError

if TYPE_CHECKING:
    import numpy as np


# What other files of a model are called, of which an artifact must not take the name.
OTHER_KINDS = (".json", ".params", ".npz", ".npy", ".safetensors", ".onnx", ".html", ".svg", ".txt", ".rec", ".lst",
               ".idx")
READ = ("model", "source", "params", "expected", "calibrate", "labels", "input")  # options that name files


def check_apart(options: argparse.Namespace, *written: str | None) -> None:
    """Raise UsageError where a file that is to be written is one that a command's options read: it would be lost."""
    for path in written:
        for option, name in _read_by(options):
            try:
                is_same = path is not None and os.path.samefile(path, name)
            except (OSError, ValueError):  # one of them is not there, or its name is none
                continue
            if is_same:
                raise UsageError(f"{path}: it is to be written, and {option} {name} is read: give another name")


def _read_by(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Options, and names of files that may be in them: NAME=@FILE names FILE."""
    for option in READ:
        given = getattr(options, option, None)
        for text in given if isinstance(given, list) else [given] if isinstance(given, str) else []:
            for name in {text, text.partition("@")[2]} - {""}:
                yield option.upper() if option in ("model", "source") else f"--{option}", name


def check_kind(option: str, path: str | None) -> None:
    """Raise UsageError for an artifact that would have the name of another kind of file, or none."""
    if path is not None and (path in ("", "-") or path.lower().endswith(OTHER_KINDS)):
        raise UsageError(f"{option} {path}: expected the name of a file for an artifact, as NAME.mxc")


def check_ending(option: str, path: str | None, *endings: str) -> None:
    """Raise UsageError for a file, if one is named, whose name has none of the endings."""
    if path is not None and not path.lower().endswith(endings):
        raise UsageError(f"{option} {path}: expected a name that ends in {' or '.join(endings)}, which is what is "
                         "written")


def check_place(path: str | None) -> None:
    """Raise FileAccessError at once when a file, if one is named, cannot be written."""
    from mxc.runtime.whole_file import check_replacing

    if path is not None:
        check_replacing(path)


def write_text(path: str, text: str) -> None:
    """Write a text; `-`: to standard output. Raises FileAccessError when the file system does not allow it."""
    from mxc.runtime.whole_file import replacing

    if path == "-":
        print(text, end="")
        return
    with replacing(path) as file:
        file.write(text.encode())


def write_arrays(path: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays by name as NumPy's .npz. Raises FileAccessError when the file system does not allow it."""
    from mxc.runtime import npz_file
    from mxc.runtime.whole_file import replacing

    with replacing(path) as file:
        npz_file.write(file, arrays)


def write_array(path: str, array: np.ndarray) -> None:
    """Write an array as NumPy's .npy. Raises FileAccessError when the file system does not allow it."""
    import numpy as np

    from mxc.runtime.whole_file import replacing

    with replacing(path) as file:
        np.save(file, array)
