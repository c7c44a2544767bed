"""Reading an ONNX model as a symbol and its parameters."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mxc.compiler.error import ArgumentError, MXNetError, UnsupportedError, nearest
from mxc.compiler.ops import table
from mxc.onnx.extents import FreeDimensions
from mxc.onnx.mx2onnx.writer import FUNCTIONS
from mxc.onnx.onnx2mx import arrange, elementwise, layers, recurrent, reductions, windows
from mxc.onnx.onnx2mx.dtypes import dtype_of
from mxc.onnx.onnx2mx.evaluation import run_node
from mxc.onnx.onnx2mx.reader import Arrays, Call, Converter, Reader, Tensor
from mxc.onnx.package import onnx_package
from mxc.symbol import Group, Symbol

TABLE: dict[str, Converter] = {**elementwise.CONVERTERS, **windows.CONVERTERS, **layers.CONVERTERS,
                               **arrange.CONVERTERS, **reductions.CONVERTERS, **recurrent.CONVERTERS}
# What is computed of shapes and constants alone, whatever the symbol has; `TABLE` has no entries for these.
CONSTANT = {"Constant", "ConstantOfShape", "Range", "Shape", "Size"}
OLDEST = 13  # the oldest opset that converters know; models of older ones are converted to it first
DOMAINS = ("", "ai.onnx")
# Attributes and constants are the file's. Where they do not fit each other, that shows where converters, NumPy or the
# package's reference use them.
UNFIT = (ArithmeticError, AttributeError, LookupError, MemoryError, NotImplementedError, RuntimeError, TypeError,
         ValueError)


class Imported(NamedTuple):
    """A symbol, and the values of its parameters, the names of auxiliary states among them."""

    symbol: Symbol
    parameters: dict[str, np.ndarray]
    states: set[str]


def symbol_of(model: Any, shapes: Mapping[str, Sequence[int | str]] | None = None) -> Imported:
    """The symbol of a ModelProto.

    shapes: of inputs, in place of those in the model; a dimension that is a text is free.
    Raises UnsupportedError naming all nodes, operators and attributes that MXNet has no counterpart of, ArgumentError
    for a shape of what is no input, MXNetError where a node does not fit its inputs.
    """
    model = prepared(model)
    graph, opset = model.graph, opset_of(model)
    reader = Reader(FreeDimensions())
    values = {each.name: each for each in graph.initializer}
    given = dict(shapes or {})
    names = [each.name for each in graph.input if each.name not in values]
    for name in given:
        if name not in names:
            raise ArgumentError(f"{name!r} is no input of the model{nearest(name, names)}; its inputs are "
                                f"{', '.join(names)}")
    for each in graph.input:
        if each.name in names:
            dtype = dtype_of(each.type.tensor_type.elem_type, f"input {each.name!r}")
            reader.add_input(each.name, given.get(each.name) or described_shape(each), dtype)
    onnx = onnx_package("import_model")
    for name, proto in values.items():
        array = onnx.numpy_helper.to_array(proto)
        reader.add_constant(name, (array, array))
    if graph.sparse_initializer:
        raise UnsupportedError("the model has sparse initializers, of which there is no counterpart")
    read_nodes(reader, graph.node, opset, {each.name: each for each in model.functions})
    outputs = [as_output(reader, each) for each in graph.output]
    return Imported(Group(outputs), reader.parameters, reader.states)


def prepared(model: Any) -> Any:
    """The model in an opset that converters know, with functions in place of operators that are made of others."""
    onnx = onnx_package("import_model")
    if opset_of(model) < OLDEST:
        try:
            model = onnx.version_converter.convert_version(model, OLDEST)
        except Exception as error:  # the converter's own class
            raise UnsupportedError(f"the model has opset {opset_of(model)}, and onnx cannot convert it to {OLDEST}: "
                                   f"{' '.join(str(error).split())}") from None
    own = [(FUNCTIONS, each.name) for each in model.functions if each.domain == FUNCTIONS]
    if len(own) < len(model.functions):
        model = inlined(onnx, model, own, exclude=True)
    made_of = {node.op_type for node in model.graph.node if node.domain in DOMAINS and node.op_type not in TABLE
               and node.op_type not in CONSTANT and has_body(onnx, node.op_type, opset_of(model))}
    if made_of:
        for node in model.graph.node:
            if node.domain in DOMAINS and node.op_type in made_of:
                add_defaults(onnx, node, opset_of(model))
        model = inlined(onnx, model, [("", name) for name in made_of], inline_schema_functions=True)
    return model


def inlined(onnx: Any, model: Any, names: list[tuple[str, str]], **how: bool) -> Any:
    """A model with functions taken apart. Raises MXNetError where the package onnx cannot."""
    try:
        return onnx.inliner.inline_selected_functions(model, names, **how)
    except Exception as error:  # of several classes, and RuntimeError for what a node lacks
        raise MXNetError("onnx cannot take the model's functions apart, or operators that are made of others: "
                         f"{' '.join(str(error).split())}") from None


def has_body(onnx: Any, op_type: str, opset: int) -> bool:
    """Whether ONNX says what an operator is by others."""
    if not onnx.defs.has(op_type, opset):
        return False
    schema = onnx.defs.get_schema(op_type, opset)
    return bool(schema.has_function or schema.has_context_dependent_function)


def add_defaults(onnx: Any, node: Any, opset: int) -> None:
    """Give a node the attributes that it leaves out: the bodies of operators refer to all."""
    there = {each.name for each in node.attribute}
    for name, attribute in onnx.defs.get_schema(node.op_type, opset).attributes.items():
        if name not in there and attribute.default_value.type:
            node.attribute.append(attribute.default_value)


def opset_of(model: Any) -> int:
    """The version of ONNX's own operators that a model uses."""
    return next((each.version for each in model.opset_import if each.domain in DOMAINS), 1)


