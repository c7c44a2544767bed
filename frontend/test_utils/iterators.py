"""Iterators to train and to measure with."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from mxc.io import DataBatch, DataIter, MNISTIter, MXDataIter
from mxc.test_utils.downloads import get_mnist_ubyte
from mxc.test_utils.surroundings import MNIST_FOLDER, MNIST_NAMES


class DummyIter(DataIter):
    """The first batch of another iterator, again and again without an end: to measure what is not loading."""

    def __init__(self, real_iter: DataIter):
        super().__init__(real_iter.batch_size)
        self.real_iter = real_iter
        self.provide_data = real_iter.provide_data  # type: ignore[attr-defined]
        self.provide_label = real_iter.provide_label  # type: ignore[attr-defined]
        self.the_batch = real_iter.next()

    def __iter__(self) -> Iterator[DataBatch]:
        return self

    def next(self) -> DataBatch:
        """The batch."""
        return self.the_batch


def get_mnist_iterator(batch_size: int, input_shape: Sequence[int], num_parts: int = 1,
                       part_index: int = 0) -> tuple[MXDataIter, MXDataIter]:
    """Iterators over MNIST's images for training and for tests, from the folder `data`, shuffled.

    input_shape: of an image; with any but three axes they are vectors. num_parts, part_index: see `mx.io.MNISTIter`.
    Raises FileAccessError, an MXNetError, when a file is not there.
    """
    get_mnist_ubyte()
    made = [MNISTIter(image=f"{MNIST_FOLDER}/{MNIST_NAMES[f'{part}_data']}", batch_size=batch_size, shuffle=True,
                      label=f"{MNIST_FOLDER}/{MNIST_NAMES[f'{part}_label']}", flat=len(input_shape) != 3,
                      num_parts=num_parts, part_index=part_index) for part in ("train", "test")]
    return made[0], made[1]
