"""Calls of the symbol interface make, answer and raise what MXNet 1.9.1 does (golden/symbol_calls.json)."""
import builtins
import json
import pickle
import re
from pathlib import Path

import pytest
from golden import make_symbols, symbol_calls

import mxc as mx
from mxc.base import MXNetError, NotImplementedForSymbol
from mxc.compiler.error import UnsupportedError
from mxc.compiler.ops import table

GOLDEN = Path(__file__).parent / "golden"

REAL = json.loads((GOLDEN / "symbol_calls.json").read_text())
# Where mxc raises another class than MXNet, which lets an accident of its code through.
OTHERS = {"backend of no string": "TypeError", "backward without a name": "ValueError"}
ERRORS = {"MXNetError": MXNetError, "NotImplementedForSymbol": NotImplementedForSymbol}


def without_row_pointers(text):
    """JSON without node_row_ptr, which counts hidden outputs: MXNet's operators have other ones in places."""
    return re.sub(r'"node_row_ptr": \[[^]]*\]', "", text)


def test_every_call_is_recorded():
    assert REAL["make"].keys() == symbol_calls.MAKE.keys() and REAL["answer"].keys() == symbol_calls.ANSWER.keys()


@pytest.mark.filterwarnings("ignore:backend .* is not used")
@pytest.mark.parametrize("name", REAL["make"])
def test_makes_what_mxnet_makes(name):
    real = REAL["make"][name]
    missing = {node["op"] for node in json.loads(real["json"])["nodes"]} - {"null", *table.names()}
    if missing:
        pytest.skip(f"there is no operator {', '.join(sorted(missing))} yet")
    try:
        made = make_symbols.facts(mx, symbol_calls.MAKE[name])
    except UnsupportedError as error:  # an operator that another output of the call needs
        pytest.skip(str(error))
    assert without_row_pointers(made.pop("json")) == without_row_pointers(real["json"])
    assert made == {key: real[key] for key in made}


@pytest.mark.parametrize("name", REAL["answer"])
def test_answers_as_mxnet(name):
    real = REAL["answer"][name]
    found = symbol_calls.answer(mx, symbol_calls.ANSWER[name])
    if "error" not in real:
        assert found == real
        return
    wanted = next(ERRORS.get(c) or getattr(builtins, c) for c in real["error"] if c in ERRORS or hasattr(builtins, c))
    assert OTHERS.get(name, wanted.__name__) in found.get("error", ()), found
    if wanted is NotImplementedForSymbol:
        ours, theirs = (text.partition(" with arguments")[0] for text in (found["text"], real["text"]))
        assert ours == theirs


def test_backends_are_noted_and_change_nothing():
    symbol = mx.sym.relu(mx.sym.Variable("x"), name="r")
    for optimize in (symbol.optimize_for, symbol.get_backend_symbol):
        with pytest.warns(UserWarning, match="'TensorRT' is not used") as caught:
            made = optimize("TensorRT")
        assert made is not symbol and made.tojson() == symbol.tojson() and caught[0].filename == __file__


def test_gradient_says_what_to_do():
    with pytest.raises(MXNetError, match=r"backward.*x, y"):
        mx.sym.Variable("x").gradient(["x", "y"])


def test_numpy_interface_is_not_there():
    with pytest.raises(UnsupportedError, match=r"mx\.np"):
        mx.sym.Variable("x").as_np_ndarray()


def test_distributions_take_all_numbers_or_all_symbols():
    x = mx.sym.Variable("x")
    with pytest.raises(TypeError, match=r"all symbols or all numbers.*high=1"):
        mx.sym.random.uniform(x, 1)
    with pytest.raises(ValueError, match="scale must be a number or a symbol"):
        mx.sym.random.normal(0, "a")


def test_a_group_is_made_by_any_function():
    x = mx.sym.Variable("x")
    assert mx.sym.Group([x, x], create_fn=len) == 2


def test_shapes_by_position_and_states_by_name():
    symbol = mx.sym.BatchNorm(mx.sym.Variable("x"), name="bn", eps=0, use_global_stats=True)
    assert symbol.infer_shape((4, 2))[0] == [(4, 2), (2,), (2,)]
    ones = mx.nd.ones((2,))
    result = symbol.eval(x=mx.nd.ones((1, 2)), bn_gamma=ones, bn_beta=ones, bn_moving_mean=ones, bn_moving_var=ones)
    assert result[0].asnumpy().tolist() == [[1, 1]]


def test_pickles_keep_amp_casts():
    symbol = mx.sym.relu(mx.sym.amp_cast(mx.sym.Variable("x"), dtype="float16"))
    assert "amp_cast" in symbol.__getstate__()["handle"] and "amp_cast" not in symbol.tojson()
    assert pickle.loads(pickle.dumps(symbol)).list_arguments() == ["x"]


@pytest.mark.skipif(not table.has("sgd_update"), reason="there is no operator sgd_update yet")
def test_optimizer_operators_take_symbols_by_name():
    weight, grad = mx.sym.Variable("weight"), mx.sym.Variable("grad")
    for made in (mx.sym.sgd_update(weight, grad, 0.1), mx.sym.sgd_update(weight=weight, grad=grad, lr=0.1)):
        assert made.list_arguments() == ["weight", "grad"] and made.attr("lr") == "0.1"


def test_help_describes_an_operator():
    function = mx.sym.clip
    assert function.__doc__.splitlines()[0] == table.get("clip").doc != ""
    for line in ("data : Symbol", "a_min : float, required", "name : str, optional", "    Outputs: output"):
        assert line in function.__doc__.splitlines()
    assert "eps : double, default 0.001" in mx.sym.BatchNorm.__doc__
    assert "moving_mean : Symbol, auxiliary state" in mx.sym.BatchNorm.__doc__
    assert "bias : Symbol, unless no_bias" in mx.sym.FullyConnected.__doc__
    assert "*arg : Symbols" in mx.sym.concat.__doc__ and "this is its alias concat" in mx.sym.concat.__doc__
    assert "data : NDArray" in mx.nd.clip.__doc__ and "out : NDArray" in mx.nd.clip.__doc__


@pytest.mark.skipif(not table.has("_adamw_update"), reason="there is no operator _adamw_update yet")
def test_adamw_takes_its_factor_as_number_or_symbol():
    """MXNet's own function raises MXNetError: its operator takes symbols by position only."""
    names = ["weight", "grad", "mean", "var"]
    inputs = [mx.sym.Variable(name) for name in names]
    made = mx.sym.contrib.adamw_update(*inputs, 2.0, lr=0.1, eta=1, name="step")
    assert made.list_arguments() == names and made.attr("lr") == "0.1" and made.name == "step"
    made = mx.sym.contrib.adamw_update(*inputs, mx.sym.Variable("factor"), lr=0.1, eta=1)
    assert made.list_arguments() == [*names, "factor"]
