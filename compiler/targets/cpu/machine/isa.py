"""Instruction sets as the few numbers that the library kernels depend on."""
from __future__ import annotations

import functools
import platform
from dataclasses import dataclass

from mxc.compiler.targets.cpu.emit.builder import BYTES


@dataclass(frozen=True)
class Isa:
    """An instruction set. vector_bytes: the size of a vector register. registers: how many of them there are. narrow:
    which of float16 and bfloat16 it converts in hardware.

    rows, vectors: the register tile of the matrix kernels, `rows` x (`vectors` registers); it leaves room for the
    operands of a multiply-add: rows * vectors + vectors + 1 <= registers. features: LLVM's names, "+" in front.
    """

    name: str
    vector_bytes: int
    registers: int
    narrow: frozenset[str]
    rows: int
    vectors: int
    features: str

    @property
    def assembles(self) -> bool:
        """Whether tiles are printed as assembly, which is that of AVX with multiply-adds."""
        return "+fma" in self.features

    @property
    def dots(self) -> bool:
        """Whether it multiplies bytes and adds four products each to sums of int32 in one instruction."""
        return "+avx512vnni" in self.features

    @property
    def pairs(self) -> bool:
        """Whether it multiplies bfloat16 and adds two products each to sums of float32 in one instruction."""
        return "+avx512bf16" in self.features

    @property
    def tiles(self) -> bool:
        """Whether it multiplies tiles: matrices of up to 16 rows of 64 bytes, which have registers of their own."""
        return "+amx-tile" in self.features

    def lanes(self, dtype: str) -> int:
        """Elements of the *computing* dtype in one register (float16 and bfloat16 are computed as float32)."""
        return self.vector_bytes // max(BYTES[dtype], 4)

    def tile(self, dtype: str) -> tuple[int, int]:
        """(MR, NR): rows and columns of the register tile for matrices of `dtype`."""
        return self.rows, self.vectors * self.lanes(dtype)


HALF = frozenset(["float16"])
AVX2 = Isa("avx2", 32, 16, HALF, 6, 2, "+avx2,+fma,+f16c")
AVX512 = Isa("avx512", 64, 32, HALF, 12, 2, "+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx2,+fma,+f16c")
AVX512_VNNI = Isa("avx512vnni", 64, 32, HALF, 12, 2, f"{AVX512.features},+avx512vnni")
AVX512_BF16 = Isa("avx512bf16", 64, 32, HALF | {"bfloat16"}, 12, 2, f"{AVX512_VNNI.features},+avx512bf16")
AMX = Isa("amx", 64, 32, AVX512_BF16.narrow, 12, 2, f"{AVX512_BF16.features},+amx-tile,+amx-int8,+amx-bf16")
NEON = Isa("neon", 16, 32, HALF, 8, 3, "+neon")
PLAIN = Isa("plain", 16, 16, frozenset(), 6, 2, "+sse4.1")
ISAS = {isa.name: isa for isa in (AVX2, AVX512, AVX512_VNNI, AVX512_BF16, AMX, NEON, PLAIN)}


def fitting(features: str) -> Isa:
    """The widest instruction set whose instructions are all in LLVM's text of a CPU's features, such as
    "+avx2,-avx512f,..."."""
    have = set(features.split(","))
    if "+neon" in have or platform.machine() in ("aarch64", "arm64"):
        return NEON
    wide = (AMX, AVX512_BF16, AVX512_VNNI, AVX512, AVX2)
    return next((isa for isa in wide if have.issuperset(isa.features.split(","))), PLAIN)


@functools.cache
def native() -> Isa:
    """The widest instruction set that this machine runs."""
    from mxc.compiler.targets.cpu.build.load import host_features

    return fitting(host_features())
