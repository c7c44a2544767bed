"""Files that commands write: whole or not at all, and only under names that say what is in them."""
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mxc.cli.model import UsageError

if TYPE_CHECKING:
    import numpy as np


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
