"""Joined arrays by their parts: as many kernels as there are long stretches, and the same numbers."""
from __future__ import annotations

import numpy as np
import pytest
from pass_checks import values_for
from programs import lowered

import mxc as mx
from mxc.compiler.kernel.ir import walk
from mxc.compiler.targets.cpu.preferences import FIGURES

assert FIGURES.joins is not None
SHORTEST = FIGURES.joins.shortest


def joined(axis: int, *extents: int, rows: int = SHORTEST) -> tuple[mx.sym.Symbol, dict[str, tuple[int, ...]]]:
    """relu of each part, joined along `axis` of a matrix, then doubled."""
    names = [f"x{i}" for i in range(len(extents))]
    parts = [mx.sym.relu(mx.sym.Variable(name)) for name in names]
    shapes = {name: (rows, n) if axis else (n, rows) for name, n in zip(names, extents, strict=True)}
    return mx.sym.concat(*parts, dim=axis) * 2, shapes


def run(net: mx.sym.Symbol, shapes: dict[str, tuple[int, ...]]) -> tuple[list, np.ndarray, np.ndarray]:
    """The launches, what they compute, and what MXNet's definition says."""
    made = lowered(net.graph, shapes)
    given = values_for(made.graph)
    (got,), _ = made.run(given)
    expected = 2 * np.concatenate([np.maximum(given[n], 0) for n in shapes],
                                  axis=next(i for i in (0, 1) if len({s[1 - i] for s in shapes.values()}) == 1))
    return [launch for launch in made.launches if launch.kernel is not None], got, expected


@pytest.mark.parametrize("axis", [0, 1])
def test_a_kernel_for_each_part(axis):
    launches, got, expected = run(*joined(axis, 2, 5, 2))
    assert len(launches) == 3
    assert not any(v.op in ("where", "ge", "lt") for launch in launches for v in walk(launch.kernel.roots()))
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_short_parts_stay_together():
    launches, got, expected = run(*joined(0, 1, 3, rows=SHORTEST - 1))
    assert len(launches) == 1
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_short_parts_between_long_ones_share_a_kernel():
    """As the weights and biases of a recurrent layer do, joined into one vector of parameters."""
    launches, got, expected = run(*joined(0, 3, 5, 1, 1, 3, 1, rows=SHORTEST // 2))
    joins = [any(v.op == "where" for v in walk(launch.kernel.roots())) for launch in launches]
    assert joins == [False, False, True, False, False]
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_padding_stays_one_kernel():
    net = mx.sym.Pad(mx.sym.Variable("x"), mode="constant", pad_width=(0, 0, 0, 0, 1, 1, 1, 1), constant_value=3)
    made = lowered(net.graph, {"x": (2, 4, 32, 32)})
    assert len(made.launches) == 1


def test_joins_of_joins():
    a, b, c = (mx.sym.Variable(n) for n in "abc")
    net = mx.sym.concat(mx.sym.concat(a, b, dim=1), mx.sym.tile(c, reps=(1, 3)), dim=0)
    shapes = {"a": (64, 64), "b": (64, 128), "c": (64, 64)}
    made = lowered(net.graph, shapes)
    given = values_for(made.graph)
    (got,), _ = made.run(given)
    expected = np.concatenate([np.concatenate([given["a"], given["b"]], 1), np.tile(given["c"], (1, 3))])
    np.testing.assert_array_equal(got, expected)
    assert len(made.launches) == 3
