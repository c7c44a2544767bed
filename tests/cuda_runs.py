"""Kernels on a simulated GPU: for processes that run with NUMBA_ENABLE_CUDASIM=1."""
from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.kernel.ir import Kernel
from mxc.compiler.targets.cuda.allocator import Allocator
from mxc.compiler.targets.cuda.blocks import SIMULATED, Blocks
from mxc.compiler.targets.cuda.simulator import SimulatedGpu
from mxc.compiler.targets.cuda.target import SimulatedTarget


@functools.cache
def target_of(blocks: Blocks) -> SimulatedTarget:
    """A target on a simulated GPU of its own."""
    return SimulatedTarget(Allocator(SimulatedGpu(0)), blocks)


def run(kernel: Kernel, arrays: Sequence[np.ndarray], blocks: Blocks = SIMULATED, most: int | None = None) -> None:
    """Run a kernel on flat arrays, which are copied to the device and back. most: blocks that are launched at most."""
    target = target_of(blocks)
    memory, launch = target.launcher.memory, target.launch(kernel)
    address = target.load({launch.key: kernel}).address(launch.key)
    places = []
    for array in arrays:
        places.append(memory.allocate(max(array.nbytes, 1)))
        memory.write(places[-1], array)
    scratch = memory.allocate(max(launch.scratch_bytes, 1))
    units = launch.units if most is None else min(most, launch.units)
    table = target.launcher.table([(address, [*places, *launch.values], units)], scratch)
    target.launcher.run(table)
    for position in kernel.writes():
        memory.read(places[position], arrays[position])
    for place in (*places, scratch):
        memory.release(place)


def simulated(program: str, gpus: int = 1, settings: Mapping[str, str] | None = None) -> str:
    """What a program prints, run in a process of its own that simulates GPUs. Its modules are those of the tests.
    settings: of its environment."""
    text = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n{program}"
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "MXC_SIMULATED_GPUS": str(gpus), **(settings or {})}
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def refused(call: Callable[[], object], *words: str, kind: type[Exception] = MXNetError) -> None:
    """For those programs: `call` raises an error of that kind with all these words."""
    try:
        call()
    except kind as error:
        assert all(word in str(error) for word in words), error
    else:
        raise AssertionError("nothing was refused")


class Plain:
    """Cases of library kernels for a target whose weights are not packed."""

    def tile(self, dtype: str) -> tuple[int, int]:
        return 0, 0
