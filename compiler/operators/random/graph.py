"""Decompositions and gradients of random operators.

Random operators are formulas over uniform numbers, or routines where an element takes several draws. A distribution's
parameters are parameters of the operator, or inputs: then numbers of the shape `shape` are drawn for each element of
the inputs. Here the parameters have the shape (n, 1) and the numbers drawn (n, each), in the row-major order of the
output's elements; n is 1 where they are parameters of the operator.
"""
from __future__ import annotations

from math import prod, sqrt

from mxc.compiler.graph.building import as_dtype, as_shape, filled, random_key, random_numbers
from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options


class _Draw:
    """One node: how it takes its parameters, and what its numbers become."""

    def __init__(self, builder: GraphBuilder, node: Node, inputs: list[Entry], *names: str):
        assert builder.old is not None
        own = Entry(node)
        self.builder, self.shape, self.dtype = builder, builder.old.shape(own), builder.old.dtype(own)
        self.wide = "float64" if self.dtype == "float64" else "float32"
        self.rows = 1 if names[0] in node.params else prod(builder.shape(inputs[0]))
        self.each = prod(self.shape) // self.rows
        self.node, self.inputs, self.names = node, inputs, names

    def parameters(self, dtype: str) -> list[Entry]:
        if self.names[0] in self.node.params:
            return [filled(self.builder, (1, 1), self.node.params[name], dtype) for name in self.names]  # type: ignore[arg-type]
        return [as_dtype(self.builder, as_shape(self.builder, entry, (self.rows, 1)), dtype) for entry in self.inputs]

    def uniform(self) -> Entry:
        return random_numbers(self.builder, (self.rows, self.each), self.wide)

    def gamma(self, alpha: Entry) -> Entry:
        return self.builder.make("_mxc_gamma", random_key(self.builder), alpha, each=self.each, name=self.node.name)

    def poisson(self, rate: Entry) -> Entry:
        return self.builder.make("_mxc_poisson", random_key(self.builder), rate, each=self.each)

    def result(self, numbers: Entry) -> list[Entry]:
        return [as_shape(self.builder, as_dtype(self.builder, numbers, self.dtype), self.shape)]


