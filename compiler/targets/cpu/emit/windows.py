"""Loop kernels over windows that slide along their results (sliding.py), for the CPU."""
from __future__ import annotations

import itertools

from mxc.compiler.kernel.ir import LoopKernel
from mxc.compiler.kernel.simplify_index import index
from mxc.compiler.targets.cpu.emit.skeletons import CHUNK, WIDE_BLOCK
from mxc.compiler.targets.cpu.emit.sliding import Sliding, sliding
from mxc.compiler.targets.cpu.emit.sweeps import Sweeps


class WindowRows(Sweeps):
    """The skeleton "windows": a row of results at a time, which lies in the thread's scratch memory first."""

    def __init__(self, kernel: LoopKernel):
        super().__init__(kernel)
        self.sliding = sliding(kernel)

    def windows(self) -> None:
        found, axis, source = self.sliding, self.first - 1, self.source
        assert found is not None
        source(f"parts = udiv(n{axis} + {WIDE_BLOCK - 1}, {WIDE_BLOCK})")
        source(f"block = max_(1, udiv({CHUNK}, max_(1, {' * '.join(self.extents[axis:])})))")
        with self.printer.scope("for unit in range(first, last):"):
            self.part(f"n{axis}", str(WIDE_BLOCK), "block")
            with self.row_loop(range(axis), "row", "row_stop"):
                self.hoist([*self.store_roots(list(self.kernel.stores)), found.place, *found.rows])
                self.window_row(axis, found)

    def window_row(self, axis: int, found: Sliding) -> None:
        """The results start..stop of a row."""
        a, rows, source, text = self.kernel.accumulators[0], [], self.source, self.printer.print
        with self.printer.names():
            source(f"i{axis} = start")  # where the first result has its first element
            if found.inner is not None:
                source(f"i{found.inner} = 0")
            source(f"high = {text(found.limit) if found.limit is not None else str(1 << 30)}")
            places = [range(self.kernel.reduce[outer - self.first]) for outer in found.outer]
            for number, place in enumerate(itertools.product(*places)):
                with self.printer.names():
                    for outer, at in zip(found.outer, place, strict=True):
                        source(f"i{outer} = {at}")
                    source(f"there{number} = {' & '.join(map(text, found.rows)) or 'True'}")
                    source(f"low{number} = {text(found.column) if found.column is not None else '0'}")
                    source(f"row{number} = moved(b{found.buffer}, {text(found.place)})")
                rows.append(f"there{number}, low{number}, row{number}")
        step, apart = text(index(found.step)), text(index(found.apart))
        taps = "1" if found.inner is None else f"n{found.inner}"
        source(f"slid_{found.word}(s0, stop - start, {step}, {taps}, {apart}, high, {', '.join(rows)})")
        self.acc_names = {0: self.printer.rounded(f"s0[i{axis} - start]", a.body.dtype)}
        with self.loop(axis, "start", "stop"):
            self.store(list(self.kernel.stores))
        self.acc_names = {}
