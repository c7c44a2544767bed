"""The epilogue of a library kernel as what NVIDIA's libraries have: a scaled result, arrays that are added, a ReLU."""
from __future__ import annotations

import math
from dataclasses import dataclass

from mxc.compiler.kernel import calls, parts
from mxc.compiler.kernel.ir import CallKernel, Value

_LIKE = ("float16", "bfloat16", "float32")  # between these a conversion only rounds


@dataclass(frozen=True)
class Place:
    """Where an array lies: at element `offset` of a buffer, `steps` elements between neighbours along each output axis.
    An axis of one element has the step 0."""

    buffer: int
    offset: int
    steps: tuple[int, ...]


@dataclass(frozen=True)
class Epilogue:
    """result = relu(scale * computed + the sum of scale * array). The arrays have the result's axes, of which they may
    repeat some; `relu`: whether there is one. axes: the extents of the result's axes."""

    axes: tuple[int, ...]
    result: Place
    scale: float
    added: tuple[tuple[float, Place], ...]
    relu: bool


def read(kernel: CallKernel) -> Epilogue | None:
    """The epilogue of a product, convolution or gradient; None for one that is more than that."""
    if len(kernel.stores) != 1:
        return None
    store, axes = kernel.stores[0], parts.output_axes(kernel.geometry)
    value, relu = _without_casts(store.value), False
    if value is not None and value.op == "max" and (inner := _clipped(value)) is not None:
        value, relu = inner, True
    terms = _terms(value, 1.0) if value is not None else None
    result = _place(store.buffer, store.index, axes)
    if terms is None or result is None:
        return None
    scales = [scale for scale, term in terms if term.op == "acc"]
    added = [(scale, _place(term.data, term.args[0], axes)) for scale, term in terms if term.op == "load"]
    if store.mode == "add":
        if relu:
            return None
        added.append((1.0, result))
    found = tuple((scale, place) for scale, place in added if place is not None)
    if len(scales) != 1 or len(found) != len(added):
        return None
    return Epilogue(axes, result, scales[0], found, relu)


def _without_casts(value: Value) -> Value | None:
    """A value without conversions that only round; None for another conversion."""
    while value.op == "cast":
        if value.dtype not in _LIKE or value.args[0].dtype not in _LIKE:
            return None
        value = value.args[0]
    return value


def _clipped(value: Value) -> Value | None:
    """What a maximum with 0 is of."""
    for kept, other in (value.args, value.args[::-1]):
        if (zero := _without_casts(other)) is not None and zero.op == "const" and zero.data == 0:
            return kept
    return None


def _terms(value: Value, scale: float) -> list[tuple[float, Value]] | None:
    """A sum as scaled results and loads; None for anything else."""
    plain = _without_casts(value)
    if plain is None or not math.isfinite(scale):
        return None
    if plain.op == "acc" or (plain.op == "load" and len(plain.args) == 1):
        return [(scale, plain)]
    if plain.op in ("add", "sub"):
        first, second = _terms(plain.args[0], scale), _terms(plain.args[1], scale if plain.op == "add" else -scale)
        return first + second if first is not None and second is not None else None
    if plain.op == "mul":
        for kept, other in (plain.args, plain.args[::-1]):
            if (number := _without_casts(other)) is not None and number.op == "const":
                return _terms(kept, scale * float(number.data))
    return None


def _place(buffer: int, index: Value, axes: tuple[int, ...]) -> Place | None:
    try:
        steps, offset = calls.coefficients(index)
    except ValueError:
        return None
    return Place(buffer, offset, tuple(steps.get(axis, 0) if n > 1 else 0 for axis, n in enumerate(axes)))
