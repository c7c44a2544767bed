"""Networks on simulated GPUs: graphs, modules and trainers give what they give on the CPU."""
from __future__ import annotations

import pytest
from cuda_runs import simulated

BEGIN = """
import numpy as np
import mxc as mx
import networks

def filled(executor, seed=0):
    rng = np.random.default_rng(seed)
    for name, array in {**executor.arg_dict, **executor.aux_dict}.items():
        if "label" in name:
            array[:] = rng.integers(0, 10, array.shape)
        elif name.endswith("var"):
            array[:] = rng.uniform(0.5, 1.5, array.shape)
        else:
            scale = np.prod(array.shape[1:]) ** -0.5 if name.endswith("weight") else 0.5
            array[:] = rng.standard_normal(array.shape) * scale

def compare(net, train, **shapes):
    found = []
    for place in (mx.cpu(), mx.gpu(0)):
        executor = net.simple_bind(place, grad_req="write" if train else "null", **shapes)
        filled(executor)
        outputs = executor.forward(is_train=train)
        assert all(output.context == place for output in outputs)
        values = {f"output {i}": output.asnumpy() for i, output in enumerate(outputs)}
        if train:
            executor.backward()
            values |= {f"gradient of {k}": a.asnumpy() for k, a in executor.grad_dict.items() if "label" not in k}
            values |= {k: a.asnumpy() for k, a in executor.aux_dict.items()}
        found.append(values)
    for name, value in found[0].items():
        scale = max(1.0, np.abs(value).max())
        np.testing.assert_allclose(found[1][name] / scale, value / scale, 0, 1e-5, err_msg=name)
"""
TRAINING = """
from mxc import autograd, gluon

def module(places):
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=8, name="f")
    net = mx.sym.FullyConnected(mx.sym.Activation(net, act_type="tanh"), num_hidden=3, name="g")
    module = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"), context=places)
    rng = np.random.default_rng(2)
    data = mx.io.NDArrayIter(rng.standard_normal((16, 5)).astype("f"), rng.integers(0, 3, 16), batch_size=8)
    mx.random.seed(1)
    np.random.seed(1)
    module.fit(data, num_epoch=2, optimizer="adam", kvstore="device", initializer=mx.init.Xavier())
    assert len(module.predict(data)) == 16
    return {name: array.asnumpy() for name, array in module.get_params()[0].items()}

def trainer(places):
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(8, activation="relu", in_units=6), gluon.nn.BatchNorm(in_channels=8),
            gluon.nn.Dense(3, in_units=8))
    net.initialize(ctx=mx.cpu())
    rng = np.random.default_rng(1)
    for param in net.collect_params().values():
        param.set_data(mx.nd.array(rng.uniform(0.1, 0.9, param.shape)))
    net.collect_params().reset_ctx(places)
    net.hybridize()
    steps = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9}, kvstore="device")
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    x, y = rng.standard_normal((8, 6)).astype("f"), rng.integers(0, 3, 8)
    for _ in range(3):
        batch = zip(*(gluon.utils.split_and_load(mx.nd.array(v), places) for v in (x, y)))
        with autograd.record():
            losses = [loss(net(a), b) for a, b in batch]
        for each in losses:
            each.backward()
        steps.step(8)
    return {f"{i} {param.name}": param.data(place).asnumpy()
            for i, param in enumerate(net.collect_params().values()) for place in places[1:]}

def agrees(train):
    right, found = train([mx.cpu(0), mx.cpu(1)]), train([mx.gpu(0), mx.gpu(1)])
    for (name, value), other in zip(right.items(), found.values()):
        np.testing.assert_allclose(other, value, 1e-5, 1e-5, err_msg=name)
"""


def test_lenet() -> None:
    """Inference and training."""
    simulated(BEGIN + """
compare(networks.lenet(), False, data=(2, 1, 8, 8))
compare(networks.lenet(), True, data=(2, 1, 8, 8))
""")


def test_a_residual_network_of_small_images() -> None:
    simulated(BEGIN + "compare(networks.cifar_resnet20(), False, data=(1, 3, 4, 4))\n")


@pytest.mark.slow
def test_resnet20() -> None:
    """Inference of CIFAR's images."""
    simulated(BEGIN + "compare(networks.cifar_resnet20(), False, data=(1, 3, 32, 32))\n")


@pytest.mark.slow
def test_resnet20_trains() -> None:
    simulated(BEGIN + """
compare(mx.sym.SoftmaxOutput(networks.cifar_resnet20(), name="softmax"), True, data=(2, 3, 8, 8))
""")


def test_a_host_step_between_kernels() -> None:
    """What Python computes reads what kernels wrote, and kernels read what it wrote."""
    simulated(BEGIN + """
class Halved(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] / 2)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] / 2)

@mx.operator.register("halved")
class Prop(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Halved()

x = mx.sym.Variable("x")
net = mx.sym.sum(mx.sym.square(mx.sym.Custom(mx.sym.exp(x), op_type="halved") + 1))
compare(mx.sym.MakeLoss(net), True, x=(3, 4))
""")


def test_recurrent_layers_and_attention() -> None:
    simulated(BEGIN + """
x = mx.sym.Variable("data")
cell = mx.rnn.LSTMCell(5, prefix="l_")
outputs, _ = cell.unroll(3, inputs=x, layout="NTC", merge_outputs=True)
compare(outputs, False, data=(2, 3, 4))
fused = mx.sym.RNN(x, mx.sym.Variable("w"), mx.sym.Variable("h"), mx.sym.Variable("c"), state_size=4, num_layers=1,
                   mode="lstm", name="r")
compare(fused, False, data=(3, 2, 5))
q = mx.sym.softmax(mx.sym.batch_dot(x, x, transpose_b=True) / 2)
compare(mx.sym.LayerNorm(mx.sym.batch_dot(q, x), mx.sym.Variable("gamma"), mx.sym.Variable("beta")), False,
        data=(2, 5, 8))
""")


def test_modules_and_trainers_on_several_gpus() -> None:
    """A module with a store of type device, and a trainer over hybridised blocks: parameters after some steps."""
    simulated(BEGIN + TRAINING + "agrees(module)\nagrees(trainer)", gpus=2)
