"""Executors, by plans whose kernels are the operators' references. The expected behaviour is MXNet 1.9.1's."""
from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
from reference_plan import compile_reference

from mxc import ndarray as nd
from mxc import symbol as sym
from mxc.compiler.error import MXNetError
from mxc.executor import Executor
from mxc.runtime import executor as runtime_executor
from mxc.runtime import random, storage
from mxc.runtime.context import cpu
from mxc.runtime.executor_memory import Memory


@pytest.fixture(autouse=True, params=["reference", pytest.param("native", marks=pytest.mark.slow)])
def target(request):
    return request.param


@pytest.fixture(autouse=True)
def reference(monkeypatch, target):
    """Executors compile with the reference, or for this machine; `seen` collects what the former compiled."""
    seen = []
    if target == "native":
        yield seen
        return

    def compile(*args, **kwargs):
        seen.append(compile_reference(*args, **kwargs))
        return seen[-1]

    original = runtime_executor.GraphExecutor.__init__

    def init(self, graph, context, arrays, memory=None, compiler=None, *others):
        original(self, graph, context, arrays, memory, compiler or compile, *others)

    monkeypatch.setattr(runtime_executor.GraphExecutor, "__init__", init)
    yield seen
    assert [e for c in seen for e in c.library.errors] == []


def dense(rows: int = 3, columns: int = 4, grad_req="write") -> Executor:
    """x (rows, columns) times a 2 x columns weight of twos; x is ones."""
    net = sym.FullyConnected(sym.Variable("x"), sym.Variable("w"), no_bias=True, num_hidden=2, name="fc")
    executor = net.simple_bind(cpu(), grad_req=grad_req, x=(rows, columns))
    executor.arg_dict["x"][:] = 1
    executor.arg_dict["w"][:] = 2
    return executor


def norm(grad_req="write", **params) -> Executor:
    net = sym.BatchNorm(sym.Variable("x"), name="bn", fix_gamma=False, momentum=0.5, **params)
    executor = net.simple_bind(cpu(), grad_req=grad_req, x=(4, 2))
    executor.arg_dict["x"][:] = np.arange(8).reshape(4, 2)
    executor.arg_dict["bn_gamma"][:] = 1
    executor.aux_dict["bn_moving_var"][:] = 1
    return executor


# -- running


def test_lists_and_dicts():
    executor = dense()
    assert list(executor.arg_dict) == ["x", "w"] and [a.shape for a in executor.arg_arrays] == [(3, 4), (2, 4)]
    assert executor.grad_dict["w"] is executor.grad_arrays[1] and executor.aux_arrays == []
    assert list(executor.output_dict) == ["fc_output"] and executor.outputs is executor.outputs
    assert executor.arg_dict["x"] is executor.arg_arrays[0]


def test_training_and_inference_write_the_same_arrays():
    executor = dense()
    first = executor.forward()[0]
    assert first.asnumpy().tolist() == [[8, 8]] * 3
    executor.arg_dict["x"][:] = 3
    second = executor.forward(is_train=True)[0]
    assert first.asnumpy().tolist() == second.asnumpy().tolist() == [[24, 24]] * 3
    assert executor.outputs[0].asnumpy()[0, 0] == 24


def test_compiles_a_mode_when_it_is_first_used(reference, target):
    if target == "native":
        pytest.skip("what was compiled is counted with the reference")
    executor = dense()
    assert reference == []
    executor.forward()
    executor.forward()
    assert len(reference) == 1
    executor.forward(is_train=True)
    executor.backward(nd.ones((3, 2)))
    assert len(reference) == 2


def test_forward_with_values():
    executor = dense()
    for value in (np.full((3, 4), 2.0), nd.ones((3, 4), dtype="int32") * 2):
        assert executor.forward(x=value)[0].asnumpy()[0, 0] == 16
    with pytest.raises(TypeError, match="Unknown argument y: the symbol's arguments are x, w"):
        executor.forward(y=nd.ones((3, 4)))
    with pytest.raises(ValueError, match=r"Argument x, need: \(3, 4\), received: \(2, 4\)"):
        executor.forward(x=nd.ones((2, 4)))
    with pytest.raises(ValueError, match="only accept"):
        executor.forward(x=[[1] * 4] * 3)


