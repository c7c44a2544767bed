"""Launches kernels of a GPU in the order of a table's rows."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.targets.cuda.device import Launch, LibraryCall, Stream
from mxc.compiler.targets.cuda.nvidia.workspace import ALIGNMENT

if TYPE_CHECKING:
    from mxc.compiler.kernel.ir import CallKernel
    from mxc.compiler.targets.cuda.allocator import Allocator
    from mxc.compiler.targets.cuda.nvidia.choice import Libraries

Row = tuple[int, Sequence[int], int]


@dataclass(frozen=True)
class Entry:
    """A kernel that is loaded. function: what `Device.launch` takes. buffers: dtypes; scratch: dtypes of the private
    arrays, whose sizes in bytes for all threads are the last of the launch's integers. name: for errors. kernel: what
    the code is of, where a library of NVIDIA's may know it too."""

    name: str
    function: Any
    buffers: tuple[str, ...]
    scratch: tuple[str, ...]
    kernel: CallKernel | None = None


@dataclass
class LaunchRow:
    """pointers: addresses of the buffers. places: where scratch arrays begin. values: the address of the integers.
    call: what a library does in the kernel's place, where addresses allow it."""

    entry: Entry
    pointers: list[int]
    places: list[int]
    blocks: int
    values: int = 0
    call: LibraryCall | None = None

    @property
    def function(self) -> Any:
        """The library's call, or the kernel."""
        return self.call if self.call is not None and self.call.takes(self.pointers, ALIGNMENT) else self.entry.function

    def arguments(self, scratch: int, pointers: Sequence[int] | None = None) -> list[tuple[int, str]]:
        """All arguments. pointers: in the place of its own."""
        found = list(zip(pointers or self.pointers, self.entry.buffers, strict=True))
        return [*found, (self.values, "int64"), *((scratch + place, dtype) for place, dtype in
                                                  zip(self.places, self.entry.scratch, strict=True))]


@dataclass
class Table:
    """Rows in their order. The integers of all of them lie in one piece of the device's memory, which goes with the
    table. graph: the launches as the device takes them at once, from the second of the `runs` on, with these
    `functions`. changed: the numbers of rows that have other addresses than there. apart: there can be no graph."""

    memory: Allocator
    rows: list[LaunchRow]
    scratch: int
    integers: int = 0
    graph: Any = None
    functions: list[Any] = field(default_factory=list)
    runs: int = 0
    changed: set[int] = field(default_factory=set)
    apart: bool = False

    def __post_init__(self) -> None:
        self.names = [f"kernel {row.entry.name}" for row in self.rows]

    def __del__(self) -> None:
        if self.integers:
            self.memory.release(self.integers)


class GpuLauncher:
    """See `Launcher` of protocol.py. entries: the kernels that are loaded; their addresses are places in it, from 1 on.
    threads: of a block. libraries: NVIDIA's, which may take the place of kernels."""

    def __init__(self, memory: Allocator, threads: int, libraries: Libraries):
        self.memory, self.threads, self.libraries = memory, threads, libraries
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
        for row, (_, arguments, _) in zip(made, rows, strict=True):
            if row.entry.kernel is not None:
                row.call = self.libraries.taken(row.entry.kernel, arguments[len(row.entry.buffers):],
                                                partial(self._elsewhere, row, scratch))
        return table

    def _elsewhere(self, row: LaunchRow, scratch: int, pointers: Sequence[int]) -> Launch:
        """The launch of a row's kernel with other buffers."""
        return Launch(row.entry.function, row.blocks, self.threads, row.arguments(scratch, pointers))

    def put(self, table: Table, row: int, argument: int, address: int) -> None:
        table.rows[row].pointers[argument] = address
        table.changed.add(row)

    def run(self, table: Table) -> None:
        """See Launcher. Several rows that run again are launched as one graph. Raises MXNetError, which names the
        kernel, where one cannot be launched; what fails later is raised where somebody waits (order.py)."""
        device = self.memory.device
        table.runs += 1
        with self.memory.order.work(Stream.COMPUTE, table.names):
            graph = self._graph(table) if table.runs > 1 and len(table.rows) > 1 and not table.apart else None
            if graph is not None:
                device.begin(graph)
            else:
                for number in range(len(table.rows)):
                    self._launch(table, number)

    def _launch(self, table: Table, number: int) -> None:
        try:
            self.memory.device.launch(self._row(table, number))
        except MXNetError as error:
            raise MXNetError(f"{error}: {table.names[number]}") from error

    def _graph(self, table: Table) -> Any:
        """The table's graph, as its rows are now; None where a library's call cannot be a part of one."""
        if table.graph is not None and not self._changed(table):
            table.graph = None
        if table.graph is None:
            launches = [self._row(table, number) for number in range(len(table.rows))]
            try:
                table.graph = self.memory.device.graph(launches)
            except MXNetError as error:
                if not any(isinstance(launch.function, LibraryCall) for launch in launches):
                    raise
                table.apart = True
                warnings.warn(f"a plan's kernels are launched one by one: {error}", RuntimeWarning, stacklevel=2)
                return None
            table.functions = [launch.function for launch in launches]
        table.changed.clear()
        return table.graph

    def _changed(self, table: Table) -> bool:
        """Puts the addresses of changed rows into the table's graph; False where it has to be made anew: one keeps what
        it launches, and of a library's call the driver may not take a change."""
        changed = {number: self._row(table, number) for number in table.changed}
        if any(launch.function is not table.functions[number] for number, launch in changed.items()):
            return False
        for number, launch in changed.items():
            try:
                self.memory.device.change(table.graph, number, launch)
            except MXNetError:
                if not isinstance(launch.function, LibraryCall):
                    raise
                return False
        return True

    def _row(self, table: Table, number: int) -> Launch:
        row = table.rows[number]
        return Launch(row.function, row.blocks, self.threads, row.arguments(table.scratch), row.entry.name)

    def bound(self, table: Table, quick: bool = False) -> Callable[[], None]:
        return partial(self.run, table)
