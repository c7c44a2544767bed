"""The expression language: what it admits, its NumPy reading, its derivatives against finite differences."""
from __future__ import annotations

import ast
import math

import numpy as np
import pytest
from op_cases import Case, cases

from mxc.compiler.error import MXNetError
from mxc.compiler.ops import table
from mxc.compiler.ops.backward_operator import backward_of
from mxc.compiler.ops.derive import gradient
from mxc.compiler.ops.expr import CONSTANTS, NumpyReading, compute_dtype, evaluate, names_of, parse
from mxc.compiler.ops.operator import Kind, Operator
from mxc.compiler.ops.shapes import reduced_shape
from mxc.compiler.scalar_functions import special


@pytest.mark.parametrize("text", ["x.y", "x[0]", "lambda: 0", "f(x)", "min(x)", "x if y else z", "a < b < c", "x and y",
                                  "not x", "exp(x, y)", "x //", "[x]", "exp(x=1)", "'a'.join(x)", "__import__('os')"])
def test_what_the_language_does_not_have_is_refused(text: str) -> None:
    with pytest.raises(MXNetError, match="expression"):
        parse(text)


def test_names_leave_out_functions_and_constants() -> None:
    assert names_of("where(a > 0, exp(b) * pi, log(a)) ** scalar") == {"a", "b", "scalar"}


def test_a_name_that_is_not_there_is_named() -> None:
    with pytest.raises(MXNetError, match="y is neither an input nor a parameter"):
        evaluate("x + y", NumpyReading("float32"), {"x": np.zeros(1, "float32")})


INTEGERS = [  # text, dtype, a, b, expected
    ("a / b", "int32", [-7, 7, 5], [2, -2, 0], [-3, -3, 0]),
    ("a % b", "int32", [-7, 7, 5], [3, -3, 0], [2, -2, 0]),
    ("a + b", "int8", [100, -100, 1], [100, -100, 1], [-56, 56, 2]),
    ("a - b", "uint8", [1, 2, 3], [2, 2, 2], [255, 0, 1]),
    ("a ** b", "int32", [-7, 3, 2], [3, -2, 8], [-343, 0, 256]),
    ("exp(a)", "int32", [0, 3, 8], [0, 0, 0], [1, 20, 2980]),
    ("a > b", "int32", [0, 3, 8], [0, 1, 9], [0, 1, 0]),
    ("(a > b) + (a >= b)", "uint8", [0, 3, 8], [0, 1, 9], [1, 2, 0]),
    ("a * (180 / pi)", "int32", [-7, 3, 8], [0, 0, 0], [-401, 171, 458]),
]


@pytest.mark.parametrize(("text", "dtype", "a", "b", "expected"), INTEGERS)
def test_integers_wrap_truncate_and_leave_the_integers_for_functions(text: str, dtype: str, a: list[int], b: list[int],
                                                                     expected: list[int]) -> None:
    env = {"a": np.array(a, dtype), "b": np.array(b, dtype)}
    result = evaluate(text, NumpyReading(compute_dtype(text, dtype)), env)
    assert result.astype(dtype).tolist() == expected


def test_nan_passes_through_min_and_max_and_is_true() -> None:
    env = {"a": np.array([np.nan, 1.0]), "b": np.array([1.0, np.nan])}
    reading = NumpyReading("float64")
    assert np.isnan(evaluate("min(a, b) + max(a, b)", reading, env)).all()
    assert evaluate("logical_and(a, b)", reading, env).tolist() == [True, True]


def test_a_test_keeps_its_own_dtype() -> None:
    env = {"c": np.array([0.5, 0.0]), "x": np.array([1, 2], "int32"), "y": np.array([3, 4], "int32")}
    assert evaluate("where(c, x, y)", NumpyReading("int32"), env).tolist() == [1, 4]


def test_cast_rounds() -> None:
    assert evaluate("cast(x, 'int32') + 0", NumpyReading("float32"), {"x": np.array([2.7])}).tolist() == [2.0]


