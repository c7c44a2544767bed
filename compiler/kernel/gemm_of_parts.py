"""Products of matrices that begin inside of larger arrays."""
from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar

from mxc.compiler.kernel.calls import gemm
from mxc.compiler.kernel.geometry import Gemm, N, Triple

if TYPE_CHECKING:
    from mxc.compiler.targets.preferences import Products


@dataclass(frozen=True, kw_only=True)
class GemmOfParts(Gemm[N]):
    """See `calls.gemm`. The first element of A is at starts[0] of its buffer, that of B at starts[1] of its own."""

    template: ClassVar[str] = "gemm_of_parts"

    starts: tuple[N, N]


def moved_gemm(old: Gemm[int], a_strides: Triple, b_strides: Triple, starts: tuple[int, int],
               figures: Products | None) -> Gemm[int] | None:
    """The product `old`, whose B is not packed, of operands with other strides that begin at `starts`; None for one of
    vectors, whose kernels read operands from their beginning."""
    made = gemm(old.dtype, (old.batch, old.m, old.n, old.k), a_strides, b_strides, figures=figures)
    if starts == (0, 0):
        return made
    if made.vector:
        return None
    return GemmOfParts(**{each.name: getattr(made, each.name) for each in fields(made)}, starts=starts)
