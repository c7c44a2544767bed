"""The workers and servers of a program that runs in several processes, as Ray connects them.

Servers are actors with names; a worker is a process that is connected to the cluster, or a task or actor of Ray's. The
variables of MXNet's launcher say who a process is, see `docs/distributed.md`.
"""
from __future__ import annotations

import atexit
import os
import time
from typing import Any

from mxc.compiler.error import MXNetError, SettingError
from mxc.compiler.system import env
from mxc.kvstore.exchange import Exchange

NAMESPACE = "MXC_GROUP"
SECONDS = 120  # how long a worker waits for servers that others start
EXTRA = "pip install 'mxc-compiler[dist]'"


def package() -> Any:
    """Ray. Raises MXNetError where it cannot be imported."""
    try:
        import ray
    except ImportError as error:
        raise MXNetError(f"kvstores of several processes need the package ray, which cannot be imported ({error})\n"
                         f"{EXTRA}") from None
    return ray


def number(name: str) -> int | None:
    """A variable as a number from 0, None where it is not set. Raises SettingError for anything else."""
    text = env.text(name).strip()
    if text and not text.isdecimal():
        raise SettingError(f"{name} must be a whole number from 0, got {text!r}")
    return int(text) if text else None


def start_servers(count: int, workers: int, namespace: str, resources: dict[str, float] | None = None) -> list[Any]:
    """Start servers in the cluster that this process is connected to: actors that end with this process, spread over
    machines. Returns when they run."""
    ray = package()
    from mxc.kvstore.server import Server

    kind = ray.remote(num_cpus=0, max_concurrency=10_000, scheduling_strategy="SPREAD", resources=resources or {})(Server)
    servers = [kind.options(name=_name(i), namespace=namespace).remote(i, workers) for i in range(count)]
    ray.get([server.ready.remote() for server in servers])
    return servers


def _name(server: int) -> str:
    return f"mxc-server-{server}"


class Group:
    """This process's part in a group. rank, workers: its number, and how many there are."""

    def __init__(self) -> None:
        self.ray = package()
        workers, servers = number("DMLC_NUM_WORKER"), number("DMLC_NUM_SERVER")
        if not workers or not servers:
            raise MXNetError("a kvstore of the type dist needs other processes, which `mxc launch -n WORKERS python "
                             "train.py` starts: DMLC_NUM_WORKER and DMLC_NUM_SERVER are not set here")
        self.workers = workers
        self.namespace = env.text(NAMESPACE, "mxc")
        self._connect()
        self.servers = self._find(servers)
        self._presence = [server.never.remote() for server in self.servers]
        self.rank = self.call(self.servers[0].join.remote(number("DMLC_WORKER_ID"), [self._presence[0]]))
        for server, presence in list(zip(self.servers, self._presence, strict=True))[1:]:
            self.call(server.join.remote(self.rank, [presence]))
        self.exchange = Exchange(self.servers, self.rank)
        self.stores = self.barriers = 0
        self._process = os.getpid()
        atexit.register(self.close)

    def _connect(self) -> None:
        ray = self.ray
        if ray.is_initialized():
            return
        host, port = env.text("DMLC_PS_ROOT_URI"), number("DMLC_PS_ROOT_PORT")
        if not host or not port:
            raise MXNetError("a kvstore of the type dist needs a cluster: DMLC_PS_ROOT_URI and DMLC_PS_ROOT_PORT are to "
                             "be the address of Ray's; `mxc launch` sets them")
        connect(f"{host}:{port}", self.namespace)

    def _find(self, count: int) -> list[Any]:
        found: list[Any] = []
        end = time.monotonic() + SECONDS
        while len(found) < count:
            try:
                found.append(self.ray.get_actor(_name(len(found)), namespace=self.namespace))
            except ValueError:
                if time.monotonic() > end:
                    raise MXNetError(f"there is no server {len(found)} of {count} after {SECONDS} seconds: is the "
                                     "program that starts them running?") from None
                time.sleep(0.1)
        return found

    def call(self, *calls: Any) -> Any:
        """The result of a call of a server's method, or a list of those of several. Raises MXNetError."""
        try:
            found = self.ray.get(list(calls))
        except Exception as error:
            raise translated(error) from None
        return found if len(calls) > 1 else found[0]

    def barrier(self) -> None:
        """Return when all workers have called it as often as this one."""
        self.barriers += 1
        self.call(self.servers[0].barrier.remote(self.rank, self.barriers))

    def close(self) -> None:
        """Tell the servers that this worker has done its work, if they are there."""
        if os.getpid() != self._process or not self.ray.is_initialized():
            return
        self.exchange.close()
        try:
            self.ray.get([server.leave.remote(self.rank) for server in self.servers], timeout=10)
        except Exception:
            return  # there is nobody to be told


def connect(address: str, namespace: str) -> None:
    """Connect this process to a cluster. Raises MXNetError where there is none at the address, or none of its nodes is
    on this machine."""
    ray = package()
    try:
        ray.init(address=address, namespace=namespace, log_to_driver=False, logging_level="error")
    except Exception as error:
        raise MXNetError(f"no connection to Ray's cluster at {address}: {error}") from None


_group: Group | None = None


def joined() -> Group:
    """This process's group, which the first call joins. Raises MXNetError where there is none."""
    global _group
    if _group is None or _group._process != os.getpid():
        _group = Group()
    return _group


def translated(error: BaseException) -> MXNetError:
    """What went wrong with a call of a server's method."""
    cause = getattr(error, "cause", None)
    if isinstance(error, MXNetError) and cause is None:
        return error
    if isinstance(cause, MXNetError):
        return type(cause)(*cause.args)
    if type(error).__name__ in ("ActorDiedError", "ActorUnavailableError", "RayActorError"):
        return MXNetError("kvstore: a server has been killed or failed, or the program that started it has ended; "
                          "the workers cannot go on without it: start all again, from a checkpoint")
    text = " ".join(str(cause or error).split())
    return MXNetError(f"kvstore: {type(cause or error).__name__}: {text[-500:]}")

