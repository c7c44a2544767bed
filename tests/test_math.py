"""Functions written out as arithmetic: units in the last place, and the edges."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import special

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.interpret import scalar
from mxc.compiler.kernel.math import LIBM, expand
from mxc.compiler.scalar_functions import special as reference
from mxc.compiler.scalar_functions.special import ORDERS

EXACT: dict[str, Callable] = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "log2": np.log2, "log10": np.log10,
    "tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "softrelu": lambda x: np.logaddexp(x.dtype.type(0), x),
    "sinh": np.sinh, "cosh": np.cosh, "erf": special.erf,
}
LEAF = ir.load(0, ir.const(0, ir.INDEX), "float32")


def sample(dtype: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    kind = "uint32" if dtype == "float32" else "uint64"
    everywhere = rng.integers(0, np.iinfo(kind).max, 20000, dtype=kind, endpoint=True).view(dtype)
    limit = 110 if dtype == "float32" else 760
    parts = [rng.uniform(-limit, limit, 20000), rng.uniform(-2, 2, 20000), rng.normal(0, 0.05, 10000),
             [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 88.73, 709.9, -103.9]]
    return np.concatenate([everywhere, *(np.asarray(p).astype(dtype) for p in parts)])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", EXACT)
def test_units_in_the_last_place(name: str, dtype: str) -> None:
    if name == "erf" and dtype == "float64":
        pytest.skip("float64 erf is the C library's")
    x = sample(dtype)
    wide = np.float64 if dtype == "float32" else np.longdouble
    with np.errstate(all="ignore"):
        want = EXACT[name](x.astype(wide))
        got = scalar(ir.apply(name, ir.load(0, ir.const(0, ir.INDEX), dtype)), [x])
        rounded = want.astype(dtype)
        error = np.abs(got.astype(wide) - want) / np.spacing(np.abs(rounded)).astype(wide)
    finite = np.isfinite(rounded) & np.isfinite(got)
    assert error[finite].max() <= (2 if dtype == "float32" else 4)
    edge = np.abs(want) < np.finfo(dtype).max * 0.9999  # within an ulp of the largest number either is right
    assert np.array_equal(np.isnan(got), np.isnan(rounded))
    assert np.array_equal(got[~finite & edge], rounded[~finite & edge], equal_nan=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_decay(dtype: str) -> None:
    """Softmax's exponential: as exp where that is a normal number, else 0, at infinity too."""
    x = -np.abs(sample(dtype))
    wide = np.float64 if dtype == "float32" else np.longdouble
    with np.errstate(all="ignore"):
        want, got = np.exp(x.astype(wide)), scalar(ir.apply("decay", ir.load(0, ir.const(0, ir.INDEX), dtype)), [x])
        rounded = want.astype(dtype)
        error = np.abs(got.astype(wide) - want) / np.spacing(rounded).astype(wide)
    normal = rounded > np.finfo(dtype).tiny * 1.001
    assert error[normal].max() <= (2 if dtype == "float32" else 4)
    assert not got[rounded < np.finfo(dtype).tiny * 0.999].any()
    assert np.array_equal(np.isnan(got), np.isnan(x))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_power_minus_3_4(dtype: str) -> None:
    """LRN's power, over the whole range of normal numbers; smaller ones count as 0 in float32."""
    x = np.abs(sample(dtype))
    wide = np.float64 if dtype == "float32" else np.longdouble
    with np.errstate(all="ignore"):
        got = scalar(ir.apply("power_minus_3_4", ir.load(0, ir.const(0, ir.INDEX), dtype)), [x])
        want = x.astype(wide) ** wide(-0.75)
        error = np.abs(got.astype(wide) - want) / np.spacing(want.astype(dtype)).astype(wide)
    normal = (x >= np.finfo(dtype).tiny) & np.isfinite(x)
    assert error[normal].max() <= (2 if dtype == "float32" else 4)
    assert np.array_equal(np.isnan(got), np.isnan(x))
    edges = np.array([0, np.inf, -1, -np.inf, np.nan], dtype)
    with np.errstate(all="ignore"):
        found = scalar(ir.apply("power_minus_3_4", ir.load(0, ir.const(0, ir.INDEX), dtype)), [edges])
    assert np.array_equal(found, np.array([np.inf, 0, np.nan, np.nan, np.nan], dtype), equal_nan=True)


def test_normal_cdf() -> None:
    x = np.concatenate([sample("float32"), np.random.default_rng(0).uniform(-7, 7, 100000).astype("float32")])
    with np.errstate(all="ignore"):
        got = scalar(ir.apply("normal_cdf", LEAF), [x])
    there = ~np.isnan(x)
    assert np.abs(got[there] - special.ndtr(x[there].astype("float64"))).max() <= 3.2 * 2.0**-24
    assert np.all(got[x <= -5.4] == 0)  # or gelu would not vanish there
    assert np.all(got[x >= 5.4] == 1)
    assert np.isnan(got[~there]).all()


@pytest.mark.parametrize(("name", "exact", "low", "high"), [
    ("erfinv", special.erfinv, -0.99999, 0.99999), ("digamma", special.digamma, -6.3, 40)])
def test_rare_functions(name: str, exact: Callable, low: float, high: float) -> None:
    x = np.random.default_rng(0).uniform(low, high, 5000).astype("float32")
    got = scalar(ir.apply(name, LEAF), [x])
    np.testing.assert_allclose(got, exact(x.astype("float64")), rtol=2e-7, atol=1e-9)


def test_erfinv_near_one() -> None:
    x = 1 - 10 ** np.linspace(-15.9, -1, 5000)
    got = scalar(ir.apply("erfinv", ir.load(0, ir.const(0, ir.INDEX), "float64")), [x])
    np.testing.assert_allclose(got, special.erfinv(x), rtol=2e-15)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", ORDERS)
