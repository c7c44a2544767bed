"""The sum of the arrays that several devices push."""
from __future__ import annotations

from collections.abc import Sequence

from mxc import ndarray as nd
from mxc.ndarray import NDArray


def total(values: Sequence[NDArray]) -> NDArray:
    """The sum of arrays of several devices, on the device of the first one; a single array itself."""
    if len(values) == 1:
        return values[0]
    where = values[0].context
    return nd.add_n(*(each if each.context.gpu_number == where.gpu_number else each.as_in_context(where)
                      for each in values))
