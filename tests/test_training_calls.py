"""Short programs with gradients and executors answer and raise what MXNet 1.9.1 does (golden/training_calls.json)."""
from __future__ import annotations

import importlib
import json
import math
from pathlib import Path

import numpy as np
import pytest

import mxc as mx

training_calls = importlib.import_module("golden.training_calls")
REAL = json.loads((Path(__file__).parent / "golden" / "training_calls.json").read_text())
# MXNet's kernels of float32 for these are others than those of its other dtypes, which answer as mxc does.
OTHER_KERNEL = {"not finite: Activation relu", "not finite: LeakyReLU leaky", "not finite: LeakyReLU elu"}
# Where mxc answers otherwise.
OTHERS = {"ends: shuffle behind BlockGrad": "bound", "ends: a label behind shuffle": "bound"}  # nothing flows there


def same(ours, theirs) -> bool:
    """Equal, but for rounding, and an error for classes of which mxc's is each."""
    if isinstance(theirs, dict) and "error" in theirs:
        return isinstance(ours, dict) and theirs["error"][0] in ours.get("error", ())
    if isinstance(theirs, (list, dict)):
        keys = theirs if isinstance(theirs, dict) else range(len(theirs))
        return type(ours) is type(theirs) and len(ours) == len(theirs) and all(same(ours[k], theirs[k]) for k in keys)
    if isinstance(theirs, float):
        return isinstance(ours, float) and math.isclose(ours, theirs, rel_tol=2e-3, abs_tol=1e-7)
    return type(ours) is type(theirs) and ours == theirs


def test_every_program_is_recorded():
    assert REAL.keys() == set(training_calls.CASES)


@pytest.mark.parametrize("case", REAL)
def test_answers_as_mxnet(case: str):
    real = OTHERS.get(case, REAL[case])
    if case in OTHER_KERNEL:
        real["float32"] = real["float64"]
    ours = training_calls.answer(mx, case)
    assert same(ours, real), (ours, real)


@pytest.mark.parametrize("function", [mx.sym.relu, lambda x: mx.sym.Activation(x, act_type="relu")])
def test_the_gradient_of_relu_at_nan_in_a_graph(function):
    executor = (function(mx.sym.Variable("x") * 2) * 3).simple_bind(mx.cpu(), x=(2, 3))
    executor.arg_dict["x"][:] = mx.nd.array([[math.nan, -1, 0], [1, math.inf, -math.inf]])
    executor.forward(is_train=True)
    executor.backward([mx.nd.ones((2, 3))])
    np.testing.assert_array_equal(executor.grad_dict["x"].asnumpy(), [[math.nan, 0, 0], [6, 6, 0]])


@pytest.mark.parametrize("name", training_calls.OF_VALUES)
def test_backward_that_needs_what_forward_computes_is_refused_before_it_ran(name: str):
    with pytest.raises(mx.base.MXNetError, match=r"needs a value of .*no forward has run"):
        training_calls._backward(training_calls.OF_VALUES[name])(mx)


def test_backward_before_forward_leaves_the_outputs_alone():
    x = mx.sym.Variable("x")
    executor = mx.sym.Group([x * 2, mx.sym.BlockGrad(mx.sym.exp(x))]).simple_bind(mx.cpu(), x=(2, 3), grad_req="add")
    for output in executor.outputs:
        output[:] = 7
    for _ in range(2):
        executor.backward([mx.nd.ones((2, 3))] * 2)
    np.testing.assert_array_equal(executor.grad_dict["x"].asnumpy(), np.full((2, 3), 4))
    for output in executor.outputs:
        np.testing.assert_array_equal(output.asnumpy(), np.full((2, 3), 7))


def test_an_output_never_lies_in_an_argument():
    x = mx.sym.Variable("x")
    first = mx.sym.exp(x).bind(mx.cpu(), {"x": mx.nd.array([[0.0, 1], [2, 3]])})
    then = mx.sym.cumsum(x, axis=0).bind(mx.cpu(), {"x": first.outputs[0]}, shared_exec=first)
    values = first.forward()[0].asnumpy()
    np.testing.assert_array_equal(then.forward()[0].asnumpy(), values.cumsum(axis=0))
    np.testing.assert_array_equal(first.outputs[0].asnumpy(), values)


def test_two_outputs_never_share_memory():
    x = mx.sym.Variable("x")
    twice = x * 2
    first = mx.sym.Group([twice, twice]).simple_bind(mx.cpu(), x=(2,))
    then = mx.sym.Group([x * 3, x * 4]).bind(mx.cpu(), {"x": mx.nd.ones(2)}, shared_exec=first)
    assert [array.asnumpy().tolist() for array in then.forward()] == [[3, 3], [4, 4]]


def test_an_operator_without_a_gradient_is_named_when_a_graph_is_bound():
    x = mx.sym.Variable("x")
    with pytest.raises(mx.base.MXNetError, match=r"shuffle mixed> has no gradient.*BlockGrad"):
        (mx.sym.shuffle(x * 2, name="mixed") + 1).simple_bind(mx.cpu(), x=(2, 3))
