"""Batches of images from files of records, decoded and changed by a pool of threads, ahead of the program.

What an image becomes depends on the seed, the pass and the image's place in it alone, so batches are the same however
many threads there are.
"""
from __future__ import annotations

import os
import random
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from mxc import recordio
from mxc.compiler.error import MXNetError
from mxc.compiler.system import opencv
from mxc.io.batch_loader import Loaded
from mxc.io.image_changes import Changes, Part
from mxc.runtime import jpeg, record_file
from mxc.runtime.array import Array
from mxc.runtime.context import current_context

Finish = Callable[[Array, list[random.Random]], Array]  # pixels, what draws numbers -> data
TOGETHER = 8  # images that a thread makes at once: asking for one takes a thirtieth of the time that it takes


class Records:
    """The records of a file by their offsets, which an index or the file itself tells; size: the file's bytes, -1 with
    an index. Several threads may read."""

    def __init__(self, path: str, index: str | None):
        self.path = path
        self._reader, self._process = record_file.Reader(path), os.getpid()
        if index is None:
            self.offsets, self.size = self._reader.offsets()
        else:
            file = recordio.MXIndexedRecordIO(index, path, "r")
            self.offsets, self.size = [file.idx[key] for key in file.keys], -1

    def at(self, place: int) -> bytes:
        """The record that is number `place` of the file."""
        if self._process != os.getpid():  # a fork would move the other process's position in the file
            self._reader, self._process = record_file.Reader(self.path), os.getpid()
        content = self._reader.at(self.offsets[place])
        if content is None:
            raise MXNetError(f"{self.path}: there is no record at byte {self.offsets[place]}, where its index has one")
        return content


class Maker(Protocol):
    """What becomes of a record. shape: (channels, height, width) of its pixels."""

    shape: tuple[int, ...]

    def made(self, header: Any, encoded: bytes, draw: random.Random, out: np.ndarray) -> np.ndarray:
        """The labels of an image, whose pixels are written to `out`, of `shape` and uint8. draw: its random numbers."""


class ImageSettings:
    """A Maker of images with a number, or several, as labels. shape: (channels, height, width). labels: {id: numbers}
    in place of the records' labels, or None. mirror, rand_mirror: left for right, always or every second time."""

    def __init__(self, shape: tuple[int, ...], label_width: int, labels: dict[int, np.ndarray] | None,
                 changes: Changes, mirror: bool, rand_mirror: bool):
        self.shape, self.label_width, self.labels, self.changes = shape, label_width, labels, changes
        self.mirror, self.rand_mirror = mirror, rand_mirror
        self._takes_parts = changes.begins_with_part and shape[0] == 3

    def made(self, header: Any, encoded: bytes, draw: random.Random, out: np.ndarray) -> np.ndarray:
        head = jpeg.head(encoded) if self._takes_parts else None
        part = None if head is None else self.changes.part(head.height, head.width, draw)
        if head is None:
            self._finish(self.changes(pixels_of(encoded, self.shape[0]), draw), draw, out)
        elif part is None:
            self._finish(self.changes.of_part(pixels_of(encoded, 3), None, draw), draw, out)
        elif part[2:] != self.shape[1:] or self.changes.has_shades:
            image = opencv.merged(part_of(encoded, head, part, False, np.empty((3, *part[2:]), np.uint8)))
            self._finish(self.changes.of_part(image, (0, 0, *part[2:]), draw), draw, out)
        else:
            part_of(encoded, head, part, self._is_mirrored(draw), out)
        label = labels_of(header, self.labels)
        if len(label) != self.label_width:
            raise MXNetError(f"it has {len(label)} labels; expected {self.label_width}, as label_width says")
        return label if self.label_width > 1 else label[0]

    def _finish(self, image: np.ndarray, draw: random.Random, out: np.ndarray) -> None:
        put(image[:, ::-1] if self._is_mirrored(draw) else image, out)

    def _is_mirrored(self, draw: random.Random) -> bool:
        return self.mirror or (self.rand_mirror and draw.random() < 0.5)


def part_of(encoded: bytes, head: jpeg.Head, part: Part, mirrored: bool, out: np.ndarray) -> np.ndarray:
    """Writes a part of a JPEG to `out`, (3, height, width), and gives that; left for right where it is mirrored."""
    y, x, height, width = part
    if not jpeg.decoder().part(encoded, head, x, y, mirrored, out):
        image = pixels_of(encoded, 3)[y:y + height, x:x + width]
        put(image[:, ::-1] if mirrored else image, out)
    return out


def put(image: np.ndarray, out: np.ndarray) -> None:
    """Write an image, (height, width, channels), to `out`, (channels, height, width)."""
    out[...] = image.transpose(2, 0, 1)


