"""Plans from the cache: used only for the same graph and settings, and only with all their kernels."""
from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mxc as mx
from mxc.compiler import api, planning, stored_plans
from mxc.compiler.cache import Cache
from mxc.compiler.targets.cpu.target import CpuTarget

SHAPES = {"data": (4, 6)}


def network(width: int = 5, name: str = "fc1") -> Any:
    net = mx.sym.Activation(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=width, name=name),
                            act_type="tanh", name="act")
    return mx.sym.softmax(mx.sym.FullyConnected(net, num_hidden=3, name="fc2"), name="out")


def target_of(path: Path) -> CpuTarget:
    """As of a new process, which has loaded nothing."""
    os.chmod(path, 0o700)
    return CpuTarget(cache=Cache(path))


def key_of(target: CpuTarget, net: Any = None, shapes: Any = None, grad_req: Any = None, is_train: bool = False) -> str:
    graph = (network() if net is None else net).graph
    known = stored_plans.description(graph, shapes or SHAPES, {}, grad_req or {}, is_train, True, target)
    return known and stored_plans.key_of(known, target)


def test_a_stored_plan_needs_no_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = api.compile_graph(network().graph, SHAPES, {}, {}, False, target_of(tmp_path))
    assert first.library.misses > 0
    real = planning.plan_graph
    monkeypatch.setattr(planning, "plan_graph", None)
    again = api.compile_graph(network().graph, SHAPES, {}, {}, False, target_of(tmp_path))
    assert again.plan == first.plan
    assert again.library.misses == 0 and again.library.addresses.keys() == first.library.addresses.keys()
    monkeypatch.setattr(planning, "plan_graph", real)
    assert again.groups == first.groups and again.kernels.keys() == first.kernels.keys()
    assert len(again.graph.nodes) == len(first.graph.nodes)


def test_a_plan_whose_kernels_are_gone_is_made_again(tmp_path: Path) -> None:
    target = target_of(tmp_path)
    first = api.compile_graph(network().graph, SHAPES, {}, {}, False, target)
    gone = target.cache.place(next(iter(first.library.addresses)))  # type: ignore[union-attr]
    gone.unlink()
    again = api.compile_graph(network().graph, SHAPES, {}, {}, False, target_of(tmp_path))
    assert again.plan == first.plan and again.library.misses == 1 and gone.exists()


def test_why_a_plan_was_made_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reasons() -> list[str]:
        target = target_of(tmp_path)
        api.compile_graph(network().graph, SHAPES, {}, {}, False, target)
        return sorted(entry.reason for entry in target.cache.entries()  # type: ignore[union-attr]
                      if entry.name.startswith("plan of "))

    new = "this kernel was not compiled before"
    assert reasons() == [new]
    monkeypatch.setattr(stored_plans, "_digest", lambda: "other")
    before, _ = reasons()
    assert before.startswith("compiler was ") and before.endswith(", is 'other'")


