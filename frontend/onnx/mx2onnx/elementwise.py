"""Operators of single elements: names that ONNX has too, and what is composed of them."""
from __future__ import annotations

import math

import numpy as np

from mxc.onnx.mx2onnx.writer import Call, Converter


def named(op_type: str) -> Converter:
    """The operator of that name of the first input alone."""
    return lambda c: c.emit(op_type, c.inputs[0])


def pairwise(op_type: str) -> Converter:
    """The operator of that name of all inputs."""
    return lambda c: c.emit(op_type, *c.inputs)


def with_scalar(op_type: str, turned: bool = False) -> Converter:
    """The operator of the input and the parameter `scalar`. turned: the scalar comes first."""
    def convert(c: Call) -> str:
        both = [c.inputs[0], c.number(c.params["scalar"])]
        return c.emit(op_type, *(both[::-1] if turned else both))

    return convert


def operands(c: Call) -> tuple[str, str]:
    """Both inputs, or the input and the scalar."""
    return c.inputs[0], c.number(c.params["scalar"]) if "scalar" in c.params else c.inputs[1]


def comparison(op_type: str, negated: bool = False) -> Converter:
    """A comparison, whose result has the inputs' dtype in MXNet. negated: its opposite is meant."""
    def convert(c: Call) -> str:
        made = c.emit(op_type, *operands(c))
        return c.cast(c.emit("Not", made) if negated else made, c.out_dtype())

    return convert


def logical(op_type: str) -> Converter:
    """A logical operator of what is other than zero."""
    def convert(c: Call) -> str:
        left, right = operands(c)
        return c.cast(c.emit(op_type, c.boolean(left, c.dtype()), c.boolean(right, c.dtype())), c.out_dtype())

    return convert


def logical_not(c: Call) -> str:
    return c.cast(c.emit("Not", c.boolean(c.inputs[0], c.dtype())), c.out_dtype())


def remainder(turned: bool = False) -> Converter:
    """The remainder with the divisor's sign; 0 for the divisor 0."""
    def convert(c: Call) -> str:
        a, b = operands(c)[::-1] if turned else operands(c)
        zero, is_float = c.number(0), np.dtype(c.dtype()).kind == "f"
        if is_float:
            rest = c.emit("Mod", a, b, fmod=1)
            wrong = c.emit("Less", c.emit("Mul", c.emit("Sign", rest), c.emit("Sign", b)), zero)
            made = c.emit("Where", wrong, c.emit("Add", rest, b), rest)
            return c.emit("Where", c.emit("Equal", b, zero), zero, made)
        return c.emit("Mod", a, b)

    return convert


def hypot(c: Call) -> str:
    a, b = operands(c)
    return c.emit("Sqrt", c.emit("Add", c.emit("Mul", a, a), c.emit("Mul", b, b)))


def square(c: Call) -> str:
    return c.emit("Mul", c.inputs[0], c.inputs[0])


def truncated(c: Call) -> str:
    return c.emit("Mul", c.emit("Sign", c.inputs[0]), c.emit("Floor", c.emit("Abs", c.inputs[0])))


def rounded(c: Call) -> str:
    """Halves away from zero; ONNX rounds them to even numbers."""
    magnitude = c.emit("Abs", c.inputs[0])
    below = c.emit("Floor", magnitude)
    up = c.emit("GreaterOrEqual", c.emit("Sub", magnitude, below), c.number(0.5))
    nearest = c.emit("Where", up, c.emit("Add", below, c.number(1)), below)
    return c.emit("Mul", c.emit("Sign", c.inputs[0]), nearest)


def rounded_down(c: Call) -> str:
    """Halves to the smaller number."""
    below, above = c.emit("Floor", c.inputs[0]), c.emit("Ceil", c.inputs[0])
    down = c.emit("LessOrEqual", c.emit("Sub", c.inputs[0], below), c.emit("Sub", above, c.inputs[0]))
    return c.emit("Where", down, below, above)


