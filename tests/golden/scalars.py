"""Golden cases of one-input elementwise operators: unary functions and operators with a scalar."""
from __future__ import annotations

from golden.cases import Case, case

# name -> where it is defined and smooth
UNARY: dict[str, tuple[float, float]] = {
    "abs": (-3, 3), "arccos": (-0.95, 0.95), "arccosh": (1.1, 5), "arcsin": (-0.95, 0.95), "arcsinh": (-4, 4),
    "arctan": (-4, 4), "arctanh": (-0.9, 0.9), "cbrt": (0.2, 9), "ceil": (-3, 3), "cos": (-7, 7), "cosh": (-4, 4),
    "degrees": (-4, 4), "erf": (-3, 3), "erfinv": (-0.9, 0.9), "exp": (-5, 5), "expm1": (-2, 2), "fix": (-3, 3),
    "floor": (-3, 3), "gamma": (0.3, 5), "gammaln": (0.3, 9), "log": (0.1, 9), "log10": (0.1, 9), "log1p": (-0.8, 9),
    "log2": (0.1, 9), "logical_not": (-1, 2), "negative": (-3, 3), "radians": (-400, 400), "rcbrt": (0.2, 9),
    "reciprocal": (0.2, 5), "relu": (-3, 3), "rint": (-3, 3), "round": (-3, 3), "rsqrt": (0.2, 9), "sigmoid": (-8, 8),
    "sign": (-2, 2), "sin": (-7, 7), "sinh": (-4, 4), "softsign": (-4, 4), "sqrt": (0.1, 9), "square": (-3, 3),
    "tan": (-1.4, 1.4), "tanh": (-4, 4), "trunc": (-3, 3), "_copy": (-3, 3), "BlockGrad": (-3, 3), "make_loss": (-3, 3),
    "zeros_like": (-3, 3), "ones_like": (-3, 3), "hard_sigmoid": (-4, 4),
}
# those that MXNet takes integers for in a way worth keeping
INTEGER = ("abs", "ceil", "cos", "exp", "floor", "logical_not", "negative", "relu", "rint", "sigmoid", "sign", "sqrt",
           "square", "tanh", "_copy", "reciprocal", "log", "zeros_like", "round", "gamma", "erf")
POSITIVE = ("sqrt", "reciprocal", "log", "gamma")  # elsewhere the result is not finite, and no integer
HALF = ("exp", "log", "sigmoid", "tanh", "sqrt", "square", "relu", "reciprocal", "rsqrt", "abs", "negative", "erf",
        "sin")

SCALAR: dict[str, tuple[float, float]] = {
    "_plus_scalar": (-3, 3), "_minus_scalar": (-3, 3), "_rminus_scalar": (-3, 3), "_mul_scalar": (-3, 3),
    "_div_scalar": (-3, 3), "_rdiv_scalar": (0.4, 3), "_power_scalar": (0.4, 3), "_rpower_scalar": (-2, 2),
    "_mod_scalar": (-9, 9), "_rmod_scalar": (0.7, 3), "_maximum_scalar": (-3, 3), "_minimum_scalar": (-3, 3),
    "_hypot_scalar": (-3, 3), "_equal_scalar": (-3, 3), "_not_equal_scalar": (-3, 3), "_greater_scalar": (-3, 3),
    "_greater_equal_scalar": (-3, 3), "_lesser_scalar": (-3, 3), "_lesser_equal_scalar": (-3, 3),
    "_logical_and_scalar": (-1, 2), "_logical_or_scalar": (-1, 2), "_logical_xor_scalar": (-1, 2),
}


def cases() -> list[Case]:
    made = []
    for op, span in UNARY.items():
        made.append(case(op, "train", {"data": (3, 7)}, span=span))
        made.append(case(op, "plain", {"data": (5,)}, span=span, dtype="float64", train=False))
        if op in HALF:
            made.append(case(op, "train", {"data": (9,)}, span=span, dtype="float16"))
        if op in INTEGER:
            whole = (1, 9) if op in POSITIVE else (-4, 5)
            made.append(case(op, "whole", {"data": (9,)}, span=whole, dtype="int32", integer=["data"], train=False))
    for op in ("exp", "log", "sqrt", "tanh", "sigmoid", "relu"):
        made.append(case(op, "rank0", {"data": (1,)}, span=(0.5, 2)))
        made.append(case(op, "wide", {"data": (40,)}, span=(-120, 120), train=False))
        made.append(case(op, "whole", {"data": (9,)}, span=(0, 6), dtype="uint8", integer=["data"], train=False))
    for op, span in SCALAR.items():
        made.append(case(op, "train", {"data": (3, 5)}, {"scalar": 1.7}, span=span))
        whole = (1, 7) if op in ("_rdiv_scalar", "_rmod_scalar") else (-6, 7)
        made.append(case(op, "int", {"data": (9,)}, {"scalar": 2}, span=whole, dtype="int32", integer=["data"],
                         train=False))
        made.append(case(op, "half", {"data": (7,)}, {"scalar": 0.3}, span=span, dtype="float16", train=False))
    for op in ("_plus_scalar", "_mul_scalar", "_power_scalar", "_div_scalar", "_greater_scalar", "_mod_scalar"):
        made.append(case(op, "fraction", {"data": (9,)}, {"scalar": 1.7, "is_int": False}, span=(1, 9), dtype="int32",
                         integer=["data"], train=False))
        made.append(case(op, "wrap", {"data": (9,)}, {"scalar": 100}, span=(50, 127), dtype="int8", integer=["data"],
                         train=False))
        made.append(case(op, "plain", {"data": (5,)}, {"scalar": 0.1}, span=(0.5, 3), dtype="float64", train=False))
        made.append(case(op, "zero", {"data": (9,)}, {"scalar": 0}, span=(-3, 3)))
    for dtype in ("float32", "float64", "float16"):
        made.append(case("clip", "train", {"data": (3, 5)}, {"a_min": -0.6, "a_max": 0.7}, span=(-2, 2), dtype=dtype))
        made.append(case("clip", "crossed", {"data": (3, 5)}, {"a_min": 0.7, "a_max": -0.6}, span=(-2, 2), dtype=dtype))
        made.append(case("smooth_l1", "train", {"data": (3, 5)}, {"scalar": 1.5}, span=(-2, 2), dtype=dtype))
    made.append(case("clip", "int", {"data": (9,)}, {"a_min": -2.5, "a_max": 3.5}, span=(-9, 9), dtype="int32",
                     integer=["data"], train=False))
    for source, span in (("float32", (-9, 9)), ("float64", (-300, 300)), ("int32", (-300, 300)), ("float16", (-9, 9)),
                         ("uint8", (0, 255)), ("int64", (-9, 9)), ("int8", (-9, 9)), ("bool", (0, 2))):
        whole = ["data"] if "int" in source or source == "bool" else []
        for target in ("float32", "float16", "int32", "uint8", "bool", "float64"):
            made.append(case("Cast", f"to_{target}", {"data": (5,)}, {"dtype": target}, span=span, dtype=source,
                             integer=whole, train=source == "float32" and target.startswith("float")))
    return made
