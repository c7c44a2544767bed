"""Mixed precision by `mx.contrib.amp`: programs answer what MXNet 1.9.1 does (golden/amp_calls.json)."""
from __future__ import annotations

import functools
import importlib
import json
import math
from pathlib import Path
from typing import Any

import elsewhere
import numpy as np
import pytest

import mxc as mx

calls = importlib.import_module("golden.amp_calls")
REAL = json.loads(calls.PATH.read_text())
EXACT = 2e-5
# Rounding to bfloat16 differs from one process of MXNet to another too.
LESS_EXACT = {"trains": 0.003}
ANSWER = """
import json, sys, mxc
from golden import amp_calls
print(json.dumps(amp_calls.answer(mxc, sys.argv[1])))
"""


@functools.cache
def answers(setting: str) -> Any:
    """What mxc says in a process of its own."""
    return json.loads(elsewhere.run(ANSWER, setting))


def differences(ours: Any, theirs: Any, share: float, place: str = "") -> list[str]:
    """Where two nested values differ; numbers may by a share of them. An error may be of a class that derives from
    MXNet's."""
    if isinstance(theirs, dict) and "error" in theirs:
        return [] if isinstance(ours, dict) and theirs["error"][0] in ours.get("error", ()) else \
            [f"{place}: {ours}, MXNet {theirs}"]
    if isinstance(theirs, dict) and isinstance(ours, dict) and {*ours} == {*theirs}:
        return [d for key in theirs for d in differences(ours[key], theirs[key], share, f"{place}/{key}")]
    if isinstance(theirs, list) and isinstance(ours, list) and len(ours) == len(theirs):
        return [d for i, pair in enumerate(zip(ours, theirs, strict=True))
                for d in differences(*pair, share, f"{place}/{i}")]
    if isinstance(theirs, float) and isinstance(ours, (int, float)):
        return [] if math.isclose(ours, theirs, rel_tol=share, abs_tol=share) else [f"{place}: {ours}, MXNet {theirs}"]
    return [] if ours == theirs else [f"{place}: {ours!r}, MXNet {theirs!r}"]


def test_the_questions_are_those_that_mxnet_answered() -> None:
    assert {setting: list(cases) for setting, cases in REAL.items()} == \
        {setting: list(cases) for setting, cases in calls.CASES.items()}


@pytest.mark.parametrize(("setting", "case"), [(setting, case) for setting in REAL for case in REAL[setting]])
def test_it_does_as_mxnet(setting: str, case: str) -> None:
    share = next((share for name, share in LESS_EXACT.items() if case.startswith(name)), EXACT)
    assert differences(answers(setting)[case], REAL[setting][case], share) == []


# ---- in processes of their own

def test_an_operator_that_there_is_not_leaves_it_off() -> None:
    assert elsewhere.run("""
import mxc as mx
from mxc.contrib import amp
for given in ({"fp32_ops": ["softmaxx"]}, {"conditional_fp32_ops": [("nothing", "x", ["y"])]}):
    try:
        amp.init(**given)
    except AttributeError as error:
        print(error)
print(amp.amp._amp_initialized, mx.nd.FullyConnected(mx.nd.ones((1, 2)), mx.nd.ones((1, 2)), num_hidden=1,
                                                     no_bias=True).dtype)
""").splitlines() == [
        "there is no operator 'softmaxx' to choose a dtype for; did you mean 'softmax'?",
        "there is no operator 'nothing' to choose a dtype for", "False <class 'numpy.float32'>"]


TRAINING = """
import json, sys
import numpy as np
import mxc as mx
from mxc import autograd, gluon
from mxc.contrib import amp

dtype, hybrid, scale = sys.argv[1], sys.argv[2] == "hybrid", float(sys.argv[3])
if dtype != "float32":
    amp.init(dtype)
net = gluon.nn.HybridSequential(prefix="net_")
with net.name_scope():
    net.add(gluon.nn.Conv2D(8, 3, padding=1), gluon.nn.BatchNorm(), gluon.nn.Activation("relu"), gluon.nn.MaxPool2D(),
            gluon.nn.Dense(16, activation="tanh"), gluon.nn.LayerNorm(), gluon.nn.Dense(4))
mx.random.seed(1)
net.initialize(mx.init.Xavier())
data, label = mx.nd.array(np.random.default_rng(0).standard_normal((16, 3, 8, 8))), mx.nd.arange(16) % 4
net(data)
if hybrid:
    net.hybridize()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.05, "momentum": 0.9})
if dtype != "float32":
    amp.init_trainer(trainer)
    trainer._amp_loss_scaler._loss_scale = trainer._amp_loss_scaler._next_loss_scale = scale
loss_of, losses, scales = gluon.loss.SoftmaxCrossEntropyLoss(), [], []
for _ in range(25):
    with autograd.record():
        out = net(data)
        loss = loss_of(out, label)
        if dtype == "float32":
            loss.backward()
        else:
            with amp.scale_loss(loss, trainer) as scaled:
                autograd.backward(scaled)
            scales.append(trainer._amp_loss_scaler.loss_scale)
    trainer.step(16)
    losses.append(float(loss.mean().asscalar()))
net.save_parameters(sys.argv[4])
kinds = {np.dtype(p.data().dtype).name for p in net.collect_params().values()}
print(json.dumps([losses, scales, str(out.dtype), sorted(kinds), out.astype("float32").asnumpy().tolist()]))
"""


