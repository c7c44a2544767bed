"""The store of several processes without servers: workers sum their values by Ray's collectives.

Ray's collectives are for its actors, so each worker has one beside it, on the same machine: values go there and back
through the memory that processes of a machine share. Sums are made in the order in which the program asks for them,
which is the same in all workers.
"""
from __future__ import annotations

import atexit
import importlib.util
import zlib
from collections.abc import Sequence
from functools import partial
from itertools import takewhile
from typing import Any

import numpy as np

from mxc.compiler.error import ArgumentError, MXNetError
from mxc.kvstore import cluster, group
from mxc.kvstore.base import KVStoreBase
from mxc.kvstore.exchange import Exchange, Item
from mxc.kvstore.kvstore import _grouped
from mxc.kvstore.parts import Key, Layout, Part
from mxc.kvstore.sums import total
from mxc.ndarray import NDArray
from mxc.runtime import engine

BACKEND = "gloo"
PACKAGE = "torch"  # in which Ray finds it
SECONDS = 120  # until all workers are there

_stores = 0  # that this process has made


class Reducer:
    """A worker's member of the group of collectives; made an actor, whose calls run one after the other."""

    def join(self, workers: int, rank: int, name: str) -> None:
        """Wait for the others. Raises MXNetError where they do not come."""
        from ray.util import collective
        from ray.util.collective import types

        self.collective, self.types, self.name = collective, types, name
        self._tried(lambda: collective.init_collective_group(workers, rank, types.Backend(BACKEND), name,
                                                             SECONDS * 1000))

    def _tried(self, call: Any) -> None:
        try:
            call()
        except Exception as error:
            text = " ".join(str(error).split())[-300:]
            raise MXNetError("kvstore: the workers cannot sum any more: one of them has been killed, has failed or has "
                             f"ended ({type(error).__name__}: {text})") from None

    def exchange(self, store: int, rank: int, message: int, pushed: Any, values: Sequence[np.ndarray],
                 pulled: Sequence[Any], settings: Any, is_kept: bool) -> tuple[list[np.ndarray], list[Any]]:
        """The sums of these values over all workers, as a server's answer. Messages of other workers may have more or
        fewer values: as many are summed at once as all have."""
        sums: list[np.ndarray] = []
        while len(sums) < len(values):
            together = _of_one_dtype(values[len(sums):])
            together = together[:self._least(len(together))]
            names = [name for name, _ in pushed[len(sums):len(sums) + len(together)]]
            asked = [(name, value.shape, value.dtype.name) for name, value in zip(names, together, strict=True)]
            digest = zlib.crc32(repr(asked).encode())
            if self._least(digest) != -self._least(-digest):
                raise MXNetError("kvstore: the workers ask for the sums of different arrays, this one for those of "
                                 + ", ".join(f"{name[0]!r} ({dtype} {shape})" for name, shape, dtype in asked)[:300])
            memory = np.concatenate([value.reshape(-1) for value in together])
            self._tried(partial(self.collective.allreduce, memory, self.name))
            ends = np.cumsum([value.size for value in together])
            sums += [part.reshape(value.shape) for part, value in zip(np.split(memory, ends[:-1]), together,
                                                                      strict=True)]
        return sums, []

    def _least(self, number: int) -> int:
        """The least of the workers' numbers."""
        memory = np.array([number], np.int64)
        self._tried(partial(self.collective.allreduce, memory, self.name, self.types.ReduceOp.MIN))
        return int(memory[0])

    def broadcast(self, value: np.ndarray) -> np.ndarray:
        """The value that worker 0 has."""
        memory = np.array(value).reshape(-1)  # what came is not ours to write
        self._tried(lambda: self.collective.broadcast(memory, 0, self.name))
        return memory.reshape(value.shape)

    def barrier(self) -> None:
        """Return when all workers have come here."""
        self._tried(lambda: self.collective.barrier(self.name))


