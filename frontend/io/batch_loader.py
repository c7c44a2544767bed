"""Batches of rows that are read from a file piece by piece, which CSVIter, LibSVMIter and MNISTIter give."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.storage import CSR, csr_joined
from mxc.runtime import engine
from mxc.runtime.array import LARGE, Array
from mxc.runtime.context import current_context
from mxc.runtime.sparse_array import SparseArray

KEPT = 1 << 28  # bytes: rows that take less are kept for the next epoch instead of being read again


class Rows(Protocol):
    """Rows that have been read; they do not change."""

    nbytes: int

    def __len__(self) -> int: ...

    def fill(self, out: np.ndarray, begin: int, end: int) -> None:
        """Write rows begin to end to `out`, a matrix of as many rows."""


class DenseRows:
    """The rows of a matrix, times a factor (None: as they are)."""

    def __init__(self, values: np.ndarray, factor: float | None = None):
        self._values, self._factor, self.nbytes = values, factor, values.nbytes

    def __len__(self) -> int:
        return len(self._values)

    def fill(self, out: np.ndarray, begin: int, end: int) -> None:
        if self._factor is None:
            np.copyto(out, self._values[begin:end], casting="same_kind")
        else:
            np.multiply(self._values[begin:end], self._factor, out=out, casting="same_kind")


Piece = tuple[Rows, ...]  # several matrices of as many rows, as data and labels


class Part(NamedTuple):
    """Rows `begin` to `end` of a piece. number: of the first of them among all."""

    piece: Piece
    begin: int
    end: int
    number: int


class _Ahead:
    """The pieces of a generator; the engine's threads make the next one ahead of time. An error of the generator is
    raised by the `take` that would have given the piece."""

    def __init__(self, pieces: Iterator[Piece]):
        self._pieces, self._variable = pieces, engine.Variable()
        self._made: Piece | Exception | None = None
        self._ask()

    def _ask(self) -> None:
        engine.push(self._make, (), (self._variable,), "read rows", small=False)

    def _make(self) -> None:
        try:
            self._made = next(self._pieces, None)
        except Exception as error:
            self._made = error

    def take(self) -> Piece | None:
        """The next piece; None when there is none."""
        engine.wait_to_read(self._variable)
        made = self._made
        if isinstance(made, Exception):
            raise made
        if made is not None:
            self._ask()
        return made


class RowStream:
    """Rows one after the other, again and again.

    pieces: gives all of them from the start, each time that it is called.
    """

    def __init__(self, pieces: Callable[[], Iterator[Piece]]):
        self._pieces = pieces
        self._kept: list[Piece] | None = []  # the pieces read so far; None when they take more than KEPT bytes
        self._is_whole = False  # whether all pieces are in `_kept`
        self.rewind()

    def rewind(self) -> None:
        """Go back to the first row."""
        self._piece: Piece | None = None
        self._at = self._number = 0
        if self._is_whole and self._kept is not None:
            self._next: Callable[[], Piece | None] = partial(next, iter(self._kept), None)
        else:
            self._kept = None if self._kept is None else []
            ahead = _Ahead(self._pieces())
            self._next = lambda: self._keep(ahead.take())

    def take(self, count: int) -> list[Part]:
        """The next rows, at most `count`."""
        parts: list[Part] = []
        while count:
            if self._piece is None or self._at == len(self._piece[0]):
                self._piece, self._at = self._next(), 0
                if self._piece is None:
                    break
            taken = min(count, len(self._piece[0]) - self._at)
            parts.append(Part(self._piece, self._at, self._at + taken, self._number))
            self._at += taken
            self._number += taken
            count -= taken
        return parts

    def _keep(self, piece: Piece | None) -> Piece | None:
        if piece is None:
            self._is_whole = True
        elif self._kept is not None:
            self._kept.append(piece)
            if sum(rows.nbytes for kept in self._kept for rows in kept) > KEPT:
                self._kept = None
        return piece


class Column(NamedTuple):
    """An array of a batch: the shape of an element, and the stream, and the matrix of its pieces, that it comes from.
    Without a stream the array is zeros. is_csr: it is a csr array, of rows that have `parts`, as text_rows.py's
    SparseRows."""

    shape: tuple[int, ...]
    stream: int | None = None
    matrix: int = 0
    is_csr: bool = False


class Loaded(NamedTuple):
    """A batch: an array for each column, how many elements only fill the batch up, and the number of each element."""

    arrays: list[Array]
    pad: int
    numbers: np.ndarray


class BatchLoader:
    """Batches of the rows of streams, which go side by side.

    tail: what becomes of rows at the end that fill no batch. "round": the batch is filled up from the start, and the
    next pass goes on there; "keep": it is filled up with the rows of the batch before, or zeros; "discard": it is left
    out. is_numbered: whether `numbers` has the numbers of the rows; else it has zeros.
    """

    def __init__(self, streams: Sequence[RowStream], columns: Sequence[Column], batch_size: int, dtype: str, tail: str,
                 is_numbered: bool = True):
        self._streams, self._columns, self._size, self._dtype = streams, columns, batch_size, dtype
        self._tail, self._is_numbered = tail, is_numbered
        self._last: Loaded | None = None
        self._is_round = False  # whether the last batch has rows of the next pass

    def rewind(self) -> None:
        """Go back to the first row, or to the row behind those that the last batch took from the start."""
        if not self._is_round:
            self._start()
        self._is_round = False

    def next(self) -> Loaded | None:
        """The next batch; None when there is none. Raises MXNetError for streams of different lengths, and what reading
        them raises."""
        if self._is_round:
            return None
        size = self._size
        parts: list[list[Part]] = [[] for _ in self._streams]
        count = self._take(size, parts)
        if not count or (count < size and self._tail == "discard"):
            return None
        pad = size - count
        if pad and self._tail == "round":
            self._is_round = True
            while count < size:
                self._start()
                count += self._take(size - count, parts)
        numbers = self._last.numbers.copy() if self._last is not None else np.zeros(size, np.uint64)
        if self._is_numbered:
            numbers[:count] = np.concatenate([np.arange(p.number, p.number + p.end - p.begin) for p in parts[0]])
        arrays = [self._array(place, column, [] if column.stream is None else parts[column.stream], count)
                  for place, column in enumerate(self._columns)]
        self._last = Loaded(arrays, pad, numbers)
        return self._last

    def _start(self) -> None:
        for stream in self._streams:
            stream.rewind()

    def _take(self, count: int, parts: list[list[Part]]) -> int:
        """Add the next rows, at most `count`, to the parts of each stream; returns how many rows there were."""
        for stream, found in zip(self._streams, parts, strict=True):
            new = stream.take(count)
            found += new
            taken = sum(part.end - part.begin for part in new)
            if stream is self._streams[0]:
                count = taken
            elif taken < count:
                raise MXNetError("there are fewer labels than rows of data; each row needs its label")
        return count

    def _array(self, place: int, column: Column, parts: list[Part], count: int) -> Array:
        if column.is_csr:
            return self._csr_array(column, parts)
        made = Array.empty((self._size, *column.shape), self._dtype, current_context().computing, zeroed=not parts)
        if not parts:
            return made
        before = self._last.arrays[place] if self._last is not None and count < self._size else None

        def fill() -> None:
            out, at = made.memory.reshape(self._size, -1), 0
            for piece, begin, end, _ in parts:
                piece[column.matrix].fill(out[at:at + end - begin], begin, end)
                at += end - begin
            out[at:] = 0 if before is None else before.memory.reshape(self._size, -1)[at:]

        engine.push(fill, () if before is None else (before.variable,), (made.variable,), "batch", made.size < LARGE)
        return made

    def _csr_array(self, column: Column, parts: list[Part]) -> Array:
        """The rows of the parts, which fill the batch."""
        made = SparseArray.of_nothing(CSR, (self._size, *column.shape), self._dtype, current_context().computing)

        def fill() -> None:
            found: list[Any] = [(piece[column.matrix], begin, end) for piece, begin, end, _ in parts]
            made.have(csr_joined([rows.parts(begin, end) for rows, begin, end in found]))

        engine.push(fill, (), (made.variable,), "batch")
        return made
