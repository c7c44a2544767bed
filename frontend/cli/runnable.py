"""A model that is ready to run for inference, whatever file it comes from."""
from __future__ import annotations

import argparse
from collections.abc import Set
from typing import TYPE_CHECKING, Any

from mxc.cli.inputs import Given, Shape, made_up_parameter
from mxc.cli.model import (
    bind_model,
    check_names,
    chosen_shapes,
    is_artifact,
    open_artifact,
    open_whole_artifact,
    parameter_file,
    parse_dtypes,
)

if TYPE_CHECKING:
    import numpy as np

MADE_UP = "made up"


class Bound:
    """A model bound to arrays.

    inputs: shape and dtype by name. outputs: names, each there once. parameters: the file they come from, or MADE_UP.
    sizes: bytes of each parameter and auxiliary state. symbol: the model.
    """

    def __init__(self, executor: Any, inputs: dict[str, tuple[Shape, str]], outputs: list[str], parameters: str):
        self.executor, self.inputs, self.outputs, self.parameters = executor, inputs, outputs, parameters
        self.symbol = executor._symbol
        self.sizes = {name: array._array.nbytes for name, array in (executor.arg_dict | executor.aux_dict).items()
                      if name not in inputs}

    @property
    def plan(self) -> Any:
        """The plan of its runs (compiler.plan.Plan)."""
        return self.executor.compiled().plan

    def clone(self) -> Bound:
        """A model that can run at the same time, on the same parameters, with inputs of the same values that are its
        own."""
        from mxc.symbol.binding import bind  # takes inputs of any name, as Symbol's methods do not

        old = self.executor
        args = {name: array.copy() if name in self.inputs else array for name, array in old.arg_dict.items()}
        executor = bind(self.symbol, old._ctx, args, None, "null", old.aux_dict, None, None)
        executor._core.compiler = old._core.compiler
        return Bound(executor, self.inputs, self.outputs, self.parameters)

    def kernels(self) -> list[str]:
        """The keys of the kernels that a run has."""
        core = self.executor._core
        return [] if core.is_empty else core.compiled().plan.kernels

    def set(self, name: str, array: np.ndarray) -> None:
        """Give an input its values."""
        self.executor.arg_dict[name][:] = array

    def run(self) -> None:
        """Compute the outputs, and wait for them."""
        for output in self.executor.forward(is_train=False):
            output.wait_to_read()

    @property
    def operators(self) -> Set[str]:
        """The names of the model's operators."""
        return {node.op.name for node in self.symbol.graph.nodes if node.op is not None}

    def values(self) -> list[np.ndarray]:
        """The outputs of the last run."""
        return [output.asnumpy() for output in self.executor.outputs]


class Stored:
    """As Bound, of an artifact as programs run it: without a compiler, and without what a Symbol needs."""

    def __init__(self, predictor: Any, inputs: dict[str, tuple[Shape, str]], parameters: str):
        self.predictor, self.inputs, self.parameters = predictor, inputs, parameters
        self.outputs, self.sizes = list(predictor.output_names), predictor._sizes()
        self._given: dict[str, np.ndarray] = {}
        self._results: dict[str, np.ndarray] = {}

    def clone(self) -> Stored:
        """A model that can run at the same time, with inputs of the same values."""
        other = Stored(self.predictor.clone(), self.inputs, self.parameters)
        other._given = dict(self._given)
        return other

    @property
    def plan(self) -> Any:
        """The plan of its runs, when one was done."""
        return self.predictor._plan({name: shape for name, (shape, _) in self.inputs.items()})

    def kernels(self) -> list[str]:
        """The keys of the kernels that a run has, when one was done."""
        return list(self.plan.kernels)

    def set(self, name: str, array: np.ndarray) -> None:
        """Give an input its values."""
        self._given[name] = array

    def run(self) -> None:
        """Compute the outputs."""
        self._results = self.predictor.predict(**self._given)

    @property
    def operators(self) -> Set[str]:
        """The names of the model's operators."""
        return self.predictor.operators

    def values(self) -> list[np.ndarray]:
        """The outputs of the last run."""
        return list(self._results.values())


