"""Lists of pictures (`.lst`): a line has a number, labels and the picture's path, with tabulators between them."""
from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mxc.compiler.error import ArgumentError, FileAccessError
from mxc.compiler.system import input_files
from mxc.runtime import whole_file

ENDING = ".lst"
SEED = 100  # of the order of a shuffled list, so that it is MXNet's
SEPARATORS = frozenset("\t\n\r")  # a path with one cannot stand in a list
_KEYS = 1 << 64


@dataclass(frozen=True, slots=True)
class Picture:
    """A line of a list. path: from the folder of the pictures on."""

    key: int
    labels: tuple[float, ...]
    path: str


def pictures_in(root: str, endings: Sequence[str], recursive: bool) -> Iterator[Picture]:
    """The pictures in a folder, in the order of their names, numbered, with label 0.

    endings: of their names, in any case. recursive: those in folders below it too, folder by folder; those with
    pictures are numbered, and their number is the label. A folder in which a link leads back is entered once. Raises
    FileAccessError for a folder that cannot be read.
    """
    wanted = tuple(ending.lower() if ending.startswith(".") else f".{ending.lower()}" for ending in endings)
    key = label = 0
    for folder in _folders(root) if recursive else [root]:
        has_any = False
        for name in _names(folder):
            place = os.path.join(folder, name)
            if os.path.splitext(name)[1].lower() in wanted and os.path.isfile(place):
                yield Picture(key, (label,), os.path.relpath(place, root))
                key, has_any = key + 1, True
        label += has_any


def _folders(root: str) -> Iterator[str]:
    """A folder and all below it, each before those below, in the order of their names."""
    left: list[tuple[str, tuple[str, ...]]] = [(root, (os.path.realpath(root),))]
    while left:
        folder, inside = left.pop()
        yield folder
        below = [os.path.join(folder, name) for name in _names(folder)]
        real = [(path, os.path.realpath(path)) for path in below if os.path.isdir(path)]
        left += [(path, (*inside, itself)) for path, itself in reversed(real) if itself not in inside]


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (OSError, ValueError) as error:
        raise FileAccessError(folder, "read", error) from None


def parted(pictures: Sequence[Picture], prefix: str, chunks: int, train: float,
           test: float) -> dict[str, Sequence[Picture]]:
    """Pictures by the list that they go to: `chunks` parts, each with shares for training, testing and the rest."""
    size = -(-len(pictures) // chunks)
    lists = {}
    for i in range(chunks):
        part, name = pictures[i * size:(i + 1) * size], prefix + (f"_{i}" if chunks > 1 else "")
        if train == 1:
            lists[name + ENDING] = part
            continue
        tests, trains = int(size * test), int(size * train)
        if test:
            lists[f"{name}_test{ENDING}"] = part[:tests]
        if train + test < 1:
            lists[f"{name}_val{ENDING}"] = part[tests + trains:]
        lists[f"{name}_train{ENDING}"] = part[tests:tests + trains]
    return lists


def shuffled(pictures: Sequence[Picture]) -> list[Picture]:
    """The pictures in an order that looks random and is always the same."""
    made = list(pictures)
    random.Random(SEED).shuffle(made)
    return made


def write_list(path: str, pictures: Sequence[Picture]) -> None:
    """Write a list, whole or not at all. Raises FileAccessError where it cannot be written."""
    lines = [f"{each.key}\t{''.join(f'{label:f}{chr(9)}' for label in each.labels)}{each.path}\n" for each in pictures]
    with whole_file.replacing(path) as file:
        file.write(os.fsencode("".join(lines)))


def lists_of(prefix: str) -> list[str]:
    """The lists whose names begin with a prefix; where there are none and it is a folder, those in it."""
    folder, beginning = os.path.split(prefix)
    found = [os.path.join(folder, name) for name in _names(folder or ".") if name.startswith(beginning)
             and name.endswith(ENDING) and os.path.isfile(os.path.join(folder, name))]
    return lists_of(os.path.join(prefix, "")) if beginning and not found and os.path.isdir(prefix) else found


def read_lines(path: str) -> tuple[bytes, list[tuple[int, str]]]:
    """A list's bytes, and its lines that are not empty, with their numbers. Raises FileAccessError where it cannot be
    read."""
    raw = input_files.content(path)
    lines = os.fsdecode(raw.removeprefix(b"\xef\xbb\xbf")).split("\n")
    return raw, [(number, text) for number, line in enumerate(lines, 1) if (text := line.removesuffix("\r")).strip()]


def parsed(line: str, root: str) -> Picture:
    """What a line says. Raises ValueError for one that is none of a list.

    Spaces around the path are left out unless a picture has them in its name.
    """
    key, *labels, path = line.split("\t") if line.count("\t") > 1 else ("", "", "")
    try:
        number, values = int(key), tuple(map(float, labels))
    except ValueError:
        raise ArgumentError(f"expected a number, labels and a path, with tabulators between them, got {line[:80]!r}"
                            ) from None
    if not 0 <= number < _KEYS:
        raise ArgumentError(f"the number of a picture is 0 to 2^64 - 1, got {number}")
    if path != path.strip() and not Path(root, path).exists():
        path = path.strip()
    return Picture(number, values, path)
