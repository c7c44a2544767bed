"""Decompositions and gradients of activations chosen by a parameter.

An activation becomes the operator of its function.
"""
from __future__ import annotations

from math import pi

from mxc.compiler.graph.building import along, as_dtype, as_shape, filled, random_numbers, widened
from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.operators.activation.shape import SELU_ALPHA, SELU_SCALE


def activation(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """relu, sigmoid, tanh and softsign are operators of MXNet's, softrelu is one of our own."""
    kind = node.params.act_type
    return [builder.make("_mxc_softrelu" if kind == "softrelu" else kind, inputs[0], name=node.name)]


def leaky_relu(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """x where x > 0, elsewhere the function that `act_type` names; for rrelu also the slopes.

    gelu alone is not of that form: x times the standard normal distribution's function.
    """
    assert builder.old is not None
    x, params = widened(builder, inputs[0]), node.params
    shape, dtype = builder.shape(x), builder.dtype(inputs[0])
    slopes: Entry | None = None
    if params.act_type == "gelu":
        out = builder.make("elemwise_mul", x, builder.make("_mxc_normal_cdf", x))
    else:
        if params.act_type == "leaky":
            below = builder.make("_mul_scalar", x, scalar=params.slope)
        elif params.act_type == "elu":
            below = builder.make("_mul_scalar", builder.make("expm1", x), scalar=params.slope)
        elif params.act_type == "selu":
            below = builder.make("_mul_scalar", builder.make("expm1", x), scalar=SELU_SCALE * SELU_ALPHA)
        elif params.act_type == "prelu":
            slope = along(builder, widened(builder, inputs[1]), min(1, len(shape) - 1), len(shape))
            below = builder.make("broadcast_mul", x, slope)
        elif options.is_train:
            random = random_numbers(builder, shape)
            width = builder.make("_mul_scalar", random, scalar=params.upper_bound - params.lower_bound)
            slopes = as_dtype(builder, builder.make("_plus_scalar", width, scalar=params.lower_bound), builder.dtype(x))
            below = builder.make("elemwise_mul", x, slopes)
        else:
            below = builder.make("_mul_scalar", x, scalar=(params.lower_bound + params.upper_bound) / 2)
        above = x if params.act_type != "selu" else builder.make("_mul_scalar", x, scalar=SELU_SCALE)
        out = builder.make("where", builder.make("_greater_scalar", x, scalar=0.0), above, below)
    outputs = [as_dtype(builder, out, dtype)]
    if node.num_outputs == 2:
        slopes = slopes or filled(builder, shape, 0.0, dtype)
        outputs.append(as_dtype(builder, slopes, builder.old.dtype(Entry(node, 1))))
    return outputs


def leaky_relu_grad(g: Gradient) -> list[Entry | None]:
    """og where x > 0 (selu: times its scale); elsewhere og times the slope:

    leaky: `slope`; prelu: gamma, whose own gradient is the sum of og * x there; rrelu: the slope drawn in training,
    output 1, or the middle of its bounds; elu: slope * exp(x), as out + slope loses its digits far from 0; selu: scale
    * alpha * exp(x) (MXNet: scale * (out + alpha), which is not the derivative). gelu: og * (cdf(x) + x * pdf(x)).
    """
    x, og, kind = widened(g.builder, g.inputs[0]), widened(g.builder, g.og), g.params.act_type
    if kind == "gelu":
        return [g.make("elemwise_mul", og, _gelu_slope(g, x))]
    positive = g.make("_greater_scalar", x, scalar=0.0)
    if kind == "prelu":
        return _prelu(g, x, og, positive)
    if kind == "rrelu" and g.is_train:
        low = g.make("elemwise_mul", og, as_dtype(g.builder, g.outputs[1], g.dtype(og)))
    elif kind in ("elu", "selu"):
        factor = g.params.slope if kind == "elu" else SELU_SCALE * SELU_ALPHA
        # Without the bound exp(x) would overflow for large x, and make higher derivatives NaN.
        negative = g.make("_minimum_scalar", x, scalar=0.0)
        low = g.make("elemwise_mul", og, g.scaled(g.make("exp", negative), float(factor)))
    else:
        slope = (g.params.lower_bound + g.params.upper_bound) / 2 if kind == "rrelu" else g.params.slope
        low = g.scaled(og, slope)
    return [g.make("where", positive, g.scaled(og, SELU_SCALE) if kind == "selu" else og, low)]


def _prelu(g: Gradient, x: Entry, og: Entry, positive: Entry) -> list[Entry | None]:
    gamma = g.inputs[1]
    shape, count = g.shape(x), g.shape(gamma)[0]
    slopes = as_dtype(g.builder, gamma, g.dtype(x))
    slopes = along(g.builder, slopes, 0 if count == 1 else 1, len(shape))
    to_data = g.make("where", positive, og, g.make("broadcast_mul", og, slopes))
    zero = filled(g.builder, shape, 0.0, g.dtype(x))
    each = g.make("where", positive, zero, g.make("elemwise_mul", og, x))
    to_gamma = as_shape(g.builder, g.sum_to(each, g.shape(slopes)), (count,)) if g.asked[1] else None
    return [to_data, to_gamma]


def _gelu_slope(g: Gradient, x: Entry) -> Entry:
    """cdf(x) + x * pdf(x) of the standard normal distribution."""
    cdf = g.make("_mxc_normal_cdf", x)
    pdf = g.scaled(g.make("exp", g.scaled(g.make("square", x), -0.5)), (2 * pi) ** -0.5)
    return g.make("elemwise_add", cdf, g.make("elemwise_mul", x, pdf))
