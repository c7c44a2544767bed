"""The records of a file as `mxc rec` shows them: number, key, place, label and picture of each."""
from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mxc.compiler.error import MXNetError
from mxc.recordio import MXIndexedRecordIO, unpack
from mxc.runtime.picture_heads import PictureHead, picture_head
from mxc.runtime.record_scan import Fault, Record, RecordScan

MOST = 1 << 16  # bytes of a record that are read first: labels, and most pictures' heads, are within


@dataclass(frozen=True, slots=True)
class Item:
    """A record. key: of the index, else the id in its header, else its number. header: as `mx.recordio.unpack` gives
    it, None where the record has none. content: what is behind the header, or its beginning."""

    number: int
    key: str
    record: Record
    header: Any
    content: bytes
    picture: PictureHead | None

    @property
    def label(self) -> list[float] | float | None:
        """The label, a number or several; None without a header."""
        if self.header is None:
            return None
        return self.header.label.tolist() if self.header.flag else self.header.label

    def data(self) -> dict[str, Any]:
        """It as plain data."""
        image = {"kind": self.picture.kind, "width": self.picture.width, "height": self.picture.height} \
            if self.picture else None
        return {"record": self.number, "key": self.key, "offset": self.record.offset, "bytes": self.record.length,
                "label": self.label, "image": image}


def index_path(path: str) -> str:
    """Where the index of a file of records is."""
    return os.path.splitext(path)[0] + ".idx"


def read_index(path: str) -> list[tuple[str, int]]:
    """(key, byte) of the index beside a file of records, none where there is no index. Raises MXNetError for a file
    that is none."""
    if not os.path.exists(index_path(path)):
        return []
    file = MXIndexedRecordIO(index_path(path), path, "r", key_type=str)
    file.close()
    return [(key, file.idx[key]) for key in file.keys]


def split(content: bytes) -> tuple[Any, bytes]:
    """The header and what is behind it; (None, content) for a record without a header of labels that fit in it."""
    try:
        return unpack(content)
    except MXNetError:
        return None, content


def item(scan: RecordScan, record: Record, number: int, keys: dict[int, str], whole: bool = False) -> Item:
    """What is known of a record. keys: of the index, by the byte. whole: with the whole content."""
    content = scan.content(record, None if whole else MOST)
    header, rest = split(content)
    picture = picture_head(rest)
    is_part = len(content) < record.length
    if is_part and (header is None or (picture and not picture.width)):  # more labels, or a longer head, than that
        content = scan.content(record)
        header, rest = split(content)
        picture = picture_head(rest)
    key = keys.get(record.offset) or str(number if header is None else header.id)
    return Item(number, key, record, header, rest, picture)


@contextlib.contextmanager
def opened(path: str) -> Iterator[RecordScan]:
    """A file of records, closed at the end."""
    scan = RecordScan(path)
    try:
        yield scan
    finally:
        scan.close()


def items(scan: RecordScan, keys: dict[int, str], whole: bool = False) -> Iterator[Item | Fault]:
    """All records and faults of a file, in their order."""
    number = 0
    for each in scan.found():
        if isinstance(each, Fault):
            yield each
        else:
            yield item(scan, each, number, keys, whole)
            number += 1
