"""Pooling of convention `same`: as many windows as strides begin in the data, as in MXNet 1.9.1 (pooling_same.json)."""
import json
from pathlib import Path

import numpy as np
import pytest
from golden import make_pooling_same

import mxc as mx

REAL = json.loads((Path(__file__).parent / "golden" / "pooling_same.json").read_text())


def test_every_case_is_recorded():
    assert list(REAL) == make_pooling_same.CASES


@pytest.mark.parametrize("case", REAL)
def test_answers_are_mxnets(case):
    found, real = make_pooling_same.answer(mx, case), REAL[case]
    if real == "refused" or found == "refused":
        assert found == real
        return
    for (mine, numbers), (shape, wanted) in zip(found, real, strict=True):
        assert mine == shape
        np.testing.assert_allclose(numbers, wanted, rtol=1e-6)


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_a_graph_computes_it_compiled(kind):
    """In float32, without `pad`, which MXNet refuses."""
    x = np.random.default_rng(0).standard_normal((2, 3, 1001)).astype("float32")
    pooled = mx.sym.Pooling(mx.sym.Variable("x"), kernel=(3,), stride=(2,), pool_type=kind, pooling_convention="same")
    bound = pooled.bind(mx.cpu(), {"x": mx.nd.array(x)})
    padded = np.pad(x, ((0, 0), (0, 0), (0, 2)), constant_values=np.nan)
    parts = np.stack([padded[:, :, i:i + 1001:2] for i in range(3)])
    wanted = np.nanmax(parts, 0) if kind == "max" else np.nanmean(parts, 0)
    np.testing.assert_allclose(bound.forward()[0].asnumpy(), wanted, rtol=1e-5, atol=1e-6)
