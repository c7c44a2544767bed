"""Attributes of symbols, scopes that give them, and automatic names."""
import pickle
import threading

import pytest

import mxc as mx
from mxc.compiler.error import MXNetError


def test_attributes_of_one_node():
    symbol = mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=3, name="f",
                                   attr={"__lr_mult__": "2", "__foo__": "3"})
    shown = {"num_hidden": "3", "__foo__": "3", "__lr_mult__": "2", "lr_mult": "2"}
    assert (symbol.attr("__lr_mult__"), symbol.attr("lr_mult"), symbol.attr("num_hidden"), symbol.attr("nope")) == (
        "2", "2", "3", None)
    assert symbol.list_attr() == shown
    assert symbol.attr_dict() == {"f_weight": shown, "f_bias": shown, "f": shown}
    with pytest.raises(DeprecationWarning):
        symbol.list_attr(recursive=True)


def test_attributes_of_a_group_are_none():
    group = mx.sym.Group([mx.sym.relu(mx.sym.Variable("x", lr_mult=1)), mx.sym.Variable("y")])
    assert group.attr("lr_mult") is None and group.list_attr() == {}
    with pytest.raises(MXNetError, match="non-grouped"):
        group._set_attr(__x__="1")


def test_set_attr():
    variable = mx.sym.Variable("v")
    variable._set_attr(mood="angry", lr_mult="2")
    assert variable.list_attr() == {"mood": "angry", "__lr_mult__": "2", "lr_mult": "2"}
    layer = mx.sym.FullyConnected(variable, num_hidden=3, name="f")
    layer._set_attr(num_hidden="5", __note__="kept")
    assert layer.attr("num_hidden") == "5" and layer.infer_shape(v=(2, 4))[1] == [(2, 5)]
    for attrs, error in [({"a": 3}, ValueError), ({"weight_lr_mult": "3"}, MXNetError),
                         ({"num_hidden": "x"}, MXNetError), ({"num_hidden": "7", "note": "lost"}, MXNetError)]:
        with pytest.raises(error):
            layer._set_attr(**attrs)
    assert layer.attr("num_hidden") == "5"
    assert pickle.loads(pickle.dumps(layer)).list_attr() == {"num_hidden": "5", "__note__": "kept"}


@pytest.mark.parametrize("kwargs, error, text", [
    ({"name": 3}, TypeError, "string"), ({"name": None}, TypeError, "string"),
    ({"attr": {"a": 3}}, ValueError, "string values"), ({"foo": "1"}, ValueError, "foo.*double underscores"),
    ({"dtype": "abc"}, TypeError, "abc"), ({"dtype": "uint16"}, TypeError, "uint16"),
    ({"stype": "foo"}, ValueError, "foo"),
])
def test_refused_variables(kwargs, error, text):
    with pytest.raises(error, match=text):
        mx.sym.Variable(**{"name": "a", **kwargs})


def test_variable_takes_an_initializer():
    class Init:
        def dumps(self):
            return '["one", {}]'

    assert mx.sym.Variable("a", init=Init()).attr("__init__") == '["one", {}]'


def test_scopes_nest_and_end():
    with mx.AttrScope(ctx_group="one", data="great"):
        outer = mx.sym.Variable("a", attr={"data": "mine"})
        with mx.AttrScope(ctx_group="two"):
            inner = mx.sym.Variable("b")
        after = mx.sym.Variable("c")
    outside = mx.sym.Variable("d")
    assert [v.attr("ctx_group") for v in (outer, inner, after, outside)] == ["one", "two", "one", None]
    assert [v.attr("data") for v in (outer, inner, after, outside)] == ["mine", "great", "great", None]
    with pytest.raises(ValueError, match="string"):
        mx.AttrScope(a=1)


def test_a_scope_can_be_used_again():
    scope = mx.AttrScope(__a__="1")
    with mx.AttrScope(__b__="2"), scope, scope:
        both = mx.sym.Variable("x")
    with scope:
        alone = mx.sym.Variable("y")
    assert both.list_attr() == {"__a__": "1", "__b__": "2"} and alone.list_attr() == {"__a__": "1"}
    assert mx.AttrScope._current.value.get({"k": "v"}) == {"k": "v"}


def test_a_scope_ends_when_something_is_raised():
    with pytest.raises(MXNetError), mx.AttrScope(nosuch="1"), mx.name.Prefix("p_"):
        mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=3)
    assert mx.sym.Variable("x").list_attr() == {}
    assert mx.sym.relu(mx.sym.Variable("x"), name="n").name == "n"


def test_names():
    with mx.name.NameManager() as manager:
        assert mx.name.NameManager._current.value is manager
        assert [manager.get(name, "b") for name in ("a", None, "")] == ["a", "b0", "b1"]
        with mx.name.Prefix("p_") as prefix:
            assert [prefix.get(name, "b") for name in ("a", None)] == ["p_a", "p_b0"]
        assert mx.sym.Variable("x").relu().name == "relu0"
    assert mx.name.NameManager._current.value is not manager


def test_names_and_scopes_belong_to_a_thread():
    seen = []

    def work():
        with mx.name.NameManager():
            seen.append(mx.sym.relu(mx.sym.Variable("x")).name)
        seen.append(mx.sym.Variable("x").list_attr())

    with mx.name.Prefix("main_"), mx.AttrScope(__a__="1"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen == ["relu0", {}]