def test_derivatives_of_digamma(order: int, dtype: str) -> None:
    rng = np.random.default_rng(0)
    below = np.concatenate([rng.uniform(-4.4, 0, 1000), [-0.5, -3.5]])
    x = np.concatenate([below, rng.uniform(0, 40, 1000), 10 ** rng.uniform(-4, 6, 1000)]).astype(dtype)
    exact = special.polygamma(order, x.astype("float64"))
    # between the poles even orders have zeros, near which an error is that of the terms, which odd orders are sums of
    size = np.where(x < 0, np.abs(exact) + np.pi ** (order + 1), np.abs(exact))
    leaf = ir.load(0, ir.const(0, ir.INDEX), dtype)
    with np.errstate(all="ignore"):
        expanded = scalar(ir.apply(f"polygamma{order}", leaf), [x])
    for got in (expanded, getattr(reference, f"polygamma{order}")(x)):
        error = np.abs(got.astype("float64") - exact) / size
        assert error[x > 0].max() <= (6.1e-8 if dtype == "float32" else 3e-15)
        assert error.max() <= (6.1e-8 if dtype == "float32" else 1e-13)


@pytest.mark.parametrize("order", ORDERS)
def test_edges_of_derivatives_of_digamma(order: int) -> None:
    x = np.array([0.0, -1, -2, np.inf, 1e-200, 1e200, -np.inf, np.nan])
    pole = np.inf if order % 2 else -np.inf
    wanted = [pole, pole, pole, 0, pole, 0, np.nan, np.nan]
    with np.errstate(all="ignore"):
        got = scalar(ir.apply(f"polygamma{order}", ir.load(0, ir.const(0, ir.INDEX), "float64")), [x])
    for values in (got, getattr(reference, f"polygamma{order}")(x)):
        np.testing.assert_allclose(values, wanted, atol=1e-199)


@pytest.mark.parametrize("dtype", ir.FLOATS)
def test_only_arithmetic_is_left(dtype: str) -> None:
    x = ir.load(0, ir.const(0, ir.INDEX), dtype)
    for name, count in ir.FUNCTIONS.items():
        left = {v.op for v in ir.walk([expand(ir.apply(name, *[x] * count))])}
        assert left <= set(ir.ARITHMETIC) | LIBM | {"const", "load"}, name


def test_float16_is_rounded_once() -> None:
    x = np.linspace(-5, 5, 999).astype("float16")
    got = scalar(ir.apply("tanh", ir.load(0, ir.const(0, ir.INDEX), "float16")), [x])
    assert got.dtype == np.float16
    np.testing.assert_array_equal(got, np.tanh(x.astype("float64")).astype("float16"))


def powers(base: np.ndarray, exponent: np.ndarray | float) -> np.ndarray:
    """float32 powers by what they expand to, which calls nothing."""
    place = ir.load(1, LEAF.args[0], "float32")
    made = expand(ir.apply("pow", LEAF, ir.const(exponent, "float32") if isinstance(exponent, float) else place))
    done = {id(LEAF): base, id(place): exponent}
    for v in ir.walk([made]):
        if id(v) not in done and v is not LEAF.args[0]:
            assert v.op != "pow"
            done[id(v)] = scalar(v, [done[id(a)] for a in v.args])
    return done[id(made)]


@pytest.mark.parametrize("power", [0.0, 0.5, -0.5, 1.0, 2.0, 3.0, 4.0, -1.0, -2.0, 2.5])
def test_constant_powers(power: float) -> None:
    x = np.linspace(0.1, 9, 50).astype("float32")
    np.testing.assert_allclose(powers(x, power), x.astype("float64") ** power, rtol=3e-7)


def test_the_exponent_of_a_derivative_is_a_constant() -> None:
    exponent = ir.apply("sub", ir.const(3.0, "float32"), ir.const(1.0, "float32"))
    assert expand(ir.apply("pow", LEAF, exponent)) is ir.apply("mul", LEAF, LEAF)


EDGES = np.array([0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, 2.5, -2.5, 7, 1 / 3, np.inf, -np.inf, np.nan, 1e-45, -1e-45,
                  1e38, -1e38, 16777217, -16777215, 2.0**31], "float32")


@pytest.mark.parametrize("exponent", [None, *(float(y) for y in EDGES if abs(y) not in (0, 0.5, 1, 2))])
def test_powers_are_rounded_once(exponent: float | None) -> None:
    """The C library's edges: signs, whole exponents of negative numbers, NaN, infinities, denormal results."""
    rng = np.random.default_rng(0)
    x = [np.repeat(EDGES, len(EDGES)), rng.uniform(0, 3, 20000), rng.uniform(-9, 9, 9000), sample("float32")[:20000]]
    y = [np.tile(EDGES, len(EDGES)), rng.uniform(-20, 20, 20000), rng.integers(-9, 9, 9000), rng.uniform(-2, 2, 20000)]
    base, by = (np.concatenate([np.asarray(part).astype("float32") for part in parts]) for parts in (x, y))
    with np.errstate(all="ignore"):
        got = powers(base, by if exponent is None else exponent)
        want = np.power(base.astype("float64"), by.astype("float64") if exponent is None else exponent)
        rounded = want.astype("float32")
        finite = np.isfinite(rounded)
        error = np.abs(got[finite] - want[finite]) / np.spacing(np.abs(rounded[finite])).astype("float64")
    assert error.max(initial=0) <= (1.5 if exponent == 3 else 0.501)
    np.testing.assert_array_equal(got[~finite], rounded[~finite])
    there = ~np.isnan(rounded)
    np.testing.assert_array_equal(np.signbit(got[there]), np.signbit(rounded[there]))