def test_a_damaged_plan_is_made_again(tmp_path: Path) -> None:
    target = target_of(tmp_path)
    first = api.compile_graph(network().graph, SHAPES, {}, {}, False, target)
    place = target.cache.place(key_of(target))  # type: ignore[union-attr]
    data = bytearray(place.read_bytes())
    data[len(data) // 2] ^= 1
    place.write_bytes(data)
    with pytest.warns(RuntimeWarning, match="is not used and is built anew"):
        again = api.compile_graph(network().graph, SHAPES, {}, {}, False, target_of(tmp_path))
    assert again.plan == first.plan and again.library.misses == 0


def test_what_a_plan_depends_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = target_of(tmp_path)
    keys = [key_of(target), key_of(target, network(7)), key_of(target, grad_req={"fc2_weight": "write"}),
            key_of(target, shapes={"data": (5, 6)}), key_of(target, grad_req={"fc1_weight": "write"}),
            key_of(target, is_train=True), key_of(target_of_another_cpu(tmp_path))]
    assert key_of(target) == keys[0] and key_of(target_of(tmp_path)) == keys[0]
    assert key_of(target, network(name="other")) == keys[0]  # names are nothing that a plan depends on
    monkeypatch.setenv("MXC_STRICT", "1")
    keys.append(key_of(target))
    monkeypatch.setenv("MXC_SKIP", "cse")
    keys.append(key_of(target))
    monkeypatch.setattr(stored_plans, "_digest", lambda: "other sources")
    keys.append(key_of(target))
    assert len(set(keys)) == len(keys) and all(keys)


def target_of_another_cpu(path: Path) -> CpuTarget:
    return CpuTarget("x86-64", "", Cache(path))


def test_what_is_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = target_of(tmp_path)
    api.compile_graph(mx.sym.exp(mx.sym.Variable("data")).graph, SHAPES, {}, {}, False, target, keeps=False)
    assert not [entry for entry in target.cache.entries() if entry.name.startswith("plan of ")]  # type: ignore
    for name, value in (("MXC_PRINT", "fuse"), ("MXC_CHECK", "1"), ("MXC_DEBUG", "3")):
        with monkeypatch.context() as changed:
            changed.setenv(name, value)
            assert key_of(target) == ""
    net = network()
    for node in net.graph.nodes:
        if node.name == "act":  # an operator of the program's own, which another process may define otherwise
            own = type(node.op).__new__(type(node.op))
            own.__dict__.update(node.op.__dict__)
            node.op = own
    assert key_of(target, net) == ""


def test_an_executor_gives_the_same_with_a_stored_plan() -> None:
    values = np.arange(24, dtype=np.float32).reshape(4, 6) / 24
    results = []
    for _ in range(2):
        executor = network(5).simple_bind(mx.cpu(), grad_req="null", data=(4, 6))
        for name, array in executor.arg_dict.items():
            array[:] = values if name == "data" else 0.1
        results.append(executor.forward()[0].asnumpy())
    np.testing.assert_array_equal(*results)


def plans_in(target: CpuTarget) -> int:
    assert target.cache is not None
    return sum(entry.name.startswith("plan of ") for entry in target.cache.entries())


class LastOp(mx.operator.CustomOp):
    def forward(self, is_train: bool, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        if float(in_data[0].asnumpy().max()) > 0.9:
            raise ValueError("too large")
        self.assign(out_data[0], req[0], in_data[0] * 2)

    def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
        self.assign(in_grad[0], req[0], out_grad[0] * 2)


@mx.operator.register("stored_plans_last")
class LastProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> LastOp:
        return LastOp()


def unnamed(kind: str) -> Any:
    """A network whose nodes have automatic names, other ones each time."""
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=6)
    net = mx.sym.tanh(mx.sym.FullyConnected(mx.sym.Activation(net, act_type="relu"), num_hidden=6))
    if kind == "dropout":
        net = mx.sym.Dropout(net, p=0.5)
    if kind == "random":
        net = net + mx.sym.random.uniform(shape=(4, 6))
    if kind == "custom":
        net = mx.sym.Custom(net, op_type="stored_plans_last")
    if kind == "rnn":
        net = mx.sym.RNN(mx.sym.expand_dims(net, axis=0), mx.sym.Variable("parameters"), mx.sym.Variable("state"),
                         state_size=3, num_layers=1, mode="rnn_tanh")
    return mx.sym.sum(net, axis=-1)


def typed(net: Any) -> tuple[Any, dict[str, Any], dict[str, str], dict[str, str]]:
    """As an executor compiles it: the graph with its facts, shapes, dtypes, and gradients of all but the data."""
    core = net.simple_bind(mx.cpu(), **SHAPES)._core
    return core.graph, core._shapes, core._dtypes, {n: "write" for n in net.list_arguments() if n != "data"}


@pytest.mark.parametrize("kind", ["plain", "dropout", "random", "custom", "rnn"])
@pytest.mark.parametrize("is_train", [False, True])
def test_a_network_that_is_made_twice_is_planned_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str,
                                                      is_train: bool) -> None:
    target, planned = target_of(tmp_path), []
    real = planning.plan_graph
    monkeypatch.setattr(planning, "plan_graph", lambda *args: planned.append(1) or real(*args))
    made = []
    for each in (target, target, target_of(tmp_path)):
        graph, shapes, dtypes, grad_req = typed(unnamed(kind))
        made.append(api.compile_graph(graph, shapes, dtypes, grad_req if is_train else {}, is_train, each))
        names = {n.name for n in graph.variables}
        assert {b.name for b in made[-1].plan.buffers if b.pool in ("argument", "gradient", "aux")} <= names
    assert len(planned) == 1 and plans_in(target) == 1
    texts = [[b._replace(name="") for b in each.plan.buffers] for each in made]
    assert texts[0] == texts[1] == texts[2] and made[0].plan.steps == made[1].plan.steps == made[2].plan.steps


