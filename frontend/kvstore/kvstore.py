"""The store of one process: a value for each key, sums of what several devices push, and an updater."""
from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mxc.compiler.error import (
    ArgumentError,
    ArgumentTypeError,
    AssertedError,
    FileAccessError,
    MXNetError,
    nearest,
)
from mxc.compiler.ops.storage import CSR
from mxc.kvstore.base import KVStoreBase
from mxc.kvstore.compression import TwoBit
from mxc.kvstore.sums import all_reduce, share, totals
from mxc.ndarray import NDArray
from mxc.optimizer import Updater, get_updater
from mxc.runtime import device_sums
from mxc.runtime.context import Context
from mxc.runtime.sparse_rows import copy_rows
from mxc.runtime.whole_file import replacing

Key = int | str


class KVStore(KVStoreBase):
    """Values by key, all keys integers or all strings. Made by `create`.

    handle: the kind of store, see `create`. Pushing sums the values of one key, from one device or several, and
    gives the sum to the updater, if there is one; else the sum becomes the key's value. Everything is queued: only code
    that reads an array waits. The priorities that MXNet takes change nothing here.
    """

    def __init__(self, handle: str):
        self.handle = handle
        self._values: dict[Key, NDArray] = {}
        self._updater: Callable[..., Any] | None = None
        self._compression: TwoBit | None = None

    def __repr__(self) -> str:
        return f"<KVStore {self.type}: {len(self._values)} keys>"

    @property
    def type(self) -> str:
        """The name of the kind of store."""
        return self.handle

    @property
    def rank(self) -> int:
        """The number of this worker: 0, the only one."""
        return 0

    @property
    def num_workers(self) -> int:
        """How many workers there are: 1."""
        return 1

    def is_capable(self, capability: str) -> bool:
        """Whether the store has a capability: it has KVStoreBase.OPTIMIZER. Raises ValueError for any other."""
        if capability.lower() == KVStoreBase.OPTIMIZER:
            return True
        raise ArgumentError(f"Unknown capability: {capability}")

    def is_group(self, devices: Sequence[Context]) -> bool:
        """Whether the arrays of these devices are summed by NCCL, for which many keys at a time are best."""
        return device_sums.is_there([device.gpu_number for device in devices])

    # -- values

    def init(self, key: Key | Sequence[Key], value: NDArray | Sequence[NDArray]) -> None:
        """Give a key, or each of several, its first value: a copy. Raises MXNetError for a key that has one."""
        for one, values in _grouped(key, value):
            if len(values) != 1:
                raise MXNetError(f"kvstore: init got {len(values)} values for the key {one!r}; it takes one")
            self._check_new(one, self._values)
            self._values[one] = values[0].copy()

    @staticmethod
    def _check_new(key: Key, known: Mapping[Key, Any]) -> None:
        """Raises MXNetError for a key that has a value, and for one of another kind than the others."""
        if key in known:
            raise MXNetError(f"kvstore: the key {key!r} has been initialized already: init can be called once for "
                             "each key; push a new value")
        other = next(iter(known), key)
        if isinstance(key, str) != isinstance(other, str):
            raise MXNetError(f"kvstore: the key {key!r} is {_kind(key)}, but the keys of this store, such as "
                             f"{other!r}, are not: use one kind of key")

    def push(self, key: Key | Sequence[Key], value: Any, priority: int = 0) -> None:
        """Sum the values of a key and let the updater change the key's value by that; without one the sum is the value.

        key: one, or a list with a value, or a list of values of several devices, for each.
        Raises MXNetError for a key without a value and for shapes that differ.
        """
        pushed = dict(self._pushed(key, value))
        if self._compression is not None:
            pushed = {one: self._compression.compressed(one, values) for one, values in pushed.items()}
        sums = dict(zip(pushed, totals([*pushed.values()]), strict=True))
        if self._updater is None:
            for one, value in sums.items():
                if value.stype == self._values[one].stype:
                    value.copyto(self._values[one])
                else:
                    self._values[one] = value.copy()
            return
        for one, value in sums.items():
            if value.context.gpu_number >= 0 > self._values[one].context.gpu_number:
                self._values[one] = self._values[one].as_in_context(value.context)  # a GPU's weights are updated there
            elif value.context.gpu_number != self._values[one].context.gpu_number:
                sums[one] = value.as_in_context(self._values[one].context)
        if isinstance(self._updater, Updater):  # It can update several weights at once.
            self._updater(list(sums), list(sums.values()), [self._values[one] for one in sums])
        else:
            for one, value in sums.items():
                self._updater(one, value, self._values[one])

    def _fitting(self, key: Key, arrays: list[NDArray], is_pushed: bool) -> list[NDArray]:
        """The arrays. Raises MXNetError for a key without a value, and where one has another shape than the value."""
        shape = self._shape(key)
        for each in arrays:
            if each.shape != shape:
                raise MXNetError(f"kvstore: the key {key!r} has a value of shape {shape}; " + (
                    f"what is pushed has {each.shape}" if is_pushed else
                    f"the array that it is to be pulled into has {each.shape}"))
        return arrays

    def _pushed(self, key: Any, value: Any) -> list[tuple[Key, list[NDArray]]]:
        """The arrays that are pushed to each key. Raises MXNetError as `_fitting`."""
        return [(one, self._fitting(one, values, is_pushed=True)) for one, values in _grouped(key, value)]

    def pull(self, key: Key | Sequence[Key], out: Any = None, priority: int = 0, ignore_sparse: bool = True) -> None:
        """Copy a key's value, or those of several, to arrays.

        out: an array, or a list of those of several devices; a list of these for a list of keys. ignore_sparse: leave
        row_sparse arrays as they are: `row_sparse_pull` is for them.
        Raises MXNetError for a key without a value and for shapes that differ.
        """
        if out is None:
            raise AssertedError("kvstore: pull needs out, the arrays that it writes to")
        grouped = [(one, self._fitting(one, targets, is_pushed=False)) for one, targets in _grouped(key, out)]
        share([self._values[one] for one, _ in grouped],
              [[target for target in targets if target.stype == "default" or not ignore_sparse]
               for _, targets in grouped])

    def pushpull(self, key: Key | Sequence[Key], value: Any, out: Any = None, priority: int = 0) -> None:
        """`push`, then `pull` into `out`; into `value` without it."""
        in_place = out is None or [*map(id, _flat([out]))] == [*map(id, _flat([value]))]
        if in_place and self._updater is None and self._compression is None and self._reduced(key, value):
            return
        self.push(key, value, priority)
        self.pull(key, value if out is None else out, priority)

    def _reduced(self, key: Any, value: Any) -> bool:
        """Have the sum of each key's arrays in all of them, where NCCL makes it; False where it does not."""
        pushed = self._pushed(key, value)
        if not all_reduce([values for _, values in pushed]):
            return False
        for one, values in pushed:
            self._values[one] = values[0].copy()
        return True

    def broadcast(self, key: Key | Sequence[Key], value: Any, out: Any, priority: int = 0) -> None:
        """`init`, then `pull` into `out`."""
        self.init(key, value)
        self.pull(key, out, priority)

    def row_sparse_pull(self, key: Key | Sequence[Key], out: Any = None, priority: int = 0,
                        row_ids: Any = None) -> None:
        """Pull some rows of values into `out`, row_sparse arrays that then store these rows. The other rows of dense
        ones become zero.

        row_ids: an array of the rows' numbers, or one for each array of `out`.
        Raises ValueError without row_ids and where they are not as many as `out`, IndexError for a row that does not
        exist.
        """
        for one, target, wanted in self._wanted_rows(key, out, row_ids):
            copy_rows(self._values[one]._array, wanted, target._array)

    def _wanted_rows(self, key: Key | Sequence[Key], out: Any, row_ids: Any) -> list[tuple[Key, NDArray, np.ndarray]]:
        """What `row_sparse_pull` asks for: a key, the array that gets its rows, and their numbers, which ascend."""
        if out is None or row_ids is None:
            raise ArgumentError("kvstore: row_sparse_pull needs out and row_ids")
        grouped = _grouped(key, out)
        count = sum(len(targets) for _, targets in grouped)
        rows = _flat(row_ids) if isinstance(row_ids, (list, tuple)) else [row_ids] * count
        if len(rows) == 1:
            rows = rows * count
        if len(rows) != count:
            raise ArgumentError(f"kvstore: {len(rows)} arrays of row_ids for {count} arrays in out")
        left, found = iter(rows), []
        for one, targets in grouped:
            shape = self._shape(one)
            for target in targets:
                wanted = np.unique(next(left).astype("int64").asnumpy())
                if wanted.size and not (wanted[0] >= 0 and wanted[-1] < shape[0]):
                    raise IndexError(f"kvstore: row_ids of the key {one!r} must be from 0 to {shape[0] - 1}")
                if target.shape != shape or target.stype == CSR:
                    raise MXNetError(f"kvstore: the key {one!r} has a value of shape {shape}; its rows go to a dense "
                                     f"or row_sparse array of that shape, got a {target.stype} one of {target.shape}")
                target._check_writable()
                found.append((one, target, wanted))
        return found

    def _shape(self, key: Key) -> tuple[int, ...]:
        return self._stored(key).shape

    def _stored(self, key: Key) -> NDArray:
        found = self._values.get(key)
        if found is None:
            hint = nearest(key, [k for k in self._values if isinstance(k, str)]) if isinstance(key, str) else ""
            raise MXNetError(f"kvstore: the key {key!r} has not been initialized: call init first{hint}")
        return found

    # -- updates

    def set_gradient_compression(self, compression_params: Mapping[str, Any]) -> None:
        """Compress what is pushed to 2 bits a number; what that leaves out is added to the next value of the key.

        compression_params: {"type": "2bit", "threshold": 0.5}. A number becomes threshold, 0 or -threshold.
        Raises MXNetError for other parameters, and in a store whose type has no "device" in it, as in MXNet.
        """
        if "device" not in self.type:
            raise MXNetError(f"Gradient compression is not supported for this type of kvstore: {self.type!r}; use "
                             "'device'")
        self._compression = TwoBit(compression_params)

    def set_optimizer(self, optimizer: Any) -> None:
        """Update the values by an optimizer when gradients are pushed. Raises TypeError for anything else."""
        self._set_updater(get_updater(optimizer))

    def _set_updater(self, updater: Callable[..., Any]) -> None:
        """Call `updater(key, pushed sum, value)` at each push; it changes the value in place."""
        if not callable(updater):
            raise ArgumentTypeError(f"kvstore: the updater must be a function, got {type(updater)}")
        self._updater = updater

    def save_optimizer_states(self, fname: str | os.PathLike[str], dump_optimizer: bool = False) -> None:
        """Write the optimizer's states, and with dump_optimizer the optimizer; the file appears whole or not at all.

        Raises MXNetError when no optimizer is set.
        """
        states = self._optimizer_updater("save").get_states(dump_optimizer)
        with replacing(fname) as file:
            file.write(states)

    def load_optimizer_states(self, fname: str | os.PathLike[str]) -> None:
        """Read what `save_optimizer_states` wrote, here or in MXNet. Raises MXNetError when no optimizer is set or the
        file cannot be read."""
        updater = self._optimizer_updater("load")
        try:
            states = Path(fname).read_bytes()
        except OSError as error:
            raise FileAccessError(str(fname), "read", error) from None
        updater.set_states(states)

    def _optimizer_updater(self, what: str) -> Any:
        if not isinstance(self._updater, Updater):
            raise _NoOptimizer(f"Cannot {what} states: this kvstore has no optimizer; call set_optimizer first")
        return self._updater


