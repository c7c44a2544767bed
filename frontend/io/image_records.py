"""Iterators over images in files of records: ImageRecordIter, and those that give bytes as they are."""
from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from mxc import symbol
from mxc.compiler.error import ArgumentError, ModelFileError, MXNetError
from mxc.io.built_in import MXDataIter
from mxc.io.image_changes import DEFAULTS, Changes
from mxc.io.image_loader import ImageLoader, ImageSettings, Maker, Records
from mxc.io.options import Options, part_of, to_flag, to_integer, to_needed_path, to_path, to_real, to_shape, to_whole
from mxc.ndarray import saving
from mxc.ndarray.creation import array
from mxc.runtime import remote_files
from mxc.runtime.array import Array
from mxc.runtime.cached_op import CachedOp
from mxc.runtime.context import current_context

MEGABYTE = 1 << 20
MEAN_NAME = "mean_img"  # of the array in a file of a mean image
WITHOUT_MEANING = ("aug_seq", "verbose", "device_id", "ctx")


def ImageRecordIter(*args: Any, **kwargs: Any) -> MXDataIter:
    """Batches of images from a file of records, (batch, channels, height, width), and their labels.

    path_imgrec, path_imgidx: the file, and its index, which saves reading through the file once. path_imglist: a file
    of lines ID, labels and NAME, whose labels take the place of the records'. data_shape, batch_size, label_width. The
    images are decoded and changed in this order: resize, the shorter side; rotate, max_rotate_angle, max_shear_ratio,
    max_aspect_ratio, min_random_scale, max_random_scale, min_img_size and max_img_size, by one turn around the centre;
    pad, a border; then cropped: to a random size (min_crop_size, max_crop_size) or a random part (random_resized_crop
    with min_random_area, max_random_area, min_aspect_ratio, max_aspect_ratio) that is resized to data_shape, else to
    data_shape at a random place (rand_crop) or in the centre; smaller images are enlarged. random_h, random_s, random_l
    move hue, saturation and lightness; brightness, contrast, saturation, pca_noise as of mx.image.CreateAugmenter.
    mirror, rand_mirror: left for right. fill_value: of borders. inter_method: 0 to 4, 9 or 10, as of mx.image.
    Then (image - mean) * contrast * scale / std + illumination * scale, where mean_img is a file of a mean image, which
    is made when it is not there, mean_r and so on are of a channel, and contrast (1 by max_random_contrast) and
    illumination (0 by max_random_illumination) are drawn for each image. dtype: float32; uint8 or int8 without these.

    shuffle: another order each time, by seed; shuffle_chunk_size: by chunks of so many megabytes, whose order
    shuffle_chunk_seed tells. num_parts, part_index: read one of so many parts. round_batch: the last batch is filled up
    with the first images, and the next time begins behind them; else with its last image. preprocess_threads decode
    images; prefetch_buffer batches are made ahead. seed, seed_aug: of random numbers, which are the same however many
    threads there are. data_name, label_name: for the descriptions. Names may be URLs.
    Raises ValueError for arguments that do not fit, MXNetError for files that cannot be read or a record that is no
    image. `index` of a batch has the records' ids.
    """
    return _iterator("ImageRecordIter", args, kwargs, ("float32", "uint8", "int8"))


def ImageRecordUInt8Iter(*args: Any, **kwargs: Any) -> MXDataIter:
    """As ImageRecordIter, with colours as they are, of uint8."""
    return _iterator("ImageRecordUInt8Iter", args, kwargs, ("uint8",))


def ImageRecordInt8Iter(*args: Any, **kwargs: Any) -> MXDataIter:
    """As ImageRecordIter, with colours up to 127, of int8."""
    return _iterator("ImageRecordInt8Iter", args, kwargs, ("int8",))


def ImageRecordIter_v1(*args: Any, **kwargs: Any) -> MXDataIter:
    """As ImageRecordIter; MXNet has an older one of this name."""
    return ImageRecordIter(*args, **kwargs)


def ImageRecordUInt8Iter_v1(*args: Any, **kwargs: Any) -> MXDataIter:
    """As ImageRecordUInt8Iter; MXNet has an older one of this name."""
    return ImageRecordUInt8Iter(*args, **kwargs)