def test_errors_and_monitors_name_the_nodes_of_their_own_network() -> None:
    for _ in range(2):
        net = unnamed("custom")
        custom = next(node.name for node in net.graph.nodes if node.op is not None and node.op.name == "Custom")
        executor = net.simple_bind(mx.cpu(), **SHAPES)
        for array in executor.arg_arrays:
            array[:] = 100
        with pytest.raises(mx.MXNetError, match=f"node '{custom}': ValueError: too large"):
            executor.forward(is_train=True)[0].wait_to_read()
        compiled = executor.compiled(is_train=True)
        assert custom in {compiled.graph.nodes[s.host].name for s in compiled.plan.steps if s.host is not None}
        executor = net.simple_bind(mx.cpu(), **SHAPES)
        seen: list[str] = []
        executor.set_monitor_callback(lambda name, array, seen=seen: seen.append(name))
        executor.forward()
        assert f"{custom}_output" in seen


def test_networks_that_differ_by_names_of_arguments_only(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for names in (("a", "b", "c"), ("b", "c", "a"), ("x", "y", "_head_grad_0")):
        values = {name: rng.standard_normal((4, 5)).astype(np.float32) for name in names}
        one, two, three = (mx.sym.Variable(name) for name in names)
        net = mx.sym.tanh(one * 2) - two * mx.sym.sigmoid(three) + two
        executor = net.simple_bind(mx.cpu(), grad_req="write", **dict.fromkeys(names, (4, 5)))
        executor.forward(is_train=True, **values)
        executor.backward(mx.nd.ones((4, 5)))
        x, y, z = values.values()
        gate = 1 / (1 + np.exp(-z))
        np.testing.assert_allclose(executor.outputs[0].asnumpy(), np.tanh(2 * x) - y * gate + y, rtol=1e-4, atol=1e-5)
        expected = (2 - 2 * np.tanh(2 * x) ** 2, 1 - gate, -y * gate * (1 - gate))
        for name, grad in zip(names, expected, strict=True):
            np.testing.assert_allclose(executor.grad_dict[name].asnumpy(), grad, rtol=1e-4, atol=1e-5)


def test_one_variable_twice_is_another_network_than_two() -> None:
    def network(*names: str) -> Any:
        made = {name: mx.sym.Variable(name) for name in names}
        a, b = (made[name] for name in names)
        return mx.sym.exp(a) * mx.sym.tanh(b)

    target = CpuTarget()
    one, two = (key_of(target, net, dict.fromkeys(net.list_arguments(), (3,)))
                for net in (network("a", "a"), network("a", "b")))
    assert one and two and one != two


def test_what_a_plan_depends_on_of_an_operator_in_python(tmp_path: Path) -> None:
    target = target_of(tmp_path)
    graph, shapes, dtypes, grad_req = typed(unnamed("custom"))
    known = stored_plans.description(graph, shapes, dtypes, grad_req, True, True, target)
    assert known and stored_plans.description(unnamed("custom").graph, {}, {}, {}, False, True, target) == ""
    custom = next(node for node in graph.nodes if node.op is not None and node.op.name == "Custom")
    custom.op.needs_heads = False  # type: ignore[union-attr]
    assert stored_plans.description(graph, shapes, dtypes, grad_req, True, True, target) not in ("", known)
