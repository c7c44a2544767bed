"""The state behind `mx.random`: for each device a seed, and how many draws were made since it was set.

Random operators are counter-based: their numbers follow from (seed, offset, index), so the state is two integers. Each
run of an executor or of an operator takes an offset of its own.
"""
from __future__ import annotations

from mxc.compiler.plan import OFFSETS_PER_RUN
from mxc.compiler.system.forks import Lock
from mxc.runtime.context import Context, cpu

DEVICES = 1 << 15  # devices whose sequences one seed keeps apart, by the upper bits of the offset, which has 63


class _State:
    """common: the seed of devices that were not seeded alone. devices: seed and offset of each device in use."""

    def __init__(self) -> None:
        self.lock, self.common = Lock(), 0
        self.devices: dict[Context, tuple[int, int]] = {}


_state = _State()


def seed(number: int, context: Context | None = None) -> None:
    """Start the sequence of that number, of which 64 bits count, on one device or on all (None).

    On all of them each device has a sequence of its own, cpu(0) the one that it has when it is seeded alone; seeded
    alone, every device has the same.
    """
    number = (int(number) + 2**63) % 2**64 - 2**63  # an int64, as kernels read it
    with _state.lock:
        if context is None:
            _state.common = number
            _state.devices.clear()
        else:
            _state.devices[context] = number, 0


def take(context: Context | None = None) -> tuple[int, int]:
    """(seed, offset) for one run on a device, cpu(0) where none is named."""
    device = context or cpu()
    with _state.lock:
        number, offset = _state.devices.get(device) or (_state.common, _first_offset(device))
        _state.devices[device] = number, offset + OFFSETS_PER_RUN
        return number, offset


def _first_offset(device: Context) -> int:
    position = (device.device_typeid - 1) * 4096 + device.device_id
    return position % DEVICES << 48
