"""Decompositions and gradients of the softmax family.

The largest value is found first and subtracted; then come the exponentials and their sum.
"""
from __future__ import annotations

from math import inf

from mxc.compiler.graph.building import as_dtype, as_shape, filled, widened
from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options


def _centred(builder: GraphBuilder, x: Entry, axes: tuple[int, ...], temperature: float | None = None) -> Entry:
    """(x - max(x)) / temperature: what is exponentiated; the largest exponent is 0, so that nothing overflows."""
    largest = builder.make("max", x, axis=axes, keepdims=True)
    centred = builder.make("broadcast_sub", x, largest)
    if temperature is None or temperature == 1:
        return centred
    return builder.make("_div_scalar", centred, scalar=temperature)


def _powers(builder: GraphBuilder, centred: Entry, temperature: float | None) -> Entry:
    """exp of what `_centred` gives, which is not above 0 unless the temperature is negative."""
    return builder.make("exp" if temperature is not None and temperature < 0 else "_mxc_decay", centred)


def softmax_over(builder: GraphBuilder, x: Entry, axes: tuple[int, ...], temperature: float | None = None) -> Entry:
    powers = _powers(builder, _centred(builder, x, axes, temperature), temperature)
    total = builder.make("sum", powers, axis=axes, keepdims=True)
    # One of the powers is 1, so the sum is at least 1, and its reciprocal does not overflow.
    return builder.make("broadcast_mul", powers, builder.make("reciprocal", total))


def as_own_dtype(builder: GraphBuilder, node: Node, out: Entry) -> list[Entry]:
    assert builder.old is not None
    return [as_dtype(builder, out, builder.old.dtype(Entry(node)))]


def softmax(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """exp(x / t) / sum(exp(x / t)) over an axis; with `length`, over its first `length` elements, the others are 0."""
    x = widened(builder, inputs[0])
    shape, params = builder.shape(x), node.params
    axis = params.axis % len(shape)
    if not params.use_length:
        return as_own_dtype(builder, node, softmax_over(builder, x, (axis,), params.temperature))
    length = builder.make("Cast", inputs[1], dtype="float64")  # exact for every length that an int64 axis can have
    positions = builder.make("_arange", start=0.0, stop=float(shape[axis]), dtype="float64")
    positions = as_shape(builder, positions, [n if i == axis else 1 for i, n in enumerate(shape)])
    length = as_shape(builder, length, [1 if i == axis else n for i, n in enumerate(shape)])
    inside = builder.make("broadcast_lesser", positions, length)
    lowest = filled(builder, shape, float("-inf"), builder.dtype(x))
    kept = builder.make("where", inside, x, lowest)
    out = softmax_over(builder, kept, (axis,), params.temperature)
    zero = filled(builder, shape, 0.0, builder.dtype(x))
    return as_own_dtype(builder, node, builder.make("where", inside, out, zero))


def softmin(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """softmax of -x over an axis."""
    x = builder.make("negative", widened(builder, inputs[0]))
    axis = node.params.axis % len(builder.shape(x))
    return as_own_dtype(builder, node, softmax_over(builder, x, (axis,), node.params.temperature))


def log_softmax(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """x / t - log(sum(exp(x / t))) over an axis, with the largest x subtracted first."""
    x = widened(builder, inputs[0])
    axes = (node.params.axis % len(builder.shape(x)),)
    return as_own_dtype(builder, node, log_softmax_over(builder, x, axes, node.params.temperature))


def log_softmax_over(builder: GraphBuilder, x: Entry, axes: tuple[int, ...], temperature: float | None = None) -> Entry:
    """The logarithm of softmax over axes."""
    centred = _centred(builder, x, axes, temperature)
    total = builder.make("sum", _powers(builder, centred, temperature), axis=axes, keepdims=True)
    return builder.make("broadcast_sub", centred, builder.make("log", total))


def softmax_activation(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """softmax over the channels, or (mode instance) the last axis: MXNet folds all others into rows."""
    x = widened(builder, inputs[0])
    axes = (1,) if node.params.mode == "channel" else (len(builder.shape(x)) - 1,)
    return as_own_dtype(builder, node, softmax_over(builder, x, axes))


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
    return 1.0 / g.params.temperature if g.params.temperature else inf  # At temperature 0 the output is NaN (MXNet's).


def softmax_grad(g: Gradient) -> list[Entry | None]:
    """out * (og - sum(og * out)) / temperature; a `length` gets none, and what lies beyond it has out = 0."""
    return [_through_softmax(g, _axes(g), _over_temperature(g)), *[None] * (len(g.inputs) - 1)]


def softmin_grad(g: Gradient) -> list[Entry | None]:
    """The gradient of softmax, negated."""
    return [_through_softmax(g, _axes(g), -_over_temperature(g))]


def softmax_activation_grad(g: Gradient) -> list[Entry | None]:
    """The gradient of softmax, over the channels or the last axis."""
    axes = (1,) if g.params.mode == "channel" else (len(g.shape(g.inputs[0])) - 1,)
    return [_through_softmax(g, axes, 1.0)]


def log_softmax_grad(g: Gradient) -> list[Entry | None]:
    """(og - exp(out) * sum(og)) / temperature."""
    og, out = widened(g.builder, g.og), widened(g.builder, g.outputs[0])
    total = g.make("sum", og, axis=_axes(g), keepdims=True)
    back = g.make("elemwise_sub", og, g.make("broadcast_mul", g.make("exp", out), total))
    return [g.scaled(back, _over_temperature(g))]
