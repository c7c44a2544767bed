"""Modules: what they refuse, what they share, and what they do beyond MXNet's answers (test_module_training)."""
from __future__ import annotations

import pickle
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden import modules

import mxc as mx
from mxc.base import MXNetError
from mxc.runtime.array import Array


def net() -> Any:
    return modules.mlp(mx)


def made(**kinds: Any) -> Any:
    """A module that is bound to 4 rows and has parameters."""
    module = mx.mod.Module(net(), **kinds)
    module.bind([("data", (4, 6))], [("softmax_label", (4,))])
    module.init_params(None, *modules.start(mx, module.symbol, (6,)))
    return module


def batch(rows: int = 4, width: int = 6, labels: bool = True) -> Any:
    return mx.io.DataBatch([mx.nd.ones((rows, width))], [mx.nd.zeros((rows,))] if labels else None)


def iterator(size: int = 8) -> Any:
    return modules.iterator(mx, (6,), size)


REFUSED: dict[str, tuple[Callable[[], Any], type, str]] = {
    "data name": (lambda: mx.mod.Module(net(), data_names=["dat"]), ValueError, "not found.*did you mean 'data'"),
    "fixed name": (lambda: mx.mod.Module(net(), fixed_param_names=["fc1"]), ValueError, "fixed_param_names"),
    "loads": (lambda: mx.mod.Module(net(), work_load_list=[1, 2]), AssertionError, "2 loads for 1 devices"),
    "not bound": (lambda: mx.mod.Module(net()).forward(batch()), AssertionError, "call bind first"),
    "parameters first": (lambda: mx.mod.Module(net()).init_params(), AssertionError, "call bind before"),
    "bound otherwise": (lambda: mx.mod.Module(net()).bind([("x", (4, 6))]), ValueError, "don't match names"),
    "batch sizes": (lambda: mx.mod.Module(net()).bind([("data", (4, 6))], [("softmax_label", (5,))]), AssertionError,
                    "same batch size: batch_size = 4, but softmax_label has shape"),
    "devices": (lambda: mx.mod.Module(net(), context=[mx.cpu(i) for i in range(5)]).bind([("data", (4, 6))]),
                ValueError, "Too many slices"),
    "no optimizer": (lambda: made().update(), AssertionError, "call init_optimizer first"),
    "optimizer's name": (lambda: made().init_optimizer(optimizer="sdg"), ValueError, "sdg"),
    "optimizer's type": (lambda: made().init_optimizer(optimizer=3), TypeError, "must be an Optimizer"),
    "store": (lambda: made().init_optimizer(kvstore=3), TypeError, "must be KVStore, str or None"),
    "missing": (lambda: made().set_params({}, {}), RuntimeError, "fc1_bias is not presented"),
    "shape": (lambda: made().set_params({"fc1_bias": mx.nd.ones((3,))}, {}), MXNetError,
              r"'fc1_bias' has the shape \(3,\)"),
    "another one": (lambda: made().set_params({"z": mx.nd.ones((3,))}, {}, allow_missing=True), ValueError, '"z"'),
    "epochs": (lambda: made().fit(iterator()), AssertionError, "number of epochs"),
    "no iterator": (lambda: made().fit(np.ones((4, 6)), num_epoch=1), TypeError, "must be an iterator of batches"),
    "initializer": (lambda: made().init_params("xavier", force_init=True), TypeError, "Initializer, got 'xavier'"),
    "two arrays": (lambda: made().forward(mx.io.DataBatch([mx.nd.ones((4, 6))] * 2)), MXNetError, "2 data arrays"),
    "two labels": (lambda: made().forward(mx.io.DataBatch([mx.nd.ones((4, 6))], [mx.nd.ones((4,))] * 2)), MXNetError,
                   "2 label arrays"),
    "width": (lambda: made().forward(batch(width=7)), MXNetError, "fc1_weight"),
    "inference": (lambda: made().get_input_grads(), AssertionError, "inputs_need_grad=True"),
    "what is predicted": (lambda: made().predict([1]), ValueError, "NDArray or DataIter"),
    "label's name": (lambda: mx.mod.Module(net()).bind([("data", (4, 6))], [("label", (4,))]), ValueError,
                     "'label' is provided, but is no argument of the symbol"),
    "no file": (lambda: mx.mod.Module.load("nowhere", 1), MXNetError, "nowhere-symbol.json"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_says_what_is_wrong(name: str) -> None:
    call, kind, text = REFUSED[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(kind, match=text) as caught:
            call()
    assert isinstance(caught.value, MXNetError)


def test_a_label_that_nobody_feeds_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="label_names=\\['lable'\\]"):
        mx.mod.Module(net(), label_names=["lable"])


def test_a_batch_that_fails_leaves_the_module_as_it_was() -> None:
    module = made()
    module.forward(batch(), is_train=False)
    before = module.get_outputs()[0].asnumpy()
    with pytest.raises(MXNetError):
        module.forward(batch(3, 7))
    module.forward(batch(), is_train=False)
    assert (module.get_outputs()[0].asnumpy() == before).all()


@pytest.mark.parametrize("rows", [1, 3, 9])
def test_batches_of_other_sizes(rows: int) -> None:
    """Also without labels, which inference does not need."""
    module, labelled = made(), made()
    module.bind([("data", (4, 6))], for_training=False, force_rebind=True)
    for size in (4, rows, 4):
        module.forward(batch(size, labels=False))
        labelled.forward(batch(size), is_train=False)
        found = module.get_outputs()[0].asnumpy()
        assert found.shape == (size, modules.CLASSES)
        assert (found == labelled.get_outputs()[0].asnumpy()).all()
    labelled.forward(batch(rows), is_train=True)
    labelled.backward()
    assert labelled.data_shapes[0].shape == (rows, 6)


@pytest.mark.parametrize("loads,store", [((1, 1), "device"), ((1, 3), "local"), ((1, 1, 1), "object")])
def test_several_devices_train_as_one(loads: tuple[int, ...], store: str) -> None:
    alone = modules.trained(mx, "mlp", "sgd", 8).get_params()[0]
    for name, value in modules.trained(mx, "mlp", "sgd", 8, loads, store).get_params()[0].items():
        assert np.allclose(value.asnumpy(), alone[name].asnumpy(), 1e-5, 1e-5), name


def test_fit_waits_for_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are loaded, computed and measured without reading an array: values are asked for at the epoch's end."""
    read: list[int] = []
    numpy, wait = Array.numpy, Array.wait
    monkeypatch.setattr(Array, "numpy", lambda self: (read.append(1), numpy(self))[1])
    monkeypatch.setattr(Array, "wait", lambda self: (read.append(1), wait(self))[1])
    counts: list[int] = []
    mx.mod.Module(net()).fit(iterator(), eval_metric=["acc", "ce"], num_epoch=2,
                             batch_end_callback=lambda told: counts.append(len(read)))
    assert len(counts) == 10
    assert counts[0] == counts[3] and counts[5] == counts[8]


class Broken(Exception):
    pass


def raising_at(count: int) -> Callable[..., None]:
    left = [count]

    def call(*_: Any) -> None:
        left[0] -= 1
        if not left[0]:
            raise Broken

    return call


@pytest.mark.parametrize("where", ["batch_end_callback", "epoch_end_callback", "eval_batch_end_callback"])
def test_an_error_of_the_program_s_ends_the_training(where: str, tmp_path: Path) -> None:
    """The module goes on from where it was, and the last good checkpoint is there."""
    module, prefix = made(), str(tmp_path / "model")
    ends = [mx.callback.do_checkpoint(prefix)]
    kinds: dict[str, Any] = {"epoch_end_callback": ends, where: raising_at(2)}
    if where == "epoch_end_callback":
        kinds[where] = [*ends, raising_at(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Broken):
            module.fit(iterator(4), iterator(4), num_epoch=3, **kinds)
        module.fit(iterator(4), num_epoch=1)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert all(not name.startswith(".") for name in files)
    if files:
        assert mx.mod.Module.load(prefix, 1).symbol.list_arguments() == module.symbol.list_arguments()


def test_what_a_metric_raises_comes_out_of_fit() -> None:
    class Bad(mx.metric.EvalMetric):
        def update(self, labels: Any, preds: Any) -> None:
            raise Broken

    with pytest.raises(Broken):
        mx.mod.Module(net()).fit(iterator(), eval_metric=Bad("bad"), num_epoch=1)


def test_data_that_end_at_once() -> None:
    class Empty(mx.io.DataIter):
        provide_data, provide_label = [("data", (4, 6))], [("softmax_label", (4,))]

        def next(self) -> Any:
            raise StopIteration

    with pytest.raises(ValueError, match="no batch in epoch 0"):
        mx.mod.Module(net()).fit(Empty(), num_epoch=1)


def test_modules_share_parameters_and_optimizer() -> None:
    first = made()
    first.init_optimizer(optimizer_params={"learning_rate": 0.5})
    second = mx.mod.Module(net())
    second.bind([("data", (2, 6))], [("softmax_label", (2,))], shared_module=first)
    before = first.get_params()[0]["fc1_weight"].asnumpy()
    second.forward_backward(batch(2))
    second.update()
    first._params_dirty = True
    after = first.get_params()[0]["fc1_weight"].asnumpy()
    assert abs(after - before).max() > 1e-3
    assert second.optimizer_initialized and second._updater is first._updater
    wider = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc1"), name="softmax")
    third = mx.mod.Module(wider)
    with pytest.raises(MXNetError, match=r"'fc1_weight' has the shape \(3, 6\)"):
        third.bind([("data", (4, 6))], [("softmax_label", (4,))], shared_module=first)
    assert not third.binded


def test_states_and_gradients_of_inputs() -> None:
    data, state = mx.sym.var("data"), mx.sym.var("state", shape=(2, 3))
    summed = mx.sym.Group([mx.sym.broadcast_add(data, state) * 2, mx.sym.BlockGrad(state + 1)])
    module = mx.mod.Module(summed, label_names=None, state_names=["state"])
    module.bind([("data", (2, 3))], inputs_need_grad=True)
    module.init_params()
    module.set_states(value=3)
    module.forward(mx.io.DataBatch([mx.nd.ones((2, 3))]))
    outputs = module.get_outputs(merge_multi_context=False)
    assert outputs[0][0].asnumpy().tolist() == [[8] * 3] * 2
    module.set_states([outputs[1]])
    assert module.get_states(False)[0][0].asnumpy().reshape(-1)[0] == 4
    module.backward([mx.nd.ones((2, 3)), mx.nd.zeros(outputs[1][0].shape)])
    assert module.get_input_grads()[0].asnumpy().tolist() == [[2] * 3] * 2


def test_groups_of_nodes_have_devices() -> None:
    with mx.AttrScope(ctx_group="first"):
        hidden = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=8, name="fc1")
    with mx.AttrScope(ctx_group="second"):
        out = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(hidden, num_hidden=3, name="fc2"), name="softmax")
    module = mx.mod.Module(out, group2ctxs={"first": mx.cpu(1), "second": [mx.cpu(2)]})
    module.fit(iterator(), num_epoch=1)
    places = {name: array.context for name, array in module._exec_group.execs[0].arg_dict.items()}
    assert (places["fc1_weight"], places["fc2_weight"]) == (mx.cpu(1), mx.cpu(2))


def test_the_warning_of_an_optimizer_that_was_made_elsewhere() -> None:
    with pytest.warns(UserWarning, match=r"rescale_grad is not normalized .*\(1.0 vs. 0.25\)"):
        made().init_optimizer(optimizer=mx.optimizer.SGD())
    module = made()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module.init_optimizer(optimizer=mx.optimizer.SGD(rescale_grad=0.25))
    assert module._optimizer.idx2name == dict(enumerate(module._param_names))


def test_modules_train_in_threads() -> None:
    wanted = modules.both(modules.trained(mx, "mlp", "adam"))
    found: list[Any] = [None] * 3

    def work(i: int) -> None:
        found[i] = modules.both(modules.trained(mx, "mlp", "adam"))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 3


def test_a_monitor_sees_the_executors() -> None:
    module, monitor = made(), mx.mon.Monitor(1, pattern="fc2.*")
    module.install_monitor(monitor)
    monitor.tic()
    module.forward(batch())
    assert "fc2_output" in {name for _, name, _ in monitor.toc()}


def test_feed_forward_is_pickled_without_its_executor() -> None:
    values, labels = modules.data((6,))
    with pytest.warns(DeprecationWarning, match="Module"):
        model = mx.model.FeedForward(net(), num_epoch=1, numpy_batch_size=8)
    with pytest.raises(MXNetError, match="has no parameters"):
        model.predict(values)
    model.fit(values, labels)
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(values) == model.predict(values)).all()


