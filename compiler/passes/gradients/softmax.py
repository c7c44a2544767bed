"""Gradients of the softmax family, and of losses built on it."""
from __future__ import annotations

from math import inf, prod

from mxc.compiler.graph.graph import Entry
from mxc.compiler.passes.building import as_dtype, as_shape, widened
from mxc.compiler.passes.decompositions.softmax import output_axes, softmax_over
from mxc.compiler.passes.gradients.context import Gradient, ignores, loss


def _axes(g: Gradient) -> tuple[int, ...]:
    return (g.params.axis % len(g.shape(g.inputs[0])),)


def _through_softmax(g: Gradient, axes: tuple[int, ...], factor: float) -> Entry:
    """out * (og - sum(og * out)) * factor."""
    og, out = widened(g.builder, g.og), widened(g.builder, g.outputs[0])
    total = g.make("sum", g.make("elemwise_mul", og, out), axis=axes, keepdims=True)
    return g.scaled(g.make("elemwise_mul", out, g.make("broadcast_sub", og, total)), factor)


def _over_temperature(g: Gradient) -> float:
    if g.params.temperature is None:
        return 1.0
    return 1.0 / g.params.temperature if g.params.temperature else inf  # then the output is NaN, as in MXNet


def softmax(g: Gradient) -> list[Entry | None]:
    """out * (og - sum(og * out)) / temperature; a `length` gets none, and what lies beyond it has out = 0."""
    return [_through_softmax(g, _axes(g), _over_temperature(g)), *[None] * (len(g.inputs) - 1)]


def softmin(g: Gradient) -> list[Entry | None]:
    """As softmax, negated."""
    return [_through_softmax(g, _axes(g), -_over_temperature(g))]


def softmax_activation(g: Gradient) -> list[Entry | None]:
    """As softmax, over the channels or the last axis."""
    axes = (1,) if g.params.mode == "channel" else (len(g.shape(g.inputs[0])) - 1,)
    return [_through_softmax(g, axes, 1.0)]


def log_softmax(g: Gradient) -> list[Entry | None]:
    """(og - exp(out) * sum(og)) / temperature."""
    og, out = widened(g.builder, g.og), widened(g.builder, g.outputs[0])
    total = g.make("sum", og, axis=_axes(g), keepdims=True)
    back = g.make("elemwise_sub", og, g.make("broadcast_mul", g.make("exp", out), total))
    return [g.scaled(back, _over_temperature(g))]


@ignores("label")
@loss
def softmax_output(g: Gradient) -> list[Entry | None]:
    """(out - target) * grad_scale / how many count, whatever flows in; the label gets none.

    The target is the label itself where it has the output's shape, else 1 at the label's class (truncated to an
    integer) and 0 elsewhere, which smooth_alpha (not with multi_output) changes to 1 - alpha and alpha / (classes - 1).
    use_ignore makes it zero where the label is ignore_label. How many count: with normalization null 1, batch the
    number of labels (multi_output: of samples), valid that of labels other than ignore_label (at least 1); with
    multi_output, unless valid, times the number of positions in a sample. out_grad multiplies by what flows in (MXNet
    multiplies by the output). Data of more than two axes without multi_output and preserve_shape has one class per
    element of a sample; then only the first labels, one for each sample, are read.
    """
    data, label = g.inputs
    params, shape = g.params, g.shape(data)
    out = widened(g.builder, g.outputs[0])
    if g.again:
        out = softmax_over(g.builder, widened(g.builder, data), output_axes(params, len(shape)))
    target = as_dtype(g.builder, label, g.dtype(out))
    if g.shape(label) == shape:
        back = g.scaled(g.make("elemwise_sub", out, target), params.grad_scale)
    else:
        classes = shape[1] if params.multi_output else shape[-1] if params.preserve_shape else prod(shape[1:])
        rest = prod(shape[2:]) if params.multi_output else 1
        rows = prod(shape) // classes // rest
        if prod(g.shape(target)) > rows * rest:
            flat = as_shape(g.builder, target, (prod(g.shape(target)),))
            target = g.make("slice_axis", flat, axis=0, begin=0, end=rows)
        label3 = as_shape(g.builder, g.make("trunc", target), (rows, 1, rest))
        numbers = g.make("_arange", start=0.0, stop=float(classes), dtype=g.dtype(out))
        hit = g.make("broadcast_equal", label3, as_shape(g.builder, numbers, (1, classes, 1)))
        if params.smooth_alpha and not params.multi_output:
            low = params.smooth_alpha / (classes - 1)
            hit = g.make("_plus_scalar", g.scaled(hit, 1.0 - params.smooth_alpha - low), scalar=low)
        back = g.make("elemwise_sub", as_shape(g.builder, out, (rows, classes, rest)), hit)
        counts = g.make("_not_equal_scalar", label3, scalar=float(int(params.ignore_label)))
        if params.use_ignore:
            back = g.make("broadcast_mul", back, counts)
        if params.normalization == "valid":
            valid = g.make("_maximum_scalar", g.make("sum", counts, axis=(0, 1, 2), keepdims=True), scalar=1.0)
            back = g.scaled(g.make("broadcast_div", back, valid), params.grad_scale)
        else:
            back = g.scaled(back, params.grad_scale / rest / (rows if params.normalization == "batch" else 1))
        back = as_shape(g.builder, back, shape)
    if params.out_grad:
        back = g.make("elemwise_mul", back, widened(g.builder, g.og))
    return [back, None]