def cube_root(c: Call) -> str:
    root = c.emit("Pow", c.emit("Abs", c.inputs[0]), c.number(1 / 3))
    return c.emit("Mul", c.emit("Sign", c.inputs[0]), root)


def inverted(converter: Converter) -> Converter:
    """The reciprocal of what a converter makes."""
    return lambda c: c.emit("Reciprocal", _one(converter(c)))


def times(factor: float, op_type: str = "Identity") -> Converter:
    """A factor times the operator of the input."""
    return lambda c: c.emit("Mul", c.emit(op_type, c.inputs[0]), c.number(factor))


def plus(number: float, op_type: str, first: bool = False) -> Converter:
    """The operator of the input, and a number added. first: the number is added to the input."""
    def convert(c: Call) -> str:
        if first:
            return c.emit(op_type, c.emit("Add", c.inputs[0], c.number(number)))
        return c.emit("Add", c.emit(op_type, c.inputs[0]), c.number(number))

    return convert


def _one(made: str | list[str]) -> str:
    return made if isinstance(made, str) else made[0]


def cast(c: Call) -> str:
    return c.cast(c.inputs[0], c.out_dtype())


def clip(c: Call) -> str:
    return c.emit("Clip", c.inputs[0], *(c.writer.constant(np.array(c.params[key], c.dtype()), "bound")
                                         for key in ("a_min", "a_max")))


def where(c: Call) -> str:
    condition = c.inputs[0]
    if c.rank(0) < c.rank(1):  # a vector chooses rows
        first, second = c.extents(0)
        ones = (1,) * (c.rank(1) - 1)
        condition = c.reshape(condition, c.extents(0), (first + ones, second + ones))
    return c.emit("Where", c.boolean(condition, c.dtype(0)), *c.inputs[1:])


def hard_sigmoid(c: Call) -> str:
    return c.emit("HardSigmoid", c.inputs[0], alpha=c.params["alpha"], beta=c.params["beta"])


def activation(c: Call) -> str:
    return c.emit(ACTIVATIONS[c.params["act_type"]], c.inputs[0])


def leaky_relu(c: Call) -> str:
    kind, data, slope = c.params["act_type"], c.inputs[0], c.params["slope"]
    if kind == "prelu":
        shape, ones = c.extents(1), (1,) * (c.rank() - 2)
        gamma = c.inputs[1]
        if c.rank(1) == 1 and ones:  # a slope for each channel; ONNX aligns the last axes
            gamma = c.reshape(gamma, shape, (shape[0] + ones, shape[1] + ones))
        return c.emit("PRelu", data, gamma)
    if kind == "gelu":
        erf = c.emit("Erf", c.emit("Mul", data, c.number(math.sqrt(0.5))))
        return c.emit("Mul", c.emit("Mul", data, c.number(0.5)), c.emit("Add", erf, c.number(1)))
    if kind == "selu":
        return c.emit("Selu", data)
    if kind == "rrelu":
        slope = (c.params["lower_bound"] + c.params["upper_bound"]) / 2
    return c.emit("Elu" if kind == "elu" else "LeakyRelu", data, alpha=slope)


def smooth_l1(c: Call) -> str:
    squared = c.params["scalar"] ** 2
    magnitude = c.emit("Abs", c.inputs[0])
    parabola = c.emit("Mul", c.emit("Mul", magnitude, magnitude), c.number(0.5 * squared))
    line = c.emit("Sub", magnitude, c.number(0.5 / squared))
    return c.emit("Where", c.emit("Less", magnitude, c.number(1 / squared)), parabola, line)


def over_root_of_depth(c: Call) -> str:
    return c.emit("Mul", c.inputs[0], c.number(c.fixed_axis(c.rank() - 1) ** -0.5))


def filled(value: float) -> Converter:
    """An array like the input, with one value everywhere."""
    def convert(c: Call) -> str:
        return c.emit("Expand", c.number(value, c.out_dtype()), c.emit("Shape", c.inputs[0]))

    return convert


