"""What is wrong with a file of records and its index."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mxc.cli.record_items import index_path, opened, read_index, split
from mxc.compiler.error import ModelFileError, MXNetError
from mxc.runtime.picture_heads import is_cut_off
from mxc.runtime.record_scan import Fault


@dataclass(frozen=True, slots=True)
class Wrong:
    """A fault of a file. offset: the byte where it is, None where it has no place."""

    file: str
    offset: int | None
    reason: str


def check(path: str, show: Callable[[str], None]) -> tuple[int, int, list[Wrong]]:
    """How many records a file has, its bytes, and its faults and those of its index, if it has one.

    show: is told how far it is. Raises FileAccessError where the file cannot be read.
    """
    offsets: list[int] = []
    faults: list[Wrong] = []
    with opened(path) as scan:
        for each in scan.found(thorough=True):
            if isinstance(each, Fault):
                faults.append(Wrong(path, each.offset, each.reason))
                continue
            if is_cut_off(split(scan.content(each))[1]):
                faults.append(Wrong(path, each.offset, f"record {len(offsets)}: its picture is cut off"))
            offsets.append(each.offset)
            show(f"{each.end:,} of {scan.size:,} bytes")
        return len(offsets), scan.size, [*faults, *_wrong_in_index(path, offsets)]


def _wrong_in_index(path: str, offsets: list[int]) -> Iterator[Wrong]:
    """The faults of the index of a file whose records begin at these bytes."""
    name = index_path(path)
    try:
        keys = read_index(path)
    except MXNetError as error:
        yield Wrong(name, *((error.offset, error.reason) if isinstance(error, ModelFileError) else (None, str(error))))
        return
    begins, seen = set(offsets), set()
    for key, offset in keys:
        if offset not in begins:
            yield Wrong(name, None, f"key {key}: no record begins at byte {offset}")
        if key in seen:
            yield Wrong(name, None, f"key {key}: it is there more than once")
        seen.add(key)
    lacking = sorted(begins - {offset for _, offset in keys}) if keys else []
    if lacking:
        yield Wrong(name, None, f"it lacks {len(lacking):,} records, the first at byte {lacking[0]}")
