"""Files of parameters by name: MXNet's `.params`, NumPy's `.npz`, and `.safetensors` (with the extra of that name)."""
from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mxc import ndarray as nd
from mxc import safetensors_file
from mxc.compiler.error import ModelFileError, MXNetError
from mxc.ndarray import NDArray
from mxc.runtime import ndarray_file, npz_file, remote_files
from mxc.runtime.array import dtype_name
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
        arrays = npz_file.read(path)
    elif path.lower().endswith(".safetensors"):
        arrays = safetensors_file.read(path)
    else:
        loaded = nd.load(path) or {}  # a file without arrays is read as a list
        if not isinstance(loaded, dict):
            raise ModelFileError(path, "a list of arrays without names; expected names such as arg:fc1_weight")
        return loaded
    return {name: _as_array(path, name, array) for name, array in arrays.items()}


def described(path: str) -> dict[str, tuple[tuple[int, ...], str]]:
    """Shape and dtype of each array of a file by name; of `.params` nothing else is read. Errors as `load`."""
    if path.lower().endswith(ENDINGS[1:]) or remote_files.is_url(path):
        return {name: (array.shape, dtype_name(array.dtype)) for name, array in load(path).items()}
    return ndarray_file.described(path)


def save(path: str, arrays: Mapping[str, NDArray]) -> None:
    """Write arrays by name to a file of the kind that its name ends in; it appears whole or not at all.

    Raises FileAccessError when it cannot be written.
    """
    if path.lower().endswith(".params"):
        nd.save(path, arrays)
        return
    values = {name: np.ascontiguousarray(array.asnumpy()) for name, array in arrays.items()}
    if path.lower().endswith(".safetensors"):
        content = safetensors_file.written(values)
        with replacing(path) as file:
            file.write(content)
        return
    with replacing(path) as file:
        npz_file.write(file, values)


def _as_array(path: str, name: str, array: np.ndarray) -> NDArray:
    try:
        return nd.array(array, dtype=array.dtype)
    except (MXNetError, TypeError) as error:
        raise ModelFileError(path, f"{name}: {error}") from None
