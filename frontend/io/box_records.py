"""ImageDetRecordIter: images with boxes from files of records."""
from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from mxc import recordio
from mxc.compiler.error import ArgumentError, MXNetError
from mxc.io.box_changes import CHOICES, NUMBERS, SAMPLERS, BoxChanges
from mxc.io.built_in import MXDataIter
from mxc.io.image_loader import Records, labels_of, pixels_of, put
from mxc.io.image_records import iterator_over, order_of, read_labels, shape_of
from mxc.io.options import Options, to_integer, to_needed_path, to_path, to_real, to_reals, to_whole

HEAD = 4  # numbers before an image's labels in a batch: channels, height, width, and how many labels follow
LEAST = 7  # numbers in a label of boxes: two of its head, five of a box


class _BoxSettings:
    """A Maker of images with boxes. width: of a row of labels in a batch, without HEAD; fill: what fills it up."""

    def __init__(self, shape: tuple[int, ...], changes: BoxChanges, labels: dict[int, np.ndarray] | None, width: int,
                 fill: float):
        self.shape, self.changes, self.labels, self.width, self.fill = shape, changes, labels, width, fill

    def made(self, header: Any, encoded: bytes, draw: random.Random, out: np.ndarray) -> np.ndarray:
        label = checked(labels_of(header, self.labels))
        head, each = int(label[0]), int(label[1])
        image, boxes = self.changes(pixels_of(encoded, self.shape[0]), label[head:].reshape(-1, each), draw)
        numbers = np.concatenate([label[:head], boxes.ravel()])
        row = np.full(HEAD + self.width, self.fill, np.float32)
        row[:HEAD] = self.shape[0], *image.shape[:2], len(numbers)
        row[HEAD:HEAD + len(numbers)] = numbers
        out[...] = 0  # what a smaller image leaves is black
        put(image, out[:, :image.shape[0], :image.shape[1]])
        return row


def checked(label: np.ndarray) -> np.ndarray:
    """The labels of an image with boxes: how many numbers stand before these, how many numbers each has, ..., boxes.

    Raises MXNetError for others.
    """
    if len(label) < LEAST:
        raise MXNetError(f"a label of boxes has {LEAST} numbers or more, got {len(label)}: {label.tolist()}")
    head, each = int(label[0]), int(label[1])
    if head < 2 or each < 5 or (len(label) - head) % each or len(label) == head:
        raise MXNetError(f"a label has {len(label)} numbers, of which {head} stand before boxes of {each}; expected 2 "
                         "or more, and boxes of 5 or more that come out even")
    return label


def ImageDetRecordIter(*args: Any, **kwargs: Any) -> MXDataIter:
    """Batches of images with boxes from a file of records, (batch, channels, height, width).

    A row of labels is (channels, height, width, how many labels follow, labels ..., label_pad_value ...), of the widest
    label in the file and 4 more, or of label_pad_width and 4. Labels are, as in the file: how many numbers stand before
    the boxes, how many numbers a box has, ..., then boxes (class, left, top, right, bottom, ...) as shares of the size.
    Images are changed in this order: resize, the shorter side; hue, saturation, illumination and contrast, by up to
    max_random_... with probability random_..._prob; rand_mirror_prob, left for right; rand_pad_prob and max_pad_scale,
    a border of fill_value; rand_crop_prob, a part that one of num_crop_sampler samplers finds: of a scale and an aspect
    ratio between min_crop_... and max_crop_..., which has with one of the boxes, between such bounds, common shares of
    both (overlaps), of itself (sample_coverages) and of the box (object_coverages), in max_crop_trials tries; boxes
    stay whose centre is in it (crop_emit_mode "center"), or of which it has emit_overlap_thresh ("overlap").
    resize_mode: "force" into data_shape, "fit" with the proportions, "shrink" where it is larger.
    Other arguments, and what is raised, as of ImageRecordIter.
    """
    options = Options("ImageDetRecordIter", args, kwargs)
    size = options.size()
    options.dtype("float32")
    path, listed = options.value("path_imgrec", to_needed_path), options.value("path_imglist", to_path, None)
    shape = shape_of(options)
    given = {key: options.value(key, to_integer if isinstance(usual, int) else to_real, usual)
             for key, usual in NUMBERS.items()}
    given |= {key: options.value(key, to_reals, usual) for key, usual in SAMPLERS.items()}
    given |= {key: options.value(key, partial(_one_of, known), known[0]) for key, known in CHOICES.items()}
    seed = options.value("seed", to_integer, 0)
    records, labels = Records(path, None), None if listed is None else read_labels(listed)
    order = order_of(options, records, seed)
    wanted, fill = options.value("label_pad_width", to_whole, 0), options.value("label_pad_value", to_real, -1.0)
    width = _widest(records, labels, options.value("label_width", to_integer, -1))
    if 0 < wanted < width:
        raise ArgumentError(f"ImageDetRecordIter: label_pad_width is {wanted}; expected 0 or at least {width}, as the "
                            "labels of the file take")
    maker = _BoxSettings(shape, BoxChanges(given, shape[1:]), labels, wanted or width, fill)
    return iterator_over(options, records, order, maker, seed, size, shape, "float32")


def _one_of(known: Sequence[str], given: Any) -> str:
    if given not in known:
        raise ValueError(f"expected {' or '.join(known)}")
    return given


def _widest(records: Records, labels: dict[int, np.ndarray] | None, wanted: int) -> int:
    """The length of the longest label. Reads through the file. Raises MXNetError for a label that has none of boxes, or
    another length than is wanted where that is above 0."""
    widest = 0
    for place in range(len(records.offsets)):
        header, _ = recordio.unpack(records.at(place))
        try:
            label = checked(labels_of(header, labels))
        except MXNetError as error:
            raise MXNetError(f"{records.path}: the record with the id {header.id}: {error}") from None
        if wanted > 0 and len(label) != wanted:
            raise MXNetError(f"{records.path}: the record with the id {header.id} has {len(label)} labels; expected "
                             f"{wanted}, as label_width says")
        widest = max(widest, len(label))
    return widest
