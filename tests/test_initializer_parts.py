"""What initializers do besides MXNet's answers: seeds, dtypes, contexts of names, parts of parameters, files."""
from __future__ import annotations

import json
import logging

import numpy as np
import pytest

import mxc as mx

RANDOM = ["Uniform()", "Normal()", "Xavier()", "Xavier('gaussian')", "MSRAPrelu()", "Orthogonal()",
          "Orthogonal(rand_type='normal')"]


def filled(init, shape=(4, 6), name="fc_weight", dtype="float32", **attrs):
    array = mx.nd.full(shape, 9, dtype=dtype)
    init(mx.init.InitDesc(name, attrs), array)
    return array


@pytest.mark.parametrize("text", RANDOM)
def test_a_seed_gives_the_same_values(text: str):
    init = eval(text, vars(mx.init))
    made = []
    for seed in (3, 3, 4):
        mx.random.seed(seed)
        made.append(filled(init).asnumpy())
    np.testing.assert_array_equal(made[0], made[1])
    assert (made[0] != made[2]).any()


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("text", [*RANDOM, "One()", "Zero()", "Constant(2)"])
def test_other_dtypes(text: str, dtype: str):
    values = filled(eval(text, vars(mx.init)), (40, 60), dtype=dtype)
    assert values.dtype == np.dtype(dtype) and np.isfinite(values.asnumpy()).all()
    assert (values.asnumpy() != 9).all()


def test_quantized_weights_are_random_bytes():
    values = filled(mx.init.Zero(), (400, 500), "fc_weight_quantize", "int8").asnumpy()
    assert (values.min(), values.max()) == (-127, 126) and abs(values.mean()) < 1


@pytest.mark.parametrize("init", ["one", '["one", {}]', mx.init.One()])
def test_a_recurrent_layers_parameters_by_a_name_or_text(init):
    made = mx.init.FusedRNN(init, 2, 1, "lstm", forget_bias=5)
    again = mx.init.create(made.dumps())
    assert again == made and json.loads(made.dumps())[1]["init"] == '["one", {}]'
    for each in (made, again):
        values = filled(mx.init.Zero(), (72,), "lstm_parameters", __init__=each.dumps()).asnumpy()
        assert (values[:56] == 1).all() and sorted(values[56:]) == [0] * 12 + [5] * 4


@pytest.mark.parametrize(("arguments", "size", "message"), [
    ((None, 2, 1, "no"), 72, "mode must be one of lstm, gru"),
    ((None, 2, 1, "lstm"), 71, "p: no lstm of 1 layers of 2 hidden states in 1 directions has 71 parameters"),
    ((None, 2, 2, "gru", True), 7, "no gru of 2 layers of 2 hidden states in 2 directions has 7"),
])
def test_parameters_that_do_not_fit_are_refused(arguments, size: int, message: str):
    with pytest.raises(ValueError, match=message):
        mx.init.FusedRNN(*arguments)._init_weight(mx.init.InitDesc("p", None, mx.init.One()), mx.nd.zeros((size,)))


def test_a_network_of_variables_with_initializers():
    x = mx.sym.var("x", init=mx.init.Constant([[1, 2], [3, 4]]))
    net = mx.sym.FullyConnected(x, num_hidden=3, name="fc", weight=mx.sym.var("fc_weight", init="zeros"),
                                bias=mx.sym.var("fc_bias", init=mx.init.LSTMBias(4)))
    attrs, init = net.attr_dict(), mx.init.Xavier()
    bound = net.simple_bind(mx.cpu(), x=(2, 2))
    for name, array in bound.arg_dict.items():
        init(mx.init.InitDesc(name, attrs.get(name)), array)
    assert bound.arg_dict["x"].asnumpy().tolist() == [[1, 2], [3, 4]]
    assert not bound.arg_dict["fc_weight"].asnumpy().any() and bound.arg_dict["fc_bias"].asnumpy().tolist() == [0, 0, 0]


def test_messages_say_what_to_do():
    with pytest.raises(ValueError, match=r"the name 'data' does not say how to initialize it.*init=mx\.init\.Zero"):
        mx.init.One()(mx.init.InitDesc("data"), mx.nd.zeros((2,)))
    with pytest.raises(ValueError, match=r"Xavier needs two axes or more.*fc_weight has the shape \(3,\)"):
        filled(mx.init.Xavier(), (3,))
    with pytest.raises(ValueError, match="no pattern matches the parameter 'fc_weight'"):
        filled(mx.init.Mixed(["bias"], [mx.init.One()]))
    with pytest.raises(ValueError, match=r"parameter fc_weight has the shape \(4, 6\), the loaded one \(2,\)"):
        filled(mx.init.Load({"arg:fc_weight": mx.nd.ones(2)}))
    with pytest.raises(ValueError, match="parameter fc_weight is not among those loaded"):
        filled(mx.init.Load({}))
    with pytest.raises(ValueError, match=r"no initializer is registered as 'xavir'.*did you mean 'xavier'"):
        mx.init.create("xavir")


def test_what_is_loaded_is_logged(tmp_path, caplog):
    mx.nd.save(f"{tmp_path}/some.params", {"arg:fc_weight": mx.nd.full((4, 6), 2)})
    load = mx.init.Load(f"{tmp_path}/some.params", mx.init.One(), verbose=True)
    with caplog.at_level(logging.INFO):
        assert (filled(load).asnumpy() == 2).all() and (filled(load, name="x_weight").asnumpy() == 1).all()
    assert [record.getMessage() for record in caplog.records] == [
        "Initialized fc_weight by loading", "Initialized x_weight by default"]


def test_a_plain_name_is_deprecated():
    with pytest.warns(DeprecationWarning, match=r"give mx\.init\.InitDesc\(name\)"):
        mx.init.One()("fc_weight", mx.nd.zeros((2,)))
