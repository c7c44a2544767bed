"""`export_model`: a symbol and its parameters into an ONNX file."""
from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mxc import ndarray as nd
from mxc import symbol as sym_module
from mxc.compiler.error import ArgumentError, ArgumentTypeError
from mxc.runtime.array import dtype_name
from mxc.runtime.ndarray_file import own_name

FREE = (None, "None", 0, -1)  # what a free dimension is called that has no name


# MXNet's signature
def export_model(sym: Any, params: Any, in_shapes: Any = None, in_types: Any = np.float32,
                 onnx_file_path: str | os.PathLike[str] = "model.onnx", verbose: bool = False, dynamic: bool = False,
                 dynamic_input_shapes: Any = None, run_shape_inference: bool = False, input_type: Any = None,
                 input_shape: Any = None) -> str | os.PathLike[str]:
    """Write a symbol and its parameters as an ONNX model (opset 17), for inference; the path of the file.

    sym: a Symbol, or the file of one. params: NDArrays by name, with `arg:` and `aux:` or without, two dicts of them
    (arguments, auxiliary states), or a file. in_shapes: shapes of the inputs, which are the arguments without values
    in the order of `list_arguments`, labels left out; also a dict by name. in_types: their dtype, or a list of dtypes.
    dynamic: sizes may be free, those that are None or a name in dynamic_input_shapes, or in in_shapes (there -1 and 0
    are free too); free sizes of one name are one. verbose: log what is written. run_shape_inference: fill in the
    shapes of what lies in between, as onnx.shape_inference finds them. input_type, input_shape: old names of in_types
    and in_shapes.

    Raises TargetError without the extra `onnx`, UnsupportedError naming all operators and parameters of operators that
    ONNX has no counterpart of, ArgumentError for shapes that are missing, MXNetError where shapes do not fit.
    """
    from mxc.onnx.mx2onnx.export import model_of, read_inputs
    from mxc.onnx.package import onnx_package, write_model

    onnx = onnx_package("export_model")
    symbol = sym_module.load(sym) if isinstance(sym, (str, os.PathLike)) else sym
    if not isinstance(symbol, sym_module.Symbol):
        raise ArgumentTypeError(f"sym must be a Symbol or the file of one, got {type(sym).__name__}")
    graph = symbol.graph
    values = parameter_values(params)
    names = [name for name in read_inputs(graph) if name not in values]
    known = {name: values[name] for name in symbol.list_inputs() if name in values}
    given = dynamic_input_shapes if dynamic and dynamic_input_shapes is not None else \
        in_shapes if in_shapes is not None else input_shape
    shapes = input_shapes(names, given)
    model = model_of(graph, known, shapes, input_dtypes(names, in_types if input_type is None else input_type))
    if run_shape_inference:
        model = onnx.shape_inference.infer_shapes(model)
    if verbose:
        logging.info("Exported %d operators to %s", len(model.graph.node), onnx_file_path)
    write_model(model, onnx_file_path)
    return onnx_file_path


def get_operator_support(opset_version: int | None = None) -> list[str]:
    """The names of MXNet's operators that `export_model` takes. opset_version: not looked at, there is one."""
    from mxc.onnx.mx2onnx.export import TABLE

    return sorted(TABLE)


def parameter_values(params: Any) -> dict[str, np.ndarray]:
    """Arrays by name of what `export_model` takes as params. Raises TypeError for anything else."""
    if isinstance(params, (str, os.PathLike)):
        params = nd.load(params)
    groups = params if isinstance(params, (list, tuple)) else [params]
    values: dict[str, np.ndarray] = {}
    for group in groups:
        if not isinstance(group, Mapping):
            raise ArgumentTypeError(f"params must be arrays by name, or a file of them, got {type(group).__name__}")
        for key, array in group.items():
            values[own_name(key)] = array.asnumpy() if isinstance(array, nd.NDArray) else np.asarray(array)
    return values


def input_shapes(names: Sequence[str], given: Any) -> dict[str, tuple[int | str, ...]]:
    """Shapes by name; a free dimension has a name. Raises ArgumentError when they are not those of all inputs."""
    if given is None:
        raise ArgumentError(f"in_shapes: give the shapes of the inputs {', '.join(names) or '(there are none)'}")
    if not isinstance(given, Mapping):
        if isinstance(given, tuple) and all(d is None or isinstance(d, (int, str)) for d in given):
            given = [given]  # the shape of the only input
        if len(given) != len(names):
            raise ArgumentError(f"in_shapes has {len(given)} shapes; the symbol has {len(names)} inputs without values:"
                                f" {', '.join(names)}")
        given = dict(zip(names, given, strict=True))
    missing = [name for name in names if name not in given]
    if missing:
        raise ArgumentError(f"in_shapes: the shape of {', '.join(missing)} is missing")
    return {name: tuple(_dimension(name, axis, d) for axis, d in enumerate(given[name])) for name in names}


def _dimension(name: str, axis: int, size: Any) -> int | str:
    if size in FREE:
        return "batch" if axis == 0 else f"{name}_{axis}"
    return size if isinstance(size, str) else int(size)


def input_dtypes(names: Sequence[str], given: Any) -> dict[str, str]:
    """Dtypes by name, of one dtype or of one for each input."""
    every = list(given) if isinstance(given, (list, tuple)) else [given] * len(names)
    if len(every) != len(names):
        raise ArgumentError(f"in_types has {len(every)} dtypes; the symbol has {len(names)} inputs without values: "
                            f"{', '.join(names)}")
    return {name: dtype_name(dtype) for name, dtype in zip(names, every, strict=True)}
