"""Writing a symbol and its parameters as an ONNX model."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import mxc
from mxc.compiler.error import UnsupportedError
from mxc.compiler.graph.compose import output_name
from mxc.compiler.graph.graph import Entry, Graph, Node, variable
from mxc.onnx.extents import axes_of
from mxc.onnx.mx2onnx import arrange, boxes, elementwise, layers, recurrent, reductions, sequences
from mxc.onnx.mx2onnx.writer import FUNCTIONS, IR_VERSION, OPSET, Call, Converter, GraphWriter

TABLE: dict[str, Converter] = {**elementwise.CONVERTERS, **layers.CONVERTERS, **arrange.CONVERTERS,
                               **reductions.CONVERTERS, **recurrent.CONVERTERS, **boxes.CONVERTERS,
                               **sequences.CONVERTERS}
LOSSES = {"SoftmaxOutput", "LinearRegressionOutput", "MAERegressionOutput", "LogisticRegressionOutput"}
LABEL = "label of this loss"  # no program's variable has a name with a space


def model_of(graph: Graph, parameters: Mapping[str, np.ndarray], shapes: Mapping[str, tuple[int | str, ...]],
             dtypes: Mapping[str, str]) -> Any:
    """The ModelProto of a graph.

    parameters: values of arguments and auxiliary states by name. shapes, dtypes: of its inputs; a dimension that is a
    text is free, and has that name in the model. Raises UnsupportedError with all operators and parameters of operators
    that ONNX has no counterpart of, MXNetError where shapes do not fit.
    """
    graph = without_labels(graph)
    names = {node.name for node in graph.variables}
    writer = GraphWriter(graph, {name: array for name, array in parameters.items() if name in names}, dict(shapes),
                         dict(dtypes))
    for node in graph.variables:
        writer.names[Entry(node)] = node.name
    faults = []
    for node in graph.nodes:
        if node.op is None or any(entry not in writer.names for entry in node.inputs):
            continue  # what it reads has no counterpart
        try:
            writer.convert(node, TABLE.get(node.op.name, of_parameters))
        except UnsupportedError as error:
            faults.append(error)
    if faults:
        raise UnsupportedError("\n".join(dict.fromkeys(map(str, faults))))
    return _model(writer)


def of_parameters(call: Call) -> str:
    """An operator that ONNX has no counterpart of: a constant, where it reads parameters alone."""
    value = call.writer.evaluated(Entry(call.node))
    if value is None:
        call.refuse("this operator")
    return call.constant(value)


def without_labels(graph: Graph) -> Graph:
    """The graph, in which each loss reads a variable of its own as label: in inference it is not looked at, nor is what
    would compute it."""
    copies: dict[Entry, Entry] = {}
    for node in graph.nodes:
        inputs = [copies[entry] for entry in node.inputs]
        if node.op is not None and node.op.name in LOSSES:
            inputs[1:] = [Entry(variable(f"{node.name}_{LABEL}"))]
        copy = node if node.op is None else Node(node.op, node.name, node.attrs, node.params, inputs)
        copies.update({Entry(node, i): Entry(copy, i) for i in range(node.num_outputs)})
    return Graph([copies[entry] for entry in graph.outputs])


def read_inputs(graph: Graph) -> list[str]:
    """The variables that the graph's values depend on in inference: all but the labels of losses."""
    pruned = without_labels(graph)
    labels = {entry.node for node in pruned.nodes if node.op is not None and node.op.name in LOSSES
              for entry in node.inputs[1:]}
    return [node.name for node in pruned.variables if node not in labels]


def _model(writer: GraphWriter) -> Any:
    """The nodes that were made, as a model with inputs and outputs."""
    helper, graph = writer.onnx.helper, writer.graph
    outputs: list[tuple[str, Entry]] = []
    made = {output for node in writer.nodes for output in node.output}
    for entry in graph.outputs:
        name = writer.names[entry]
        if name not in made or name in (each for each, _ in outputs):
            (copy,) = writer.add("Identity", [name], 1, f"{output_name(entry)}_copy")
            name = copy
        outputs.append((name, entry))
    needed = {name for node in writer.nodes for name in node.input}
    for name in writer.parameters:
        if name in needed:
            writer.initializers[name] = writer.parameters[name]
    initializers = [writer.onnx.numpy_helper.from_array(np.asarray(array, order="C"), name)
                    for name, array in writer.initializers.items() if name in needed]
    inputs = [_described(writer, name, writer.inputs[name], writer.dtype(Entry(node)))
              for node in graph.variables for name in [node.name] if name in writer.inputs]
    results = [_described(writer, name, writer.extents(entry), writer.dtype(entry)) for name, entry in outputs]
    made = helper.make_graph(writer.nodes, "model", inputs, results, initializers)
    opsets = [helper.make_opsetid("", OPSET)]
    if writer.functions:
        opsets.append(helper.make_opsetid(FUNCTIONS, 1))
    model = helper.make_model(made, opset_imports=opsets, functions=list(writer.functions.values()),
                              producer_name="mxc", producer_version=mxc.VERSION, ir_version=IR_VERSION)
    return model


def _described(writer: GraphWriter, name: str, extents: Any, dtype: str) -> Any:
    """An input or output with its dtype and shape; free dimensions have their names, those that follow none."""
    helper = writer.onnx.helper
    dims = [a if a == b else writer.free.name((a, b)) for a, b in axes_of(extents)]
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), dims)
