"""Symbol: what it builds is compared with what MXNet 1.9.1 makes of the same constructions (golden/symbols.json)."""
import copy
import json
import pickle
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from golden import make_symbols, symbol_cases
from hypothesis import given, settings
from hypothesis import strategies as st

import mxc as mx
from mxc.base import NotImplementedForSymbol
from mxc.compiler.error import MXNetError, UnsupportedError

GOLDEN = Path(__file__).parent / "golden"

REAL = json.loads((GOLDEN / "symbols.json").read_text())["cases"]


def net():
    """A layer whose weight and bias are made for it, over an operator."""
    return mx.sym.FullyConnected(mx.sym.relu(mx.sym.Variable("data"), name="r"), num_hidden=3, name="f")


def nodes(symbol):
    """(operator, name) of every node in the JSON."""
    return [(node["op"], node["name"]) for node in json.loads(symbol.tojson())["nodes"]]


def without_row_pointers(text):
    """JSON without node_row_ptr, which counts hidden outputs: MXNet's operators have other ones in places."""
    return re.sub(r'"node_row_ptr": \[[^]]*\]', "", text)


@pytest.mark.parametrize("case", symbol_cases.CASES)
def test_is_what_mxnet_makes(case):
    made = make_symbols.facts(mx, symbol_cases.CASES[case])
    assert {key: made[key] for key in made if key != "json"} == {key: REAL[case][key] for key in made if key != "json"}
    assert without_row_pointers(made["json"]) == without_row_pointers(REAL[case]["json"])  # byte for byte


@pytest.mark.parametrize("case", symbol_cases.CASES)
def test_json_and_pickle_round_trip(case):
    symbol = symbol_cases.CASES[case](mx)
    text = symbol.tojson()
    assert mx.sym.load_json(text).tojson() == text
    assert mx.sym.fromjson(text).list_outputs() == symbol.list_outputs()
    assert pickle.loads(pickle.dumps(symbol)).tojson() == text
    assert copy.deepcopy(symbol).tojson() == text


def test_save_and_load(tmp_path):
    path = tmp_path / "net-symbol.json"
    net().save(path)
    assert path.read_text() == net().tojson()
    assert mx.sym.load(str(path)).tojson() == net().tojson()
    for call in (net().save, mx.sym.load, mx.sym.load_json):
        with pytest.raises(TypeError):
            call(3)


# -- operators of Python

@pytest.mark.parametrize("other", ["a", None, [1]])
def test_arithmetic_refuses_other_types(other):
    x = mx.sym.Variable("x")
    for compute in (lambda: x + other, lambda: other - x, lambda: x == other, lambda: x < other, lambda: other ** x):
        with pytest.raises(TypeError, match="not supported"):
            compute()
    with pytest.raises(TypeError, match="not supported"):
        mx.sym.hypot(other, x)


def test_functions_of_two_numbers_give_a_number():
    assert (mx.sym.pow(2, 3), mx.sym.power(2, 3), mx.sym.maximum(2, 5), mx.sym.minimum(2, 5), mx.sym.hypot(3, 4)) == (
        8, 8, 5, 2, 5.0)


def test_numpy_numbers_are_written_as_numbers():
    x = mx.sym.Variable("x")
    assert (x * np.float32(0.1)).attr("scalar") == (np.float32(0.1) * x).attr("scalar") == "0.1"
    assert (x / np.int64(3)).attr("scalar") == "3"
    assert mx.sym.Convolution(x, kernel=(np.int64(3), 3), num_filter=np.int32(8)).attr("kernel") == "(3, 3)"
    assert mx.sym.cast(x, dtype=np.float16).attr("dtype") == x.astype(np.dtype("float16")).attr("dtype") == "float16"


def test_what_needs_values_is_refused():
    x = mx.sym.Variable("x")
    calls = [x.asnumpy, x.asscalar, x.backward, x.copy, x.detach, x.wait_to_read, x.as_in_context,
             lambda: bool(x), lambda: x in [mx.sym.Variable("y")]]
    for call in calls:
        with pytest.raises(NotImplementedForSymbol):
            call()
    with pytest.raises(NotImplementedForSymbol):
        x += 1
    with pytest.raises(TypeError):
        hash(x)


def test_methods_are_operators():
    x = mx.sym.Variable("x")
    for name in ("relu", "sigmoid", "exp", "sqrt", "square", "sum", "mean", "max", "transpose", "zeros_like"):
        assert nodes(getattr(x, name)(name="n")) == nodes(getattr(mx.sym, name)(x, name="n"))


