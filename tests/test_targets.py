"""The protocol of targets: what is found by name, what each offers, and a target that has nothing but the protocol."""
from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from toy_target import ToyTarget, run_plan

import mxc as mx
from mxc.compiler.api import compile_graph
from mxc.compiler.error import MXNetError, TargetError
from mxc.compiler.kernel.geometry import Geometry
from mxc.compiler.kernel.ir import CallKernel, LoopKernel, Store, axis, const
from mxc.compiler.targets import kernel_target, preferences, protocol, target
from mxc.compiler.targets.cpu.preferences import FIGURES
from mxc.compiler.targets.cpu.target import cpu_target
from mxc.compiler.targets.launch import LoadedKernels
from mxc.runtime import runner
from mxc.runtime.context import cpu
from mxc.runtime.executor import BoundArrays, GraphExecutor

SHAPES = {"data": (4, 4, 10, 10), "label": (4,)}


def network() -> mx.sym.Symbol:
    """Convolutions, pooling, batch statistics, a product, a softmax with its loss: what images are classified by."""
    net = mx.sym.Variable("data")
    for i, filters in enumerate((8, 8)):
        net = mx.sym.Convolution(net, name=f"c{i}", num_filter=filters, kernel=(3, 3), pad=(1, 1))
        net = mx.sym.Activation(mx.sym.BatchNorm(net, name=f"n{i}", fix_gamma=False), act_type="relu")
    net = mx.sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max")
    net = mx.sym.FullyConnected(net, name="f", num_hidden=6)
    return mx.sym.SoftmaxOutput(net, mx.sym.Variable("label"), name="out")


TOYS = {"plain": ToyTarget(), "tiles and blocks": ToyTarget(FIGURES, 4, 8, 4)}


