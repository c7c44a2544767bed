"""Starts the workers and servers of a program on a cluster of Ray's, and looks after them until all have ended."""
from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mxc.compiler.system import env
from mxc.kvstore import cluster, group

GRACE = 5.0  # seconds that the others have to end by themselves, with an error, after one has failed
LONGEST = 1 << 16  # bytes of a line, which is printed in pieces if it has more
FAILED, NOT_STARTED, NOT_FOUND = 1, 126, 127  # exit codes; of a command that cannot be started the shell's


@dataclass
class Job:
    """What is to be started. command: of each worker. cpus, gpus, resources: that a worker takes of a machine.
    address: of a cluster; without one a cluster of this machine is started. restarts: how often a worker is started
    again that was killed or failed, where the others go on (dist_async). store_bytes: of a local cluster's object
    store. folder: where workers run; uploads: whether that folder is sent to the machines."""

    command: Sequence[str]
    workers: int
    servers: int
    address: str = ""
    cpus: float = 1
    gpus: float = 0
    resources: Mapping[str, float] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    restarts: int = 0
    store_bytes: int | None = None
    folder: str = ""
    uploads: bool = False


class Process:
    """A worker's process, on whatever machine; made an actor. It ends with the actor, however that ends."""

    def run(self, command: Sequence[str], variables: Mapping[str, str], folder: str) -> Iterator[bytes | int]:
        """What the process prints, as it comes, and its exit code; below 0 for a signal."""
        try:
            process = subprocess.Popen(command, cwd=folder or None, env=env.all_and(variables),
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                       preexec_fn=cluster.end_with_parent)
        except (OSError, ValueError) as error:  # ValueError: a zero byte in a variable or an argument
            yield f"cannot start {command[0]!r}: {error}\n".encode()
            yield NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_STARTED
            return
        assert process.stdout is not None
        while data := os.read(process.stdout.fileno(), 1 << 16):
            yield data
        yield process.wait()


@dataclass
class Worker:
    """A worker as the launcher sees it. output: a generator of what `Process.run` gives. rest: printed, without the end
    of its line. code: the exit code; None while it runs."""

    rank: int
    actor: Any
    output: Any
    started: float
    rest: bytes = b""
    code: int | None = None
    ended: float = 0.0
    restarts: int = 0
    stopped: bool = False


