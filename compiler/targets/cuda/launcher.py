"""Launches kernels of a GPU in the order of a table's rows."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.targets.cuda.device import Launch, Stream

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
    table. graph: the launches as the device takes them at once, from the second of the `runs` on. changed: the numbers
    of rows that have other addresses than there."""

    memory: Allocator
    rows: list[LaunchRow]
    scratch: int
    integers: int = 0
    graph: Any = None
    runs: int = 0
    changed: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.names = [f"kernel {row.entry.name}" for row in self.rows]

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
        table.changed.add(row)

    def run(self, table: Table) -> None:
        """See Launcher. Several rows that run again are launched as one graph. Raises MXNetError, which names the
        kernel, where one cannot be launched; what fails later is raised where somebody waits (order.py)."""
        device = self.memory.device
        table.runs += 1
        with self.memory.order.work(Stream.COMPUTE, table.names):
            if table.runs > 1 and len(table.rows) > 1:
                device.begin(self._graph(table))
            else:
                for number in range(len(table.rows)):
                    self._launch(table, number)

    def _launch(self, table: Table, number: int) -> None:
        try:
            self.memory.device.launch(self._row(table, number))
        except MXNetError as error:
            raise MXNetError(f"{error}: {table.names[number]}") from error

    def _graph(self, table: Table) -> Any:
        """The table's graph, as its rows are now."""
        device = self.memory.device
        if table.graph is None:
            table.graph = device.graph([self._row(table, number) for number in range(len(table.rows))])
        else:
            for number in table.changed:
                device.change(table.graph, number, self._row(table, number))
        table.changed.clear()
        return table.graph

    def _row(self, table: Table, number: int) -> Launch:
        row = table.rows[number]
        return Launch(row.entry.function, row.blocks, self.threads, row.arguments(table.scratch), row.entry.name)

    def bound(self, table: Table, quick: bool = False) -> Callable[[], None]:
        return partial(self.run, table)