def test_backward_reads_arguments_as_they_are_then():
    executor = dense()
    executor.forward(is_train=True)
    executor.arg_dict["x"][:] = 5
    executor.backward(nd.ones((3, 2)))
    assert executor.grad_dict["w"].asnumpy()[0, 0] == 15


def test_backward_after_plain_forward_and_in_inference_mode():
    data = np.arange(8, dtype="float32").reshape(4, 2)
    for is_train, arguments in ((False, {}), (True, {"is_train": False})):
        executor = norm()
        executor.forward(is_train=is_train)
        before = executor.outputs[0].asnumpy()
        executor.backward(nd.array(data), **arguments)
        np.testing.assert_array_equal(executor.outputs[0].asnumpy(), before)
        np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), data / np.sqrt(1.001), rtol=1e-5)
        assert executor.aux_dict["bn_moving_var"].asnumpy().tolist() == [1, 1]
        # and back: the training run's values are computed again, the arena held the other run's
        if is_train:
            executor.backward(nd.array(data))
            assert abs(executor.grad_dict["x"].asnumpy()).max() < 1e-3


def test_moving_statistics_change_in_backward_once_a_call():
    executor = norm()
    executor.forward(is_train=True)
    assert executor.aux_dict["bn_moving_mean"].asnumpy().tolist() == [0, 0]
    for expected in ([1.5, 2], [2.25, 3]):
        executor.backward(nd.ones((4, 2)))
        assert executor.aux_dict["bn_moving_mean"].asnumpy().tolist() == expected
    np.testing.assert_allclose(executor.aux_dict["bn_moving_var"].asnumpy(), [4, 4], rtol=1e-5)
    executor.forward()
    expected = (np.arange(8).reshape(4, 2) - [2.25, 3]) / np.sqrt(4.001)
    np.testing.assert_allclose(executor.outputs[0].asnumpy(), expected, rtol=1e-4, atol=1e-6)


def test_without_gradients_backward_does_nothing():
    executor = norm(grad_req="null")
    executor.forward(is_train=True)
    executor.backward()
    assert executor.aux_dict["bn_moving_mean"].asnumpy().tolist() == [0, 0]
    assert executor.grad_dict == {"x": None, "bn_gamma": None, "bn_beta": None}


@pytest.mark.parametrize("layer", [dense, norm])
def test_grad_req(layer):
    head = nd.array(np.arange(8).reshape(4, 2)[:layer().outputs[0].shape[0]])
    once = layer()
    once.forward(is_train=True)
    once.backward(head)
    names = list(once.grad_dict)
    thrice = layer(grad_req={names[0]: "add", names[-1]: "add"})
    for name in names[1:-1]:
        assert thrice.grad_dict[name] is None
    for _ in range(3):
        thrice.forward(is_train=True)
        thrice.backward(head)
    for name in (names[0], names[-1]):
        np.testing.assert_allclose(thrice.grad_dict[name].asnumpy(), 3 * once.grad_dict[name].asnumpy(), rtol=1e-4,
                                   atol=1e-5)


def test_forward_leaves_gradients_and_auxiliary_states_alone():
    """Also where their new value is one that forward computes."""
    x = sym.Variable("x")
    executor = sym.MakeLoss(sym.exp(x)).simple_bind(cpu(), grad_req="add", x=(2,))
    for _ in range(2):
        executor.forward(is_train=True)
    assert executor.grad_dict["x"].asnumpy().tolist() == [0, 0]
    executor.backward()
    assert executor.grad_dict["x"].asnumpy().tolist() == [1, 1]
    net = sym.BatchNorm(x, name="bn", momentum=0)
    executor = net.simple_bind(cpu(), x=(4, 2))
    executor.arg_dict["x"][:] = 3
    executor.forward(is_train=True)
    assert executor.aux_dict["bn_moving_mean"].asnumpy().tolist() == [0, 0]
    executor.backward(nd.ones((4, 2)))
    assert executor.aux_dict["bn_moving_mean"].asnumpy().tolist() == [3, 3]


