"""Gradients of activations chosen by a parameter, and of Dropout."""
from __future__ import annotations

from math import pi

from mxc.compiler.graph.graph import Entry
from mxc.compiler.ops.special import SELU_ALPHA, SELU_SCALE
from mxc.compiler.passes.building import along, as_dtype, as_shape, filled, widened
from mxc.compiler.passes.gradients.context import Gradient


def dropout(g: Gradient) -> list[Entry | None]:
    """og times the mask, output 1, which holds 0 or 1 / (1 - p); og itself where nothing is dropped."""
    if not (g.is_train or g.params.mode == "always") or g.params.p == 0.0:
        return [g.og]
    return [g.make("broadcast_mul", g.og, g.outputs[1])]


def leaky_relu(g: Gradient) -> list[Entry | None]:
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
        negative = g.make("_minimum_scalar", x, scalar=0.0)  # what overflows would make NaN of higher derivatives
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