def open_model(options: argparse.Namespace, shapes: dict[str, Shape], given: Given, default: str,
               needs_values: bool) -> Bound | Stored:
    """The command line's model with its inputs set. default: the word for inputs that are not given. needs_values: else
    parameters are made up where there is no file of them. Of a symbol's parameters only what runs read is held.

    Raises UsageError for options that name no input or leave a shape open, and MXNetError for what the model, its
    parameters or the values do not allow.
    """
    if not is_artifact(options.model):
        bound = open_bound(options, shapes, given, default, needs_values)
        bound.executor._release(bound.sizes)
        return bound
    predictor, path = _with_values(options, needs_values, open_artifact(options), str(options.params or options.model))
    _settle(given, predictor, shapes, options.model)
    shapes |= predictor.shapes_for({name: shape for name, shape in shapes.items() if name in predictor.input_names}) \
        or chosen_shapes(predictor, options.model, shapes)
    check_names((*shapes, *given.words), (*predictor.input_names, *predictor.further_inputs), options.model)
    dtypes = predictor.input_dtypes
    model = Stored(predictor, {name: (shapes[name], dtypes[name]) for name in predictor.input_names}, path)
    _fill(model, given, default)
    return model


def open_bound(options: argparse.Namespace, shapes: dict[str, Shape], given: Given, default: str,
               needs_values: bool) -> Bound:
    """As `open_model`, with an executor; that of an artifact runs the artifact's plans, where there is one for the
    shapes."""
    from mxc.artifact import distinct_outputs
    from mxc.runtime.array import dtype_name

    if is_artifact(options.model):
        predictor, path = _with_values(options, needs_values, *open_whole_artifact(options))
        _settle(given, predictor, shapes, options.model)
        shapes |= predictor.shapes_for(shapes) or chosen_shapes(predictor, options.model, shapes)
        executor = predictor.executor(shapes, grad_req="null") if shapes in predictor.input_shapes else \
            predictor._bound_here(shapes)
    else:
        _, executor = bind_model(options, shapes, parse_dtypes(options.dtype), needs_values,
                                 settle=lambda names: given.settle(names, shapes, {}, options.model))
        path = parameter_file(options) or MADE_UP
    names = {*shapes, *given.words}
    inputs = {name: (array.shape, dtype_name(array.dtype)) for name, array in executor.arg_dict.items()
              if name in names or name.endswith("label")}
    check_names(given.words, inputs, options.model)
    if path == MADE_UP and not needs_values:
        for name, array in (executor.arg_dict | executor.aux_dict).items():
            if name not in inputs:
                array[:] = made_up_parameter(name, array.shape, dtype_name(array.dtype))
    model = Bound(executor, inputs, distinct_outputs(executor._symbol), path)
    _fill(model, given, default)
    return model


def _with_values(options: argparse.Namespace, needs_values: bool, predictor: Any, path: str) -> tuple[Any, str]:
    """The command line's artifact, and where its parameters come from: those that it lacks are made up, where that may
    be."""
    if predictor.missing_params and not needs_values:
        made = {name: made_up_parameter(name, shape, dtype)
                for name, (shape, dtype) in predictor.missing_params.items()}
        return open_artifact(options, made), MADE_UP
    return predictor, path


def _settle(given: Given, predictor: Any, shapes: dict[str, Shape], model: str) -> None:
    """Find which of an artifact's inputs files are, and read pictures in the size that the first of its plans that
    agrees with --shape takes."""
    fitting = [each for each in predictor.input_shapes if all(each.get(name, shape)[1:] == shape[1:]
                                                              for name, shape in shapes.items())]
    given.settle((*predictor.input_names, *predictor.further_inputs), shapes, (fitting or predictor.input_shapes)[0],
                 model)


def _fill(model: Bound | Stored, given: Given, default: str) -> None:
    for name, (shape, dtype) in model.inputs.items():
        model.set(name, given.values(name, shape, dtype, default))
