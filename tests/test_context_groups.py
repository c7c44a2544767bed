"""Devices of arrays and of groups of nodes are those of MXNet 1.9.1 (golden/contexts.json)."""
from __future__ import annotations

import builtins
import json
from pathlib import Path

import pytest
from golden import contexts

import mxc as mx
from mxc.base import MXNetError

REAL = json.loads((Path(__file__).parent / "golden" / "contexts.json").read_text())
OTHERS = {"text": TypeError, "list": TypeError, "number": TypeError}  # MXNet lets an AttributeError of its code through


def test_every_call_is_recorded() -> None:
    assert REAL["calls"].keys() == contexts.CALLS.keys() and REAL["arrays"].keys() == contexts.ARRAYS.keys()


@pytest.mark.parametrize(("family", "name"), [(f, name) for f in ("calls", "arrays") for name in REAL[f]])
def test_answers_as_mxnet(family: str, name: str) -> None:
    calls = {"calls": contexts.CALLS, "arrays": contexts.ARRAYS}[family]
    real, found = REAL[family][name], contexts.answer(mx, calls[name])
    if isinstance(real, dict) and "error" in real:
        wanted = OTHERS.get(name) or getattr(builtins, real["error"][0], MXNetError)
        assert isinstance(found, dict) and wanted.__name__ in found.get("error", ()), (found, real)
    else:
        assert found == real


def test_nodes_are_placed_as_mxnet_places_them() -> None:
    for case, real in REAL["graphs"]:
        assert contexts.graph_places(mx, case) == real, case


def test_a_gradient_may_be_anywhere() -> None:
    """MXNet refuses these: a variable in no group that nodes of two groups read, and gradients apart from both."""
    x, v = mx.sym.Variable("x"), mx.sym.Variable("v")
    with mx.AttrScope(ctx_group="one"):
        first = x * v
    with mx.AttrScope(ctx_group="two"):
        symbol = first * v
    args = {"x": mx.nd.ones((2,)) * 3, "v": mx.nd.ones((2,), mx.cpu(3)) * 5}
    grads = {name: mx.nd.zeros((2,), mx.cpu(i)) for i, name in enumerate("xv", 5)}
    executor = symbol.bind(mx.cpu(), args, args_grad=grads, group2ctx=contexts.groups(mx))
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones((2,)))
    assert [g.asnumpy().tolist() for g in grads.values()] == [[25, 25], [30, 30]]
    assert [contexts.at(g) for g in executor.grad_arrays] == ["cpu(5)", "cpu(6)"]
    simple = symbol.simple_bind(mx.cpu(4), x=(2,), v=(2,), group2ctx=contexts.groups(mx))
    assert [contexts.at(a) for a in (*simple.grad_arrays, *simple.outputs)] == ["cpu(4)", "cpu(4)", "cpu(2)"]


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(MXNetError, match=r"'fc2_weight' is in the group 'two', which has no context.*names one"):
        contexts.wrong(mx, {"one": mx.cpu(1)})
    with pytest.raises(MXNetError, match=r"'bn_moving_mean' is on cpu\(0\), but node 'bn', .* on cpu\(1\)"):
        contexts.state_apart(mx)
    with pytest.raises(TypeError, match=r"group2ctx\['one'\] must be a Context"):
        contexts.wrong(mx, {"one": "cpu(1)"})
    with pytest.raises(MXNetError, match=r"gpu\(0\): there is none"):  # though no array is there
        with mx.AttrScope(ctx_group="one"):
            inner = mx.sym.exp(mx.sym.Variable("x", attr={"ctx_group": "two"}))
        mx.sym.exp(inner, attr={"ctx_group": "two"}).bind(
            mx.cpu(), [mx.nd.ones((2,))], group2ctx={"one": mx.gpu(0), "two": mx.cpu()})


def test_a_monitor_sees_where_values_are() -> None:
    executor = contexts.two(mx).simple_bind(mx.cpu(), x=(4, 5), group2ctx=contexts.groups(mx))
    seen = {}
    executor.set_monitor_callback(lambda name, array: seen.update({name: contexts.at(array)}))
    executor.forward()
    assert (seen["fc1_output"], seen["fc2_output"], seen["bn_output"]) == ("cpu(1)", "cpu(2)", "cpu(2)")


def test_a_custom_operator_is_told_where_it_runs() -> None:
    told = []

    class Twice(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            told.append(str(mx.current_context()))
            self.assign(out_data[0], req[0], in_data[0] * 2)

    @mx.operator.register("told_where_it_runs")
    class TwiceProperty(mx.operator.CustomOpProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            told.append(str(ctx))
            return Twice()

    made = mx.nd.Custom(mx.nd.ones((2,), mx.cpu(3)), op_type="told_where_it_runs")
    symbol = mx.sym.Custom(mx.sym.Variable("x"), op_type="told_where_it_runs")
    out = symbol.bind(mx.cpu(4), [mx.nd.ones((2,), mx.cpu(4))]).forward()[0]
    assert made.asnumpy().tolist() == out.asnumpy().tolist() == [2, 2]
    assert told == ["cpu(3)", "cpu(3)", "cpu(4)", "cpu(4)"] and str(made.context) == "cpu(3)"
