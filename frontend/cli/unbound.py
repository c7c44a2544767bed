"""A model of which the shapes and dtypes are known, but that has no arrays: what can be shown of it needs none."""
from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import mxc
from mxc.cli.model import (
    Shape,
    UsageError,
    check_names,
    gradients,
    is_artifact,
    known_shapes,
    parameter_file,
    set_that_agrees,
    told_of,
    without_labels,
)

Facts = dict[str, tuple[Shape, str]]


class Unbound(NamedTuple):
    """symbol: the model. graph: its graph, with the shape and dtype of every entry. grad_req: of a training step."""

    symbol: Any
    graph: Any
    grad_req: dict[str, str]

    @property
    def facts(self) -> Facts:
        """Shape and dtype of each argument and auxiliary state."""
        return {node.name: (self.graph.facts.shape[i][0], self.graph.facts.dtype[i][0])
                for i, node in enumerate(self.graph.nodes) if node.op is None}

    def compiled(self, train: bool) -> Any:
        """What the compiler makes of it for this machine (compiler.api.Compiled)."""
        from mxc.runtime import without_arrays

        return without_arrays.compiled(self.graph, self.grad_req, train)

    def watch_passes(self, train: bool, watch: Callable[[str, Any, Any], None]) -> None:
        """Tell `watch` what each pass makes of the graph: its name, the graph before it and after it."""
        from mxc.runtime import without_arrays

        without_arrays.watch_passes(self.graph, self.grad_req, train, watch)


def open_unbound(options: argparse.Namespace, shapes: dict[str, Shape], dtypes: dict[str, str], train: bool) -> Unbound:
    """The command line's model, for inputs of these shapes and dtypes; those of an artifact's plan are added.

    Raises UsageError for options that name no input or leave a shape open, and MXNetError for what the model or the
    shapes of its parameters do not allow.
    """
    from mxc.compiler.passes.infer import infer
    from mxc.runtime import runner
    from mxc.util import is_np_shape

    runner.chosen()  # wrong in a command that runs nothing too, as other settings are
    if is_artifact(options.model):
        symbol, parameters = _of_artifact(options, shapes)
    else:
        path = parameter_file(options)
        symbol = mxc.sym.load(options.model)
        parameters = {} if path is None else described(path)
    if not train:
        symbol = without_labels(symbol, {**{name: shape for name, (shape, _) in parameters.items()}, **shapes})
    names = [*symbol.list_arguments(), *symbol.list_auxiliary_states()]
    check_names((*shapes, *dtypes), symbol.list_arguments(), options.model)
    with told_of(options.model, shapes):
        known = known_shapes(options, symbol, {name: shape for name, (shape, _) in parameters.items()}, shapes,
                             bool(parameters))
        graph = infer(symbol.graph, {name: known.get(name) for name in names},
                      {name: dtypes.get(name) for name in names}, is_np_shape())
    return Unbound(symbol, graph, gradients(symbol, shapes, train))


def described(path: str) -> Facts:
    """Shape and dtype of each array of a parameter file, by the name that the model has for it."""
    from mxc import parameter_files
    from mxc.runtime.ndarray_file import own_name

    return {own_name(key): facts for key, facts in parameter_files.described(path).items()}


def _of_artifact(options: argparse.Namespace, shapes: dict[str, Shape]) -> tuple[Any, Facts]:
    """The symbol of an artifact, and its parameters' facts. Adds the shapes of the first plan that agrees."""
    from mxc.runtime.artifact import Artifact

    if options.dtype:
        raise UsageError(f"--dtype: {options.model} was compiled for the dtypes it has; compile it anew for others")
    artifact = Artifact(options.model, mxc.VERSION)
    shapes |= set_that_agrees([{name: stored.shapes[name] for name in artifact.inputs} for stored in artifact.plans],
                              options.model, shapes)
    return mxc.sym.load_json(artifact.json), {name: (shape, dtype) for name, (dtype, shape) in artifact.facts.items()}
