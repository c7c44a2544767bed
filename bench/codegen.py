"""The two generators of kernels' code beside each other: the translator of mxc's own, and Numba.

    python bench/codegen.py [--rounds N] [--models FOLDER NAME ...]

For each form of kernel one that is typical of it: how long each generator takes for its code, without a cache, and one
thread for a run. Runs alternate between the two in one process, so that both meet the same machine; the least of each,
and the ratio. Numba's import, and what it compiles once in a process, are in a line of their own. With --models whole
networks of such a folder as examples/check_models.py takes it: one run of inference, in two processes that take turns.
"""
from __future__ import annotations

import argparse
import ctypes
import dataclasses
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import mxc as mx
from mxc.cli.machine import cpu_name
from mxc.compiler.kernel.ir import CallKernel, ChainKernel, Kernel
from mxc.compiler.planning import plan_graph
from mxc.compiler.targets.cpu.build.codegen import GENERATORS
from mxc.compiler.targets.cpu.build.jobs import Job, job_of
from mxc.compiler.targets.cpu.build.loaded import load_functions
from mxc.compiler.targets.cpu.build.worker import compile_here
from mxc.compiler.targets.cpu.target import CpuTarget

ROUNDS = 15
LEAST = 2e-3  # seconds of a round at least
SIZE = 1 << 24  # elements of each array: the most that a form has


Shapes = dict[str, tuple[int, ...]]


def forms() -> dict[str, tuple[mx.sym.Symbol, Shapes, str]]:
    """What is typical of each form of kernel (emit/skeletons.py of the CPU target), by name: a symbol whose plan has
    such a kernel, its inputs' shapes, and the operator that the kernel is named by."""
    x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    convolution = mx.sym.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=64, no_bias=True, name="conv")
    pooled = mx.sym.Pooling(convolution, pool_type="avg", kernel=(3, 3), stride=(2, 2))
    return {
        "map": (mx.sym.relu(x * 2 + y), {"x": (512, 512), "y": (512, 512)}, "relu"),
        "map of functions": (mx.sym.sigmoid(mx.sym.tanh(x) * y), {"x": (512, 512), "y": (512, 512)}, "sigmoid"),
        "rows": (mx.sym.softmax(x, axis=-1), {"x": (512, 1000)}, "max"),
        "columns": (mx.sym.softmax(x, axis=0), {"x": (1000, 512)}, "max"),
        "lanes": (pooled, {"x": (1, 64, 56, 56)}, "Pooling"),
        "tiled": (mx.sym.transpose(x) * 2, {"x": (1024, 1024)}, "transpose"),
        "streamed": (x * 2, {"x": (4096, 4096)}, "_mul_scalar"),
        "routine": (mx.sym.argsort(x, axis=-1), {"x": (512, 1000)}, "_mxc_argsort"),
    }


def typed_kernel(symbol: mx.sym.Symbol, shapes: Shapes, operator: str, target: CpuTarget) -> Kernel:
    """The kernel of the symbol's plan that comes as typed source and that the operator begins or ends."""
    planned = plan_graph(symbol.graph, shapes, {}, {}, False, target, True)
    (kernel,) = [kernel for kernel in planned.kernels.values() if not isinstance(kernel, CallKernel | ChainKernel)
                 and operator in (kernel.name.split("+")[0], kernel.name.split("+")[-1])]
    return kernel


class Code:
    """A kernel's code, and how to run it on arrays."""

    def __init__(self, job: Job, kernel: Kernel, target: CpuTarget, arrays: list[np.ndarray]):
        start = time.perf_counter()
        code = compile_here(job, target.cpu, target.features)
        self.compiling = time.perf_counter() - start
        launch = target.launch(kernel)
        self.function = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 4)(load_functions([code], [job.symbol])[job.symbol])
        self.args = np.array([*(a.ctypes.data for a in arrays), *launch.values], np.int64)
        memory = np.zeros(launch.scratch_bytes + 64, np.uint8)
        self.scratch = memory[-memory.ctypes.data % 64:]
        self.units = launch.units
        self.times: list[float] = []

    def run(self, count: int) -> float:
        """Seconds of one run, of `count` in a row."""
        start = time.perf_counter()
        for _ in range(count):
            self.function(self.args.ctypes.data, 0, self.units, self.scratch.ctypes.data)
        return (time.perf_counter() - start) / count