# -- operator functions

@pytest.mark.parametrize("call, error, text", [
    (lambda x: mx.sym.FullyConnected(x, num_hiden=3), MXNetError, "num_hiden.*num_hidden"),
    (lambda x: mx.sym.FullyConnected(x), MXNetError, "num_hidden.*missing"),
    (lambda x: mx.sym.FullyConnected(x, num_hidden="abc"), MXNetError, "num_hidden.*abc"),
    (lambda x: mx.sym.FullyConnected(x, num_hidden=0), MXNetError, "num_hidden"),
    (lambda x: mx.sym.FullyConnected(x, data=x, num_hidden=3), TypeError, "multiple values.*data"),
    (lambda x: mx.sym.FullyConnected("x", num_hidden=3), TypeError, "data must be Symbol"),
    (lambda x: mx.sym.FullyConnected(dat=x, num_hidden=3), MXNetError, "no input 'dat'.*data, weight, bias"),
    (lambda x: mx.sym.FullyConnected(x, bias=x, no_bias=True, num_hidden=3), MXNetError, "no input 'bias'"),
    (lambda x: mx.sym.Activation(x, act_type="rel"), MXNetError, "act_type.*relu"),
    (lambda x: mx.sym.concat([x, x]), TypeError, "must be Symbol"),
    (lambda x: mx.sym.concat(), MXNetError, "num_args"),
    (lambda x: mx.sym.concat(x, arg1=x), TypeError, "not both"),
    (lambda x: mx.sym.relu(mx.sym.Group([x, x])), MXNetError, "single value is required"),
    (lambda x: mx.sym.concat(mx.sym.Group([x, x]), x), MXNetError, "single value is required"),
    (lambda x: mx.sym.BatchNorm(x, moving_mean=mx.sym.relu(x)), MXNetError, "auxiliary states must be variables"),
    (lambda x: mx.sym.FullyConnected(x, num_hidden=3, weight_lr_mult=2), MXNetError, "weight_lr_mult is deprecated"),
    (lambda x: mx.sym.nosuch(x), AttributeError, "nosuch"),
    (lambda x: mx.sym._plus(x, x), AttributeError, "_plus"),
])
def test_refused_calls(call, error, text):
    with pytest.raises(error, match=text):
        call(mx.sym.Variable("x"))


def test_functions_describe_themselves():
    import inspect

    signature = inspect.signature(mx.sym.FullyConnected)
    assert list(signature.parameters)[:4] == ["data", "weight", "bias", "num_hidden"]
    assert "num_hidden : int" in mx.sym.FullyConnected.__doc__
    assert "FullyConnected" in dir(mx.sym) and "_plus_scalar" not in dir(mx.sym)
    assert {"nd", "sym", "cpu", "MXNetError", "executor", "__version__"} <= set(dir(mx)) and "importlib" not in dir(mx)
    assert all(hasattr(mx, name) for name in dir(mx))
    assert mx.sym._internal._plus_scalar.__name__ == "_plus_scalar"


# -- outputs, groups, composition

def test_outputs_by_number_name_and_slice():
    group = mx.sym.Group([mx.sym.relu(mx.sym.Variable("x"), name="r"),
                          mx.sym.split(mx.sym.Variable("y"), num_outputs=2, name="s")])
    assert len(group) == 3 and group.name is None and repr(group) == "<Symbol group [r, s, s]>"
    assert [one.list_outputs() for one in group] == [["r_output"], ["s_output0"], ["s_output1"]]
    assert group["s_output1"].list_outputs() == group[2].list_outputs() == ["s_output1"]
    assert group[0:2].list_outputs() == ["r_output", "s_output0"]
    assert group[1:].list_outputs() == ["s_output0", "s_output1"]
    assert group[:-1].list_outputs() == ["r_output", "s_output0"]
    for index, error, text in [("zz", ValueError, "zz"), (9, IndexError, "9"), (-1, MXNetError, "nonnegative"),
                               (slice(2, 1), TypeError, "list of symbols"), (1.5, TypeError, "integer"),
                               ("r", ValueError, "Cannot find output")]:
        with pytest.raises(error, match=text):
            group[index]
    x = mx.sym.Variable("x")
    with pytest.raises(ValueError, match="multiple outputs"):
        mx.sym.Group([x, x])["x"]
    with pytest.raises(IndexError):
        mx.sym.BatchNorm(x)[1]  # a hidden output