def _iterator(name: str, args: tuple, kwargs: dict[str, Any], dtypes: Sequence[str]) -> MXDataIter:
    options = Options(name, args, kwargs)
    size, dtype = options.size(), options.dtype(*dtypes)
    path, index = options.value("path_imgrec", to_needed_path), options.value("path_imgidx", to_path, None)
    shape, width = shape_of(options), options.value("label_width", partial(to_whole, least=1), 1)
    listed = options.value("path_imglist", to_path, None)
    changes = Changes({key: _change(options, key) for key in DEFAULTS}, shape[1:])
    seed = options.value("seed", to_integer, 0)
    maker = ImageSettings(shape, width, None if listed is None else read_labels(listed), changes,
                          options.value("mirror", to_flag, False), options.value("rand_mirror", to_flag, False))
    of_changes = options.value("seed_aug", perhaps(to_integer), None)
    records = Records(path, index)
    order = order_of(options, records, seed)
    return iterator_over(options, records, order, maker, seed if of_changes is None else of_changes, size, shape, dtype)


def shape_of(options: Options) -> tuple[int, int, int]:
    """The argument data_shape. Raises ValueError for another form."""
    shape = options.value("data_shape", to_shape)
    if len(shape) != 3 or shape[0] not in (1, 3):
        raise ArgumentError(f"{options.iterator}: data_shape is (channels, height, width) of 1 or 3 channels, got "
                            f"{shape}")
    return shape[0], shape[1], shape[2]


def iterator_over(options: Options, records: Records, order: Callable[[int], Sequence[int]], maker: Maker, seed: int,
                  size: int, shape: tuple[int, ...], dtype: str) -> MXDataIter:
    """The iterator over records that `maker` changes, in batches of `size`, by the arguments that are left."""
    threads = options.value("preprocess_threads", partial(to_whole, least=1), 4)
    ahead = options.value("prefetch_buffer", to_whole, 4)
    is_round = options.value("round_batch", to_flag, True)

    def loader(finish: Callable[..., Array], of: Callable[[int], Sequence[int]], tail: bool) -> ImageLoader:
        return ImageLoader(records, maker, seed, of, finish, size, tail, threads, ahead)

    finish = Finish(options, shape, dtype, lambda as_they_are: loader(as_they_are, lambda number: order(0), False))
    options.end(*WITHOUT_MEANING)
    return MXDataIter(loader(finish, order, is_round), **options.names)


