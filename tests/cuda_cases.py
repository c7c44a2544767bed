"""Small kernels for the CUDA simulator, which runs a Python thread for each CUDA thread: every form once."""
from __future__ import annotations

from kernel_cases import F, moves, pointwise, reduction, scalars, softmax

from mxc.compiler.kernel.canonical import canonical
from mxc.compiler.kernel.ir import LoopKernel, apply, axis, const, load
from mxc.compiler.targets.cuda.loops import FORMULAS

MOVES = ("broadcast", "pad", "take", "repeat", "in place", "one point", "arange")
SCALARS = ("integer int8", "integer int32", "logic", "bits", "rand", "cast float16", "cast int32")


def _cases() -> list[LoopKernel]:
    found = [k for k in moves() if k.name in MOVES] + [k for k in scalars() if k.name in SCALARS]
    combines = ("sum", "prod", "max", "min", "argmax", "argmin")
    found += [reduction(combines, F, 3, 11, False), reduction(("sum", "max", "argmin"), "float16", 3, 9, True)]
    found += [softmax(3, 10, False), softmax(3, 10, True)]
    x = apply("abs", load(0, axis(0), F))
    names = ("exp", "log1p", "sigmoid", "softrelu", "tanh", "erf", "cbrt", "sqrt", "rint")
    found.append(pointwise("functions", (F,) * (len(names) + 1), [apply(n, x) for n in names], 40))
    return [canonical(k) for k in found]


def _written_out(functions: tuple[str, ...], dtype: str) -> LoopKernel:
    y = apply("abs", load(0, axis(0), dtype))
    arguments = {"decay": apply("neg", y), "erfinv": apply("sub", y, const(2.0, dtype))}
    values = [apply(name, arguments.get(name, y)) for name in functions]
    return canonical(pointwise(f"{functions[-1]} {dtype}", (dtype,) * (len(functions) + 1), values, 40))


CASES = [*_cases(), _written_out(("normal_cdf", "decay"), F)]
LONG = [_written_out(FORMULAS, "float64"), _written_out(FORMULAS[4:], F)]  # their code takes long to compile
