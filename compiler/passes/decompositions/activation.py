"""Activations chosen by a parameter, as operators of their own."""
from __future__ import annotations

from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.ops.special import SELU_ALPHA, SELU_SCALE
from mxc.compiler.passes.building import along, as_dtype, filled, random_numbers, widened
from mxc.compiler.passes.registry import Options


def activation(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """relu, sigmoid, tanh and softsign have operators; softrelu = log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|))."""
    kind = node.params.act_type
    if kind != "softrelu":
        return [builder.make(kind, inputs[0], name=node.name)]
    x = widened(builder, inputs[0])
    small = builder.make("log1p", builder.make("exp", builder.make("negative", builder.make("abs", x))))
    out = builder.make("elemwise_add", builder.make("relu", x), small)
    return [as_dtype(builder, out, builder.dtype(inputs[0]))]


def leaky_relu(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """x where x > 0, elsewhere what `act_type` says; of rrelu also the slopes.

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