def pixels_of(encoded: bytes, channels: int) -> np.ndarray:
    """The pixels of an encoded image, (height, width, 1 or 3), in the order red, green, blue."""
    image = opencv.decoded(encoded, 0 if channels == 1 else 1, to_rgb=True)
    return image.reshape(*image.shape[:2], channels)


def labels_of(header: Any, labels: dict[int, np.ndarray] | None) -> np.ndarray:
    """The labels of a record, or those that a list has for its id. Raises MXNetError where that has none."""
    if labels is None:
        return np.atleast_1d(np.asarray(header.label, np.float32))
    if header.id not in labels:
        raise MXNetError("path_imglist has no labels for it")
    return labels[header.id]


class ImageLoader:
    """Batches of images: what MXDataIter asks for.

    maker: makes images of records, with random numbers of `seed`. order: places of the records in a pass, given its
    number. finish: makes a batch's array of its pixels. tail: see
    BatchLoader. threads, ahead: how many threads there are, and how many batches they make before they are asked for.
    """

    # many parameters: the options of an iterator that are about batches
    def __init__(self, records: Records, maker: Maker, seed: int, order: Callable[[int], Sequence[int]],
                 finish: Finish, size: int, is_round: bool, threads: int, ahead: int):
        self._records, self._maker, self._seed, self._order, self._finish = records, maker, seed, order, finish
        self._size, self._is_round = size, is_round
        self._threads, self._ahead = threads, max(1, ahead)
        self._pool, self._process = ThreadPoolExecutor(threads, "mxc-images"), os.getpid()
        self._pass, self._at = 0, 0  # the number of the pass, and the place in it of the next image to be asked for
        self._places = order(0)
        self._waiting: deque[tuple[Array, list[Future], int]] = deque()  # pixels, who makes them, how many fill it up
        self._is_last, self._skip = False, 0  # whether the pass has no more batches; images taken from the next one

    def rewind(self) -> None:
        """Go back to the first record, or behind those that the last batch took from the start."""
        if self._waiting:
            self._skip = 0  # the batch that took from the start was not given
        for _, parts, _ in self._waiting:
            for part in parts:
                part.cancel()
        self._waiting.clear()
        if self._at or self._is_last:
            self._start_pass()
        self._is_last = False

    def _start_pass(self) -> None:
        self._pass += 1
        self._places = self._order(self._pass)
        self._at, self._skip = self._skip, 0

    def next(self) -> Loaded | None:
        """The next batch; None when there is none. Raises MXNetError for a record that is no image."""
        while len(self._waiting) < self._ahead and not self._is_last:
            self._ask()
        if not self._waiting:
            return None
        pixels, parts, pad = self._waiting.popleft()
        found = [image for part in parts for image in part.result()]
        if pad and not self._is_round:
            pixels.memory[-pad:] = pixels.memory[-pad - 1]
            found += [found[-1]] * pad
        data = self._finish(pixels, [draw for _, _, draw in found])
        label = Array.of(np.stack([label for label, _, _ in found]), "float32", current_context())
        return Loaded([data, label], pad, np.array([i for _, i, _ in found], np.uint64))

    def _ask(self) -> None:
        """Ask for the images of the next batch."""
        if self._process != os.getpid():  # a forked process has no threads of the other's
            self._pool, self._process = ThreadPoolExecutor(self._threads, "mxc-images"), os.getpid()
        count = min(self._size, len(self._places) - self._at)
        if count <= 0:
            self._is_last = True
            return
        wanted = [(self._pass, place, self._places[place]) for place in range(self._at, self._at + count)]
        self._at += count
        pad = self._size - count
        if pad:
            self._is_last = True
            if self._is_round:
                following = self._order(self._pass + 1)
                wanted += [(self._pass + 1, i % len(following), following[i % len(following)]) for i in range(pad)]
                self._skip = pad % len(following)
        pixels = Array.empty((self._size, *self._maker.shape), "uint8", current_context().computing)
        parts = [self._pool.submit(self._made, wanted[i:i + TOGETHER], pixels.memory[i:i + TOGETHER])
                 for i in range(0, len(wanted), TOGETHER)]
        self._waiting.append((pixels, parts, pad))

    def _made(self, wanted: Sequence[tuple[int, int, int]],
              out: np.ndarray) -> list[tuple[np.ndarray, int, random.Random]]:
        """Of each image its labels, its id, and what draws its random numbers; the pixels are written to `out`.

        wanted: the numbers of the pass, of the place in it, and of the record.
        """
        found = []
        for (number, place, record), pixels in zip(wanted, out, strict=False):
            header, encoded = recordio.unpack(self._records.at(record))
            draw = random.Random((self._seed << 80) + (number << 48) + place)
            try:
                found.append((self._maker.made(header, encoded, draw, pixels), header.id, draw))
            except MXNetError as error:
                raise MXNetError(f"{self._records.path}: the record with the id {header.id}: {error}") from None
        return found