def draw_uniform(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """low + (high - low) u."""
    draw = _Draw(builder, node, inputs, "low", "high")
    low, high = draw.parameters(draw.wide)
    width = builder.make("elemwise_sub", high, low)
    return draw.result(builder.make("broadcast_add", low, builder.make("broadcast_mul", width, draw.uniform())))


def draw_normal(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """loc + scale sqrt(2) erfinv(2 u - 1), with u moved off 0 by half of its step."""
    draw = _Draw(builder, node, inputs, "loc", "scale")
    loc, scale = draw.parameters(draw.wide)
    half = 2.0**-53 if draw.wide == "float64" else 2.0**-24
    twice = builder.make("_mul_scalar", draw.uniform(), scalar=2.0)
    centred = builder.make("_plus_scalar", twice, scalar=half - 1.0)
    spread = builder.make("broadcast_mul", scale, builder.make("erfinv", centred))
    return draw.result(builder.make("broadcast_add", loc, builder.make("_mul_scalar", spread, scalar=sqrt(2))))


def draw_exponential(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """-log(1 - u) / lam."""
    draw = _Draw(builder, node, inputs, "lam")
    (lam,) = draw.parameters(draw.wide)
    logs = builder.make("log1p", builder.make("negative", draw.uniform()))
    return draw.result(builder.make("broadcast_div", builder.make("negative", logs), lam))


def draw_gamma(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """beta times gamma numbers of scale 1."""
    draw = _Draw(builder, node, inputs, "alpha", "beta")
    alpha, beta = draw.parameters("float64")
    return draw.result(builder.make("broadcast_mul", draw.gamma(alpha), beta))


def draw_poisson(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Poisson numbers."""
    draw = _Draw(builder, node, inputs, "lam")
    return draw.result(draw.poisson(*draw.parameters("float64")))


def draw_negative_binomial(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Poisson numbers whose rates are gamma(k) (1 - p) / p."""
    draw = _Draw(builder, node, inputs, "k", "p")
    k, p = draw.parameters("float64")
    odds = builder.make("elemwise_div", builder.make("_rminus_scalar", p, scalar=1.0), p)
    return draw.result(draw.poisson(builder.make("broadcast_mul", draw.gamma(k), odds)))


def draw_generalized_negative_binomial(builder: GraphBuilder, node: Node, inputs: list[Entry],
                                       options: Options) -> list[Entry]:
    """Poisson numbers whose rates are gamma(1 / alpha) alpha mu, or mu where alpha is 0."""
    draw = _Draw(builder, node, inputs, "mu", "alpha")
    mu, alpha = draw.parameters("float64")
    spread = builder.make("_not_equal_scalar", alpha, scalar=0.0)
    ones = filled(builder, builder.shape(alpha), 1.0, "float64")
    gammas = draw.gamma(builder.make("elemwise_div", ones, builder.make("where", spread, alpha, ones)))
    rate = builder.make("broadcast_mul", gammas, builder.make("elemwise_mul", alpha, mu))
    shape = builder.shape(rate)
    spread, mu = (builder.make("broadcast_to", entry, shape=shape) for entry in (spread, mu))
    return draw.result(draw.poisson(builder.make("where", spread, rate, mu)))


def draw_integers(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Whole numbers in the range, of 64 bits."""
    draw = _Draw(builder, node, inputs, "low", "high")
    numbers = builder.make("_mxc_integers", random_key(builder), low=node.params.low, high=node.params.high,
                           shape=draw.shape, name=node.name)
    return [as_dtype(builder, numbers, draw.dtype)]


def draw_classes(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The class: how many running sums of probabilities are at most a uniform number; and the logarithm of its
    probability."""
    assert builder.old is not None
    data, own = inputs[0], Entry(node)
    shape, count = builder.old.shape(own), builder.shape(data)[-1]
    rows = as_shape(builder, data, (prod(builder.shape(data)) // count, count))
    n, each = builder.shape(rows)[0], prod(node.params.shape)
    apart = as_shape(builder, rows, (n, count, 1))
    sums = as_shape(builder, builder.make("_mxc_cumsum", apart, dtype="float64", name=node.name), (n, count))
    total = builder.make("slice_axis", sums, axis=1, begin=count - 1, end=count)
    numbers = builder.make("broadcast_mul", random_numbers(builder, (n, each), "float64"), total)
    chosen = builder.make("_minimum_scalar", builder.make("_mxc_searchsorted", sums, numbers), scalar=float(count - 1))
    outputs = [as_shape(builder, as_dtype(builder, chosen, node.params.dtype), shape)]
    if node.params.get_prob:
        there = builder.make("_mxc_take_along", rows, as_dtype(builder, chosen, "int32"))
        outputs.append(as_shape(builder, builder.make("log", there), shape))
    return outputs


def shuffle(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The first axis in the order of random numbers; an array without axes as it is."""
    if not builder.shape(inputs[0]):
        return [builder.make("_copy", inputs[0], name=node.name)]
    count = builder.shape(inputs[0])[0]
    numbers = random_numbers(builder, (1, count), "float64")
    order = builder.make("_mxc_argsort", numbers, k=count, name=node.name)
    return [builder.make("take", inputs[0], as_shape(builder, order, (count,)), axis=0)]


def draw_zipfian(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The routine, and its key."""
    assert builder.old is not None
    return builder.make_all("_mxc_zipfian", random_key(builder), range_max=node.params.range_max,
                            shape=builder.old.shape(Entry(node)), name=node.name)


def multinomial_grad(g: Gradient) -> list[Entry | None]:
    """At the class that was drawn, the gradient of the logarithm of its probability divided by that probability."""
    if not g.params.get_prob or g.out_grads[1] is None:
        return [None]
    (data,), chosen = g.inputs, g.outputs[0]
    shape, count = g.shape(data), prod(g.shape(chosen))
    rows = prod(shape) // shape[-1]
    row = g.make("_arange", start=0.0, stop=float(rows), repeat=count // rows, dtype="int64")
    place = as_dtype(g.builder, as_shape(g.builder, chosen, (count,)), "int64")
    place = g.make("elemwise_add", g.make("_mul_scalar", row, scalar=float(shape[-1]), is_int=True), place)
    there = g.make("take", as_shape(g.builder, data, (prod(shape),)), place)
    part = g.make("elemwise_div", as_shape(g.builder, g.grad(1), (count,)), there)
    back = g.make("_mxc_scatter_add", as_shape(g.builder, part, (1, count, 1)), place, rows=prod(shape))
    return [as_shape(g.builder, back, shape)]
