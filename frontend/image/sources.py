"""Where iterators over images find encoded images and their labels: files of records, and lists of files."""
from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from mxc import ndarray, recordio
from mxc.base import numeric_types
from mxc.compiler.error import ArgumentError, AssertedError, ModelFileError
from mxc.runtime import remote_files

Listed = dict[Any, tuple[Any, str]]  # by key: the label, and the name of the file


def read_list(path: str, dtype: str) -> Listed:
    """What a file of lines KEY, labels and the file's name lists, with tabulators between.

    Raises ModelFileError, which names the line, for anything else.
    """
    found: Listed = {}
    for number, line in enumerate(remote_files.content(path).decode().splitlines(), 1):
        fields = line.strip().split("\t")
        if not line.strip():
            continue
        try:
            key, labels = int(fields[0]), np.array([float(field) for field in fields[1:-1]], dtype)
            if not labels.size:
                raise ValueError
        except ValueError:
            raise ModelFileError(path, f"line {number} is {line[:80]!r}; expected a number, labels, and the name of a "
                                 "file, with tabulators between") from None
        found[key] = (ndarray.array(labels, dtype=dtype), fields[-1])
    return found


def listed(images: Sequence[Sequence[Any]], dtype: str) -> Listed:
    """A list of (label, ..., name of the file) by keys "1", "2", ...: several labels are one array.

    Raises ValueError for an entry that is too short.
    """
    found: Listed = {}
    for number, entry in enumerate(images, 1):
        if len(entry) < 2:
            raise ArgumentError(f"imglist has the entry {entry!r}; expected labels and the name of a file")
        label = entry[:-1] if len(entry) > 2 or isinstance(entry[0], numeric_types) else entry[0]
        found[str(number)] = (ndarray.array(label, dtype=dtype), entry[-1])
    return found


class Source:
    """The encoded images of a file of records, or of a list.

    imgrec: the file, or None; imglist: labels and names by key, or None: then records tell their labels. seq: the keys
    in the order of an epoch; None for a file without an index, which is read from its beginning. Raises AssertionError
    for arguments that do not go together, and what reading the files raises.
    """

    def __init__(self, path_imgrec: str | None, path_imgidx: str | None, imglist: Listed | None, path_root: str | None):
        self.imgrec: Any = None
        self.imglist, self.path_root = imglist, path_root
        self.seq: list[Any] | None = None if imglist is None else list(imglist)
        if path_imgrec and path_imgidx:
            self.imgrec = recordio.MXIndexedRecordIO(path_imgidx, path_imgrec, "r")
            self.seq = list(self.imgrec.keys) if imglist is None else self.seq
        elif path_imgrec:
            self.imgrec = recordio.MXRecordIO(path_imgrec, "r")
            self.seq = None

    def take_part(self, part_index: int, num_parts: int) -> None:
        """Keep one of so many parts; what is left at the end is nobody's."""
        if num_parts <= 1:
            return
        if self.seq is None or not 0 <= part_index < num_parts:
            raise AssertedError(f"expected a part from 0 to {num_parts - 1}, of a list or a file with path_imgidx, got "
                                f"part_index {part_index} of {(self.imgrec and self.imgrec.uri) or 'a list'}")
        count = len(self.seq) // num_parts
        self.seq = self.seq[part_index * count:(part_index + 1) * count]

    def shuffle(self) -> None:
        """Another order of the keys. Raises AssertionError for a file without an index."""
        if self.seq is None:
            raise AssertedError("shuffle needs the index of the file of records: give path_imgidx")
        random.shuffle(self.seq)

    def rewind(self) -> None:
        """Go to the first record of a file without an index."""
        if self.imgrec is not None:
            self.imgrec.reset()

    def at(self, place: int) -> tuple[Any, bytes | str]:
        """The label of the image at a place of `seq`, and its record's content or its file's name."""
        assert self.seq is not None
        key = self.seq[place]
        if self.imgrec is None:
            assert self.imglist is not None
            return self.imglist[key]
        header, image = recordio.unpack(self.imgrec.read_idx(key))
        return (header.label if self.imglist is None else self.imglist[key][0]), image

    def following(self) -> tuple[Any, bytes] | None:
        """The next record's label and content, of a file without an index; None at the end."""
        record = self.imgrec.read()
        if record is None:
            return None
        header, image = recordio.unpack(record)
        return header.label, image

    def path(self, name: str) -> str:
        """Where the file of that name is."""
        return os.path.join(self.path_root, name) if self.path_root else name
