"""`nd.save` and `nd.load`: arrays in the `.params` format."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np

from mxc.compiler.ops.storage import Given
from mxc.ndarray.ndarray import NDArray, wrapped
from mxc.runtime import ndarray_file, remote_files
from mxc.runtime.sparse_array import of_given, snapshot

Loaded = list[NDArray] | dict[str, NDArray]


def save(fname: str | os.PathLike[str], data: NDArray | Sequence[NDArray] | Mapping[str, NDArray]) -> None:
    """Save an array, a list of arrays or a dict of arrays by name; the file appears whole or not at all.

    fname: a path, or a URL (`s3://bucket/key`, `hdfs://host/path`; the extras `s3` and `hdfs` have what they need).
    Raises ValueError for other data, TypeError where something in it is no array, MXNetError when the file cannot be
    written.
    """
    values = [data] if isinstance(data, NDArray) else data
    items = values.values() if isinstance(values, Mapping) else values
    if not isinstance(values, (Mapping, list, tuple)):
        raise ValueError("data needs to be an NDArray, a list of NDArrays or a dict of str to NDArray, "
                         f"not {type(data)}")
    for item in items:
        if not isinstance(item, NDArray):
            raise TypeError(f"data needs to hold NDArrays, got {type(item)} in the {type(data).__name__}")
    if isinstance(values, Mapping):
        if not all(isinstance(name, str) for name in values):
            raise ValueError("the names in data need to be str")
        names, arrays = list(values), [snapshot(a._array) for a in values.values()]
    else:
        names, arrays = [], [snapshot(a._array) for a in values]
    if remote_files.is_url(fname):
        remote_files.write(str(fname), ndarray_file.format_file(arrays, names))
    else:
        ndarray_file.write(fname, dict(zip(names, arrays, strict=True)) if names else arrays)


def load(fname: str | os.PathLike[str]) -> Loaded:
    """The arrays of a file or URL: a dict when they have names, else a list.

    Raises ModelFileError naming file, byte offset and what was expected.
    """
    if remote_files.is_url(fname):
        return _wrap(*ndarray_file.parse(remote_files.read(str(fname)), str(fname)))
    return _wrap(*ndarray_file.read(fname))


def load_frombuffer(buf: bytes) -> Loaded:
    """The arrays in the bytes of a file; see `load`."""
    if not isinstance(buf, (bytes, bytearray, memoryview)):
        raise ValueError(f"buf needs to be bytes, not {type(buf)}")
    return _wrap(*ndarray_file.parse(buf))


def _wrap(arrays: Sequence[Given | None], names: Sequence[str]) -> Loaded:
    # An empty slot becomes an array without elements, of float32, which is the format's first type.
    made = [wrapped(of_given(np.empty((0,), np.float32) if a is None else a)) for a in arrays]
    return dict(zip(names, made, strict=True)) if names else made
