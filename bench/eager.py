"""Microseconds of eager operations: mxc, NumPy and MXNet, and how often mxc's time goes into theirs.

    python bench/eager.py [--mxnet PYTHON]

Small arrays are 2x2, large ones have 16M elements; `record` is with autograd recording. Each number is the best of
several rounds; what is queued is waited for inside.
"""
from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from harness.environments import asked

# A program for mxc and MXNet alike: `mx` is the module, `measure(name, call, rounds)` takes a time.
PROGRAM = """
a, b = mx.nd.ones((2, 2)), mx.nd.ones((2, 2))
m, indices = mx.nd.ones((100, 100)), mx.nd.array([1, 3, 5])

def chain():
    c = a
    for _ in range(100):
        c = c + b
    c.wait_to_read()
    return c

def recorded():
    with mx.autograd.record():
        return chain()

def differentiated():
    recorded().backward()
    a.grad.wait_to_read()

def mixed():
    with mx.autograd.record():
        c = a
        for _ in range(25):
            c = mx.nd.tanh(c * b + 1) * 2
    c.backward()
    a.grad.wait_to_read()

def assign():
    m[3] = 1

measure("a + b", lambda: a + b, 2000)
measure("a * 2", lambda: a * 2, 2000)
measure("chain of 100", chain, 30)
a.attach_grad()
measure("chain of 100, record", recorded, 20)
measure("and backward", differentiated, 20)
measure("100 others, backward", mixed, 20)
measure("m[3]", lambda: m[3], 1000)
measure("m[3, 4]", lambda: m[3, 4], 1000)
measure("m[1:3]", lambda: m[1:3], 1000)
measure("m[indices]", lambda: m[indices].wait_to_read(), 200)
measure("take", lambda: mx.nd.take(m, indices).wait_to_read(), 200)
measure("m[3] = 1", assign, 500)
big, other = mx.nd.ones((1 << 24,)), mx.nd.ones((1 << 24,))
measure("16M a + b", lambda: (big + other).wait_to_read(), 2)
measure("16M exp", lambda: mx.nd.exp(big).wait_to_read(), 2)
measure("16M sum", lambda: mx.nd.sum(big).wait_to_read(), 2)
"""
MEASURE = """
import json, time
times = {}
def measure(name, call, rounds, repeats=5):
    best = 1e9
    call()
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(rounds):
            call()
        mx.nd.waitall()
        best = min(best, (time.perf_counter() - start) / rounds)
    times[name] = best * 1e6
"""


def run(python: str, module: str) -> dict[str, float]:
    """The program's times in microseconds, by name, in a process of its own."""
    text = f"import {module} as mx\n{MEASURE}{PROGRAM}print(json.dumps(times))"
    done = subprocess.run([python, "-c", text], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def numpy_times() -> dict[str, float]:
    """The same of NumPy, where it has the like."""
    a, b, m = np.ones((2, 2), "float32"), np.ones((2, 2), "float32"), np.ones((100, 100), "float32")
    big, other = np.ones(1 << 24, "float32"), np.ones(1 << 24, "float32")

    def best(call: Callable[[], object], rounds: int) -> float:
        found = []
        for _ in range(5):
            start = time.perf_counter()
            for _ in range(rounds):
                call()
            found.append((time.perf_counter() - start) / rounds * 1e6)
        return min(found)

    return {"a + b": best(lambda: a + b, 2000), "a * 2": best(lambda: a * 2, 2000),
            "m[3]": best(lambda: m[3], 1000), "m[3, 4]": best(lambda: m[3, 4], 1000),
            "16M a + b": best(lambda: big + other, 2), "16M exp": best(lambda: np.exp(big), 2),
            "16M sum": best(lambda: np.sum(big), 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mxnet", metavar="PYTHON", help="has MXNet 1.9.1 (default: the peers' environment)")
    args = parser.parse_args()
    args.mxnet = args.mxnet or asked("mxnet")
    own, numpy = run(sys.executable, "mxc"), numpy_times()
    theirs = run(args.mxnet, "mxnet") if args.mxnet else {}
    print(f"{'':22}{'mxc us':>12}{'NumPy us':>12}{'x':>7}{'MXNet us':>12}{'x':>7}")
    for name, mine in own.items():
        columns = "".join(f"{other[name]:12.2f}{other[name] / mine:7.2f}" if name in other else f"{'':19}"
                          for other in (numpy, theirs))
        print(f"{name:22}{mine:12.2f}{columns}")


if __name__ == "__main__":
    main()
