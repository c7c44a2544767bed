"""The typed reading of expressions against the NumPy reading."""
from __future__ import annotations

import numpy as np
import pytest

from mxc.compiler.kernel.interpret import Interpreter
from mxc.compiler.kernel.ir import LoopKernel, axis, cast, load
from mxc.compiler.kernel.scalar import ValueReading
from mxc.compiler.ops.expr import NumpyReading, as_dtype, compute_dtype, evaluate

TEXTS = ["x + y * 2", "where(x > y, x - y, y / x)", "max(x, 0) - min(y, 3)", "abs(x) % 3", "exp(x / 4) + sqrt(abs(y))",
         "logical_and(x > 0, y > 0) + (x == y)", "cast(x, 'int32') * 1.5", "tanh(x) * sigmoid(y)"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int8"])
@pytest.mark.parametrize("text", TEXTS)
def test_readings_agree(text: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    arrays = [as_dtype(rng.uniform(-9, 9, 200), np.dtype(dtype)) for _ in range(2)]
    compute = compute_dtype(text, dtype)
    env = {name: as_dtype(a, np.dtype(compute)) for name, a in zip("xy", arrays, strict=True)}
    want = as_dtype(evaluate(text, NumpyReading(compute), env), np.dtype(dtype))
    leaves = {name: cast(load(i, axis(0), dtype), compute) for i, name in enumerate("xy")}
    value = cast(evaluate(text, ValueReading(compute), leaves), dtype)
    kernel = LoopKernel("", (dtype, dtype), (200,), (), (), ())
    got = Interpreter(kernel, arrays).value(value)
    assert got.dtype == dtype
    tolerance = {"float16": 2e-3, "float32": 1e-6, "float64": 1e-13}.get(dtype, 0)
    np.testing.assert_allclose(got.astype("float64"), want.astype("float64"), rtol=tolerance, atol=tolerance)
