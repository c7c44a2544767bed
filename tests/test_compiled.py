"""Generated code: every golden case compiled, fused and unfused, against MXNet's answers."""
from __future__ import annotations

import numpy as np
import pytest
from golden.cases import Answer
from golden_graphs import OURS, answered, arrays_of, compare, graph_of, requests_of
from instruction_sets import OWN, InstructionSet
from programs import Program, lowered

CASES = [a for a in answered() if a.case.op != "Dropout"]


def program_of(answer: Answer, instructions: InstructionSet, merge: bool = True, mode: str = "write") -> Program:
    requests = dict.fromkeys(requests_of(answer), mode)
    inputs = answer.case.inputs
    return lowered(graph_of(answer), {i.name: i.shape for i in inputs}, {i.name: i.dtype for i in inputs}, requests,
                   answer.case.train, instructions.target, merge)


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


def check(answer: Answer, instructions: InstructionSet, merge: bool = True) -> None:
    program = program_of(answer, instructions, merge)
    results, aux = program.run(arrays_of(answer), run=instructions.run)
    compare(answer, program.graph.sinks, results, aux)


@pytest.mark.widest
@pytest.mark.parametrize("answer", SOME, ids=lambda a: a.case.name)
def test_golden_case(answer: Answer, instructions: InstructionSet) -> None:
    check(answer, instructions)


@pytest.mark.slow
@pytest.mark.parametrize("answer", OTHERS, ids=lambda a: a.case.name)
def test_other_golden_case(answer: Answer) -> None:
    check(answer, OWN)


ADDED = [a for a in CASES if (a.grads and "train" in a.case.name)
         or a.case.op in ("Convolution", "BatchNorm", "Pooling")]


@pytest.mark.slow
@pytest.mark.parametrize("answer", ADDED, ids=lambda a: a.case.name)
def test_gradients_are_added(answer: Answer) -> None:
    program = program_of(answer, OWN, mode="add")
    before = {name: np.full(grad.shape, 2, grad.dtype) for name, grad in answer.grads.items()}
    results, aux = program.run(arrays_of(answer), before, run=OWN.run)
    results = [r - 2 if s.kind == "grad" else r for s, r in zip(program.graph.sinks, results, strict=True)]
    compare(answer, program.graph.sinks, results, aux)


@pytest.mark.slow
def test_unfused_gives_the_same() -> None:
    """One kernel for each node: what fusion must not change."""
    layers = [a for a in CASES if a.case.op in ("BatchNorm", "LeakyReLU", "SoftmaxOutput", "softmax", "Convolution",
                                                "FullyConnected", "Pooling", "log_softmax")]
    for answer in layers:
        check(answer, OWN, merge=False)


def test_known_differences_are_documented() -> None:
    from pathlib import Path

    text = (Path(__file__).parents[1] / "docs" / "differences.md").read_text()
    for name in OURS:
        assert name.split("-")[0] in text, name
