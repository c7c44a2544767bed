"""The base class of iterators (DataIter), what they give (DataDesc, DataBatch), and ResizeIter."""
from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from mxc.base import mx_real_t
from mxc.compiler.error import ArgumentTypeError
from mxc.runtime.elsewhere import elsewhere

__getattr__, _names = elsewhere(
    __name__,
    {"": "ctypes logging sys threading",
     "mxc.base": "DataIterHandle NDArrayHandle c_str_array check_call mx_uint py_str",
     "mxc.ndarray": "NDArray array concat tile", "mxc.io.ndarray_iter": "NDArrayIter",
     "mxc.ndarray.sparse": "CSRNDArray",
     "mxc.io.built_in": "CSVIter LibSVMIter MNISTIter MXDataIter",
     "mxc.io.box_records": "ImageDetRecordIter",
     "mxc.io.image_records": "ImageRecordInt8Iter ImageRecordIter ImageRecordIter_v1 ImageRecordUInt8Iter "
                             "ImageRecordUInt8Iter_v1", "mxc.io.prefetching": "PrefetchingIter"},
    {"mxc.base": "_LIB", "mxc.io.ndarray_iter": "_init_data"})
__all__ = ["DataBatch", "DataDesc", "DataIter", "ResizeIter", "mx_real_t", "namedtuple", "np", *_names]


class DataDesc(namedtuple("DataDesc", ["name", "shape"])):
    """Name and shape of an array that an iterator gives in each batch, as a pair, with `dtype` and `layout` beside.

    shape: of a batch. dtype: a name, NumPy dtype or scalar type. layout: a letter for each axis, N for the batch's;
    None: the first axis is the batch's.
    """

    dtype: Any
    layout: str | None

    def __new__(cls, name: str, shape: Sequence[int], dtype: Any = mx_real_t, layout: str | None = "NCHW") -> DataDesc:
        made = super().__new__(cls, name, shape)
        made.dtype, made.layout = dtype, layout
        return made

    def __repr__(self) -> str:
        return f"DataDesc[{self.name},{self.shape},{self.dtype},{self.layout}]"

    @staticmethod
    def get_batch_axis(layout: str | None) -> int:
        """Where N is in a layout: 0 for None, -1 for a layout without it."""
        return 0 if layout is None else layout.find("N")

    @staticmethod
    def get_list(shapes: Iterable[Sequence[Any]], types: Iterable[Sequence[Any]] | None) -> list[DataDesc]:
        """A DataDesc for each pair (name, shape), with the dtypes of pairs (name, dtype) where they are given.

        Raises KeyError for a name whose dtype is not among them.
        """
        if types is None:
            return [DataDesc(*pair) for pair in shapes]
        dtypes: dict[str, Any] = dict(types)  # type: ignore[arg-type]
        return [DataDesc(name, shape, dtypes[name]) for name, shape in shapes]


class DataBatch:
    """The arrays of one batch.

    data, label: lists of arrays, or None. pad: how many elements at the end only fill the batch up. index: numbers of
    the elements in what the iterator reads. bucket_key, provide_data, provide_label: for batches whose shapes differ,
    the key of this one's bucket and its descriptions (`DataDesc`).
    Raises TypeError for data or label that is neither a list or tuple nor None.
    """

    def __init__(self, data: Any, label: Any = None, pad: int | None = None, index: Any = None, bucket_key: Any = None,
                 provide_data: Any = None, provide_label: Any = None):
        for name, arrays in (("data", data), ("label", label)):
            if arrays is not None and not isinstance(arrays, (list, tuple)):
                raise ArgumentTypeError(f"the {name} of a batch is a list of NDArrays, got {type(arrays)}")
        self.data, self.label, self.pad, self.index = data, label, pad, index
        self.bucket_key, self.provide_data, self.provide_label = bucket_key, provide_data, provide_label

    def __str__(self) -> str:
        data = [array.shape for array in self.data]
        label = [array.shape for array in self.label] if self.label else None
        return f"{type(self).__name__}: data shapes: {data} label shapes: {label}"


_NO_BATCH: Any = None  # stands in place of a batch before the first one


class DataIter:
    """The base class of iterators over batches.

    A derived class has `next`, which gives a DataBatch and raises StopIteration behind the last one, or `iter_next`
    and `getdata`, `getlabel`, `getpad`, `getindex`, from which `next` is made; `reset`, which starts again; and the
    attributes or properties `provide_data` and `provide_label`, lists of DataDesc or of pairs (name, shape).
    """

    def __init__(self, batch_size: int = 0):
        self.batch_size = batch_size

    def __iter__(self) -> Iterator[DataBatch]:
        return self

    def reset(self) -> None:
        """Start again from the first batch."""

    def next(self) -> DataBatch:
        """The next batch. Raises StopIteration when there is none."""
        if not self.iter_next():
            raise StopIteration
        return DataBatch(data=self.getdata(), label=self.getlabel(), pad=self.getpad(), index=self.getindex())

    def __next__(self) -> DataBatch:
        return self.next()

    def iter_next(self) -> Any:
        """Go on to the next batch; returns whether there is one."""

    def getdata(self) -> Any:
        """The arrays of data of the present batch."""

    def getlabel(self) -> Any:
        """The arrays of labels of the present batch."""

    def getindex(self) -> Any:
        """The numbers of the present batch's elements, or None."""

    def getpad(self) -> Any:
        """How many elements at the end of the present batch only fill it up."""


class OfBatches(DataIter):
    """The base of iterators that hold whole batches: `getdata` and the like tell of `current_batch`."""

    current_batch: DataBatch

    def getdata(self) -> Any:
        return self.current_batch.data

    def getlabel(self) -> Any:
        return self.current_batch.label

    def getindex(self) -> Any:
        return self.current_batch.index

    def getpad(self) -> Any:
        return self.current_batch.pad


class ResizeIter(OfBatches):
    """Gives `size` batches of another iterator, which starts again when it ends before.

    reset_internal: whether `reset` resets the other iterator too; else it goes on where it is.
    """

    def __init__(self, data_iter: DataIter, size: int, reset_internal: bool = True):
        super().__init__(data_iter.batch_size)
        self.data_iter, self.size, self.reset_internal = data_iter, size, reset_internal
        self.cur, self.current_batch = 0, _NO_BATCH
        self.provide_data: Any = data_iter.provide_data  # type: ignore[attr-defined]
        self.provide_label: Any = data_iter.provide_label  # type: ignore[attr-defined]
        if hasattr(data_iter, "default_bucket_key"):
            self.default_bucket_key = data_iter.default_bucket_key

    def reset(self) -> None:
        self.cur = 0
        if self.reset_internal:
            self.data_iter.reset()

    def iter_next(self) -> bool:
        if self.cur == self.size:
            return False
        found = next(self.data_iter, None)
        if found is None:
            self.data_iter.reset()
            found = self.data_iter.next()
        self.current_batch, self.cur = found, self.cur + 1
        return True
