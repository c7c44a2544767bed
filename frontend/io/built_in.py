"""Iterators over files: CSVIter, LibSVMIter, MNISTIter."""
from __future__ import annotations

import logging
import math
from functools import partial
from typing import Any, Protocol

import numpy as np

from mxc.compiler.error import ArgumentError
from mxc.io import mnist
from mxc.io.batch_loader import BatchLoader, Column, DenseRows, Loaded, RowStream
from mxc.io.io import DataBatch, DataDesc, DataIter
from mxc.io.options import Options, part_of, to_flag, to_needed_path, to_path, to_shape, to_whole
from mxc.io.text_rows import check_readable, csv_pieces, libsvm_pieces
from mxc.ndarray import NDArray
from mxc.ndarray.ndarray import wrapped

_log = logging.getLogger(__name__)


class Loader(Protocol):
    """What loads the batches of a built-in iterator, as BatchLoader does."""

    def rewind(self) -> None: ...

    def next(self) -> Loaded | None: ...


class MXDataIter(DataIter):
    """The iterators over files that are built in.

    handle: what loads the batches. data_name, label_name: for the descriptions `provide_data` and `provide_label`.
    Raises ValueError where there is no batch at all.
    """

    def __init__(self, handle: Loader, data_name: str = "data", label_name: str = "softmax_label", **_: Any):
        super().__init__()
        self.handle = handle
        self._debug_skip_load, self._is_at_begin = False, True
        self._batch: Loaded | None = None
        self.first_batch: DataBatch | None = None
        if not self._load():
            raise ArgumentError("the files have no rows, or fewer than one batch takes")
        self.first_batch = self._made()
        data, label = self.first_batch.data[0], self.first_batch.label[0]
        self.provide_data = [DataDesc(data_name, data.shape, data.dtype)]
        self.provide_label = [DataDesc(label_name, label.shape, label.dtype)]
        self.batch_size = data.shape[0]

    def __del__(self) -> None:
        """Does nothing, for reading ahead ends by itself. MXNet's iterators have this method."""

    def debug_skip_load(self) -> None:
        """Give the present batch again and again from now on, without an end. This shows how fast a program would be if
        it did not wait for its data."""
        self._debug_skip_load = True
        _log.info("debug_skip_load: the iterator now gives one batch again and again")

    def reset(self) -> None:
        """Start again. Where the last batch was filled up from the start (`round_batch`), start behind these rows."""
        self._is_at_begin, self.first_batch = True, None
        self.handle.rewind()

    def next(self) -> DataBatch:
        """The next batch. Raises StopIteration when there is none, MXNetError for a file that is wrong there."""
        if self._debug_skip_load and not self._is_at_begin:
            return self._made()
        if not self.iter_next():
            raise StopIteration
        self._is_at_begin = False
        return self._made()

    def iter_next(self) -> bool:
        if self.first_batch is not None:
            self.first_batch = None
            return True
        return self._load()

    def getdata(self) -> NDArray:
        return wrapped(self._present.arrays[0])

    def getlabel(self) -> NDArray:
        return wrapped(self._present.arrays[1])

    def getindex(self) -> np.ndarray:
        return self._present.numbers.copy()

    def getpad(self) -> int:
        return self._present.pad

    def _load(self) -> bool:
        batch = self.handle.next()
        self._batch = batch or self._batch
        return batch is not None

    @property
    def _present(self) -> Loaded:
        assert self._batch is not None  # The constructor has loaded the first one.
        return self._batch

    def _made(self) -> DataBatch:
        return DataBatch(data=[self.getdata()], label=[self.getlabel()], pad=self.getpad(), index=self.getindex())


def _label_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    return () if math.prod(shape) == 1 else shape


def CSVIter(*args: Any, **kwargs: Any) -> MXDataIter:
    """Batches of the rows of CSV files.

    data_csv, data_shape: the file, and the shape that the numbers of a line make. label_csv, label_shape: the same for
    labels; without a file they are zeros. batch_size. dtype: of data and labels, float32, int32 or int64. round_batch:
    the last batch is filled up with the first rows, and the next time begins behind them; else it is filled up with
    anything. The batch's `pad` says with how many. data_name, label_name: for the descriptions. Names may be URLs.
    Raises ValueError for arguments that do not fit, FileAccessError and ModelFileError, which are MXNetErrors, for
    files that cannot be read or have something else on a line, which they name; later on where it comes later.
    """
    options = Options("CSVIter", args, kwargs)
    size, dtype = options.size(), options.dtype("float32", "int32", "int64")
    data, shape = options.value("data_csv", to_needed_path), options.value("data_shape", to_shape)
    label, label_shape = options.value("label_csv", to_path, None), options.value("label_shape", to_shape, (1,))
    tail = "round" if options.value("round_batch", to_flag, True) else "keep"
    options.end()
    streams, columns = [_csv_stream(data, shape, dtype)], [Column(shape, 0), Column(_label_shape(label_shape))]
    if label is not None:
        streams.append(_csv_stream(label, label_shape, dtype))
        columns[1] = columns[1]._replace(stream=1)
    return MXDataIter(BatchLoader(streams, columns, size, dtype, tail), **options.names)


