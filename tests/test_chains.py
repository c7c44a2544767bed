"""Chains of convolutions over bands of rows: which there are, what they compute, and that they compute it in bands."""
from __future__ import annotations

import numpy as np
import pytest
from instruction_sets import InstructionSet
from pass_checks import prefer
from programs import Program, lowered

import mxc as mx
from mxc.compiler.graph.graph import Entry
from mxc.compiler.kernel.ir import ChainKernel
from mxc.compiler.lowering import chains
from mxc.compiler.plan import Plan

CHANNELS = 16


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Chains of arrays of any size, in segments of few rows and bands of fewer."""
    prefer(monkeypatch, chains__worthwhile_bytes=0, chains__private_bytes=14 << 10, chains__segment_rows=4)


def convolution(data, name, filters, **geometry):
    made = mx.sym.Convolution(data, name=name, num_filter=filters, no_bias=True, **geometry)
    return mx.sym.broadcast_add(made, mx.sym.Variable(f"{name}_shift", shape=(1, filters, 1, 1)))


def network(expand=True, project=True, residual=False, kernel=3, stride=1, dilate=1, pad=1):
    """A convolution that puts the channels in blocks, and what may become a chain."""
    start = net = convolution(mx.sym.Variable("data"), "start", CHANNELS, kernel=(3, 3), pad=(1, 1))
    if expand:
        net = mx.sym.clip(convolution(net, "expand", 2 * CHANNELS, kernel=(1, 1)), 0, 6)
    channels = 2 * CHANNELS if expand else CHANNELS
    net = mx.sym.relu(convolution(net, "filter", channels, kernel=(kernel, kernel), stride=(stride, stride),
                                  dilate=(dilate, dilate), pad=(pad, pad), num_group=channels), name="filtered")
    if project:
        net = convolution(net, "project", CHANNELS, kernel=(1, 1))
    return mx.sym.relu(net + start) if residual else net


def program(net, shape, instructions: InstructionSet) -> Program:
    return lowered(net.graph, {"data": shape}, target=instructions.target)


def chains_of(made: Program) -> list[ChainKernel]:
    launches = chains.chains(made.launches, made.prefers)
    return [launch.kernel for launch in launches if isinstance(launch.kernel, ChainKernel)]


CASES = {
    "whole": ({}, (2, 3, 19, 12)),
    "one image": ({"residual": True}, (1, 3, 23, 12)),
    "many images": ({"residual": True}, (9, 3, 9, 7)),
    "stride": ({"stride": 2}, (2, 3, 21, 16)),
    "dilated": ({"dilate": 2, "pad": 2}, (1, 3, 20, 9)),
    "large kernel": ({"kernel": 5, "pad": 2, "stride": 2}, (1, 3, 26, 9)),
    "not padded": ({"pad": 0}, (1, 3, 20, 9)),
    "far": ({"kernel": 3, "dilate": 3, "pad": 5}, (1, 3, 9, 9)),
    "no expansion": ({"expand": False}, (2, 3, 19, 60)),
    "no projection": ({"project": False}, (2, 3, 19, 12)),
}


@pytest.mark.parametrize("name", CASES)
def test_chains(name, instructions):
    parts, shape = CASES[name]
    made = program(network(**parts), shape, instructions)
    rng = np.random.default_rng(3)
    given = {node.name: rng.standard_normal(made.graph.shape(Entry(node))).astype("float32")
             for node in made.graph.variables}
    (expected,), _ = made.run(given)
    made.launches = chains.chains(made.launches, made.prefers)
    (chain,) = [launch.kernel for launch in made.launches if isinstance(launch.kernel, ChainKernel)]
    assert len(chain.calls()) > len(chain.segments) * len(chain.private) + len(chain.segments)  # several bands
    (defined,), _ = made.run(given)
    np.testing.assert_array_equal(defined, expected)
    (got,), _ = made.run(given, run=instructions.run)
    np.testing.assert_allclose(got, expected, atol=1e-5 * np.abs(expected).max())


def read_twice():
    net = network(project=False)
    return convolution(net, "project", 2 * CHANNELS, kernel=(1, 1)) + net


def filter_and_result():
    net = network()
    return mx.sym.Group([net.get_internals()["filtered_output"], net])


OTHERS = {
    "what the filter makes is read twice": (read_twice, ["blocked_convolution", "blocked_depthwise"]),
    "the filter makes an output": (filter_and_result, ["blocked_convolution", "blocked_depthwise"]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_others_read_ends_a_chain(name, instructions):
    net, templates = OTHERS[name]
    found = chains_of(program(net(), (1, 3, 19, 12), instructions))
    assert [list(dict.fromkeys(call.template for call, _ in chain.calls())) for chain in found] == [templates]


def test_small_arrays_stay_as_they_are(monkeypatch, instructions):
    prefer(monkeypatch, chains__worthwhile_bytes=16 << 20)
    assert not chains_of(program(network(), (2, 3, 19, 12), instructions))


def test_a_row_that_is_too_long_is_no_chain(instructions):
    assert not chains_of(program(network(), (1, 3, 4, 300), instructions))


def test_an_executor_runs_chains_from_a_plan_as_json():
    """Also with more threads than units, and from the same plan after a trip through JSON."""
    executor = network(residual=True).simple_bind(mx.cpu(), grad_req="null", data=(3, 3, 19, 12))
    for i, array in enumerate(executor.arg_dict.values()):
        array[:] = np.random.default_rng(i).standard_normal(array.shape)
    (got,) = (output.asnumpy() for output in executor.forward())
    plan = executor.compiled().plan
    (step,) = [step for step in plan.steps if step.calls]
    assert step.label.count(" > ") == 2 and step.units == 9 and step.flops
    assert Plan.from_json(plan.to_json()) == plan
    with pytest.MonkeyPatch.context() as patch:
        prefer(patch, chains__worthwhile_bytes=1 << 30)
        patch.setenv("MXC_CHECK", "1")  # so that the passes run: the plan of before is remembered
        other = network(residual=True).simple_bind(mx.cpu(), grad_req="null", data=(3, 3, 19, 12))
        other.copy_params_from(executor.arg_dict)
        np.testing.assert_array_equal(got, other.forward()[0].asnumpy())
    assert not any(step.calls for step in other.compiled().plan.steps)
