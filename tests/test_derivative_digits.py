"""First, second and third derivatives keep their digits far from zero, near it and near the ends of a domain.

In float32, against the formulas in float64, by autograd and so by the operators' own gradients and the derivatives of
these.
"""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mxc import autograd, nd

Orders = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]

EVERYWHERE = [1e-10, 1e-6, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.9, 1.5, 2, 3, 5, 8, 20, 99, 1e3, 1e5, 1e8, 1e10, 3e10, 1e12,
              1e15, 1e19, 1e25, 1e30, 1e37]
POSITIVE = np.array([x for x in EVERYWHERE if x > 1e-4])
BOTH = np.array(sorted([*EVERYWHERE, *(-x for x in EVERYWHERE)]))
WITHIN = np.array([-0.9999, -0.99, -0.9, -0.3, -1e-3, -1e-6, 1e-10, 1e-6, 1e-3, 0.3, 0.9, 0.99, 0.9999])
AFAR = BOTH[np.abs(BOTH) > 1e-4]
EXPONENTS = np.array([-80, -20, -3, -1e-3, -1e-10, 1e-10, 1e-3, 3, 20, 80])


def powers(factor: float, exponent: float, even: bool) -> Orders:
    """Of factor |x|^exponent, times the sign of x unless it is even."""
    def orders(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        found, f, e = [], factor, exponent
        for order in (1, 2, 3):
            f, e = f * e, e - 1
            found.append(f * np.abs(x) ** e * (np.sign(x) if (order + even) % 2 == 0 else 1))
        return found[0], found[1], found[2]

    return orders


def roots(u: Callable[[np.ndarray], np.ndarray], sign: float, third: float) -> Orders:
    """Of a function whose first derivative is 1 / sqrt(u), where u' is -2 sign x."""
    return lambda x: (u(x) ** -0.5, sign * x * u(x) ** -1.5, (2 * x * x + third) * u(x) ** -2.5)


TABLE: dict[str, tuple[np.ndarray, Orders]] = {
    "reciprocal": (AFAR, powers(1, -1, False)), "sqrt": (POSITIVE, powers(1, 0.5, True)),
    "rsqrt": (POSITIVE, powers(1, -0.5, True)), "cbrt": (AFAR, powers(1, 1 / 3, False)),
    "rcbrt": (AFAR, powers(1, -1 / 3, False)), "square": (BOTH, powers(1, 2, True)),
    "log": (POSITIVE, lambda x: (1 / x, -1 / x**2, 2 / x**3)),
    "log2": (POSITIVE, lambda x: (1 / x / np.log(2), -1 / x**2 / np.log(2), 2 / x**3 / np.log(2))),
    "log10": (POSITIVE, lambda x: (1 / x / np.log(10), -1 / x**2 / np.log(10), 2 / x**3 / np.log(10))),
    "log1p": (BOTH[BOTH > -0.95], lambda x: (1 / (1 + x), -1 / (1 + x)**2, 2 / (1 + x)**3)),
    "arctan": (BOTH, lambda x: (1 / (1 + x * x), -2 * x / (1 + x * x)**2, (6 * x * x - 2) / (1 + x * x)**3)),
    "arctanh": (WITHIN, lambda x: (1 / (1 - x * x), 2 * x / (1 - x * x)**2, (6 * x * x + 2) / (1 - x * x)**3)),
    "arcsinh": (BOTH, roots(lambda x: 1 + x * x, -1, -1)),
    "arccosh": (np.array([1.0001, 1.01, *POSITIVE[POSITIVE > 1]]),
                lambda x: tuple(y * s for y, s in zip(roots(lambda x: x * x - 1, 1, 1)(x), (1, -1, 1), strict=True))),
    "arcsin": (WITHIN, roots(lambda x: 1 - x * x, 1, 1)),
    "arccos": (WITHIN, lambda x: tuple(-y for y in roots(lambda x: 1 - x * x, 1, 1)(x))),
    "softsign": (BOTH, lambda x: ((1 + abs(x))**-2, -2 * np.sign(x) * (1 + abs(x))**-3, 6 * (1 + abs(x))**-4)),
    "expm1": (EXPONENTS, lambda x: (np.exp(x),) * 3), "exp": (EXPONENTS, lambda x: (np.exp(x),) * 3),
    "sinh": (EXPONENTS, lambda x: (np.cosh(x), np.sinh(x), np.cosh(x))),
    "cosh": (EXPONENTS, lambda x: (np.sinh(x), np.cosh(x), np.sinh(x))),
    "erf": (np.array([-5, -1, -0.1, -1e-10, 1e-10, 0.1, 1, 5]), lambda x: tuple(
        2 / np.sqrt(np.pi) * np.exp(-x * x) * factor for factor in (1, -2 * x, 4 * x * x - 2))),
}


@pytest.mark.parametrize("name", TABLE)
def test_derivatives_keep_their_digits(name: str):
    points, orders = TABLE[name]
    x = nd.array(points.astype("float32"))
    x.attach_grad()
    limits = np.finfo("float32")
    with autograd.record(), np.errstate(all="ignore"):
        value = getattr(nd, name)(x)
        for order, wanted in enumerate(orders(x.asnumpy().astype("float64")), 1):
            value, = autograd.grad(value, [x], create_graph=True)
            found = value.asnumpy()
            wanted = np.where(np.abs(wanted) > limits.max, np.copysign(np.inf, wanted), wanted)
            np.testing.assert_allclose(found, wanted, rtol=64 * limits.eps, atol=4 * limits.tiny,
                                       err_msg=f"order {order}")


def test_derivatives_of_quotients_far_from_zero():
    values = np.array([-1e19, -3e10, -1e10, -20, 20, 1e10, 3e10, 1e19])
    x, a = nd.array(values), nd.array(np.full(8, 3.0))
    x.attach_grad()
    with autograd.record():
        value = a / x
        for order, wanted in enumerate((-3 / values**2, 6 / values**3, -18 / values**4), 1):
            value, = autograd.grad(value, [x], create_graph=True)
            np.testing.assert_allclose(value.asnumpy(), wanted, rtol=1e-5, atol=5e-38, err_msg=f"order {order}")
