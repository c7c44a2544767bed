"""Shape and dtype inference of symbols, in the terms MXNet's programs use."""
from __future__ import annotations

import operator
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mxc.compiler.error import ArgumentError, ArgumentTypeError, MXNetError
from mxc.compiler.ops.dtypes import scalar_type
from mxc.runtime.array import dtype_name
from mxc.util import is_np_shape

if TYPE_CHECKING:
    from mxc.symbol.symbol import Symbol

_MOST_NAMED = 10  # the most arguments that a warning lists


def shapes(symbol: Symbol, args: Sequence[Any], kwargs: Mapping[str, Any], partial: bool) -> Any:
    """(argument shapes, output shapes, auxiliary shapes); see Symbol.infer_shape."""
    from mxc.compiler.passes.infer_shape import infer_shape

    if args and kwargs:
        raise ArgumentError("Can only specify known argument shapes either by positional or kwargs way.")
    for where, value in [*((f"argument {i}", v) for i, v in enumerate(args) if v is not None),
                         *((repr(k), v) for k, v in kwargs.items())]:
        if not isinstance(value, tuple):
            raise ArgumentTypeError(f"Arguments need to be shapes (tuple), but {where} is {type(value)}.")
    known = {name: tuple(operator.index(dim) for dim in shape) for name, shape in _named(symbol, args, kwargs).items()}
    graph = symbol.graph
    numpy = is_np_shape()
    unknown = -1 if numpy else 0
    inferred = _grouped(symbol, graph, infer_shape(graph, known, partial=True, numpy=numpy))
    open_ended = [[shape is None or unknown in shape for shape in group] for group in inferred]
    found = [[() if shape is None and not numpy else shape for shape in group] for group in inferred]
    if partial or not any(map(any, open_ended)):
        return tuple(found)
    named = zip(symbol.list_arguments(), found[0], open_ended[0], strict=True)
    _warn("shape", f" ({unknown}s in shape means unknown dimensions)", [
        f"{name}: {shape}" for name, shape, is_open in named if is_open])
    return None, None, None


def types(symbol: Symbol, args: Sequence[Any], kwargs: Mapping[str, Any], partial: bool) -> Any:
    """(argument types, output types, auxiliary types); see Symbol.infer_type."""
    from mxc.compiler.passes.infer_dtype import infer_dtype

    if args and kwargs:
        raise ArgumentError("Can only specify known argument types either by positional or kwargs way.")
    known = {name: dtype_name(value) for name, value in _named(symbol, args, kwargs).items()}
    graph = symbol.graph
    facts = infer_dtype(graph, known, partial=True)
    found = [[None if dtype is None else scalar_type(dtype) for dtype in group]
             for group in _grouped(symbol, graph, facts)]
    if partial or all(dtype is not None for group in found for dtype in group):
        return tuple(found)
    _warn("type", "", [f"{name}: None" for name, dtype in zip(symbol.list_arguments(), found[0], strict=True)
                       if dtype is None])
    return None, None, None


def _named(symbol: Symbol, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The given values that are not None, by argument. Raises MXNetError for more values than arguments."""
    names = symbol.list_arguments()
    if len(args) > len(names):
        raise MXNetError(f"{len(args)} values for {len(names)} arguments: {', '.join(names)}")
    pairs = kwargs.items() if kwargs else zip(names, args, strict=False)
    return {name: value for name, value in pairs if value is not None}


def _grouped(symbol: Symbol, graph: Any, facts: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Facts of the arguments, of the outputs and of the auxiliary states."""
    variables, aux = symbol._inputs()
    return [[facts[graph.ids[node]][0] for node in variables if node not in aux],
            [facts[graph.ids[entry.node]][entry.index] for entry in symbol.entries],
            [facts[graph.ids[node]][0] for node in variables if node in aux]]


def _warn(what: str, explanation: str, lines: list[str]) -> None:
    shown = lines[:_MOST_NAMED] + (["..."] if len(lines) > _MOST_NAMED else [])
    warnings.warn(f"Cannot decide {what} for the following arguments{explanation}. Consider providing them as input:"
                  "\n\t" + "\n\t".join(shown), stacklevel=4)


def whole_shape(name: str, shape: Any) -> tuple[int, ...]:
    """The shape given for an argument as a tuple. Raises ArgumentTypeError when it is not one of whole numbers."""
    try:
        if isinstance(shape, (tuple, list)):
            return tuple(operator.index(dim) for dim in shape)
    except TypeError:
        pass
    raise ArgumentTypeError(f"the shape of {name!r} must be a tuple of whole numbers, got {shape!r}")
