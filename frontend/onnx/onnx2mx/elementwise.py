"""Operators of single elements: names that MXNet has too, and what is composed of them."""
from __future__ import annotations

import numpy as np

from mxc.onnx.onnx2mx.reader import Call, Converter, Tensor, broadcast


def named(op_name: str, **params: object) -> Converter:
    """The operator of that name of the first input."""
    return lambda c: c.op(op_name, c.tensor(), **params)


def with_attributes(op_name: str, defaults: dict[str, float], **names: str) -> Converter:
    """The operator of that name with attributes as parameters. defaults: the attributes when they are left out. names:
    the parameter of each attribute."""
    return lambda c: c.op(op_name, c.tensor(), **{names[name]: c.attr(name, default)
                                                  for name, default in defaults.items()})


def activation(act_type: str) -> Converter:
    return named("Activation", act_type=act_type)


def leaky(act_type: str, slope: float) -> Converter:
    """A LeakyReLU with the attribute alpha as its slope."""
    return lambda c: c.op("LeakyReLU", c.tensor(), act_type=act_type, slope=c.attr("alpha", slope))


def alike(c: Call, tensors: list[Tensor], logical: bool = False) -> list[Tensor]:
    """Tensors of one dtype. What is bool in ONNX may be 0 and 1 of any dtype here."""
    dtypes = {tensor.dtype for tensor in tensors}
    if len(dtypes) == 1:
        return tensors
    dtype = "bool" if logical else next((each for each in ("float64", "float32", "float16", "int64", "int32")
                                         if each in dtypes), "int64")
    return [c.cast(tensor, dtype) for tensor in tensors]


# Operators with a number as their second, or turned around as their first operand.
WITH_NUMBER = {"add": ("plus", "plus"), "sub": ("minus", "rminus"), "mul": ("mul", "mul"), "div": ("div", "rdiv"),
               "power": ("power", "rpower"), "maximum": ("maximum", "maximum"), "minimum": ("minimum", "minimum"),
               "equal": ("equal", "equal"), "greater": ("greater", "lesser"), "lesser": ("lesser", "greater"),
               "greater_equal": ("greater_equal", "lesser_equal"), "lesser_equal": ("lesser_equal", "greater_equal"),
               "mod": ("mod", "rmod")}
SAME_SHAPE = {"add", "sub", "mul", "div"}


def number_of(tensor: Tensor, other: Tensor) -> float | int | None:
    """The number that a constant of one element is, where the other tensor gives the result its shape."""
    value = tensor.value
    if value is None or value.size != 1 or tensor.rank > other.rank or tensor.dtype != other.dtype:
        return None
    number = value.reshape(()).item()
    return number if value.dtype.kind in "fiu" and np.isfinite(number) else None


def pair(c: Call, name: str, left: Tensor, right: Tensor) -> Tensor:
    """An operator of two tensors, which are broadcast."""
    left, right = alike(c, [left, right])
    if name in WITH_NUMBER:
        first, second = number_of(left, right), number_of(right, left)
        if second is not None and left.arrays is None:
            return c.op(f"_{WITH_NUMBER[name][0]}_scalar", left, scalar=second)
        if first is not None and right.arrays is None:
            return c.op(f"_{WITH_NUMBER[name][1]}_scalar", right, scalar=first)
    if left.extents == right.extents and name in SAME_SHAPE:
        return c.op(f"elemwise_{name}", left, right)
    return c.op(f"broadcast_{name}", left, right)


def pairwise(name: str) -> Converter:
    return lambda c: pair(c, name, c.tensor(0), c.tensor(1))


def over_all(name: str) -> Converter:
    """An operator of any number of tensors, two by two."""
    def convert(c: Call) -> Tensor:
        made, *rest = c.tensors()
        for each in rest:
            made = pair(c, name, made, each)
        return made

    return convert


