"""Optimizers: weights and states after 20 updates as MXNet's (golden/optimizers.json), rates and decays of each weight,
counts, what programs define themselves, and what is refused."""
from __future__ import annotations

import copy
import importlib
import json
import logging
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import mxc as mx
from mxc.base import MXNetError
from mxc.compiler.ops import table
from mxc.optimizer import Optimizer
from mxc.runtime import engine, updates

golden = importlib.import_module("golden.optimizers")
REAL = json.loads(golden.PATH.read_text())
TOLERANCE = {"float32": (1e-4, 1e-5), "float64": (1e-4, 1e-5), "float16": (2e-3, 2e-3)}
ALL = sorted(golden.SETTINGS)


def test_every_optimizer_is_recorded() -> None:
    assert list(REAL) == [json.dumps(q) for q in golden.questions()]
    assert {json.loads(q)[0] for q in REAL} == set(Optimizer.opt_registry) - {"sgld", "groupadagrad"}


@pytest.mark.parametrize("question", REAL)
@pytest.mark.filterwarnings("ignore:sums in float16")
def test_weights_and_states_are_mxnets(question: str) -> None:
    found = golden.answer(mx, question)
    assert len(found) == len(REAL[question])
    for i, ((dtype, values), (other, real)) in enumerate(zip(found, REAL[question], strict=True)):
        assert dtype == other
        relative, absolute = TOLERANCE["float16" if '"float16"' in question else dtype]
        np.testing.assert_allclose(values, real, relative, absolute, err_msg=f"array {i}")


