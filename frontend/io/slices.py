"""Which rows of a batch each device works on."""
from __future__ import annotations

from collections.abc import Sequence

from mxc.compiler.error import ArgumentError


def _split_input_slice(batch_size: int, work_load_list: Sequence[float]) -> list[slice]:
    """The rows of a batch that each device gets, in proportion to its load; the last one gets what rounding leaves.

    Raises ValueError when a device gets none.
    """
    whole = sum(work_load_list)
    counts = [round(load * batch_size / whole) for load in work_load_list]
    if sum(counts) < batch_size:
        counts[-1] += batch_size - sum(counts)
    slices, end = [], 0
    for count in counts:
        begin, end = end, min(end + count, batch_size)
        if begin >= end:
            raise ArgumentError(f"Too many slices. Some splits are empty: {batch_size} rows for {len(counts)} devices "
                                f"of the loads {list(work_load_list)}")
        slices.append(slice(begin, end))
    return slices
