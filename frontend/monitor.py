"""A look at a network's values while it trains: `mx.mon.Monitor`."""
from __future__ import annotations

import logging
import re
from collections.abc import Callable
from math import sqrt
from typing import Any

from mxc.compiler.error import ArgumentTypeError
from mxc.ndarray import NDArray
from mxc.ndarray.ndarray import apply
from mxc.runtime.elsewhere import elsewhere

__getattr__, _names = elsewhere(__name__, {"": "ctypes ndarray=mxc.ndarray", "mxc.base": "NDArrayHandle py_str"})
__all__ = ["Monitor", "NDArray", "logging", "re", "sqrt", *_names]


class Monitor:
    """Numbers about the outputs of operators, the gradients in backward, the parameters and the states of executors,
    every `interval` batches.

    stat_func: makes an array, or a list of them, of each value; by default the root of the mean square. pattern: a
    regular expression which the beginning of a name must match. sort: by name. monitor_all: operators' inputs too.

    Batches that are looked at run operator by operator, which is slow; the others run as without a monitor. What is
    raised by `stat_func` comes out of the run, or of `toc`.
    """

    def __init__(self, interval: int, stat_func: Callable[[NDArray], Any] | None = None, pattern: str = ".*",
                 sort: bool = False, monitor_all: bool = False):
        self.interval, self.stat_func = interval, stat_func or _root_mean_square
        self.activated = False
        self.queue: list[tuple[int, str, Any]] = []
        self.step = 0
        self.exes: list[Any] = []
        self.re_prog, self.sort, self.monitor_all = re.compile(pattern), sort, monitor_all

    def stat_helper(self, name: str, array: NDArray) -> None:
        """Note the numbers about a value, if they are wanted now."""
        if self.activated and self.re_prog.match(name):
            self.queue.append((self.step, name, self.stat_func(array)))

    def install(self, exe: Any) -> None:
        """Look at this executor too."""
        self.exes.append(exe)
        if self.activated:
            exe.set_monitor_callback(self.stat_helper, self.monitor_all)

    def tic(self) -> None:
        """Begin a batch: whether it is looked at."""
        if self.step % self.interval == 0:
            self.queue, self.activated = [], True
            for exe in self.exes:
                exe.set_monitor_callback(self.stat_helper, self.monitor_all)
        self.step += 1

    def toc(self) -> list[tuple[int, str, str]]:
        """End a batch: (number of the batch, name, numbers as text) of each value, if it was looked at.

        Raises ArgumentTypeError when `stat_func` gave something else than arrays.
        """
        if not self.activated:
            return []
        for exe in self.exes:
            for outputs in exe.outputs:
                outputs.wait_to_read()
        for exe in self.exes:
            for arrays in (exe.arg_dict, exe.aux_dict):
                for name, array in arrays.items():
                    self.stat_helper(name, array)
            exe.set_monitor_callback(None)
        found, self.queue, self.activated = self.queue, [], False
        if self.sort:
            found.sort(key=lambda told: told[1])
        return [(step, name, _text(name, value)) for step, name, value in found]

    def toc_print(self) -> None:
        """End a batch: log what `toc` gives."""
        for step, name, text in self.toc():
            logging.info("Batch: %7d %-30s %s", step, name, text)


def _root_mean_square(array: NDArray) -> NDArray:
    return apply("norm", [array], {}) / sqrt(array.size)


def _text(name: str, value: Any) -> str:
    arrays = [value] if isinstance(value, NDArray) else value
    if not isinstance(arrays, list) or not all(isinstance(array, NDArray) for array in arrays):
        raise ArgumentTypeError(f"stat_func must give an NDArray or a list of them, got {value!r} for {name}")
    return "".join(str(array.asscalar() if array.shape == (1,) else array.asnumpy()) + "\t" for array in arrays)