@functools.cache
def trained(dtype: str, way: str, folder: Path, scale: float = 1024) -> Any:
    return json.loads(elsewhere.run(TRAINING, dtype, way, scale, folder / f"{dtype}-{way}.params"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trained")


@pytest.mark.parametrize("way", ["eager", "hybrid"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_network_learns_as_in_float32(dtype: str, way: str, folder: Path) -> None:
    wide, narrow = trained("float32", way, folder), trained(dtype, way, folder)
    assert wide[0][0] > 1 and wide[0][-1] < 0.1
    np.testing.assert_allclose(narrow[0], wide[0], atol=0.01)
    assert narrow[0] != wide[0] and dtype in narrow[2] and narrow[3] == ["float32"]
    made = {}
    for name in "float32", dtype:  # what was trained in either is loaded here, where it is off
        net = mx.nd.load(str(folder / f"{name}-{way}.params"))
        assert {array.dtype for array in net.values()} == {np.float32}
        made[name] = net
    assert made["float32"].keys() == made[dtype].keys()


def test_steps_that_overflow_are_left_out(folder: Path) -> None:
    """A scale that float16's gradients do not bear halves until they do."""
    losses, scales, *_ = trained("float16", "hybrid", folder, 2.0**24)
    (wide, *_), left_out = trained("float32", "hybrid", folder), scales.index(scales[-1])
    assert 3 < left_out < 20 and scales[1:left_out + 1] == [2.0**(24 - i) for i in range(left_out)]
    assert {*losses[:left_out]} == {losses[0]}
    np.testing.assert_allclose(losses[left_out - 1:], wide[:26 - left_out], atol=0.01)


MODULE = """
import json, sys
import numpy as np
import mxc as mx
from mxc.contrib import amp

dtype, prefix = sys.argv[1:]
if dtype != "float32":
    amp.init(dtype)
x = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=16, name="one")
x = mx.sym.Activation(mx.sym.BatchNorm(x, name="norm"), act_type="relu")
symbol = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(x, num_hidden=4, name="two"), name="softmax", normalization="batch")
random = np.random.default_rng(0)
label = np.arange(64) % 4
data = mx.io.NDArrayIter((random.standard_normal((4, 20))[label] + random.standard_normal((64, 20)) / 4), label, 16)
module = mx.mod.Module(symbol)
mx.random.seed(1)
module.fit(data, num_epoch=20, initializer=mx.init.Xavier(), optimizer_params={"learning_rate": 0.1, "momentum": 0.5})
module.save_checkpoint(prefix, 5, remove_amp_cast=False)
kinds = sorted({np.dtype(array.dtype).name for array in module.get_params()[0].values()})
print(json.dumps([module.score(data, "ce")[0][1], module.score(data, "acc")[0][1], kinds,
                  sum(node.op is not None and node.op.name == "amp_cast" for node in symbol.graph.nodes)]))
"""


def test_a_module_learns_as_in_float32(tmp_path: Path) -> None:
    """Its file keeps the casts where it is told to, and is loaded here, where it is off."""
    said = {dtype: json.loads(elsewhere.run(MODULE, dtype, tmp_path / dtype))
            for dtype in ("float32", "float16", "bfloat16")}
    wide = said.pop("float32")
    assert wide[1] == 1.0 and wide[3] == 0
    data = mx.nd.array(np.random.default_rng(0).standard_normal((3, 20)))
    for dtype, (loss, accuracy, kinds, casts) in said.items():
        assert accuracy == 1.0 and kinds == ["float32"] and casts > 0
        assert 0 < abs(loss - wide[0]) < 0.02
        outputs = []
        for name in dtype, "float32":
            module = mx.mod.Module.load(str(tmp_path / name), 5, label_names=None)
            module.bind([("data", (3, 20))], for_training=False)
            module.forward(mx.io.DataBatch([data]))
            outputs.append(module.get_outputs()[0].asnumpy())
            kept = json.loads((tmp_path / f"{name}-symbol.json").read_text())["nodes"]
            assert (name != "float32") == any(node["op"] == "amp_cast" for node in kept)
        np.testing.assert_allclose(*outputs, atol=0.05)


def test_what_a_block_of_ones_own_calls_is_cast() -> None:
    assert elsewhere.run("""
import mxc as mx
from mxc.contrib import amp

class Block(mx.gluon.HybridBlock):
    def hybrid_forward(self, F, x, w):
        x = F.FullyConnected(x, w, num_hidden=3, no_bias=True)
        return x, F.exp(x), x.exp(), F.identity(x), F.broadcast_add(x, w.slice_axis(1, 0, 3)), x + 1

amp.init()
block = Block()
for hybrid in (False, True):
    if hybrid:
        block.hybridize()
    print([each.dtype.__name__ for each in block(mx.nd.ones((3, 4)), mx.nd.ones((3, 4)))])
""").splitlines() == [str(["float16", "float32", "float32", "float16", "float32", "float16"])] * 2


# ---- conversions

def network() -> mx.gluon.nn.HybridSequential:
    nn = mx.gluon.nn
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Conv2D(8, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(), nn.Dense(4))
    mx.random.seed(1)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    return net


@pytest.mark.parametrize("optional", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_converted_blocks_are_kept(dtype: str, optional: bool, tmp_path: Path) -> None:
    net, data = network(), mx.nd.array(np.random.default_rng(0).standard_normal((2, 3, 8, 8)))
    expected = net(data).asnumpy()
    made = mx.contrib.amp.convert_hybrid_block(net, dtype, ctx=mx.cpu(), cast_optional_params=optional)
    made.hybridize()
    found = made(data).asnumpy()
    np.testing.assert_allclose(found, expected, atol=0.03)
    assert found.dtype == np.float32 and np.abs(found - expected).max() > 0
    kinds = {name: mx.runtime.array.dtype_name(param.data().dtype) for name, param in made.collect_params().items()}
    assert kinds["net_conv0_weight"] == (dtype if optional else "float32")
    assert kinds["net_batchnorm0_gamma"] == kinds["net_batchnorm0_running_mean"] == "float32"
    made.export(str(tmp_path / "net"), remove_amp_cast=False)
    again = mx.gluon.SymbolBlock.imports(str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params"))
    np.testing.assert_array_equal(again(data).asnumpy(), found)
    assert {name: mx.runtime.array.dtype_name(param.data().dtype)
            for name, param in again.collect_params().items()} == kinds


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_converted_models_compute_what_float32_does(dtype: str) -> None:
    net, data = network(), mx.nd.array(np.random.default_rng(0).standard_normal((2, 3, 8, 8)))
    expected, (_, symbol) = net(data).asnumpy(), net._cached_graph
    params = {name: param.data() for name, param in net.collect_params().items()}
    states = {name: params.pop(name) for name in symbol.list_auxiliary_states()}
    for options in {}, {"cast_optional_params": True}, {"excluded_sym_names": ["net_conv0_fwd"]}:
        made, args, kept = mx.contrib.amp.convert_model(symbol, params, states, dtype, **options)
        found = made.bind(mx.cpu(), {"data": data, **args}, aux_states=kept).forward()[0].asnumpy()
        np.testing.assert_allclose(found, expected, atol=0.03)
        casts = {node.name for node in made.graph.nodes if node.op is not None and node.op.name == "amp_cast"}
        assert (f"data_amp_cast_{dtype}" in casts) == ("excluded_sym_names" not in options)


def test_lists_that_are_none_are_quoted() -> None:
    symbol = mx.sym.relu(mx.sym.Variable("data"))
    for options, text in (({"fp32_ops": ["nothing"]}, "nothing: expected operators of amp.list_lp16_ops"),
                          ({"fp32_ops": ["relu"], "target_dtype_ops": ["relu"]}, "relu: in both target_dtype_ops and "),
                          ({"conditional_fp32_ops": [("relu", "x")]}, r"got \[\('relu', 'x'\)\]"),
                          ({"target_dtype": "float64"}, "expected one of float16, bfloat16, got float64")):
        with pytest.raises(AssertionError, match=text):
            mx.contrib.amp.convert_symbol(symbol, **options)