def described_shape(value: Any) -> list[int | str]:
    """The shape of an input; a dimension without a size has a name."""
    if not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
        raise UnsupportedError(f"input {value.name!r}: the model does not say its shape; give it")
    return [d.dim_value if d.HasField("dim_value") and d.dim_value > 0 else d.dim_param or f"{value.name}_{i}"
            for i, d in enumerate(value.type.tensor_type.shape.dim)]


def read_nodes(reader: Reader, nodes: Sequence[Any], opset: int, functions: Mapping[str, Any]) -> None:
    """Convert all nodes. Raises UnsupportedError with what is wrong with all of those that have no counterpart."""
    faults: list[str] = []
    for node in nodes:
        if any(name and name not in reader.tensors for name in node.input):
            continue  # what it reads has no counterpart
        call = Call(reader, node, attributes_of(node), opset)
        try:
            made = results_of(call, functions)
        except UnsupportedError as error:
            faults.append(about(call, error))
            continue
        except (MXNetError, *UNFIT) as error:
            raise MXNetError(about(call, error) + reader.sizes_text()) from error
        for name, tensor in zip(node.output, made, strict=False):
            if name:
                reader.tensors[name] = tensor
    if faults:
        raise UnsupportedError("\n".join(dict.fromkeys(faults)))


def about(call: Call, error: Exception) -> str:
    """The text of an error, with the node that it is about."""
    text = str(error)
    return text if text.startswith(call.op_type) else f"{call.op_type} {call.name!r}: {text}"


def attributes_of(node: Any) -> dict[str, Any]:
    """The attributes of a node as Python values, texts as str."""
    onnx = onnx_package(node.op_type)

    def plain(value: Any) -> Any:
        if isinstance(value, bytes):
            return value.decode()
        return [plain(each) for each in value] if isinstance(value, list) else value

    return {each.name: plain(onnx.helper.get_attribute_value(each)) for each in node.attribute}


