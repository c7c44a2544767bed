"""Well-known datasets of small images, read from files of this machine. mxc downloads none."""
from __future__ import annotations

import os
import tarfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mxc import ndarray
from mxc.base import data_dir, data_dir_default
from mxc.compiler.error import ModelFileError
from mxc.gluon.data.dataset import Dataset
from mxc.gluon.data.vision.image_datasets import ImageFolderDataset, ImageRecordDataset
from mxc.io import mnist
from mxc.ndarray import NDArray

__all__ = ["CIFAR10", "CIFAR100", "MNIST", "FashionMNIST", "ImageFolderDataset", "ImageRecordDataset"]

SIDE = 32  # pixels of CIFAR's images

Transform = Callable[[Any, Any], Any]


def _root(name: str) -> str:
    """MXNet's own folder of a dataset, so that files which it downloaded are found."""
    folder = data_dir()
    return os.path.join("~/.mxnet" if folder == data_dir_default() else folder, "datasets", name)


class _LocalDataset(Dataset):
    """Images (height, width, channels) of uint8 as NDArrays, with labels of int32; or what `transform(image, label)`
    makes of them.

    Raises ModelFileError for files that are missing or broken.
    """

    def __init__(self, root: str, train: bool, transform: Transform | None):
        self._folder, self._train, self._transform = Path(root).expanduser(), train, transform
        images, self._label = self._read()
        self._data: NDArray = ndarray.array(images, dtype="uint8")

    def _read(self) -> tuple[np.ndarray, np.ndarray]:
        """All images and their labels."""
        raise NotImplementedError

    def _missing(self, path: Path) -> ModelFileError:
        return ModelFileError(str(path), f"this file of {type(self).__name__} is missing, and mxc downloads none: put "
                              "it there, or give the folder that has it as root")

    def __getitem__(self, idx: int) -> Any:
        image, label = self._data[idx], self._label[idx]
        return (image, label) if self._transform is None else self._transform(image, label)

    def __len__(self) -> int:
        return len(self._label)


class MNIST(_LocalDataset):
    """Handwritten digits, (28, 28, 1), with labels 0 to 9.

    root: a folder with train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, or of the test set t10k-images-... and
    t10k-labels-... train: the set for training, else for tests. transform: see _LocalDataset.
    """

    def __init__(self, root: str = _root("mnist"), train: bool = True, transform: Transform | None = None):
        super().__init__(root, train, transform)

    def _read(self) -> tuple[np.ndarray, np.ndarray]:
        kind = "train" if self._train else "t10k"
        images, labels = self._bytes(f"{kind}-images-idx3-ubyte.gz", 3), self._bytes(f"{kind}-labels-idx1-ubyte.gz", 1)
        if len(images) != len(labels):
            raise ModelFileError(str(self._folder), f"the files have {len(images)} images and {len(labels)} labels")
        return images[..., np.newaxis], labels.astype(np.int32)

    def _bytes(self, name: str, axes: int) -> np.ndarray:
        path = self._folder / name
        if not path.exists():
            raise self._missing(path)
        return mnist.read(str(path), axes)


class FashionMNIST(MNIST):
    """Pictures of clothes, (28, 28, 1), with labels 0 to 9, in files as MNIST's."""

    def __init__(self, root: str = _root("fashion-mnist"), train: bool = True, transform: Transform | None = None):
        super().__init__(root, train, transform)


class CIFAR10(_LocalDataset):
    """Pictures of ten kinds of things, (32, 32, 3), with labels 0 to 9.

    root: a folder with data_batch_1.bin to data_batch_5.bin, or of the test set test_batch.bin; or with
    cifar-10-binary.tar.gz, where these are. train, transform: see MNIST.
    """

    _archive = "cifar-10-binary.tar.gz"
    _names: Sequence[Sequence[str]] = (("test_batch.bin",), tuple(f"data_batch_{i}.bin" for i in range(1, 6)))
    _labels, _column = 1, 0  # bytes of labels before an image, and which of them is taken

    def __init__(self, root: str = _root("cifar10"), train: bool = True, transform: Transform | None = None):
        super().__init__(root, train, transform)

    def _read(self) -> tuple[np.ndarray, np.ndarray]:
        rows = [self._rows(name) for name in self._names[self._train]]
        images = np.concatenate([part[:, self._labels:] for part in rows]).reshape(-1, 3, SIDE, SIDE)
        labels = np.concatenate([part[:, self._column] for part in rows])
        return np.ascontiguousarray(images.transpose(0, 2, 3, 1)), labels.astype(np.int32)

    def _rows(self, name: str) -> np.ndarray:
        """A file's records: labels, then the red, green and blue of an image."""
        path, size = self._folder / name, self._labels + 3 * SIDE * SIDE
        data = path.read_bytes() if path.exists() else self._packed(name)
        if not data or len(data) % size:
            raise ModelFileError(str(path), f"the file has {len(data)} bytes; expected records of {size}")
        return np.frombuffer(data, np.uint8).reshape(-1, size)

    def _packed(self, name: str) -> bytes:
        """A file in the archive."""
        archive = self._folder / self._archive
        if not archive.exists():
            raise self._missing(self._folder / name)
        try:
            with tarfile.open(archive) as tar:
                for member in tar:
                    if member.isfile() and os.path.basename(member.name) == name:
                        file = tar.extractfile(member)
                        assert file is not None
                        return file.read()
        except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
            raise ModelFileError(str(archive), f"this is no whole tar.gz file: {error}") from error
        raise ModelFileError(str(archive), f"there is no {name} in this archive")


class CIFAR100(CIFAR10):
    """Pictures of a hundred kinds of things, (32, 32, 3).

    root: a folder with train.bin, or of the test set test.bin; or with cifar-100-binary.tar.gz, where these are.
    fine_label: labels 0 to 99 of kinds, else 0 to 19 of groups of kinds. train, transform: see MNIST.
    """

    _archive = "cifar-100-binary.tar.gz"
    _names = (("test.bin",), ("train.bin",))
    _labels = 2

    def __init__(self, root: str = _root("cifar100"), fine_label: bool = False, train: bool = True,
                 transform: Transform | None = None):
        self._column = int(fine_label)
        super().__init__(root, train, transform)
