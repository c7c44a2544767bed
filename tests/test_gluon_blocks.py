"""Blocks of Gluon as programs use and misuse them; answers as of MXNet 1.9.1, but where docs/differences.md says so."""
from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc import autograd, gluon
from mxc.base import MXNetError
from mxc.gluon import nn, rnn

COPIES: list[Callable] = [copy.deepcopy, lambda block: pickle.loads(pickle.dumps(block))]


def network(prefix: str = "net_") -> nn.HybridSequential:
    """A network of known parameters, of inputs (N, 2)."""
    net = nn.HybridSequential(prefix=prefix)
    with net.name_scope():
        net.add(nn.Dense(3, in_units=2), nn.BatchNorm(in_channels=3), nn.Dense(2, in_units=3))
    net.initialize()
    for seed, (path, param) in enumerate(sorted(net._collect_params_with_prefix().items())):
        if "var" not in path:
            param.set_data(mx.nd.array(np.random.RandomState(seed).uniform(-1, 1, param.shape)))
    return net


def same(ours: mx.nd.NDArray, theirs: mx.nd.NDArray) -> None:
    np.testing.assert_allclose(ours.asnumpy(), theirs.asnumpy(), rtol=1e-5, atol=1e-6)


def gradients(net: gluon.Block, *inputs: mx.nd.NDArray) -> dict[str, np.ndarray]:
    with autograd.record():
        loss = (net(*inputs) ** 2).sum()
    loss.backward()
    return {path: p.grad().asnumpy() for path, p in net._collect_params_with_prefix().items() if p.grad_req != "null"}


@pytest.mark.parametrize("copied", COPIES, ids=["deepcopy", "pickle"])
@pytest.mark.parametrize("hybrid", [False, True], ids=["eager", "hybrid"])
def test_copies_compute_and_train_by_themselves(copied: Callable, hybrid: bool):
    net, x = network(), mx.nd.array([[1, 2], [3, -1]])
    if hybrid:
        net.hybridize()
    wanted = net(x)
    other = copied(net)
    for param in net.collect_params().values():
        param.set_data(mx.nd.zeros(param.shape))
    same(other(x), wanted)
    found = gradients(other, x)
    assert any(np.abs(value).max() > 0.01 for value in found.values())
    assert not net(x).asnumpy().any()


@pytest.mark.parametrize("copied", COPIES, ids=["deepcopy", "pickle"])
def test_copies_of_blocks_of_saved_graphs(copied: Callable, tmp_path: Path):
    net, x = network(), mx.nd.ones((1, 2))
    net.hybridize()
    wanted = net(x)
    net.export(str(tmp_path / "net"))
    block = gluon.SymbolBlock.imports(tmp_path / "net-symbol.json", ["data"], tmp_path / "net-0000.params")
    same(copied(block)(x), wanted)


def test_a_block_without_parameters_is_read_again(tmp_path: Path):
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Activation("relu"))
    net.hybridize()
    wanted = net(mx.nd.array([-1, 2]))
    net.export(str(tmp_path / "net"))
    block = gluon.SymbolBlock.imports(tmp_path / "net-symbol.json", ["data"], tmp_path / "net-0000.params")
    same(block(mx.nd.array([-1, 2])), wanted)


def test_a_block_of_a_graph_shares_parameters_that_get_no_gradient():
    norm, x = nn.BatchNorm(scale=False), mx.sym.var("x")
    block = gluon.SymbolBlock(norm(x), x, params=norm.collect_params())
    assert block.collect_params()[norm.gamma.name] is norm.gamma
    assert norm.gamma.grad_req == "null"
    norm.initialize()
    same(block(mx.nd.ones((2, 3))), norm(mx.nd.ones((2, 3))))


@pytest.mark.parametrize("prefixes, paths", [
    (("abc_x_", "abc_y_"), ["x_weight", "x_bias", "y_weight", "y_bias"]),
    (("aa_", "aab_"), ["_weight", "_bias", "b_weight", "b_bias"]),
    (("aa_", "b_"), ["aa_weight", "aa_bias", "b_weight", "b_bias"]), (("x_",), ["weight", "bias"]), ((), [])])
def test_paths_of_a_graphs_parameters_are_mxnets(prefixes: tuple, paths: list, tmp_path: Path):
    """MXNet 1.9.1 leaves out the characters that all names begin with, so files of parameters have these names."""
    net, x = nn.HybridSequential(prefix=""), mx.sym.var("data")
    for prefix in prefixes:
        net.add(nn.Dense(3, in_units=3, prefix=prefix))
    outer = nn.HybridSequential()
    outer.add(gluon.SymbolBlock(net(x) if prefixes else x * 2, x, params=net.collect_params()))
    assert [*outer._collect_params_with_prefix()] == [f"0.{path}" for path in paths]
    assert [*outer.collect_params()] == [*net.collect_params()]
    if prefixes:
        net.initialize(mx.init.Normal())
        outer.save_parameters(str(tmp_path / "net.params"))
        assert sorted(mx.nd.load(str(tmp_path / "net.params"))) == sorted(f"0.{path}" for path in paths)
        wanted = outer(mx.nd.ones((1, 3)))
        net.initialize(force_reinit=True)
        outer.load_parameters(str(tmp_path / "net.params"))
        same(outer(mx.nd.ones((1, 3))), wanted)


