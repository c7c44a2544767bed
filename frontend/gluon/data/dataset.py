"""Datasets: examples by their number."""
from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from mxc.compiler.error import AssertedError
from mxc.gluon.data.sampler import FilterSampler, Sampler, SequentialSampler
from mxc.ndarray import NDArray

__all__ = ["ArrayDataset", "Dataset", "RecordFileDataset", "SimpleDataset"]


class Dataset:
    """Examples: a subclass has `__getitem__` and `__len__`."""

    def __getitem__(self, idx: int) -> Any:
        """The example of that number."""
        raise NotImplementedError

    def __len__(self) -> int:
        """How many examples there are."""
        raise NotImplementedError

    def filter(self, fn: Callable[[Any], Any]) -> Dataset:
        """The examples for which `fn(example)` is true. Every example is read, now."""
        return _Sampled(self, FilterSampler(fn, self))

    def shard(self, num_shards: int, index: int) -> Dataset:
        """The part `index` of `num_shards` parts, of which the first have one more where it does not divide.

        Raises AssertionError for a part that is not there.
        """
        if not 0 <= index < num_shards:
            raise AssertedError(f"there is no part {index} of {num_shards} parts: they are 0 to {num_shards - 1}")
        each, more = divmod(len(self), num_shards)
        return _Sampled(self, SequentialSampler(each + (index < more), each * index + min(index, more)))

    def take(self, count: int | None) -> Dataset:
        """The first examples; all for None, or where there are less."""
        return _Sampled(self, SequentialSampler(len(self) if count is None or count > len(self) else count))

    def sample(self, sampler: Sampler) -> Dataset:
        """The examples whose numbers a sampler gives. Raises TypeError for what is no sampler."""
        if not isinstance(sampler, Sampler):
            raise TypeError(f"sample takes a Sampler, got {type(sampler).__name__}")
        return _Sampled(self, sampler)

    def transform(self, fn: Callable[..., Any], lazy: bool = True) -> Dataset:
        """The dataset of `fn(*example)`; lazy: computed each time an example is asked for, else now for all."""
        made = _Transformed(self, fn)
        return made if lazy else SimpleDataset([made[i] for i in range(len(made))])

    def transform_first(self, fn: Callable[..., Any], lazy: bool = True) -> Dataset:
        """As `transform`, of the first part of each example alone."""
        return self.transform(_First(fn), lazy)


class _Transformed(Dataset):
    """See Dataset.transform."""

    def __init__(self, data: Dataset, fn: Callable[..., Any]):
        self._data, self._fn = data, fn

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, idx: int) -> Any:
        item = self._data[idx]
        return self._fn(*item) if isinstance(item, tuple) else self._fn(item)


class _First:
    """A function of the first part of an example; a class, so that it can be pickled."""

    def __init__(self, fn: Callable[..., Any]):
        self._fn = fn

    def __call__(self, x: Any, *rest: Any) -> Any:
        return (self._fn(x), *rest) if rest else self._fn(x)


class _Sampled(Dataset):
    """The examples of another dataset that a sampler gives."""

    def __init__(self, data: Dataset, sampler: Sampler):
        self._data, self._indices = data, list(sampler)

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, idx: int) -> Any:
        return self._data[self._indices[idx]]


class SimpleDataset(Dataset):
    """A list, or anything with numbers and a length."""

    def __init__(self, data: Any):
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, idx: int) -> Any:
        return self._data[idx]


class ArrayDataset(Dataset):
    """The rows of one or several arrays or lists of one length; an example has one of each. Arrays of one axis are
    kept as NumPy's: their elements are numbers.

    Raises AssertionError without arrays, and for others in length.
    """

    def __init__(self, *args: Any):
        if not args:
            raise AssertedError("an ArrayDataset takes arrays, got none")
        self._length = len(args[0])
        self._data: list[Any] = []
        for i, data in enumerate(args):
            if len(data) != self._length:
                raise AssertedError(f"the arrays of an ArrayDataset are of one length: the first has {self._length}, "
                                    f"number {i} has {len(data)}")
            self._data.append(data.asnumpy() if isinstance(data, NDArray) and data.ndim == 1 else data)

    def __getitem__(self, idx: int) -> Any:
        return self._data[0][idx] if len(self._data) == 1 else tuple(data[idx] for data in self._data)

    def __len__(self) -> int:
        return self._length


class RecordFileDataset(Dataset):
    """The records of a file NAME.rec, in the order of its index NAME.idx, as bytes. Files may be URLs.

    Processes and threads may read it at once. Raises MXNetError for files that cannot be read.
    """

    def __init__(self, filename: str):
        from mxc import recordio  # only now: most programs read no records

        self.filename, self.idx_file = filename, os.path.splitext(filename)[0] + ".idx"
        self._record = recordio.MXIndexedRecordIO(self.idx_file, filename, "r")

    def __getitem__(self, idx: int) -> Any:
        return self._record.read_idx(self._record.keys[idx])

    def __len__(self) -> int:
        return len(self._record.keys)
