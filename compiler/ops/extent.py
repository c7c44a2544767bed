"""How large an array can be, and what 0 and -1 mean in the shapes that parameters give."""
from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mxc.compiler.error import MXNetError

MAX_RANK = 32  # axes: MXNet has the same limit
MAX_SIZE = (1 << 60) - 1  # elements, of up to 8 bytes each: every byte count and offset is an int64

# Inference takes 0 for "unknown", so one of these numbers stands for an extent of 0 meanwhile. 720 makes them divisible
# by most strides and factors of parameters, and the large primes tell them apart from real extents.
FACTORS = 1_000_003, 1_000_033
STAND_INS = tuple(720 * factor for factor in FACTORS)


class _Zero(threading.local):
    stand_in = 0  # what an extent of 0 in a parameter becomes; 0 where such an extent means "not known"


_zero = _Zero()


@contextmanager
def zero_stands_as(stand_in: int) -> Iterator[None]:
    """In this scope 0 and () in parameters are extents like any other, and 0 becomes `stand_in`."""
    before, _zero.stand_in = _zero.stand_in, stand_in
    try:
        yield
    finally:
        _zero.stand_in = before


def extents(shape: Sequence[int]) -> tuple[int, ...]:
    """A parameter's extents in the terms of inference: 0 for -1, and for 0 what it stands as."""
    check_dims(shape)
    return tuple([dim if dim > 0 else 0 if dim else _zero.stand_in for dim in shape])


def counts(*numbers: int) -> tuple[int, ...]:
    """Like `extents`, for numbers that are never left open. Raises MXNetError for 0 where it means "not known"."""
    if 0 in numbers and not _zero.stand_in:
        raise MXNetError(f"a result of the extents {numbers} has no elements; graphs take such arrays in the scope "
                         "mx.np_shape() only")
    return extents(numbers)


def whole_shape(shape: Sequence[int] | None) -> tuple[int, ...] | None:
    """Like `extents`, for a parameter that is a whole shape: None for no shape, and for () where () means "none"."""
    return extents(shape) if shape or (shape is not None and _zero.stand_in) else None


def check_dims(shape: Sequence[int]) -> None:
    """Raise MXNetError for a dimension below -1, which stands for one that is not known."""
    if min(shape, default=0) < -1:
        raise MXNetError(f"expected dimensions from -1 on, got {tuple(shape)}")


def check_extent(shape: tuple[int, ...]) -> None:
    """Raise MXNetError for a shape that no array can have: too many dimensions or elements, or a negative one."""
    if len(shape) <= MAX_RANK and min(shape, default=1) > 0 and math.prod(shape) <= MAX_SIZE:
        return  # Nearly all shapes end here; the checks below take several times as long.
    if len(shape) > MAX_RANK:
        raise MXNetError(f"{len(shape)} dimensions; an array has at most {MAX_RANK}")
    if any(dim < 0 for dim in shape):
        raise MXNetError(f"the shape {shape} has a negative dimension")
    if math.prod(dim or 1 for dim in shape) > MAX_SIZE and not any(dim and not dim % s for dim in shape
                                                                   for s in STAND_INS):
        raise MXNetError(f"the shape {shape} has {math.prod(shape)} elements; an array has at most {MAX_SIZE}")