class Nested(gluon.HybridBlock):
    def hybrid_forward(self, F, x, pair, extra=None):
        a, (b, c) = pair
        y = x + a * b - c
        return y if extra is None else y * extra, [a, (b, y)]


@pytest.mark.parametrize("extra", [(), (None,), (5,)], ids=["not given", "None", "given"])
def test_nested_inputs_and_outputs(extra: tuple):
    block, one = Nested(), mx.nd.ones(2)
    given = [one, [one * 2, (one * 3, one * 4)], *(None if e is None else one * e for e in extra)]
    eager = block(*given)
    block.hybridize()
    out, (a, (b, y)) = block(*given)
    same(out, eager[0])
    assert [array.asnumpy().tolist() for array in (a, b, y)] == [[2, 2], [3, 3], [3, 3]]
    if extra == (None,):
        with pytest.raises(ValueError, match="traced for arguments of the structure"):
            block(*given[:2], one)


def test_an_input_that_is_none_first():
    block = nn.HybridLambda(lambda F, x, y: y * 2)
    assert block(None, mx.nd.ones(2)).asnumpy().tolist() == [2, 2]
    block.hybridize()
    assert block(None, mx.nd.ones(2)).asnumpy().tolist() == [2, 2]


def test_arrays_and_symbols_do_not_mix():
    block = nn.HybridLambda(lambda F, x, y: x + y)
    for given in ((mx.nd.ones(2), mx.sym.var("x")), (mx.sym.var("x"), mx.nd.ones(2))):
        with pytest.raises(ValueError, match="arrays and symbols"):
            block(*given)
    with pytest.raises(ValueError, match="without an array and without a symbol, with int"):
        block(3)


def test_batches_without_examples():
    net = network()
    net.hybridize()
    with mx.np_shape():
        assert net(mx.nd.zeros((0, 2))).shape == (0, 2)
        dense = nn.Dense(3, in_units=2)
        dense.initialize()
        dense.hybridize()
        assert not gradients(dense, mx.nd.zeros((0, 2)))["weight"].any()


def test_shared_parameters(tmp_path: Path):
    one = nn.Dense(2, in_units=2, prefix="one_")
    net = nn.HybridSequential()
    net.add(one, nn.Dense(2, in_units=2, params=one.params))
    net.initialize("ones")
    net.hybridize()
    assert net[1].weight is one.weight
    assert gradients(net, mx.nd.ones((1, 2)))["0.weight"].tolist() == [[32, 32], [32, 32]]
    net.save_parameters(tmp_path / "once", deduplicate=True)
    assert sorted(mx.nd.load(str(tmp_path / "once"))) == ["1.bias", "1.weight"]
    net.load_parameters(tmp_path / "once")
    net.save_parameters(tmp_path / "all")
    assert len(mx.nd.load(str(tmp_path / "all"))) == 4


def test_hooks():
    net, log = network(), []
    after = net[0].register_forward_hook(lambda block, ins, out: log.append((block.name, len(ins), out.shape)))
    before = net.register_forward_pre_hook(lambda block, ins: log.append((block.name, len(ins), ins[0].shape)))
    net(mx.nd.ones((1, 2)))
    assert log == [("net", 1, (1, 2)), ("net_dense0", 1, (1, 3))]
    after.detach()
    after.detach()
    with before:
        net(mx.nd.ones((1, 2)))
    net(mx.nd.ones((1, 2)))
    assert log[2:] == [("net", 1, (1, 2))]
    with pytest.raises(AssertionError, match="attached once"):
        after.attach({}, print)


def test_hooks_of_operators_are_told_what_the_operators_give():
    net, log = network(), []
    net.hybridize()
    net.register_op_hook(lambda name, op, array: log.append((name, op, array.shape)))
    net(mx.nd.ones((1, 2)))
    assert log == [("net_dense0_fwd_output", "FullyConnected", (1, 3)),
                   ("net_batchnorm0_fwd_output", "BatchNorm", (1, 3)),
                   ("net_dense1_fwd_output", "FullyConnected", (1, 2))]


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_casts(dtype: str):
    net = network()
    net.hybridize()
    wanted = net(mx.nd.ones((2, 2)))
    net.cast(dtype)
    out = net(mx.nd.ones((2, 2), dtype=dtype))
    assert out.dtype == np.dtype(dtype)
    np.testing.assert_allclose(out.asnumpy(), wanted.asnumpy(), rtol=5e-3, atol=5e-3)
    found = gradients(net, mx.nd.ones((2, 2), dtype=dtype))
    assert found["0.weight"].dtype == np.dtype(dtype)
    assert found["1.gamma"].dtype == ("float32" if dtype == "float16" else "float64")
    with pytest.raises(MXNetError, match="dtype"):
        net(mx.nd.ones((2, 2)))


