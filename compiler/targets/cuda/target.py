"""Runs loop kernels, and functions of a program's own, through numba.cuda: on a GPU, or in its simulator
(NUMBA_ENABLE_CUDASIM=1)."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mxc.compiler.error import TargetError
from mxc.compiler.kernel.ir import FunctionKernel, LoopKernel
from mxc.compiler.targets.cuda.functions import entry
from mxc.compiler.targets.cuda.loops import THREADS, loop_source

BLOCKS = 1024  # so many blocks are launched; each goes on with further points until all are done


def available() -> bool:
    """True with a GPU and its driver, or in the simulator."""
    from numba import cuda

    return bool(cuda.is_available())


def function(kernel: LoopKernel | FunctionKernel, threads: int = THREADS) -> Any:
    """The compiled kernel. Raises TargetError where neither a GPU nor the simulator is there."""
    if not available():
        raise TargetError("no CUDA device: expected an NVIDIA driver and a GPU, or NUMBA_ENABLE_CUDASIM=1")
    from numba import cuda

    if isinstance(kernel, FunctionKernel):
        return cuda.jit(entry(kernel, cuda, lambda buffer, shape: buffer.reshape(shape)))
    from mxc.compiler.targets.cuda.vocabulary import names

    space = names(kernel)
    exec(compile(loop_source(kernel, threads), f"<{kernel.name}>", "exec"), space)
    return cuda.jit(space["kernel"])


def run(kernel: LoopKernel | FunctionKernel, arrays: Sequence[np.ndarray], blocks: int = BLOCKS,
        threads: int = THREADS) -> None:
    """Runs a canonical kernel, or a function's, on flat NumPy arrays, which are copied to the device and back."""
    from numba import cuda

    compiled = function(kernel, threads)
    on_device = [cuda.to_device(a) for a in arrays]
    values = cuda.to_device(np.array([*kernel.values(), 0], np.int64))
    compiled[blocks, threads](*on_device, values)
    for position in kernel.writes():
        on_device[position].copy_to_host(arrays[position])
