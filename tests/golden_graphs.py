"""Golden cases as graphs: one operator over variables, with the gradients that were asked for."""
from __future__ import annotations

import numpy as np
from golden.cases import Answer, load

from mxc.compiler.graph.graph import Entry, Graph, Node, variable
from mxc.compiler.ops import table
from mxc.compiler.ops.infer import input_names

TOLERANCE = {"float16": (1e-2, 4e-3), "float32": (1e-4, 1e-5), "float64": (1e-9, 1e-11)}
# MXNet computes these in float32, or with float32 constants, whatever the dtype.
ROUGH = ("LeakyReLU", "MakeLoss", "degrees", "radians",
         *(f"_image_random_{kind}" for kind in ("contrast", "saturation", "hue")))

# Gradients in which we differ from MXNet on purpose: docs/differences.md.
OURS = ("Pooling-avg_full-float32", "Pooling-avg_3d_pad-float32", "LeakyReLU-selu", "SoftmaxActivation-instance",
        "SoftmaxOutput-out_grad-float32")


def graph_of(answer: Answer) -> Graph:
    """The case's operator over one variable for each input; outputs: the visible ones."""
    case = answer.case
    op = table.get(case.op)
    params = op.parse_attrs(case.attrs, case.name)
    node = Node(op, "op", case.attrs, params)
    names = [i.name for i in case.inputs] if case.list_input else input_names(node)
    node.inputs = [Entry(variable(name)) for name in names]
    return Graph([Entry(node, i) for i in range(op.num_visible(params))])


def arrays_of(answer: Answer) -> dict[str, np.ndarray]:
    """Inputs, auxiliary states and head gradients by the names that the compiled graph gives them."""
    arrays = {i.name: np.zeros(i.shape, i.dtype) for i in answer.case.inputs}
    heads = {f"_head_grad_{i}": head for i, head in enumerate(answer.heads)}
    return {**arrays, **answer.inputs, **heads}


def requests_of(answer: Answer) -> dict[str, str]:
    """grad_req: "write" for every input whose gradient was recorded."""
    return dict.fromkeys(answer.grads, "write") if answer.case.train else {}


def tolerance(answer: Answer, dtype: str) -> tuple[float, float]:
    """Relative and absolute: that of the coarsest float dtype among the inputs and the result; integers are exact."""
    if answer.case.op == "_image_random_hue" and dtype == "uint8":
        return 0.0, 1.0  # Kernels add up in another order, so about a whole number one less may come of it.
    floats = {i.dtype for i in answer.case.inputs} | {dtype} | ({"float32"} if answer.case.op in ROUGH else set())
    return next((limits for name, limits in TOLERANCE.items() if name in floats), (0.0, 0.0))


def answered() -> list[Answer]:
    """The cases that MXNet answered, of operators in the table."""
    return [a for a in load() if a.error is None and table.has(a.case.op)]


def compare(answer: Answer, sinks: list, results: list[np.ndarray], aux: dict[str, np.ndarray]) -> None:
    """Assert that outputs, gradients and auxiliary states are those that were recorded."""
    outputs = iter(answer.outputs)
    for sink, result in zip(sinks, results, strict=True):
        if sink.kind == "aux":
            continue
        if sink.kind == "grad" and answer.case.name.startswith(OURS):
            continue
        expected = next(outputs) if sink.kind == "output" else answer.grads[sink.name]
        rtol, atol = tolerance(answer, str(expected.dtype))
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape), sink
        np.testing.assert_allclose(result, expected, rtol, atol, err_msg=f"{sink}")
    for name, expected in answer.aux.items():
        if name in aux:
            np.testing.assert_allclose(aux[name], expected, *tolerance(answer, str(expected.dtype)), err_msg=name)
