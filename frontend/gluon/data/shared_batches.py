"""Batches of arrays that pass from a worker process to the program through shared memory.

A worker writes all arrays of a batch into one block of shared memory and sends its name with the arrays' places; the
program copies them into arrays of its own and lends the block to the worker again, for both have its pages by then: to
get them anew takes longer than most batches. So the pipe between them carries no data.
"""
from __future__ import annotations

import contextlib
from multiprocessing import shared_memory
from typing import Any, NamedTuple

import numpy as np

from mxc.ndarray import NDArray
from mxc.runtime.array import Array

ALIGNMENT = 64  # bytes, of a line of the cache: where each array begins


class _Place(NamedTuple):
    """Where an array lies in the block. is_nd: it was an NDArray, else NumPy's."""

    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype
    is_nd: bool


class Packed(NamedTuple):
    """A batch in shared memory. name: of the block, "" where there are no arrays. tree: the batch, with places."""

    name: str
    tree: Any


class Blocks:
    """The blocks that one side, a worker or the program, has opened, by name."""

    def __init__(self) -> None:
        self._open: dict[str, shared_memory.SharedMemory] = {}

    def pack(self, batch: Any, name: str, spare: str) -> Packed:
        """Put the arrays of a batch (nested lists, tuples and dicts) into a block. In the worker.

        spare: a block of an earlier batch that may be used if it is large enough, or "". name: of a new one; the
        program chose it, so that it can remove the block of a worker that died.
        """
        found: list[tuple[np.ndarray, int]] = []
        end = 0

        def place(value: Any) -> Any:
            nonlocal end
            if isinstance(value, (NDArray, np.ndarray)) and np.dtype(value.dtype).kind != "O":
                memory = np.ascontiguousarray(value.asnumpy() if isinstance(value, NDArray) else value)
                found.append((memory, end))
                made = _Place(end, value.shape, memory.dtype, isinstance(value, NDArray))
                end += -(-memory.nbytes // ALIGNMENT) * ALIGNMENT
                return made
            if isinstance(value, dict):
                return {key: place(each) for key, each in value.items()}
            if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
                return type(value)([place(each) for each in value])
            return value

        tree = place(batch)
        if not end:
            return Packed("", _filled(tree, b""))
        if spare and self._open[spare].size >= end:
            name = spare
        else:
            self._open[name] = shared_memory.SharedMemory(name, create=True, size=end)
            if spare:
                self._open.pop(spare).close()  # the program removes it
        for memory, offset in found:
            np.ndarray(memory.shape, memory.dtype, self._open[name].buf, offset)[...] = memory
        return Packed(name, tree)

    def unpack(self, packed: Packed) -> Any:
        """The batch, with arrays of the program's own. Raises FileNotFoundError for a block that was removed."""
        if not packed.name:
            return packed.tree
        if packed.name not in self._open:
            self._open[packed.name] = shared_memory.SharedMemory(packed.name)
        return _filled(packed.tree, self._open[packed.name].buf)

    def remove(self, name: str) -> None:
        """Remove a block, if there is one of that name."""
        if name:
            with contextlib.suppress(FileNotFoundError):
                try:
                    block = self._open.pop(name, None) or shared_memory.SharedMemory(name)
                except ValueError:  # it has no bytes: its worker died after making it and before giving it a size
                    _remove_empty(name)
                else:
                    block.close()
                    block.unlink()


def _remove_empty(name: str) -> None:
    """Remove a block of no bytes, which SharedMemory does not open."""
    import _posixshmem  # what SharedMemory.unlink calls; Windows has none of it, and no blocks without a process

    _posixshmem.shm_unlink(f"/{name}")


def _filled(tree: Any, memory: Any) -> Any:
    if isinstance(tree, _Place):
        values = np.ndarray(tree.shape, tree.dtype, memory, tree.offset) if memory else np.empty(tree.shape, tree.dtype)
        return NDArray(Array.of(values)) if tree.is_nd else values.copy()
    if isinstance(tree, dict):
        return {key: _filled(each, memory) for key, each in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)([_filled(each, memory) for each in tree])
    return tree
