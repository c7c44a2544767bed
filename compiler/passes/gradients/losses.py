"""Losses: operators that begin a gradient of their own, and those that stop one."""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.graph import Entry
from mxc.compiler.passes.building import as_shape, filled
from mxc.compiler.passes.gradients.context import Gradient, loss


def _regression(g: Gradient, difference: Entry) -> list[Entry | None]:
    """`difference` times grad_scale over the number of outputs of a sample; the label gets none."""
    label = g.shape(g.inputs[1])
    count = prod(label) // label[0]
    return [g.scaled(difference, g.params.grad_scale / count), None]


def _difference(g: Gradient) -> Entry:
    out, label = g.outputs[0], g.inputs[1]
    return g.make("elemwise_sub", out, as_shape(g.builder, label, g.shape(out)))


@loss
def regression_output(g: Gradient) -> list[Entry | None]:
    """LinearRegressionOutput and LogisticRegressionOutput: (out - label) * grad_scale / outputs per sample."""
    return _regression(g, _difference(g))


@loss
def mae_regression_output(g: Gradient) -> list[Entry | None]:
    """sign(out - label) * grad_scale / outputs per sample."""
    return _regression(g, g.make("sign", _difference(g)))


@loss
def make_loss(g: Gradient) -> list[Entry | None]:
    """grad_scale everywhere; normalization batch divides it by the number of samples, valid by the number of elements
    above valid_thresh (at least 1)."""
    data, params = g.inputs[0], g.params
    shape, dtype = g.shape(data), g.dtype(data)
    if params.normalization != "valid":
        value = params.grad_scale / (shape[0] if params.normalization == "batch" else 1)
        return [filled(g.builder, shape, value, dtype)]
    above = g.make("_greater_scalar", data, scalar=float(params.valid_thresh))
    count = g.make("sum", above, axis=tuple(range(len(shape))), keepdims=True)
    each = g.make("_rdiv_scalar", g.make("_maximum_scalar", count, scalar=1.0), scalar=float(params.grad_scale))
    return [g.make("broadcast_to", each, shape=shape)]


@loss
def ones(g: Gradient) -> list[Entry | None]:
    """make_loss: 1 everywhere."""
    return [filled(g.builder, g.shape(g.inputs[0]), 1.0, g.dtype(g.inputs[0]))]


@loss
def svm_output(g: Gradient) -> list[Entry | None]:
    """The hinge loss' subgradient, squared unless use_linear; the label gets none.

    With s = data where the class is the label's and -data elsewhere, and v = margin - s: where v > 0 the gradient of s
    is -1 (use_linear) or -2 v, times regularization_coefficient.
    """
    data, label = g.inputs
    rows, classes = g.shape(data)
    dtype = g.dtype(data)
    numbers = as_shape(g.builder, g.make("_arange", start=0.0, stop=float(classes), dtype=dtype), (1, classes))
    hit = g.make("broadcast_equal", as_shape(g.builder, label, (rows, 1)), numbers)
    side = g.make("_plus_scalar", g.scaled(hit, 2.0), scalar=-1.0)
    slack = g.make("_rminus_scalar", g.make("elemwise_mul", side, data), scalar=float(g.params.margin))
    if g.params.use_linear:
        strength = g.make("_greater_scalar", slack, scalar=0.0)
    else:
        strength = g.scaled(g.make("_maximum_scalar", slack, scalar=0.0), 2.0)
    back = g.make("elemwise_mul", strength, side)
    return [g.scaled(back, -float(g.params.regularization_coefficient)), None]
