"""Clients of a model: each runs it, one request after the other, and all of them at once, as those of a service do."""
from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

LEAST = 5  # runs that are measured at least, however long they take


class Measured(NamedTuple):
    """times: the milliseconds of each run, for each client. seconds: from the first request to the last answer."""

    times: list[list[float]]
    seconds: float

    @property
    def throughput(self) -> float:
        """Runs a second, of all clients together."""
        return sum(map(len, self.times)) / self.seconds


def measure(work: Callable[[], None], iterations: int | None, limit: float) -> list[float]:
    """Milliseconds of each run: of so many, or of as many as `limit` seconds have room for."""
    times: list[float] = []
    start = time.perf_counter()
    while len(times) < (iterations or LEAST) or (not iterations and time.perf_counter() - start < limit):
        before = time.perf_counter()
        work()
        times.append((time.perf_counter() - before) * 1e3)
    return times


def measured(works: Sequence[Callable[[], None]], iterations: int | None, limit: float) -> Measured:
    """What `measure` gives for each of the clients' work, a thread for each where they are several.

    All begin at once. Raises what one of them raises; then, and at an interrupt, the others end after the run that
    they are in.
    """
    times = [list[float]() for _ in works]
    begins, ends = [0.0] * len(works), [0.0] * len(works)
    ready, stopped, errors = threading.Barrier(len(works)), threading.Event(), list[BaseException]()

    def serve(client: int) -> None:
        def work() -> None:
            if stopped.is_set():
                raise _Stopped
            works[client]()

        try:
            ready.wait()
            begins[client] = time.perf_counter()
            times[client] = measure(work, iterations, limit)
            ends[client] = time.perf_counter()
        except (_Stopped, threading.BrokenBarrierError):
            pass
        except BaseException as error:
            errors.append(error)
            stopped.set()

    if len(works) == 1:
        serve(0)
    else:
        threads = [threading.Thread(target=serve, args=(client,), name=f"client {client}", daemon=True)
                   for client in range(len(works))]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except BaseException:
            stopped.set()
            ready.abort()
            for thread in threads:
                if thread.ident is not None:  # it was started
                    thread.join()
            raise
    if errors:
        raise errors[0]
    return Measured(times, max(ends) - min(begins))


class _Stopped(Exception):
    """Ends a client whose runs nobody wants any more."""
