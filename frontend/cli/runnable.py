"""A model that is ready to run, whatever file it comes from."""
from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from mxc.cli.inputs import Given, Shape, made_up_parameter
from mxc.cli.model import bind_model, check_names, parameter_file, parse_dtypes

if TYPE_CHECKING:
    import numpy as np

MADE_UP = "made up"


class Bound:
    """A model bound to arrays, for inference.

    inputs: shape and dtype by name. outputs: names, each there once. parameters: the file they come from, or MADE_UP.
    """

    def __init__(self, symbol: Any, executor: Any, shapes: dict[str, Shape], parameters: str):
        self.symbol, self.executor, self.parameters = symbol, executor, parameters
        self.inputs = {name: (array.shape, array.dtype.__name__) for name, array in executor.arg_dict.items()
                       if name in shapes or name.endswith("label")}
        listed = symbol.list_outputs()
        self.outputs = [name if listed.count(name) == 1 else f"{name}[{i}]" for i, name in enumerate(listed)]

    def set(self, name: str, array: np.ndarray) -> None:
        """Give an input its values."""
        self.executor.arg_dict[name][:] = array

    def run(self) -> None:
        """Compute the outputs, and wait for them."""
        for output in self.executor.forward(is_train=False):
            output.wait_to_read()

    def values(self) -> list[np.ndarray]:
        """The outputs of the last run."""
        return [output.asnumpy() for output in self.executor.outputs]


def open_model(options: argparse.Namespace, shapes: dict[str, Shape], given: Given, default: str,
               needs_values: bool) -> Bound:
    """The command line's model with its inputs set. default: the word for inputs that are not given. needs_values: else
    parameters are made up where there is no file of them.

    Raises UsageError for options that name no input or leave a shape open, and MXNetError for what the model, its
    parameters or the values do not allow.
    """
    symbol, executor = bind_model(options, shapes, parse_dtypes(options.dtype), needs_values)
    path = parameter_file(options)
    model = Bound(symbol, executor, shapes | dict.fromkeys(given.words, ()), path or MADE_UP)
    check_names(given.words, model.inputs, options.model)
    if path is None and not needs_values:
        for name, array in (executor.arg_dict | executor.aux_dict).items():
            if name not in model.inputs:
                array[:] = made_up_parameter(name, array.shape, array.dtype.__name__)
    for name, (shape, dtype) in model.inputs.items():
        model.set(name, given.values(name, shape, dtype, default))
    return model
