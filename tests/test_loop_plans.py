"""Loops of graphs are their unrolled graphs, with any body, and one step of a plan that has the body once."""
from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from golden import make_control_flow
from loop_graphs import CELL_VALUES, G, cell, looped, numbers, power, run, same, unrolled, unrolled_once

import mxc as mx
from mxc.compiler import stored_plans, targets
from mxc.compiler.api import compile_graph
from mxc.compiler.error import MXNetError
from mxc.compiler.graph.loop import LoopOperator
from mxc.compiler.passes.infer import infer
from mxc.compiler.plan import Plan
from mxc.compiler.targets.reference import interpreter
from mxc.runtime.plan_check import check_plan

REQUESTS = ("write", "add", {"w": "write"}, {"x": "write", "h": "add"}, {"u": "add", "b": "write"}, {"h": "write"}, {})


# -- as unrolled graphs

@pytest.mark.parametrize("grad_req", REQUESTS, ids=str)
@pytest.mark.parametrize("kind", ["plain", "deep", "norm"])
def test_a_loop_is_its_unrolled_graph(kind, grad_req):
    same(run(looped(cell(kind)), CELL_VALUES, grad_req), run(unrolled(cell(kind)), CELL_VALUES, grad_req))


def _random_body(seed):
    """A body over two data, two states and two captured arrays of one shape, by random operators."""
    draw = np.random.RandomState(seed)
    free = [mx.sym.Variable("p"), mx.sym.Variable("q")]

    def body(data, states):
        values = [*data, *states, *free]
        for _ in range(draw.randint(3, 9)):
            a, b = (values[draw.randint(len(values))] for _ in range(2))
            values.append([a * b, a - b, mx.sym.tanh(a), mx.sym.broadcast_maximum(a, b), mx.sym.sigmoid(a) + b,
                           mx.sym.transpose(mx.sym.dot(a, b)), mx.sym.BlockGrad(a) * b][draw.randint(7)])
        used = mx.sym.add_n(*data, *states) * 0.1
        made = [mx.sym.tanh(values[draw.randint(4, len(values))] + used) for _ in range(4)]
        return made[:2], made[2:]

    return body


@pytest.mark.parametrize("seed", range(12))
def test_random_loops_are_their_unrolled_graphs(seed):
    values = {name: numbers(seed * 10 + i, *((3, 2, 2) if name in "ab" else (2, 2))) for i, name in enumerate("abstpq")}
    draw = np.random.RandomState(seed)
    grad_req = {name: str(draw.choice(["write", "add", "null"])) for name in values}
    looped = G.foreach(_random_body(seed), [G.a, G.b], [G.s, G.t])
    body, states, outputs = _random_body(seed), [G.s, G.t], [[], []]
    # the body draws its operators when it is called: each step of the unrolled graph draws the same ones
    parts = [mx.sym.split(v, num_outputs=3, axis=0, squeeze_axis=1) for v in (G.a, G.b)]
    for i in range(3):
        made, states = (body if i == 0 else _random_body(seed))([p[i] for p in parts], states)
        for column, value in zip(outputs, made, strict=True):
            column.append(value)
    unrolled = unrolled_once(mx.sym.Group([*(mx.sym.stack(*column, axis=0) for column in outputs), *states]))
    assert set(looped.list_arguments()) == set(unrolled.list_arguments())
    same(run(looped, values, grad_req), run(unrolled, values, grad_req))


@pytest.mark.parametrize("grad_req", ["write", "add", {"w": "write"}, {"s": "write"}], ids=str)
@pytest.mark.parametrize("limit", [1, 3, 9])
def test_while_loop_is_pythons(limit, grad_req):
    values = {"i": np.float32([1, 1]), "s": np.float32([1, 0.5]), "w": np.float32([1.5, 2])}
    i, s, outputs = G.i, G.s, []
    reached, at = values["s"], values["i"]
    while len(outputs) < limit and reached.sum() < 20:
        outputs.append(s * G.w)
        i, s, reached, at = i + 1, s * G.w + i, reached * values["w"] + at, at + 1
    outputs += [mx.sym.zeros((2,))] * (limit - len(outputs))
    unrolled = mx.sym.Group([mx.sym.stack(*outputs, axis=0), i, s])
    same(run(power(limit), values, grad_req), run(unrolled_once(unrolled), values, grad_req))


