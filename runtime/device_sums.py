"""Sums and copies of arrays over several GPUs as work of the engine, by NCCL where it is installed."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import cast

from mxc.compiler import targets
from mxc.runtime import engine
from mxc.runtime.array import Array
from mxc.runtime.device_array import DeviceArray, computed

Numbers = tuple[int, ...]  # of GPUs


def is_there(numbers: Sequence[int]) -> bool:
    """Whether NCCL is there for GPUs of these numbers, -1 for another device: several, and all different."""
    return 1 < len(numbers) == len({*numbers}) and -1 not in numbers and not targets.gpus().collectives().fault()


def fits(arrays: Sequence[Array]) -> bool:
    """Whether these can be summed, or copied to each other, so: arrays of the same shape and dtype, one on each of
    several GPUs, where NCCL is there."""
    first = arrays[0]
    return (len(arrays) > 1 and first.dtype in targets.gpus().collectives().DTYPES and first.size > 0
            and all(isinstance(a, DeviceArray) and (a.shape, a.dtype) == (first.shape, first.dtype) for a in arrays)
            and is_there([array.context.gpu_number for array in arrays]))


def all_reduce(groups: Sequence[Sequence[Array]]) -> None:
    """Write the sums of each group, which `fits`, over all its arrays."""
    for numbers, those in _by_devices(groups).items():
        _push("all-reduce", numbers, those, those)


def reduce(groups: Sequence[Sequence[Array]]) -> list[Array]:
    """The sums of each group, which `fits`, as new arrays on the GPUs of the first ones."""
    sums = [Array.empty(group[0].shape, group[0].dtype, group[0].context) for group in groups]
    for numbers, those in _by_devices(groups, sums).items():
        _push("reduce", numbers, [group[:-1] for group in those], [group[-1:] for group in those])
    return sums


def broadcast(groups: Sequence[Sequence[Array]]) -> None:
    """Write the elements of the first array of each group, which `fits`, to its others."""
    for numbers, those in _by_devices(groups).items():
        _push("broadcast", numbers, those, those)


def _by_devices(groups: Sequence[Sequence[Array]],
                more: Sequence[Array] = ()) -> Mapping[Numbers, list[list[DeviceArray]]]:
    """The groups by the GPUs of their arrays; each with one of `more` behind it, if there are."""
    found: dict[Numbers, list[list[DeviceArray]]] = {}
    for i, group in enumerate(groups):
        numbers = tuple([array.context.gpu_number for array in group])
        found.setdefault(numbers, []).append(cast(list[DeviceArray], [*group, *more[i:i + 1]]))
    return found


def _push(kind: str, numbers: Numbers, sent: Sequence[Sequence[DeviceArray]],
          received: Sequence[Sequence[DeviceArray]]) -> None:
    written = [a for group in received for a in (group[1:] if kind == "broadcast" else group)]
    writes = [*dict.fromkeys(array.variable for array in written)]
    reads = {array.variable for group in sent for array in group}.difference(writes)
    engine.push(partial(_run, kind, numbers, sent, received, written), reads, writes, kind, small=False, brief=True)


def _run(kind: str, numbers: Numbers, sent: Sequence[Sequence[DeviceArray]],
         received: Sequence[Sequence[DeviceArray]], written: Sequence[DeviceArray]) -> None:
    for group in sent:
        for array in group:
            array.send(writes=False)
    for array in written:
        array.send(writes=True)
    shares = [([a.address for a in group], [a.address for a in whose] + [0] * (len(group) - len(whose)),
               group[0].size, group[0].dtype) for group, whose in zip(sent, received, strict=True)]
    try:
        targets.gpus().collective_group(numbers).begin(kind, shares)
    finally:  # a part may have begun
        changed, used = {*map(id, written)}, dict[int, list[tuple[DeviceArray, bool]]]()
        for group in (*sent, *received):
            for array in group:
                used.setdefault(array.context.gpu_number, []).append((array, id(array) in changed))
        for number, those in used.items():
            computed(targets.gpus().memory(number), those)
