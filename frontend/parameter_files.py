"""Files of parameters by name: MXNet's `.params`, NumPy's `.npz`, and `.safetensors` (with the extra of that name)."""
from __future__ import annotations

import zipfile
from collections.abc import Mapping
from typing import BinaryIO

import numpy as np

from mxc import ndarray as nd
from mxc.compiler.error import FileAccessError, ModelFileError, TargetError
from mxc.ndarray import NDArray
from mxc.runtime import remote_files
from mxc.runtime.whole_file import replacing

ENDINGS = (".params", ".npz", ".safetensors")


def is_parameter_file(path: str) -> bool:
    """Whether a file is one of parameters, by the end of its name."""
    return path.lower().endswith(ENDINGS)


def load(path: str) -> dict[str, NDArray]:
    """The arrays of a file by name, of the kind that its name ends in.

    Raises FileAccessError when it cannot be read, ModelFileError when it is damaged, or has arrays without names or of
    dtypes that MXNet does not have, TargetError for `.safetensors` without the package.
    """
    if path.lower().endswith(".npz"):
        arrays = _load_npz(path)
    elif path.lower().endswith(".safetensors"):
        arrays = _load_safetensors(path)
    else:
        loaded = nd.load(path)
        if not isinstance(loaded, dict):
            raise ModelFileError(path, "a list of arrays without names; expected names such as arg:fc1_weight")
        return loaded
    return {name: _as_array(path, name, array) for name, array in arrays.items()}


def save(path: str, arrays: Mapping[str, NDArray]) -> None:
    """Write arrays by name to a file of the kind that its name ends in; it appears whole or not at all.

    Raises FileAccessError when it cannot be written, TargetError for `.safetensors` without the package.
    """
    if path.lower().endswith(".params"):
        nd.save(path, arrays)
        return
    values = {name: np.ascontiguousarray(array.asnumpy()) for name, array in arrays.items()}
    if path.lower().endswith(".safetensors"):
        content = _safetensors(path).save(values)
        with replacing(path) as file:
            file.write(content)
        return
    with replacing(path) as file:
        write_npz(file, values)


def write_npz(file: BinaryIO, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays of any names as NumPy's .npz; np.savez takes none that is called `file`."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


def _load_npz(path: str) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ModelFileError(path, "expected arrays by name in NumPy's .npz format, got one array")
            return dict(archive)
    except OSError as error:
        raise FileAccessError(path, "read", error) from None
    except (ValueError, EOFError, zipfile.BadZipFile, AttributeError) as error:
        raise ModelFileError(path, f"expected arrays by name in NumPy's .npz format ({error})") from None


def _load_safetensors(path: str) -> dict[str, np.ndarray]:
    package, content = _safetensors(path), remote_files.content(path)
    try:
        loaded: dict[str, np.ndarray] = package.load(content)
    except Exception as error:  # the package's own class, and KeyError for a dtype that NumPy does not have
        raise ModelFileError(path, f"expected arrays in the safetensors format ({error})") from None
    return loaded


def _safetensors(path: str) -> type:
    try:
        from safetensors import numpy as package
    except ImportError as error:
        raise TargetError(f"{path}: files of this kind are read and written with the package safetensors, which cannot "
                          f"be imported ({error})\npip install 'mxc-compiler[safetensors]'") from None
    return package


def _as_array(path: str, name: str, array: np.ndarray) -> NDArray:
    if array.dtype.name == "bfloat16":  # as in .params, where mxc reads it so
        array = array.astype(np.float32)
    try:
        return nd.array(array, dtype=array.dtype)
    except Exception as error:
        raise ModelFileError(path, f"{name}: {error}") from None
