"""ONNX models for tests, and what onnxruntime and their symbols make of them. The tests skip without these packages."""
from __future__ import annotations

from typing import Any

import numpy as np

import mxc as mx

Arrays = dict[str, np.ndarray]


def described(name: str, shape: Any, dtype: Any = np.float32) -> Any:
    from onnx import helper

    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)


def model(nodes: list[Any], inputs: list[Any], outputs: list[Any], initializers: Any = (), opset: int = 21) -> Any:
    import onnx
    from onnx import helper

    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(initializers))
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return onnx.shape_inference.infer_shapes(made)  # outputs get their types


def computed(made: Any, inputs: Arrays) -> list[np.ndarray]:
    """What onnxruntime makes of a model."""
    import onnxruntime as ort

    ort.set_default_logger_severity(4)  # nothing of what it would rather have
    return ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, inputs)


def run(found: Any, inputs: Arrays) -> list[np.ndarray]:
    """What the symbol of a model makes of the same inputs."""
    values = {name: mx.nd.array(np.atleast_1d(array), dtype=array.dtype)
              for name, array in {**found.parameters, **inputs}.items()}
    executor = found.symbol.bind(mx.cpu(), {n: v for n, v in values.items() if n not in found.states},
                                 aux_states={n: v for n, v in values.items() if n in found.states})
    return [output.asnumpy() for output in executor.forward(is_train=False)]


def assert_same(got: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    """Equal within 1e-5 of the largest value. An array without axes is one of one element here."""
    for ours, theirs in zip(got, wanted, strict=True):
        assert ours.shape == (theirs.shape or (1,))
        scale = np.abs(theirs[np.isfinite(theirs)]).max(initial=1e-6)
        np.testing.assert_allclose(ours.reshape(theirs.shape), theirs, rtol=1e-5, atol=1e-5 * scale)
