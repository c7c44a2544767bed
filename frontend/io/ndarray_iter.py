"""NDArrayIter: batches of arrays in memory."""
from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from mxc.compiler.error import ArgumentError, ArgumentTypeError, MXNetError
from mxc.compiler.ops.storage import DEFAULT, ROW_SPARSE, Csr, csr_rows
from mxc.io.io import DataBatch, DataDesc, DataIter
from mxc.ndarray import NDArray, array
from mxc.ndarray.ndarray import wrapped
from mxc.ndarray.sparse import csr_matrix
from mxc.runtime import engine
from mxc.runtime.array import LARGE, Array
from mxc.runtime.sparse_array import like

Named = list[tuple[str, NDArray]]


def _init_data(data: Any, allow_empty: bool, default_name: str) -> Named:
    """Arrays with their names: one array, a list of them, or a dict by name, which is sorted. None is an empty list.

    A single array has the default name, several have _0_NAME, _1_NAME and so on. NDArrays stay as they are, others
    (NumPy's, or what NumPy can make one of, such as a data set of h5py) are copied to float32, matrices of SciPy to csr
    arrays. Raises TypeError for
    anything else, ValueError for no array unless `allow_empty`.
    """
    if data is None:
        data = []
    if isinstance(data, dict):
        named = data
    elif isinstance(data, list):
        named = {default_name if len(data) == 1 else f"_{i}_{default_name}": each for i, each in enumerate(data)}
    elif isinstance(data, NDArray) or hasattr(data, "__array__") or hasattr(data, "tocsr"):
        named = {default_name: data}
    else:
        raise ArgumentTypeError("an iterator takes an NDArray, a NumPy array or a data set of h5py, a list of them, "
                                f"or a dict of them by name, got {type(data)}")
    if not named and not allow_empty:
        raise ArgumentError(f"{default_name}: an iterator needs at least one array")
    return [(name, _as_array(name, named[name])) for name in sorted(named)]


def _as_array(name: str, value: Any) -> NDArray:
    try:
        made = value if isinstance(value, NDArray) else csr_matrix(value) if hasattr(value, "tocsr") else array(value)
    except TypeError as error:
        raise ArgumentTypeError(f"{name}: {error}") from None
    if made.stype == ROW_SPARSE:
        made = made.tostype(DEFAULT)
    if not made.ndim or (not isinstance(value, NDArray) and not np.ndim(value)):
        raise ArgumentTypeError(f"{name}: an array with an axis for the elements is needed, got a number")
    return made