@pytest.mark.parametrize("train", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("name", TOYS)
def test_the_protocol_is_enough_to_run_a_graph(name, train):
    """Compiled for the toy, and run in its memory by its launcher, a network gives what the CPU gives."""
    net, toy = network(), TOYS[name]
    executor = net.simple_bind(mx.cpu(), grad_req="write" if train else "null", **SHAPES)
    rng = np.random.default_rng(0)
    for place, array in {**executor.arg_dict, **executor.aux_dict}.items():
        array[:] = rng.uniform(0.5, 1.5, array.shape) if place.endswith("var") else rng.standard_normal(array.shape) / 2
    executor.arg_dict["label"][:] = [0, 3, 5, 1]
    given = {("argument", k): a.asnumpy() for k, a in executor.arg_dict.items()}
    given |= {("aux", k): a.asnumpy() for k, a in executor.aux_dict.items()}
    requests = dict.fromkeys(executor.arg_dict, "write") if train else {}
    shapes = {place: array.shape for (_, place), array in given.items()}
    compiled = compile_graph(net.graph, shapes, dict.fromkeys(shapes, "float32"), requests, train, toy)
    assert not compiled.library.missing and compiled.library.hits == len(compiled.plan.kernels)
    made = run_plan(compiled, given, ["prepare", "forward", *(["backward"] if train else [])])
    expected = {("output", "0"): executor.forward(is_train=train)[0].asnumpy()}
    if train:
        executor.backward()
        expected |= {("gradient", k): a.asnumpy() for k, a in executor.grad_dict.items() if k not in SHAPES}
        expected |= {("aux", k): a.asnumpy() for k, a in executor.aux_dict.items()}
    for place, values in expected.items():
        np.testing.assert_allclose(made[place], values, rtol=1e-4, atol=1e-5, err_msg=str(place))
    assert not toy.launcher.memory.blocks  # all that was allocated was released


def test_a_target_without_figures_gets_nothing_special():
    """Neither blocks nor packed weights nor divided reductions: each transformation is asked for by its figures."""
    x, w = mx.sym.Variable("x"), mx.sym.Variable("w")
    net = mx.sym.sum(mx.sym.Convolution(x, w, num_filter=64, kernel=(3, 3), pad=(1, 1), no_bias=True))
    shapes = {"x": (1, 64, 56, 56), "w": (64, 64, 3, 3)}

    def steps(toy: ToyTarget) -> list[str]:
        return [step.label for step in compile_graph(net.graph, shapes, {}, {}, False, toy).plan.steps]

    assert steps(ToyTarget()) == ["_mxc_convolution", "sum"]
    assert steps(ToyTarget(preferences.Preferences(reductions=FIGURES.reductions))) == [
        "_mxc_convolution", "sum", "sum"]
    assert any(label.startswith("_mxc_winograd") for label in steps(ToyTarget(FIGURES, 4, 8, 4)))


def test_every_figure_of_the_cpu_is_given():
    of_gpus = {"depths"}  # how sums are divided among blocks of threads
    figures = dataclasses.asdict(FIGURES)
    assert {name for name, figure in figures.items() if figure is None} == of_gpus


def test_executors_launch_as_the_library_says():
    """An executor calls no kernel but through the launcher of its library."""
    launched = []

    class Recording:
        memory = None
        table, bound = staticmethod(runner.table), None

        def run(self, table):
            launched.append(len(table.rows()))
            runner.run(table)

    recording = Recording()
    recording.bound = lambda table, quick=False: lambda: recording.run(table)

    def compiled(*arguments):
        made = compile_graph(*arguments)
        library = dataclasses.replace(made.library, launcher=recording)
        return SimpleNamespace(plan=made.plan, library=library, graph=made.graph)

    array = mx.nd.arange(6)._array
    executor = GraphExecutor(mx.sym.exp(mx.sym.Variable("x")).graph, cpu(), BoundArrays({"x": array}, {}, {}, {}),
                             compile=compiled)
    for _ in range(2):
        executor.forward(False)
        np.testing.assert_allclose(executor.outputs[0].data, np.exp(np.arange(6)), rtol=1e-6)
    assert launched == [1, 1]


def test_targets_are_found_by_name():
    assert target("cpu") is kernel_target("cpu") is cpu_target()
    assert [target(name).name for name in ("cpu", "reference")] == ["cpu", "reference"]
    known = "expected one as cpu, cuda:sm_90, gpu:0, reference"
    for name in ("gpu", "cpu:x86-64-v3", "cuda", "reference:1", ""):
        with pytest.raises(TargetError, match=f"there is no target .*{known}"):
            target(name)
    with pytest.raises(TargetError, match=r"gpu\(0\): there is none"):
        target("gpu:0")
    with pytest.raises(TargetError, match="gpu:first: expected the number of a GPU"):
        target("gpu:first")
    with pytest.raises(TargetError, match="cuda:sm_10: expected an architecture"):
        target("cuda:sm_10")
    with pytest.raises(TargetError, match="node by node"):
        kernel_target("reference")


def test_the_page_on_targets_lists_the_protocol():
    page = (Path(__file__).parents[1] / "docs" / "adding-a-target.md").read_text()
    table = page.split("## What a KernelTarget has")[1].split("## Figures")[0]
    listed = re.findall(r"`(\w+)(?:\(\w+\))?`", "\n".join(re.findall(r"^\| (`.*?) \|", table, re.M)))
    members = [name for each in (protocol.Target, protocol.KernelTarget) for name in vars(each)
               if not name.startswith("_")]
    assert sorted(listed) == sorted(members)


def test_what_a_target_lacks():
    """A kernel without code is named, where its code is asked for and where its address is."""
    class Telepathy(Geometry[int]):
        template, operands = "telepathy", 1

    unknown = CallKernel("made up", Telepathy(dtype="float32"), ("float32",), ())
    known = LoopKernel("fill", ("float32",), (4,), (), (), (Store(0, axis(0), const(1.0, "float32")),))
    assert (cpu_target().lacks(unknown), cpu_target().lacks(known)) == ("telepathy", "")
    with pytest.raises(MXNetError, match="kernel made up: the CPU target has no library kernel telepathy"):
        cpu_target().source(unknown)
    with pytest.raises(MXNetError, match="no kernel k was loaded: the target has no code for telepathy"):
        LoadedKernels(missing={"k": "telepathy"}).address("k")
