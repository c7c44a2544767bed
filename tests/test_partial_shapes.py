"""What is inferred from a part of the shapes holds what MXNet 1.9.1 infers (golden/partial_shapes.json), or more."""
import json
from pathlib import Path

import pytest
from golden import make_partial_shapes

import mxc as mx

REAL = json.loads((Path(__file__).parent / "golden" / "partial_shapes.json").read_text())
# Where MXNet computes with the -1 that it has for a dimension that is not known, or leaves it out of a sum.
WRONG = {
    "p(S.Concat(a, b, dim=1), a=(2, 3))": [[[2, 3], [2, 0]], [[2, 0]], []],
    "p(S.Pad(a, mode='constant', pad_width=(0, 0, 0, 0, 1, 1, 1, 1)), a=(2, 3, 0, 4))": [
        [[2, 3, 0, 4]], [[2, 3, 0, 6]], []],
    "p(S.RNN(a, b, c, d, mode='lstm', state_size=4, num_layers=1, state_outputs=True), a=(5, 2, 0))": [
        [[5, 2, 0], [], [1, 2, 4], [1, 2, 4]], [[5, 2, 4], [1, 2, 4], [1, 2, 4]], []],
    "p(S.broadcast_like(a, b), a=(1, 3), b=(0, 3))": [[[1, 3], [0, 3]], [[0, 3]], []],
}


def test_every_case_is_recorded():
    assert list(REAL) == make_partial_shapes.CASES


@pytest.mark.parametrize("case", REAL)
def test_no_less_is_inferred_than_mxnet_does(case):
    found = make_partial_shapes.answer(mx, case)
    if REAL[case] == "refused":  # most of them because a rule of MXNet's computes with -1
        return
    wanted = WRONG.get(case, REAL[case])
    assert [len(group) for group in found] == [len(group) for group in wanted]
    for mine, real in zip([s for group in found for s in group], [s for group in wanted for s in group], strict=True):
        assert not real or len(mine) == len(real)
        assert all(not known or dim == known for dim, known in zip(mine, real, strict=False))


def test_more_is_inferred_where_it_follows():
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    more = mx.sym.broadcast_add(a, b).infer_shape_partial(a=(2, 0), b=(2, 3))
    assert more == ([(2, 0), (2, 3)], [(2, 3)], [])  # 1 or 3, the result has 3
    assert mx.sym.Flatten(a).infer_shape_partial(a=(0, 3, 4))[1] == [(0, 12)]
    assert mx.sym.stack(a, b, axis=1).infer_shape(a=(2, 3)) == ([(2, 3), (2, 3)], [(2, 2, 3)], [])
    assert (mx.sym.BatchNorm(a, name="n") + b).infer_shape(b=(2, 3))[2] == [(3,), (3,)]
