"""Loops and choices in graphs as in MXNet 1.9.1 (golden/control_flow.json), what is refused, and blocks of Gluon."""
from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from golden import make_control_flow
from golden.make_control_flow import GLUON, GRAPHS, REFUSED, RUNS
from loop_graphs import CELL_VALUES, G, cell, looped, numbers, run, same

import mxc as mx
from mxc.compiler.error import ModelFileError, MXNetError

REAL = json.loads((Path(__file__).parent / "golden" / "control_flow.json").read_text())


def close(ours, theirs, digits=4):
    ours, theirs = json.loads(json.dumps(ours)), json.loads(json.dumps(theirs))
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys()
        return all(close(ours[key], theirs[key], digits) for key in theirs)
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(close, ours, theirs))
    return math.isclose(ours, theirs, rel_tol=10 ** -digits, abs_tol=10 ** -digits)


# -- as MXNet

def test_every_case_is_recorded():
    assert list(REAL) == make_control_flow.CASES


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_have_mxnets_json_both_ways(name):
    text, arguments, outputs = REAL[f"graph: {name}"]
    made = make_control_flow.graph(mx, name)
    assert (made.tojson(), made.list_arguments(), made.list_outputs()) == (text, arguments, outputs)
    read = mx.sym.load_json(text)
    assert (read.tojson(), read.list_arguments(), read.list_outputs()) == (text, arguments, outputs)


@pytest.mark.parametrize("name", RUNS)
def test_numbers_are_mxnets_of_graphs_made_here_and_of_mxnets_file(name):
    source, values, grad_req = RUNS[name]
    for symbol in (make_control_flow.graph(mx, source), mx.sym.load_json(REAL[f"graph: {source}"][0])):
        assert close(list(make_control_flow.run(mx, symbol, values, grad_req)), REAL[f"run: {name}"])


@pytest.mark.parametrize("name", REFUSED)
def test_what_mxnet_refuses_is_refused(name):
    kinds = {"AssertionError": (ValueError, TypeError), "ValueError": ValueError, "MXNetError": MXNetError}
    with pytest.raises(kinds[REAL[f"refused: {name}"]]) as caught:
        REFUSED[name](G)
    assert isinstance(caught.value, MXNetError) and len(str(caught.value)) > 20


@pytest.mark.parametrize("name", GLUON)
def test_dynamic_unroll_gives_mxnets_numbers(name):
    assert close(GLUON[name](mx), REAL[f"gluon: {name}"])


# -- refusals when shapes are known, and of damaged files

@pytest.mark.parametrize(("make", "shapes", "message"), [
    (lambda: G.foreach(lambda x, s: (x[0] + 1, s + x[1]), [G.a, G.b], G.s), {"a": (3, 2), "b": (2, 2), "s": (2,)},
     r"_foreach.*length along axis 0.*\(3,\) and \(2,\)"),
    (lambda: G.foreach(lambda x, s: (x, mx.sym.concat(s, x, dim=0)), G.a, G.s), {"a": (3, 2), "s": (2,)},
     r"_foreach.*concat.*\(2,\) and \(4,\)"),
    (lambda: G.while_loop(lambda i: i < 3, lambda i: (i * 2, i + 1), G.i), {"i": (2,)},
     r"_while_loop.*condition has the shape \(2,\); expected one element"),
    (lambda: G.cond(G.p, lambda: G.a * 2, lambda: G.a), {"p": (2,), "a": (1,)}, r"_cond.*condition.*\(2,\)"),
    (lambda: G.cond(G.p, lambda: G.a * 2, lambda: G.b * 2), {"p": (1,), "a": (2,), "b": (3,)},
     r"_cond.*\(3,\) and \(2,\)"),
    (lambda: G.foreach(lambda x, s: (s * 2, s + 1), [], G.s), {"s": (2,)}, "no data to loop over"),
    (lambda: G.foreach(lambda x, s: (mx.sym.Dropout(x), s + x), G.a, G.s), {"a": (70000, 1), "s": (1,)},
     "draws random numbers 1 times in each of 70000 steps")])
def test_what_does_not_fit_is_refused_when_it_is_bound_or_compiled(make, shapes, message):
    with pytest.raises(MXNetError, match=f"(?s){message}"):
        make().simple_bind(mx.cpu(), **shapes).forward(is_train=True)


def _damaged(change: Callable[[dict], None], name: str = "plain") -> str:
    document = json.loads(REAL[f"graph: {name}"][0])
    change(next(node for node in document["nodes"] if "subgraphs" in node))
    return json.dumps(document)


