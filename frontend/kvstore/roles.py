"""Processes that MXNet's launcher starts: it tells each by variables whether it is the scheduler, a server or a worker.

The scheduler starts a cluster of Ray's at the address that all know, and the servers in it; it ends when all workers
have. A process on another machine adds its machine to the cluster. A server's process waits for the end: the servers
themselves are actors, which Ray spreads over the machines.
"""
from __future__ import annotations

import shutil
import socket
import tempfile
import time

from mxc.compiler.error import MXNetError, SettingError
from mxc.kvstore import cluster, group


def scheduler() -> None:
    """Be the scheduler, until all workers have ended."""
    host, port = cluster.address()
    cluster.prepare(is_scheduler=True)
    # in a folder of its own, for other programs look in Ray's usual one for a cluster to connect to
    folder = tempfile.mkdtemp(prefix="mxc-ray-")
    head = cluster.start_node("--head", f"--port={port}", f"--node-ip-address={host}", "--include-dashboard=false",
                              f"--temp-dir={folder}")
    try:
        while True:
            if head.poll() is not None:
                raise MXNetError(f"Ray's cluster did not start at {host}:{port}")
            try:
                socket.create_connection((host, port), 5).close()
                break
            except OSError:
                time.sleep(0.2)
        cluster.connect(f"{host}:{port}", cluster.namespace())
        workers, servers = cluster.number("DMLC_NUM_WORKER"), cluster.number("DMLC_NUM_SERVER")
        if not workers or not servers:
            raise SettingError("DMLC_NUM_WORKER and DMLC_NUM_SERVER must be set, and above 0")
        started = group.start_servers(servers, workers, cluster.namespace())
        cluster.package().get(started[0].over.remote())
        time.sleep(1)  # servers' processes hear it too
    finally:
        cluster.package().shutdown()
        head.terminate()
        head.wait()
        shutil.rmtree(folder, ignore_errors=True)


def server() -> None:
    """Be a server's process, until all workers have ended."""
    cluster.prepare()
    cluster.connect(cluster.reach(), cluster.namespace())
    first = group.found(1, cluster.namespace())[0]
    try:
        cluster.package().get(first.over.remote())
    except Exception as error:
        raise cluster.translated(error) from None
