"""Random graphs, lowered: fused and unfused they compute what the operators' references compute one by one."""
from __future__ import annotations

import functools

import numpy as np
import pytest
from graph_strategy import CONSTANT, NOT_DRAWN, OF_INT32, Sample, reference, samples, table_cases, why_not_drawn
from hypothesis import HealthCheck, Phase, assume, given, settings
from pass_checks import options
from programs import Program, lowered

from mxc.compiler.graph.graph import Entry, GraphBuilder
from mxc.compiler.graph.text import graph_text
from mxc.compiler.lowering.fuse import group_text
from mxc.compiler.ops import table
from mxc.compiler.passes.gradient import gradient
from mxc.compiler.passes.infer import infer
from mxc.compiler.targets.cpu.build import codegen
from mxc.compiler.targets.cpu.target import CpuTarget, cpu_target

EPSILON = {"float32": 1e-6, "float64": 1e-14}
QUICK = {"deadline": None, "suppress_health_check": list(HealthCheck),
         "phases": (Phase.reuse, Phase.generate)}  # a failing graph is printed; making it smaller takes long


@functools.cache
def by_numba() -> CpuTarget:
    return CpuTarget(generator=codegen.NUMBA)


def program_of(sample: Sample, merge: bool, target: object = None) -> Program:
    variables = sample.graph.variables
    return lowered(sample.graph, {n.name: sample.graph.shape(Entry(n)) for n in variables},
                   {n.name: sample.graph.dtype(Entry(n)) for n in variables}, sample.grad_req, sample.is_train, target,
                   merge)


def check(sample: Sample, target: CpuTarget) -> None:
    """Compare every output, gradient and auxiliary state of the compiled fused graph, and of the kernels' definitions
    fused and unfused, with the references. Samples whose results depend on rounding are left out."""
    variables = sample.graph.variables
    known = infer(sample.graph, {n.name: sample.graph.shape(Entry(n)) for n in variables},
                  {n.name: sample.graph.dtype(Entry(n)) for n in variables})
    joint = gradient(known, options(is_train=sample.is_train, grad_req=sample.grad_req))
    values = sample.values(joint)
    dtype = sample.graph.dtype(sample.graph.outputs[0])
    with np.errstate(all="ignore"):
        expected = reference(joint, values, sample.is_train)
        shaken = reference(joint, values, sample.is_train, EPSILON[dtype])
    assume(all(np.isfinite(a).all() for a in (*expected, *shaken)))
    before = {s.name: np.full(a.shape, 0.5, a.dtype) for s, a in zip(joint.sinks, expected, strict=True)}
    for merge, compiled in ((True, True), (True, False), (False, False)):
        program = program_of(sample, merge, target if compiled else None)
        library = target.load(program.kernels(target)) if compiled else None
        results, _ = program.run(values, before, target, library)
        assert [(s.kind, s.name) for s in program.graph.sinks] == [(s.kind, s.name) for s in joint.sinks]
        for sink, want, other, got in zip(joint.sinks, expected, shaken, results, strict=True):
            want, other = (want + 0.5, other + 0.5) if sink.mode == "add" else (want, other)
            assert (got.shape, got.dtype) == (want.shape, want.dtype), sink
            scale = float(np.max(np.abs(want), initial=0))
            limit = 100 * float(np.max(np.abs(want - other), initial=0)) + 20 * EPSILON[dtype] * (scale + 1e-3)
            assert float(np.max(np.abs(want - got), initial=0)) <= limit, \
                (f"{sink}, fused: {merge}, compiled: {compiled}\n{want}\n{got}\n{graph_text(sample.graph)}\n"
                 f"{group_text(program.graph, program.groups)}")


def test_every_operator_is_drawn_or_it_is_said_why_not():
    drawn = {*table_cases(), *CONSTANT}
    others = {op.name: why_not_drawn(op) for op in table.all_operators() if op.name not in drawn}
    assert all(others.values()), [name for name, why in others.items() if not why]
    assert NOT_DRAWN.keys() <= others.keys() and all(table_cases().values())


@pytest.mark.parametrize("name", table_cases())
def test_what_is_drawn_can_be_made(name):
    for case in table_cases()[name]:
        builder = GraphBuilder()
        inputs = [builder.variable(f"x{i}", shape, "float32") for i, shape in enumerate(case.shapes)]
        for i in range(len(inputs)):
            if (name, i) in OF_INT32:
                inputs[i] = builder.make("Cast", inputs[i], dtype="int32")
        assert builder.make_all(name, *inputs, **dict(case.params))


@settings(max_examples=300, **QUICK)
@given(samples())
def test_random_graph(sample):
    check(sample, cpu_target())


@settings(max_examples=3, **QUICK)
@given(samples())
def test_random_graph_by_numba(sample):
    check(sample, by_numba())


@pytest.mark.slow
@settings(max_examples=3000, **QUICK)
@given(samples(largest=20))
def test_many_random_graphs(sample):
    check(sample, cpu_target())


@pytest.mark.slow
@settings(max_examples=300, **QUICK)
@given(samples(largest=20))
def test_many_random_graphs_by_numba(sample):
    check(sample, by_numba())
