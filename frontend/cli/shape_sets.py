"""The sets of input shapes that `mxc compile` compiles for, and where they have the rows of a batch."""
from __future__ import annotations

from typing import NamedTuple

from mxc.cli.model import Shape, UsageError, checked, parse_shapes, split_pair

BATCH = "batch"  # stands in a shape for the number of rows


class ShapeSets(NamedTuple):
    """sets: shapes by name. axes: along which axis inputs have rows, where --batches says that they have; else None."""

    sets: list[dict[str, Shape]]
    axes: dict[str, int] | None


def batches(text: str) -> list[int]:
    """An option's numbers, as 1,8,64."""
    parts = text.split(",")
    fits = all(part.isdecimal() and int(part) >= 1 for part in parts) and len({*map(int, parts)}) == len(parts)
    checked(text, fits, "different numbers of at least 1, as 1,8,64")
    return [*map(int, parts)]


def shape_sets(texts: list[str], sizes: list[int] | None) -> ShapeSets:
    """The sets of shapes in `--shape` options: the first of each name are a set, the second another, ...; a name that
    is there once is in all of them. sizes: of --batches; each set is there for each of them: the word `batch` stands
    for it in a shape, or, where no shape has the word, the first extent of all inputs that have the first one's.

    Raises UsageError when other names are there more or less often, two sets are the same, or the word is there twice
    in a shape or without --batches.
    """
    turns: dict[str, list[str]] = {}
    for text in texts:
        turns.setdefault(split_pair(text, "shape")[0], []).append(text)
    count = max(map(len, turns.values()), default=1)
    for name, given in turns.items():
        if len(given) not in (1, count):
            raise UsageError(f"--shape {name}: given {len(given)} times, another input {count} times: each once, or "
                             "once for each set")
    written = [[given[min(i, len(given) - 1)] for given in turns.values()] for i in range(count)]
    axes = {name: axis for name, given in turns.items() if (axis := _axis_of_word(given)) is not None}
    if axes and sizes is None:
        raise UsageError(f"--shape {turns[next(iter(axes))][0]}: for which sizes of the batch? give them with "
                         "--batches, as --batches 1,8,64")
    if sizes is None:
        sets = [parse_shapes(each) for each in written]
    elif axes:
        sets = [parse_shapes([_with_size(text, size) for text in each]) for each in written for size in sizes]
    else:
        sets, axes = _along_first_axes([parse_shapes(each) for each in written], sizes)
    for i, shapes in enumerate(sets):
        if shapes in sets[:i]:
            name, given = next(((name, given) for name, given in turns.items() if len(given) > 1), ("", [""]))
            raise UsageError(f"--shape {given[min(i // len(sizes or [1]), len(given) - 1)]}: {name} was given already")
    return ShapeSets(sets, None if sizes is None else axes)


def _axis_of_word(texts: list[str]) -> int | None:
    """Where shapes of one input have the word `batch`; None: nowhere."""
    places = {tuple(i for i, part in enumerate(split_pair(text, "shape")[2].strip("()").split(","))
                    if part.strip() == BATCH) for text in texts}
    if places == {()}:
        return None
    if len(places) > 1 or len(next(iter(places))) > 1:
        raise UsageError(f"--shape {texts[0]}: expected the word {BATCH} once in each shape of this input, in the same "
                         "place")
    return next(iter(places))[0]


def _with_size(text: str, size: int) -> str:
    name, equals, value = split_pair(text, "shape")
    return name + equals + ",".join(str(size) if part.strip() == BATCH else part for part in value.split(","))


def _along_first_axes(sets: list[dict[str, Shape]], sizes: list[int]) -> tuple[list[dict[str, Shape]], dict[str, int]]:
    """The sets, each for each size of a batch along the first axes of the inputs that are as long as the first's."""
    if not sets[0]:
        raise UsageError(f"--batches {','.join(map(str, sizes))}: of which inputs? give their shapes with --shape")
    rows = [next(iter(shapes.values()))[0] for shapes in sets]
    axes = {name: 0 for name in sets[0] if all(each[name][0] == n for each, n in zip(sets, rows, strict=True))}
    return [{name: (size, *shape[1:]) if name in axes else shape for name, shape in shapes.items()}
            for shapes in sets for size in sizes], axes