@pytest.mark.parametrize("chosen", [0.0, 3.0, -1.0, math.nan, math.inf])
def test_cond_computes_one_branch_alone(chosen):
    symbol = G.cond(G.p, lambda: mx.sym.sqrt(G.a), lambda: mx.sym.log(G.b) * 2)
    values = {"p": np.float32([chosen]), "a": np.float32([4, 9] if chosen != 0 else [-1, -1]),
              "b": np.float32([-1, -1] if chosen != 0 else [1, math.e])}
    (out,), grads = run(symbol, values)
    assert np.isfinite(out).all() and all(np.isfinite(g).all() for g in grads.values())
    np.testing.assert_allclose(out, [2, 3] if chosen != 0 else [0, 2], atol=1e-6)
    assert not grads["b" if chosen != 0 else "a"].any() and not grads["p"].any()


# -- one loop of a plan

def _compiled(symbol, train=False, **shapes):
    graph = infer(symbol.graph, shapes, {})
    asked = dict.fromkeys(symbol.list_arguments(), "write") if train else {}
    return compile_graph(graph, shapes, {}, asked, train)


@pytest.mark.parametrize("train", [False, True])
def test_a_body_is_compiled_once_whatever_the_length(train):
    sizes = []
    for length in (3, 300):
        plan = _compiled(looped(cell("plain")), train, x=(length, 2, 3), h=(2, 4)).plan
        loops = [step.loop for step in plan.steps if step.loop is not None]
        assert [loop.length for loop in loops] == [length] * (1 + train)
        assert all(step.host is None for step in plan.steps)
        sizes.append((len(plan.steps), plan.kernels, [len(loop.plan.steps) for loop in loops]))
    assert sizes[0] == sizes[1]


def test_sums_over_the_rounds_are_made_in_place():
    plan = _compiled(looped(cell("plain")), True, x=(3, 2, 3), h=(2, 4)).plan
    loop = next(step.loop for step in plan.steps if step.phase == "backward" and step.loop is not None)
    assert not any(step.label == "copy" for step in loop.plan.steps[loop.once:])


def test_a_plan_with_loops_survives_json():
    for symbol, shapes in ((looped(cell("plain")), {"x": (3, 2, 3), "h": (2, 4)}),
                           (power(5), {"i": (2,), "s": (2,), "w": (2,)})):
        plan = _compiled(symbol, True, **shapes).plan
        assert Plan.from_json(plan.to_json()) == plan


def _described(symbol, **shapes):
    graph = infer(symbol.graph, shapes, {})
    return stored_plans.description(graph, shapes, {}, {}, False, True, targets.kernel_target("cpu"))


def test_plans_of_loops_are_known_by_what_the_loops_do():
    shapes = {"x": (3, 2, 3), "h": (2, 4)}
    one = _described(looped(cell("plain")), **shapes)
    assert one and one == _described(looped(cell("plain")), **shapes)
    others = {_described(looped(cell("deep")), **shapes), _described(looped(cell("plain")), x=(4, 2, 3), h=(2, 4)),
              _described(power(5), i=(2,), s=(2,), w=(2,)), _described(power(6), i=(2,), s=(2,), w=(2,)), one}
    assert len(others) == 5


@pytest.mark.parametrize("change", [
    lambda loop: vars(loop).update(length=99), lambda loop: vars(loop).update(length=0),
    lambda loop: vars(loop).update(moves=loop.moves[1:]), lambda loop: vars(loop).update(once=99),
    lambda loop: vars(loop).update(flag=99), lambda loop: vars(loop).update(counts=((0, 1 << 40, 1),)),
    lambda loop: loop.plan.buffers.__setitem__(0, loop.plan.buffers[0]._replace(offset=1 << 40)),
    lambda loop: loop.plan.buffers.__setitem__(0, loop.plan.buffers[0]._replace(pool="outside", name="77")),
    lambda loop: loop.plan.steps.__setitem__(0, loop.plan.steps[0]._replace(kernel="nobody")),
    lambda loop: loop.plan.steps.__setitem__(0, loop.plan.steps[0]._replace(buffers=(999,)))])
