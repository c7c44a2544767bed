"""The builder: what it prints, and that the printed program does it."""
from __future__ import annotations

import ctypes

import llvmlite.binding as llvm
import numpy as np
import pytest

from mxc.compiler.targets.cpu.emit.builder import Array, Builder, mangled, vector_type


def run(builder: Builder, name: str, *arguments: int) -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(builder.module())
    module.verify()
    features = llvm.get_host_cpu_features().flatten()
    machine = llvm.Target.from_default_triple().create_target_machine(cpu=llvm.get_host_cpu_name(), features=features)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(arguments))(engine.get_function_address(name))(*arguments)


def test_text_of_a_loop():
    b = Builder()
    with b.function("double", "ptr x, i64 n") as (x, n):
        data = Array(b, x, "float32")
        for i in b.range(0, n):
            data[i] = data[i] + data[i]
    assert b.module() == """\
define void @double(ptr %x, i64 %n) #0 {
entry:
  br label %l1.head
l1.head:
  %l1.i = phi i64 [0, %entry], [%l1.n, %l1.body]
  %v2 = icmp slt i64 %l1.i, %n
  br i1 %v2, label %l1.body, label %l1.end
l1.body:
  %v3 = getelementptr float, ptr %x, i64 %l1.i
  %v4 = load float, ptr %v3, align 4
  %v5 = load float, ptr %v3, align 4
  %v6 = fadd contract float %v4, %v5
  store float %v6, ptr %v3, align 4
  %l1.n = add nsw i64 %l1.i, 1
  br label %l1.head
l1.end:
  ret void
}
attributes #0 = { nounwind }
"""


def test_arguments_are_read_when_used():
    b = Builder()
    with b.function("f", "ptr args") as (args,):
        result, numbers = Array(b, b.argument(args, 0, "ptr"), "int64"), [b.argument(args, i) for i in range(1, 20)]
        with b.when(numbers[10] > 5):
            result[0] = numbers[0] + numbers[10]
    assert b.module().count("load") == 3
    found = np.zeros(1, np.int64)
    run(b, "f", np.array([found.ctypes.data, *range(101, 120)], np.int64).ctypes.data)
    assert found[0] == 101 + 111


def test_what_a_block_computed_is_known_there_only():
    b = Builder()
    with b.function("f", "ptr out, i64 n") as (out, n):
        result = Array(b, out, "int64")
        with b.when(n > 5):
            result[0] = n * 3
            assert (n * 3).text == (n * 3).text
        result[1] = n * 3
        assert result[1].text != result[1].text  # memory may have changed
    found = np.zeros(2, np.int64)
    run(b, "f", found.ctypes.data, 4)
    assert list(found) == [0, 12]


def test_leaving_for_another_function():
    b = Builder()
    with b.function("twice", "ptr out, i64 n", internal=True) as (out, n):
        Array(b, out, "int64")[0] = n * 2
    with b.function("f", "ptr out, i64 n, i64 least") as (out, n, limit):
        with b.when(n >= limit):
            b.leave("twice", [out, n])
        Array(b, out, "int64")[0] = n
    for number, wanted in ((3, 3), (7, 14)):
        found = np.zeros(1, np.int64)
        run(b, "f", found.ctypes.data, number, 5)
        assert found[0] == wanted


def test_loops_whose_counters_are_hidden():
    b = Builder(opaque=True)
    with b.function("f", "ptr out, i64 n") as (out, n):
        total = [b.lift(0)]
        for i in b.range(1, n, 3, carry=total):
            total[0] = total[0] + i
        Array(b, out, "int64")[0] = total[0]
    found = np.zeros(1, np.int64)
    run(b, "f", found.ctypes.data, 20)
    assert found[0] == sum(range(1, 20, 3)) and "freeze" in b.module()


def test_integer_constants_fold():
    b = Builder()
    with b.function("f", "i64 n") as (n,):
        assert (n * 0).text == "0"
        assert (n + 0) is n
        assert (n * 1) is n
        assert (b.lift(6) * 7 - 2).text == "40"
        assert (n // 1) is n


@pytest.mark.parametrize("kind, suffix", [("float", "f32"), ("<8 x double>", "v8f64"), ("<4 x half>", "v4f16"),
                                          ("i64", "i64"), ("<2 x ptr>", "v2p0")])
def test_names_of_overloads(kind, suffix):
    assert mangled(kind) == suffix


def test_carried_values_and_conditions():
    """sum of the even numbers below n, and how many loops ran"""
    b = Builder()
    with b.function("f", "ptr out, i64 n") as (out, n):
        result = Array(b, out, "int64")
        state = [b.lift(0), b.lift(0)]
        for i in b.range(0, n, carry=state):
            for j in b.range(0, 2, carry=state):
                even = (i % 2).equals(0) & j.equals(0)
                state[0] = b.select(even, state[0] + i, state[0])
                state[1] = state[1] + 1
        result[0], result[1] = state
        with b.when(n > 5):
            result[2] = b.lift(1)
        with b.when_not(n > 5):
            result[2] = b.lift(2)
    for n in (0, 3, 9):
        got = np.zeros(3, np.int64)
        run(b, "f", got.ctypes.data, n)
        assert got.tolist() == [sum(range(0, n, 2)), 2 * n, 1 if n > 5 else 2]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8", "float16"])
def test_masked_vectors(dtype):
    """Copies n < 8 elements and reverses them by a scatter; what the mask leaves out is not touched."""
    b = Builder()
    with b.function("f", "ptr x, ptr y, ptr z, i64 n") as (x, y, z, n):
        source, copy, back = (Array(b, p, dtype) for p in (x, y, z))
        mask = b.first_lanes(n, 8)
        copy.put(0, source.vector(0, 8, mask), mask)
        indices = b.iota(vector_type("i64", 8))
        reverse = b.splat(n - 1, 8) - indices
        back.scatter(reverse, source.gather(indices, mask), mask)
    data = np.arange(1, 9).astype(dtype)
    for n in (0, 1, 5, 8):
        copied, reversed_ = np.zeros(8, dtype), np.zeros(8, dtype)
        run(b, "f", data.ctypes.data, copied.ctypes.data, reversed_.ctypes.data, n)
        assert copied.tolist() == [*data[:n], *[0] * (8 - n)]
        assert reversed_.tolist() == [*data[:n][::-1], *[0] * (8 - n)]
