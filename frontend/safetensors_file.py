"""`.safetensors`: arrays by name. The package safetensors reads them; its writer does not take bfloat16 from here.

A file is the length of its header in 8 bytes, the header in JSON with the dtype, the shape and the place of each array,
and the arrays one after the other.
"""
from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from mxc.compiler.error import ModelFileError, TargetError
from mxc.compiler.ops.dtypes import dtype_name, numpy_dtype
from mxc.runtime import remote_files

_CODES = {"F64": "float64", "I64": "int64", "F32": "float32", "I32": "int32", "F16": "float16", "BF16": "bfloat16",
          "I8": "int8", "U8": "uint8", "BOOL": "bool"}  # large elements first, so that all of them are aligned
_NAMES = {name: code for code, name in _CODES.items()}


def written(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The content of a file of arrays, of dtypes that NDArrays have."""
    header: dict[str, Any] = {}
    parts, end = [], 0
    for name in sorted(arrays, key=lambda name: -arrays[name].itemsize):
        array = np.ascontiguousarray(arrays[name])
        header[name] = {"dtype": _NAMES[dtype_name(array.dtype)], "shape": list(arrays[name].shape),
                        "data_offsets": [end, end + array.nbytes]}
        parts.append(array.tobytes())
        end += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text, *parts])


def read(path: str) -> dict[str, np.ndarray]:
    """The arrays of a file.

    Raises FileAccessError when it cannot be read, ModelFileError when it is no such file or has arrays of other dtypes,
    TargetError without the package.
    """
    try:
        import safetensors
    except ImportError as error:
        raise TargetError(f"{path}: files of this kind are read with the package safetensors, which cannot be imported "
                          f"({error})\npip install 'mxc-compiler[safetensors]'") from None
    content = remote_files.content(path)
    try:
        found = safetensors.deserialize(content)
    except safetensors.SafetensorError as error:
        raise ModelFileError(path, f"expected arrays in the safetensors format ({error})") from None
    arrays = {}
    for name, facts in found:
        if facts["dtype"] not in _CODES:
            raise ModelFileError(path, f"{name}: dtype {facts['dtype']} is not supported; expected one of "
                                 f"{', '.join(_CODES)}")
        arrays[name] = np.frombuffer(facts["data"], numpy_dtype(_CODES[facts["dtype"]])).reshape(facts["shape"])
    return arrays
