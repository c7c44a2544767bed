"""A library's call beside mxc's kernel: whether both compute the same, and which is faster.

Both run on arrays of their own, with the same numbers.
"""
from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from mxc.compiler.ops import dtypes
from mxc.compiler.targets.cuda.device import Launch
from mxc.compiler.targets.cuda.nvidia.forms import Form, Tensor
from mxc.compiler.targets.cuda.nvidia.rounding import Rounding

if TYPE_CHECKING:
    from mxc.compiler.targets.cuda.allocator import Allocator

PERIOD = 1_000_003  # numbers of an array until they come again; a prime, so that no rows are equal
ROUNDS = 3  # of which the median counts
TURN = 2e-3  # seconds that a turn of a kernel takes at least
MOST_RUNS = 20  # runs of a turn
# A difference that is taken for rounding, of the largest result: units in the last place of results, and of sums for
# the root of each one's length (TF32 keeps 10 bits of a float32, float16's units; it is no rounding of float32).
RESULT_UNITS, SUM_UNITS = 2.0, 8.0
UNITS = {"float64": 2.0 ** -52, "float32": 2.0 ** -23, "float16": 2.0 ** -10, "bfloat16": 2.0 ** -7}
TF32_UNIT = 2.0 ** -10


@dataclass(frozen=True)
class Outcome:
    """off: the largest difference between the results, of the largest of them; allowed: what is taken for rounding.
    same_nan: whether NaN came out of the same places, for NaN in the first operand. own, library: seconds of a run;
    0 where they were not measured."""

    off: float
    allowed: float
    same_nan: bool
    own: float = 0.0
    library: float = 0.0

    @property
    def agrees(self) -> bool:
        return self.off <= self.allowed and self.same_nan


def allowed(form: Form, rounding: Rounding) -> float:
    """The difference that rounding may make, of the largest result."""
    of_sums = UNITS["float64" if form.dtype == "float64" else "float32"] * SUM_UNITS * form.depth ** 0.5
    coarse = RESULT_UNITS * TF32_UNIT if rounding.tf32 and form.dtype == "float32" else 0.0
    return of_sums + RESULT_UNITS * UNITS[form.dtype] + coarse


class Trial:
    """own: the launch of mxc's kernel on arrays at other addresses; call: the library's, likewise. Raises
    OutOfMemoryError where the arrays do not fit."""

    def __init__(self, memory: Allocator, form: Form, buffers: int, own: Callable[[Sequence[int]], Launch],
                 call: Callable[[Sequence[int]], Launch]):
        self.memory, self.form = memory, form
        sizes = [1] * buffers
        for array in form.arrays():
            sizes[array.position] = max(sizes[array.position], array.elements)
        *_, self.result = form.arrays()
        self.places = list[int]()
        rng = np.random.default_rng(0)
        kind = dtypes.numpy_dtype(form.dtype)
        self.numbers = [dtypes.converted(np.resize(rng.standard_normal(min(size, PERIOD), np.float32), size), kind)
                        for size in sizes]
        try:
            for numbers in self.numbers:
                self.places.append(memory.allocate(numbers.nbytes, "a trial of NVIDIA's libraries"))
                memory.write(self.places[-1], numbers)
            self.own, self.call = own(self.places), call(self.places)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for place in self.places:
            self.memory.release(place)
        self.places.clear()

    def outcome(self, rounding: Rounding, timed: bool) -> Outcome:
        """What both do. timed: how long, too."""
        first, second = (self._results(launch) for launch in (self.own, self.call))
        largest = float(np.max(np.abs(first), initial=0.0))
        off = float(np.max(np.abs(first - second), initial=0.0)) / max(largest, 1e-30)
        none = np.full(len(self.numbers[0]), np.nan, np.float32)
        self.memory.write(self.places[0], dtypes.converted(none, self.numbers[0].dtype))
        nan = [np.isnan(self._results(launch)) for launch in (self.own, self.call)]
        self.memory.write(self.places[0], self.numbers[0])
        same_nan = bool(np.array_equal(*nan)) and not np.isnan(second).any()
        found = Outcome(off, allowed(self.form, rounding), same_nan)
        if not timed or not found.agrees:
            return found
        own, library = self._seconds()
        return Outcome(off, found.allowed, same_nan, own, library)

    def _results(self, launch: Launch) -> np.ndarray:
        """The results of one run, as float32 or float64."""
        position = self.result.position
        self.memory.write(self.places[position], self.numbers[position])
        self.memory.device.launch(launch)
        self.memory.device.wait()
        read = np.empty_like(self.numbers[position])
        self.memory.read(self.places[position], read)
        return _elements(_numbers(read), self.result)

    def _seconds(self) -> tuple[float, float]:
        """How long a run of each takes, by turns."""
        device, launches = self.memory.device, (self.own, self.call)
        graphs, times = list[Any](), (list[float](), list[float]())
        for launch in launches:
            start = time.perf_counter()
            device.launch(launch)
            device.wait()
            runs = min(MOST_RUNS, ceil(TURN / max(time.perf_counter() - start, 1e-9)))
            graphs.append((device.graph([launch] * runs), runs))
        for _ in range(ROUNDS):
            for (graph, runs), found in zip(graphs, times, strict=True):
                start = time.perf_counter()
                device.begin(graph)
                device.wait()
                found.append((time.perf_counter() - start) / runs)
        return statistics.median(times[0]), statistics.median(times[1])


def _numbers(stored: np.ndarray) -> np.ndarray:
    """The values of an array as float32, or float64."""
    return stored.astype(np.float32) if stored.dtype == np.float16 else dtypes.widened(stored)


def _elements(buffer: np.ndarray, array: Tensor) -> np.ndarray:
    """An array's elements in its buffer."""
    size = buffer.itemsize
    strides = [step * size if n > 1 else 0 for n, step in zip(array.shape, array.strides, strict=True)]
    assert prod(array.shape) and array.elements <= len(buffer)
    return np.lib.stride_tricks.as_strided(buffer[array.offset:], array.shape, strides, writeable=False)