@pytest.mark.parametrize("given,text", [((None, 3), "X must be DataIter"), ((np.ones((4, 6)), None), "y must be"),
                                        ((np.ones((4, 6)), np.ones(3)), "not equal: 4 and 3")])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_feed_forward_does_not_take(given: Any, text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        mx.model.FeedForward(net(), num_epoch=1).fit(*given)


def test_parameters_are_saved_and_loaded(tmp_path: Path) -> None:
    module, path = made(), str(tmp_path / "values.params")
    module.save_params(path)
    other = made()
    other.init_params(mx.init.Zero(), force_init=True)
    other.load_params(path)
    assert modules.both(other) == modules.both(module)
    mx.nd.save(path, {"fc1_weight": mx.nd.ones((8, 6))})
    with pytest.raises(MXNetError, match="'fc1_weight'; expected arg:NAME"):
        other.load_params(path)
    (tmp_path / "values.params").rename(tmp_path / "model-0000.params")
    with pytest.raises(MXNetError, match="expected arg:NAME"):
        mx.model.load_params(str(tmp_path / "model"), 0)


def bucketed(keys: tuple[int, ...], default: int) -> Any:
    """A module of recurrences of several lengths, which have run, trained."""
    def symbol(length: int) -> Any:
        data, hidden = mx.sym.var("data"), mx.sym.zeros((8, 16))
        params = {kind: mx.sym.var(f"cell_{kind}") for kind in ("weight", "bias")}
        for step in mx.sym.split(data, num_outputs=length, axis=1, squeeze_axis=True) if length > 1 else [data]:
            both = mx.sym.concat(step, hidden, dim=1)
            hidden = mx.sym.Activation(mx.sym.FullyConnected(both, num_hidden=16, **params), act_type="tanh")
        return mx.sym.SoftmaxOutput(hidden, name="softmax"), ("data",), ("softmax_label",)

    module = mx.mod.BucketingModule(symbol, default)
    module.bind([("data", (8, default, 5))], [("softmax_label", (8,))])
    module.init_params(mx.init.Xavier())
    module.init_optimizer()
    for key in keys:
        each = mx.io.DataBatch([mx.nd.ones((8, key, 5))], [mx.nd.ones((8,))], bucket_key=key,
                               provide_data=[("data", (8, key, 5))], provide_label=[("softmax_label", (8,))])
        module.prepare(each)
        module.forward_backward(each)
        module.update()
    return module


def test_buckets_share_memory_and_parameters() -> None:
    module, alone = bucketed((6, 3, 2, 4), 6), bucketed((6,), 6)
    executors = {key: each._exec_group.execs[0] for key, each in module._buckets.items()}
    assert list(executors) == [6, 3, 2, 4]
    for each in executors.values():
        assert each._core.memory is executors[6]._core.memory
        assert each.arg_dict["cell_weight"] is executors[6].arg_dict["cell_weight"]
    held = alone._buckets[6]._exec_group.execs[0]._core.memory.nbytes
    assert executors[6]._core.memory.nbytes <= 1.1 * held


def test_buckets_that_do_not_fit_the_default_one() -> None:
    def symbol(key: int) -> Any:
        names = {1: "other", 2: "fc"}
        fc = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=5 if key == 2 else 3, name=names.get(key, "fc"))
        return mx.sym.SoftmaxOutput(fc, name="softmax"), ("data",), ("softmax_label",)

    module = mx.mod.BucketingModule(symbol, 3)
    module.bind([("data", (4, 6))], [("softmax_label", (4,))])
    module.init_params()
    for key, text in ((1, "'other_.*' is not in the module"), (2, r"'fc_.*' has the shape")):
        with pytest.raises(MXNetError, match=text):
            module.switch_bucket(key, [("data", (4, 6))], [("softmax_label", (4,))])
        assert module._curr_bucket_key == 3