class NDArrayIter(DataIter):
    """Batches of arrays in memory, cut along the first axis; those of csr arrays are csr arrays.

    data, label: see `_init_data`; names come from data_name and label_name. Every array has at least as many elements
    as the first of the data, which says how many there are. shuffle: whether each pass has another order, which NumPy's
    global generator gives. last_batch_handle: what becomes of elements at the end that fill no batch: "pad" fills it
    with the first ones, "discard" leaves them out, "roll_over" begins the next pass with them. layout: the layout that
    the descriptions tell.
    Raises ValueError for a batch size below 1 and for arrays that are too short, TypeError for what is no array.

    cursor: the place of the present batch's first element, negative before the first batch. idx: the last permutation
    that was drawn; it permutes the order that the elements had before.
    """

    def __init__(self, data: Any, label: Any = None, batch_size: int = 1, shuffle: bool = False,
                 last_batch_handle: str = "pad", data_name: str = "data", label_name: str = "softmax_label",
                 layout: str = "NCHW"):
        try:
            super().__init__(operator.index(batch_size))
        except TypeError:
            raise ArgumentTypeError(f"NDArrayIter: batch_size is a whole number, got {batch_size!r}") from None
        if self.batch_size < 1:
            raise ArgumentError(f"NDArrayIter: batch_size must be at least 1, got {batch_size}")
        self._data = _init_data(data, False, data_name)
        self._label = _init_data(label, True, label_name)
        self.num_data, self.num_source = len(self._data[0][1]), len(self._data) + len(self._label)
        for name, each in (*self._data, *self._label):
            if len(each) < self.num_data:
                raise ArgumentError(f"NDArrayIter: {name} has {len(each)} elements, but {self._data[0][0]} has "
                                    f"{self.num_data}; each array needs as many")
        self.shuffle, self.last_batch_handle, self.layout = shuffle, last_batch_handle, layout
        self.idx = np.arange(self.num_data)
        self._order: np.ndarray | None = None  # the order of all elements; None: that of the arrays
        self._carried: np.ndarray | None = None  # the elements that the first batch begins with
        self.cursor = -self.batch_size
        if shuffle:
            self._shuffle()

    @property
    def data(self) -> Named:
        """Names and arrays of the data, in the present order."""
        return self._ordered(self._data)

    @property
    def label(self) -> Named:
        """Names and arrays of the labels, in the present order."""
        return self._ordered(self._label)

    @property
    def data_list(self) -> list[NDArray]:
        """All arrays, labels last, in the present order."""
        return [each for _, each in (*self.data, *self.label)]

    @property
    def provide_data(self) -> list[DataDesc]:
        """The descriptions of a batch's data."""
        return self._described(self._data)

    @property
    def provide_label(self) -> list[DataDesc]:
        """The descriptions of a batch's labels."""
        return self._described(self._label)

    def reset(self) -> None:
        """Start again, in a new order if shuffled; with "roll_over" from the elements that were left."""
        begin, end = self.cursor, self.num_data
        if self.last_batch_handle == "roll_over" and max(end - self.batch_size, -1) < begin < end:
            self._carried = self._places(begin, end)
            self.cursor = begin - end - self.batch_size
        else:
            self.cursor = -self.batch_size
        if self.shuffle:
            self._shuffle()

    def hard_reset(self) -> None:
        """Start again with the first element, in a new order if shuffled, whatever was left."""
        self._carried, self.cursor = None, -self.batch_size
        if self.shuffle:
            self._shuffle()

    def iter_next(self) -> bool:
        self.cursor += self.batch_size
        return self.cursor < self.num_data

    def next(self) -> DataBatch:
        """The next batch. Raises StopIteration when there is none."""
        if not self.iter_next() or self._is_short():
            raise StopIteration
        return DataBatch(data=self.getdata(), label=self.getlabel(), pad=self.getpad(), index=None)

    def getdata(self) -> list[NDArray]:
        """New arrays of the present batch's data: what is left of them at the end, unless it is padded. Raises
        MXNetError when there is no present batch."""
        return self._batch(self._data)

    def getlabel(self) -> list[NDArray]:
        """New arrays of the present batch's labels; see `getdata`."""
        return self._batch(self._label)

    def getpad(self) -> int:
        """How many elements only fill the batch up; with "roll_over", how many it has from the pass before."""
        if self.last_batch_handle == "pad" and self.cursor + self.batch_size > self.num_data:
            return self.cursor + self.batch_size - self.num_data
        if self.last_batch_handle == "roll_over" and -self.batch_size < self.cursor < 0:
            return -self.cursor
        return 0

    def _is_short(self) -> bool:
        """Whether the present batch is what is left at the end, and is not to be filled up."""
        return self.cursor >= max(0, self.num_data - self.batch_size + 1) and self.last_batch_handle != "pad"

    def _shuffle(self) -> None:
        np.random.shuffle(self.idx)
        self._order = self.idx.copy() if self._order is None else self._order[self.idx]

    def _described(self, named: Named) -> list[DataDesc]:
        return [DataDesc(name, (self.batch_size, *each.shape[1:]), each.dtype, self.layout) for name, each in named]

    def _ordered(self, named: Named) -> Named:
        if self._order is None:
            return list(named)
        return [(name, wrapped(_taken(each._array, self._order))) for name, each in named]

    def _places(self, begin: int, end: int) -> np.ndarray:
        """Which elements are at these places of the present order; behind the last one comes the first again."""
        places = np.arange(begin, end) % self.num_data
        return places if self._order is None else self._order[places]

    def _batch(self, named: Named) -> list[NDArray]:
        begin, end = self.cursor, self.cursor + self.batch_size
        if begin >= self.num_data:
            raise MXNetError("the iterator is behind its last batch; call reset() to start again")
        if begin < 0 and (self._carried is None or end <= 0):
            raise MXNetError("the iterator is before its first batch; call next() or iter_next() first")
        if self._is_short():
            end = self.num_data
        places: slice | np.ndarray
        if begin < 0 and self._carried is not None:
            places = np.concatenate([self._carried, self._places(0, end)])
        elif end <= self.num_data and self._order is None:
            places = slice(begin, end)
        else:
            places = self._places(begin, end)
        return [wrapped(_taken(each._array, places)) for _, each in named]


def _taken(source: Array, places: slice | Sequence[int] | np.ndarray) -> Array:
    """A new array of the elements at these places of the first axis, which are all there; large ones are copied by the
    engine's threads."""
    count = places.stop - places.start if isinstance(places, slice) else len(places)
    made = like(source.stype, (count, *source.shape[1:]), source.dtype, source.context.computing)

    def copy() -> None:
        given = source.given()
        if isinstance(given, Csr):
            made.have(csr_rows(given, places if isinstance(places, slice) else np.asarray(places)))
        elif isinstance(places, slice):
            np.copyto(made.memory, source.memory[places])
        else:  # With another mode NumPy would check the places, and make a copy on the way.
            np.take(source.memory, places, axis=0, out=made.memory, mode="clip")

    engine.push(copy, (source.variable,), (made.variable,), "batch", math.prod(made.shape) < LARGE)
    return made
