"""Small graphs in one process: building, binding and running 200 different ones, beside MXNet.

    python bench/small.py [--count N] [--rounds N] [--mxnet PYTHON]

The graphs are as unit tests and scripts make them (peers/small_graphs.py); each is made, bound by simple_bind, and run
forward and backward once. Fresh processes take turns: mxc with an empty cache, mxc with what that left there, and
MXNet, each with one thread on one CPU. Each makes all graphs three times: `again` is the least of the second and third
time, with new symbols. Printed are seconds of CPU time, to which a busy machine adds little, the least of all rounds,
MXNet's / mxc's, and where results differ.
"""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness.environments import asked
from harness.measure import difference
from harness.worker import LIMIT, confine, cpus, environment

GRAPHS = Path(__file__).parent / "peers" / "small_graphs.py"
TIMES = 3  # that a process makes the graphs


def process(python: str, module: str, count: int, cache: str) -> dict[str, Any]:
    """What one process reports. Raises RuntimeError when it failed."""
    chosen = cpus(1)
    done = subprocess.run([python, str(GRAPHS), module, str(count), str(TIMES)], capture_output=True, text=True,
                          env={**environment(1), "MXC_CACHE_DIR": cache}, timeout=LIMIT,
                          preexec_fn=lambda: confine(chosen))
    if done.returncode:
        raise RuntimeError(f"{module}: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout.splitlines()[-1])


def least(reports: list[dict[str, Any]], turns: range) -> dict[str, float]:
    """The stages of the fastest of these turns of all reports, and their sum."""
    rounds = [report["rounds"][turn] for report in reports for turn in turns]
    best = min(rounds, key=lambda stages: sum(stages.values()))
    return {**best, "sum": sum(best.values())}


def show(name: str, own: dict[str, float], theirs: dict[str, float] | None) -> None:
    ratio = "" if theirs is None else f"   {theirs['sum'] / own['sum']:.2f}"
    print(f"{name:36}" + "".join(f"{own[stage]:>10.3f}" for stage in own) + ratio, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="graphs (default: 200)")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each (default: 3)")
    parser.add_argument("--mxnet", metavar="PYTHON", help="has MXNet 1.9.1 (default: the peers' environment)")
    options = parser.parse_args()
    mxnet = options.mxnet or asked("mxnet")
    reports: dict[str, list[dict[str, Any]]] = {"cold": [], "warm": [], "mxnet": []}
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as cache:
            os.chmod(cache, 0o700)
            for kind in ("cold", "warm"):
                reports[kind].append(process(sys.executable, "mxc", options.count, cache))
        if mxnet:
            reports["mxnet"].append(process(mxnet, "mxnet", options.count, ""))
    first = least(reports["mxnet"], range(1)) if mxnet else None
    again = least(reports["mxnet"], range(1, TIMES)) if mxnet else None
    print(f"{'seconds of CPU time':36}{'build':>10}{'bind':>10}{'forward':>10}{'backward':>10}{'sum':>10}   "
          f"{'MXNet / mxc' if mxnet else ''}   load {os.getloadavg()[0]:.1f}")
    if first is not None and again is not None:
        show("MXNet", first, None)
        show("MXNet, again", again, None)
    show("mxc, empty cache", least(reports["cold"], range(1)), first)
    show("mxc, new process, kernels in the cache", least(reports["warm"], range(1)), first)
    show("mxc, again", least(reports["warm"], range(1, TIMES)), again)
    ours = reports["warm"][0]["found"]
    for number, theirs in enumerate(reports["mxnet"][0]["found"] if mxnet else ()):
        if text := difference(ours[number], theirs):
            print(f"graph {number}: {text}")


if __name__ == "__main__":
    main()