def test_head_gradients():
    executor = dense()
    executor.forward(is_train=True)
    for given in (None, []):
        with pytest.raises(MXNetError, match=r"head gradient for output 0 \('fc_output'\).*MakeLoss"):
            executor.backward(given)
    with pytest.raises(MXNetError, match=r"shape \(2, 2\); the output has \(3, 2\)"):
        executor.backward(nd.ones((2, 2)))
    with pytest.raises(TypeError):
        executor.backward([np.ones((3, 2))])
    for given in (nd.ones((3, 2)), [nd.ones((3, 2), dtype="float64")], [nd.ones((3, 2)), nd.ones((3, 2))],
                  {"fc_output": nd.ones((3, 2))}):
        executor.grad_dict["w"][:] = 0
        executor.backward(given)
        assert executor.grad_dict["w"].asnumpy()[0, 0] == 3


def test_losses_need_no_head_gradients():
    x = sym.Variable("x")
    fc = sym.FullyConnected(x, sym.Variable("w"), no_bias=True, num_hidden=2, name="fc")
    loss = sym.SoftmaxOutput(x, sym.Variable("label"), name="sm")
    for net in (loss, sym.Group([loss, sym.BlockGrad(fc)])):
        executor = net.simple_bind(cpu(), x=(2, 3))
        executor.forward(is_train=True)
        executor.backward()
        np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), [[-2 / 3, 1 / 3, 1 / 3]] * 2, rtol=1e-5)
    executor = sym.Group([loss, fc]).simple_bind(cpu(), x=(2, 3))
    executor.forward(is_train=True)
    with pytest.raises(MXNetError, match="output 1"):
        executor.backward()
    executor = sym.MakeLoss(fc).simple_bind(cpu(), x=(2, 3))
    executor.arg_dict["x"][:] = 1
    executor.forward(is_train=True)
    executor.backward()
    assert executor.grad_dict["w"].asnumpy().tolist() == [[2] * 3] * 2


def test_outputs_that_are_arguments_or_each_other():
    x = sym.Variable("x")
    double = x * 2
    net = sym.Group([x, x, double, double, x])
    executor = net.bind(cpu(), {"x": nd.array([1.0, 2])}, args_grad={"x": nd.zeros(2)})
    for is_train in (True, False):
        outputs = executor.forward(is_train=is_train)
        assert [o.asnumpy().tolist() for o in outputs] == [[1, 2], [1, 2], [2, 4], [2, 4], [1, 2]]
    outputs[2][:] = 50
    assert outputs[3].asnumpy().tolist() == [50, 50]
    executor.arg_dict["x"][:] = 7
    assert outputs[4].asnumpy().tolist() == [7, 7]
    executor.forward(is_train=True)
    executor.backward([nd.ones(2) * 10**i for i in range(5)])
    assert executor.grad_dict["x"].asnumpy().tolist() == [1 + 10 + 2 * 100 + 2 * 1000 + 10000] * 2
    with pytest.raises(ValueError, match="same name"):
        executor.output_dict  # noqa: B018


def test_random_numbers_differ_between_runs_and_agree_within_one():
    executor = sym.Dropout(sym.Variable("x"), p=0.5).simple_bind(cpu(), x=(64,))
    executor.arg_dict["x"][:] = 1
    random.seed(3)
    first = executor.forward(is_train=True)[0].asnumpy()
    executor.backward(nd.ones(64))
    np.testing.assert_array_equal(executor.grad_dict["x"].asnumpy(), first)
    assert (executor.forward(is_train=True)[0].asnumpy() != first).any()
    random.seed(3)
    assert (executor.forward(is_train=True)[0].asnumpy() == first).all()
    assert executor.forward()[0].asnumpy().tolist() == [1] * 64


# -- prepare


def test_prepare_runs_again_when_what_it_reads_may_have_changed(reference, target):
    if target == "native":
        pytest.skip("runs of a kernel are counted with the reference")
    net = sym.elemwise_mul(sym.Variable("x"), sym.exp(sym.Variable("w"), name="packed"), name="y")
    args = {"x": nd.ones(2), "w": nd.zeros(2)}
    executor = net.bind(cpu(), args)
    executor._core.compiler = lambda *a: reference.append(compile_reference(*a, prepare=("packed",))) or reference[-1]

    def runs():
        executor.forward()
        calls = reference[-1].library.calls
        return next(n for key, n in calls.items() if key.endswith("packed")), executor.outputs[0].asnumpy()[0]

    assert runs() == (1, 1) and runs() == (1, 1)
    args["x"][:] = 3
    assert runs() == (1, 3)
    args["w"][0:1] = np.log(2)
    assert runs()[0] == 2
    np.testing.assert_allclose(executor.outputs[0].asnumpy(), [6, 3], rtol=1e-6)
    args["w"]._array.share()[:] = 0
    assert runs() == (3, 3) and runs() == (4, 3)


    relative = executor.reshape(x=(2,))
    relative.forward()
    assert relative._core._bound["inference"]._prepared is executor._core._bound["inference"]._prepared


