"""Launches kernels of a GPU in the order of a table's rows."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mxc.compiler.error import MXNetError

if TYPE_CHECKING:
    from mxc.compiler.targets.cuda.allocator import Allocator

Row = tuple[int, Sequence[int], int]


@dataclass(frozen=True)
class Entry:
    """A kernel that is loaded. function: what `Device.launch` takes. buffers: dtypes; scratch: dtypes of the private
    arrays, whose sizes in bytes for all threads are the last of the launch's integers. name: for errors."""

    name: str
    function: Any
    buffers: tuple[str, ...]
    scratch: tuple[str, ...]


@dataclass
class LaunchRow:
    """pointers: addresses of the buffers. places: where scratch arrays begin. values: the address of the integers."""

    entry: Entry
    pointers: list[int]
    places: list[int]
    blocks: int
    values: int = 0

    def arguments(self, scratch: int) -> list[tuple[int, str]]:
        found = list(zip(self.pointers, self.entry.buffers, strict=True))
        return [*found, (self.values, "int64"), *((scratch + place, dtype) for place, dtype in
                                                  zip(self.places, self.entry.scratch, strict=True))]


@dataclass
class Table:
    """Rows in their order. The integers of all of them lie in one piece of the device's memory, which goes with the
    table."""

    memory: Allocator
    rows: list[LaunchRow]
    scratch: int
    integers: int = 0

    def __del__(self) -> None:
        if self.integers:
            self.memory.release(self.integers)


class GpuLauncher:
    """See `Launcher` of protocol.py. entries: the kernels that are loaded; their addresses are places in it, from 1 on.
    threads: of a block."""

    def __init__(self, memory: Allocator, threads: int):
        self.memory, self.threads = memory, threads
        self.entries: list[Entry] = []

    def table(self, rows: Sequence[Row], scratch: int = 0, stride: int = 0) -> Table:
        made, integers = list[LaunchRow](), list[int]()
        starts = []
        for address, arguments, blocks in rows:
            entry = self.entries[address - 1]
            count, sizes = len(entry.buffers), len(entry.scratch)
            numbers = [*arguments[count:]]
            ends = numbers[len(numbers) - sizes:]
            places = [sum(ends[:i]) for i in range(sizes)]
            made.append(LaunchRow(entry, list(arguments[:count]), places, blocks))
            starts.append(len(integers))
            integers += [*numbers, 0]  # an address of its own, where there are none
        table = Table(self.memory, made, scratch)
        if integers:
            table.integers = self.memory.allocate(8 * len(integers), "integers of kernels")
            self.memory.write(table.integers, np.array(integers, np.int64))
            for row, start in zip(made, starts, strict=True):
                row.values = table.integers + 8 * start
        return table

    def put(self, table: Table, row: int, argument: int, address: int) -> None:
        table.rows[row].pointers[argument] = address

    def run(self, table: Table) -> None:
        """See Launcher. Raises MXNetError, which names the kernel that failed, or the last ones that were begun when
        the device noticed."""
        device = self.memory.device
        for number, row in enumerate(table.rows):
            try:
                device.launch(row.entry.function, row.blocks, self.threads, row.arguments(table.scratch))
            except Exception as error:
                raise MXNetError(f"gpu({device.number}): kernel {number} ({row.entry.name}) failed: "
                                 f"{type(error).__name__}: {error}") from error
        try:
            device.wait()
        except MXNetError as error:
            names = ", ".join(row.entry.name for row in table.rows)
            raise MXNetError(f"{error}; it was running these kernels: {names}. MXC_DEBUG=2 runs them one by "
                             "one") from None

    def bound(self, table: Table, quick: bool = False) -> Callable[[], None]:
        return partial(self.run, table)