ACTIVATIONS = {"relu": "Relu", "sigmoid": "Sigmoid", "softrelu": "Softplus", "softsign": "Softsign", "tanh": "Tanh"}
NAMED = {
    "_copy": "Identity", "BlockGrad": "Identity", "make_loss": "Identity", "MakeLoss": "Identity",
    "LinearRegressionOutput": "Identity", "MAERegressionOutput": "Identity", "LogisticRegressionOutput": "Sigmoid",
    "negative": "Neg", "abs": "Abs", "sign": "Sign", "ceil": "Ceil", "floor": "Floor", "sqrt": "Sqrt",
    "reciprocal": "Reciprocal", "exp": "Exp", "log": "Log", "sin": "Sin", "cos": "Cos", "tan": "Tan", "arcsin": "Asin",
    "arccos": "Acos", "arctan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "tanh": "Tanh", "arcsinh": "Asinh",
    "arccosh": "Acosh", "arctanh": "Atanh", "erf": "Erf", "sigmoid": "Sigmoid", "relu": "Relu", "softsign": "Softsign",
}
# Operators of two arrays or of an array and a number: the ends of their names, and ONNX's operator.
ARITHMETIC = {"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "power": "Pow", "maximum": "Max",
              "minimum": "Min"}
COMPARISONS = {"equal": "Equal", "greater": "Greater", "greater_equal": "GreaterOrEqual", "lesser": "Less",
               "lesser_equal": "LessOrEqual"}
LOGICAL = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}
CONVERTERS: dict[str, Converter] = {
    **{name: named(op_type) for name, op_type in NAMED.items()},
    **{f"broadcast_{name}": pairwise(op_type) for name, op_type in ARITHMETIC.items()},
    **{f"elemwise_{name}": pairwise(ARITHMETIC[name]) for name in ("add", "sub", "mul", "div")},
    **{f"_{name}": pairwise(ARITHMETIC[name]) for name in ("power", "maximum", "minimum")},
    **{f"_{name}_scalar": with_scalar(op_type) for name, op_type in {
        "plus": "Add", "minus": "Sub", **{name: ARITHMETIC[name] for name in ("mul", "div", "power", "maximum",
                                                                             "minimum")}}.items()},
    **{f"_{name}_scalar": with_scalar(op_type, turned=True) for name, op_type in {
        "rminus": "Sub", "rdiv": "Div", "rpower": "Pow"}.items()},
    **{f"{start}{name}{end}": comparison(op_type) for name, op_type in COMPARISONS.items()
       for start, end in (("broadcast_", ""), ("_", ""), ("_", "_scalar"))},
    **{f"{start}not_equal{end}": comparison("Equal", negated=True)
       for start, end in (("broadcast_", ""), ("_", ""), ("_", "_scalar"))},
    **{f"{start}{name}{end}": logical(op_type) for name, op_type in LOGICAL.items()
       for start, end in (("broadcast_", ""), ("_", ""), ("_", "_scalar"))},
    "_mod": remainder(), "broadcast_mod": remainder(), "_mod_scalar": remainder(), "_rmod_scalar": remainder(True),
    "_hypot": hypot, "broadcast_hypot": hypot, "_hypot_scalar": hypot,
    "add_n": pairwise("Sum"), "where": where, "logical_not": logical_not, "Cast": cast, "amp_cast": cast, "clip": clip,
    "square": square, "rsqrt": inverted(named("Sqrt")), "round": rounded, "rint": rounded_down, "trunc": truncated,
    "fix": truncated, "cbrt": cube_root, "rcbrt": inverted(cube_root),
    "expm1": plus(-1, "Exp"), "log1p": plus(1, "Log", first=True), "log2": times(1 / math.log(2), "Log"),
    "log10": times(1 / math.log(10), "Log"), "degrees": times(180 / math.pi), "radians": times(math.pi / 180),
    "hard_sigmoid": hard_sigmoid, "Activation": activation, "LeakyReLU": leaky_relu, "smooth_l1": smooth_l1,
    "_contrib_div_sqrt_dim": over_root_of_depth, "zeros_like": filled(0), "ones_like": filled(1),
}