def mean(c: Call) -> Tensor:
    made = over_all("add")(c)
    assert isinstance(made, Tensor)
    return c.op("_div_scalar", made, scalar=len(c.inputs))


def logical(name: str) -> Converter:
    return lambda c: c.op(f"broadcast_logical_{name}", *alike(c, c.tensors(), logical=True))


def power(c: Call) -> Tensor:
    base, exponent = c.tensor(0), c.tensor(1)
    if exponent.dtype != base.dtype:  # the result has the base's dtype
        exponent = c.cast(exponent, base.dtype)
    if number_of(exponent, base) == 2:
        return c.op("square", base)
    return pair(c, "power", base, exponent)


def remainder(c: Call) -> Tensor:
    a, b = c.tensor(0), c.tensor(1)
    if not c.attr("fmod", 0):
        return pair(c, "mod", a, b)
    ratio = c.op("trunc", pair(c, "div", a, b))
    return pair(c, "sub", a, pair(c, "mul", ratio, b))


def where(c: Call) -> Tensor:
    condition, x, y = c.tensors()
    x, y = alike(c, [x, y])
    target = broadcast([condition, x, y])
    return c.op("where", *(c.spread(each, target) for each in (condition, x, y)))


def clip(c: Call) -> Tensor:
    data = c.tensor()
    bounds = [c.tensor(i) if c.has(i) else None for i in (1, 2)]
    low, high = (None if each is None or each.value is None else float(each.value.reshape(())) for each in bounds)
    if low is not None and high is not None and np.isfinite([low, high]).all():
        if low > high:
            return c.op("_minimum_scalar", c.op("_maximum_scalar", data, scalar=low), scalar=high)
        return c.op("clip", data, a_min=low, a_max=high)
    for bound, name in zip(bounds, ("maximum", "minimum"), strict=True):
        if bound is not None:
            data = pair(c, name, data, bound)
    return data


def cast(c: Call) -> Tensor:
    from mxc.onnx.onnx2mx.dtypes import dtype_of

    return c.cast(c.tensor(), dtype_of(c.attr("to"), f"Cast {c.name!r}"))


def cast_like(c: Call) -> Tensor:
    return c.cast(c.tensor(), c.tensor(1).dtype)


def prelu(c: Call) -> Tensor:
    data, slope = c.tensor(0), c.tensor(1)
    channels = slope.shape[slope.rank - data.rank + 1] if slope.rank >= data.rank - 1 and data.rank > 1 else 0
    if slope.value is not None and slope.value.size == 1:
        return c.op("LeakyReLU", data, act_type="leaky", slope=float(slope.value.reshape(())))
    if data.rank > 1 and slope.value is not None and slope.value.size == channels == data.shape[1]:
        return c.op("LeakyReLU", data, c.reshape(slope, ((channels,), (channels,))), act_type="prelu")
    below = c.op("broadcast_mul", c.op("_minimum_scalar", data, scalar=0), slope)
    return c.op("elemwise_add", c.op("_maximum_scalar", data, scalar=0), below)


def selu(c: Call) -> Tensor:
    alpha, gamma = c.attr("alpha", 1.6732632423543772), c.attr("gamma", 1.0507009873554805)
    if abs(alpha - 1.6732632423543772) < 1e-6 and abs(gamma - 1.0507009873554805) < 1e-6:
        return c.op("LeakyReLU", c.tensor(), act_type="selu")
    return c.op("_mul_scalar", c.op("LeakyReLU", c.tensor(), act_type="elu", slope=alpha), scalar=gamma)


def gelu(c: Call) -> Tensor:
    x = c.tensor()
    if c.attr("approximate", "none") == "none":
        return c.op("LeakyReLU", x, act_type="gelu")
    cube = c.op("elemwise_mul", c.op("square", x), x)
    inner = c.op("elemwise_add", x, c.op("_mul_scalar", cube, scalar=0.044715))
    risen = c.op("_plus_scalar", c.op("tanh", c.op("_mul_scalar", inner, scalar=(2 / np.pi) ** 0.5)), scalar=1)
    return c.op("elemwise_mul", c.op("_mul_scalar", x, scalar=0.5), risen)


