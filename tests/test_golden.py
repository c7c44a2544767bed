"""The operator table's reference against what the real MXNet computed: every golden case."""
from __future__ import annotations

import numpy as np
import pytest
from golden.cases import Answer, load

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, Node, variable
from mxc.compiler.ops import table
from mxc.compiler.ops.infer import infer_node, input_names

TOLERANCE = {"float16": (4e-3, 4e-3), "float32": (3e-5, 3e-6), "float64": (1e-10, 1e-12)}
# MXNet computes these in float32, or with float32 constants, whatever the dtype.
ROUGH = ("LeakyReLU", "degrees", "radians", *(f"_image_random_{kind}" for kind in ("contrast", "saturation", "hue")))
ANSWERS = load()
KNOWN = [a for a in ANSWERS if table.has(a.case.op)]


def computed(answer: Answer) -> list[np.ndarray]:
    """The visible outputs that the reference computes for a case. Raises MXNetError where it is refused."""
    case, op = answer.case, table.get(answer.case.op)
    params = op.parse_attrs(case.attrs, case.name)
    inputs = dict(answer.inputs)
    for item in case.inputs:
        inputs.setdefault(item.name, np.zeros(item.shape, item.dtype))
    node = Node(op, case.name, case.attrs, params, [Entry(variable(name)) for name in inputs])
    expected = list(inputs) if case.list_input else input_names(node)
    arrays = [inputs[name] for name in expected]
    shapes, dtypes = infer_node(node, [a.shape for a in arrays], [a.dtype.name for a in arrays])
    outputs = op.reference(params, arrays, dtypes, case.train)
    for i, (array, shape) in enumerate(zip(outputs, shapes, strict=True)):
        assert array.shape == shape, f"output {i}: inferred {shape}, computed {array.shape}"
    return outputs[:op.num_visible(params)]


def tolerance(answer: Answer, dtype: str) -> tuple[float, float]:
    """Relative and absolute: that of the coarsest float dtype among the inputs and the output; integers are exact."""
    floats = {i.dtype for i in answer.case.inputs} | {dtype} | ({"float32"} if answer.case.op in ROUGH else set())
    return next((limits for name, limits in TOLERANCE.items() if name in floats), (0.0, 0.0))


@pytest.mark.parametrize("answer", [a for a in KNOWN if a.error is None], ids=lambda a: a.case.name)
def test_outputs(answer: Answer) -> None:
    outputs = computed(answer)
    assert len(outputs) == len(answer.outputs)
    for ours, theirs in zip(outputs, answer.outputs, strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        rtol, atol = tolerance(answer, str(theirs.dtype))
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)


def is_taken(answer: Answer) -> bool:
    """Pooling of convention `same` over one axis, which MXNet takes in another spelling (test_pooling_same.py)."""
    return answer.case.attrs.get("pooling_convention") == "same" and "1d" in answer.case.name


@pytest.mark.parametrize("answer", [a for a in KNOWN if a.error is not None and not is_taken(a)],
                         ids=lambda a: a.case.name)
def test_refusals(answer: Answer) -> None:
    with pytest.raises(MXNetError):
        computed(answer)
