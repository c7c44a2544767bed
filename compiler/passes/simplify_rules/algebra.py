"""Rules of arithmetic that hold for every value, NaN and infinities included."""
from __future__ import annotations

import math

import numpy as np

from mxc.compiler.graph.building import filled
from mxc.compiler.graph.graph import Entry, Node
from mxc.compiler.passes.simplify_rules.constants import fill_value
from mxc.compiler.passes.simplify_rules.rule import Site, rule

NEUTRAL = {"_mul_scalar": 1.0, "_div_scalar": 1.0, "_plus_scalar": 0.0, "_minus_scalar": 0.0, "_power_scalar": 1.0}


def is_float(dtype: str) -> bool:
    return "float" in dtype


@rule("_copy", "Cast", "amp_cast")
def same_dtype(site: Site, node: Node) -> Entry | None:
    """identity(x), Cast(x) to x's own dtype -> x"""
    (data,) = node.inputs
    return site.new(data) if site.graph.dtype(data) == site.graph.dtype(Entry(node)) else None


@rule(*NEUTRAL)
def neutral_scalar(site: Site, node: Node) -> Entry | None:
    """x * 1, x / 1, x + 0, x - 0, x ** 1 -> x (a negative zero keeps its sign)"""
    assert node.op is not None
    (data,) = node.inputs
    same = site.graph.dtype(data) == site.graph.dtype(Entry(node))
    return site.new(data) if same and node.params.scalar == NEUTRAL[node.op.name] else None


@rule("elemwise_add", "elemwise_sub", "elemwise_mul", "elemwise_div", "broadcast_add", "broadcast_sub",
      "broadcast_mul", "broadcast_div")
def neutral_array(site: Site, node: Node) -> Entry | None:
    """x + zeros, zeros + x, x - zeros, x * ones, ones * x, x / ones -> x, where x has the result's shape"""
    assert node.op is not None
    operation = node.op.name.rpartition("_")[2]
    neutral = 0.0 if operation in ("add", "sub") else 1.0
    own = Entry(node)
    for position in (1, 0) if operation in ("add", "mul") else (1,):
        other = node.inputs[1 - position]
        fits = site.graph.shape(other) == site.graph.shape(own) and site.graph.dtype(other) == site.graph.dtype(own)
        if fits and fill_value(node.inputs[position]) == neutral:
            return site.new(other)
    return None


def _power_of_two(number: float) -> bool:
    return number != 0 and math.isfinite(number) and abs(math.frexp(number)[0]) == 0.5


@rule("_mul_scalar")
def scalar_chain(site: Site, node: Node) -> Entry | None:
    """x * a * b -> x * (a * b), where it rounds alike: integers by whole numbers, floats when one is a power of two

    A product that overflows or underflows in between and not in the end is the exception: it comes out right.
    """
    inner = site.producer(node.inputs[0], "_mul_scalar")
    if inner is None or site.graph.dtype(inner.inputs[0]) != site.graph.dtype(Entry(node)):
        return None
    first, second = inner.params.scalar, node.params.scalar
    dtype = site.graph.dtype(Entry(node))
    if is_float(dtype):
        limits = np.finfo("float32" if dtype == "bfloat16" else dtype)
        normal = all(float(limits.tiny) <= abs(x) <= float(limits.max) for x in (first, second, first * second))
        exact = normal and (_power_of_two(first) or _power_of_two(second))
    else:
        exact = first.is_integer() and second.is_integer() and abs(first * second) < 2**31
    if not exact:
        return None
    return site.builder.make("_mul_scalar", site.new(inner.inputs[0]), scalar=first * second)


@rule("_mxc_saturate")
def saturated_relu(site: Site, node: Node) -> Entry | None:
    """relu(x) in uint8 -> x in uint8, which is 0 where x is below it or NaN"""
    inner = site.producer(node.inputs[0], "relu")
    if inner is None or node.params.dtype != "uint8" or site.graph.dtype(inner.inputs[0]) != "float32":
        return None
    return site.builder.make("_mxc_saturate", site.new(inner.inputs[0]), dtype="uint8", name=node.name)


@rule("negative")
def double_negative(site: Site, node: Node) -> Entry | None:
    """-(-x) -> x"""
    inner = site.producer(node.inputs[0], "negative")
    return None if inner is None else site.new(inner.inputs[0])


@rule("relu", "abs", "floor", "ceil", "rint", "trunc", "sign")
def idempotent(site: Site, node: Node) -> Entry | None:
    """f(f(x)) -> f(x) for relu, abs, floor, ceil, rint, trunc and sign"""
    assert node.op is not None
    (data,) = node.inputs
    return None if site.producer(data, node.op.name) is None else site.new(data)


@rule("elemwise_mul", "broadcast_mul", "_mul_scalar")
def integer_times_zero(site: Site, node: Node) -> Entry | None:
    """x * 0 -> 0 for integers (a float may be NaN or infinite)"""
    own = Entry(node)
    dtype = site.graph.dtype(own)
    if is_float(dtype):
        return None
    factors = [fill_value(e) for e in node.inputs] if len(node.inputs) == 2 else [node.params.scalar]
    return filled(site.builder, site.graph.shape(own), 0.0, dtype) if 0 in factors else None


@rule("where")
def where_of_constant(site: Site, node: Node) -> Entry | None:
    """where(all true, x, y) -> x, where(all false, x, y) -> y, where(c, x, x) -> x"""
    condition, true, false = node.inputs
    value = fill_value(condition)
    if true == false:
        return site.new(true)
    return None if value is None else site.new(true if value else false)


@rule("elemwise_add", "elemwise_sub", "elemwise_mul", "elemwise_div", "broadcast_add", "broadcast_sub",
      "broadcast_mul", "broadcast_div")
def fill_as_scalar(site: Site, node: Node) -> Entry | None:
    """x OP constant array -> x OP scalar, where x is a float and has the result's shape"""
    assert node.op is not None
    operation = node.op.name.rpartition("_")[2]
    own = Entry(node)
    for position in (1, 0):
        data, value = node.inputs[1 - position], fill_value(node.inputs[position])
        if value is None or site.graph.shape(data) != site.graph.shape(own) or not is_float(site.graph.dtype(own)):
            continue
        forward = {"add": "_plus_scalar", "sub": "_minus_scalar", "mul": "_mul_scalar", "div": "_div_scalar"}
        backward = forward | {"sub": "_rminus_scalar", "div": "_rdiv_scalar"}
        return site.builder.make((forward if position else backward)[operation], site.new(data), scalar=value)
    return None
