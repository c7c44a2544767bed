"""What the sources of all library kernels have: the run-time integers, and the stores over a computed number."""
from __future__ import annotations

from typing import Any

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.ir import CallKernel, Value, computing_dtype
from mxc.compiler.targets.cuda.loops import CudaScalars
from mxc.compiler.targets.scalar_printer import SourceLines


class Epilogue:
    """Prints the stores of a library kernel. geometry: its geometry, with v[0], v[1], ... for the program's integers:
    elements of an array in shared memory, so that no register has to keep them.

    Names: axes i0, i1, ...; buffers b0, b1, ...; what the template computed is `total`.
    """

    def __init__(self, kernel: CallKernel):
        self.kernel, self.source = kernel, SourceLines()
        count, others = len(kernel.extents), ir.run_time_integers(kernel.roots())
        self.names = [f"v[{i}]" for i in range(count)]
        self.geometry: Any = kernel.geometry.with_extents(self.names)
        self._integers = {id(v): f"v[{count + i}]" for i, v in enumerate(others)}
        self.printer = CudaScalars(self.source, self._leaf)

    def _leaf(self, v: Value) -> str | None:
        if v.op == "axis":
            return f"i{v.data}"
        if v.op == "acc":
            return self.printer.cast("total", computing_dtype(self.kernel.geometry.dtype), v.dtype)
        return self._integers.get(id(v))

    def head(self) -> str:
        return f"def kernel({', '.join(f'b{i}' for i in range(len(self.kernel.buffers)))}, values):"

    @property
    def count(self) -> int:
        """How many integers there are."""
        return len(self.names) + len(self._integers)

    def shared_integers(self, threads: int) -> list[str]:
        """Puts the integers into shared memory, by a block of so many threads."""
        return ["thread = cuda.threadIdx.x", f"v = cuda.shared.array({self.count}, int64)",
                f"for element in range(thread, {self.count}, {threads}):", "    v[element] = values[element]",
                "cuda.syncthreads()"]

    def store(self) -> None:
        """The stores at the axes that are set; in a scope of `printer`."""
        stores = [(s, self.printer.print(s.index), self.printer.print(s.value)) for s in self.kernel.stores]
        for s, index, value in stores:  # values first: a store may be in place
            dtype = self.kernel.buffers[s.buffer]
            if s.mode == "add":
                value = f"{self.printer.element(s.buffer, index, dtype)} + {value}"
                value = value if dtype in ("float16", "float32", "float64", "int64") else f"{dtype}({value})"
            self.source(f"b{s.buffer}[{index}] = {self.printer.stored(value, dtype)}")

    def text(self) -> str:
        return "\n".join([*self.printer.constant_lines(), "", self.source.text()])
