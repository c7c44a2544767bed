"""The functions of expressions: each record agrees with how kernels compute it, and with its derivative."""
from __future__ import annotations

import math
import re

import numpy as np
import pytest
from documents import ROOT, blocks

from mxc.compiler.error import MXNetError
from mxc.compiler.functions import vocabulary
from mxc.compiler.kernel import ir
from mxc.compiler.kernel import math as kernel_math
from mxc.compiler.kernel.interpret import scalar
from mxc.compiler.kernel.math import EXPANSIONS, LIBM, check_ties
from mxc.compiler.kernel.real import Real
from mxc.compiler.ops.expr import CONSTANTS, NumpyReading, evaluate
from mxc.compiler.scalar_functions.records import BUILTINS, OF_KERNELS, Builtin, _special
from mxc.compiler.targets.cpu.library import arithmetic

# Where a function is defined and smooth: the kind of numbers that tests try, between these bounds.
DOMAINS = {"log": (0.1, 4), "log2": (0.1, 4), "log10": (0.1, 4), "log1p": (-0.9, 4), "sqrt": (0.1, 4),
           "arcsin": (-0.9, 0.9), "arccos": (-0.9, 0.9), "arctanh": (-0.9, 0.9), "arccosh": (1.1, 4),
           "erfinv": (-0.9, 0.9), "decay": (-4, -0.1), "power_minus_3_4": (0.1, 4)}
POSITIVE = ("gamma", "lgamma", "digamma", "polygamma1", "polygamma2", "polygamma3", "polygamma4")


def samples(f: Builtin) -> list[np.ndarray]:
    low, high = (0.5, 4) if f.name in POSITIVE else DOMAINS.get(f.name, (-3, 3))
    rng = np.random.default_rng(0)
    return [rng.uniform(low, high, 500) for _ in range(f.arity)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("f", BUILTINS.values(), ids=lambda f: f.name)
def test_kernels_compute_what_the_record_says(f: Builtin, dtype: str) -> None:
    arrays = [a.astype(dtype) for a in samples(f)]
    kinds = ["bool" if f.step in ("where", "and", "or", "not") and i < 2 - (f.step == "where") else dtype
             for i in range(f.arity)]
    given = [a > 0 if kind == "bool" else a for a, kind in zip(arrays, kinds, strict=True)]
    index = ir.const(0, ir.INDEX)
    value = ir.apply(f.step or f.name, *(ir.load(i, index, kind) for i, kind in enumerate(kinds)))
    exact = f.numpy(*(a if a.dtype == bool else a.astype("float64") for a in given))
    tolerance = {"normal_cdf": 3.2 * 2.0**-24}.get(f.name, 1e-7) if dtype == "float32" else 1e-13
    np.testing.assert_allclose(scalar(value, given), exact, 2e-6 if dtype == "float32" else 1e-12, tolerance)


@pytest.mark.parametrize("f", [f for f in BUILTINS.values() if f.derivatives], ids=lambda f: f.name)
def test_derivatives_equal_differences(f: Builtin) -> None:
    arrays, reading, step = samples(f), NumpyReading("float64"), 1e-6
    names = dict(zip("ab", arrays, strict=False))
    for i, text in enumerate(f.derivatives):
        ends = [f.numpy(*(a + d * (i == k) for k, a in enumerate(arrays))).astype("float64") for d in (step, -step)]
        found = np.broadcast_to(evaluate(text, reading, names), arrays[0].shape)
        assert found == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("f", BUILTINS.values(), ids=lambda f: f.name)
def test_a_record_is_whole(f: Builtin) -> None:
    assert len(f.derivatives) in (0, f.arity)
    if f.step:
        assert ir.ARITHMETIC[f.step] == f.arity
    else:
        assert ir.FUNCTIONS[f.name] == f.arity
        assert (f.name in EXPANSIONS) or arithmetic.LIBM[f.name] == f.c
    if f.c and not f.of_integers:
        assert vocabulary.FUNCTIONS[f.math] == vocabulary.FUNCTIONS[f.name] == f"{f.name}({', '.join('ab'[:f.arity])})"
    if f.c and f.c != "rint" and (f.c != "cbrt" or hasattr(math, "cbrt")):  # Python has cbrt from 3.11 on
        assert callable(getattr(math, f.math))


def test_what_is_not_tied_is_refused() -> None:
    record = Builtin("unknown", lambda x: np.log(np.cosh(x)))
    with pytest.raises(MXNetError, match=r"unknown: expected c, .* or an expansion of that name in kernel/math.py"):
        check_ties({"unknown": record}, [], ["unknown", "pow"])
    with pytest.raises(MXNetError, match=r"the expansion unknown is of no function"):
        check_ties(OF_KERNELS, [*EXPANSIONS, "unknown"], LIBM)


def test_the_guide_lists_every_function() -> None:
    text = (ROOT / "docs/adding-an-operator.md").read_text()
    listed = text.split("<!-- functions -->")[1]
    names = re.findall(r"`(\w+)(?:\([abc, ]*\))?`", listed)
    assert sorted(names) == sorted([*BUILTINS, *CONSTANTS, "cast"])
    for name, arguments in re.findall(r"`(\w+)\(([abc, ]*)\)`", listed):
        assert name == "cast" or BUILTINS[name].arity == len(arguments.split(", "))


def test_the_guide_to_functions_is_of_this_program() -> None:
    """Its records and its expansion are made, and say the same."""
    names = {"Builtin": Builtin, "_special": _special, "np": np}
    of_c, of_our_own, expanded = blocks("docs/adding-a-function.md", "python")
    for text in (of_c, of_our_own):
        f = eval(text, dict(names))
        arrays = [np.linspace(-2.5, 2.5, 40)]
        ends = [f.numpy(arrays[0] + d) for d in (1e-6, -1e-6)]
        found = evaluate(f.derivatives[0], NumpyReading("float64"), {"a": arrays[0]})
        assert found == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-6)
    made: dict[str, object] = dict(vars(kernel_math)) | {"expansion": lambda function: function}
    exec("from __future__ import annotations\n" + expanded, made)
    value = made["logcosh"](Real(ir.load(0, ir.const(0, ir.INDEX), "float64"))).value  # type: ignore[operator]
    done: dict[int, np.ndarray] = {}
    for v in ir.walk([value]):
        done[id(v)] = arrays[0] if v.op == "load" else scalar(v, [done[id(a)] for a in v.args])
    np.testing.assert_allclose(done[id(value)], f.numpy(arrays[0]), 1e-13, 1e-15)
