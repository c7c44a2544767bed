"""What programs do with arrays of bfloat16 besides computing: files, initializers, metrics, stores, operators of their
own, and what is refused."""
from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mxc as mx
from mxc import parameter_files
from mxc.cli.reference import of_executor
from mxc.compiler.ops.dtypes import BFLOAT16, dtype_name, epsilon, is_number, widened

numbered = itertools.count()


def narrow(*shape: int, seed: int = 0) -> mx.nd.NDArray:
    return mx.nd.array(np.random.default_rng(seed).standard_normal(shape), dtype="bfloat16")


def wide(array: mx.nd.NDArray) -> np.ndarray:
    return array.astype("float32").asnumpy()


def test_facts_of_the_dtype() -> None:
    assert is_number(BFLOAT16) and is_number(BFLOAT16, "f") and not is_number(BFLOAT16, "iu")
    assert epsilon(BFLOAT16) == float((mx.nd.array([1 + 2**-7], dtype="bfloat16") - 1).astype("float32").asscalar())
    assert epsilon(np.dtype("float16")) == 2.0**-10


@pytest.mark.parametrize("ending", ["params", "npz", "safetensors"])
def test_files(ending: str, tmp_path: Path) -> None:
    if ending == "safetensors":
        pytest.importorskip("safetensors")
    path = str(tmp_path / f"x.{ending}")
    arrays = {"one": narrow(3, 4), "two": mx.nd.arange(3, dtype="int8"), "three": mx.nd.array([0.5], dtype="float64")}
    parameter_files.save(path, arrays)
    assert parameter_files.described(path) == {
        name: (array.shape, dtype_name(array.dtype)) for name, array in arrays.items()}
    for name, found in parameter_files.load(path).items():
        assert found.dtype == arrays[name].dtype and found.shape == arrays[name].shape
        np.testing.assert_array_equal(wide(found), wide(arrays[name]))


def test_a_file_of_another_package(tmp_path: Path) -> None:
    """The package writes bfloat16 of ml_dtypes, and reads what is written here."""
    package, other = pytest.importorskip("safetensors"), pytest.importorskip("ml_dtypes")
    writer = pytest.importorskip("safetensors.numpy")
    values = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
    path = tmp_path / "x.safetensors"
    path.write_bytes(writer.save({"x": values.astype(other.bfloat16), "y": np.ones(3, np.uint16)}))
    with pytest.raises(mx.MXNetError, match="y: dtype U16 is not supported; expected one of F64, "):
        parameter_files.load(str(path))
    path.write_bytes(writer.save({"x": values.astype(other.bfloat16)}))
    np.testing.assert_array_equal(wide(parameter_files.load(str(path))["x"]), values)
    parameter_files.save(str(path), {"x": narrow(2, 3), "y": mx.nd.ones((1,))})
    (facts,) = (each for name, each in package.deserialize(path.read_bytes()) if name == "x")
    assert facts["dtype"] == "BF16" and bytes(facts["data"]) == narrow(2, 3).asnumpy().tobytes()


@pytest.mark.parametrize("name", ["Xavier", "Normal", "Uniform", "Orthogonal", "MSRAPrelu", "One", "Bilinear"])
def test_initializers(name: str) -> None:
    """Numbers are those of float32, rounded."""
    made = []
    for dtype in "bfloat16", "float32":
        mx.random.seed(3)
        param = mx.gluon.Parameter("x_weight", shape=(8, 4, 3, 3), dtype=dtype)
        param.initialize(getattr(mx.init, name)())
        made.append(param.data())
    assert made[0].dtype == BFLOAT16
    np.testing.assert_array_equal(wide(made[0]), wide(made[1].astype(BFLOAT16)))
    assert name in ("One", "Bilinear") or wide(made[0]).std() > 0


def test_random_numbers_into_an_array() -> None:
    out = mx.nd.zeros((200,), dtype="bfloat16")
    assert mx.random.uniform(1, 2, out=out) is out and 1 <= wide(out).min() < wide(out).max() <= 2


@pytest.mark.parametrize(("name", "options"), [
    ("acc", {}), ("ce", {}), ("f1", {}), ("mcc", {}), ("nll_loss", {}), ("loss", {}),
    ("perplexity", {"ignore_label": 1}), ("top_k_accuracy", {"top_k": 2}), ("mse", {}), ("mae", {}),
    ("rmse", {}), ("pearsonr", {})])
def test_metrics(name: str, options: dict[str, Any]) -> None:
    scores = mx.nd.softmax(narrow(6, 2))
    label = narrow(6, 2, seed=1) if name in ("mse", "mae", "rmse", "pearsonr") else mx.nd.array([0, 1, 1, 0, 1, 0])
    found = []
    for dtype in "bfloat16", "float32":
        metric = mx.metric.create(name, **options)
        metric.update([label], [scores.astype(dtype)])
        found.append(metric.get()[1])
    assert np.isfinite(found[0]) and found[0] == pytest.approx(found[1], rel=1e-2)


