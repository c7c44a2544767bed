"""How large an array can be."""
from __future__ import annotations

import math

from mxc.compiler.error import MXNetError

MAX_RANK = 32  # as in MXNet
MAX_SIZE = (1 << 60) - 1  # elements, of up to 8 bytes each: every byte count and offset is an int64


def check_extent(shape: tuple[int, ...]) -> None:
    """Raise MXNetError for a shape that no array can have: too many dimensions or elements, or a negative one."""
    if len(shape) > MAX_RANK:
        raise MXNetError(f"{len(shape)} dimensions; an array has at most {MAX_RANK}")
    if any(dim < 0 for dim in shape):
        raise MXNetError(f"the shape {shape} has a negative dimension")
    if math.prod(dim or 1 for dim in shape) > MAX_SIZE:
        raise MXNetError(f"the shape {shape} has {math.prod(shape)} elements; an array has at most {MAX_SIZE}")
