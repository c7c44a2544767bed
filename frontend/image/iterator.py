"""ImageIter: batches of images from files of records, lists, or lists in files."""
from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mxc import ndarray
from mxc.compiler.error import ArgumentError, AssertedError, MXNetError
from mxc.image.creation import CreateAugmenter
from mxc.image.resizing import imdecode
from mxc.image.sources import Source, listed, read_list
from mxc.io import DataBatch, DataIter
from mxc.ndarray import NDArray
from mxc.runtime import remote_files

DTYPES = ("int32", "float32", "int64", "float64")
TAILS = ("pad", "discard", "roll_over")
_log = logging.getLogger(__name__)


class ImageIter(DataIter):
    """Batches of images, (batch, channels, height, width), each decoded and augmented anew, and their labels.

    data_shape: (3, height, width). label_width: labels of an image. Images come from path_imgrec, a file of records,
    with path_imgidx, its index, to shuffle or divide it; or from path_imglist, a file of lines KEY, labels and NAME; or
    from imglist, a list of [label, NAME]; names are below path_root. With records and a list labels are the list's.
    shuffle: another order each epoch, drawn by `random`. part_index, num_parts: read one of so many parts. aug_list:
    augmenters, by default those of CreateAugmenter with the arguments that are left. dtype: of the labels of lists;
    batches are of float32. last_batch_handle: "pad" fills the last batch up from the start, "discard" leaves it out,
    "roll_over" begins the next epoch with it; as in MXNet its `pad` is then what was missing before. Files may be URLs.

    Raises AssertionError and ValueError for arguments that do not fit, MXNetError for files that cannot be read.
    """

    # many parameters: MXNet's signature
    def __init__(self, batch_size: int, data_shape: Sequence[int], label_width: int = 1, path_imgrec: str | None = None,
                 path_imglist: str | None = None, path_root: str | None = None, path_imgidx: str | None = None,
                 shuffle: bool = False, part_index: int = 0, num_parts: int = 1,
                 aug_list: Sequence[Callable[..., Any]] | None = None, imglist: Sequence[Sequence[Any]] | None = None,
                 data_name: str = "data", label_name: str = "softmax_label", dtype: str = "float32",
                 last_batch_handle: str = "pad", **kwargs: Any):
        super().__init__()
        if not (path_imgrec or path_imglist or isinstance(imglist, list)):
            raise AssertedError("images come from path_imgrec, path_imglist or imglist, a list; none of them was given")
        _check_one_of("dtype", dtype, DTYPES)
        _check_one_of("last_batch_handle", last_batch_handle, TAILS)
        self.check_data_shape(data_shape)
        labels = read_list(path_imglist, dtype) if path_imglist else \
            listed(imglist, dtype) if isinstance(imglist, list) else None
        self._source = Source(path_imgrec, path_imgidx, labels, path_root)
        self._source.take_part(part_index, num_parts)
        self.provide_data: Any = [(data_name, (batch_size, *data_shape))]
        self.provide_label: Any = [(label_name, (batch_size, label_width) if label_width > 1 else (batch_size,))]
        self.batch_size, self.data_shape, self.label_width = batch_size, tuple(data_shape), label_width
        self.shuffle, self.last_batch_handle = shuffle, last_batch_handle
        self.auglist = CreateAugmenter(data_shape, **kwargs) if aug_list is None else aug_list  # type: ignore[arg-type]
        self.cur = 0
        self._rest: list[tuple[np.ndarray, Any]] = []  # what a batch that rolls over has begun with
        self._at_end = False  # whether the last batch of the epoch was given
        self.reset()

    @property
    def imgrec(self) -> Any:
        """The file of records, or None."""
        return self._source.imgrec

    @property
    def imglist(self) -> Any:
        """Labels and names of files by key, or None."""
        return self._source.imglist

    @property
    def path_root(self) -> Any:
        """The folder that names of files are below, or None."""
        return self._source.path_root

    @property
    def seq(self) -> Any:
        """The keys of the images in this epoch's order; None for a file of records without an index."""
        return self._source.seq

    @property
    def num_image(self) -> int | None:
        """How many images there are, where that is known."""
        return None if self.seq is None else len(self.seq)

    def reset(self) -> None:
        """Start another epoch."""
        if self.shuffle:
            self._source.shuffle()
        if not self._rest:
            self._source.rewind()
            self.cur = 0
        self._at_end = False

    def hard_reset(self) -> None:
        """Start another epoch without what was left of the last one."""
        self._rest = []
        self.reset()

    def next_sample(self) -> tuple[Any, Any]:
        """The label of the next image and its bytes. Raises StopIteration behind the last one."""
        if self.seq is None:
            found = self._source.following()
            if found is None:
                raise StopIteration
            return found
        if self.cur >= len(self.seq):
            raise StopIteration
        label, image = self._source.at(self.cur)
        self.cur += 1
        return label, self.read_image(image) if isinstance(image, str) else image

    def next(self) -> DataBatch:
        """The next batch. Raises StopIteration when there is none, MXNetError for an image that cannot be read."""
        if self._at_end:
            raise StopIteration
        found, self._rest = self._rest, []
        missing = self.batch_size - len(found) if found else 0
        self._fill(found)
        pad = self.batch_size - len(found)
        if not found or (pad and self.last_batch_handle == "discard"):
            raise StopIteration
        if pad and self.last_batch_handle == "roll_over":
            self._rest = found
            self._source.rewind()
            self.cur = 0
            raise StopIteration
        if pad:
            self._at_end = True
            self._wrap(found)
        return self._batch(found, pad or missing)

    def _fill(self, found: list[Any]) -> None:
        """Add samples until there are as many as a batch has, or no more."""
        while len(found) < self.batch_size:
            try:
                label, encoded = self.next_sample()
            except StopIteration:
                return
            sample = self._made(label, encoded)
            if sample is not None:
                found.append(sample)

    def _wrap(self, found: list[Any]) -> None:
        """Fill the batch up with images from the start, again and again where there are few."""
        before = -1
        while len(found) < self.batch_size and len(found) > before:
            before = len(found)
            self._source.rewind()
            self.cur = 0
            self._fill(found)

    def _made(self, label: Any, encoded: Any) -> Any:
        """A sample ready for a batch; None for an image that is none."""
        image = self.imdecode(encoded)
        try:
            self.check_valid_image([image])
        except RuntimeError as error:
            _log.debug("an image is left out: %s", error)
            return None
        return self.postprocess_data(self.augmentation_transform(image)).asnumpy(), label

    def _batch(self, found: Sequence[Any], pad: int) -> DataBatch:
        data = np.empty((self.batch_size, *self.data_shape), np.float32)
        for i, (pixels, _) in enumerate(found):
            if pixels.shape != self.data_shape:
                raise MXNetError(f"augmenters gave an image of the shape {pixels.shape}; expected {self.data_shape}")
            data[i] = pixels
        label = self._labels([label for _, label in found])
        return DataBatch([ndarray.array(data)], [ndarray.array(label)], pad)

    def _labels(self, found: Sequence[Any]) -> np.ndarray:
        """The labels of a batch in one array."""
        made = np.empty(self.provide_label[0][1], np.float32)
        for i, label in enumerate(found):
            values = label.asnumpy() if isinstance(label, NDArray) else np.asarray(label)
            if values.size != made[i].size:
                raise MXNetError(f"an image has {values.size} labels; expected {made[i].size}, as label_width says")
            made[i] = values.reshape(made[i].shape)
        return made

    # ---- steps that derived classes change

    def check_data_shape(self, data_shape: Sequence[int]) -> None:
        """Raise ValueError unless it is (3, height, width)."""
        if len(data_shape) != 3:
            raise ArgumentError(f"data_shape should have length 3, with dimensions CxHxW, got {data_shape}")
        if data_shape[0] != 3:
            raise ArgumentError(f"This iterator expects inputs to have 3 channels, got data_shape {data_shape}")

    def check_valid_image(self, data: Sequence[NDArray]) -> None:
        """Raise RuntimeError for an image without pixels: it is left out."""
        if not data[0].shape:
            raise RuntimeError("Data shape is wrong")

    def imdecode(self, s: Any) -> NDArray:
        """The pixels of encoded bytes. Raises MXNetError, which names the image, for bytes that are none."""
        try:
            return imdecode(s)
        except MXNetError as error:
            key = "" if self.seq is None else f" with the key {self.seq[self.cur - 1]!r}"
            place = self.imgrec.uri if self.imgrec is not None else self.imglist[self.seq[self.cur - 1]][1]
            raise MXNetError(f"the image{key} of {place}: {error}") from None

    def read_image(self, fname: str) -> bytes:
        """The bytes of the file of that name."""
        return remote_files.content(self._source.path(fname))

    def augmentation_transform(self, data: NDArray) -> NDArray:
        """The image as the augmenters change it."""
        for augment in self.auglist:
            data = augment(data)
        return data

    def postprocess_data(self, datum: NDArray) -> NDArray:
        """The image with its channels first."""
        return ndarray.transpose(datum, axes=(2, 0, 1))


def _check_one_of(name: str, given: str, known: Sequence[str]) -> None:
    if given not in known:
        raise AssertedError(f"{name} is one of {', '.join(known)}; got {given!r}")