def test_other_devices():
    net, x = network(), mx.nd.ones((1, 2))
    net.hybridize()
    wanted = net(x)
    net.collect_params().reset_ctx([mx.cpu(1), mx.cpu(2)])
    with pytest.raises(RuntimeError, match=r"is not on cpu\(0\), only on cpu\(1\), cpu\(2\)"):
        net(x)
    for device in (mx.cpu(1), mx.cpu(2)):
        same(net(x.as_in_context(device)), wanted)


def test_requests_that_change():
    net, x = nn.Dense(1, in_units=2, prefix="d_"), mx.nd.array([[1, 2]])
    net.initialize("ones")
    net.hybridize()

    def step() -> None:
        with autograd.record():
            out = net(x)
        out.backward()

    step()
    assert net.weight.grad().asnumpy().tolist() == [[1, 2]]
    net.weight.grad_req = "add"
    step()
    step()
    assert net.weight.grad().asnumpy().tolist() == [[2, 4]]
    net.weight.grad_req = "null"
    step()
    with pytest.raises(RuntimeError, match="grad_req is 'null'"):
        net.weight.grad()
    net.weight.grad_req = "write"
    assert not net.weight.grad().asnumpy().any()
    step()
    assert net.weight.grad().asnumpy().tolist() == [[1, 2]]
    net.collect_params().setattr("grad_req", "null")
    with pytest.raises(MXNetError, match="not in a computational graph"):
        step()


def chain(*units: int) -> nn.HybridSequential:
    net = nn.HybridSequential(prefix="chain_")
    with net.name_scope():
        for each in units:
            net.add(nn.Dense(each, in_units=2))
    return net


@pytest.mark.parametrize("units, options, error", [
    ((2,), {}, ValueError), ((2,), {"ignore_extra": True}, None), ((2, 2, 2), {}, AssertionError),
    ((2, 2, 2), {"allow_missing": True}, None), ((2, 3), {}, AssertionError),
    ((2, 3), {"allow_missing": True, "ignore_extra": True}, AssertionError)], ids=str)
def test_files_that_do_not_fit(units: tuple, options: dict, error: type[Exception] | None, tmp_path: Path):
    one, other = chain(2, 2), chain(*units)
    one.initialize()
    one.save_parameters(tmp_path / "file")
    if error is None:
        other.load_parameters(tmp_path / "file", **options)
        same(other[0].weight.data(), one[0].weight.data())
    else:
        with pytest.raises(error, match=r"file|chain_"):
            other.load_parameters(tmp_path / "file", **options)


def test_recurrent_layers_have_the_paths_of_cells_in_files(tmp_path: Path):
    net = rnn.LSTM(2, 2, bidirectional=True, input_size=3)
    net.initialize()
    net.save_parameters(tmp_path / "file")
    names = list(mx.nd.load(str(tmp_path / "file")))
    assert "_unfused.0.l_cell.i2h_weight" in names and "_unfused.1.r_cell.h2h_bias" in names and len(names) == 16
    rnn.LSTM(2, 2, bidirectional=True).load_parameters(tmp_path / "file")
    single = rnn.GRU(2, 11, input_size=2)
    assert list(single._collect_params_with_prefix())[-1] == "_unfused.10.h2h_bias"


def test_blocks_inside_of_functions_and_custom_operators():
    net, x = network(), mx.nd.ones((1, 2))
    net.hybridize()

    def pulled(x: mx.nd.NDArray, head: mx.nd.NDArray) -> mx.nd.NDArray:
        x = x.copy()
        x.attach_grad()
        with autograd.record(train_mode=False):
            out = net(x)
        out.backward(head, train_mode=False)
        return x.grad

    class Doubled(autograd.Function):
        def forward(self, x):
            self.save_for_backward(x)
            return net(x) * 2

        def backward(self, head):
            return pulled(*self.saved_tensors, head * 2)

    class Operator(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            with autograd.predict_mode():
                self.assign(out_data[0], req[0], net(in_data[0]) * 2)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], pulled(in_data[0], out_grad[0] * 2))

    @mx.operator.register("gluon_block_doubled")
    class Property(mx.operator.CustomOpProp):
        def infer_shape(self, in_shape):
            return in_shape, [in_shape[0]], []

        def create_operator(self, ctx, shapes, dtypes):
            return Operator()

    outer = nn.HybridLambda(lambda F, x: F.Custom(x, op_type="gluon_block_doubled"))
    outer.hybridize()
    found = []
    for call in (lambda x: net(x) * 2, Doubled(), lambda x: mx.nd.Custom(x, op_type="gluon_block_doubled"), outer):
        x.attach_grad()
        with autograd.record(train_mode=False):
            out = call(x)
            loss = (out * out).sum()
        loss.backward(train_mode=False)
        found.append((out, x.grad.copy()))
    for out, grad in found[1:]:
        same(out, found[0][0])
        same(grad, found[0][1])