def kernels(rounds: int) -> None:
    """Print the table of the forms."""
    target = CpuTarget()
    start = time.perf_counter()
    compile_here(Job("first", "first", "typed", "def kernel(args, first, last, scratch):\n    pass\n",
                     generator="numba"), target.cpu, target.features)
    print(f"Numba's import and its first kernel: {time.perf_counter() - start:.2f} s")
    print(f"{'form':18}{'compile, ms':>12}{'Numba':>8}{'ratio':>7}{'run, us':>12}{'Numba':>10}{'ratio':>7}")
    for name, form in forms().items():
        kernel = typed_kernel(*form, target)
        jobs = {g: job_of(kernel, f"{name.replace(' ', '_')}_{g}", target.isa, g) for g in GENERATORS}
        for generator, job in jobs.items():  # the functions that Numba compiles once in a process
            compile_here(dataclasses.replace(job, symbol=f"{job.symbol}_{generator}"), target.cpu, target.features)
        arrays = [np.random.default_rng(0).random(SIZE, "float32").astype(dtype) for dtype in kernel.buffers]
        codes = {g: Code(job, kernel, target, arrays) for g, job in jobs.items()}
        count = max(1, int(LEAST / max(next(iter(codes.values())).run(2), 1e-7)))
        for _ in range(rounds):
            for code in codes.values():
                code.times.append(code.run(count))
        one, other = codes.values()
        ours, theirs = min(one.times), min(other.times)
        print(f"{name:18}{one.compiling * 1e3:>12.0f}{other.compiling * 1e3:>8.0f}"
              f"{other.compiling / one.compiling:>7.1f}{ours * 1e6:>12.1f}{theirs * 1e6:>10.1f}{theirs / ours:>7.2f}",
              flush=True)


def serve(folder: Path, name: str) -> None:
    """Runs a network each time a line comes, and prints the seconds."""
    case = json.loads((folder / "cases.json").read_text())[name]
    symbol = mx.sym.load(str(folder / case["symbol"]))
    executor = symbol.simple_bind(mx.cpu(), grad_req="null", **{n: tuple(s) for n, s in case["shapes"].items()})
    rng = np.random.default_rng(0)
    for array in (*executor.arg_dict.values(), *executor.aux_dict.values()):
        array[:] = rng.uniform(0.1, 0.2, array.shape)
    for _ in range(3):
        executor.forward(is_train=False)[0].wait_to_read()
    print("ready", flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        for _ in range(int(line)):
            executor.forward(is_train=False)[0].wait_to_read()
        print((time.perf_counter() - start) / int(line), flush=True)


def networks(folder: Path, names: list[str], rounds: int) -> None:
    """Print the table of whole networks."""
    print(f"{'network':28}{'run, ms':>10}{'Numba':>10}{'ratio':>7}")
    for name in names:
        command = [sys.executable, __file__, "--serve", str(folder), name]
        both: dict[str, Any] = {g: subprocess.Popen(command, env={**os.environ, "MXC_CODEGEN": g}, text=True,
                                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE) for g in GENERATORS}
        times: dict[str, list[float]] = {g: [] for g in both}
        for process in both.values():
            assert process.stdout.readline() == "ready\n"
        count = 1
        for turn in range(rounds + 1):
            for generator, process in both.items():
                process.stdin.write(f"{count}\n")
                process.stdin.flush()
                seconds = float(process.stdout.readline())
                times[generator] += [seconds] if turn else []
            count = max(1, int(0.05 / seconds)) if not turn else count
        for process in both.values():
            process.communicate()
        ours, theirs = map(min, times.values())
        print(f"{name:28}{ours * 1e3:>10.2f}{theirs * 1e3:>10.2f}{theirs / ours:>7.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--models", nargs="+", metavar=("FOLDER", "NAME"), help="whole networks, not kernels")
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(Path(options.serve[0]), options.serve[1])
        return
    print(f"{cpu_name()}, {os.cpu_count()} CPUs")
    if options.models:
        networks(Path(options.models[0]), options.models[1:], options.rounds)
    else:
        kernels(options.rounds)


if __name__ == "__main__":
    main()
