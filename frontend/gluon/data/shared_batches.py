"""Batches of arrays that pass from a worker process to the program through shared memory.

A worker writes all arrays of a batch into one block of shared memory and sends its name with the arrays' places; the
program copies them into arrays of its own and removes the block. So the pipe between them carries no data.
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
    dtype: str
    is_nd: bool


class Packed(NamedTuple):
    """A batch in shared memory. name: of the block, "" where there are no arrays. tree: the batch, with places."""

    name: str
    tree: Any


def pack(batch: Any, name: str) -> Packed:
    """Put the arrays of a batch (nested lists, tuples and dicts) into a block of shared memory. In the worker.

    name: of the block; the program chose it, so it can remove the block of a worker that died.
    """
    found: list[tuple[np.ndarray, int]] = []
    end = 0

    def place(value: Any) -> Any:
        nonlocal end
        if isinstance(value, (NDArray, np.ndarray)) and np.dtype(value.dtype).kind != "O":
            memory = np.ascontiguousarray(value.asnumpy() if isinstance(value, NDArray) else value)
            found.append((memory, end))
            made = _Place(end, value.shape, memory.dtype.str, isinstance(value, NDArray))
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
    block = shared_memory.SharedMemory(name, create=True, size=end)
    try:
        for memory, offset in found:
            np.ndarray(memory.shape, memory.dtype, block.buf, offset)[...] = memory
    finally:
        block.close()
    return Packed(name, tree)


def unpack(packed: Packed) -> Any:
    """The batch, with arrays of the program's own; the block is gone afterwards."""
    if not packed.name:
        return packed.tree
    block = shared_memory.SharedMemory(packed.name)
    try:
        return _filled(packed.tree, block.buf)
    finally:
        block.close()
        block.unlink()


def discard(name: str) -> None:
    """Remove the block of a batch that nobody wants, if there is one."""
    if name:
        with contextlib.suppress(FileNotFoundError):
            block = shared_memory.SharedMemory(name)
            block.close()
            block.unlink()


def _filled(tree: Any, memory: Any) -> Any:
    if isinstance(tree, _Place):
        values = np.ndarray(tree.shape, np.dtype(tree.dtype), memory, tree.offset) if memory else np.empty(
            tree.shape, np.dtype(tree.dtype))
        return NDArray(Array.of(values)) if tree.is_nd else values.copy()
    if isinstance(tree, dict):
        return {key: _filled(each, memory) for key, each in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)([_filled(each, memory) for each in tree])
    return tree
