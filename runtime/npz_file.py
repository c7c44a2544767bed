"""NumPy's `.npz`: arrays by name. Pickles are refused."""
from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import BinaryIO

import numpy as np

from mxc.compiler.error import FileAccessError, ModelFileError, OutOfMemoryError
from mxc.compiler.system.input_files import content, is_regular


def write(file: BinaryIO, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays of any names; np.savez takes none that is called `file`."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


def read(path: str) -> dict[str, np.ndarray]:
    """The arrays of a file or pipe. Raises FileAccessError when it cannot be read, ModelFileError when it is no such
    file, OutOfMemoryError for arrays that there is no memory for."""
    try:
        loaded = np.load(path if is_regular(path) else io.BytesIO(content(path)), allow_pickle=False)
        if not isinstance(loaded, np.lib.npyio.NpzFile):
            raise ModelFileError(path, "expected arrays by name in NumPy's .npz format, got one array")
        with loaded as archive:
            return dict(archive)
    except OSError as error:
        raise FileAccessError(path, "read", error) from None
    except MemoryError:
        raise OutOfMemoryError(f"{path}: there is no memory for the arrays that it says it holds") from None
    except (ValueError, EOFError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise ModelFileError(path, f"expected arrays by name in NumPy's .npz format ({error})") from None
