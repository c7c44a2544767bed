"""The sums of the arrays that several devices push, and the copies that they pull.

Where NCCL is installed, what lies on several GPUs is summed and copied by it, many arrays at once; elsewhere arrays are
copied to the first device and added up there.
"""
from __future__ import annotations

from collections.abc import Sequence

from mxc import ndarray as nd
from mxc.ndarray import NDArray
from mxc.ndarray.ndarray import wrapped
from mxc.runtime import device_sums


def total(values: Sequence[NDArray]) -> NDArray:
    """The sum of arrays of several devices, on the device of the first one; a single array itself."""
    return totals([values])[0]


def totals(groups: Sequence[Sequence[NDArray]]) -> list[NDArray]:
    """The sum of each of several groups of arrays, see `total`."""
    together = [group for group in groups if _fit(group)]
    sums = iter(device_sums.reduce([[each._array for each in group] for group in together]))
    return [wrapped(next(sums)) if _fit(group) else _added(group) for group in groups]


def all_reduce(groups: Sequence[Sequence[NDArray]]) -> bool:
    """Write the sum of each group over all arrays of the group. False, with nothing done, unless NCCL can for all."""
    if not all(map(_fit, groups)):
        return False
    device_sums.all_reduce([[each._array for each in group] for group in groups])
    return True


def share(sources: Sequence[NDArray], groups: Sequence[Sequence[NDArray]]) -> None:
    """Copy each of several arrays to those of its group."""
    together = []
    for source, targets in zip(sources, groups, strict=True):
        others = [target for target in targets if target.context != source.context]
        if _fit([source, *others]):
            together.append([source._array, *(target._array for target in others)])
            targets = [target for target in targets if target.context == source.context]
        for target in targets:
            source.copyto(target)
    device_sums.broadcast(together)


def _fit(group: Sequence[NDArray]) -> bool:
    return (len(group) > 1 and group[0].context.gpu_number >= 0 and all(each.stype == "default" for each in group)
            and device_sums.fits([each._array for each in group]))


def _added(values: Sequence[NDArray]) -> NDArray:
    if len(values) == 1:
        return values[0]
    where = values[0].context
    return nd.add_n(*(each if each.context.gpu_number == where.gpu_number else each.as_in_context(where)
                      for each in values))