def test_steps_of_pythons_run_between_kernels(reference, target):
    if target == "native":
        pytest.skip("the reference makes the steps")
    x = sym.Variable("x")
    net = sym.square(sym.exp(x + 1, name="middle"), name="last")
    executor = net.bind(cpu(), {"x": nd.array([1.0, 2])})
    executor._core.compiler = lambda *a: reference.append(compile_reference(*a, host=("middle",))) or reference[-1]
    np.testing.assert_allclose(executor.forward()[0].asnumpy(), np.exp([4, 6]), rtol=1e-6)
    assert len(executor._core._bound["inference"]._tables["forward", False, False]) == 3


# -- errors of binding


def test_arrays_that_do_not_fit():
    net = dense()._symbol
    x, w = nd.ones((3, 4)), nd.ones((2, 4))
    assert net.bind(cpu(), [x, w]).grad_dict == {"x": None, "w": None}
    for arguments, message in [
            ({"args": {"x": x, "w": nd.ones((2, 5))}}, r"\(2, 5\)"),
            ({"args": {"x": x, "w": nd.ones((2, 4), dtype="float64")}}, "float64"),
            ({"args": [x, nd.ones((2, 4), ctx=cpu(1))]}, r"'w' is on cpu\(1\), but the executor is bound on cpu\(0\)"),
            ({"args": [x, w], "args_grad": [nd.ones((3, 3)), None]}, r"gradient array of argument 'x'"),
            ({"args": [x]}, "args"), ({"args": {"x": x}}, "w")]:
        with pytest.raises((MXNetError, ValueError), match=message):
            net.bind(cpu(), **arguments)


# -- reshape


def test_reshape_shares_arrays_and_memory():
    executor = dense()
    small = executor.reshape(x=(2, 4))
    assert small.arg_dict["w"] is executor.arg_dict["w"] and small.grad_dict["w"] is executor.grad_dict["w"]
    small.arg_dict["x"][:] = 9
    assert executor.arg_dict["x"].asnumpy().tolist() == [[9] * 4, [9] * 4, [1] * 4]
    assert small.forward()[0].asnumpy().tolist() == [[72, 72]] * 2
    assert small._core.memory is executor._core.memory


def test_reshape_errors():
    executor = dense()
    with pytest.raises(MXNetError, match="allow_up_sizing"):
        executor.reshape(x=(5, 4))
    assert executor.reshape(allow_up_sizing=True, x=(5, 4)).forward()[0].shape == (5, 2)
    with pytest.raises(MXNetError, match="partial_shaping"):
        executor.reshape(x=(3, 2))
    assert executor.reshape(partial_shaping=True, x=(3, 2)).arg_dict["w"].shape == (2, 2)
    with pytest.raises(MXNetError, match="allow_up_sizing"):
        executor.reshape(partial_shaping=True, x=(3, 6))
    with pytest.raises(MXNetError, match="'q' is no argument"):
        executor.reshape(q=(3, 6))


def test_relatives_do_not_disturb_each_other_and_compile_once_for_a_shape(reference):
    large = dense()
    small = large.reshape(x=(2, 4))
    large.forward(is_train=True)
    small.forward(is_train=True)
    small.backward(nd.ones((2, 2)))
    assert large.grad_dict["w"].asnumpy()[0, 0] == 2
    large.backward(nd.ones((3, 2)))
    assert large.grad_dict["w"].asnumpy()[0, 0] == 3
    count = len(reference)
    large.reshape(x=(2, 4)).forward(is_train=True)
    assert len(reference) == count


def test_memory_stays_bounded_over_many_shapes():
    rng = np.random.default_rng(0)
    executor = dense(64, 256)
    executor.forward()
    gc.collect()
    largest = storage.statistics.used
    for rows in rng.integers(1, 64, 60):
        small = executor.reshape(x=(int(rows), 256))
        small.arg_dict["x"][:] = int(rows)
        assert (small.forward()[0].asnumpy() == 512 * rows).all()
        del small
    assert storage.statistics.used <= 1.2 * largest


