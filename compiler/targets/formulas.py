"""Functions of one or more numbers as typed Python source, written out by kernel/math.py and kernel/philox.py.

Numba compiles it, for CPUs (targets/numba/) and for GPUs (targets/cuda/), with a vocabulary of single steps for each.
"""
from __future__ import annotations

import functools

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.math import expand
from mxc.compiler.kernel.philox import uniform
from mxc.compiler.targets.scalar_printer import ScalarPrinter, SourceLines

RANDOM = {"rand": "uint32", "uniform": "float64"}  # functions of three int64, and the dtype of their result


@functools.cache
def expanded(op: str, dtypes: tuple[str, ...], result: str) -> tuple[ir.Value, tuple[ir.Value, ...]]:
    """An operation of arguments of these dtypes as arithmetic, and the values that stand for the arguments."""
    places = tuple(ir.make("acc", (), dtype, i) for i, dtype in enumerate(dtypes))
    value = uniform(*places) if op == "uniform" else ir.make(op, places, result)
    return expand(value), places


def formula(op: str, dtypes: tuple[str, ...], result: str, printer: type[ScalarPrinter] = ScalarPrinter) -> str:
    """`def op_(x0, ...)` behind the constants that it needs; "" for an operation that is a single step as it is."""
    root, places = expanded(op, dtypes, result)
    if root.op == op and root.args == places:
        return ""
    source = SourceLines()
    names = {id(place): f"x{i}" for i, place in enumerate(places)}
    printed = printer(source, lambda v: names.get(id(v)))
    with printed.scope(f"def {op}_({', '.join(names.values())}):"):
        source(f"return {printed.print(root)}")
    return "\n".join([*printed.constant_lines(), "", source.text()])
