"""Checkpoints: what their files have when a process is killed while it writes them, and runs that go on from them."""
from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mxc as mx

# Trains for two epochs and saves each. At the KILLED-th file it is killed when half of the file is written.
KILLED = """
import os, signal, sys
import mxc as mx

left, begin, kind = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

def replace(temporary, path, replaced=os.replace):
    global left
    left -= os.path.samefile(os.path.dirname(path), ".")  # not for files of the cache
    if not left:
        os.truncate(temporary, os.path.getsize(temporary) // 2)
        os.kill(os.getpid(), signal.SIGKILL)
    replaced(temporary, path)

os.replace = replace
net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=64, name="fc"), name="softmax")
module = mx.mod.Module(net)
save = mx.callback.do_checkpoint("run") if kind == "do" else mx.callback.module_checkpoint(module, "run", 1, True)
data = mx.io.NDArrayIter(mx.nd.ones((8, 64)), mx.nd.zeros((8,)), 4)
module.fit(data, begin_epoch=begin, num_epoch=2, epoch_end_callback=save,
           optimizer_params={"learning_rate": 0.1, "momentum": 0.9})
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="a signal of POSIX")
@pytest.mark.parametrize("kind, place", [("do", 1), ("do", 2), ("module", 1), ("module", 2), ("module", 3)])
@pytest.mark.parametrize("begin", [0, 1])  # a new epoch, or one that is there already
def test_a_process_that_is_killed_leaves_the_last_good_one(kind: str, place: int, begin: int, tmp_path: Path):
    files = 2 if kind == "do" else 3
    run = [sys.executable, "-c", KILLED]
    if begin:
        subprocess.run([*run, "-1", "0", kind], cwd=tmp_path, check=True)
    else:
        place += files
    before = {path.name for path in tmp_path.iterdir()}
    done = subprocess.run([*run, str(place), str(begin), kind], cwd=tmp_path)
    assert done.returncode == -signal.SIGKILL
    there = {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")}
    assert len(list(tmp_path.iterdir())) == len(there) + 1  # the half of a file, under a name of its own
    assert before <= there and {"run-symbol.json", "run-0001.params"} <= there
    assert begin or "run-0002.params" not in there  # the parameters come last
    for path in tmp_path.glob("run-*.params"):
        module = mx.mod.Module.load(str(path)[:-len("-0001.params")], int(path.stem[-1]), kind == "module")
        module.bind([("data", (4, 64))], [("softmax_label", (4,))])
        module.init_optimizer(optimizer_params={"learning_rate": 0.1, "momentum": 0.9})
        assert module.get_params()[0]["fc_weight"].shape == (64, 64)


def network() -> mx.sym.Symbol:
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=16, name="fc1")
    net = mx.sym.Dropout(mx.sym.Activation(mx.sym.BatchNorm(net, name="norm"), act_type="relu"), p=0.2)
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=3, name="fc2"), name="softmax")


BATCHES = 5


def run(module: Any, prefix: str, begin: int, end: int, optimizer: str) -> dict[str, np.ndarray]:
    """Epochs of training; the parameters and states at their end."""
    draw = np.random.default_rng(0)
    data = mx.io.NDArrayIter(draw.normal(size=(8 * BATCHES, 6)), draw.integers(0, 3, 8 * BATCHES), 8)
    schedule = mx.lr_scheduler.FactorScheduler(step=2 * BATCHES + 1, factor=0.5, base_lr=0.02)
    settings = {"learning_rate": 0.02, "wd": 0.01, "lr_scheduler": schedule, "begin_num_update": begin * BATCHES}
    if optimizer == "sgd":
        settings["momentum"] = 0.9

    def seed(epoch: int, *_: Any) -> None:
        mx.random.seed(epoch)

    seed(begin - 1)
    module.fit(data, begin_epoch=begin, num_epoch=end, optimizer=optimizer, optimizer_params=settings,
               initializer=None if begin else mx.init.Xavier(),
               epoch_end_callback=[mx.callback.module_checkpoint(module, prefix, 1, True), seed])
    return {name: array.asnumpy() for values in module.get_params() for name, array in values.items()}


@pytest.mark.filterwarnings("ignore:Parameters already initialized")
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "rmsprop", "ftrl", "lamb"])
@pytest.mark.parametrize("devices", [1, 2])
def test_a_run_goes_on_to_the_last_digit(optimizer: str, devices: int, tmp_path: Path):
    context = [mx.cpu(i) for i in range(devices)]
    whole = run(mx.mod.Module(network(), context=context), str(tmp_path / "whole"), 0, 4, optimizer)
    run(mx.mod.Module(network(), context=context), str(tmp_path / "part"), 0, 2, optimizer)
    loaded = mx.mod.Module.load(str(tmp_path / "part"), 2, load_optimizer_states=True, context=context)
    resumed = run(loaded, str(tmp_path / "part"), 2, 4, optimizer)
    assert [name for name in whole if not np.array_equal(whole[name], resumed[name])] == []
    for kind in ("params", "states"):
        files = [tmp_path / f"{name}-0004.{kind}" for name in ("whole", "part")]
        assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize("epoch", [2, 2.0, np.int64(2), np.float32(2)])
def test_an_epoch_is_a_whole_number_however_it_is_given(epoch: Any, tmp_path: Path) -> None:
    prefix, net = str(tmp_path / "p"), mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")
    values = {"fc_weight": mx.nd.ones((3, 5)), "fc_bias": mx.nd.ones(3)}
    mx.model.save_checkpoint(prefix, epoch, net, values, {})
    mx.callback.do_checkpoint(prefix)(epoch, net, values, {})
    assert {path.name for path in tmp_path.iterdir()} == {"p-symbol.json", "p-0002.params", "p-0003.params"}
    assert mx.model.load_checkpoint(prefix, epoch)[1].keys() == values.keys()
    module = mx.mod.Module.load(prefix, epoch, label_names=None)
    module.bind([("data", (4, 5))])
    module.save_checkpoint(prefix, epoch + 2)
    assert (tmp_path / "p-0004.params").exists()


@pytest.mark.parametrize("epoch", ["2", 2.5, float("nan"), float("inf"), None])
def test_what_is_no_epoch(epoch: Any, tmp_path: Path) -> None:
    with pytest.raises(mx.MXNetError, match=r"epoch of a checkpoint must be a whole number, .* got"):
        mx.model.save_checkpoint(str(tmp_path / "p"), epoch, None, {}, {})
    with pytest.raises(TypeError, match="epoch of a checkpoint must be a whole number"):
        mx.model.load_params(str(tmp_path / "p"), epoch)


def test_arrays_of_another_kind_are_left_out_with_one_warning(tmp_path: Path) -> None:
    mx.nd.save(str(tmp_path / "p-0001.params"),
               {name: mx.nd.ones(3) for name in ("arg:w", "aux:m", "other:x", "scale:y")})
    with pytest.warns(UserWarning, match="left out 'other:x', 'scale:y'") as warned:
        args, auxs = mx.model.load_params(str(tmp_path / "p"), 1)
    assert (list(args), list(auxs), len(warned)) == (["w"], ["m"], 1)
