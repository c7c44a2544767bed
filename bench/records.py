"""Seconds that `mxc im2rec` takes for a file of records: with one thread, with several, with as many processes.

    python bench/records.py [--workers N] [--pictures N] [--rounds N] [--pass-through]

Pictures are JPEGs of 500 x 375, resized to 256. Ways take turns in one process; a number is the least of all rounds, of
CPU seconds, child processes included, and by the wall clock, which means little on a machine that others use. Processes
give their records back, as a command would need them that writes one file.
"""
from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import cv2
import numpy as np

from mxc.cli.picture_lists import read_lines
from mxc.cli.picture_records import pack_list, record_of

CHUNK = 8  # pictures that a process gets at once


def arguments() -> argparse.Namespace:
    """The command line, with what `mxc im2rec` has besides."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--pictures", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pass-through", action="store_true")
    parser.set_defaults(root="pictures", resize=256, center_crop=False, quality=95, color=1, encoding=".jpg",
                        pack_label=False)
    return parser.parse_args()


@contextlib.contextmanager
def pictures(count: int) -> Iterator[None]:
    """A current folder with pictures and their list."""
    random = np.random.RandomState(0)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("pictures").mkdir()
        for i in range(count):
            image = cv2.resize(random.randint(0, 256, (60, 80, 3)).astype(np.uint8), (500, 375))
            cv2.imwrite(f"pictures/{i}.jpg", image)
        Path("all.lst").write_text("".join(f"{i}\t0\t{i}.jpg\n" for i in range(count)))
        yield


def with_threads(options: argparse.Namespace, count: int) -> None:
    """The command itself."""
    pack_list("all.lst", argparse.Namespace(**{**vars(options), "num_thread": count}), lambda _: None)


def with_processes(options: argparse.Namespace, count: int) -> None:
    """The same records made by processes."""
    lines = [line for _, line in read_lines("all.lst")[1]]
    with ProcessPoolExecutor(count, get_context("fork")) as pool, open("processes.rec", "wb", 0) as file:
        for record in pool.map(partial(record_of, options=options), lines, chunksize=CHUNK):
            file.write(record)


def measured(run: Callable[[], None]) -> tuple[float, float]:
    """CPU seconds and seconds by the clock."""
    before, start = os.times(), time.perf_counter()
    run()
    return sum(os.times()[:4]) - sum(before[:4]), time.perf_counter() - start


def main() -> None:
    """Print a line for each way."""
    options = arguments()
    ways = {"1 thread": partial(with_threads, options, 1),
            f"{options.workers} threads": partial(with_threads, options, options.workers),
            f"{options.workers} processes": partial(with_processes, options, options.workers)}
    cv2.setNumThreads(1)
    with pictures(options.pictures):
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for _ in range(options.rounds):
            for name, way in ways.items():
                found[name].append(measured(way))
        assert Path("all.rec").read_bytes() == Path("processes.rec").read_bytes()
    for name, times in found.items():
        cpu, wall = (min(column) for column in zip(*times, strict=True))
        print(f"{name:12}  {cpu:6.2f} CPU seconds  {wall:6.2f} seconds  "
              f"{options.pictures / cpu:6.0f} pictures a CPU second")


if __name__ == "__main__":
    main()
