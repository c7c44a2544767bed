"""MXNet's `mx.recordio`: files of records, with or without an index, and what a record of an image has before it."""
from __future__ import annotations

import io
import numbers
import os
import struct
from collections import namedtuple
from collections.abc import Callable
from types import TracebackType
from typing import Any, TextIO

import numpy as np

from mxc.compiler.error import (
    ArgumentError,
    ArgumentKeyError,
    ArgumentTypeError,
    AssertedError,
    FileAccessError,
    ModelFileError,
    MXNetError,
)
from mxc.compiler.system import opencv
from mxc.runtime import record_file, remote_files
from mxc.runtime.elsewhere import elsewhere

__getattr__, _names = elsewhere(
    __name__, {"": "ctypes", "mxc.base": "RecordIOHandle c_str check_call", "multiprocessing": "current_process"},
    {"mxc.base": "_LIB"})
__all__ = ["IRHeader", "MXIndexedRecordIO", "MXRecordIO", "namedtuple", "np", "numbers", "pack", "pack_img", "struct",
           "unpack", "unpack_img", *_names]

_IR_FORMAT = "IfQQ"
_IR_SIZE = struct.calcsize(_IR_FORMAT)


class MXRecordIO:
    """A file of records, read or written one after the other; a context that closes it.

    uri: its name or URL; what is written to a URL appears there when the file is closed. flag: "r" to read, "w" to
    write a new file. Raises ValueError for another flag, FileAccessError, which is an MXNetError, for a file that
    cannot be opened.
    """

    def __init__(self, uri: str, flag: str):
        self.uri, self.flag = os.fspath(uri), flag
        self.handle: Any = None
        self.pid: int | None = None
        self.is_open = False
        self.open()

    def open(self) -> None:
        """Open the file; the constructor does."""
        if self.flag not in ("r", "w"):
            raise ArgumentError(f"flag of a file of records is 'r' to read it or 'w' to write it, got {self.flag!r}")
        self.writable = self.flag == "w"
        self.handle = record_file.Writer(self.uri) if self.writable else record_file.Reader(self.uri)
        self.pid, self.is_open = os.getpid(), True

    def close(self) -> None:
        """Close the file. One that is closed already stays so."""
        if not self.is_open:
            return
        is_own = self.pid == os.getpid()
        self.is_open, self.pid = False, None
        if self.writable:
            self.handle.close(publish=is_own)
        else:
            self.handle.close()

    def reset(self) -> None:
        """Open the file again: reading begins with the first record, writing with an empty file."""
        self.close()
        self.open()

    def write(self, buf: bytes) -> None:
        """Add a record. Raises AssertionError of a file that is read, TypeError for anything but bytes."""
        self._check_use(writing=True)
        if not isinstance(buf, bytes):
            raise ArgumentTypeError(f"write takes a record as bytes, got {type(buf).__name__}")
        self.handle.write(buf)

    def read(self) -> bytes | None:
        """The next record; None behind the last one.

        Raises AssertionError of a file that is written, ModelFileError, which is an MXNetError, for a file that is
        damaged there.
        """
        self._check_use(writing=False)
        return self.handle.read()

    def _check_use(self, writing: bool) -> None:
        """Refuse what the file was not opened for, and files of another process: both would move one position."""
        if writing != self.writable:
            raise AssertedError(f"{self.uri} was opened with flag {self.flag!r}, to be "
                                f"{'written' if self.writable else 'read'} alone")
        if self.pid != os.getpid():
            raise MXNetError(f"{self.uri}: Forbidden operation in multiple processes: it is closed, or was opened by "
                             "another process; call reset() first")

    def __enter__(self) -> MXRecordIO:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "is_open", False):
            self.close()

    def __getstate__(self) -> dict[str, Any]:
        """What another process opens the file again with, at its start.

        Raises MXNetError for a file that is being written: to open it again would empty it.
        """
        if self.is_open and self.writable:
            raise MXNetError(f"{self.uri}: a file of records that is being written is not pickled; close it first")
        return {**self.__dict__, "handle": None, "pid": None}

    def __setstate__(self, d: dict[str, Any]) -> None:
        self.__dict__ = d
        if self.is_open:
            self.is_open = False
            self.open()