@pytest.mark.parametrize("name", [op.name for op in table.all_operators() if op.in_place and op.name[:5] == "_mxc_"])
def test_updates_of_ours_are_the_same_compiled(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    op = table.get(name)
    given = {key: 0.3 + 0.1 * i for i, key in enumerate(op.params) if key not in ("t", "clip_gradient")}
    if "t" in op.params:
        given["t"] = 3
    size = 2 * updates.COMPILED + 6

    def weight_and_states() -> list[np.ndarray]:
        rng = np.random.RandomState(3)
        arrays = [mx.nd.array(rng.uniform(0.5, 1, size))._array for _ in op.inputs]
        updates.update(name, arrays, given, [arrays[0]])
        return [a.numpy() for a in arrays]

    compiled = weight_and_states()
    monkeypatch.setattr(updates, "COMPILED", 1 << 60)
    monkeypatch.setattr(updates, "_compiled", set())
    for ours, plain in zip(compiled, weight_and_states(), strict=True):
        np.testing.assert_allclose(ours, plain, 1e-5, 1e-6)


def test_dcasgd_with_momentum() -> None:
    """MXNet raises there for weights of more than one element."""
    optimizer = mx.optimizer.DCASGD(momentum=0.5, lamda=0.25, learning_rate=0.1, wd=0.2)
    updater, weight = mx.optimizer.get_updater(optimizer), mx.nd.array([1, -2])
    w, mom, previous = np.array([1.0, -2]), np.zeros(2), np.array([1.0, -2])
    for step in range(3):
        grad = np.array([0.5, 2]) * (step + 1)
        updater(0, mx.nd.array(grad), weight)
        mom = 0.5 * mom - 0.1 * (grad + 0.2 * w + 0.25 * grad * grad * (w - previous))
        previous, w = w, w + mom
    np.testing.assert_allclose(weight.asnumpy(), w, 1e-5)
    np.testing.assert_allclose(updater.states[0][0].asnumpy(), mom, 1e-5)
    np.testing.assert_allclose(updater.states[0][1].asnumpy(), previous, 1e-5)


def test_lars_corrects_the_momentum_of_all_weights() -> None:
    scheduler = mx.lr_scheduler.FactorScheduler(2, 0.5, base_lr=0.5)
    optimizer = mx.optimizer.LARS(momentum=0.9, eta=0.1, lr_scheduler=scheduler)
    updater, weights = mx.optimizer.get_updater(optimizer), [mx.nd.array([1, 2]) for _ in range(6)]
    for step in range(4):
        updater(list(range(6)), [mx.nd.array([step, 1])] * 6, weights)
        assert [w.asnumpy().tolist() for w in weights] == [weights[0].asnumpy().tolist()] * 6
    assert optimizer.cur_lr == 0.25 and optimizer.last_lr == 0.25


def test_sgld_is_half_a_step_and_noise_of_the_rates_variance() -> None:
    mx.random.seed(3)
    weight = mx.nd.ones((200, 500))
    updater = mx.optimizer.get_updater(mx.optimizer.SGLD(learning_rate=0.04, wd=0.5, rescale_grad=0.5))
    updater(0, mx.nd.ones(weight.shape) * 3, weight)
    noise = weight.asnumpy() - (1 - 0.02 * (1.5 + 0.5))
    assert abs(noise.mean()) < 4 * 0.2 / np.sqrt(noise.size) and abs(noise.std() - 0.2) < 0.002
    assert updater.states == {0: None}


def test_group_adagrad() -> None:
    """The numbers are MXNet's."""
    given = {"clip_gradient": 0.3, "rescale_grad": 0.5, "learning_rate": 0.1, "eps": 0.1}
    updater = mx.optimizer.get_updater(mx.optimizer.create("groupadagrad", **given))
    weight = mx.nd.array([[1, 2, 3], [4, 5, 6]])
    for _ in range(3):
        updater(0, mx.nd.array([[0.1, 0.2, 0.3], [1, 2, 3]]), weight)
    np.testing.assert_allclose(weight.asnumpy(), [[0.95719177, 1.9143835, 2.8715749],
                                                  [3.8251608, 4.825161, 5.825161]], 1e-6)
    np.testing.assert_allclose(updater.states[0].asnumpy(), [[0.035], [0.27]], 1e-6)
    make = mx.optimizer.contrib.GroupAdaGrad
    with pytest.raises(ValueError, match=r"matrices, weight 0 has the shape \(3,\)"):
        make().create_state(0, mx.nd.ones((3,)))
    with pytest.raises(ValueError, match="no weight decay"):
        mx.optimizer.get_updater(make(wd=0.1))(0, weight, weight)


NAMES = {0: "fc_weight", 1: "fc_bias", 2: "bn_gamma", 3: "bn_beta", 4: "x"}


def test_biases_do_not_decay_unless_they_are_told_to() -> None:
    optimizer = mx.optimizer.SGD(param_idx2name=NAMES, wd=0.5, learning_rate=1)
    assert optimizer._get_wds([0, 1, 2, 3, 4, 5, "fc_bias"]) == [0.5, 0, 0.5, 0, 0, 0.5, 0]
    assert optimizer.wd_mult == {"fc_bias": 0, "bn_beta": 0, "x": 0}
    optimizer.set_wd_mult({"fc_bias": 2, 4: 3, "x": 7})
    optimizer.set_lr_mult({"fc_bias": 2, 4: 3})
    assert optimizer._get_wds([0, 1, 2, 3, 4, 5]) == [0.5, 1, 0.5, 0, 1.5, 0.5]
    assert optimizer._get_lrs([0, 1, 4, 5]) == [1, 2, 3, 1]
    assert optimizer._get_lr(1) == 2 and optimizer._get_wd(4) == 1.5
    assert mx.optimizer.LARS(param_idx2name=NAMES, wd=0.5)._get_wds([0, 1, 2]) == [0.5, 0, 0]


def test_one_step_of_decay_alone() -> None:
    """A rate of 1 and no gradient: what is left of each weight is 1 - wd."""
    updater = mx.optimizer.get_updater(mx.optimizer.create("sgd", param_idx2name=NAMES, wd=0.25, learning_rate=1))
    weights = [mx.nd.ones((3,)) for _ in NAMES]
    updater(list(NAMES), [mx.nd.zeros((3,)) for _ in NAMES], weights)
    assert [w.asnumpy()[0] for w in weights] == [0.75, 1, 0.75, 1, 1]


def test_what_a_symbols_variables_say() -> None:
    weight = mx.sym.Variable("a_weight", lr_mult=3, wd_mult=0.5)
    bias = mx.sym.Variable("c_bias", wd_mult=2.0)
    net = mx.sym.FullyConnected(weight, bias, num_hidden=3, name="fc", attr={"__lr_mult__": "4"})
    given = mx.optimizer.SGD(sym=net, param_idx2name={0: "a_weight", 1: "c_bias", 2: "fc_bias"}, wd=1, learning_rate=1)
    assert given._get_lrs([0, 1, 2]) == [3, 1, 4] and given._get_wds([0, 1, 2]) == [0.5, 2, 0]
    given.set_lr_mult({0: 9})
    assert given._get_lrs([0, 1, 2]) == [9, 1, 4]


class _Parameter:
    lr_mult, wd_mult = 2, 3


def test_parameters_come_first() -> None:
    optimizer = mx.optimizer.SGD(param_dict={0: _Parameter()}, wd=0.5, learning_rate=1)
    optimizer.set_lr_mult({0: 9, 1: 9})
    assert optimizer._get_lrs([0, 1, 2]) == [2, 9, 1] and optimizer._get_wds([0, 1]) == [1.5, 0.5]
    again = copy.deepcopy(optimizer)
    assert again.param_dict == {} and again.lr_mult == {0: 9, 1: 9}
    assert pickle.loads(pickle.dumps(optimizer)).lr_mult == {0: 9, 1: 9}


def test_updates_are_counted_for_each_weight_and_device() -> None:
    optimizer = mx.optimizer.SGD(begin_num_update=5)
    optimizer._update_count(0)
    optimizer._update_count([0, 1])
    assert optimizer.num_update == 7 and optimizer._index_update_count == {0: 7, 1: 6}
    optimizer._set_current_context(1)
    optimizer._update_count(0)
    assert optimizer._all_index_update_counts == {0: {0: 7, 1: 6}, 1: {0: 6}} and optimizer.num_update == 7
    updater = mx.optimizer.get_updater(mx.optimizer.Adam())
    for device in range(2):  # each device's weights have the same indices
        weight = mx.nd.ones((2,), mx.cpu(device))
        updater(2 + device, weight, weight)
    assert updater.optimizer._all_index_update_counts == {0: {2: 1}, 1: {3: 1}}


def test_the_learning_rate() -> None:
    plain = mx.optimizer.Adam()
    assert plain.learning_rate == 0.001 and mx.optimizer.SGD().learning_rate == 0.01
    plain.set_learning_rate(0.5)
    assert plain.learning_rate == plain.lr == plain._get_lr(0) == 0.5
    scheduled = mx.optimizer.SGD(lr_scheduler=mx.lr_scheduler.FactorScheduler(2, 0.5, base_lr=0.8))
    assert scheduled.learning_rate == scheduled.lr == 0.8
    scheduled.num_update = 5
    assert scheduled.learning_rate == 0.2
    with pytest.raises(UserWarning, match="the learning rate is the scheduler's") as caught:
        scheduled.set_learning_rate(1)
    assert isinstance(caught.value, MXNetError)
    with pytest.raises(AttributeError):
        scheduled.learning_rate = 1  # type: ignore[misc]
    with pytest.raises(DeprecationWarning, match="use set_lr_mult"):
        plain.set_lr_scale({})
    scheduler = mx.lr_scheduler.FactorScheduler(2, 0.5, base_lr=0.8)
    with pytest.warns(UserWarning, match=r"learning_rate=0.3 takes the place of the scheduler's base_lr=0.8"):
        assert mx.optimizer.SGD(learning_rate=0.3, lr_scheduler=scheduler).learning_rate == 0.3
    assert scheduler.base_lr == 0.3


def test_settings_that_change_between_updates_hold() -> None:
    """Programs set rescale_grad when the batch changes, and clip_gradient."""
    optimizer = mx.optimizer.SGD(learning_rate=1)
    updater, weight, grad = mx.optimizer.get_updater(optimizer), mx.nd.zeros((2,)), mx.nd.array([1, -4])
    seen = []
    for scale, bound in ((1, None), (0.5, None), (0.5, 1), (1, 0)):
        optimizer.rescale_grad, optimizer.clip_gradient = scale, bound
        weight[:] = 0
        updater(0, grad, weight)
        seen.append((-weight.asnumpy()).tolist())
    assert seen == [[1, -4], [0.5, -2], [0.5, -1], [1, -4]]


def test_float16_without_copies_is_warned_of() -> None:
    for name in ALL:
        weight = mx.nd.ones((2,), dtype="float16")
        with pytest.warns(UserWarning, match="multi_precision=True keeps weights in float32"):
            state = mx.optimizer.create(name).create_state_multi_precision(0, weight)
        assert {a.dtype for a in golden.flat(state)} <= {np.float16}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            made = mx.optimizer.create(name, multi_precision=True).create_state_multi_precision(0, weight)
        assert {a.dtype for a in golden.flat(made)} == {np.float32}


def test_creating_by_name() -> None:
    assert isinstance(mx.optimizer.create("SgD", learning_rate=3), mx.optimizer.SGD)
    assert mx.optimizer.Optimizer.create_optimizer("adam").beta1 == 0.9
    with pytest.raises(ValueError, match=r"no optimizer is registered as 'adan'.*did you mean 'adam'"):
        mx.optimizer.create("adan")
    with pytest.raises(TypeError, match="created by its name, got 3"):
        mx.optimizer.create(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="momentun"):
        mx.optimizer.create("sgd", momentun=0.9)
    with pytest.raises(TypeError, match="param_idx2name must be a dictionary"):
        mx.optimizer.SGD(param_idx2name=["a"])
    with pytest.raises(TypeError, match="sym must be a Symbol"):
        mx.optimizer.SGD(sym=3)
    with pytest.raises(ValueError, match="batch_scale is the number of parts of a batch, at least 1; got 0"):
        mx.optimizer.LBSGD(batch_scale=0)


def test_lbsgd_says_what_it_does(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        mx.optimizer.LBSGD(batch_scale=2)
    assert caplog.records[-1].getMessage() == \
        "(Batch_scale=2.000000, warmup_epochs=5, warmup_strategy=linear, updates_per_epoch=32)"


@pytest.mark.parametrize(("size", "most"), [("0", [0, 0, 1]), ("7", [7, 7, 7]), ("100", [100, 100, 45])])
def test_how_many_weights_go_together(size: str, most: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = (mx.optimizer.SGD, mx.optimizer.LARS, mx.optimizer.LAMB)
    assert [kind().aggregate_num for kind in kinds] == [4, 4, 45]
    monkeypatch.setenv("MXNET_OPTIMIZER_AGGREGATION_SIZE", size)
    assert [kind().aggregate_num for kind in kinds] == most
    assert mx.optimizer.get_updater(mx.optimizer.SGD()).aggregate_updates == (size != "0")
    monkeypatch.setenv("MXNET_OPTIMIZER_AGGREGATION_SIZE", "x")
    with pytest.raises(MXNetError, match="must be a whole number, got 'x'"):
        mx.optimizer.SGD()


# ---- optimizers of programs

class Recorder(Optimizer):
    """What it is called with."""

    def __init__(self, most: int = 0, **kwargs: Any):
        super().__init__(**kwargs)
        self.aggregate_num, self.seen = most, []  # type: ignore[var-annotated]

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self.seen.append((index, type(weight).__name__, type(state).__name__))


def test_a_programs_optimizer_gets_weights_as_mxnet_gives_them() -> None:
    weights = [mx.nd.ones((2,), dtype=d) for d in ("float32", "float64", "float32", "float32")]
    for most, expected in ((0, [(i, "NDArray", "NoneType") for i in (0, *range(4))]),
                           (2, [(i, "tuple", "list") for i in ((0,), (0, 2), (3,), (1,))])):
        optimizer = Recorder(most)
        updater = mx.optimizer.get_updater(optimizer)
        assert updater.aggregate_updates == (most > 0)
        updater(0, weights[0], weights[0])
        updater(list(range(4)), weights, weights)
        assert optimizer.seen == expected


@pytest.mark.parametrize("inside", ["update", "update_multi_precision"])
def test_what_a_program_redefines_is_called(inside: str) -> None:
    seen = []

    def function(self: Any, index: Any, weight: Any, grad: Any, state: Any) -> None:
        seen.append(index)

    kind = type("Redefined", (mx.optimizer.Adam,), {inside: function})
    updater = mx.optimizer.get_updater(kind())
    weights = [mx.nd.ones((2,)) for _ in range(3)]
    updater([0, 1, 2], weights, weights)
    assert seen == [0, 1, 2]


def test_a_class_of_a_program() -> None:
    class Halving(Optimizer):
        def create_state(self, index: int, weight: mx.nd.NDArray) -> mx.nd.NDArray:
            return mx.nd.zeros(weight.shape)

        def update(self, index: int, weight: mx.nd.NDArray, grad: mx.nd.NDArray, state: mx.nd.NDArray) -> None:
            self._update_count(index)
            state += 1
            weight -= self._get_lr(index) * (grad * self.rescale_grad + self._get_wd(index) * weight) / 2

    try:
        assert mx.optimizer.register(Halving) is Halving
        updater = mx.optimizer.get_updater(mx.optimizer.create("halving", learning_rate=1, rescale_grad=0.5))
        weight = mx.nd.ones((2,))
        updater("w", mx.nd.ones((2,)), weight)
        updater(b"w", mx.nd.ones((2,)), weight)  # names in bytes are the same
        assert weight.asnumpy().tolist() == [0.5, 0.5] and updater.states["w"].asnumpy().tolist() == [2, 2]
        with pytest.warns(UserWarning, match="takes the name 'halving' of"):
            mx.optimizer.register(type("Halving", (Optimizer,), {}))
    finally:
        Optimizer.opt_registry.pop("halving", None)
    with pytest.raises(TypeError, match="an optimizer is a class, got 3"):
        mx.optimizer.register(3)  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="must define update"):
        Optimizer().update(0, weight, weight, None)


# ---- updaters

def test_weights_that_go_together_are_one_piece_of_work(monkeypatch: pytest.MonkeyPatch) -> None:
    pushed = []
    real = engine.push
    monkeypatch.setattr(engine, "push", lambda *args: (pushed.append(args[3]), real(*args))[1])
    for name in ("sgd", "adam", "adagrad", "rmsprop", "nag"):
        weights = [mx.nd.ones((3,)) for _ in range(9)]
        updater = mx.optimizer.get_updater(mx.optimizer.create(name))
        updater(list(range(9)), weights, weights)
        pushed.clear()
        updater(list(range(9)), weights, weights)
        assert len(pushed) == 1


def test_lists_give_what_single_calls_give() -> None:
    for name in ("adam", "nadam", "ftml", "adadelta", "signum", "lamb"):
        results = []
        for together in (False, True):
            updater, weights = golden.start(mx, name, {"wd": 0.1}, "float32")
            golden.advance(mx, updater, weights, 0, 3, together)
            results.append(np.concatenate([w.asnumpy().ravel() for w in weights]))
        np.testing.assert_array_equal(*results)


def test_what_an_updater_refuses() -> None:
    updater, weight = mx.optimizer.get_updater(mx.optimizer.SGD(momentum=0.9)), mx.nd.ones((2,))
    with pytest.raises(ValueError, match="got 2 indices, 1 gradients and 2 weights"):
        updater([0, 1], [weight], [weight, weight])
    with pytest.raises(MXNetError, match="expected the same shape"):
        updater(0, mx.nd.ones((3,)), weight)
    assert weight.asnumpy().tolist() == [1, 1]
    updater([], [], [])
    fixed = mx.nd.from_numpy(np.frombuffer(np.ones(2, "float32").tobytes(), "float32"), zero_copy=True)
    with pytest.raises(ValueError, match="read-only"):
        updater(1, weight, fixed)


def test_states_follow_their_weights_device() -> None:
    updater = mx.optimizer.get_updater(mx.optimizer.Adam())
    state = updater.sync_state_context((None, mx.nd.ones((2,)), [mx.nd.ones((2,))], 3), mx.cpu(1))
    assert isinstance(state, tuple) and state[0] is None and state[3] == 3
    assert state[1].context == state[2][0].context == mx.cpu(1)


def test_comparing_optimizers() -> None:
    compare, sgd, adam = mx.test_utils.compare_optimizer, mx.optimizer.SGD, mx.optimizer.Adam
    compare(sgd(momentum=0.9), sgd(momentum=0.9), (3, 4), "float32")
    compare(adam(multi_precision=True), adam(multi_precision=True), [(3, 4), (2,)], "float16", ntensors=2)
    with pytest.raises(AssertionError, match="Items are not equal"):
        compare(sgd(momentum=0.9), mx.optimizer.NAG(momentum=0.9), (3, 4), "float32")
    with pytest.raises(AssertionError, match="Items are not equal"):
        compare(adam(), adam(learning_rate=0.5), (3, 4), "float32", compare_states=False)
    with pytest.raises(ValueError, match="expected 2 shapes, got 1"):
        compare(sgd(), sgd(), [(3, 4)], "float32", ntensors=2)
    compare(sgd(momentum=0.9), sgd(momentum=0.9), (3, 4), "float32", w_stype="row_sparse", g_stype="row_sparse")
    np.random.seed(3)  # the gradient has no values in some of the rows
    with pytest.raises(AssertionError, match="Items are not equal"):
        compare(sgd(wd=0.1), sgd(wd=0.1, lazy_update=False), (30, 4), "float32", g_stype="row_sparse")


@pytest.mark.parametrize("name", ["sgd", "adam", "lamb"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.filterwarnings("ignore:learning_rate=nan takes the place")  # as NaN is never the scheduler's
def test_rates_that_are_no_numbers_leave_the_weights(name: str, value: float) -> None:
    scheduler = mx.lr_scheduler.FactorScheduler(1, base_lr=value)
    for settings, text in (({"learning_rate": value}, f"the learning rate is {value}"),
                           ({"lr_scheduler": scheduler, "learning_rate": value}, "FactorScheduler gave it"),
                           ({"wd": value, "learning_rate": 0.1}, f"wd is {value}")):
        weight = mx.nd.ones(3)
        updater = mx.optimizer.get_updater(mx.optimizer.create(name, **settings))
        with pytest.raises(mx.MXNetError, match=text):
            updater(0, mx.nd.ones(3), weight)
        assert weight.asnumpy().tolist() == [1, 1, 1]