def test_buckets_are_saved_as_mxnet_saves_them(tmp_path: Path) -> None:
    module, prefix = bucketed((6, 3), 6), str(tmp_path / "model")
    module.save_checkpoint(prefix, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "model-0002.params", "model-3-symbol.json", "model-6-symbol.json", "model.buckets"]
    asked: list[int] = []

    def symbol(key: int) -> Any:
        asked.append(key)
        return mx.sym.var("data"), ("data",), ("softmax_label",)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = mx.mod.BucketingModule.load(prefix, 2, symbol, 6)
    again.bind([("data", (8, 6, 5))], [("softmax_label", (8,))], for_training=False)
    assert modules.both(again) == modules.both(module)
    with pytest.raises(AssertionError, match="sym_gen is required"):
        mx.mod.BucketingModule.load(prefix, 2)


@pytest.mark.parametrize("data, label, text", [
    ([("data", (4, 6))], [("softmax_label", 4)], "label_shapes must be a list of pairs.*'softmax_label', 4"),
    ([("data",)], None, "data_shapes must be a list of pairs"),
    (("data", (4, 6)), None, "data_shapes must be a list of pairs.*got 'data' in it"),
    (3, None, "data_shapes must be a list of pairs.*got 3"),
])
def test_shapes_that_are_no_pairs(data: Any, label: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text) as caught:
        mx.mod.Module(net()).bind(data, label)
    assert isinstance(caught.value, MXNetError)


