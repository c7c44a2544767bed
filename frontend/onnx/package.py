"""The package `onnx`, which the extra of this name installs: imported where a model is read or written."""
from __future__ import annotations

import os
from typing import Any

from mxc.compiler.error import ModelFileError, TargetError
from mxc.runtime import remote_files
from mxc.runtime.whole_file import replacing

MOST_BYTES = 2**31 - 1  # of one protobuf message; larger models keep their parameters in files beside it


def onnx_package(what: str) -> Any:
    """The module `onnx`. what: what needs it. Raises TargetError where it is not installed."""
    try:
        import onnx.checker
        import onnx.helper
        import onnx.inliner
        import onnx.numpy_helper
        import onnx.reference
        import onnx.version_converter
    except ImportError as error:
        raise TargetError(f"{what}: ONNX files are read and written with the package onnx, which cannot be imported "
                          f"({error})\npip install 'mxc-compiler[onnx]'") from None
    return onnx


def read_model(path: str | os.PathLike[str]) -> Any:
    """The ModelProto in a file or at a URL, with the parameters that lie in files beside it.

    Raises TargetError without the package, FileAccessError when the file cannot be read, ModelFileError when it is no
    ONNX model.
    """
    name = os.fspath(path)
    onnx = onnx_package(name)
    content = remote_files.content(name)
    try:
        model = onnx.load_model_from_string(content)
    except Exception as error:  # the class is protobuf's, which mxc does not import by itself
        raise ModelFileError(name, f"expected an ONNX model ({' '.join(str(error).split()) or type(error).__name__})") \
            from None
    if not model.graph.node and not model.graph.output:
        raise ModelFileError(name, "expected an ONNX model, got a file without a graph")
    if not remote_files.is_url(name):
        try:
            onnx.load_external_data_for_model(model, os.path.dirname(os.path.abspath(name)))
        except Exception as error:  # ValidationError, OSError and others, as the files beside it are
            raise ModelFileError(name, "parameters in files beside it cannot be read: "
                                 f"{' '.join(str(error).split())}") from None
    return model


def write_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a ModelProto to a file, whole or not at all, or to a URL. Raises FileAccessError when it cannot be written,
    ModelFileError for a model of more than 2 GiB."""
    name = os.fspath(path)
    if model.ByteSize() > MOST_BYTES:
        raise ModelFileError(name, f"the model has {model.ByteSize():,} bytes; one ONNX file has at most 2 GiB")
    content = model.SerializeToString()
    if remote_files.is_url(name):
        remote_files.write(name, content)
        return
    with replacing(name) as file:
        file.write(content)
