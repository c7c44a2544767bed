"""ONNX models as symbols and parameters, or as blocks."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from mxc import ndarray as nd
from mxc.context import Context, cpu
from mxc.ndarray import NDArray
from mxc.symbol import Symbol

Values = dict[str, NDArray]


def import_model(model_file: str | os.PathLike[str], shapes: Mapping[str, Sequence[int | str]] | None = None,
                 ) -> tuple[Symbol, Values, Values]:
    """The symbol of an ONNX model, its arguments and its auxiliary states, by name.

    The inputs are the variables that are in neither; they have the shapes of the model, with 0 for free dimensions.
    shapes: of inputs, in place of those in the model, with a text for a free dimension: a model that computes with its
    own shapes may need fixed ones. Opset 13 and later, older ones as far as the package onnx converts them.

    Raises TargetError without the extra `onnx`, ModelFileError when the file is no ONNX model, UnsupportedError naming
    all nodes, operators and attributes that there is no counterpart of, MXNetError where a node does not fit.
    """
    from mxc.onnx.onnx2mx.load import symbol_of
    from mxc.onnx.package import read_model

    made = symbol_of(read_model(model_file), shapes)
    values = {name: nd.array(array, dtype=array.dtype) for name, array in made.parameters.items()}
    return (made.symbol, {name: value for name, value in values.items() if name not in made.states},
            {name: value for name, value in values.items() if name in made.states})


def import_to_gluon(model_file: str | os.PathLike[str], ctx: Context | None = None) -> Any:
    """An ONNX model as a SymbolBlock on `ctx`; errors as of `import_model`."""
    from mxc.gluon import SymbolBlock
    from mxc.symbol import var

    symbol, arguments, states = import_model(model_file)
    values = {**arguments, **states}
    block = SymbolBlock(symbol, [var(name) for name in symbol.list_inputs() if name not in values])
    for name, parameter in block.collect_params().items():
        parameter._load_init(values[name], ctx or cpu(), cast_dtype=True, dtype_source="saved")
    return block


def get_model_metadata(model_file: str | os.PathLike[str]) -> dict[str, list[tuple[str, tuple[int | str, ...]]]]:
    """{"input_tensor_data": [(name, shape), ...], "output_tensor_data": [...]} of an ONNX model; free dimensions are 0.

    Errors as of `import_model`.
    """
    from mxc.onnx.onnx2mx.load import described

    return described(model_file)