def _of_one_dtype(values: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The first values, up to one of another dtype."""
    return list(takewhile(lambda value: value.dtype == values[0].dtype, values))


class AllReduce(KVStoreBase):
    """Sums over all workers, which update their weights themselves. Each worker makes one, and all workers call it in
    the same order.

    Values are dense and of the dtypes that both NumPy and PyTorch have. Raises MXNetError where there are no other
    processes, or what Ray needs for collectives is missing; errors of other workers are raised where sums are waited
    for, and by the next call.
    """

    def __init__(self) -> None:
        global _stores
        workers, rank = cluster.number("DMLC_NUM_WORKER"), cluster.number("DMLC_WORKER_ID")
        if not workers or rank is None:
            raise MXNetError("a kvstore of the type dist_allreduce needs other processes, which `mxc launch -n WORKERS "
                             "-s 0 python train.py` starts: DMLC_NUM_WORKER and DMLC_WORKER_ID are not set here")
        if importlib.util.find_spec(PACKAGE) is None:
            raise MXNetError(f"a kvstore of the type dist_allreduce sums by Ray's collectives ({BACKEND}), which need "
                             f"the package {PACKAGE}, and it is not there\npip install {PACKAGE}")
        self._rank, self._workers = rank, workers
        self._ray = group.connected()
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(self._ray.get_runtime_context().get_node_id(), soft=False)
        self._reducer = self._ray.remote(num_cpus=0, scheduling_strategy=here)(Reducer).remote()
        self._call(self._reducer.join.remote(workers, rank, f"{cluster.namespace()}-{_stores}"))
        _stores += 1
        self._exchange = Exchange([self._reducer], rank, is_ordered=True)
        atexit.register(self._close)

    def _call(self, call: Any, seconds: float | None = None) -> Any:
        try:
            return self._ray.get(call, timeout=seconds)
        except Exception as error:
            raise cluster.translated(error) from None

    def _close(self) -> None:
        """Wait for the others' last sums, for which they need this worker."""
        self._exchange.close()
        if self._ray.is_initialized() and self._exchange.error is None:
            try:
                self._call(self._reducer.barrier.remote(), 10)
            except MXNetError:
                return  # they have ended otherwise

    @property
    def type(self) -> str:
        """The name of the kind of store."""
        return "dist_allreduce"

    @property
    def rank(self) -> int:
        """The number of this worker."""
        return self._rank

    @property
    def num_workers(self) -> int:
        """How many workers there are."""
        return self._workers

    def is_capable(self, capability: str) -> bool:
        """Whether the store has a capability: it has no KVStoreBase.OPTIMIZER. Raises ValueError for any other."""
        if capability.lower() == KVStoreBase.OPTIMIZER:
            return False
        raise ArgumentError(f"Unknown capability: {capability}")

    def barrier(self) -> None:
        """Return when all workers have come here."""
        self._exchange.settle()
        self._call(self._reducer.barrier.remote())

    _barrier = barrier  # MXNet's name

    def broadcast(self, key: Key | Sequence[Key], value: Any, out: Any, priority: int = 0) -> None:
        """Write worker 0's value of a key, or of each of several, to every `out`. Raises MXNetError for arrays that are
        not dense, for those of bfloat16, and for shapes that differ."""
        targets = dict(_grouped(key, out))
        for one, values in _grouped(key, value):
            self._check(one, values[:1], targets[one])
            self._exchange.settle()
            found = self._call(self._reducer.broadcast.remote(values[0].asnumpy()))
            for target in targets[one]:
                target[:] = found

    def pushpull(self, key: Key | Sequence[Key], value: Any, out: Any = None, priority: int = 0) -> None:
        """Sum a key's values over devices and workers into `out`; into `value` without it. It returns at once. The
        priority changes nothing. Raises MXNetError for arrays that are not dense, for those of bfloat16, and for shapes
        that differ."""
        self._exchange.check()
        if engine.is_inside():
            raise MXNetError("a kvstore of the type 'dist_allreduce' cannot be used inside of an operator")
        targets, items = dict(_grouped(key, value if out is None else out)), []
        for one, values in _grouped(key, value):
            self._check(one, values, targets[one])
            source = total(values)._array
            rows = source.shape[0] if source.shape else 1
            layout = Layout(source.shape, source.dtype, (Part(one, 0, 0, 0, rows),), True)
            items.append(Item(0, one, layout, source, [each._array for each in targets[one]], 0, 0, 0, None, None))
        self._exchange.submit(items)

    @staticmethod
    def _check(key: Key, values: Sequence[NDArray], targets: Sequence[NDArray]) -> None:
        for each in (*values, *targets):
            if each.stype != "default":
                raise MXNetError(f"kvstore: dist_allreduce sums dense arrays, and the key {key!r} has a {each.stype} "
                                 "one: use dist_sync")
            if each._array.dtype == "bfloat16":
                raise MXNetError(f"kvstore: the key {key!r} has an array of bfloat16, which NumPy and PyTorch have no "
                                 "common form of; take float32")
            if each.shape != values[0].shape:
                raise MXNetError(f"kvstore: the arrays of the key {key!r} have the shapes {values[0].shape} and "
                                 f"{each.shape}")