def test_damaged_loops_in_plans_are_refused(change):
    plan = Plan.from_json(_compiled(looped(cell("plain")), x=(3, 2, 3), h=(2, 4)).plan.to_json())
    check_plan(plan, set(plan.kernels))
    known = set(plan.kernels)
    change(next(step.loop for step in plan.steps if step.loop is not None))
    with pytest.raises(ValueError, match=r"loop of|kernel nobody|buffer that is not there"):
        check_plan(plan, known)


def test_what_depends_on_whole_arrays_alone_is_prepared_before_the_loop():
    plan = _compiled(looped(cell("plain")), x=(3, 64, 64), h=(64, 4)).plan
    (loop,) = [step.loop for step in plan.steps if step.loop is not None]
    assert any("pack" in step.label for step in loop.plan.steps[:loop.once])
    assert not any("pack" in step.label for step in loop.plan.steps[loop.once:])


@pytest.mark.parametrize("name", ["plain", "cell", "nested", "inner while", "inner cond", "counting", "choice"])
def test_the_reference_interpreter_agrees(name):
    shapes = {"a": (3, 2), "s": (2,), "w": (2,)}
    if name == "cell":
        shapes = {"a": (4, 2, 3), "h": (2, 3)}
    elif name == "nested":
        shapes["a"] = (2, 3, 2)
    elif name == "inner cond":
        del shapes["w"]
    elif name in ("counting", "choice"):
        shapes = {"i": (1,), "s": (2,), "w": (2,)} if name == "counting" else {"p": (1,), "w": (2,), "b": (2,)}
    symbol = make_control_flow.graph(mx, name)
    values = {n: numbers(i, *shape) for i, (n, shape) in enumerate(
        zip(symbol.list_arguments(), symbol.infer_shape(**shapes)[0], strict=True))}
    graph = infer(symbol.graph, shapes, {})
    assert any(isinstance(node.op, LoopOperator) for node in graph.nodes)
    found = interpreter.run(graph, values, {})
    for ours, entry in zip(run(symbol, values, {}, train=False)[0], graph.outputs, strict=True):
        np.testing.assert_allclose(ours, found[entry], rtol=1e-5, atol=1e-6)


def test_all_runners_give_the_same():
    program = ("import sys; sys.path.insert(0, sys.argv[1])\n"
               "import loop_graphs as t\n"
               "made = t.run(t.looped(t.cell('plain')), t.CELL_VALUES)\n"
               "loop = t.run(t.power(9), {'i': t.np.float32([1, 1]), 's': t.np.float32([1, 0.5]),"
               " 'w': t.np.float32([1.5, 2])})\n"
               "print(*(a.tolist() for part in (made, loop) for a in (*part[0], *part[1].values())))")
    found = set()
    for setting in ({"MXC_RUNNER": "portable"}, {"MXC_NUM_THREADS": "1"}, {"MXC_NUM_THREADS": "3"}):
        done = subprocess.run([sys.executable, "-c", program, Path(__file__).parent], capture_output=True, text=True,
                              env={**os.environ, **setting}, check=True)
        found.add(done.stdout)
    assert len(found) == 1 and "nan" not in found.pop()


def test_a_run_after_another_begins_anew():
    bound = looped(cell("plain")).simple_bind(mx.cpu(), x=(5, 2, 3), h=(2, 4))
    for name, value in CELL_VALUES.items():
        bound.arg_dict[name][:] = value
    first = [o.asnumpy() for o in bound.forward()]
    for _ in range(3):
        for before, now in zip(first, bound.forward(), strict=True):
            np.testing.assert_array_equal(before, now.asnumpy())


# -- random numbers, training and inference

