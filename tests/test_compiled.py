"""Generated code: every golden case compiled (all kernels in one batch), fused and unfused, against MXNet's answers."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from golden.cases import Answer
from golden_graphs import OURS, answered, arrays_of, compare, graph_of, requests_of
from programs import Program, lowered

from mxc.compiler.targets.cpu.target import cpu_target

CASES = [a for a in answered() if a.case.op != "Dropout"]


def program_of(answer: Answer, merge: bool = True, mode: str = "write") -> Program:
    requests = dict.fromkeys(requests_of(answer), mode)
    return lowered(graph_of(answer), {i.name: i.shape for i in answer.case.inputs},
                   {i.name: i.dtype for i in answer.case.inputs}, requests, answer.case.train, cpu_target(), merge)


def compiled(answers: list[Answer], mode: str = "write", merge: bool = True) -> tuple[dict[str, Program], Any]:
    """Every case's program, and all of their kernels, compiled together."""
    programs = {a.case.name: program_of(a, merge, mode) for a in answers}
    kernels: dict[str, Any] = {}
    for program in programs.values():
        kernels |= program.kernels(cpu_target())
    return programs, cpu_target().load(kernels)


def some(answers: list[Answer]) -> list[Answer]:
    """Of each operator the first case, the first with gradients, and one of another dtype: compiling all takes long."""
    seen: set[tuple[str, ...]] = set()
    chosen = []
    for answer in answers:
        op, dtype = answer.case.op, answer.case.inputs[0].dtype if answer.case.inputs else ""
        kinds = {(op,), (op, "gradients") if answer.grads else (op,), (op, "other") if dtype != "float32" else (op,)}
        if kinds - seen:
            chosen.append(answer)
            seen |= kinds
    return chosen


SOME = some(CASES)
OTHERS = [a for a in CASES if a.case.name not in {each.case.name for each in SOME}]


def check(answer: Answer, programs: dict[str, Program], library: Any) -> None:
    program = programs[answer.case.name]
    results, aux = program.run(arrays_of(answer), None, cpu_target(), library)
    compare(answer, program.graph.sinks, results, aux)


@pytest.fixture(scope="module")
def batch() -> tuple[dict[str, Program], Any]:
    return compiled(SOME)


@pytest.mark.parametrize("answer", SOME, ids=lambda a: a.case.name)
def test_golden_case(answer: Answer, batch: tuple[dict[str, Program], Any]) -> None:
    check(answer, *batch)


@pytest.fixture(scope="module")
def rest() -> tuple[dict[str, Program], Any]:
    return compiled(OTHERS)


@pytest.mark.slow
@pytest.mark.parametrize("answer", OTHERS, ids=lambda a: a.case.name)
def test_other_golden_case(answer: Answer, rest: tuple[dict[str, Program], Any]) -> None:
    check(answer, *rest)


ADDED = [a for a in CASES if (a.grads and "train" in a.case.name)
         or a.case.op in ("Convolution", "BatchNorm", "Pooling")]


@pytest.fixture(scope="module")
def adding() -> tuple[dict[str, Program], Any]:
    return compiled(ADDED, mode="add")


@pytest.mark.slow
@pytest.mark.parametrize("answer", ADDED, ids=lambda a: a.case.name)
def test_gradients_are_added(answer: Answer, adding: tuple[dict[str, Program], Any]) -> None:
    program = adding[0][answer.case.name]
    before = {name: np.full(grad.shape, 2, grad.dtype) for name, grad in answer.grads.items()}
    results, aux = program.run(arrays_of(answer), before, cpu_target(), adding[1])
    results = [r - 2 if s.kind == "grad" else r for s, r in zip(program.graph.sinks, results, strict=True)]
    compare(answer, program.graph.sinks, results, aux)


@pytest.mark.slow
def test_unfused_gives_the_same() -> None:
    """One kernel for each node: what fusion must not change."""
    layers = [a for a in CASES if a.case.op in ("BatchNorm", "LeakyReLU", "SoftmaxOutput", "softmax", "Convolution",
                                                "FullyConnected", "Pooling", "log_softmax")]
    batch = compiled(layers, merge=False)
    for answer in layers:
        check(answer, *batch)


def test_known_differences_are_documented() -> None:
    from pathlib import Path

    text = (Path(__file__).parents[1] / "docs" / "differences.md").read_text()
    for name in OURS:
        assert name.split("-")[0] in text, name
