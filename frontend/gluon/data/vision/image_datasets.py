"""Datasets of images in folders, and in files of records."""
from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

from mxc import image, recordio
from mxc.compiler.error import FileAccessError
from mxc.gluon.data.dataset import Dataset, RecordFileDataset

ENDINGS = (".jpg", ".jpeg", ".png")  # of the files that are images


class ImageFolderDataset(Dataset):
    """The images of a folder that has a folder for each class: ROOT/CLASS/NAME.jpg, .jpeg or .png.

    An example is the image, uint8 (height, width, channels), and the number of its class, or what transform(image,
    label) makes of them. flag: 1 for colours, 0 for grey. synsets: the names of the classes in order, items: (path,
    label) of each image. Raises FileAccessError, which is an MXNetError, for a folder that cannot be read.
    """

    def __init__(self, root: str, flag: int = 1, transform: Callable[[Any, Any], Any] | None = None):
        self._root = os.path.expanduser(root)
        self._flag, self._transform = flag, transform
        self.synsets: list[str] = []
        self.items: list[tuple[str, int]] = []
        for name in _listed(self._root):
            folder = os.path.join(self._root, name)
            if not os.path.isdir(folder):
                warnings.warn(f"{folder} is no folder, so it is left out", stacklevel=2)
                continue
            for each in _listed(folder):
                path = os.path.join(folder, each)
                if os.path.splitext(each)[1].lower() in ENDINGS:
                    self.items.append((path, len(self.synsets)))
                else:
                    warnings.warn(f"{path} is left out, for it ends in none of {', '.join(ENDINGS)}", stacklevel=2)
            self.synsets.append(name)

    def __getitem__(self, idx: int) -> Any:
        path, label = self.items[idx]
        pixels = image.imread(path, self._flag)
        return (pixels, label) if self._transform is None else self._transform(pixels, label)

    def __len__(self) -> int:
        return len(self.items)


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError as error:
        raise FileAccessError(folder, "read", error) from None


class ImageRecordDataset(RecordFileDataset):
    """The images of a file of records and their labels; see RecordFileDataset.

    An example is the image, uint8 (height, width, channels), and its label, a number or an array of float32, or what
    transform(image, label) makes of them. flag: 1 for colours, 0 for grey.
    """

    def __init__(self, filename: str, flag: int = 1, transform: Callable[[Any, Any], Any] | None = None):
        super().__init__(filename)
        self._flag, self._transform = flag, transform

    def __getitem__(self, idx: int) -> Any:
        header, encoded = recordio.unpack(super().__getitem__(idx))
        pixels = image.imdecode(encoded, self._flag)
        return (pixels, header.label) if self._transform is None else self._transform(pixels, header.label)
