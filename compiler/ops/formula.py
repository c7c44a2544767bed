"""Formulas of the operator table (`expr`, `reduce`) computed by NumPy: the reference of operators that have one."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mxc.compiler.ops.dtypes import numpy_dtype
from mxc.compiler.ops.expr import NumpyReading, as_dtype, compute_dtype, evaluate, number_as
from mxc.compiler.ops.shapes import reduced_axes, reduced_shape

if TYPE_CHECKING:
    from mxc.compiler.ops.operator import Operator, Params


def _environment(reading: NumpyReading, op: Operator, params: Params, inputs: dict[str, np.ndarray],
                 out_dtype: str) -> dict[str, np.ndarray]:
    """Inputs as they are; numeric parameters cast to the output's dtype, then to the compute dtype."""
    env = dict(inputs)
    for name in op.params:
        value = params[name]
        if isinstance(value, (bool, int, float)):
            env[name] = reading.const(number_as(value, out_dtype))
    return env


def expression_value(op: Operator, params: Params, inputs: list[np.ndarray], out_dtype: str) -> np.ndarray:
    """The output of an operator that has an expression."""
    if op.sums:
        return _sum(inputs, out_dtype)
    text = op.expression(params)
    assert text is not None
    reading = NumpyReading(compute_dtype(text, out_dtype))
    named = dict(zip(op.input_names(params), inputs, strict=True))
    result = evaluate(text, reading, _environment(reading, op, params, named, out_dtype))
    shape = np.broadcast_shapes(*[a.shape for a in inputs])
    if not inputs:
        shape = tuple(params["shape"])  # type: ignore[arg-type]
    return np.broadcast_to(as_dtype(result, numpy_dtype(out_dtype)), shape).copy()


def _sum(inputs: list[np.ndarray], out_dtype: str) -> np.ndarray:
    """The sum of arrays, added in their order."""
    reading = NumpyReading(compute_dtype("lhs + rhs", out_dtype))
    total = as_dtype(inputs[0], reading.dtype)
    for term in inputs[1:]:
        total = reading.apply("add", total, term)
    return np.array(as_dtype(total, numpy_dtype(out_dtype)))


def reduction_value(op: Operator, params: Params, inputs: list[np.ndarray], out_dtype: str) -> np.ndarray:
    """The output of an operator that has `reduce`. Floats are accumulated in float64, integers in their own dtype; a
    sum of bools tells whether any is true, a product whether all are."""
    assert op.reduce is not None
    out = numpy_dtype(out_dtype)
    wide = "float64" if "float" in out_dtype else compute_dtype(op.reduce.body, out_dtype)
    reading = NumpyReading(wide)
    named = dict(zip(op.input_names(params), inputs, strict=True))
    shape = np.broadcast_shapes(*[a.shape for a in inputs])
    env = _environment(reading, op, params, named, out_dtype)
    body = np.broadcast_to(as_dtype(evaluate(op.reduce.body, reading, env), reading.dtype), shape)
    axes = reduced_axes(params, len(shape))
    if op.reduce.combine in ("argmax", "argmin"):
        moved = np.moveaxis(body, axes, range(len(shape) - len(axes), len(shape)))
        flat = moved.reshape(*moved.shape[:len(shape) - len(axes)], -1)
        acc = as_dtype(getattr(np, op.reduce.combine)(flat, axis=-1), reading.dtype)
    else:
        combine: Any = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[op.reduce.combine]
        acc = combine.reduce(body, axis=axes, dtype=reading.dtype)
    count = np.asarray(math.prod(shape[a] for a in axes)).astype(reading.dtype)
    if out.kind == "b":
        acc, count = (as_dtype(n, out).astype(reading.dtype) for n in (acc, count))
    result = as_dtype(evaluate(op.reduce.final, reading, {**env, "acc": acc, "count": count}), out)
    return result.reshape(reduced_shape(params, shape, bool(params.get("keepdims"))))
