"""The definition of a chain of library kernels: its calls, one after the other, for each image and segment."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mxc.compiler.kernel import interpret_calls
from mxc.compiler.kernel.ir import ChainKernel


def interpret(chain: ChainKernel, buffers: Sequence[np.ndarray]) -> None:
    """Runs `chain` on one-dimensional arrays in place."""
    for image in range(chain.images):
        for segment in chain.segments:
            private = [np.full(size, np.nan, np.float32) for size in chain.private]
            for call, places in segment:
                everything = [*buffers, *private]
                interpret_calls.interpret(call, [everything[p.buffer][p.offset + p.step * image :] for p in places])
