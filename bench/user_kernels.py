"""A program's own operators over whole arrays (mx.operator.kernel) on a million elements: milliseconds, and how many
times faster than the same function as a host step (mx.operator.CustomOp, in which Python runs the loops) and than
NumPy, where it has a form for it. Then the kernel alone, without checks of its indices, and without zeros in outputs.

    python bench/user_kernels.py [--quick]

Each number is the best of several rounds, of an executor's forward; host steps run once.
"""
from __future__ import annotations

import argparse
import ctypes
import inspect
import re
import time
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import numpy as np

import mxc as mx
from mxc.compiler.functions.arrays import ArrayFunction
from mxc.compiler.functions.source import read
from mxc.compiler.kernel.ir import FunctionKernel
from mxc.compiler.targets.cpu.build.load import load_by_llvm, machine, optimised
from mxc.compiler.targets.numba import array_functions
from mxc.compiler.targets.numba import arrays as lowering
from mxc.compiler.targets.numba.lowering import flags

SIDE = 1000


def scaled(x, out):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * 2.0 + 1.0


def neighbours(x, out):
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            out[i, j] = x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1] - 4 * x[i, j]


def decayed(x, out):
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total = total * 0.9 + x[i, j]
            out[i, j] = total


def pairwise(a, b, out):
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            total = 0.0
            for k in range(a.shape[1]):
                total += abs(a[i, k] - b[j, k]) ** 2
            out[i, j] = total


def numpy_neighbours(x: np.ndarray) -> np.ndarray:
    out = np.zeros_like(x)
    out[1:-1, 1:-1] = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - 4 * x[1:-1, 1:-1]
    return out


def pair_shapes(a: Any, b: Any) -> Any:
    """The output's shape of the pairwise distances."""
    return a[0], b[0]


CASES: list[tuple[Callable[..., None], Any, Sequence[tuple[int, ...]], Callable[..., np.ndarray] | None]] = [
    (scaled, None, [(SIDE, SIDE)], lambda x: x * np.float32(2) + np.float32(1)),
    (neighbours, None, [(SIDE, SIDE)], numpy_neighbours),
    (decayed, None, [(SIDE, SIDE)], None),
    (pairwise, pair_shapes, [(SIDE, 8), (SIDE, 8)], lambda a, b: ((a[:, None] - b[None]) ** 2).sum(-1)),
]


def register(name: str, function: Callable[..., None], shapes: Any) -> None:
    """The function as an operator `Custom` runs it."""
    class Op(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            out = np.zeros(out_data[0].shape, np.float32)
            function(*(array.asnumpy() for array in in_data), out)
            self.assign(out_data[0], req[0], mx.nd.array(out))

    @mx.operator.register(name)
    class Prop(mx.operator.CustomOpProp):
        def list_arguments(self):
            return ["a", "b"][:function.__code__.co_argcount - 1]

        def infer_shape(self, in_shape):
            return in_shape, [shapes(*in_shape) if shapes else in_shape[0]], []

        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Op()


def best(call: Callable[[], Any], rounds: int) -> float:
    """Milliseconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def bound(symbol: Any, shapes: Sequence[tuple[int, ...]]) -> Callable[[], Any]:
    """A forward of the operator on numbers that are the same for all."""
    executor = symbol.simple_bind(mx.cpu(), grad_req="null", **dict(zip("ab", shapes, strict=False)))
    for name, array in executor.arg_dict.items():
        array[:] = np.random.default_rng(len(name)).random(array.shape, np.float32)
    return lambda: executor.forward()[0].asnumpy()


def alone(function: Callable[..., None], shapes: Sequence[tuple[int, ...]], rounds: int) -> float:
    """Milliseconds of the kernel without an executor around it."""
    names = list(inspect.signature(function).parameters)
    made = ArrayFunction(read(function.__name__, "function", function), names[len(shapes) - 1:])
    kernel = FunctionKernel("kernel", made, ("float32",) * len(shapes) + ("int64",), tuple(names), tuple(shapes),
                            len(shapes) - 1)
    code = machine().emit_object(optimised(array_functions.source(kernel, "kernel", "", ""), machine(), 0))
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(load_by_llvm([bytes(code)], ["kernel"])["kernel"])
    arrays = [np.random.default_rng(1).random(s, np.float32) for s in shapes] + [np.zeros(1, np.int64)]
    words = np.array([a.ctypes.data for a in arrays] + list(kernel.values()), np.int64)
    return best(lambda: run(words.ctypes.data, 0, 1, None), rounds)


def without_zeros(plain: Callable[..., Any]) -> Callable[..., Any]:
    """What gives LLVM IR, without the calls that make outputs zeros."""
    def text(*args: Any) -> Any:
        found = plain(*args)
        return found._replace(ir=re.sub(r"^  call void @llvm.memset.*ptr %b.*$", "", found.ir, flags=re.MULTILINE))

    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    rounds = 10 if parser.parse_args().quick else 50
    print(f"{'':12}{'kernel':>9}{'host step':>11}{'times':>7}{'NumPy':>9}{'times':>7}{'alone':>9}{'unchecked':>11}"
          f"{'no zeros':>10}")
    for function, shapes, given, form in CASES:
        name = function.__name__
        mx.operator.kernel(name, shapes=shapes)(function)
        register(name, function, shapes)
        inputs = [mx.sym.Variable(n) for n in "ab"[:len(given)]]
        run, host = bound(getattr(mx.sym, name)(*inputs), given), bound(mx.sym.Custom(*inputs, op_type=name), given)
        np.testing.assert_allclose(run(), host(), rtol=1e-4, atol=1e-4)
        kernel, step = best(run, rounds), best(host, 1)
        values = [np.random.default_rng(1).random(s, np.float32) for s in given]
        numpy = best(lambda form=form, values=values: form(*values), rounds) if form else None
        every = [*given, shapes(*given) if shapes else given[0]]
        costs = [alone(function, every, rounds)]
        with mock.patch.object(lowering, "_checked_flags", flags):
            costs.append(alone(function, every, rounds))
        with mock.patch.object(lowering, "kernel_text", without_zeros(lowering.kernel_text)):
            costs.append(alone(function, every, rounds))
        print(f"{name:12}{kernel:9.2f}{step:11.0f}{step / kernel:7.0f}"
              + (f"{numpy:9.2f}{numpy / kernel:7.1f}" if numpy else f"{'-':>9}{'-':>7}")
              + f"{costs[0]:9.3f}{costs[1]:11.3f}{costs[2]:10.3f}")


if __name__ == "__main__":
    main()
