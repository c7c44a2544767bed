"""Loop kernels as numba.cuda source: `def kernel(b0, b1, ..., values)`, values the run-time integers.

Without accumulators: a grid-stride loop over the domain, a thread for each point. With accumulators it is the same
where little is reduced at each of them, or there are many points (`form`). Else a block for each point: its threads
share the reduce axes, and each accumulator is combined in shared memory by halving.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mxc.compiler.kernel.ir import FLOATS, Accumulator, LoopKernel, Value, computing_dtype
from mxc.compiler.scalar_functions.records import OF_KERNELS
from mxc.compiler.targets.loop_printer import ARG, LoopPrinter
from mxc.compiler.targets.scalar_printer import ScalarPrinter

WRAPPED = frozenset(["float32", "float64", "int8", "uint8", "int32", "int64"])
# Those that CUDA's library lacks: written out by targets/formulas.py for each dtype; their names end in it.
FORMULAS = tuple(name for name, f in OF_KERNELS.items() if not f.c)
MAP, THREADS, BLOCKS = "map", "threads", "blocks"  # see `form`
SHORT, MANY = 64, 1 << 15  # elements that one thread reduces at most; points from which on it reduces any number


class CudaScalars(ScalarPrinter):
    """Arrays hold float16 as such; it is widened when loaded and rounded when stored. Truth values are bytes."""

    def element(self, buffer: int, index: str, dtype: str) -> str:
        text = f"b{buffer}[{index}]"
        return f"float32({text})" if dtype == "float16" else f"({text} != uint8(0))" if dtype == "bool" else text

    def guarded(self, buffer: int, args: list[str], dtype: str) -> str:
        index, when, fill = args
        return f"{self.element(buffer, index, dtype)} if {when} else {fill}"

    def stored(self, text: str, dtype: str) -> str:
        return f"float16({text})" if dtype == "float16" else f"uint8({text})" if dtype == "bool" else text

    def plain(self, v: Value, args: list[str]) -> str:
        if v.op == "bitcast" and v.dtype.startswith("uint") and "int" in v.args[0].dtype:
            return f"{v.dtype}({args[0]})"
        if v.op in FORMULAS or v.op == "rand":
            return f"{v.op}_{self.register(v.dtype)}({', '.join(args)})"
        if v.op in ("shl", "shr", "mulhi"):
            bits = int(v.dtype.lstrip("uint"))
            left, right = (f"uint{bits}({a})" for a in args)
            if v.op == "mulhi":
                return f"{v.dtype}((uint64({left}) * uint64({right})) >> uint64({bits}))"
            return f"{v.dtype}({left} {'<<' if v.op == 'shl' else '>>'} {right})"
        if v.op == "pow" and v.dtype not in FLOATS:  # Numba's own is another power of integers
            return self.cast(f"pow_(float64({args[0]}), float64({args[1]}))", "float64", v.dtype)
        text = super().plain(v, args)
        # functions may widen: Numba's integer arithmetic does, and so does Python's math in the simulator
        return f"{v.dtype}({text})" if text.startswith(f"{v.op}_(") and v.dtype in WRAPPED else text


def form(kernel: LoopKernel) -> str:
    """Who computes a point of the domain: a thread (MAP: nothing is reduced, THREADS), or a block of them."""
    if not kernel.accumulators:
        return MAP
    return THREADS if prod(kernel.reduce) <= SHORT or prod(kernel.domain) >= MANY else BLOCKS


def loop_source(kernel: LoopKernel, threads: int) -> str:
    """numba.cuda source of a canonical kernel: constants, then the function. threads: of a block, a power of two."""
    return _Loops(kernel, threads).text()


class _Loops(LoopPrinter):
    printer_class = CudaScalars

    def __init__(self, kernel: LoopKernel, threads: int):
        super().__init__(kernel)
        self.threads = threads

    def text(self) -> str:
        kernel, source = self.kernel, self.source
        buffers = ", ".join(f"b{i}" for i in range(len(kernel.buffers)))
        with self.printer.scope(f"def kernel({buffers}, values):"):
            for i, name in enumerate([*self.extents, *self.integers.values()]):
                source(f"{name} = values[{i}]")
            source(f"points = {' * '.join(self.extents[:self.first]) or '1'}")
            source(f"size = {' * '.join(self.extents[self.first:]) or '1'}")
            if form(kernel) == BLOCKS:
                self.reduction()
            else:
                self.map()
        return "\n".join([*self.printer.constant_lines(), "", source.text()])

    def divide(self, position: str, axes: range) -> None:
        """Sets the axes to their places at a flat position."""
        self.source(f"rest = {position}")
        for a in reversed(axes):
            self.source(f"i{a} = umod(rest, n{a})")
            self.source(f"rest = udiv(rest, n{a})")
        self.open_axes.update(axes)

    def domain(self) -> range:
        return range(self.first)

    def reduce(self) -> range:
        return range(self.first, len(self.extents))

    def map(self) -> None:
        once = [s for s in self.kernel.stores if not self.uses_reduce(s)]
        every = [s for s in self.kernel.stores if self.uses_reduce(s)]
        with self.printer.scope("for point in range(cuda.grid(1), points, cuda.gridsize(1)):"):
            self.divide("point", self.domain())
            for sweep in self.sweep_order():
                self.sweep_alone(sweep)
            self.store(once)
            if every:
                with self.printer.scope("for place in range(0, size):"):
                    self.divide("place", self.reduce())
                    self.store(every)

    def sweep_alone(self, sweep: list[int]) -> None:
        """The accumulators of one sweep over the reduce axes, by one thread."""
        accumulators = [(i, self.kernel.accumulators[i]) for i in sweep]
        self.begin(accumulators)
        with self.printer.scope("for place in range(0, size):"):
            self.divide("place", self.reduce())
            for i, a in accumulators:
                self.combine(a, f"acc{i}", f"best{i}", self.printer.print(a.body), "place")
        for i, a in accumulators:
            if a.body.dtype == "float16" and a.combine not in ARG:
                self.source(f"acc{i} = half(acc{i})")
            self.acc_names[i] = f"best{i}" if a.combine in ARG else f"acc{i}"

    def begin(self, accumulators: Sequence[tuple[int, Accumulator]]) -> None:
        for i, a in accumulators:
            self.source(f"acc{i} = {self.neutral(a)}")
            if a.combine in ARG:
                self.source(f"best{i} = int64(0)")

    def reduction(self) -> None:
        kernel, source = self.kernel, self.source
        source("thread = cuda.threadIdx.x")
        for i, a in enumerate(kernel.accumulators):
            source(f"shared{i} = cuda.shared.array({self.threads}, {self.array_type(computing_dtype(a.body.dtype))})")
            if a.combine in ARG:
                source(f"places{i} = cuda.shared.array({self.threads}, int64)")
        with self.printer.scope("for point in range(cuda.blockIdx.x, points, cuda.gridDim.x):"):
            self.divide("point", self.domain())
            for sweep in self.sweep_order():
                self.sweep(sweep)
            once = [s for s in kernel.stores if not self.uses_reduce(s)]
            every = [s for s in kernel.stores if self.uses_reduce(s)]
            if once:
                with self.printer.scope("if thread == 0:"):
                    self.store(once)
            if every:
                with self.printer.scope(f"for place in range(thread, size, {self.threads}):"):
                    self.divide("place", self.reduce())
                    self.store(every)
            self.acc_names.clear()

    def sweep(self, sweep: list[int]) -> None:
        """The accumulators of one sweep over the reduce axes, finished in every thread."""
        accumulators = [(i, self.kernel.accumulators[i]) for i in sweep]
        self.begin(accumulators)
        with self.printer.scope(f"for place in range(thread, size, {self.threads}):"):
            self.divide("place", self.reduce())
            for i, a in accumulators:
                self.combine(a, f"acc{i}", f"best{i}", self.printer.print(a.body), "place")
        for i, a in accumulators:
            self.source(f"shared{i}[thread] = acc{i}")
            if a.combine in ARG:
                self.source(f"places{i}[thread] = best{i}")
        self.source("cuda.syncthreads()")
        self.source("step = cuda.blockDim.x >> 1")  # no constant: unrolled, its places would fill the registers
        with self.source.block("while step > 0:"):
            with self.source.block("if thread < step:"):
                for i, a in accumulators:
                    self.halve(i, a)
            self.source("cuda.syncthreads()")
            self.source("step = step // 2")
        for i, a in accumulators:
            name = f"best{i}" if a.combine in ARG else f"acc{i}"
            self.source(f"{name} = {'places' if a.combine in ARG else 'shared'}{i}[0]")
            if a.body.dtype == "float16" and a.combine not in ARG:
                self.source(f"acc{i} = half(acc{i})")
            self.acc_names[i] = name
        self.source("cuda.syncthreads()")

    def halve(self, i: int, a: Accumulator) -> None:
        here, there = f"shared{i}[thread]", f"shared{i}[thread + step]"
        if a.combine in ARG:  # among equals, or NaNs, the one at the lower place is kept
            mine, other = f"places{i}[thread]", f"places{i}[thread + step]"
            sign = ">" if a.combine == "argmax" else "<"
            same = f"(({there} == {here}) | (({there} != {there}) & ({here} != {here}))) & ({other} < {mine})"
            self.source(f"better = ({there} {sign} {here}) | (({there} != {there}) & ({here} == {here})) | ({same})")
            self.source(f"{here} = select(better, {there}, {here})")
            self.source(f"{mine} = select(better, {other}, {mine})")
        else:
            self.source(f"{here} = {a.combine}_({here}, {there})")

    def array_type(self, dtype: str) -> str:
        return "boolean" if dtype == "bool" else dtype
