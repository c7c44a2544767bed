"""A program's own elementwise operators (mx.operator.elementwise) between two convolutions: milliseconds of a forward
and of a training step, against the same network written with built-in operators.

    python bench/user_operators.py [--quick]

`formula` is a swish, which becomes lines of the expression language; `native` is a function with a loop that only Numba
compiles, against the function unrolled by hand into a formula. Rounds of both networks alternate; each number is the
median of all rounds, each ratio that of the rounds' ratios.
"""
from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import mxc as mx

SHAPE = (8, 32, 56, 56)


@mx.operator.elementwise("bench_swish")
def bench_swish(x, *, beta=1.0):
    """x times the sigmoid of beta x."""
    return x / (1 + math.exp(-beta * x))


def tents_slope(x, *, most=4):
    """The derivative of `bench_tents`."""
    slope = 1.0
    n = 0
    while x > 1 and n < most:
        x = abs(x - 2)
        slope = -slope
        n += 1
    return slope


@mx.operator.elementwise("bench_tents", gradient=tents_slope)
def bench_tents(x, *, most=4):
    """x folded at 1 until it is below."""
    n = 0
    while x > 1 and n < most:
        x = abs(x - 2)
        n += 1
    return x


@mx.operator.elementwise("bench_unrolled")
def bench_unrolled(x):
    """`bench_tents` as a formula."""
    for _ in range(4):
        x = abs(x - 2) if x > 1 else x
    return x


def built_in_swish(x: Any) -> Any:
    """The same of built-in operators."""
    return x / (1 + mx.sym.exp(-1.5 * x))


CASES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "formula": (lambda x: mx.sym.bench_swish(x, beta=1.5), built_in_swish),
    "native": (lambda x: mx.sym.bench_tents(x), lambda x: mx.sym.bench_unrolled(x)),
}


def bound(between: Callable[[Any], Any], grad_req: str) -> Any:
    """A convolution, something, a convolution, with arrays of numbers."""
    net = mx.sym.Convolution(mx.sym.Variable("data"), num_filter=32, kernel=(3, 3), pad=(1, 1))
    net = mx.sym.Convolution(between(net), num_filter=32, kernel=(3, 3), pad=(1, 1))
    executor = net.simple_bind(mx.cpu(), grad_req=grad_req, data=SHAPE)
    for array in executor.arg_arrays:
        array[:] = mx.nd.random.uniform(-0.2, 0.2, array.shape)
    return executor


def seconds(executor: Any, train: bool) -> float:
    """Of one forward, or one training step."""
    start = time.perf_counter()
    outputs = executor.forward(is_train=train)
    if train:
        executor.backward(outputs)
        executor.grad_arrays[0].wait_to_read()
    outputs[0].wait_to_read()
    return time.perf_counter() - start


def measured(name: str, train: bool, rounds: int) -> tuple[float, float, float]:
    """Seconds of both networks, and the ratio of the first to the second."""
    both = [bound(between, "write" if train else "null") for between in CASES[name]]
    for executor in both:
        seconds(executor, train)
    times = [[seconds(executor, train) for executor in both] for _ in range(rounds)]
    ours, theirs = (statistics.median(each) for each in zip(*times, strict=True))
    return ours, theirs, statistics.median(a / b for a, b in times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few rounds")
    rounds = 5 if parser.parse_args().quick else 60
    print(f"{'operator':10} {'':10} {'own, ms':>9} {'other, ms':>10} {'ratio':>7}")
    for name in CASES:
        for train in (False, True):
            ours, theirs, ratio = measured(name, train, rounds)
            mode = "training" if train else "inference"
            print(f"{name:10} {mode:10} {1e3 * ours:9.2f} {1e3 * theirs:10.2f} {ratio:7.3f}")


if __name__ == "__main__":
    main()
