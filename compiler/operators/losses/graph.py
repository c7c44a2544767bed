"""Decompositions and gradients of losses."""
from __future__ import annotations

from math import prod
from typing import Any

from mxc.compiler.graph.batch_rows import Rows, RowSite
from mxc.compiler.graph.building import along, as_dtype, as_shape, filled, finished, other_axes, widened
from mxc.compiler.graph.gradient_rule import Gradient, ignores, loss
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.operators.softmax.graph import as_own_dtype, log_softmax_over, softmax_over
from mxc.compiler.ops.operator import Params

LEAST = 1e-8  # softmax_cross_entropy takes a smaller probability for this one


def logistic_output(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """LogisticRegressionOutput forward: sigmoid."""
    return [builder.make("sigmoid", inputs[0], name=node.name)]


def output_axes(params: Params, ndim: int) -> tuple[int, ...]:
    """The axes of SoftmaxOutput's data that its softmax is over: axis 1 (multi_output), the last one (preserve_shape),
    or all in a sample."""
    if params.multi_output:
        return (1,)
    return (ndim - 1,) if params.preserve_shape else tuple(range(1, ndim)) or (0,)


def softmax_output(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Forward: softmax."""
    x = widened(builder, inputs[0])
    return as_own_dtype(builder, node, softmax_over(builder, x, output_axes(node.params, len(builder.shape(x)))))


def hits(builder: GraphBuilder, label: Entry, classes: int, dtype: str) -> Entry:
    """1 where the last axis, of length `classes`, is at the label (cut to an integer), else 0."""
    shape = builder.shape(label)
    numbers = builder.make("_arange", start=0.0, stop=float(classes), dtype=dtype)
    chosen = builder.make("trunc", as_shape(builder, as_dtype(builder, label, dtype), (*shape, 1)))
    return builder.make("broadcast_equal", chosen, along(builder, numbers, len(shape), len(shape) + 1))


def softmax_cross_entropy(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The sum over the rows of -log(p), where p is softmax at the label, or LEAST where that is larger."""
    x = widened(builder, inputs[0])
    shape, dtype = builder.shape(x), builder.dtype(x)
    hit = hits(builder, inputs[1], shape[1], dtype)
    each = builder.make("where", hit, softmax_over(builder, x, (1,)), filled(builder, shape, 0.0, dtype))
    chosen = builder.make("_maximum_scalar", builder.make("sum", each, axis=(1,)), scalar=LEAST)
    total = builder.make("sum", builder.make("log", chosen), axis=(0,))
    return finished(builder, node, [builder.make("negative", total)])


def _regression(g: Gradient, difference: Entry) -> list[Entry | None]:
    """`difference` times grad_scale, divided by the number of outputs of a sample; the label gets none."""
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
def regression_output_grad(g: Gradient) -> list[Entry | None]:
    """LinearRegressionOutput and LogisticRegressionOutput: (out - label) * grad_scale / outputs per sample."""
    return _regression(g, _difference(g))


@ignores("label")
@loss
def mae_regression_output_grad(g: Gradient) -> list[Entry | None]:
    """sign(out - label) * grad_scale / outputs per sample."""
    return _regression(g, g.make("sign", _difference(g)))


@loss
def make_loss_grad(g: Gradient) -> list[Entry | None]:
    """grad_scale everywhere. The normalization `batch` divides it by the length of the last axis, as MXNet does, and
    `valid` by the number of elements above valid_thresh (at least 1)."""
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
def ones_grad(g: Gradient) -> list[Entry | None]:
    """make_loss: 1 everywhere."""
    return [filled(g.builder, g.shape(g.inputs[0]), 1.0, g.dtype(g.inputs[0]))]


@ignores("label")
@loss
def svm_output_grad(g: Gradient) -> list[Entry | None]:
    """With s = -1 at the label's class and 1 elsewhere, and v = margin + s * x: regularization_coefficient times s
    where v > 0 (use_linear), or 2 * s * v there; 0 elsewhere."""
    data, label = g.inputs
    x = widened(g.builder, data)
    hit = hits(g.builder, label, g.shape(x)[-1], g.dtype(x))
    sign = g.make("_rminus_scalar", g.scaled(hit, 2.0), scalar=1.0)
    over = g.make("_plus_scalar", g.make("elemwise_mul", sign, x), scalar=g.params.margin)
    if g.params.use_linear:
        size, factor = g.make("_greater_scalar", over, scalar=0.0), 1.0
    else:
        size, factor = g.make("_maximum_scalar", over, scalar=0.0), 2.0
    return [g.scaled(g.make("elemwise_mul", sign, size), factor * g.params.regularization_coefficient), None]


@ignores("label")
def softmax_cross_entropy_grad(g: Gradient) -> list[Entry | None]:
    """(softmax - 1 at the label's class) * og, also where the loss is at its bound."""
    x = widened(g.builder, g.inputs[0])
    classes, dtype = g.shape(x)[1], g.dtype(x)
    back = g.make("elemwise_sub", softmax_over(g.builder, x, (1,)), hits(g.builder, g.inputs[1], classes, dtype))
    return [g.make("broadcast_mul", back, as_shape(g.builder, widened(g.builder, g.og), (1, 1))), None]


@ignores("label")
@loss
def softmax_output_grad(g: Gradient) -> list[Entry | None]:
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


def ctc_inputs(builder: GraphBuilder, params: Params, inputs: list[Entry]) -> tuple[list[Entry], dict[str, Any]]:
    """Inputs and parameters of `_mxc_ctc_loss`. Data lengths that are not given become the number of steps, label
    lengths that are not given become negative."""
    data, label, *given = inputs
    logits = log_softmax_over(builder, widened(builder, data), (2,))
    steps, batch, classes = builder.shape(data)
    dtype = builder.dtype(logits)
    rest = iter(given)
    lengths = [builder.make("_maximum_scalar", as_dtype(builder, next(rest), dtype), scalar=0.0) if told else
               filled(builder, (batch,), default, dtype)
               for told, default in ((params.use_data_lengths, steps), (params.use_label_lengths, -1))]
    blank, padding = (0, 0) if params.blank_label == "first" else (classes - 1, -1)
    return [logits, as_dtype(builder, label, dtype), *lengths], {"blank": blank, "padding": padding}


def ctc_loss(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The loss and its gradient as recursions over logarithms of probabilities. The gradient's recursion is left out
    where nothing reads it."""
    entries, settings = ctc_inputs(builder, node.params, inputs)
    return finished(builder, node, [builder.make("_mxc_ctc_loss", *entries, **settings),
                                    builder.make("_mxc_ctc_loss_grad", *entries, **settings)])


def ctc_loss_grad(g: Gradient) -> list[Entry | None]:
    """The gradient of each row's loss, times what flows into the loss."""
    entries, settings = ctc_inputs(g.builder, g.params, g.inputs)
    each = g.make("_mxc_ctc_loss_grad", *entries, **settings)
    factor = as_shape(g.builder, as_dtype(g.builder, g.og, g.dtype(each)), (1, g.shape(g.inputs[0])[1], 1))
    back = as_dtype(g.builder, g.make("broadcast_mul", each, factor), g.dtype(g.inputs[0]))
    return [back, *[None] * (len(g.inputs) - 1)]


def sparse_penalty_grad(g: Gradient) -> list[Entry | None]:
    """og, and the slope penalty * ((1 - target) / (1 - average) - target / average) of the divergence of the target
    from the new moving average, the same for all elements of a channel."""
    average, target, penalty = _moving_average(g), float(g.params.sparseness_target), float(g.params.penalty)
    rest = g.make("_rdiv_scalar", g.make("_rminus_scalar", average, scalar=1.0), scalar=penalty * (1 - target))
    slope = g.make("elemwise_sub", rest, g.make("_rdiv_scalar", average, scalar=penalty * target))
    return [g.make("broadcast_add", g.og, along(g.builder, slope, 1, len(g.shape(g.inputs[0]))))]


def sparse_penalty_moving(g: Gradient) -> list[Entry | None]:
    """moving = moving * momentum + mean * (1 - momentum)"""
    return [_moving_average(g)]


def _moving_average(g: Gradient) -> Entry:
    data, momentum = g.inputs[0], float(g.params.momentum)
    mean = g.make("mean", data, axis=other_axes(len(g.shape(data)), 1))
    return g.make("elemwise_add", g.scaled(g.aux[0], momentum), g.scaled(mean, 1.0 - momentum))


def ctc_rows(site: RowSite) -> list[Rows | None]:
    """Axis 1 of the data, behind time, and axis 0 of all else; the second output is as the data."""
    others = [{0: 0} for _ in site.ins[1:]]
    return [site.along({1: 0}, *others), site.along({1: 1}, *({0: 1} for _ in others), output=1)]
