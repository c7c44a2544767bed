"""Signs of zeros, by NumPy's functions and compiled: as MXNet 1.9.1 has them (golden/signs.json)."""
import json
from pathlib import Path

import numpy as np
import pytest
from golden import make_signs

import mxc as mx
from mxc.runtime import node_calls
from mxc.runtime.array import Array

REAL = json.loads((Path(__file__).parent / "golden" / "signs.json").read_text())


def test_every_case_is_recorded():
    assert list(REAL) == make_signs.CASES


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_compiled(dtype):
    cases = [case.rsplit(" ", 1)[0] for case in REAL if case.endswith(dtype)]
    arrays = {name: mx.nd.array(value, dtype=dtype) for name, value in (("a", make_signs.A), ("b", make_signs.B))}
    variables = {name: mx.sym.Variable(name) for name in arrays}
    bound = mx.sym.Group([make_signs.symbol(mx, case, variables) for case in cases]).bind(mx.cpu(), arrays)
    found = {case: make_signs.signs(out.asnumpy()) for case, out in zip(cases, bound.forward(), strict=True)}
    assert found == {case: REAL[f"{case} {dtype}"] for case in cases}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_by_numpy(dtype):
    arrays = {name: Array.of(value.astype(dtype)) for name, value in (("a", make_signs.A), ("b", make_signs.B))}
    found, wanted = {}, {}
    for case in (case for case in REAL if case.endswith(dtype)):
        made = make_signs.symbol(mx, case.rsplit(" ", 1)[0])
        node = made.graph.outputs[0].node
        out = node_calls.apply(node, [arrays[name] for name in made.list_arguments()])[0]
        found[case], wanted[case] = make_signs.signs(out.numpy()), REAL[case]
    assert found == wanted


def test_integers_keep_their_remainders():
    a = np.arange(-4, 5, dtype="int32")
    np.testing.assert_array_equal((mx.nd.array(a, dtype="int32") % 3).asnumpy(), a % 3)