def hard_swish(c: Call) -> Tensor:
    gate = c.op("hard_sigmoid", c.tensor(), alpha=1 / 6, beta=0.5)
    return c.op("elemwise_mul", c.tensor(), gate)


def rounded(c: Call) -> Tensor:
    """Halves to even numbers; MXNet's rint has them at the smaller one."""
    below = c.op("floor", c.tensor())
    rest = c.op("elemwise_sub", c.tensor(), below)
    is_odd = c.op("_mod_scalar", below, scalar=2)
    half = c.op("elemwise_mul", c.op("_equal_scalar", rest, scalar=0.5), is_odd)
    up = c.op("elemwise_add", c.op("_greater_scalar", rest, scalar=0.5), half)
    return c.op("elemwise_add", below, up)


def is_nan(c: Call) -> Tensor:
    return c.op("_not_equal", c.tensor(), c.tensor())


def is_infinite(c: Call) -> Tensor:
    c.refuse_unless(c.attr("detect_negative", 1) == 1, "detect_negative")
    c.refuse_unless(c.attr("detect_positive", 1) == 1, "detect_positive")
    largest = float(np.finfo(c.tensor().dtype).max)
    return c.op("_greater_scalar", c.op("abs", c.tensor()), scalar=largest)


def dropout(c: Call) -> list[Tensor]:
    if c.has(2):
        c.refuse_unless(not c.known(2, "training_mode").any(), "training_mode")
    if len(c.node.output) > 1 and c.node.output[1]:
        c.refuse("the output mask")
    ratio = float(c.known(1, "ratio").reshape(())) if c.has(1) else 0.5
    return [c.op("Dropout", c.tensor(), p=ratio)]


NAMED = {
    "Abs": "abs", "Neg": "negative", "Exp": "exp", "Log": "log", "Sqrt": "sqrt", "Reciprocal": "reciprocal",
    "Sigmoid": "sigmoid", "Erf": "erf", "Floor": "floor", "Ceil": "ceil", "Sign": "sign",
    "Sin": "sin", "Cos": "cos", "Tan": "tan", "Asin": "arcsin", "Acos": "arccos", "Atan": "arctan", "Sinh": "sinh",
    "Cosh": "cosh", "Tanh": "tanh", "Asinh": "arcsinh", "Acosh": "arccosh", "Atanh": "arctanh", "Not": "logical_not",
    "Identity": "_copy", "Softsign": "softsign",
}
PAIRS = {"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Equal": "equal", "Greater": "greater",
         "Less": "lesser", "GreaterOrEqual": "greater_equal", "LessOrEqual": "lesser_equal"}
CONVERTERS: dict[str, Converter] = {
    **{op_type: named(name) for op_type, name in NAMED.items()},
    **{op_type: pairwise(name) for op_type, name in PAIRS.items()},
    "Relu": activation("relu"), "Softplus": activation("softrelu"),
    "LeakyRelu": leaky("leaky", 0.01), "Elu": leaky("elu", 1.0), "Selu": selu, "PRelu": prelu, "Gelu": gelu,
    "HardSigmoid": with_attributes("hard_sigmoid", {"alpha": 0.2, "beta": 0.5}, alpha="alpha", beta="beta"),
    "HardSwish": hard_swish, "Sum": over_all("add"), "Mean": mean, "Max": over_all("maximum"),
    "Min": over_all("minimum"), "And": logical("and"), "Or": logical("or"), "Xor": logical("xor"), "Pow": power,
    "Round": rounded,
    "Mod": remainder, "Where": where, "Clip": clip, "Cast": cast, "CastLike": cast_like, "IsNaN": is_nan,
    "IsInf": is_infinite, "Dropout": dropout,
}