def test_dropout_draws_anew_in_each_step_and_backward_knows_what_it_drew():
    symbol = G.foreach(lambda x, h: (lambda made: (made, h + made))(mx.sym.Dropout(x * G.w, p=0.5)), G.x, G.h)
    values = {"x": np.ones((40, 64), "float32"), "h": np.zeros(64, "float32"), "w": np.ones(64, "float32")}
    (outputs, _), grads = run(symbol, values, {"x": "write", "w": "write"})
    masks = outputs != 0
    assert 0.4 < masks.mean() < 0.6 and len({mask.tobytes() for mask in masks}) == 40
    assert ((grads["x"] - 1 != 0) == masks).all() or ((grads["x"] != 0) == masks).all()
    again = run(symbol, values, {"x": "write", "w": "write"})
    np.testing.assert_array_equal(outputs, again[0][0])
    assert (run(symbol, values, {}, train=False)[0][0] == 1).all()
    other = run(symbol, values, {}, seed=8)[0][0]
    assert (other != outputs).any()


def test_two_loops_draw_different_numbers():
    def dropped():
        return mx.sym.contrib.foreach(lambda x, h: (mx.sym.Dropout(x), h + x), G.x, G.h)[0]

    symbol = mx.sym.Group([dropped(), dropped(), mx.sym.Dropout(G.x)])
    made = run(unrolled_once(symbol), {"x": np.ones((9, 50), "float32"), "h": np.zeros(50, "float32")}, {})[0]
    assert len({(m != 0).tobytes() for m in made}) == 3


def test_batch_norm_in_a_body_normalises_each_slice_and_keeps_its_statistics():
    def body(x, s):
        made = mx.sym.BatchNorm(x, name="bn", fix_gamma=False, axis=-1, eps=1e-3)
        return made, s + made

    symbol = G.foreach(body, G.a, G.s)
    assert symbol.list_auxiliary_states() == []  # MXNet has them as arguments, too, which no run changes
    values = {"a": numbers(0, 3, 5, 2), "s": np.zeros((5, 2), "float32"), "bn_gamma": np.float32([1, 2]),
              "bn_beta": np.float32([0, 1]), "bn_moving_mean": np.float32([9, 9]), "bn_moving_var": np.float32([4, 4])}
    (outputs, _), _ = run(symbol, values, {"a": "write", "bn_gamma": "write"})
    mean, var = values["a"].mean(1, keepdims=True), values["a"].var(1, keepdims=True)
    wanted = (values["a"] - mean) / np.sqrt(var + 1e-3) * [1, 2] + [0, 1]
    np.testing.assert_allclose(outputs, wanted, rtol=1e-4, atol=1e-5)
    (outputs, _), _ = run(symbol, values, {}, train=False)
    np.testing.assert_allclose(outputs, (values["a"] - 9) / np.sqrt(4 + 1e-3) * [1, 2] + [0, 1], rtol=1e-4)


# -- what bodies may be

class _Square(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], 2 * in_data[0] * out_grad[0])


@mx.operator.register("square_in_a_loop")
class _SquareProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return _Square()

    def infer_shape(self, shapes):
        return shapes, [shapes[0]], []


def test_a_body_may_have_operators_that_run_in_python():
    def loop(square):
        return G.foreach(lambda x, s: (square(x * s), s + x), G.a, G.s)

    values = {"a": numbers(0, 3, 2), "s": numbers(1, 2)}
    same(run(loop(lambda v: mx.sym.Custom(v, op_type="square_in_a_loop")), values), run(loop(mx.sym.square), values))


def test_a_body_may_refuse_an_index():
    symbol = G.foreach(lambda x, s: (mx.sym.take(G.w, x, mode="raise"), s + x), G.a, G.s)
    values = {"a": np.float32([[0, 1], [1, 0]]), "s": np.zeros(2, "float32"), "w": np.float32([5, 6])}
    np.testing.assert_array_equal(run(symbol, values, {"w": "write"})[0][0], [[5, 6], [6, 5]])
    for wrong in ([[0, 1], [1, 7]], [[0, 7], [1, 0]]):  # in the last round, and in one that others follow
        with pytest.raises(MXNetError, match=r"expected indices from 0 to 1 .*got 7"):
            run(symbol, {**values, "a": np.float32(wrong)}, {})
    bound = symbol.simple_bind(mx.cpu(), grad_req="null", **{name: array.shape for name, array in values.items()})
    assert all(step.host is None for step in bound.compiled().plan.steps)