@pytest.mark.parametrize("names", [None, ("softmax_label",)])
@pytest.mark.filterwarnings("ignore:You created Module")
def test_batches_of_other_sizes_tell_their_labels_to_a_sequence(names: Any) -> None:
    first = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=5, name="first")
    row = mx.mod.SequentialModule().add(mx.mod.Module(first, label_names=names))
    row.add(mx.mod.Module(net()), take_labels=True, auto_wiring=True)
    row.bind([("data", (4, 6))], [("softmax_label", (4,))])
    row.init_params()
    row.init_optimizer()
    for size in (4, 7, 4):
        row.forward_backward(mx.io.DataBatch(
            [mx.nd.ones((size, 6))], [mx.nd.ones(size)], provide_data=[("data", (size, 6))],
            provide_label=[("softmax_label", (size,))]))
        row.update()
        assert row.get_outputs()[0].shape == (size, 3)


@pytest.mark.parametrize("value, on_store", [(None, True), ("1", True), ("0", False)])
@pytest.mark.parametrize("kvstore", ["local", "device", "object"])
def test_the_environment_says_who_updates(value: str | None, on_store: bool, kvstore: str,
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    if value is not None:
        monkeypatch.setenv("MXNET_UPDATE_ON_KVSTORE", value)
    module = made(context=[mx.cpu(0), mx.cpu(1)])
    module.init_optimizer(mx.kv.create("local") if kvstore == "object" else kvstore)
    assert module._update_on_kvstore is on_store
    before = module.get_params()[0]["fc1_weight"].asnumpy()
    module.forward_backward(mx.io.DataBatch([mx.nd.ones((4, 6))], [mx.nd.ones(4)]))
    module.update()
    assert (module.get_params()[0]["fc1_weight"].asnumpy() != before).any()


def test_another_value_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MXNET_UPDATE_ON_KVSTORE", "no")
    with pytest.raises(MXNetError, match="MXNET_UPDATE_ON_KVSTORE must be 0 or 1, got 'no'"):
        made().init_optimizer()
