"""Groups of nodes on GPUs and the CPU, in the simulator: results and gradients are those of one device."""
from __future__ import annotations

from cuda_runs import simulated

BEGIN = """
import numpy as np
import mxc as mx

def network():
    with mx.AttrScope(ctx_group="one"):
        x = mx.sym.Variable("data")
        first = mx.sym.FullyConnected(x, num_hidden=4, name="fc1")
        first = mx.sym.BatchNorm(first, name="bn", fix_gamma=False)
        act = mx.sym.Activation(first, act_type="tanh")
    with mx.AttrScope(ctx_group="two"):
        second = mx.sym.FullyConnected(act, num_hidden=4, name="fc2")
        both = second * act
    with mx.AttrScope(ctx_group="one"):
        third = mx.sym.FullyConnected(both + act, num_hidden=3, name="fc3")
    return mx.sym.SoftmaxOutput(third, name="softmax")

def filled(executor):
    rng = np.random.default_rng(0)
    for name, array in sorted({**executor.arg_dict, **executor.aux_dict}.items()):
        array[:] = rng.integers(0, 3, array.shape) if "label" in name else rng.uniform(0.2, 1, array.shape)
    return executor

def trained(executor, runs=2):
    for _ in range(runs):
        executor.forward(is_train=True)
        executor.backward()
    return {name: a.asnumpy() for d in (executor.output_dict, executor.grad_dict, executor.aux_dict)
            for name, a in d.items() if a is not None}

def alike(found, wanted):
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, 1e-4, 1e-5, err_msg=name)
"""


def test_a_network_on_two_gpus_and_on_a_gpu_and_the_cpu() -> None:
    simulated(BEGIN + """
net = network()
wanted = trained(filled(net.simple_bind(mx.cpu(), data=(2, 5), grad_req="add")))
for one, two in ((mx.gpu(0), mx.gpu(1)), (mx.cpu(), mx.gpu(1))):
    executor = net.simple_bind(one, data=(2, 5), grad_req="add", group2ctx={"one": one, "two": two})
    assert [str(executor.arg_dict[name].context) for name in ("fc1_weight", "fc2_weight")] == [str(one), str(two)]
    alike(trained(filled(executor)), wanted)
    assert str(executor.outputs[0].context) == str(one)
    other = executor.reshape(data=(1, 5), softmax_label=(1,))
    other.forward(data=np.ones((1, 5)))
    assert other.outputs[0].shape == (1, 3) and other.arg_dict["fc1_weight"] is executor.arg_dict["fc1_weight"]
""", gpus=2)


def test_a_monitor_a_module_and_what_is_refused() -> None:
    simulated(BEGIN + """
groups = {"one": mx.gpu(0), "two": mx.cpu()}
executor, seen = filled(network().simple_bind(mx.gpu(0), data=(2, 5), group2ctx=groups)), {}
executor.set_monitor_callback(lambda name, array: seen.update({name: str(array.context)}))
executor.forward()
assert (seen["fc1_output"], seen["fc2_output"], seen["fc3_output"]) == ("gpu(0)", "cpu(0)", "gpu(0)"), seen
data = mx.io.NDArrayIter(np.random.default_rng(0).random((4, 5)), np.array([0, 1, 2, 0]), 2)
module = mx.mod.Module(network(), context=mx.gpu(0), group2ctxs=groups)
module.fit(data, num_epoch=1, optimizer_params={"learning_rate": 0.1})
assert np.isfinite(module.get_params()[0]["fc2_weight"].asnumpy()).all()
for wrong, text in (({"one": mx.gpu(0)}, "which has no context in group2ctx"),
                    ({"one": mx.gpu(0), "two": mx.gpu(7)}, "gpu(7): there are 1")):
    try:
        network().simple_bind(mx.gpu(0), data=(2, 5), group2ctx=wrong)
    except mx.MXNetError as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)
sparse = mx.sym.sparse.dot(mx.sym.Variable("a", stype="csr", attr={"ctx_group": "one"}), mx.sym.Variable("b"))
try:
    sparse.simple_bind(mx.cpu(), a=(2, 3), b=(3, 2), group2ctx={"one": mx.cpu(), "two": mx.gpu(0)})
except mx.MXNetError as error:
    assert "bind without group2ctx" in str(error)
else:
    raise AssertionError("arrays in parts on several devices")
""")


def test_gradients_take_the_way_back_to_each_device() -> None:
    simulated("""
import numpy as np
import mxc as mx

def program(one, two, runs=5):
    x, w = (mx.nd.array(np.arange(1., 4) + i, ctx=place) for i, place in enumerate((one, two)))
    x.attach_grad()
    w.attach_grad()
    for _ in range(runs):  # what comes again is compiled
        with mx.autograd.record():
            there = mx.nd.exp(x * 0.1).as_in_context(two)
            landed = mx.nd.zeros((3,), ctx=one)
            (there * w * there).copyto(landed)
            y = (landed * x + x).sum()
        y.backward()
    first = [y.asnumpy(), x.grad.asnumpy(), w.grad.asnumpy()]
    with mx.autograd.record():
        z = (x * x * x).as_in_context(two) * w
        slope = mx.autograd.grad(z, [x], create_graph=True)[0]
        total = (slope * x).sum()
    total.backward()
    assert str(x.grad.context) == str(one) and str(w.grad.context) == str(two)
    return [*first, x.grad.asnumpy(), w.grad.asnumpy()]

wanted = program(mx.cpu(), mx.cpu())
for one, two in ((mx.gpu(0), mx.gpu(1)), (mx.gpu(0), mx.cpu()), (mx.cpu(), mx.gpu(1))):
    for found, value in zip(program(one, two), wanted):
        np.testing.assert_allclose(found, value, 1e-5)
x = mx.nd.ones((2,), ctx=mx.gpu(0))
x.attach_grad()
with mx.autograd.record():
    target = mx.nd.zeros((2,), ctx=mx.gpu(1), dtype="float64")
    (x * 3).copyto(target)
    y = target * 2
y.backward()
assert x.grad.asnumpy().tolist() == [6, 6] and x.grad.dtype == np.float32
""", gpus=2)
