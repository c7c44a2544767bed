"""Values of ONNX's operators, computed by the package's own reference: of constants, and of what converters ask."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mxc.onnx.package import onnx_package


def evaluated(op_type: str, inputs: Sequence[np.ndarray | None], attributes: Mapping[str, Any], opset: int,
              outputs: int = 1) -> list[np.ndarray]:
    """The outputs of one operator. None: an input that is left out; an empty vector of float32 is one too."""
    onnx = onnx_package(op_type)
    names = ["" if each is None else f"x{i}" for i, each in enumerate(inputs)]
    node = onnx.helper.make_node(op_type, names, [f"y{i}" for i in range(outputs)], **attributes)
    return run_node(node, {name: each for name, each in zip(names, inputs, strict=True) if each is not None}, opset)


def run_node(node: Any, values: Mapping[str, np.ndarray], opset: int) -> list[np.ndarray]:
    """The outputs of a node, of its inputs by name."""
    onnx = onnx_package(node.op_type)
    helper = onnx.helper
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
              for name, array in values.items()]
    names = [name for name in node.output if name]
    results = [onnx.ValueInfoProto(name=name) for name in names]
    graph = helper.make_graph([node], "node", inputs, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    with np.errstate(all="ignore"):
        return [np.asarray(each) for each in onnx.reference.ReferenceEvaluator(model).run(None, dict(values))]
