"""Optimizers' updates: as MXNet's (golden/updates.json), compiled as by NumPy, in place, and what they refuse."""
from __future__ import annotations

import importlib
import json
import weakref

import numpy as np
import pytest

import mxc as mx
from mxc.compiler.error import MXNetError
from mxc.compiler.ops import table
from mxc.runtime import updates

golden = importlib.import_module("golden.updates")
REAL = json.loads(golden.PATH.read_text())
TOLERANCE = {"float16": 4e-3, "float32": 3e-6, "float64": 1e-6}


def test_every_update_is_recorded() -> None:
    ours = {op.name for op in table.all_operators() if op.in_place and not op.name.startswith("_mxc_")}
    assert {json.loads(question)[0] for question in REAL} == ours  # tests/test_optimizer.py has the others
    assert list(REAL) == [json.dumps(q) for q in golden.questions()]


@pytest.mark.parametrize("question", REAL)
def test_updates_are_mxnets(question: str) -> None:
    for i, ((dtype, values), (other, real)) in enumerate(zip(golden.answer(mx, question), REAL[question], strict=True)):
        if i == 4 and "mp_lamb_update_phase2" in question:
            continue  # MXNet forgets weight32
        if i == 1 and '"_adamw_update"' in question:
            continue  # MXNet scales and clips the gradient in its place
        rounding = TOLERANCE["float16" if '"float16"' in question else dtype]
        if "ftml" in question and dtype == "float16":
            rounding = 2e-2  # MXNet computes 1 - beta2 ** t in float16
        assert dtype == other
        np.testing.assert_allclose(values, real, rounding, rounding, err_msg=f"array {i}")


ONCE = list({(name, dtype): [name, parameters, dtype] for name, parameters, dtype in golden.questions()
             if dtype != "float64" or name == "adam_update"}.values())


@pytest.mark.parametrize("question", ONCE, ids=lambda q: f"{q[0]}-{q[2]}")
def test_compiled_updates_are_numpys(question: list, monkeypatch: pytest.MonkeyPatch) -> None:
    if question[2] == "float16" and not question[0].startswith(("mp_", "multi_mp", "sgd_mom", "lamb")):
        pytest.skip("float16 takes the same way everywhere")
    size = 2 * updates.COMPILED + 6
    compiled = golden.apply(mx, *question, size)
    monkeypatch.setattr(updates, "COMPILED", 1 << 60)
    monkeypatch.setattr(updates, "_compiled", set())
    plain = golden.apply(mx, *question, size)
    for i, (ours, other) in enumerate(zip(compiled, plain, strict=True)):
        np.testing.assert_allclose(ours.asnumpy(), other.asnumpy(), 2e-3 if ours.dtype == np.float16 else 1e-5, 1e-5,
                                   err_msg=f"array {i}")


def _momentum(n: int) -> tuple[mx.nd.NDArray, ...]:
    return mx.nd.ones((n,)), mx.nd.ones((n,)) * 2, mx.nd.ones((n,)) * 3


@pytest.mark.parametrize("n", [3, 1 << 13])
def test_states_change_and_the_weight_only_with_out(n: int) -> None:
    weight, grad, mom = _momentum(n)
    found = mx.nd.sgd_mom_update(weight, grad, mom, lr=0.5, momentum=0.5)
    assert (found.asnumpy() == 1.5).all() and (mom.asnumpy() == 0.5).all() and (weight.asnumpy() == 1).all()
    assert mx.nd.sgd_mom_update(weight, grad, mom, lr=0.5, momentum=0.5, out=weight) is weight
    assert (weight.asnumpy() == 0.25).all() and (mom.asnumpy() == -0.75).all()
    mx.nd.sgd_update(weight, grad, lr=1, out=grad)  # any array may take the result
    assert (grad.asnumpy() == -1.75).all()