def test_threads_share_a_block():
    net, x = network(), mx.nd.ones((2, 2))
    net.hybridize()
    wanted = net(x).asnumpy()
    wrong: list[object] = []

    def work(k: int) -> None:
        try:
            for _ in range(15):
                with autograd.record(train_mode=False):
                    net(mx.nd.ones((2 + k % 3, 2))).sum().backward(train_mode=False)
                if not np.allclose(net(x).asnumpy(), wanted):
                    wrong.append(k)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_network_that_grows_is_traced_anew():
    net, x = network(), mx.nd.ones((1, 2))
    net.hybridize()
    before = net(x)
    net.add(nn.HybridLambda(lambda F, x: x * 10))
    same(net(x), before * 10)
    net.hybridize(active=False)
    same(net(x), before * 10)


def test_outputs_that_are_parameters_or_inputs_are_copies():
    class Passes(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.w = self.params.get("w", shape=(2,), init="ones")

        def hybrid_forward(self, F, x, w):
            return w, x

    block, x = Passes(), mx.nd.zeros(2)
    block.initialize()
    block.hybridize()
    for out in block(x):
        out[:] = 7
    assert block.w.data().asnumpy().tolist() == [1, 1] and x.asnumpy().tolist() == [0, 0]
    x.attach_grad()
    with autograd.record():
        inner = x * 2
        w, passed = block(inner)
        loss = (passed * 3 + inner * 5 + w * 7).sum()
    loss.backward()
    assert x.grad.asnumpy().tolist() == [16, 16] and block.w.grad().asnumpy().tolist() == [7, 7]


def test_texts_and_names_before_shapes_are_known():
    assert repr(nn.BatchNorm()).endswith("use_global_stats=False, in_channels=None)")
    assert repr(nn.LayerNorm()).endswith("scale=True, in_channels=0)")
    assert repr(nn.InstanceNorm()).endswith("scale=False, in_channels=0)")
    assert repr(nn.Conv2D(2, 3)) == "Conv2D(None -> 2, kernel_size=(3, 3), stride=(1, 1))"
    assert rnn.ResidualCell(rnn.GRUCell(2, prefix="g_")).prefix == "g_residualcell"
    assert rnn.ZoneoutCell(rnn.GRUCell(2, prefix="g_")).prefix == "g_zoneout"


def test_the_summary(capsys: pytest.CaptureFixture[str]):
    shared = nn.Dense(3, in_units=3, prefix="a_")
    net = nn.Sequential()
    net.add(shared, nn.Dense(3, in_units=3, params=shared.params), nn.Lambda(lambda x: [x, (x, x)]))
    net.initialize()
    net.summary(mx.nd.ones((1, 3)))
    text = capsys.readouterr().out
    rows = [line.split(None, 1) for line in text.splitlines() if "-" in line and "--" not in line and "(1" in line]
    assert [name for name, _ in rows] == ["Dense-1", "Dense-2", "Lambda-3"]
    assert rows[2][1].startswith("(1, 3), [(1, 3), (1, 3)]")
    assert "Total params: 24" in text and "Unique parameters in model: 12" in text
    hybrid = network()
    hybrid.hybridize()
    with pytest.raises(AssertionError, match="hybridised"):
        hybrid.summary(mx.nd.ones((1, 2)))


@pytest.mark.parametrize("hybrid", [False, True])
def test_a_batch_norm_that_runs_twice_in_a_step_counts_both(hybrid: bool):
    """The numbers are MXNet 1.9.1's."""
    norm = nn.BatchNorm(in_channels=1, momentum=0.5)
    norm.initialize()
    if hybrid:
        norm.hybridize()
    one, two = mx.nd.array([[1.0], [3]]), mx.nd.array([[10.0], [30]])
    with autograd.record():
        total = norm(one) + norm(two)
    total.backward()
    np.testing.assert_allclose([norm.running_mean.data().asscalar(), norm.running_var.data().asscalar()],
                               [6, 25.749996], rtol=1e-5)