def perhaps(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda given: None if given in (None, "None") else read(given)


def _change(options: Options, key: str) -> Any:
    default = DEFAULTS[key]
    read = to_flag if isinstance(default, bool) else to_integer if isinstance(default, int) else to_real
    return options.value(key, perhaps(read) if default is None else read, default)


def read_labels(path: str) -> dict[int, np.ndarray]:
    """The labels in a file of lines ID, labels and NAME. Raises ModelFileError for another line."""
    content = remote_files.content(path)
    found = {}
    for number, line in enumerate(content.decode().splitlines(), 1):
        fields = line.split("\t")
        try:
            found[int(fields[0])] = np.array([float(field) for field in fields[1:-1]], np.float32)
        except ValueError:
            raise ModelFileError(path, f"line {number} is {line[:80]!r}; expected an id, labels and the name of a "
                                 "file, with tabulators between") from None
    return found


def order_of(options: Options, records: Records, seed: int) -> Callable[[int], Sequence[int]]:
    """The places of a pass's records, by its number. Parts of a file without an index have as many bytes."""
    part, parts = part_of(options)
    count = len(records.offsets)
    if records.size < 0:
        each = -(-count // parts)
        places = range(min(part * each, count), min((part + 1) * each, count))
    else:
        each = -(-records.size // parts)
        each += -each % 4
        first, last = np.searchsorted(records.offsets, [part * each, (part + 1) * each])
        places = range(int(first), int(last))
    if not len(places):
        raise ArgumentError(f"{options.iterator}: {records.path} has no records in part {part} of {parts}")
    chunk = options.value("shuffle_chunk_size", to_whole, 0) * MEGABYTE
    chunk_seed = options.value("shuffle_chunk_seed", to_integer, 0)
    if not options.value("shuffle", to_flag, False):
        return lambda number: places
    offsets = np.array(records.offsets)[places.start:places.stop]
    chunks = offsets // chunk if chunk else np.zeros(len(places), np.int64)

    def shuffled(number: int) -> Sequence[int]:
        by_record = np.random.default_rng([seed % 2**32, number]).permutation(len(places))
        rank = np.random.default_rng([chunk_seed % 2**32, number, 1]).permutation(int(chunks.max()) + 1)
        order = by_record[np.argsort(rank[chunks[by_record]], kind="stable")]
        return (order + places.start).tolist()

    return shuffled


def _as_they_are(pixels: Array, _: Any) -> Array:
    return pixels


class Finish:
    """Makes a batch's array of its pixels, by one kernel: less the mean, times factors.

    plain: gives a loader of all images once, without that, of which a mean image is made.
    """

    def __init__(self, options: Options, shape: tuple[int, ...], dtype: str,
                 plain: Callable[[Callable[..., Array]], ImageLoader]):
        self._channels, self._dtype = shape[0], dtype
        self._mean, self._deviation = (
            np.array([options.value(f"{kind}_{name}", to_real, usual) for name in "rgb"[:shape[0]]], np.float32)
            for kind, usual in (("mean", 0.0), ("std", 1.0)))
        self._deviation[self._deviation == 0] = 1  # what ImageDetRecordIter has by default
        self._mean = self._mean.reshape(1, -1, 1, 1)
        self._scale = options.value("scale", to_real, 1.0)
        self._contrast = options.value("max_random_contrast", to_real, 0.0)
        self._illumination = options.value("max_random_illumination", to_real, 0.0)
        path = options.value("mean_img", to_path, None)
        if path is not None and dtype == "float32":
            self._mean = _mean_image(path, plain).reshape(1, *shape)
        data, names = symbol.var("data"), ["data"]
        if dtype == "float32":
            names += ["mean", "factor", "move"]
            data = symbol.broadcast_sub(symbol.cast(data, dtype="float32"), symbol.var("mean"))
            data = symbol.broadcast_add(symbol.broadcast_mul(data, symbol.var("factor")), symbol.var("move"))
        elif dtype == "int8":
            data = symbol.cast(symbol.clip(data, 0, 127), dtype="int8")
        self._kernel = CachedOp(data.graph, names, (), "images")

    def __call__(self, pixels: Array, draws: Sequence[Any]) -> Array:
        if self._dtype == "uint8":
            return pixels
        given = []
        if self._dtype == "float32":
            contrast = [1 + draw.uniform(-self._contrast, self._contrast) if self._contrast else 1.0 for draw in draws]
            move = [draw.uniform(-self._illumination, self._illumination) if self._illumination else 0.0
                    for draw in draws]
            factor = np.array(contrast, np.float32)[:, None] * np.float32(self._scale) / self._deviation
            given = [self._mean, factor.reshape(-1, self._channels, 1, 1),
                      (np.array(move, np.float32) * np.float32(self._scale)).reshape(-1, 1, 1, 1)]
        context = current_context().computing
        return self._kernel([pixels, *(Array.of(each, context=context) for each in given)], False)[0]


def _mean_image(path: str, plain: Callable[[Callable[..., Array]], ImageLoader]) -> np.ndarray:
    """The mean image in a file; it is made, and the file is written, when it is not there."""
    if remote_files.is_url(path) or os.path.exists(path):
        found = saving.load(path)
        arrays = list(found.values()) if isinstance(found, dict) else found
        if len(arrays) != 1:
            raise MXNetError(f"{path}: expected a mean image, which is one array, got {len(arrays)}")
        return arrays[0].asnumpy().astype(np.float32)
    loader, total, count = plain(_as_they_are), 0.0, 0
    while (batch := loader.next()) is not None:
        real = len(batch.numbers) - batch.pad
        total, count = total + batch.arrays[0].numpy()[:real].astype(np.float64).sum(0), count + real
    mean = np.asarray(total / count, np.float32)
    saving.save(path, {MEAN_NAME: array(mean)})
    return mean
