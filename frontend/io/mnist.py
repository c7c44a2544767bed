"""The files of MNIST: images and labels as bytes."""
from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections.abc import Iterator

import numpy as np

from mxc.compiler.error import ModelFileError
from mxc.runtime import remote_files

_GZIP = b"\x1f\x8b"
_BYTES = 0x0800  # a file's magic number is this plus the number of its axes


def read(path: str, axes: int) -> np.ndarray:
    """The bytes of a file, packed or not, as an array of so many axes. Raises ModelFileError naming the file and what
    was expected."""
    content = remote_files.content(path)
    if content.startswith(_GZIP):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise ModelFileError(path, f"it begins as a gzip file and is none: {error}") from None
    head = 4 * (1 + axes)
    if len(content) < head:
        raise ModelFileError(path, f"expected {head} bytes that say what is in the file, got {len(content)}", 0)
    magic, *shape = struct.unpack_from(f">{1 + axes}I", content)
    if magic != _BYTES + axes:
        raise ModelFileError(path, f"expected the magic number 0x{_BYTES + axes:08x} of "
                                   f"{'images' if axes > 1 else 'labels'}, got 0x{magic:08x}", 0)
    if math.prod(shape) != len(content) - head:
        raise ModelFileError(path, f"expected {'x'.join(map(str, shape))} = {math.prod(shape)} bytes, as the file's "
                                   f"head says, got {len(content) - head}", head)
    return np.frombuffer(content, np.uint8, offset=head).reshape(shape)


def shuffled(count: int, seed: int) -> np.ndarray:
    """The order in which MNISTIter gives so many images: each place from the second on changes with one before it or
    itself, drawn by a Mersenne Twister as C++'s std::uniform_int_distribution draws from it."""
    order = list(range(count))
    for place, other in zip(range(1, count), _draws(count, seed), strict=False):
        order[place], order[other] = order[other], order[place]
    return np.array(order, np.int64)


def _draws(count: int, seed: int) -> Iterator[int]:
    """A number from 0 to k for each k from 1 to count - 1. Every result stands for equally many of the 2^32 numbers of
    the generator; where it gives one of the few that are left over, another is drawn."""
    generator = np.random.MT19937()
    generator._legacy_seeding(seed)  # type: ignore[attr-defined]  # C++ seeds its generator in this way.
    most = 2**32 - 1
    numbers = iter(generator.random_raw(count + 64).tolist())
    for results in range(2, count + 1):
        share = most // results
        while (number := next(numbers, None)) is None or number >= share * results:
            if number is None:
                numbers = iter(generator.random_raw(count).tolist())
        yield number // share
