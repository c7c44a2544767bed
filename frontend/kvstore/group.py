"""The workers and servers of a program that runs in several processes, as Ray connects them.

Servers are actors with names; a worker is a process that is connected to the cluster, or a task or actor of Ray's. The
variables of MXNet's launcher say who a process is, see `docs/distributed.md`.
"""
from __future__ import annotations

import atexit
import contextlib
import os
import sys
import time
from typing import Any

from mxc.compiler.error import MXNetError
from mxc.compiler.system import env
from mxc.kvstore import cluster
from mxc.kvstore.exchange import Exchange

SECONDS = 120  # how long a worker waits for servers that others start


def start_servers(count: int, workers: int, namespace: str) -> list[Any]:
    """Start servers in the cluster that this process is connected to: actors that end with this process, spread over
    machines. Returns when they run."""
    ray = cluster.package()
    from mxc.kvstore.server import Server

    kind = ray.remote(num_cpus=0, max_concurrency=10_000, scheduling_strategy="SPREAD")(Server)
    servers = [kind.options(name=_name(i), namespace=namespace).remote(i, workers) for i in range(count)]
    ray.get([server.ready.remote() for server in servers])
    return servers


def _name(server: int) -> str:
    return f"mxc-server-{server}"


def found(count: int, where: str) -> list[Any]:
    """The servers in a namespace, once they are there. Raises MXNetError where they do not come."""
    ray, servers = cluster.package(), list[Any]()
    end = time.monotonic() + SECONDS
    while len(servers) < count:
        try:
            servers.append(ray.get_actor(_name(len(servers)), namespace=where))
        except ValueError:
            if time.monotonic() > end:
                raise MXNetError(f"there is no server {len(servers)} of {count} after {SECONDS} seconds: is the "
                                 "program that starts them running?") from None
            time.sleep(0.1)
    return servers


def connected() -> Any:
    """Ray, with this process connected to its cluster."""
    is_launched = env.get(cluster.NAMESPACE) is not None
    if not is_launched and "ray" not in sys.modules:  # else the settings of Ray are made
        cluster.prepare()
    ray = cluster.package()
    if not ray.is_initialized():
        host, port = cluster.address()
        cluster.connect(f"{host}:{port}" if is_launched else cluster.reach(), cluster.namespace())
    return ray


class Group:
    """This process's part in a group. rank, workers: its number, and how many there are."""

    def __init__(self) -> None:
        workers, servers = cluster.number("DMLC_NUM_WORKER"), cluster.number("DMLC_NUM_SERVER")
        if not workers or not servers:
            raise MXNetError("a kvstore of the type dist needs other processes, which `mxc launch -n WORKERS python "
                             "train.py` starts: DMLC_NUM_WORKER and DMLC_NUM_SERVER must be set, and above 0")
        self.workers = workers
        self.ray = connected()
        self.servers = found(servers, cluster.namespace())
        self._presence = [server.never.remote() for server in self.servers]
        self.rank = self.call(self.servers[0].join.remote(cluster.number("DMLC_WORKER_ID"), [self._presence[0]]))
        for server, presence in list(zip(self.servers, self._presence, strict=True))[1:]:
            self.call(server.join.remote(self.rank, [presence]))
        self.exchange = Exchange(self.servers, self.rank, ray=self.ray)
        self.stores = self.barriers = 0
        self._process = os.getpid()
        atexit.register(self.close)

    def call(self, *calls: Any) -> Any:
        """The result of a call of a server's method, or a list of those of several. Raises MXNetError."""
        try:
            found = self.ray.get(list(calls))
        except Exception as error:
            raise cluster.translated(error) from None
        return found if len(calls) > 1 else found[0]

    def barrier(self) -> None:
        """Return when all workers have called it as often as this one."""
        self.barriers += 1
        self.call(self.servers[0].barrier.remote(self.rank, self.barriers))

    def close(self) -> None:
        """Tell the servers that this worker has done its work, if they are there."""
        if os.getpid() != self._process or not self.ray.is_initialized():
            return
        self._tell("close", self.exchange.rounds)  # else who waits for more of it would be waited for here
        self.exchange.close()
        self._tell("leave")

    def _tell(self, method: str, *arguments: Any) -> None:
        """Call a method of all servers, if they are there."""
        with contextlib.suppress(Exception):
            self.ray.get([getattr(server, method).remote(self.rank, *arguments) for server in self.servers], timeout=10)


_group: Group | None = None


def joined() -> Group:
    """This process's group, which the first call joins. Raises MXNetError where there is none."""
    global _group
    if _group is None or _group._process != os.getpid():
        _group = Group()
    return _group
