"""Losses: operators that begin a gradient of their own, and those that stop one."""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.graph import Entry
from mxc.compiler.passes.building import as_shape, filled
from mxc.compiler.passes.gradients.context import Gradient, ignores, loss


def _regression(g: Gradient, difference: Entry) -> list[Entry | None]:
    """`difference` times grad_scale over the number of outputs of a sample; the label gets none."""
    label = g.shape(g.inputs[1])
    count = prod(label) // label[0]
    return [g.scaled(difference, g.params.grad_scale / count), None]


def _difference(g: Gradient) -> Entry:
    assert g.node.op is not None
    out, (data, label) = g.outputs[0], g.inputs
    if g.again:
        out = g.make("sigmoid", data) if g.node.op.name == "LogisticRegressionOutput" else data
    return g.make("elemwise_sub", out, as_shape(g.builder, label, g.shape(out)))


@ignores("label")
@loss
def regression_output(g: Gradient) -> list[Entry | None]:
    """LinearRegressionOutput and LogisticRegressionOutput: (out - label) * grad_scale / outputs per sample."""
    return _regression(g, _difference(g))


@ignores("label")
@loss
def mae_regression_output(g: Gradient) -> list[Entry | None]:
    """sign(out - label) * grad_scale / outputs per sample."""
    return _regression(g, g.make("sign", _difference(g)))


@loss
def make_loss(g: Gradient) -> list[Entry | None]:
    """grad_scale everywhere; normalization batch divides it by the number of rows, which are along the last axis as in
    MXNet, valid by the number of elements above valid_thresh (at least 1)."""
    data, params = g.inputs[0], g.params
    shape, dtype = g.shape(data), g.dtype(data)
    if params.normalization != "valid":
        value = params.grad_scale / (prod(shape[:-1]) if params.normalization == "batch" else 1)
        return [filled(g.builder, shape, value, dtype)]
    above = g.make("_greater_scalar", data, scalar=float(params.valid_thresh))
    count = g.make("sum", above, axis=tuple(range(len(shape))), keepdims=True)
    each = g.make("_rdiv_scalar", g.make("_maximum_scalar", count, scalar=1.0), scalar=float(params.grad_scale))
    return [g.make("broadcast_to", each, shape=shape)]


@loss
def ones(g: Gradient) -> list[Entry | None]:
    """make_loss: 1 everywhere."""
    return [filled(g.builder, g.shape(g.inputs[0]), 1.0, g.dtype(g.inputs[0]))]
