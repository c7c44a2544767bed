"""Two kernels that measure what limits a machine: multiply-adds in registers, and copying."""
from __future__ import annotations

from typing import NamedTuple

from mxc.compiler.targets.cpu.emit.builder import Array, Builder, Value, vector_type
from mxc.compiler.targets.cpu.machine.isa import Isa

MULTIPLY, COPY = "mxc_limit_multiply", "mxc_limit_copy"
CHAINS = 12  # so many sums grow independently of each other: more than the multiply-adds that a core has in flight


class Limits(NamedTuple):
    """The addresses of both kernels, loaded; `LimitKernels` in targets/protocol.py says what they take."""

    multiply: int
    copy: int
    isa: Isa

    @property
    def lanes(self) -> int:
        return self.isa.lanes("float32")

    @property
    def scratch_bytes(self) -> int:
        return CHAINS * self.isa.vector_bytes

    @property
    def flops(self) -> int:
        return 2 * CHAINS * self.lanes


def source(isa: Isa) -> str:
    """LLVM IR of both kernels, with the ABI of kernel/ir.py.

    MULTIPLY: args (values, rounds): each unit does `rounds` rounds of multiply-adds with the float32 values (two
    vectors), and writes their sums to the thread's scratch, of CHAINS vectors. COPY: args (from, to, count): unit i
    copies `count` float32, a multiple of four vectors, at i * count.
    """
    b = Builder(f'nounwind "min-legal-vector-width"="{isa.vector_bytes * 8}"')
    lanes = isa.lanes("float32")
    signature = "ptr args, i64 first, i64 last, ptr scratch"
    with b.function(MULTIPLY, signature) as (args, first, last, scratch):
        values, sums = _array(b, args, 0), Array(b, scratch, "float32")
        x, y = values.vector(0, lanes), values.vector(lanes, lanes)
        totals = [b.zero(vector_type("float", lanes)) for _ in range(CHAINS)]
        for _unit in b.range(first, last, carry=totals):
            for _round in b.range(0, _integer(b, args, 1), carry=totals):
                totals[:] = [b.fma(total, x, y) for total in totals]
        for chain, total in enumerate(totals):
            sums.put(chain * lanes, total)
    with b.function(COPY, signature) as (args, first, last, _):
        source_, target, count = _array(b, args, 0), _array(b, args, 1), _integer(b, args, 2)
        for i in b.range(first * count, last * count, 4 * lanes):
            for part in range(4):
                target.put(i + part * lanes, source_.vector(i + part * lanes, lanes))
    return b.module()


def _integer(b: Builder, args: Value, position: int) -> Value:
    return Array(b, args, "int64")[position]


def _array(b: Builder, args: Value, position: int) -> Array:
    return Array(b, b.pointer(_integer(b, args, position)), "float32")