class _NoOptimizer(MXNetError, AssertionError):
    """States are asked for and there are none; an AssertionError too, as in MXNet."""


def _grouped(key: Any, value: Any) -> list[tuple[Key, list[NDArray]]]:
    """The arrays of each key. A key that occurs twice has those of both places."""
    if isinstance(key, (list, tuple)):
        if not isinstance(value, (list, tuple)) or len(value) != len(key):
            given = f"{len(value)} of them" if isinstance(value, (list, tuple)) else type(value)
            raise AssertedError(f"kvstore: {len(key)} keys need a list of as many values, got {given}")
        if len({isinstance(one, str) for one in key}) > 1:
            raise AssertedError(f"inconsistent types of keys detected: {list(key)}")
        pairs = list(zip(key, value, strict=True))
    else:
        pairs = [(key, value)]
    found: dict[Key, list[NDArray]] = {}
    for one, each in pairs:
        if not isinstance(one, (int, str)) or isinstance(one, bool):
            raise ArgumentTypeError(f"kvstore: a key is an integer or a string, got {one!r}")
        arrays = _flat(each) if isinstance(each, (list, tuple)) else [each]
        for array in arrays:
            if not isinstance(array, NDArray):
                raise ArgumentTypeError(f"kvstore: the key {one!r} needs NDArrays, got {type(array)}")
        if not arrays:
            raise ArgumentError(f"kvstore: no value was given for the key {one!r}")
        found.setdefault(one, []).extend(arrays)
    return list(found.items())


def _flat(values: Sequence[Any]) -> list[Any]:
    return [one for each in values for one in (_flat(each) if isinstance(each, (list, tuple)) else [each])]


def _kind(key: Key) -> str:
    return "a string" if isinstance(key, str) else "an integer"