def test_a_loss_in_a_body_begins_a_gradient():
    def loop(make):
        return G.foreach(lambda x, s: (make(x * G.w), s + x), G.a, G.s)

    values = {"a": numbers(0, 3, 2, 4), "s": numbers(1, 2, 4), "w": numbers(2, 2, 4), "l": np.float32([1, 3])}
    symbol = loop(lambda v: mx.sym.SoftmaxOutput(v, G.l, name="loss"))
    bound = symbol.bind(mx.cpu(), {k: mx.nd.array(values[k]) for k in symbol.list_arguments()},
                        {"w": mx.nd.zeros((2, 4))}, {"w": "write"})
    bound.forward(is_train=True)
    bound.backward([mx.nd.zeros((3, 2, 4)), mx.nd.zeros((2, 4))])
    exp = np.exp(values["a"] * values["w"])
    wanted = ((exp / exp.sum(-1, keepdims=True) - np.eye(4)[[1, 3]]) * values["a"]).sum(0)
    np.testing.assert_allclose(bound.grad_dict["w"].asnumpy(), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32"])
def test_loops_have_any_dtype(dtype):
    symbol = G.foreach(lambda x, s: (x * s, s + x), G.a, G.s)
    values = {"a": np.arange(6).reshape(3, 2).astype(dtype), "s": np.array([1, 2], dtype)}
    outputs, last = run(symbol, values, {}, train=False)[0]
    assert outputs.dtype == last.dtype == dtype
    np.testing.assert_array_equal(outputs, [[0, 2], [2, 9], [12, 30]])
    np.testing.assert_array_equal(last, [7, 11])


def test_states_may_change_places():
    symbol = G.foreach(lambda x, s: (x + s[0], [s[1], s[0]]), G.a, [G.s, G.t])
    values = {"a": np.ones((3, 2), "float32"), "s": np.float32([1, 2]), "t": np.float32([3, 4])}
    outputs, first, second = run(symbol, values, {})[0]
    np.testing.assert_array_equal(outputs, [[2, 3], [4, 5], [2, 3]])
    np.testing.assert_array_equal([first, second], [[3, 4], [1, 2]])


def test_a_loop_over_nothing_gives_the_states():
    with mx.np_shape():
        symbol = G.foreach(lambda x, s: (x * s, s + x), G.a, G.s)
        values = {"a": np.zeros((0, 2), "float32"), "s": np.float32([1, 2])}
        (outputs, last), grads = run(symbol, values, {"s": "write"})
    assert outputs.shape == (0, 2) and last.tolist() == [1, 2]
    np.testing.assert_allclose(grads["s"], numbers(51, 2))


def test_shapes_and_dtypes_flow_through_bodies_in_both_directions():
    symbol = G.foreach(lambda x, h: (lambda made: (made, made))(
        mx.sym.FullyConnected(x, weight=G.w, num_hidden=4, no_bias=True) + h), G.a, G.h)
    assert symbol.infer_shape(a=(5, 2, 3)) == ([(5, 2, 3), (2, 4), (4, 3)], [(5, 2, 4), (2, 4)], [])
    shapes = symbol.infer_shape_partial(h=(2, 4))
    assert shapes[1] == [(0, 2, 4), (2, 4)] and shapes[0][0][1:2] in ((), (2,))
    assert symbol.infer_type(h="float64")[1] == [np.float64, np.float64]
    loop = G.while_loop(lambda i, s: i < 3, lambda i, s: (s * G.w, [i + 1, s * 2]), [G.i, G.s])
    assert loop.infer_shape(i=(1,), w=(2, 2))[1] == [(4, 2, 2), (1,), (2, 2)]
    assert G.cond(G.p, lambda: G.a * 2, lambda: G.b).infer_shape(p=(1,), b=(2,)) == ([(1,), (2,), (2,)], [(2,)], [])