def test_special_functions() -> None:
    x = np.array([0.3, 1.0, 2.5, 7.0, 30.0])
    assert special.gamma(x) == pytest.approx([math.gamma(v) for v in x])
    h = 1e-5
    assert special.digamma(x) == pytest.approx((special.lgamma(x + h) - special.lgamma(x - h)) / (2 * h), rel=1e-6)
    y = np.array([-0.99999, -0.5, -1e-9, 0.0, 0.3, 0.9999])
    assert special.erf(special.erfinv(y)) == pytest.approx(y, rel=1e-12)
    assert special.digamma(np.array([-0.5])) == pytest.approx([0.03648997397857652])
    assert np.isnan(special.digamma(np.array([-1.0, np.nan, -np.inf]))).all()
    assert special.gamma(np.array([0.0, 200.0])).tolist() == [np.inf, np.inf]
    assert special.lgamma(np.array([-2.0])).tolist() == [np.inf]


DERIVED = [
    ("x + y", "x", "og"), ("x - y", "y", "-og"), ("x * y", "x", "og * y"), ("x / y", "x", "og / y"), ("y", "x", "0"),
    ("floor(x)", "x", "0"), ("x > y", "x", "0"), ("max(x, 0)", "x", "where(x >= 0, og, 0)"),
    ("x ** 2", "x", "og * (2 * x)"),
    ("log(x)", "x", "og / x"), ("where(c, x, y)", "y", "where(c, 0, og)"), ("-x", "x", "-og"),
    ("exp(x * 3)", "x", "og * (3 * exp(x * 3))"),
]


@pytest.mark.parametrize(("text", "name", "expected"), DERIVED)
def test_derivatives_are_simplified(text: str, name: str, expected: str) -> None:
    assert gradient(text, name) == ast.unparse(parse(expected))


@pytest.mark.parametrize("text", ["tan(x)", "arctan2(x, y)", "x ** y", "x % y", "sqrt(x) / cbrt(y)",
                                  "erf(x) * erfinv(y / 4)", "abs(x - y)", "softrelu(x)", "sigmoid(x) ** 3",
                                  "lgamma(x) + gamma(y)", "min(x, y) ** 2", "arcsinh(x) * arctanh(y / 4)",
                                  "log10(x) + log2(y)", "1 / (1 + exp(-x))"])
def test_derivatives_equal_differences(text: str) -> None:
    env = {"x": np.array([0.7, 1.3, 2.2]), "y": np.array([1.9, 0.6, 1.2]), "og": np.ones(3)}
    reading, h = NumpyReading("float64"), 1e-6
    for name in ("x", "y"):
        up, down = (evaluate(text, reading, {**env, name: env[name] + d}) for d in (h, -h))
        found = np.broadcast_to(evaluate(gradient(text, name), reading, env), 3)
        assert found == pytest.approx((up - down) / (2 * h), rel=1e-5, abs=1e-7)


def _has_formula(op: Operator) -> bool:
    return op.differentiable and not isinstance(op.grad, str) and not op.is_made_of_others and bool(op.inputs)


def _passes_straight(op: Operator) -> bool:
    """Whether MXNet lets gradients through as they are, whatever the operator does: flips and changes of colours."""
    return op.name.endswith("_ste") or op.name.startswith("_image_")


FORMULAS = [c for op in table.all_operators() if _has_formula(op) and not _passes_straight(op) for c in cases(op)]


@pytest.mark.parametrize("case", FORMULAS, ids=str)
def test_gradients_equal_differences(case: Case) -> None:
    """og * d out / d input, summed over all outputs, against central differences, in float64."""
    arrays = case.arrays()
    out = case.op.reference(case.params, arrays, ["float64"])[0]
    og = np.random.default_rng(1).uniform(0.5, 1.5, out.shape)
    for k, name in enumerate(case.op.input_names(case.params)):
        if name == "sample" and case.op.name.startswith("_mxc_pdf"):  # counts have no gradient
            continue
        found = _gradient(case, name, og, out, arrays)
        assert found == pytest.approx(_differences(case, k, og, arrays), rel=1e-4, abs=1e-6), name