def test_executors_are_freed_at_once():
    executor = dense()
    executor.forward(is_train=True)
    executor.backward(nd.ones((3, 2)))
    gc.disable()
    try:
        core = weakref.ref(executor._core)
        del executor
        assert core() is None
    finally:
        gc.enable()


# -- parameters, monitors, threads


def test_copy_params_from():
    executor = norm()
    executor.copy_params_from({"bn_gamma": nd.array([5, 6], dtype="float64")}, {"bn_moving_mean": nd.ones(2)})
    assert executor.arg_dict["bn_gamma"].asnumpy().tolist() == [5, 6]
    assert executor.aux_dict["bn_moving_mean"].asnumpy().tolist() == [1, 1]
    for arguments in (({"zz": nd.ones(2)},), ({}, {"zz": nd.ones(2)})):
        with pytest.raises(ValueError, match='"zz" that is not in the'):
            executor.copy_params_from(*arguments)
        executor.copy_params_from(*arguments, allow_extra_params=True)
    with pytest.raises(MXNetError, match=r"\(3,\)"):
        executor.copy_params_from({"bn_gamma": nd.ones(3)})


def test_monitor_sees_every_nodes_outputs():
    executor = norm()
    seen = []
    executor.set_monitor_callback(lambda name, array: seen.append((name, array.shape)))
    executor.forward(is_train=True)
    assert [name for name, _ in seen] == ["bn_output", "bn_mean", "bn_var"]
    watched = executor.outputs[0].asnumpy()
    executor.backward(nd.ones((4, 2)))
    assert executor.aux_dict["bn_moving_mean"].asnumpy().tolist() == [1.5, 2]
    seen.clear()
    executor.set_monitor_callback(lambda name, array: seen.append((name, array.shape)), monitor_all=True)
    executor.forward()
    assert [name for name, _ in seen] == [
        "x", "bn_data", "bn_gamma", "bn_gamma", "bn_beta", "bn_beta", "bn_moving_mean", "bn_moving_mean",
        "bn_moving_var", "bn_moving_var", "bn_output", "bn_mean", "bn_var"]  # as MXNet: a variable, and as an input
    executor.set_monitor_callback(None)
    np.testing.assert_allclose(executor.forward(is_train=True)[0].asnumpy(), watched, rtol=1e-6)


def test_debug_str_and_symbol():
    executor = dense()
    assert "fc = FullyConnected(x, w" in executor.debug_str() and "Total 0 MB allocated" in executor.debug_str()
    assert executor.get_optimized_symbol().list_arguments() == ["x", "w"]


def test_two_threads_take_turns():
    executor = dense()
    results = []

    def work(value):
        for _ in range(10):
            results.append(executor.forward(x=np.full((3, 4), value))[0].asnumpy()[0, 0] in (8, 16))

    threads = [threading.Thread(target=work, args=(value,)) for value in (1.0, 2.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 20


def test_tables_follow_the_arena_when_it_moves():
    executor = dense()
    executor.forward()
    tables = executor._core._bound["inference"]._tables
    executor.forward()
    assert executor._core._bound["inference"]._tables is tables
    executor._core.memory.reserve(1 << 20, 0)
    assert executor.forward()[0].asnumpy()[0, 0] == 8
    assert executor._core._bound["inference"]._tables is not tables


def test_scratch_memory_that_there_is_not():
    """A failed reservation leaves nothing that a smaller one would take for its own."""
    memory = Memory(cpu())
    memory.reserve(0, 64)
    with pytest.raises(MXNetError, match="out of memory"):
        memory.reserve(0, 1 << 60)
    memory.reserve(0, 64)
    assert memory.scratch and memory.scratch_stride == 64


def test_max_pooling_of_nan():
    data = sym.Variable("data")
    executor = sym.Pooling(data, kernel=(2,), stride=(2,), pool_type="max").simple_bind(cpu(), data=(1, 1, 4))
    executor.arg_dict["data"][:] = np.array([[[np.nan, 1, 2, 3]]])
    np.testing.assert_array_equal(executor.forward(True)[0].asnumpy(), [[[np.nan, 3]]])
    executor.backward(nd.ones((1, 1, 2)))
    np.testing.assert_array_equal(executor.grad_dict["data"].asnumpy(), [[[0, 1, 0, 1]]])
