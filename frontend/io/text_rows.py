"""Rows of numbers in text files: CSV and LibSVM."""
from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from mxc.compiler.error import FileAccessError, ModelFileError
from mxc.compiler.ops.storage import Csr, csr_rows
from mxc.io.batch_loader import DenseRows, Piece
from mxc.runtime import remote_files

BLOCK = 1 << 22  # bytes of text that become one piece
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SHOWN = 60  # the most characters of a line that an error quotes


def check_readable(path: str) -> None:
    """Raise FileAccessError where a file cannot be read, ModelFileError where nothing is in it."""
    with _opened(path) as file:
        if not file.read(1):
            raise ModelFileError(path, "the file is empty; expected a row of numbers on each line")


def _opened(path: str) -> BinaryIO:
    if remote_files.is_url(path):
        return io.BytesIO(remote_files.read(path))
    try:
        return open(path, "rb")
    except (OSError, ValueError) as error:  # A name with a zero byte raises ValueError.
        raise FileAccessError(path, "read", error) from None


def _blocks(path: str, part: int = 0, parts: int = 1) -> Iterator[tuple[list[str], int]]:
    """The lines of a file (or of one of so many parts of about as many bytes), some at a time, with the number of the
    first of them, from 1."""
    with _opened(path) as file:
        size = file.seek(0, io.SEEK_END)
        step = -(-size // parts)
        begin, end = (_next_line(file, min(step * i, size)) for i in (part, part + 1))
        if not begin:
            file.seek(0)
            begin = len(_BYTE_ORDER_MARK) * (file.read(len(_BYTE_ORDER_MARK)) == _BYTE_ORDER_MARK)
        file.seek(begin)
        rest, number = b"", 1
        while begin < end and (block := file.read(min(BLOCK, end - begin))):
            begin = file.tell()
            text = rest + block
            # A \r at the end may be half of an end of line.
            cut = (text.rfind(b"\n") + 1 or text.rfind(b"\r", 0, -1) + 1) if begin < end else len(text)
            rest = text[cut:]
            lines = text[:cut].replace(b"\r\n", b"\n").replace(b"\r", b"\n").decode("latin-1").split("\n")
            yield lines, number
            number += len(lines) - 1


def _next_line(file: BinaryIO, offset: int) -> int:
    """Where the line after the one at `offset` begins; the start of the file stays 0."""
    if not offset:
        return 0
    file.seek(offset)
    file.readline()
    return file.tell()


def csv_pieces(path: str, width: int, dtype: str) -> Iterator[Piece]:
    """The rows of a CSV file, of `width` numbers each. Raises ModelFileError naming the line that has others."""
    for lines, number in _blocks(path):
        rows = [line for line in lines if line and not line.isspace()]
        if not rows:
            continue
        if rows[0].rstrip().endswith(","):  # Lines may have a comma behind every number, also behind the last.
            rows = [line.rstrip().removesuffix(",") for line in rows]
        try:
            values = _csv_values(rows, dtype)
            is_fine = values.shape[1] == width
        except ValueError:
            is_fine = False
        if not is_fine:
            raise _wrong_csv(path, lines, number, width, dtype)
        yield (DenseRows(values),)


def _csv_values(rows: list[str], dtype: str) -> np.ndarray:
    # NumPy would only warn of a line with nothing but a comma, and of fractions that are read as integers.
    if not all(map(str.strip, rows)) or (dtype != "float32" and any("." in row for row in rows)):
        raise ValueError
    with np.errstate(over="ignore"):
        return np.loadtxt(rows, dtype, comments=None, delimiter=",", ndmin=2)


def _wrong_csv(path: str, lines: list[str], number: int, width: int, dtype: str) -> ModelFileError:
    for i, line in enumerate(lines):
        try:
            is_fine = not line.strip() or _csv_values([line.rstrip().removesuffix(",")], dtype).shape[1] == width
        except ValueError:
            is_fine = False
        if not is_fine:
            return _wrong(path, number + i, line, f"{width} {dtype} numbers with commas between, as data_shape or "
                                                  "label_shape says")
    return _wrong(path, number, lines[0], "each line to end with a comma, or none")


def _wrong(path: str, number: int, line: str, expected: str) -> ModelFileError:
    shown = line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."
    return ModelFileError(path, f"line {number}: expected {expected}, got {shown!r}")


class SparseRows:
    """Rows of mostly zeros."""

    def __init__(self, parts: Csr):
        self._parts = parts
        self.nbytes = parts.values.nbytes + parts.columns.nbytes + parts.starts.nbytes

    def __len__(self) -> int:
        return self._parts.shape[0]

    def fill(self, out: np.ndarray, begin: int, end: int) -> None:
        self.parts(begin, end).write(out)

    def parts(self, begin: int, end: int) -> Csr:
        """Rows begin to end as a csr array."""
        return csr_rows(self._parts, slice(begin, end))


def libsvm_pieces(path: str, width: int, labels: int, part: int = 0, parts: int = 1) -> Iterator[Piece]:
    """The rows of a LibSVM file: `width` numbers, of which a line lists those that are not 0, and `labels` labels.

    A line is LABEL[,LABEL...] INDEX:VALUE ..., with indices from 0; what follows # is a comment, and qid:N is passed
    over. Raises ModelFileError, which names the line, for a line of another form.
    """
    for lines, number in _blocks(path, part, parts):
        text = "\n".join(lines)
        if "#" in text:
            text = re.sub("#[^\n]*", "", text)
        if "qid:" in text:
            text = re.sub(r"\bqid:\S*", "", text)
        text = re.sub(r"\n\s*\n", "\n", text).strip()
        if not text:
            continue
        try:
            yield _libsvm_rows(text, width, labels)
        except ValueError:
            raise _wrong_libsvm(path, lines, number, width, labels) from None


def _libsvm_rows(text: str, width: int, labels: int) -> Piece:
    """The rows that a text of whole lines holds, as a piece. Raises ValueError for a text of another form."""
    letters = np.frombuffer(text.encode("latin-1"), np.uint8)
    line_ends = np.append(np.flatnonzero(letters == ord("\n")), len(letters))
    pairs = np.diff(np.searchsorted(np.flatnonzero(letters == ord(":")), line_ends), prepend=0)
    is_between = np.isin(letters, np.frombuffer(b" \t\n\r\v\f:,", np.uint8))
    begins = np.flatnonzero(~is_between & np.append(True, is_between[:-1]))
    counts = np.diff(np.searchsorted(begins, line_ends), prepend=0)
    if not (counts == labels + 2 * pairs).all():
        raise ValueError
    spaced = re.sub(r"[\s:,]", " ", text)
    numbers = np.loadtxt([spaced], np.float64, comments=None, ndmin=1)
    first = np.cumsum(counts) - counts  # the position of each line's first number
    label_places = first[:, None] + np.arange(labels)
    rest = np.delete(numbers, label_places.reshape(-1))
    with np.errstate(over="ignore", invalid="ignore"):  # Numbers that are no indices are found below.
        columns, values = rest[::2].astype(np.int64), rest[1::2].astype(np.float32)
        given = numbers[label_places].astype(np.float32)
    if (columns != rest[::2]).any() or (columns < 0).any() or (columns >= width).any():
        raise ValueError
    parts = Csr(values, columns, np.append(0, np.cumsum(pairs)), (len(pairs), width))
    return SparseRows(parts.ordered() if parts.disorder() else parts), DenseRows(given)


def _wrong_libsvm(path: str, lines: list[str], number: int, width: int, labels: int) -> ModelFileError:
    expected = (f"{'a label' if labels == 1 else f'{labels} labels with commas between'}, then INDEX:VALUE with "
                f"indices from 0 to {width - 1}, as data_shape or label_shape says")
    for i, line in enumerate(lines):
        text = re.sub(r"\bqid:\S*", "", line.partition("#")[0]).strip()
        try:
            if text:
                _libsvm_rows(text, width, labels)
        except ValueError:
            return _wrong(path, number + i, line, expected)
    return ModelFileError(path, f"expected on each line {expected}")


