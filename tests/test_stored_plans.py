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
    return stored_plans.key_of(graph, shapes or SHAPES, {}, grad_req or {}, is_train,
                               True, target)


def test_a_stored_plan_needs_no_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = api.compile_graph(network().graph, SHAPES, {}, {}, False, target_of(tmp_path))
    assert first.library.misses > 0
    real = planning.plan_graph
    monkeypatch.setattr(planning, "plan_graph", None)
    again = api.compile_graph(network().graph, SHAPES, {}, {}, False, target_of(tmp_path))
    assert again.plan == first.plan and again.groups == first.groups
    assert again.library.misses == 0 and again.library.addresses.keys() == first.library.addresses.keys()
    monkeypatch.setattr(planning, "plan_graph", real)
    assert again.kernels.keys() == first.kernels.keys() and len(again.graph.nodes) == len(first.graph.nodes)


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
    keys = [key_of(target), key_of(target, network(7)), key_of(target, network(name="other")),
            key_of(target, shapes={"data": (5, 6)}), key_of(target, grad_req={"fc1_weight": "write"}),
            key_of(target, is_train=True), key_of(target_of_another_cpu(tmp_path))]
    assert key_of(target) == keys[0] and key_of(target_of(tmp_path)) == keys[0]
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
    assert key_of(target, mx.sym.exp(mx.sym.Variable("data"))) == ""
    assert key_of(CpuTarget()) == ""
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
