"""Saved states of optimizers: a run that goes on from them is the run that was not stopped, also where MXNet saved them
(golden/optimizer_states.json); what MXNet's Python reads in ours; bytes that are damaged or mean harm."""
from __future__ import annotations

import base64
import collections
import importlib
import json
import pickle
import random
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mxc as mx
from mxc.base import MXNetError
from mxc.optimizer import saved_states
from mxc.runtime import ndarray_file

golden, states = importlib.import_module("golden.optimizers"), importlib.import_module("golden.optimizer_states")
REAL = json.loads(states.PATH.read_text())
pytestmark = pytest.mark.filterwarnings("ignore:sums in float16")


def listed(weights: list[mx.nd.NDArray]) -> list:
    return [w.asnumpy().tolist() for w in weights]


@pytest.mark.parametrize("name", [name for name in golden.SETTINGS if name != "test"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_run_goes_on_where_it_stopped(name: str, dtype: str, tmp_path: Path) -> None:
    """Ten steps are five, a file, and five more, to the last digit."""
    settings = {**golden.SETTINGS[name][-1], **golden.SOME, "multi_precision": dtype == "float16"}
    settings.pop("scheduled", None)
    updater, weights = golden.start(mx, name, {**settings, "scheduled": True}, dtype)
    golden.advance(mx, updater, weights, 0, 5)
    (tmp_path / "states").write_bytes(updater.get_states(dump_optimizer=True))
    mx.nd.save(str(tmp_path / "weights"), weights)
    golden.advance(mx, updater, weights, 5, 5)

    other = mx.optimizer.get_updater(mx.optimizer.Test())
    other.set_states((tmp_path / "states").read_bytes())
    again = mx.nd.load(str(tmp_path / "weights"))
    golden.advance(mx, other, again, 5, 5)
    assert listed(again) == listed(weights)
    assert type(other.optimizer) is type(updater.optimizer) and other.aggregate_updates == updater.aggregate_updates


@pytest.mark.parametrize("question", REAL)
def test_a_run_of_mxnets_goes_on_here(question: str) -> None:
    assert list(REAL) == [json.dumps(q) for q in states.questions()]
    (name, settings, dtype, is_whole), _ = json.loads(question)
    updater, weights = golden.start(mx, name, settings, dtype)
    mine = updater.optimizer
    updater.set_states(base64.b64decode(REAL[question]["states"]))
    assert (updater.optimizer is mine) != is_whole and updater.states_synced == {0: False, 1: False, 2: False}
    for weight, values in zip(weights, REAL[question]["before"], strict=True):
        weight[:] = np.array(values)
    golden.advance(mx, updater, weights, states.FIRST, golden.STEPS - states.FIRST)
    assert updater.states_synced == {0: True, 1: True, 2: True}
    for weight, values in zip(weights, REAL[question]["after"], strict=True):
        np.testing.assert_allclose(weight.asnumpy(), values, *((2e-3, 2e-3) if dtype == "float16" else (1e-4, 1e-5)))


class NDArray:
    """How MXNet's array takes what is in a pickle."""

    def __init__(self, handle: object):
        assert handle is None

    def __setstate__(self, state: dict[str, Any]) -> None:
        assert isinstance(state["handle"], bytearray)
        self.values = ndarray_file.parse_array(bytes(state["handle"]))


def test_mxnets_python_reads_what_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the classes by these names, and pickle calls them."""
    for name in ("mxnet", "mxnet.ndarray", "mxnet.ndarray.ndarray", "mxnet.optimizer", "mxnet.optimizer.optimizer",
                 "mxnet.lr_scheduler"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["mxnet.ndarray.ndarray"].NDArray = NDArray  # type: ignore[attr-defined]
    for module, name in (("mxnet.optimizer.optimizer", "Adam"), ("mxnet.lr_scheduler", "FactorScheduler")):
        setattr(sys.modules[module], name, type(name, (), {}))
    updater, weights = golden.start(mx, "adam", {"scheduled": True}, "float32")
    golden.advance(mx, updater, weights, 0, 5)
    saved = updater.get_states(dump_optimizer=True)
    held, optimizer = pickle.loads(saved)
    for i, (mean, var) in updater.states.items():
        np.testing.assert_array_equal(held[i][0].values, mean.asnumpy())
        np.testing.assert_array_equal(held[i][1].values, var.asnumpy())
    assert type(optimizer).__name__ == "Adam" and type(optimizer.lr_scheduler).__name__ == "FactorScheduler"
    assert optimizer._index_update_count is optimizer._all_index_update_counts[0]
    assert vars(optimizer.lr_scheduler) == vars(updater.optimizer.lr_scheduler)
    mine = {k: v for k, v in vars(updater.optimizer).items() if k not in ("lr_scheduler", "param_dict")}
    assert {k: v for k, v in vars(optimizer).items() if k != "lr_scheduler"} == mine


VALUES = [None, True, False, 0, -1, 2 ** 31 - 1, -2 ** 31, 2 ** 31, -2 ** 80, 10 ** 40, 1.5, float("inf"), -0.0, "",
          "äß", b"", b"\0\xff", (), (1, (2, [3])), [], [1, "a", None], {}, {"a": {1: (2,)}, ("b", 3): [4]},
          collections.OrderedDict([("z", 1), ("a", 2)]), list(range(3000))]


@pytest.mark.parametrize("value", VALUES, ids=lambda v: str(v)[:30])
def test_plain_values(value: object) -> None:
    saved = saved_states.write(value)
    assert repr(pickle.loads(saved)) == repr(value)  # Python's own reads the same
    found = saved_states.read(saved)
    assert repr(found) == repr(value) and type(found) is type(value)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert repr(saved_states.read(pickle.dumps(value, protocol))) == repr(value)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_numbers_of_numpy(protocol: int) -> None:
    arrays = [np.arange(6, dtype="int64").reshape(2, 3), np.asfortranarray(np.ones((2, 3), "float16")),
              np.array([1, 2], ">f4")]
    found = saved_states.read(pickle.dumps([np.float32(1.5), np.int64(3), np.bool_(True), *arrays], protocol))
    assert found[:3] == [1.5, 3, True] and found[0].dtype == np.float32
    for ours, given in zip(found[3:], arrays, strict=True):
        np.testing.assert_array_equal(ours, given)
        assert ours.dtype == given.dtype.newbyteorder("=")
    assert saved_states.read(saved_states.write([np.float64(0.5), np.int32(3)])) == [0.5, 3]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "uint8"])
def test_arrays_keep_dtype_and_shape(dtype: str) -> None:
    given = {0: mx.nd.arange(6, dtype=dtype).reshape((1, 2, 3)), "w": (None, mx.nd.ones((1,), dtype=dtype))}
    found = saved_states.read(saved_states.write(given))
    assert found[0].dtype == given[0].dtype and found[0].shape == (1, 2, 3) and found["w"][0] is None
    np.testing.assert_array_equal(found[0].asnumpy(), given[0].asnumpy())


def test_what_occurs_twice_is_one_thing() -> None:
    shared = [1]
    cycle: list = [shared, shared]
    cycle.append(cycle)
    found = saved_states.read(saved_states.write(cycle))
    assert found[0] is found[1] and found[2] is found
    array = mx.nd.ones((2,))
    first, second = saved_states.read(saved_states.write([array, array]))
    assert first is second


class Own(mx.optimizer.Optimizer):
    """An optimizer of a program."""


class Schedule(mx.lr_scheduler.LRScheduler):
    """A scheduler of a program."""


def test_classes_of_a_program() -> None:
    optimizer = Own(lr_scheduler=Schedule(base_lr=0.5), param_dict={0: object()})
    for saved in (saved_states.write(({}, optimizer)), pickle.dumps(({}, optimizer))):
        found = saved_states.read(saved)[1]
        assert type(found) is Own and type(found.lr_scheduler) is Schedule and found.lr_scheduler.base_lr == 0.5
        assert found.param_dict == {} and found._index_update_count is found._all_index_update_counts[0]


def harmful(function: Any, *arguments: Any) -> bytes:
    """A pickle that calls a function."""

    class Call:
        def __reduce__(self) -> tuple:
            return function, arguments

    return pickle.dumps({0: Call()})


def test_nothing_is_called(tmp_path: Path) -> None:
    import os

    target = tmp_path / "made"
    for function, arguments in ((os.system, (f"touch {target}",)), (eval, ("1",)), (open, (str(target), "w")),
                                (getattr, ("", "join")), (np.save, (str(target), 1)), (mx.nd.save, (str(target), [])),
                                (mx.optimizer.create, ("sgd",)), (type, ("A", (), {}))):
        with pytest.raises(ValueError, match=r"name .*neither an array nor an optimizer or scheduler"):
            saved_states.read(harmful(function, *arguments))
    assert not target.exists()
    scheduler = mx.lr_scheduler.LRScheduler
    for state in ({"base_lr": 3}, (None, {"base_lr": 3})):  # settings for the class itself
        bad = b"\x80\x04cmxnet.lr_scheduler\nLRScheduler\n" + pickle.dumps(state)[2:-1] + b"b."
        with pytest.raises(ValueError):
            saved_states.read(bad)
    assert not hasattr(scheduler, "base_lr")
    with pytest.raises(ValueError, match="bytes made of"):
        saved_states.read(harmful(bytearray, 1 << 40))


def test_what_are_no_states(tmp_path: Path) -> None:
    updater, weights = golden.start(mx, "adam", {}, "float32")
    golden.advance(mx, updater, weights, 0, 1)
    held, saved = updater.states, updater.get_states()
    for data in (b"", b"abc", saved[:-1], saved[:len(saved) // 2], pickle.dumps([1]), pickle.dumps(({}, {})),
                 b"\x80\x04" + b"(" * 10, pickle.dumps(({}, 3, 4)), harmful(frozenset, [1]),
                 b"\x80\x04r\xff\xff\xff\x7f.", b"\x80\x04" + b"]" * 5000 + b"a" * 4999 + b"."):
        with pytest.raises(ValueError, match="optimizer states"):
            updater.set_states(data)
    for text in ("abc", None, 3):
        with pytest.raises(TypeError, match="optimizer states are bytes"):
            updater.set_states(text)
    assert updater.states is held
    updater.set_states(bytearray(saved))
    assert listed(list(updater.states[0])) == listed(list(held[0]))


def test_what_cannot_be_saved() -> None:
    optimizer = mx.optimizer.SGD()
    optimizer.mine = lambda: 3
    with pytest.raises(TypeError, match=r"SGD's settings: \['mine'\].* cannot be saved with optimizer states"):
        mx.optimizer.get_updater(optimizer).get_states(dump_optimizer=True)
    with pytest.raises(TypeError, match="too large a number"):
        saved_states.write(1 << 3000)


def test_damaged_bytes_raise_one_kind_of_error() -> None:
    chance, sources = random.Random(4), [base64.b64decode(REAL[q]["states"]) for q in REAL]
    updater, weights = golden.start(mx, "adam", {"scheduled": True}, "float32")
    golden.advance(mx, updater, weights, 0, 1)
    sources.append(updater.get_states(dump_optimizer=True))
    refused = 0
    for _ in range(1500):
        data = bytearray(chance.choice(sources))
        for _ in range(chance.choice((1, 1, 3))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            saved_states.read(bytes(data[:chance.choice((len(data), len(data), chance.randrange(len(data))))]))
        except MXNetError:
            refused += 1
    assert refused > 500


def trained(optimizer: str, devices: int = 1, kvstore: str | None = None, **params: Any) -> mx.mod.Module:
    """A module after one step; without a kvstore its devices update their parameters themselves."""
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc"), name="softmax")
    module = mx.mod.Module(net, context=[mx.cpu(k) for k in range(devices)])
    module.bind([("data", (4, 5))], [("softmax_label", (4,))])
    module.init_params()
    module.init_optimizer(kvstore=kvstore, optimizer=optimizer, optimizer_params=params)
    step(module)
    return module


def step(module: mx.mod.Module) -> None:
    module.forward_backward(mx.io.DataBatch([mx.nd.ones((4, 5))], [mx.nd.ones(4)]))
    module.update()


@pytest.mark.parametrize("devices, optimizer, params, text", [
    (1, "sgd", {"momentum": 0.9}, r"'fc_weight' \(index 0\) are \(an array of shape \(3, 5\), an array of shape "
                                  r"\(3, 5\)\); SGD expects an array of shape \(3, 5\)"),
    (1, "sgd", {}, "SGD expects None"),
    (1, "rmsprop", {"centered": True}, "RMSProp expects"),
    (1, "lamb", {}, None),
    (2, "adam", {}, r"'fc_bias' \(index 1\) are \(an array of shape \(3, 5\).*on as many devices"),
])
def test_states_that_do_not_fit_are_told_at_the_first_update(devices: int, optimizer: str, params: dict,
                                                             text: str | None, tmp_path: Path) -> None:
    trained("adam", devices).save_optimizer_states(tmp_path / "states")
    module = trained(optimizer, **params)
    module.load_optimizer_states(tmp_path / "states")
    if text is None:
        return step(module)
    before = listed(module.get_params()[0].values())
    with pytest.raises(mx.base.MXNetError, match=text):
        step(module)
    assert listed(module.get_params()[0].values()) == before


def test_a_momentum_may_be_switched_on_or_off(tmp_path: Path) -> None:
    for saved, loaded in ((0.9, 0.0), (0.0, 0.9)):
        trained("sgd", momentum=saved).save_optimizer_states(tmp_path / "states")
        module = trained("sgd", momentum=loaded)
        module.load_optimizer_states(tmp_path / "states")
        step(module)


def test_what_is_no_array_or_no_optimizer_is_told() -> None:
    updater, ones = mx.optimizer.get_updater(mx.optimizer.SGD(param_idx2name={0: "w"})), mx.nd.ones(3)
    with pytest.raises(TypeError, match=r"gradient of 'w' \(index 0\), got .*NoneType"):
        updater(0, None, ones)
    with pytest.raises(MXNetError, match=r"weight of the index 1, got .*list"):
        updater(1, ones, [1.0])
    with pytest.raises(MXNetError, match=r"needs an Optimizer.*got 3"):
        mx.kv.create("local").set_optimizer(3)


@pytest.mark.filterwarnings("error")
def test_states_by_name_where_weights_are_numbered(tmp_path: Path) -> None:
    trained("adam", 2, "local").save_optimizer_states(tmp_path / "states")
    module = trained("adam")
    module.load_optimizer_states(tmp_path / "states")
    with pytest.warns(UserWarning, match=r"states are not used: they are of 'fc_weight' .* are 0 .*kvstore"):
        step(module)
    step(module)  # it was told
    module = trained("adam", 2, "local")
    module.load_optimizer_states(tmp_path / "states")
    step(module)