def test_a_metric_of_ones_own() -> None:
    metric = mx.metric.np(lambda label, pred: float((label - pred).sum()))
    metric.update([narrow(3)], [narrow(3)])
    assert metric.get()[1] == 0


def test_stores() -> None:
    x, out = mx.nd.array([1, -2, 0.25], dtype="bfloat16"), mx.nd.zeros((3,), dtype="bfloat16")
    for store in map(mx.kv.create, ("local", "device")):
        store.init("x", x)
        store.push("x", [x, x])
        store.pull("x", out=out)
        assert wide(out).tolist() == [2, -4, 0.5]
    store = mx.kv.create("device")
    store.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    store.init("x", x)
    store.push("x", [x, x])
    store.pull("x", out=out)
    assert wide(out).tolist() == [1, -1, 0]


@pytest.mark.parametrize("precise", [False, True])
@pytest.mark.parametrize("name", ["sgd", "adam", "sgld", "lamb"])
def test_optimizers_states_are_kept(name: str, precise: bool) -> None:
    options = {"learning_rate": 0.1, "multi_precision": precise}
    weight, first = narrow(4), mx.optimizer.get_updater(mx.optimizer.create(name, **options))
    first(0, narrow(4, seed=1), weight)
    second, other = mx.optimizer.get_updater(mx.optimizer.create(name, **options)), weight.copy()
    second.set_states(first.get_states(dump_optimizer=True))
    for updater, array in ((first, weight), (second, other)):
        mx.random.seed(1)
        updater(0, narrow(4, seed=1), array)
    np.testing.assert_array_equal(wide(weight), wide(other))
    assert weight.dtype == BFLOAT16 and np.isfinite(wide(weight)).all()


def test_blocks_on_two_devices() -> None:
    devices = [mx.cpu(0), mx.cpu(1)]
    net = mx.gluon.nn.Dense(3, in_units=2)
    net.cast("bfloat16")
    net.initialize(ctx=devices)
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5, "multi_precision": True})
    before = wide(net.weight.data(devices[1]))
    with mx.autograd.record():
        losses = [net(x).sum() for x in mx.gluon.utils.split_and_load(narrow(4, 2), devices)]
    mx.autograd.backward(losses)
    mx.gluon.utils.clip_global_norm([net.weight.grad(device) for device in devices], 1.0)
    trainer.step(1)
    after = [wide(net.weight.data(device)) for device in devices]
    assert (after[0] == after[1]).all() and (after[0] != before).any()


def test_a_recurrent_layer() -> None:
    layer = mx.gluon.rnn.LSTM(4, input_size=3)
    layer.initialize()
    data, wanted = narrow(5, 2, 3), layer(narrow(5, 2, 3).astype("float32"))
    layer.cast("bfloat16")
    found = layer(data)
    assert found.dtype == BFLOAT16
    np.testing.assert_allclose(wide(found), wanted.asnumpy(), atol=0.02)


def test_a_module(tmp_path: Path) -> None:
    x = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, name="fc")
    module = mx.mod.Module(mx.sym.SoftmaxOutput(mx.sym.cast(x, dtype="float32"), name="softmax"))
    labels = np.arange(32) % 4
    data = mx.nd.array(np.eye(4)[labels] + np.random.default_rng(0).standard_normal((32, 4)) / 5, dtype="bfloat16")
    rows = mx.io.NDArrayIter(data, mx.nd.array(labels), 8)
    options = {"learning_rate": 0.5, "multi_precision": True}
    module.fit(rows, num_epoch=8, optimizer_params=options)
    assert module.score(rows, "acc")[0][1] == 1.0
    prefix = str(tmp_path / "net")
    module.save_checkpoint(prefix, 1, save_optimizer_states=True)
    again = mx.mod.Module.load(prefix, 1, load_optimizer_states=True)
    again.bind(rows.provide_data, rows.provide_label)
    again.init_optimizer(optimizer_params=options)
    for (name, one), two in zip(module.get_params()[0].items(), again.get_params()[0].values(), strict=True):
        assert one.dtype == two.dtype == BFLOAT16, name
        np.testing.assert_array_equal(wide(one), wide(two))