@pytest.mark.parametrize("n", [4, 1 << 13])
def test_numbers_that_are_not_finite_stay_seen(n: int) -> None:
    """As in MXNet: a NaN gradient is no weight of 0, and an infinite weight does not become NaN by a decay of 0."""
    weight, grad = mx.nd.ones((n,)), mx.nd.array([np.nan, 1] * (n // 2))
    mx.nd.ftrl_update(weight, grad, mx.nd.zeros((n,)), mx.nd.zeros((n,)), lr=0.1, out=weight)
    np.testing.assert_array_equal(np.isnan(weight.asnumpy()), np.isnan(grad.asnumpy()))
    for dtype, name in (("float32", "sgd_update"), ("float16", "mp_sgd_update")):
        weight, grad = mx.nd.array([np.inf, 1] * (n // 2), dtype=dtype), mx.nd.ones((n,), dtype=dtype)
        more = [weight.astype("float32")] if name.startswith("mp_") else []
        assert getattr(mx.nd, name)(weight, grad, *more, lr=0.5).asnumpy()[:2].tolist() == [np.inf, 0.5]


@pytest.mark.parametrize("n", [4, 1 << 13])
def test_views_of_one_array(n: int) -> None:
    """A flat array of all weights, as some programs keep."""
    flat, grad = mx.nd.ones((2, n)), mx.nd.ones((n,))
    mx.nd.sgd_update(flat[1], grad, lr=0.5, out=flat[1])
    assert flat.asnumpy()[:, 0].tolist() == [1, 0.5]
    mx.nd.sgd_mom_update(flat[0], grad, flat[1], lr=0.5, out=flat[0])  # neighbours, but apart
    assert flat.asnumpy()[:, 0].tolist() == [0.5, -0.5]
    mx.nd.sgd_update(flat[0], grad, lr=0.5, out=flat[1])
    assert flat.asnumpy()[:, 0].tolist() == [0.5, 0]


@pytest.mark.parametrize("n", [5, 20_000])
@pytest.mark.parametrize("place", [0, 1])
def test_a_gradient_that_lies_across_the_weight(n: int, place: int) -> None:
    """As if it had been read before the weight changes, whatever the number of elements."""
    values = np.random.default_rng(4).uniform(-1, 1, n).astype("float32")
    whole = mx.nd.array(values)
    parts, old = [whole[:-1], whole[1:]], [values[:-1], values[1:]]
    mx.nd.sgd_update(parts[place], parts[1 - place], lr=0.5, out=parts[place])
    expected = values.copy()
    expected[place:n - 1 + place] = old[place] - 0.5 * old[1 - place]
    np.testing.assert_allclose(whole.asnumpy(), expected, rtol=1e-5, atol=1e-6)


def test_new_rates_need_no_new_code() -> None:
    weight, grad, mom = _momentum(1 << 13)
    before = updates._Specialization.code.cache_info().misses
    for step in range(5):
        mx.nd.sgd_mom_update(weight, grad, mom, lr=0.1 / (step + 1), momentum=0.9, wd=step, out=weight)
    assert updates._Specialization.code.cache_info().misses <= before + 1


def test_small_arrays_take_a_kernel_that_is_there() -> None:
    for n in (2 * updates.COMPILED, 10):
        weight, grad = mx.nd.ones((n,)), mx.nd.ones((n,)) * 2
        for _ in range(2):
            mx.nd.sgd_update(weight, grad, lr=0.25, out=weight)
        assert weight.asnumpy().tolist() == [0] * n
        assert weight._array.update is not None


def test_a_remembered_update_is_of_the_same_arrays_alone() -> None:
    n = 2 * updates.COMPILED
    weight, grads = mx.nd.zeros((n,)), [mx.nd.ones((n,)) * factor for factor in (1, 10, 100)]
    for grad in grads:
        for rate in (1, 2, 1):
            mx.nd.sgd_update(weight, grad, lr=rate, out=weight)
    assert weight.asnumpy()[0] == -444
    momentum = mx.nd.zeros((n,))
    mx.nd.sgd_mom_update(weight, grads[0], momentum, lr=1, momentum=0.5, out=weight)
    mx.nd.sgd_update(weight, grads[0], lr=1, out=weight)
    mx.nd.sgd_mom_update(weight, grads[0], momentum, lr=1, momentum=0.5, out=weight)
    assert weight.asnumpy()[-1] == -444 - 1 - 1 - 1.5
    with pytest.raises(MXNetError, match="expected the same shape"):
        mx.nd.sgd_update(weight, mx.nd.ones((n + 1,)), lr=1, out=weight)
    seen = weakref.ref(grads[0]._array)
    del grads, grad
    assert seen() is None  # nothing keeps it alive


REFUSED = [
    (lambda w, g, m: mx.nd.sgd_update(w, g), "required attribute 'lr'"),
    (lambda w, g, m: mx.nd.sgd_update(w, g, lr=1, momentum=0.9), "unknown attribute 'momentum'"),
    (lambda w, g, m: mx.nd.sgd_mom_update(w, g, lr=1), r"takes 3 arrays \(weight, grad, mom\), got 2"),
    (lambda w, g, m: mx.nd.sgd_update(w, mx.nd.ones((4,)), lr=1), r"expected the same shape, got \(3,\) and \(4,\)"),
    (lambda w, g, m: mx.nd.sgd_update(w, g.astype("float16"), lr=1), "expected the same dtype"),
    (lambda w, g, m: mx.nd.sgd_update(w.astype("int32"), g.astype("int32"), lr=1), "a float dtype, got int32"),
    (lambda w, g, m: mx.nd.mp_sgd_update(w.astype("float16"), g.astype("float16"), w.astype("float64"), lr=1),
     "weight32: expected the same dtype, got float64 and float32"),
    (lambda w, g, m: mx.nd.lamb_update_phase2(w, g, m, mx.nd.ones((1,)), lr=1),
     r"expected r1 of one element, got \(3,\)"),
    (lambda w, g, m: mx.nd.sgd_update(w, g, lr=1, out=mx.nd.ones((4,))), r"out is float32 of shape \(4,\)"),
    (lambda w, g, m: mx.nd.sgd_update(w, g, lr=1, out=mx.nd.ones((3,), dtype="float64")), "out is float64"),
    (lambda w, g, m: mx.nd.sgd_mom_update(w, g, w, lr=1, out=w), "mom is changed in place, but shares memory"),
    (lambda w, g, m: mx.nd.multi_sgd_update(w, g, m, g, lrs=(1,), wds=(0, 0), num_weights=2, out=[w, m]),
     r"expected 2 numbers in lrs, got the shape \(1,\)"),
    (lambda w, g, m: mx.nd.multi_sgd_update(w, g, m, g, lrs=(1,), wds=(0,), out=w),
     r"takes 2 arrays \(data0, data1\), got 4"),
    (lambda w, g, m: mx.nd.multi_sgd_update(w, g, lrs=(1,), wds=(0,), out=[w, m]), "gives 1 outputs, out has 2"),
    (lambda w, g, m: mx.nd.preloaded_multi_sgd_update(w, g, m, m, out=w),
     r"expected 1 numbers in lrs, got the shape \(3,\)"),
    (lambda w, g, m: mx.nd.contrib.multi_lamb_update([w], [g], [m], [m.copy()], [1, 2], [1], [0], out=[w]),
     r"expected 1 numbers in step_count, got the shape \(2,\)"),
    (lambda w, g, m: mx.nd.contrib.group_adagrad_update(w, g, mx.nd.ones((2,)), lr=1, out=w),
     r"expected history of 3 numbers, one for each row of the weight, got \(2,\)"),
    (lambda w, g, m: mx.nd.contrib.group_adagrad_update(w, g, m, lr=1, out=[w, g]), "gives 1 outputs, out has 2"),
    (lambda w, g, m: mx.nd.reset_arrays(w, mx.nd.ones((3,), dtype="int32"), num_arrays=2),
     "a float dtype, got int32"),
]


@pytest.mark.parametrize("i", range(len(REFUSED)))
def test_what_does_not_fit_is_refused(i: int) -> None:
    weight, grad, mom = _momentum(3)
    with pytest.raises(MXNetError, match=REFUSED[i][1]):
        REFUSED[i][0](weight, grad, mom)
    assert weight.asnumpy().tolist() == [1, 1, 1] and mom.asnumpy().tolist() == [3, 3, 3]


def test_mixed_lamb_changes_the_weights_copy() -> None:
    """MXNet leaves it, so its next step would begin where this one did."""
    weight, step, norm, copy = mx.nd.ones((2,), dtype="float16"), mx.nd.ones((2,)), mx.nd.ones((1,)), mx.nd.ones((2,))
    mx.nd.mp_lamb_update_phase2(weight, step, norm, norm, copy, lr=0.25, out=weight)
    assert weight.asnumpy().tolist() == copy.asnumpy().tolist() == [0.75, 0.75]


@pytest.mark.parametrize("name", ["sgd_mom_update", "multi_sgd_mom_update"])
def test_graphs_with_updates_do_not_run(name: str) -> None:
    rates = {"lrs": (1,), "wds": (0,)} if name.startswith("multi") else {"lr": 1}
    symbol = getattr(mx.sym, name)(*[mx.sym.Variable(n) for n in ("weight", "grad", "mom")], **rates, name="step")
    symbol = mx.sym.load_json(symbol.tojson())
    assert symbol.list_arguments() == ["weight", "grad", "mom"]
    arrays = dict(zip(symbol.list_arguments(), _momentum(3), strict=True))
    with pytest.raises(MXNetError, match=rf"node 'step': operator {name} changes arrays in place.*mx\.nd\.{name}"):
        symbol.bind(mx.cpu(), arrays).forward()


def test_a_recorded_weight_is_not_overwritten() -> None:
    weight, grad, _ = _momentum(3)
    weight.attach_grad()
    with mx.autograd.record():
        (weight * 2).sum()
        with pytest.raises(MXNetError, match="computational graph"):
            mx.nd.sgd_update(weight, grad, lr=1, out=weight)