class Launcher:
    """Runs a job. say: prints a line of a worker's or of the launcher's own."""

    def __init__(self, job: Job, say: Callable[[str, str], None]):
        self.job, self.say = job, say
        if not job.address:
            cluster.start_environment()  # Ray reads it when it is imported
        self.ray = cluster.package()
        self.namespace = f"mxc-{uuid.uuid4().hex[:12]}"
        self.failure, self.deadline = "", 0.0
        self.signal = 0  # that has come
        self.is_starting = False  # whether Ray is

    def run(self) -> int:
        """Start all, wait until all have ended; the exit code."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._noticed)
        try:
            self._connect()
            started = time.monotonic()
            self.servers = group.start_servers(self.job.servers, self.job.workers, self.namespace)
            presence = [server.never.remote() for server in self.servers]
            self.workers = [self._start(rank) for rank in range(self.job.workers)]
            self._look_after(presence)
            self._summary(time.monotonic() - started)
            return self._code()
        finally:
            self.ray.shutdown()

    def _noticed(self, number: int, _: Any) -> None:
        is_first, self.signal = not self.signal, number
        # Ray cannot be shut down where its start was broken off, and its threads then fail when the process ends
        if not (self.is_starting and is_first):
            self._check_signal()

    def _check_signal(self) -> None:
        """End where a signal has come, also where what was interrupted has taken the exception for its own."""
        if self.signal:
            raise KeyboardInterrupt if self.signal == signal.SIGINT else SystemExit(128 + self.signal)

    # -- beginning

    def _connect(self) -> None:
        job = self.job
        settings: dict[str, Any] = {"namespace": self.namespace, "log_to_driver": False, "logging_level": "error"}
        if job.uploads:
            settings["runtime_env"] = {"working_dir": job.folder}
        if job.address:
            self._init(address=job.address, **settings)
            return
        self._init(address="local", num_cpus=max(1, round(job.cpus * job.workers + 0.49)),
                   num_gpus=round(job.gpus * job.workers) or None,
                   resources={name: count * job.workers for name, count in job.resources.items()} or None,
                   include_dashboard=False, object_store_memory=job.store_bytes, **settings)
        for line in cluster.listening():
            self.say("", line)

    def _init(self, **settings: Any) -> None:
        self.is_starting = True
        self.ray.init(**settings)
        self.is_starting = False
        signal.signal(signal.SIGTERM, self._noticed)  # Ray has put its own there
        self._check_signal()

    def _start(self, rank: int) -> Worker:
        job, ray = self.job, self.ray
        host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
        variables = {**job.variables, "DMLC_ROLE": "worker", "DMLC_WORKER_ID": str(rank),
                     "DMLC_NUM_WORKER": str(job.workers), "DMLC_NUM_SERVER": str(job.servers),
                     "DMLC_PS_ROOT_URI": host, "DMLC_PS_ROOT_PORT": port, cluster.NAMESPACE: self.namespace}
        actor = ray.remote(num_cpus=job.cpus, num_gpus=job.gpus, resources=dict(job.resources),
                           scheduling_strategy="SPREAD")(Process).remote()
        output = actor.run.options(num_returns="streaming").remote(list(job.command), variables,
                                                                   "" if job.uploads else job.folder)
        return Worker(rank, actor, output, time.monotonic())

    # -- until all have ended

    def _look_after(self, presence: Sequence[Any]) -> None:
        while running := [w for w in self.workers if w.code is None]:
            self._check_signal()
            ready, _ = self.ray.wait([*(w.output for w in running), *presence], timeout=0.5)
            for worker in running:
                if worker.output in ready:
                    self._take(worker)
            lost = [i for i, call in enumerate(presence) if call in ready]
            if lost and not self.failure:
                self._fail(f"server {lost[0]} has been killed or failed")
            presence = [call for call in presence if call not in ready]
            if self.failure and time.monotonic() > self.deadline:
                for worker in running:
                    if worker.code is None:
                        self.ray.kill(worker.actor)
                        worker.code, worker.ended, worker.stopped = -signal.SIGKILL, time.monotonic(), True

    def _take(self, worker: Worker) -> None:
        """Print what a worker has printed, or note its end."""
        try:
            found = self.ray.get(next(worker.output))
        except Exception as error:  # the actor, or its machine, is gone
            self.say(_called(worker), f"its process is gone: {' '.join(str(error).split())[:200]}" if not
                     isinstance(error, StopIteration) else "its process is gone")
            found = -signal.SIGKILL
        if isinstance(found, bytes):
            *lines, worker.rest = (worker.rest + found).split(b"\n")
            if len(worker.rest) > LONGEST:
                lines.append(worker.rest)
                worker.rest = b""
            for line in lines:
                self.say(_called(worker), line.decode(errors="replace"))
            return
        if worker.rest:
            self.say(_called(worker), worker.rest.decode(errors="replace"))
            worker.rest = b""
        worker.code, worker.ended = int(found), time.monotonic()
        self.ray.kill(worker.actor)
        if worker.code and not self.failure:
            self._lost(worker)

    def _lost(self, worker: Worker) -> None:
        how = ended_how(worker.code or 0)
        if not self.servers:  # the others wait for it
            self._fail(f"worker {worker.rank} has {how}")
            return
        try:
            failures = self.ray.get([server.lost.remote(worker.rank, how) for server in self.servers], timeout=GRACE)
        except Exception:  # a server is gone too
            failures = [f"worker {worker.rank} has {how}"]
        failure = next((each for each in failures if each), "")
        if failure:
            self._fail(failure)
        elif worker.restarts < self.job.restarts:
            self.say("", f"worker {worker.rank} has {how}; it is started again")
            fresh = self._start(worker.rank)
            fresh.restarts = worker.restarts + 1
            self.workers[worker.rank] = fresh
        else:
            self.say("", f"worker {worker.rank} has {how}; the others go on")

    def _fail(self, why: str) -> None:
        self.failure, self.deadline = why, time.monotonic() + GRACE
        self.say("", f"{why}; the others end too")

    def _code(self) -> int:
        """The exit code. A worker's process may end after those of others that had an error by its end."""
        failed = [worker for worker in self.workers if worker.code and not worker.stopped]
        if not failed:
            return FAILED if self.failure else 0
        ends: list[int] = []
        if self.servers:
            with contextlib.suppress(Exception):  # the server may be gone
                ends = self.ray.get(self.servers[0].ends.remote(), timeout=GRACE)
        return min(failed, key=lambda worker: (ends.index(worker.rank) if worker.rank in ends else len(ends),
                                               worker.ended)).code or 0

    def _summary(self, seconds: float) -> None:
        for worker in self.workers:
            how = "was ended" if worker.stopped else ended_how(worker.code or 0)
            self.say("", f"{_called(worker)}: {how} after {worker.ended - worker.started:.1f} s")
        self.say("", f"{len(self.workers)} workers and {len(self.servers)} servers, {seconds:.1f} s"
                 + (f": failed, {self.failure}" if self.failure else ""))


def _called(worker: Worker) -> str:
    return f"worker {worker.rank}"


def ended_how(code: int) -> str:
    """An exit code in words, behind "has"."""
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"been killed ({name})"
    return f"ended with exit code {code}"