class Twice(mx.operator.CustomOp):
    """An operator that runs as Python."""

    def forward(self, is_train: bool, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        self.assign(out_data[0], req[0], in_data[0] * 2)

    def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
        self.assign(in_grad[0], req[0], out_grad[0] * 2)


@mx.operator.register("test_bfloat16_twice")
class TwiceProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> Twice:
        return Twice()


def test_custom_operators() -> None:
    x = narrow(3)
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.Custom(x, op_type="test_bfloat16_twice")
    y.backward()
    assert y.dtype == x.grad.dtype == BFLOAT16 and wide(x.grad).tolist() == [2, 2, 2]
    np.testing.assert_array_equal(wide(y), 2 * wide(x))
    executor = mx.sym.Custom(mx.sym.Variable("x"), op_type="test_bfloat16_twice").bind(mx.cpu(), {"x": x})
    np.testing.assert_array_equal(wide(executor.forward()[0]), 2 * wide(x))


@pytest.mark.parametrize("rule", [lambda x: x, lambda x: "bfloat16", lambda x: BFLOAT16])
def test_kernels_of_ones_own_say_it(rule: Any) -> None:
    name = f"test_bfloat16_kernel{next(numbered)}"

    @mx.operator.kernel(name, shapes=lambda x: x, dtypes=rule)
    def halved(x, out):  # type: ignore[no-untyped-def]
        for i in range(x.shape[0]):
            out[i] = x[i] / 2

    found = getattr(mx.nd, name)(narrow(5))
    assert found.dtype == BFLOAT16
    np.testing.assert_array_equal(wide(found), wide(narrow(5)) / 2)


def test_loops_and_their_reference() -> None:
    out, state = mx.sym.contrib.foreach(lambda x, s: (x + s, x + s), mx.sym.Variable("x"), mx.sym.Variable("s"))
    executor = mx.sym.Group([out, state]).bind(mx.cpu(), {"x": narrow(4, 3), "s": narrow(3, seed=1)}, grad_req="null")
    found = executor.forward()
    reference = of_executor(executor)
    for array, entry in zip(found, reference.graph.outputs, strict=True):
        assert array.dtype == BFLOAT16
        np.testing.assert_array_equal(wide(array), widened(reference.values[entry]))


def test_test_utils() -> None:
    mx.test_utils.assert_almost_equal(narrow(3), narrow(3).astype("float32"))
    assert mx.test_utils.same(narrow(3), narrow(3)) and not mx.test_utils.almost_equal(narrow(3), narrow(3, seed=1))
    with pytest.raises(AssertionError, match="tolerance rtol=8"):
        mx.test_utils.assert_almost_equal(narrow(3), narrow(3) * 2 + 1)


def test_onnx_is_refused() -> None:
    pytest.importorskip("onnx")
    symbol = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    params = {"fc_weight": narrow(2, 3), "fc_bias": narrow(2)}
    with pytest.raises(mx.MXNetError, match="'data' is of bfloat16, which is not written to ONNX"):
        mx.onnx.export_model(symbol, params, [(1, 3)], BFLOAT16, "never.onnx")


def test_memory_is_exchanged_by_dlpack() -> None:
    x = narrow(2, 3)
    for taken in mx.nd.from_dlpack(x), mx.nd.from_dlpack(x.to_dlpack_for_write()):
        assert taken.dtype == BFLOAT16 and taken.shape == (2, 3)
        np.testing.assert_array_equal(taken.asnumpy(), x.asnumpy())
        taken += 1
        np.testing.assert_array_equal(taken.asnumpy(), x.asnumpy())
    with pytest.raises((BufferError, RuntimeError), match="dtype"):
        np.from_dlpack(x)  # which has no bfloat16
    torch = pytest.importorskip("torch")
    tensor = torch.from_dlpack(x)
    assert tensor.dtype == torch.bfloat16
    tensor[0, 0] = 7
    assert x[0, 0].astype("float32").asscalar() == 7
    assert mx.nd.from_dlpack(torch.ones(3, dtype=torch.bfloat16)).astype("float32").asnumpy().tolist() == [1, 1, 1]


@pytest.mark.parametrize(("call", "message"), [
    (lambda: narrow(3, 3).tostype("csr"), "an array of bfloat16 is dense"),
    (lambda: mx.nd.sparse.zeros("row_sparse", (3, 3), dtype="bfloat16"), "an array of bfloat16 is dense"),
    (lambda: mx.nd.sparse.csr_matrix(([1.0], [0], [0, 1]), (1, 2), dtype="bfloat16"), "an array of bfloat16 is dense"),
    (lambda: mx.nd.ones((2, 2)).tostype("csr").astype("bfloat16"), "an array of bfloat16 is dense"),
    (lambda: mx.nd.concatenate([narrow(3), mx.nd.ones(3)]), "have the dtypes bfloat16, float32; use astype"),
    (lambda: narrow(3).__dlpack__(dl_device=(2, 0)), "the array is on cpu(0), not on DLPack's device (2, 0)"),
])
def test_what_is_refused(call: Any, message: str) -> None:
    with pytest.raises((mx.MXNetError, ValueError, BufferError), match=re.escape(message)):
        call()
