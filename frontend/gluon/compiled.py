"""Artifacts of blocks."""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from mxc import artifact, autograd
from mxc.compiler.error import ArgumentError, ArgumentTypeError
from mxc.gluon import nested
from mxc.gluon.hybrid_block import HybridBlock
from mxc.ndarray import NDArray


def compile(net: HybridBlock, data: Any, path: str | os.PathLike[str] | None = None) -> artifact.Predictor:
    """Compile a block for inference into an artifact, a file that `mxc.load` reads, and give it loaded.

    data: the inputs, which tell shapes and dtypes: an array, or a list with an array for each argument; a list of such
    lists for several sets of shapes. path: of the file; default is the block's name with `.mxc`.
    Raises ArgumentTypeError for what is no hybrid block and for inputs without arrays, and as `mxc.artifact.save` does.
    """
    if not isinstance(net, HybridBlock):
        raise ArgumentTypeError(f"only a HybridBlock has a graph to compile, got {type(net).__name__}")
    sets = _sets_of(data)
    with autograd.pause(train_mode=False):
        net(*sets[0])  # tells the parameters their shapes
    graph = net._traced(*nested.flatten(sets[0], "input"))
    params = net.collect_params()
    device = next(array for array in nested.leaves(sets[0]) if isinstance(array, NDArray)).context
    values = {name: params[name].data(device) for name in graph.symbol.list_inputs() if name in params}
    arguments, states = graph.symbol.list_arguments(), graph.symbol.list_auxiliary_states()
    executors: list[Any] = []
    for inputs in sets:
        arrays = [a for a in nested.flatten(inputs, "input")[0] if a is not None]
        if len(arrays) != len(graph.inputs):
            raise ArgumentError(f"{net.name} takes {len(graph.inputs)} arrays, got {len(arrays)} in one set of inputs")
        given = values | dict(zip(graph.inputs, arrays, strict=True))
        executors.append(graph.symbol.bind(
            device, {name: given[name] for name in arguments}, grad_req="null",
            aux_states={name: given[name] for name in states},
            shared_exec=executors[0] if executors else None))
    target = os.fspath(path) if path is not None else f"{net.name or type(net).__name__.lower()}.mxc"
    artifact.save(target, executors, graph.inputs)
    return artifact.load(target)


def _sets_of(data: Any) -> list[Sequence[Any]]:
    """The arguments of each call."""
    if isinstance(data, NDArray):
        return [[data]]
    if not isinstance(data, (list, tuple)) or not any(isinstance(leaf, NDArray) for leaf in nested.leaves(data)):
        raise ArgumentTypeError(f"a block is compiled for arrays, got {type(data).__name__} without any")
    several = all(isinstance(each, (list, tuple)) for each in data)
    return list(data) if several else [data]
