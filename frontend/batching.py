"""Along which axes a model's inputs and outputs have the rows of a batch, and whether it keeps these apart: what an
artifact needs to know to run batches of any size."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mxc.compiler.error import ArgumentError
from mxc.runtime.array import dtype_name
from mxc.runtime.batches import Batches, Place

Shape = tuple[int, ...]
Axes = dict[str, int]


def found_batches(executors: Sequence[Any], read: Sequence[str], free: Sequence[str],
                  axes: Mapping[str, int] | None) -> Batches:
    """How plans of these executors, one for each set of shapes, take batches of other sizes.

    read: the arguments that a caller gives and inference reads; free: all that a caller may give. axes: along which
    axis those have rows that have any; None: as `likely_axes` finds. Raises ArgumentError for an axis that there is
    not.
    """
    from mxc.compiler.graph.batch_rows import MixedRows

    arrays = executors[0].arg_dict
    for name, axis in (axes or {}).items():
        if not 0 <= axis < len(arrays[name].shape):
            raise ArgumentError(f"batch_axes: {name!r} has the shape {arrays[name].shape}; it has no axis {axis}")
    sets = [{name: executor.arg_dict[name].shape for name in read} for executor in executors]
    mixed = ""
    for each in likely_axes(sets) if axes is None else [{n: axis for n, axis in axes.items() if n in read}]:
        places: dict[Any, list[Place | None]] = {}  # by the shapes of one row
        try:
            outputs = []
            for executor, shapes in zip(executors, sets, strict=True):
                key = tuple((name, i, d) for name, shape in shapes.items() for i, d in enumerate(shape)
                            if i != each.get(name))
                if key not in places:
                    places[key] = _places(executor, read, free, each)
                outputs.append(places[key])
            return Batches({name: Place(axis) for name, axis in each.items()}, outputs)
        except MixedRows as error:
            mixed = mixed or str(error)
    return Batches({}, [], mixed or "no input has a batch")


def _places(executor: Any, read: Sequence[str], free: Sequence[str], axes: Axes) -> list[Place | None]:
    """Where the outputs have rows, for inputs of the shapes that an executor has. Raises MixedRows."""
    from mxc.compiler.passes.batch_rows import find_rows
    from mxc.compiler.passes.unread import without_unread

    arrays = executor.arg_dict | executor.aux_dict
    shapes = {name: array.shape for name, array in arrays.items()}
    graph = without_unread(executor._symbol.graph, shapes, {name for name in free if name not in read})
    known = {name: shape for name, shape in shapes.items() if name in read or name not in free}
    dtypes = {name: dtype_name(array.dtype) for name, array in arrays.items()}
    return [rows and Place(*rows) for rows in find_rows(graph, known, dtypes, axes)]


def likely_axes(sets: Sequence[Mapping[str, Shape]]) -> list[Axes]:
    """Along which axes inputs may have rows, by their shapes; what is likelier comes first: the only axes in which
    sets of shapes differ, by the same sizes, then the first axes of all inputs that have as many rows as the first
    input."""
    found = []
    differing = {name: [i for i in range(len(shape)) if len({each[name][i] for each in sets}) > 1]
                 for name, shape in sets[0].items() if len({len(each[name]) for each in sets}) == 1}
    axes = {name: places[0] for name, places in differing.items() if places}
    if axes and all(len(places) < 2 for places in differing.values()) and all(
            len({each[name][axis] for name, axis in axes.items()}) == 1 for each in sets):
        found.append(axes)
    first = next((name for name, shape in sets[0].items() if shape), None)
    if first is not None:
        found.append({name: 0 for name in sets[0] if all(each[name][:1] == each[first][:1] for each in sets)})
    return [each for i, each in enumerate(found) if each not in found[:i]]