@pytest.mark.parametrize("symbols", [[], None, "x", [1]])
def test_group_refuses_what_is_no_list_of_symbols(symbols):
    with pytest.raises(TypeError, match="Expected a list of symbols"):
        mx.sym.Group(symbols)


def test_composition_leaves_the_symbol_as_it_was():
    before, symbol = net().tojson(), net()
    other = mx.sym.tanh(mx.sym.Variable("in"))
    made = symbol(data=other, name="new")
    assert symbol.tojson() == before and symbol.name == "f"
    assert made.list_arguments() == ["in", "f_weight", "f_bias"] and made.name == "new"


def test_composition_replaces_every_variable_of_the_name():
    symbol = mx.sym.Group([mx.sym.relu(mx.sym.Variable("data")), mx.sym.exp(mx.sym.Variable("data"))])
    assert symbol(data=mx.sym.Variable("other")).list_arguments() == ["other"]


@pytest.mark.parametrize("call, error, text", [
    (lambda s, x: s(x), MXNetError, "only support kwargs"),
    (lambda s, x: s(x, f_weight=x), TypeError, "not both"),
    (lambda s, x: s(foo=x), MXNetError, "foo not found.*data, f_weight, f_bias"),
    (lambda s, x: s(data=3), TypeError, "expect `Symbol`"),
    (lambda s, x: s(data=mx.sym.Group([x, x])), MXNetError, "single value"),
])
def test_refused_compositions(call, error, text):
    with pytest.raises(error, match=text):
        call(net(), mx.sym.Variable("x"))


def test_an_auxiliary_state_can_be_replaced_by_a_variable_only():
    symbol = mx.sym.BatchNorm(mx.sym.Variable("d"), name="b")
    assert symbol(b_moving_mean=mx.sym.Variable("m")).list_auxiliary_states() == ["m", "b_moving_var"]
    with pytest.raises(MXNetError, match="must be variables"):
        symbol(b_moving_mean=mx.sym.relu(mx.sym.Variable("m")))


def test_children_and_internals():
    symbol = net()
    assert mx.sym.Variable("v").get_children() is None
    assert symbol.get_children().list_outputs() == ["r_output", "f_weight", "f_bias"]
    assert symbol.get_internals().list_outputs() == ["data", "r_output", "f_weight", "f_bias", "f_output"]
    assert symbol.get_internals()["r_output"].list_arguments() == ["data"]


# -- inference

@pytest.fixture
def layers():
    return mx.sym.BatchNorm(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="f"), name="b")


FULL = ([(2, 5), (3, 5), (3,), (3,), (3,)], [(2, 3)], [(3,), (3,)])


def test_infer_shape(layers):
    assert layers.infer_shape(data=(2, 5)) == FULL
    assert layers.infer_shape((2, 5)) == FULL
    assert layers.infer_shape_partial(None, (3, 5))[0] == [(), (3, 5), (), (), ()]  # nothing more follows, as in MXNet
    assert layers.infer_shape(data=(np.int64(2), np.int32(5)), b_moving_mean=(3,)) == FULL
    assert layers.infer_shape_partial(data=(0, 5)) == ([(0, 5), *FULL[0][1:]], [(0, 3)], FULL[2])
    assert layers.infer_shape_partial() == ([(), (), (), (), ()], [()], [(), ()])
    assert (mx.sym.Variable("x") + mx.sym.Variable("y")).infer_shape(x=(2, 0), y=(0, 3))[0] == [(2, 3), (2, 3)]


@pytest.mark.parametrize("given_shapes", [{}, {"f_bias": (3,)}, {"data": (-1, 5)}, {"data": ()}])
def test_an_incomplete_infer_shape_warns(layers, given_shapes):
    with pytest.warns(UserWarning, match=r"Cannot decide shape for the following arguments.*\n\tdata: \("):
        assert layers.infer_shape(**given_shapes) == (None, None, None)


