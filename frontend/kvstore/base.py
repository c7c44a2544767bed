"""What a key-value store can be asked, the registry of those that programs define, and `create`."""
from __future__ import annotations

import inspect
from typing import Any, ClassVar

from mxc.compiler.error import ArgumentError, ArgumentTypeError, MXNetError, nearest

LOCAL = ("local", "local_update_cpu", "local_allreduce_cpu", "local_allreduce_device", "device")
DIST = ("dist", "dist_sync", "dist_async", "dist_device_sync", "dist_sync_device", "dist_async_device")


class KVStoreBase:
    """The interface of a key-value store. Programs derive their own from it and register them.

    OPTIMIZER: the capability of a store that updates the weights itself.
    """

    OPTIMIZER = "optimizer"
    kv_registry: ClassVar[dict[str, Any]] = {}  # name in lower case -> registered class

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Give every worker the value of a key that rank 0 has."""
        raise NotImplementedError

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Sum a key's values over devices and workers into `out`; into `value` without it."""
        raise NotImplementedError

    def set_optimizer(self, optimizer: Any) -> None:
        """Update weights by this optimizer when gradients are pushed."""
        raise NotImplementedError

    def is_capable(self, capability: str) -> bool:
        """Whether the store has a capability, such as KVStoreBase.OPTIMIZER."""
        raise NotImplementedError

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Write the optimizer's states to a file."""
        raise NotImplementedError

    def load_optimizer_states(self, fname: str) -> None:
        """Read the optimizer's states from a file."""
        raise NotImplementedError

    @property
    def type(self) -> str:
        """The name of the kind of store."""
        raise NotImplementedError

    @property
    def rank(self) -> int:
        """The number of this worker."""
        raise NotImplementedError

    @property
    def num_workers(self) -> int:
        """How many workers there are."""
        raise NotImplementedError

    @staticmethod
    def register(klass: Any) -> Any:
        """A class decorator: `create` makes one by the class's name, in any case."""
        if not inspect.isclass(klass):
            raise ArgumentTypeError(f"register takes a class, got {klass!r}")
        KVStoreBase.kv_registry[klass.__name__.lower()] = klass
        return klass


@KVStoreBase.register
class TestStore(KVStoreBase):
    """A store that keeps nothing: it sums what it is given. For tests of programs."""

    __test__ = False  # tells pytest that this class holds no tests

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Copy the value to every `out`."""
        for target in out if isinstance(out, (list, tuple)) else [out]:
            target[:] = value

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Write the sum of the values to every `out`, or to the values themselves."""
        from mxc.kvstore.sums import total

        values = list(value) if isinstance(value, (list, tuple)) else [value]
        self.broadcast(key, total(values), values if out is None else out)

    def is_capable(self, capability: str) -> bool:
        """False for the optimizer. Raises MXNetError for a capability that does not exist."""
        if capability.lower() == KVStoreBase.OPTIMIZER:
            return False
        raise MXNetError(f"Unknown capability: {capability}")

    @property
    def type(self) -> str:
        """The name of the kind of store."""
        return "teststore"

    @property
    def rank(self) -> int:
        """The number of this worker."""
        return 0

    @property
    def num_workers(self) -> int:
        """How many workers there are."""
        return 1


def create(name: str = "local") -> Any:
    """A key-value store of a kind.

    name: "local" or "device" (both sum where the first array is, and over GPUs by NCCL where that is installed;
    "device" can compress gradients), "dist_sync", "dist_device_sync", "dist_async" or "dist_allreduce" (of several
    processes, see docs/distributed.md; "dist" is "dist_sync"), in any case, a name of MXNet's for one of them, or that
    of a registered class.
    Raises TypeError for anything but a string, ValueError (an MXNetError too) for a kind that does not exist here, and
    MXNetError for one of several processes where there are none, or Ray is missing.
    """
    from mxc.kvstore.kvstore import KVStore

    if not isinstance(name, str):
        raise ArgumentTypeError(f"name must be a string, got {type(name)}")
    kind = name.lower()
    if kind in KVStoreBase.kv_registry:
        return KVStoreBase.kv_registry[kind]()
    if kind in LOCAL:
        return KVStore(kind)
    if kind in DIST:
        from mxc.kvstore.dist import DistKVStore

        return DistKVStore(kind)
    if kind == "dist_allreduce":
        from mxc.kvstore.allreduce import AllReduce

        return AllReduce()
    known = (*LOCAL, *DIST, "dist_allreduce", *KVStoreBase.kv_registry)
    if kind.startswith("p3") or kind in ("nccl", "horovod", "byteps"):
        raise ArgumentError(f"kvstore {name!r} is not in mxc: use 'device' for the devices of a machine, and "
                            "'dist_sync', 'dist_async' or 'dist_allreduce' for several processes")
    raise ArgumentError(f"no kvstore is called {name!r}; there are {', '.join(known)}{nearest(kind, known)}")
