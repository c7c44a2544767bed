"""Operators' expressions as kernel values: the typed reading of the expression language (ops/expr.py)."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.ir import Value
from mxc.compiler.ops.expr import compute_dtype, evaluate, names_of, number_as
from mxc.compiler.ops.operator import Operator, Params

TRUTH = frozenset(["and", "or", "not"])
ROUNDING = frozenset(["floor", "ceil", "trunc", "rint"])  # they leave integers as they are
COUNT = "count"  # the parameter of a reduction's gradient: how many elements were reduced


class ValueReading:
    """Expressions over values of one compute dtype; truth values come from comparisons and count as 0 and 1."""

    def __init__(self, dtype: str):
        self.dtype = dtype

    def const(self, number: int | float) -> Value:
        return ir.const(number_as(number, self.dtype), self.dtype)

    def cast(self, value: Value, dtype: str) -> Value:
        return ir.cast(ir.cast(value, dtype), self.dtype)

    def line(self, value: Value) -> Value:
        return value

    def apply(self, op: str, *args: Value) -> Value:
        if op in TRUTH:
            return ir.apply(op, *map(truth, args))
        if op == "where":
            return ir.apply(op, truth(args[0]), *(ir.cast(a, self.dtype) for a in args[1:]))
        if op in ROUNDING and self.dtype not in ir.FLOATS:
            return ir.cast(args[0], self.dtype)
        return ir.apply(op, *(ir.cast(a, self.dtype) for a in args))


def truth(value: Value) -> Value:
    """`value` as a bool: what is not 0 is true."""
    return value if value.dtype == "bool" else ir.apply("ne", value, ir.const(number_as(0, value.dtype), value.dtype))


def _environment(params: Params, used: frozenset[str], values: Mapping[str, Value], dtype: str,
                 compute: str) -> dict[str, Value]:
    """The names of an expression: inputs as they are (a test keeps its dtype), parameters in the compute dtype, rounded
    to the tensor's dtype first."""
    env = dict(values)
    for name in used - env.keys():
        number = params.get(name)
        if not isinstance(number, (bool, int, float)):
            continue
        if name == COUNT:  # an index, so an argument of the kernel: it serves every shape
            env[name] = ir.cast(ir.const(int(number), ir.INDEX), compute)
        else:
            env[name] = ir.const(number_as(number_as(number, dtype), compute), compute)
    return env


def expression(op: Operator, params: Params, values: Sequence[Value], dtype: str) -> Value:
    """An elementwise operator's result in `dtype`; `values` are its inputs' elements in the order of `input_names`."""
    text = op.expression(params)
    assert text is not None, op
    named = dict(zip(op.input_names(params), values, strict=True))
    return _value(text, params, named, dtype)


def _value(text: str, params: Params, values: Mapping[str, Value], dtype: str) -> Value:
    compute = compute_dtype(text, dtype)
    env = _environment(params, names_of(text), values, dtype, compute)
    return ir.cast(evaluate(text, ValueReading(compute), env), dtype)


def body_value(op: Operator, params: Params, element: Value, dtype: str) -> Value:
    """What a reduction combines for one element, in the accumulator's `dtype`."""
    assert op.reduce is not None
    names = op.input_names(params)
    return _value(op.reduce.body, params, {names[0]: element}, dtype)


def reduction_final(op: Operator, params: Params, total: Value, count: Value, dtype: str) -> Value:
    """A reduction's result in `dtype`, from what was combined and the number of elements (both of one dtype)."""
    assert op.reduce is not None
    return ir.cast(_value(op.reduce.final, params, {"acc": total, "count": count}, total.dtype), dtype)
