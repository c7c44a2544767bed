"""The store of several processes: values are on servers, which sum what workers push and update by an optimizer."""
from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mxc.compiler.error import ArgumentTypeError, AssertedError, FileAccessError, MXNetError
from mxc.compiler.ops.storage import CSR, DEFAULT
from mxc.kvstore import rows
from mxc.kvstore.compression import TwoBit
from mxc.kvstore.exchange import Item
from mxc.kvstore.group import joined
from mxc.kvstore.kvstore import KVStore, _grouped
from mxc.kvstore.optimizer_data import described
from mxc.kvstore.parts import Key, Layout, Spread, messages, needs_whole
from mxc.kvstore.sums import total
from mxc.ndarray import NDArray
from mxc.optimizer import saved_states
from mxc.runtime import engine
from mxc.runtime.context import Context
from mxc.runtime.whole_file import replacing

FOLLOWED = ("lr", "rescale_grad", "wd", "clip_gradient")  # numbers of worker 0's optimizer that servers follow


class DistKVStore(KVStore):
    """See KVStore. Each worker makes one, and all workers make theirs in the same order.

    handle: "dist_sync" and its like, in which a value changes when all workers have pushed, or "dist_async", in which
    each push changes it. Errors of servers and other workers are raised where pulled arrays are waited for, and by the
    next call.
    """

    def __init__(self, handle: str):
        super().__init__(handle)
        self._group = joined()
        self._number, self._group.stores = self._group.stores, self._group.stores + 1
        self._layouts: dict[Key, Layout] = {}
        self._rounds: dict[Key, int] = {}
        self._spread = Spread(len(self._group.servers))
        self._optimizer: Any = None
        self._known: dict[str, Any] = {}  # the numbers FOLLOWED of the last push
        self._group.call(*[s.open.remote(self._number, self.is_sync) for s in self._group.servers])

    def __repr__(self) -> str:
        return f"<KVStore {self.type}: {len(self._layouts)} keys, worker {self.rank} of {self.num_workers}>"

    def is_group(self, devices: Sequence[Context]) -> bool:
        """False: values go to servers one by one."""
        return False

    @property
    def is_sync(self) -> bool:
        """Whether a value changes when all workers have pushed."""
        return "async" not in self.type

    @property
    def rank(self) -> int:
        """The number of this worker."""
        return self._group.rank

    @property
    def num_workers(self) -> int:
        """How many workers there are."""
        return self._group.workers

    def barrier(self) -> None:
        """Return when all workers have come here."""
        self._group.exchange.check()
        self._group.barrier()

    _barrier = barrier  # MXNet's name

    # -- values

    def init(self, key: Key | Sequence[Key], value: NDArray | Sequence[NDArray]) -> None:
        """Give a key, or each of several, the value that worker 0 has; all workers call it, for the same keys in the
        same order. Raises MXNetError for a key that has a value, for another key, shape or dtype than worker 0's, and
        for bfloat16.
        """
        self._check_outside()
        for one, values in _grouped(key, value):
            if len(values) != 1:
                raise MXNetError(f"kvstore: init got {len(values)} values for the key {one!r}; it takes one")
            self._check_new(one, self._layouts)
            if values[0]._array.dtype == "bfloat16":
                raise MXNetError(f"kvstore: the key {one!r} is of bfloat16, which servers do not sum; take float32")
            first = rows.value_of(values[0])
            is_whole = self._optimizer is not None and needs_whole(self._optimizer)
            wanted = self._spread.layout(one, first.shape, rows.dtype_of(first).name, is_whole)
            layout, is_new = self._group.call(self._group.servers[0].declare.remote(
                self._number, self.rank, len(self._layouts), wanted))
            if is_new:
                self._group.call(*[
                    self._group.servers[server].init.remote(
                        self._number, {part.name: rows.piece(first, layout, part) for part in those})
                    for server, those in messages(layout.parts).items()])
            self._layouts[one], self._rounds[one] = layout, 0

    def push(self, key: Key | Sequence[Key], value: Any, priority: int = 0) -> None:
        """Sum the values of a key over devices and workers, and have servers change the key's value by that.

        key: one, or a list with a value, or a list of values of several devices, for each. priority: the highest is
        sent first of what waits to be sent. Raises MXNetError for a key without a value, and for another shape or
        dtype."""
        self._submit([(one, total(self._fitting(one, values, is_pushed=True)), [], None)
                      for one, values in _grouped(key, value)], priority)

    def pull(self, key: Key | Sequence[Key], out: Any = None, priority: int = 0, ignore_sparse: bool = True) -> None:
        """See KVStore; the values have in them what this worker has pushed, in a synchronous store what all have."""
        if out is None:
            raise AssertedError("kvstore: pull needs out, the arrays that it writes to")
        wanted = [(one, self._written(one, outs, ignore_sparse)) for one, outs in _grouped(key, out)]
        self._submit([(one, None, outs, None) for one, outs in wanted if outs], priority)

    def pushpull(self, key: Key | Sequence[Key], value: Any, out: Any = None, priority: int = 0) -> None:
        """`push`, then `pull` into `out`; into `value` without it. Both are one message."""
        pushed, pulled = _grouped(key, value), dict(_grouped(key, value if out is None else out))
        self._submit([(one, total(self._fitting(one, values, is_pushed=True)), self._written(one, pulled[one]), None)
                      for one, values in pushed], priority)

    def row_sparse_pull(self, key: Key | Sequence[Key], out: Any = None, priority: int = 0,
                        row_ids: Any = None) -> None:
        """See KVStore. Only these rows are sent."""
        self._submit([(one, None, [target], numbers) for one, target, numbers in
                      self._wanted_rows(key, out, row_ids)], priority)

    def _shape(self, key: Key) -> tuple[int, ...]:
        return self._layout(key).shape

    def _layout(self, key: Key) -> Layout:
        found = self._layouts.get(key)
        return found if found is not None else self._stored(key)  # type: ignore[return-value]  # which raises

    def _fitting(self, key: Key, arrays: list[NDArray], is_pushed: bool) -> list[NDArray]:
        """See KVStore; what is pushed also has the value's dtype, and is no csr array."""
        layout = self._layout(key)
        for each in super()._fitting(key, arrays, is_pushed):
            if is_pushed and each._array.dtype != layout.dtype:
                raise MXNetError(f"kvstore: the key {key!r} has a value of dtype {layout.dtype}; what is pushed has "
                                 f"{each._array.dtype}")
            if is_pushed and self._compression is not None and not layout.dtype.startswith("float"):
                raise MXNetError("kvstore: gradient compression is for floating point, and the value of the key "
                                 f"{key!r} is {layout.dtype}")
            if is_pushed and each.stype == CSR:
                raise MXNetError(f"kvstore: a csr array is pushed to the key {key!r}; dense and row_sparse ones can be")
        return arrays

    def _written(self, key: Key, outs: list[NDArray], ignore_sparse: bool = True) -> list[NDArray]:
        """The arrays that a pull writes."""
        return [out for out in self._fitting(key, outs, is_pushed=False)
                if out.stype == DEFAULT or not ignore_sparse]

    def _submit(self, wanted: Sequence[tuple[Key, NDArray | None, list[NDArray], np.ndarray | None]],
                priority: int) -> None:
        """wanted: a key, what is pushed, where its value goes, and the numbers of rows if not all are pulled."""
        self._check_outside()
        try:
            priority = operator.index(priority)
        except TypeError:
            raise ArgumentTypeError(f"kvstore: the priority must be a whole number, got {priority!r}") from None
        settings = self._settings() if any(source is not None for _, source, *_ in wanted) else None
        items = []
        for key, source, outs, numbers in wanted:
            self._rounds[key] += source is not None
            number = self._rounds[key]
            items.append(Item(self._number, key, self._layouts[key], None if source is None else source._array,
                              [out._array for out in outs], number if source is not None else 0, number if outs else -1,
                              priority, self._compression, settings, numbers))
        self._group.exchange.submit(items)

    def _check_outside(self) -> None:
        """Raises MXNetError after a failure, and inside of an operator."""
        self._group.exchange.check()
        if engine.is_inside():
            raise MXNetError(f"a kvstore of the type {self.type!r} cannot be used inside of an operator: an operator "
                             "would wait for other machines while this one's arrays wait for it")

    # -- updates

    def set_gradient_compression(self, compression_params: Mapping[str, Any]) -> None:
        """See KVStore: what is sent to servers is compressed."""
        self._compression = TwoBit(compression_params)

    def set_optimizer(self, optimizer: Any) -> None:
        """Have servers update values by an optimizer when gradients are pushed. All workers call it; servers get worker
        0's, as its name and settings. They follow when its learning rate, `rescale_grad`, `wd` or `clip_gradient`
        changes later.

        Raises TypeError for what is no optimizer, ValueError for one of a program's own class, MXNetError where an
        optimizer that needs whole arrays comes after values that are in parts.
        """
        self._check_outside()
        data = described(optimizer)
        split = next((key for key, each in self._layouts.items() if len(each.parts) > 1), None)
        if split is not None and needs_whole(optimizer):
            raise MXNetError(f"kvstore: {type(optimizer).__name__} needs whole arrays, and {split!r} is in parts on "
                             "servers: call set_optimizer before init")
        self._group.exchange.settle()
        if self.rank == 0:
            self._group.call(*[s.set_optimizer.remote(self._number, data) for s in self._group.servers])
        self._optimizer = optimizer
        self._known = {name: getattr(optimizer, name) for name in FOLLOWED}
        self._group.barrier()

    def _settings(self) -> dict[str, Any] | None:
        """The numbers that servers follow, in worker 0. Each push has them with it, for pushes overtake each other."""
        if self.rank or self._optimizer is None:
            return None
        now = {name: getattr(self._optimizer, name) for name in FOLLOWED}
        if now != self._known:  # else the same object, which is sent once in a message
            self._known = now
        return self._known

    def _set_updater(self, updater: Callable[..., Any]) -> None:
        """Take a function for updates in this process, of which there are none: servers update. As in MXNet it changes
        nothing. Raises TypeError for what is no function."""
        if not callable(updater):
            raise ArgumentTypeError(f"kvstore: the updater must be a function, got {type(updater)}")

    def save_optimizer_states(self, fname: str | os.PathLike[str], dump_optimizer: bool = False) -> None:
        """See KVStore. The states of all servers, as if there were one: one worker is enough to call it."""
        self._group.exchange.settle()
        found = self._group.call(*[s.states.remote(self._number) for s in self._group.servers])
        parts: dict[tuple[Key, int], Any] = {}
        optimizer: Any = None
        for each in found if isinstance(found, list) else [found]:
            pairs, optimizer = saved_states.read(each)
            parts.update({(name[0], name[1]): state for name, state in pairs})
        states = {key: _joined([parts[p.name] for p in layout.parts], layout) for key, layout in self._layouts.items()
                  if layout.parts[0].name in parts}
        for kind in (optimizer.lr_mult, optimizer.wd_mult, optimizer.idx2name, optimizer._all_index_update_counts[0]):
            for name in [name for name in kind if isinstance(name, tuple)]:
                kind[name[0]] = kind.pop(name)
        with replacing(fname) as file:
            file.write(saved_states.write((states, optimizer) if dump_optimizer else states))

    def load_optimizer_states(self, fname: str | os.PathLike[str]) -> None:
        """See KVStore. All workers call it, with files of the same content; the values must have been initialized."""
        self._group.exchange.settle()
        try:
            found = saved_states.read(Path(fname).read_bytes())
        except OSError as error:
            raise FileAccessError(str(fname), "read", error) from None
        states, optimizer = found if isinstance(found, tuple) else (found, None)
        if self.rank == 0:
            by_server: list[list[Any]] = [[] for _ in self._group.servers]
            for key, state in states.items():
                layout = self._layout(key)
                for part in layout.parts:
                    by_server[part.server].append([list(part.name), _piece(state, layout, part)])
            self._group.call(*[server.set_states.remote(self._number, saved_states.write((pairs, optimizer)))
                               for server, pairs in zip(self._group.servers, by_server, strict=True)])
        self._group.barrier()


def _joined(states: Sequence[Any], layout: Layout) -> Any:
    """The state of a value, of those of its parts."""
    first = states[0]
    if len(states) == 1 or not isinstance(first, (NDArray, tuple, list)):
        return first
    if isinstance(first, NDArray):
        return rows.held(np.concatenate([s.asnumpy() for s in states]), first.stype)
    return type(first)([_joined(each, layout) for each in zip(*states, strict=True)])


def _piece(state: Any, layout: Layout, part: Any) -> Any:
    """A part's state, of a value's."""
    if isinstance(state, NDArray) and state.shape == layout.shape:
        return rows.held(rows.piece(rows.value_of(state), layout, part), state.stype)
    return type(state)([_piece(each, layout, part) for each in state]) if isinstance(state, (list, tuple)) else state
