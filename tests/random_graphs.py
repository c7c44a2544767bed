"""Random graphs over the whole table of operators, as many as asked for: what is wrong is printed, with its graph.

    python tests/random_graphs.py --count 10000 --seed 0

Each is compiled and run, fused, and by its kernels' definitions fused and unfused, and compared with the references of
its operators (test_random_lowering.py, which draws 300 in each run of the tests). A graph whose results depend on the
last digits, or are not finite, is left out and not counted.
"""
from __future__ import annotations

import argparse
import itertools
import sys
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from graph_strategy import Sample, samples
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import UnsatisfiedAssumption
from test_random_lowering import check

from mxc.compiler.targets.cpu.target import cpu_target

AT_ONCE = 50  # graphs of one seed


@dataclass
class Tally:
    """What came of the graphs so far. drawn: how often each operator was in one."""

    done: int = 0
    left_out: int = 0
    wrong: int = 0
    drawn: Counter[str] = field(default_factory=Counter)

    def one(self, sample: Sample, title: str) -> None:
        try:
            check(sample, cpu_target())
        except UnsatisfiedAssumption:
            self.left_out += 1
            return
        except Exception:
            self.wrong += 1
            print(f"{title}:\n{traceback.format_exc()}", flush=True)
        self.done += 1
        self.drawn.update({node.op.name for node in sample.graph.nodes if node.op is not None})


def draw(tally: Tally, number: int) -> None:
    """The graphs of a seed."""
    @seed(number)
    @settings(max_examples=AT_ONCE, deadline=None, database=None, suppress_health_check=list(HealthCheck),
              phases=(Phase.generate,))
    @given(samples(largest=20))
    def each(sample: Sample) -> None:
        tally.one(sample, f"seed {number}")

    each()


def run(count: int, first: int) -> int:
    """How many of `count` graphs were wrong; prints them, and how often each operator was drawn."""
    tally, began = Tally(), time.monotonic()
    for number in itertools.count(first):
        if tally.done >= count:
            break
        draw(tally, number)
        print(f"{tally.done} graphs, {tally.wrong} wrong, {tally.left_out} left out, {time.monotonic() - began:.0f} s",
              flush=True)
    print(f"{len(tally.drawn)} operators were drawn; the rarest: {tally.drawn.most_common()[:-6:-1]}")
    return tally.wrong


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10000, help="graphs (default: 10000)")
    parser.add_argument("--seed", type=int, default=0, help="of the first ones; each is of 50 graphs")
    asked = parser.parse_args(arguments)
    return 1 if run(asked.count, asked.seed) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
