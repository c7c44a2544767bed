"""The typed source of kernels as LLVM IR: its statements and expressions, against Python's own reading of them."""
from __future__ import annotations

import itertools
import operator

import numpy as np
import pytest
from instruction_sets import InstructionSet

from mxc.compiler.error import MXNetError
from mxc.compiler.targets.cpu.build.jobs import Job
from mxc.compiler.targets.cpu.build.load import machine
from mxc.compiler.targets.cpu.emit.translate import translated
from mxc.compiler.targets.cpu.emit.typed import DTYPES

HEAD = "def kernel(args, first, last, scratch):\n"
_count = itertools.count()


def run(instructions: InstructionSet, text: str, *arrays: np.ndarray, last: int = 0) -> None:
    """Compiles a whole source and runs it over arrays."""
    job = Job(f"translated{next(_count)}", "small", "typed", text, tuple(a.dtype.name for a in arrays))
    instructions.call(instructions.compiled(job), arrays, [], 0, [(0, last)])


def body(lines: str, count: int) -> str:
    """A source whose buffers are b0, b1, ..., and whose integers are n0, ..."""
    return HEAD + "".join(f"    b{i} = buffer{i}(args, {i})\n" for i in range(count)) + "".join(
        f"    {line}\n" for line in lines.strip("\n").split("\n"))


def test_loops_branches_and_variables(instructions: InstructionSet) -> None:
    """As Python does it, when it runs the same lines."""
    lines = """
total = 0
i = 0
while i < 20:
    if i % 3 == 0 and b0[i] > 2:
        total += b0[i]
    elif not b0[i] or i == 7:
        total = total * 2
    else:
        total -= i
    i += 1
for j in range(3, 17, 4):
    for k in range(j):
        total = total + (j if k < 5 else b0[k])
left, right = total, -total
b1[0] = total
b1[1] = left - right if 0 <= total < 5 or total == 3 else right
b1[2] = 7 // -2 + -7 % 3
"""
    data = np.arange(20) % 7
    ours, theirs = np.zeros(3, np.int64), np.zeros(3, np.int64)
    run(instructions, body(lines, 2), data, ours)
    exec(lines, {"b0": data, "b1": theirs})
    np.testing.assert_array_equal(ours, theirs)


def test_a_variable_that_is_given_several_dtypes_holds_them_all(instructions: InstructionSet) -> None:
    out = np.zeros(2)
    text = body("x = 1\ny = False\nif first < last:\n    x = 2.5\n    y = 7\nb0[0] = x\nb0[1] = y", 1)
    run(instructions, text, out, last=1)
    assert list(out) == [2.5, 7]


@pytest.mark.parametrize("op", ["+", "-", "*", "//", "%", "&", "|", "^", "<", "<=", "==", "!="])
@pytest.mark.parametrize("dtype", [d for d in DTYPES if "int" in d])
def test_integers(op: str, dtype: str, instructions: InstructionSet) -> None:
    """In 64 bits, then of the dtype again; 0 where something is divided by 0."""
    info = np.iinfo(dtype)
    numbers = [n for n in (0, 1, 2, 3, 7, -1, -2, -7, info.min, info.max) if info.min <= n <= info.max]
    pairs = list(itertools.product(numbers, repeat=2))
    x, y = (np.array(side, dtype) for side in zip(*pairs, strict=True))
    out = np.zeros(len(pairs), dtype)
    text = body(f"for i in range(last):\n    b2[i] = {dtype}(b0[i] {op} b1[i])", 3)
    run(instructions, text, x, y, out, last=len(pairs))
    names = {"+": "add", "-": "sub", "*": "mul", "//": "floordiv", "%": "mod", "&": "and_", "|": "or_", "^": "xor",
             "<": "lt", "<=": "le", "==": "eq", "!=": "ne"}
    wanted = [0 if op in "//%" and b == 0 else int(getattr(operator, names[op])(a, b)) for a, b in pairs]
    np.testing.assert_array_equal(out, np.array([w & (2**64 - 1) for w in wanted], np.uint64).astype(dtype))


@pytest.mark.parametrize("target", DTYPES)
@pytest.mark.parametrize("source", DTYPES)
def test_casts(source: str, target: str, instructions: InstructionSet) -> None:
    x = np.array([0, 1, 2, 100, 127], np.float64).astype(source)
    out = np.zeros(5, target)
    run(instructions, body(f"for i in range(5):\n    b1[i] = {target}(b0[i])", 2), x, out)
    np.testing.assert_array_equal(out, x.astype(target))


def test_the_right_side_of_a_condition_is_read_only_if_it_decides(instructions: InstructionSet) -> None:
    out = np.zeros(2, np.int64)
    far = 1 << 60
    text = (f"at = {far} if first < last else 0\nok = at < 1 and b0[at] == 0\nno = at >= 1 or b0[at] == 0\n"
            "b0[0] = int64(ok)\nb0[1] = int64(no)")
    run(instructions, body(text, 1), out, last=1)
    assert list(out) == [0, 1]


@pytest.mark.parametrize(("line", "message"), [
    ("b0[0] = min(first, last)", "line 3: min is no word of the language and was given no value"),
    ("b0[0] = nothing", "nothing is no word"),
    ("return", "return is not of the language"),
    ("b0[0] = first[0]", "first is no buffer"),
    ("b0[1.5] = 1", "an index is float64, expected an integer"),
    ("b0[0] = max_(1, 2.0)", "max_: expected arguments of one dtype, got int64, float64"),
    ("b0[0] = uint64(1) + 1", "uint64 with int64: one of them must be cast first"),
    ("b0[0] = select(1)", "missing 2 required positional arguments"),
])
def test_what_is_not_of_the_language_is_refused(line: str, message: str) -> None:
    with pytest.raises(MXNetError, match="kernel small, line 3: .*"[:13]) as caught:
        translated(Job("symbol", "small", "typed", body(line, 1), ("int64",)), "")
    assert message in str(caught.value)


def test_code_needs_nothing_but_the_c_library() -> None:
    text = translated(Job("symbol", "small", "typed", body("b0[0] = exp_(b0[0])", 1), ("float32",)), "")
    assert "define void @symbol" in text and "declare" not in text.replace("declare float @llvm.", "")
    assert machine().triple
