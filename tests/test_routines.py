"""Routines: every operator that has one, by its definition and compiled, against the operator's reference."""
from __future__ import annotations

import numpy as np
import pytest
from instruction_sets import InstructionSet
from op_cases import Case, cases
from programs import DEFINITIONS, Program, lowered

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, Graph, Node, variable
from mxc.compiler.kernel.ir import RoutineKernel
from mxc.compiler.kernel.routines import spec, words
from mxc.compiler.ops import table
from mxc.compiler.ops.infer import infer_node
from mxc.compiler.scalar_functions.records import BUILTINS
from mxc.compiler.targets.cpu.build.jobs import Job
from mxc.compiler.targets.cpu.library.product import product_functions, product_symbol
from mxc.compiler.targets.cpu.target import CpuTarget, cpu_target

# A kernel that hands its buffers and integers to the word's function.
CALL = """
define void @call_{0}(ptr %args, i64 %first, i64 %last, ptr %scratch) {{
""" + "".join(f"  %p{i} = getelementptr i64, ptr %args, i64 {i}\n  %v{i} = load {kind}, ptr %p{i}\n"
             for i, kind in enumerate(("ptr", "ptr", "ptr", "i64", "i64", "i64"))) + """
  call void @{0}(ptr %v0, ptr %v1, ptr %v2, i64 %v3, i64 %v4, i64 %v5)
  ret void
}}
"""


def takes(case: Case, dtype: str) -> bool:
    """Whether the operator takes numbers of that dtype. All take float32."""
    node = Node(case.op, "node", {}, case.params, [Entry(variable(f"x{i}")) for i in range(len(case.shapes))])
    try:
        infer_node(node, case.shapes, [dtype] * len(case.shapes))
    except MXNetError:
        return dtype == "float32"
    return True


CASES = [(case, dtype) for op in table.all_operators() if "routine" in op.rules for case in cases(op)
         for dtype in ("float32", "float64", "float16") if takes(case, dtype)]


def program_of(case: Case, dtype: str, target: CpuTarget) -> Program:
    names = [f"x{i}" for i in range(len(case.shapes))]
    node = Node(case.op, "node", {}, case.params, [Entry(variable(name)) for name in names])
    graph = Graph([Entry(node, i) for i in range(case.op.num_outputs(case.params))])
    return lowered(graph, dict(zip(names, case.shapes, strict=True)), dict.fromkeys(names, dtype), target=target)


@pytest.mark.parametrize("case, dtype", [
    pytest.param(case, dtype, id=f"{case}-{dtype}", marks=[] if dtype == "float32" else [pytest.mark.slow])
    for case, dtype in CASES])
def test_routine(case: Case, dtype: str, instructions: InstructionSet) -> None:
    program = program_of(case, dtype, instructions.target)
    arrays = case.arrays(dtype)
    _, dtypes = infer_node(Node(case.op, "node", {}, case.params, [Entry(variable(f"x{i}")) for i in
                                                                 range(len(arrays))]),
                           [a.shape for a in arrays], [dtype] * len(arrays))
    expected = case.op.reference(case.params, arrays, dtypes)
    given = {f"x{i}": a for i, a in enumerate(arrays)}
    tolerance = {"float16": 4e-3, "float32": 1e-5, "float64": 1e-12}[dtype]
    for results in (program.run(given)[0], program.run(given, run=instructions.run)[0]):
        for ours, theirs in zip(results, expected, strict=True):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            np.testing.assert_allclose(ours, theirs, tolerance, tolerance)


def test_programs_define_every_kind_of_kernel() -> None:
    assert RoutineKernel in DEFINITIONS


def test_every_routine_is_of_an_operator() -> None:
    programs = [program_of(case, "float32", cpu_target()) for case, _ in CASES[::3]]
    used = {launch.kernel.routine for program in programs for launch in program.launches
            if isinstance(launch.kernel, RoutineKernel)}
    assert used == {name for name, each in spec.specs().items()
                    if each.function.__module__.startswith("mxc.compiler.operators.")}


def test_words_are_of_the_target() -> None:
    from mxc.compiler.targets.cpu.emit import vocabulary

    functions = {f"{name}_" for name, f in BUILTINS.items() if f.step not in ("where", "and", "or", "not")}
    assert {*words.__all__, *functions} <= set(vocabulary.words())


@pytest.mark.parametrize("given, stored", [("float32", "float32"), ("float64", "float64"), ("float32", "float16"),
                                           ("float16", "float16")])
def test_product(given: str, stored: str, instructions: InstructionSet) -> None:
    """The word, compiled, with what is left over in every direction; nothing beyond the result is written."""
    name = product_symbol(given, stored)
    text = CALL.format(name) + product_functions(instructions.isa, given, stored)
    address = instructions.compiled(Job(f"call_{name}", name, "llvm", text))
    rng, real = np.random.default_rng(0), np.float64 if stored == "float64" else np.float32
    for rows, depth, columns in ((1, 5, 16), (2, 4, 3), (3, 1, 8), (5, 300, 17), (13, 9, 40), (16, 515, 33)):
        to = rng.standard_normal(rows * columns + 9).astype(real)
        left = rng.standard_normal(rows * depth).astype(given)
        packed = rng.standard_normal(-(-columns // 16) * depth * 16).astype(stored)
        expected = to.copy()
        words.product_(expected, 0, rows, left.astype(real), 0, depth, packed.astype(real), columns)
        instructions.call(address, [to, left, packed], [rows, depth, columns], 0, [(0, 1)])
        np.testing.assert_allclose(to, expected, 0, 1e-12 if stored == "float64" else 1e-4)
        np.testing.assert_array_equal(to[rows * columns:], expected[rows * columns:])


def test_a_wrong_declaration_is_refused() -> None:
    with pytest.raises(MXNetError, match="to begin first, last, data, out, got first, last, out, data"):
        @spec.routine(inputs=("data",), outputs=("out",), units="n")
        def swapped(first, last, out, data, n):
            pass
    with pytest.raises(MXNetError, match="there is no routine 'sotr'"):
        spec.find("sotr")
