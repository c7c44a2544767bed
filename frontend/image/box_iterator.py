"""ImageDetIter: batches of images with boxes."""
from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mxc.compiler.error import ArgumentError, AssertedError, MXNetError
from mxc.compiler.system import opencv
from mxc.image.box_augmenters import CreateDetAugmenter
from mxc.image.box_base import boxes_in
from mxc.image.iterator import ImageIter
from mxc.ndarray import NDArray

WHITE = 255
_log = logging.getLogger(__name__)


class ImageDetIter(ImageIter):
    """Batches of images, (batch, channels, height, width), and their boxes, (batch, most boxes, width of a row), filled
    up with -1.

    The labels of an image in its file are: how many numbers stand before the boxes, how many numbers a box has, more
    if there are; then the boxes, each its class, left, top, right and bottom as shares of the image's size, and more.
    aug_list: by default that of CreateDetAugmenter with the arguments that are left. Other arguments as of ImageIter.
    Raises RuntimeError, too, for labels that are none of boxes.
    """

    # many parameters: MXNet's signature
    def __init__(self, batch_size: int, data_shape: Sequence[int], path_imgrec: str | None = None,
                 path_imglist: str | None = None, path_root: str | None = None, path_imgidx: str | None = None,
                 shuffle: bool = False, part_index: int = 0, num_parts: int = 1,
                 aug_list: Sequence[Callable[..., Any]] | None = None, imglist: Sequence[Sequence[Any]] | None = None,
                 data_name: str = "data", label_name: str = "label", last_batch_handle: str = "pad", **kwargs: Any):
        if aug_list is None:
            aug_list = CreateDetAugmenter(data_shape, **kwargs)
        super().__init__(batch_size=batch_size, data_shape=data_shape, path_imgrec=path_imgrec,
                         path_imglist=path_imglist, path_root=path_root, path_imgidx=path_imgidx, shuffle=shuffle,
                         part_index=part_index, num_parts=num_parts, aug_list=aug_list, imglist=imglist,
                         data_name=data_name, label_name=label_name, last_batch_handle=last_batch_handle)
        self.label_shape = self._largest_label()
        self._describe(label_name)

    def _describe(self, label_name: str) -> None:
        self.provide_label = [(label_name, (self.batch_size, *self.label_shape))]

    def _largest_label(self) -> tuple[int, int]:
        """The most boxes that an image has, and how many numbers each has. Reads all labels."""
        self.reset()
        most, width = 0, 0
        while True:
            try:
                label = boxes_in(self._next_label())
            except StopIteration:
                break
            most, width = max(most, len(label)), label.shape[1]
        self.reset()
        return most, width

    def _next_label(self) -> Any:
        """The label of the next image, whose file is not read. Raises StopIteration behind the last one."""
        if self.seq is None:
            return self.next_sample()[0]
        if self.cur >= len(self.seq):
            raise StopIteration
        self.cur += 1
        return self._source.at(self.cur - 1)[0]

    def _made(self, label: Any, encoded: Any) -> Any:
        image = self.imdecode(encoded)
        try:
            self.check_valid_image([image])
            image, boxes = self.augmentation_transform(image, boxes_in(label))
            self._check_boxes(boxes)
        except RuntimeError as error:
            _log.debug("an image is left out: %s", error)
            return None
        return self.postprocess_data(image).asnumpy(), boxes

    @staticmethod
    def _check_boxes(boxes: np.ndarray) -> None:
        """Raise RuntimeError unless there is a box with a class and an area."""
        if boxes.ndim != 2 or boxes.shape[1] < 5:
            raise MXNetError(f"expected boxes as rows of 5 numbers or more, got the shape {boxes.shape}")
        if not ((boxes[:, 0] >= 0) & (boxes[:, 3] > boxes[:, 1]) & (boxes[:, 4] > boxes[:, 2])).any():
            raise MXNetError("no box has a class and an area")

    def _labels(self, found: Sequence[Any]) -> np.ndarray:
        made = np.full(self.provide_label[0][1], -1, np.float32)
        for row, boxes in zip(made, found, strict=True):
            row[:len(boxes), :boxes.shape[1]] = boxes
        return made

    def augmentation_transform(self, data: NDArray, label: Any) -> Any:  # type: ignore[override]
        """The image and its boxes as the augmenters change them."""
        for augment in self.auglist:
            data, label = augment(data, label)  # type: ignore[call-arg, misc]
        return data, label

    def check_label_shape(self, label_shape: Sequence[int]) -> None:
        """Raise ValueError unless it is (boxes, numbers of each), of no fewer boxes and as many numbers as now."""
        if len(label_shape) != 2:
            raise ArgumentError(f"label_shape has 2 numbers, of boxes and of the numbers of each, got {label_shape}")
        if label_shape[0] < self.label_shape[0]:
            raise ArgumentError(f"label_shape has {label_shape[0]} boxes; expected at least {self.label_shape[0]}")
        if label_shape[1] != self.label_shape[1]:
            raise ArgumentError(f"label_shape has boxes of {label_shape[1]} numbers; expected {self.label_shape[1]}")

    def reshape(self, data_shape: Sequence[int] | None = None, label_shape: Sequence[int] | None = None) -> None:
        """Give batches of other shapes from now on. Raises ValueError as check_data_shape and check_label_shape."""
        if data_shape is not None:
            self.check_data_shape(data_shape)
            self.data_shape = tuple(data_shape)
            self.provide_data = [(self.provide_data[0][0], (self.batch_size, *data_shape))]
        if label_shape is not None:
            self.check_label_shape(label_shape)
            self.label_shape = (label_shape[0], label_shape[1])
            self._describe(self.provide_label[0][0])

    def sync_label_shape(self, it: ImageDetIter, verbose: bool = False) -> ImageDetIter:
        """Have both iterators give labels of the same shape; `it` itself. verbose: log it where one is changed.

        Raises AssertionError for another kind of iterator or boxes of other lengths.
        """
        if not isinstance(it, ImageDetIter) or it.label_shape[1] != self.label_shape[1]:
            raise AssertedError("sync_label_shape takes an ImageDetIter whose boxes have as many numbers")
        shape = (max(it.label_shape[0], self.label_shape[0]), self.label_shape[1])
        for each in (self, it):
            if each.label_shape != shape:
                each.reshape(label_shape=shape)
                if verbose:
                    _log.info("label_shape is now %s", shape)
        return it

    def draw_next(self, color: Any = None, thickness: int = 2, mean: Any = None, std: Any = None, clip: bool = True,
                  waitKey: int | None = None, window_name: str = "draw_next",
                  id2labels: Any = None) -> Iterator[np.ndarray]:
        """The next images with their boxes drawn, as OpenCV has images, until there are no more.

        color: of all boxes, None for random ones. mean, std: undo their normalisation, True for ImageNet's. clip: keep
        colours between 0 and 255. waitKey: show each in a window, for so many milliseconds. id2labels: names of classes
        to write beside the boxes.
        """
        cv2 = opencv.library()
        from mxc.image import colors

        mean = np.array(colors.MEAN) if mean is True else mean
        std = np.array(colors.DEVIATION) if std is True else std
        while True:
            try:
                label, encoded = self.next_sample()
            except StopIteration:
                return
            image, boxes = self.augmentation_transform(self.imdecode(encoded), boxes_in(label))
            pixels = image.asnumpy() * (1 if std is None else std) + (0 if mean is None else mean)
            pixels = np.clip(pixels, 0, WHITE) if clip else pixels
            canvas = np.ascontiguousarray(pixels.round().astype(np.uint8)[:, :, ::-1])
            height, width = canvas.shape[:2]
            for box in boxes:
                left, top, right, bottom = (int(n) for n in box[1:5] * (width, height, width, height))
                chosen = np.random.randint(0, WHITE, 3).tolist() if color is None else color
                cv2.rectangle(canvas, (left, top), (right, bottom), chosen, thickness)
                if id2labels is not None and int(box[0]) in id2labels:
                    cv2.putText(canvas, str(id2labels[int(box[0])]), (left + 5, top + 20), cv2.FONT_HERSHEY_SIMPLEX,
                                0.5, chosen)
            if waitKey is not None:
                cv2.imshow(window_name, canvas)
                cv2.waitKey(waitKey)
            yield canvas