def results_of(call: Call, functions: Mapping[str, Any]) -> list[Tensor]:
    """The tensors of a node's outputs."""
    node, op_type = call.node, call.op_type
    if node.domain == FUNCTIONS and op_type in functions:
        return of_function(call)
    if node.domain not in DOMAINS or (op_type not in TABLE and op_type not in CONSTANT):
        domain = f" of the domain {node.domain!r}" * (node.domain not in DOMAINS)
        call.refuse(f"this operator{domain}")
    check(call)
    arrays = constants_of(call)
    if arrays is not None:
        first, second = arrays
        names = [name for name in node.output if name]
        by_name = {name: call.reader.add_constant(name, (a, b)) for name, a, b in zip(names, first, second,
                                                                                      strict=True)}
        return [by_name.get(name) or call.tensor() for name in node.output]
    if op_type in CONSTANT:
        call.refuse("inputs that are computed")
    made = TABLE[op_type](call)
    call.attributes_read()
    return made if isinstance(made, list) else [made]


def check(call: Call) -> None:
    """Raise MXNetError for a node that ONNX does not allow: that lacks an input or an attribute, for example."""
    onnx = onnx_package("import_model")
    if onnx.defs.get_schema(call.op_type, call.opset).deprecated:  # models have it, and the checker allows none
        return
    context = onnx.checker.C.CheckerContext()
    context.ir_version, context.opset_imports = onnx.IR_VERSION, {"": call.opset}
    try:
        onnx.checker.check_node(call.node, context)
    except onnx.checker.ValidationError as error:
        raise MXNetError(f"{call.op_type} {call.name!r}: {str(error).splitlines()[0]}") from None


def constants_of(call: Call) -> tuple[list[np.ndarray], list[np.ndarray]] | None:
    """The outputs of a node that depend on constants and shapes alone, for both sizes of free dimensions, else None."""
    node = call.node
    if node.op_type in ("Shape", "Size") and call.tensor().arrays is None:
        shapes = [np.broadcast_to(np.float32(0), shape) for shape in call.tensor().extents]
        inputs: list[Arrays | None] = [(shapes[0], shapes[1])]
    else:
        inputs = [None if each is None else each.arrays for each in call.inputs]
        if any(each is not None and each.arrays is None for each in call.inputs):
            return None
    pairs = {name: each for name, each in zip(node.input, inputs, strict=True) if each is not None}
    results = [run_node(node, {name: pair[i] for name, pair in pairs.items()}, call.opset) for i in (0, 1)
               if i == 0 or any(pair[0] is not pair[1] for pair in pairs.values())]
    return results[0], results[-1]


def of_function(call: Call) -> list[Tensor]:
    """An operator of MXNet's that was exported as a function, with its parameters as attributes."""
    attributes = dict(call.attributes)
    name = attributes.pop("operator")
    if not table.has(name):
        call.refuse(f"the operator {name!r}")
    call.read.update(call.attributes)
    return call.many(name, *call.tensors(), **attributes)


def as_output(reader: Reader, value: Any) -> Symbol:
    """An output of the graph. A bool one has that dtype; inside of the graph it may be 0 and 1 of another."""
    if value.name not in reader.tensors:
        raise MXNetError(f"output {value.name!r}: no node makes it")
    tensor = reader.tensors[value.name]
    declared = value.type.tensor_type.elem_type
    if declared and tensor.symbol is not None and dtype_of(declared, f"output {value.name!r}") == "bool" and \
            tensor.dtype != "bool":
        (tensor,) = reader.make("Cast", [tensor], f"{value.name}_bool", dtype="bool")
    if tensor.symbol is None:
        (tensor,) = reader.make("_copy", [tensor], value.name)
    return reader.symbol(tensor)


def described(path: str | os.PathLike[str]) -> dict[str, list[tuple[str, tuple[int | str, ...]]]]:
    """Names and shapes of a model's inputs and outputs; a free dimension is 0."""
    from mxc.onnx.package import read_model

    model = read_model(path)
    values = {each.name for each in model.graph.initializer}

    def sizes(value: Any) -> tuple[int | str, ...]:
        return tuple(d.dim_value for d in value.type.tensor_type.shape.dim)

    return {"input_tensor_data": [(each.name, sizes(each)) for each in model.graph.input if each.name not in values],
            "output_tensor_data": [(each.name, sizes(each)) for each in model.graph.output]}