class MXIndexedRecordIO(MXRecordIO):
    """A file of records with an index, from which records are read by their keys.

    idx_path: the index, lines of a key, a tabulator and the byte where its record begins; it is read, or written beside
    the file. uri, flag: as of MXRecordIO. key_type: what makes a key of its text. `keys` are the keys in their order,
    `idx` the offsets by key. Raises FileAccessError and ModelFileError, which are MXNetErrors, for an index that cannot
    be read or has something else on a line, which it names.
    """

    def __init__(self, idx_path: str, uri: str, flag: str, key_type: Callable[[Any], Any] = int):
        self.idx_path = os.fspath(idx_path)
        self.idx: dict[Any, int] = {}
        self.keys: list[Any] = []
        self.key_type = key_type
        self.fidx: TextIO | None = None
        super().__init__(uri, flag)

    def open(self) -> None:
        super().open()
        self.idx, self.keys = {}, []
        if self.writable:
            self.fidx = _new_index(self.idx_path)
        else:
            self._read_index()

    def close(self) -> None:
        is_own = self.pid == os.getpid()
        super().close()
        if self.fidx is not None:
            if isinstance(self.fidx, io.StringIO) and is_own:
                remote_files.write(self.idx_path, self.fidx.getvalue().encode())
            self.fidx.close()
            self.fidx = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "fidx": None}

    def seek(self, idx: Any) -> None:
        """Go to the record with the key `idx`; a process that did not open the file opens it again.

        Raises KeyError for a key that is not there, AssertionError of a file that is written.
        """
        offset = self._offset(idx)  # which may open the file anew
        self.handle.seek(offset)

    def tell(self) -> int:
        """The byte where the next record is written. Raises AssertionError of a file that is read."""
        if not self.writable:
            raise AssertedError(f"{self.uri} was opened with flag 'r': tell says where the next record is written")
        return self.handle.tell()

    def read_idx(self, idx: Any) -> bytes | None:
        """The record with the key `idx`. Raises as `seek` and `read`; several threads may call this at once."""
        offset = self._offset(idx)  # which may open the file anew
        return self.handle.read_at(offset)

    def write_idx(self, idx: Any, buf: bytes) -> None:
        """Add a record with a key. Raises as `write`, and what `key_type` raises for a key that is none."""
        key = self.key_type(idx)
        offset = self.handle.tell() if self.writable else 0
        self.write(buf)
        assert self.fidx is not None
        try:
            self.fidx.write(f"{key!s}\t{offset}\n")
        except OSError as error:
            raise FileAccessError(self.idx_path, "written", error) from None
        self.idx[key] = offset
        self.keys.append(key)

    def _offset(self, idx: Any) -> int:
        """The byte where the record with a key begins, in a file that this process has open."""
        if self.writable:
            raise AssertedError(f"{self.uri} was opened with flag 'w': records are found in one that is read")
        if self.pid != os.getpid():
            self.reset()
        try:
            return self.idx[idx]
        except KeyError:
            raise ArgumentKeyError(f"{self.idx_path} has no key {idx!r} among its {len(self.keys)}") from None

    def _read_index(self) -> None:
        raw = remote_files.content(self.idx_path)
        try:
            lines = raw.decode().splitlines()
        except UnicodeDecodeError as error:
            raise ModelFileError(self.idx_path, f"an index is text, but {error}", error.start) from None
        for number, line in enumerate(lines, 1):
            key, _, rest = line.partition("\t")
            try:
                found, offset = self.key_type(key), int(rest.split("\t")[0])
                if offset < 0:
                    raise ValueError
            except ValueError:
                raise ModelFileError(self.idx_path, f"line {number} is {line[:80]!r}; expected a key, a tabulator and "
                                     "the byte where its record begins") from None
            self.keys.append(found)
            self.idx[found] = offset


def _new_index(path: str) -> TextIO:
    """A file to write lines to, which go there one by one; for a URL a text in memory."""
    if remote_files.is_url(path):
        return io.StringIO()
    try:
        return open(path, "w", 1, encoding="utf-8", newline="\n")
    except (OSError, ValueError) as error:
        raise FileAccessError(path, "written", error) from None


IRHeader = namedtuple("HEADER", ["flag", "label", "id", "id2"])  # type: ignore[name-match]
IRHeader.__doc__ = """What stands before an image in its record.

flag: how many labels there are when they are not one number, else 0. label: a number, or float32 numbers. id, id2: two
numbers that say which image it is.
"""


def pack(header: Any, s: bytes) -> bytes:
    """A record of a header (an IRHeader, or as many values) and bytes. Raises TypeError for a header of other length or
    content that is no bytes, struct.error for numbers that do not fit."""
    header = IRHeader(*header)
    if not isinstance(s, (bytes, bytearray, memoryview)):
        raise ArgumentTypeError(f"pack takes the content of a record as bytes, got {type(s).__name__}")
    if isinstance(header.label, numbers.Number):
        header = header._replace(flag=0)
    else:
        labels = np.asarray(header.label, np.float32)
        header, s = header._replace(flag=labels.size, label=0), labels.tobytes() + bytes(s)
    return struct.pack(_IR_FORMAT, *header) + bytes(s)


def unpack(s: bytes) -> tuple[Any, bytes]:
    """The header of a record, whose label is a number or an array of float32, and the content behind it.

    Raises MXNetError for bytes that are too few, which is a ValueError where they are less than the labels take.
    """
    if len(s) < _IR_SIZE:
        raise MXNetError(f"expected a record that begins with a header of {_IR_SIZE} bytes, got {len(s)} bytes")
    header = IRHeader(*struct.unpack_from(_IR_FORMAT, s))
    s = s[_IR_SIZE:]
    if header.flag > 0:
        if 4 * header.flag > len(s):
            raise ArgumentError(f"expected {header.flag} labels of 4 bytes behind the header of a record, as it says, "
                                f"but {len(s)} bytes follow")
        header = header._replace(label=np.frombuffer(s, np.float32, header.flag))
        s = s[4 * header.flag:]
    return header, s


def unpack_img(s: bytes, iscolor: int = -1) -> tuple[Any, np.ndarray]:
    """The header of a record, and its image as OpenCV has it: (height, width) or, in the order blue, green, red,
    (height, width, 3), of uint8.

    iscolor: 1 for colours, 0 for grey, -1 for what the image has. Raises MXNetError for bytes that are no image, and
    without OpenCV.
    """
    header, content = unpack(s)
    return header, opencv.decoded(content, iscolor)


def pack_img(header: Any, img: np.ndarray, quality: int = 95, img_fmt: str = ".jpg") -> bytes:
    """A record of a header and an image as `unpack_img` gives it, encoded.

    quality: of JPEG from 1 to 100; of PNG from 0, fast, to 9, small. img_fmt: what a name of such a file ends in.
    Raises MXNetError for an image that OpenCV does not encode, and without OpenCV.
    """
    return pack(header, opencv.encoded(img, quality, img_fmt))