@pytest.mark.parametrize(("change", "name", "message"), [
    (lambda n: n["subgraphs"].clear(), "plain", "has 1 graphs .*but 0 are there"),
    (lambda n: n["attrs"].update(in_data_locs="[7]"), "plain", "expected each of 0 to 2 once"),
    (lambda n: n["attrs"].update(in_data_locs="[1]"), "plain", "expected each of 0 to 2 once"),
    (lambda n: n["attrs"].update(remain_locs="[]"), "plain", "expected each of 0 to 2 once"),
    (lambda n: n["attrs"].update(num_args="9"), "plain", "takes 8 inputs"),
    (lambda n: n["attrs"].update(num_outputs="5"), "counting", "num_outputs: there are 5; expected 3"),
    (lambda n: n["attrs"].update(num_out_data="-1"), "plain", "num_out_data"),
    (lambda n: n["attrs"].update(func_input_locs="[0, 1, 9]"), "counting", "func_input_locs"),
    (lambda n: n["attrs"].update(func_var_locs="[0, 8]"), "counting", "func_var_locs"),
    (lambda n: n["attrs"].update(cond_input_locs="[]"), "counting", "feed the condition: there are 0; expected 1"),
    (lambda n: n["attrs"].update(max_iterations="0"), "counting", "max_iterations"),
    (lambda n: n["subgraphs"][1]["heads"].pop(), "counting", "output 2 of the body is named, which has 2"),
    (lambda n: n["subgraphs"][0]["heads"].append([0, 0, 0]), "counting", "the condition has 2 outputs"),
    (lambda n: n["subgraphs"][1]["heads"].pop(), "choice", "output 1 of the branch of then is named, which has 1"),
    (lambda n: n["attrs"].update(then_input_locs="[5]"), "choice", "then_input_locs"),
    (lambda n: n["attrs"].pop("remain_locs"), "plain", "required attribute 'remain_locs'")])
def test_damaged_files_are_refused(change, name, message):
    with pytest.raises(ModelFileError, match=message):
        mx.sym.load_json(_damaged(change, name))


# -- in blocks of Gluon

class _Flow(mx.gluon.HybridBlock):
    """All three, with a layer and parameters of its own in the bodies."""

    def __init__(self):
        super().__init__()
        self.w, self.u = self.params.get("w", shape=(4, 3)), self.params.get("u", shape=(4, 4))
        self.dense = mx.gluon.nn.Dense(4, flatten=False, in_units=4)

    def hybrid_forward(self, F, x, h, w, u):
        def body(data, state):
            made = F.tanh(self.dense(F.FullyConnected(data, w, no_bias=True, num_hidden=4) + F.dot(state, u)))
            return [made, made * 2], made

        (one, two), last = F.contrib.foreach(body, x, h)
        grown, (_, end) = F.contrib.while_loop(lambda i, v: i < 3, lambda i, v: (v, (i + 1, v * 1.1 + F.dot(v, u))),
                                               (F.zeros((1,)), last), max_iterations=4)
        return one, two, grown, F.contrib.cond(F.sum(end) > 0, lambda: end * 2, lambda: end * end)


def _of_block(net, second=False):
    x, h = mx.nd.array(CELL_VALUES["x"]), mx.nd.array(CELL_VALUES["h"])
    x.attach_grad()
    with mx.autograd.record():
        outputs = net(x, h)
        loss = sum((o * o).sum() for o in outputs)
        if second:
            slope, = mx.autograd.grad(loss, [x], create_graph=True)
            loss = (slope * slope).sum()
    loss.backward()
    return [o.asnumpy() for o in outputs], {"x": x.grad.asnumpy(), **{
        name: p.grad().asnumpy() for name, p in net.collect_params().items()}}


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("options", [{}, {"static_alloc": True, "static_shape": True}], ids=str)
def test_a_hybridised_block_gives_what_it_gives_operator_by_operator(options, second):
    net = _Flow()
    net.initialize(mx.init.Xavier(rnd_type="gaussian", magnitude=2))
    plain = _of_block(net, second)
    net.hybridize(**options)
    for _ in range(2):
        same(_of_block(net, second), plain, rtol=2e-4)


def test_arrays_without_slices_are_refused():
    with mx.np_shape(), pytest.raises(ValueError, match="no slices along axis 0, so the body is never called"):
        mx.nd.contrib.foreach(lambda x, s: (x, s), mx.nd.zeros((0, 3)), mx.nd.zeros((3,)))


def test_an_exported_block_has_its_loops(tmp_path):
    net = _Flow()
    net.initialize()
    net.hybridize()
    x, h = mx.nd.array(CELL_VALUES["x"]), mx.nd.array(CELL_VALUES["h"])
    before = [o.asnumpy() for o in net(x, h)]
    net.export(str(tmp_path / "flow"))
    read = mx.gluon.SymbolBlock.imports(str(tmp_path / "flow-symbol.json"), ["data0", "data1"],
                                        str(tmp_path / "flow-0000.params"))
    for a, b in zip(before, read(x, h), strict=True):
        np.testing.assert_allclose(a, b.asnumpy(), rtol=1e-6)


def test_an_artifact_has_its_loops(tmp_path):
    symbol = mx.sym.FullyConnected(looped(cell("plain"))[1], num_hidden=2, name="out")
    symbol.save(tmp_path / "net-symbol.json")
    values = {**CELL_VALUES, "out_weight": numbers(8, 2, 4), "out_bias": numbers(9, 2)}
    mx.nd.save(str(tmp_path / "net-0000.params"), {f"arg:{k}": mx.nd.array(v) for k, v in values.items()
                                                  if k not in ("x", "h")})
    command = ["compile", tmp_path / "net-symbol.json", "--params", tmp_path / "net-0000.params", "--shape", "x=5,2,3",
               "--shape", "h=2,4", "-o", tmp_path / "net.mxc"]
    subprocess.run([sys.executable, "-m", "mxc", *command], check=True, capture_output=True)
    made = mx.load(tmp_path / "net.mxc").predict(x=values["x"], h=values["h"])
    np.testing.assert_allclose(made["out_output"], run(symbol, values, {}, train=False)[0][0], rtol=1e-5)