@pytest.mark.parametrize("args, kwargs, error, text", [
    ((), {"foo": (2, 5)}, MXNetError, "foo"), (((2, 5),), {"f_bias": (3,)}, ValueError, "positional or kwargs"),
    (((2,),) * 8, {}, MXNetError, "8 values for 5"), (([2, 5],), {}, TypeError, "argument 0 is <class 'list'>"),
    ((), {"data": [2, 5]}, TypeError, "'data' is <class 'list'>"), ((), {"data": 5}, TypeError, "'data'"),
    (((2.0, 5),), {}, TypeError, "integer"), ((), {"data": (2, 5), "f_weight": (3, 6)}, MXNetError, "f_weight"),
])
def test_refused_shapes(layers, args, kwargs, error, text):
    with pytest.raises(error, match=text):
        layers.infer_shape(*args, **kwargs)


def test_infer_type(layers):
    f16, f32, f64 = np.float16, np.float32, np.float64
    assert layers.infer_type(data="float16") == ([f16, f16, f16, f32, f32], [f16], [f32, f32])
    assert layers.infer_type(np.float32)[1] == [f32]
    assert layers.infer_type(None, f64) == ([f64] * 5, [f64], [f64, f64])
    x = mx.sym.Variable("x")
    assert mx.sym.Cast(x, dtype="int32").infer_type_partial() == ([None], [np.int32], [])
    assert (mx.sym.Variable("a", dtype="float16") + x).infer_type()[0] == [f16, f16]
    with pytest.warns(UserWarning, match="Cannot decide type.*\n\tx: None"):
        assert x.infer_type() == (None, None, None)
    for kwargs, error in [({"x": "abc"}, TypeError), ({"x": "uint16"}, TypeError), ({"foo": "int8"}, MXNetError)]:
        with pytest.raises(error):
            x.infer_type(**kwargs)
    with pytest.raises(MXNetError, match=r"int8.*float32|float32.*int8"):
        (x + mx.sym.Variable("y")).infer_type(x="int8", y="float32")


# -- generated graphs

UNARY = ["relu", "sigmoid", "tanh", "exp", "abs", "square"]
BINARY = ["add", "sub", "mul", "maximum"]


@st.composite
def graphs(draw):
    """A symbol grown by random steps over a few variables, with attributes and groups."""
    made = [mx.sym.Variable(f"v{i}", **({"shape": (2, 0)} if i else {})) for i in range(draw(st.integers(1, 3)))]
    for step in range(draw(st.integers(1, 12))):
        x, y = draw(st.sampled_from(made)), draw(st.sampled_from(made))
        kind = draw(st.integers(0, 4))
        if kind == 0:
            new = getattr(mx.sym, draw(st.sampled_from(UNARY)))(x)
        elif kind == 1:
            new = {"add": x + y, "sub": x - y, "mul": x * y, "maximum": mx.sym.maximum(x, y)}[
                draw(st.sampled_from(BINARY))]
        elif kind == 2:
            new = x * draw(st.floats(allow_nan=False, allow_infinity=False, width=32))
        elif kind == 3:
            new = mx.sym.FullyConnected(x, num_hidden=draw(st.integers(1, 9)), name=f"fc{step}",
                                        attr={"__note__": draw(st.text(max_size=8))})
        else:
            new = mx.sym.BatchNorm(x, name=draw(st.text(min_size=1, max_size=8)) + str(step))
        made.append(new)
    return mx.sym.Group(made[-draw(st.integers(1, 3)):])


@settings(max_examples=40, deadline=None)
@given(graphs())
def test_generated_graphs_round_trip(symbol):
    text = symbol.tojson()
    again = mx.sym.load_json(text)
    assert again.tojson() == text
    assert again.list_arguments() == symbol.list_arguments()
    assert again.list_auxiliary_states() == symbol.list_auxiliary_states()
    assert again.attr_dict() == symbol.attr_dict()
    assert copy.copy(symbol).debug_str() == symbol.debug_str()


# -- the package

def test_importing_mxc_loads_no_compiler():
    script = ("import sys, mxc; heavy = [m for m in ('numba', 'llvmlite', 'yaml', 'mxc.compiler.ops.table') "
              "if m in sys.modules]; assert not heavy, heavy; assert mxc.sym is mxc.symbol")
    subprocess.run([sys.executable, "-c", script], check=True)
    with pytest.raises(AttributeError, match="nosuch"):
        mx.nosuch  # noqa: B018


def test_unknown_operators_are_a_table_error():
    with pytest.raises(UnsupportedError):
        mx.sym.functions.find("nosuch")


def test_no_warning_when_everything_follows(layers):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layers.infer_shape(data=(2, 5))
        layers.infer_type(data="float32")