def _gradient(case: Case, name: str, og: np.ndarray, out: np.ndarray, arrays: list[np.ndarray]) -> np.ndarray:
    made, takes = backward_of(case.op, name)
    names = case.op.input_names(case.params)
    target = arrays[names.index(name)].shape
    values = {"og": og, "out": out, **dict(zip(names, arrays, strict=True))}
    params = dict(case.params)
    if case.op.reduce:
        kept = reduced_shape(case.params, target, keepdims=True)
        values |= {"og": og.reshape(kept), "out": out.reshape(kept)}
        params["count"] = math.prod(target) / math.prod(kept)
    made_params = made.make_params({k: params[k] for k in made.params})
    back = made.reference(made_params, [values[t] for t in takes], ["float64"])[0]
    if case.op.reduce:
        return np.broadcast_to(back, target)
    lead = back.ndim - len(target)
    axes = tuple(i for i in range(back.ndim) if i < lead or target[i - lead] < back.shape[i])
    return back.sum(axes, keepdims=True).reshape(target)


def _differences(case: Case, k: int, og: np.ndarray, arrays: list[np.ndarray]) -> np.ndarray:
    h, slopes = 1e-6, np.zeros(arrays[k].size)
    for i in range(arrays[k].size):
        ends = []
        for step in (h, -h):
            moved = arrays[k].copy()
            moved.flat[i] += step
            inputs = [moved if j == k else a for j, a in enumerate(arrays)]
            ends.append(case.op.reference(case.params, inputs, ["float64"])[0])
        slopes[i] = ((ends[0] - ends[1]) * og).sum() / (2 * h)
    return slopes.reshape(arrays[k].shape)


GENERATED = {made.name: (made, case) for case in FORMULAS if case.op.reduce is None
             for name in case.op.input_names(case.params) for made, _ in [backward_of(case.op, name)] if made.inputs}


TWICE = [n for n in GENERATED if n.startswith("_backward_")]


@pytest.mark.parametrize("name", TWICE)
def test_gradients_have_gradients(name: str) -> None:
    """The generated operators' own derivatives, with out as a variable of its own."""
    made, origin = GENERATED[name]
    shape = (2, 3)
    inputs = made.input_names(origin.params)
    case = Case(made, made.make_params({k: origin.params[k] for k in made.params}), (shape,) * len(inputs),
                origin.low, origin.high)
    arrays = case.arrays(seed=3)
    out = made.reference(case.params, arrays, ["float64"])[0]
    for k, input_name in enumerate(inputs):
        found = _gradient(case, input_name, np.ones(shape), out, arrays)
        assert found == pytest.approx(_differences(case, k, np.ones(shape), arrays), rel=1e-4, abs=1e-6), input_name


def test_generated_operators_are_found_by_name_and_have_the_kind() -> None:
    made, takes = backward_of(table.get("broadcast_mul"), "lhs")
    assert (made.name, made.kind, takes) == ("_backward_broadcast_mul_lhs", Kind.BROADCAST, ("og", "rhs"))
    assert table.get(made.name) is made
    assert backward_of(table.get("elemwise_add"), "rhs") == (table.get("_copy"), ("og",))
    assert backward_of(table.get("max"), "data")[1] == ("og", "out", "data")
    with pytest.raises(MXNetError, match="no gradient formula"):
        backward_of(table.get("floor"), "data")


def test_a_function_without_derivative_is_named() -> None:
    with pytest.raises(MXNetError, match="the derivative of polygamma4 is not known"):
        gradient("polygamma4(x)", "x")


def test_constants_are_numbers() -> None:
    assert all(isinstance(v, float) for v in CONSTANTS.values())