def _csv_stream(path: str, shape: tuple[int, ...], dtype: str) -> RowStream:
    check_readable(path)
    return RowStream(partial(csv_pieces, path, math.prod(shape), dtype))


def LibSVMIter(*args: Any, **kwargs: Any) -> MXDataIter:
    """Batches of the rows of LibSVM files, LABEL INDEX:VALUE ..., as csr arrays of float32.

    data_libsvm, data_shape: the file, and how many numbers a row has. label_shape: how many labels stand before the
    pairs, with commas between; with label_libsvm labels are the pairs of that file instead, a csr array too.
    batch_size. The last batch is filled up with the first rows, and the next time begins behind them. num_parts,
    part_index: read one of so many parts of the file. data_name, label_name: for the descriptions. Names may be URLs.
    Raises as CSVIter does.
    """
    options = Options("LibSVMIter", args, kwargs)
    size, _ = options.size(), options.dtype("float32")
    data, shape = options.value("data_libsvm", to_needed_path), options.value("data_shape", to_shape)
    label, label_shape = options.value("label_libsvm", to_path, None), options.value("label_shape", to_shape, (1,))
    part, parts = part_of(options)
    is_round = options.value("round_batch", to_flag, True)
    options.end()
    if not is_round:
        raise ArgumentError("LibSVMIter: round_batch must be True: the last batch is filled up with the first rows")
    if len(shape) != 1:
        raise ArgumentError(f"LibSVMIter: data_shape is the number of columns, as (100,), got {shape}")
    width, labels = shape[0], math.prod(label_shape)
    check_readable(data)
    columns = [Column(shape, 0, is_csr=True), Column(_label_shape(label_shape), 0, 1)]
    if label is None:
        streams = [RowStream(partial(libsvm_pieces, data, width, labels, part, parts))]
    else:
        check_readable(label)
        streams = [RowStream(partial(libsvm_pieces, data, width, 1, part, parts)),
                   RowStream(partial(libsvm_pieces, label, labels, 1, part, parts))]
        columns[1] = Column(label_shape, 1, is_csr=len(label_shape) == 1)
    return MXDataIter(BatchLoader(streams, columns, size, "float32", "round"), **options.names)


def MNISTIter(*args: Any, **kwargs: Any) -> MXDataIter:
    """Batches of MNIST's images, float32 from 0 to below 1, of shape (batch, 1, rows, columns), and labels.

    image, label: the files, packed by gzip or not. batch_size. shuffle: give them in another order, the same each time,
    which `seed` stands for. flat: as vectors. num_parts, part_index: give one of so many parts. What is left at the end
    and fills no batch is left out. silent: do not log how many there are. data_name, label_name: for the descriptions.
    Raises ValueError for arguments that do not fit or fewer images than a batch takes, FileAccessError and
    ModelFileError, which are MXNetErrors, for files that cannot be read or are none of MNIST's.
    """
    options = Options("MNISTIter", args, kwargs)
    size, _ = options.size(128), options.dtype("float32")
    image = options.value("image", to_needed_path, "./train-images-idx3-ubyte")
    label = options.value("label", to_needed_path, "./train-labels-idx1-ubyte")
    is_shuffled, seed = options.value("shuffle", to_flag, True), options.value("seed", to_whole, 0)
    is_flat, is_silent = options.value("flat", to_flag, False), options.value("silent", to_flag, False)
    part, parts = part_of(options)
    options.end()
    images, labels = mnist.read(image, 3), mnist.read(label, 1)
    if len(images) != len(labels):
        raise ArgumentError(f"MNISTIter: {image} has {len(images)} images, but {label} has {len(labels)} labels")
    chosen = slice(len(images) * part // parts, len(images) * (part + 1) // parts)
    images, labels = images[chosen], labels[chosen]
    if len(images) < size:
        raise ArgumentError(f"MNISTIter: a batch takes {size} images, but there are {len(images)}")
    if is_shuffled:
        order = mnist.shuffled(len(images), seed)
        images, labels = images[order], labels[order]
    shape = (images[0].size,) if is_flat else (1, *images.shape[1:])
    if not is_silent:
        _log.info("MNISTIter: %d images, shuffle=%d, batches of shape %s", len(images), is_shuffled, (size, *shape))
    piece = DenseRows(images.reshape(len(images), -1), 1 / 256), DenseRows(labels[:, None])
    stream = RowStream(lambda: iter([piece]))
    loader = BatchLoader([stream], [Column(shape, 0), Column((), 0, 1)], size, "float32", "discard", is_numbered=False)
    return MXDataIter(loader, **options.names)
