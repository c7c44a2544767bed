"""How many times as fast operators are as MXNet's, one by one, by CPU time with one thread.

    python bench/operators.py [--mxnet PYTHON] [--quick] [--rounds N] [--families NAME ...] [--least RATIO]

Each operator is a graph of its own (cases/operators.py, with sizes as in networks), bound by both: `forward` is
inference, `train` a forward and a backward run. Two processes that stay measure in turns, some 20 ms each, so what else
the machine does meets both; a ratio is the median of those of the rounds. The sums of what comes out are compared. csr
products are of the family `storage`, against SciPy too; bench/sparse.py has more of them. --least: print last what is
slower than so many times MXNet's speed.
"""
from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from dataclasses import asdict
from typing import Any

from cases.operators import CASES, QUICK
from harness.environments import asked

CSR = {"storage: csr . dense": (8192, 100000, 40, 16), "storage: csr.T . dense": (8192, 100000, 40, 16)}
# What a process does for each line that it is given: it prints the milliseconds of a call, and a sum of the results.
WORKER = """
import json, sys, time, zlib
import numpy as np
calls = {}

def values(name, case):
    shape, whole = case["shapes"][name], case["whole"].get(name)
    low, high = case["spans"].get(name, (0, whole) if whole else (-1, 1))
    rng = np.random.RandomState(zlib.crc32(name.encode()))
    numbers = low + (high - low) * rng.random_sample(shape)
    if name == "rois":
        numbers[:, 0] = 0
        numbers[:, 1:3] *= 0.5
        numbers[:, 3:] = numbers[:, 1:3] + 0.4 * numbers[:, 3:]
        numbers *= 600
    if name == "anchor":
        numbers = np.concatenate([numbers[..., :2] * 0.7, numbers[..., :2] * 0.7 + 0.05 + 0.2 * numbers[..., 2:]], -1)
    if name == "A" and "trsm" in case["op"]:
        numbers = np.tril(numbers) / shape[-1] + np.eye(shape[-1])
    return np.floor(numbers) if whole else numbers

def operator(name):
    for space in ("contrib", "linalg", "random", "image", "sparse"):
        if name.startswith("_" + space + "_"):
            found = getattr(getattr(mx.sym, space), name[len(space) + 2:], None)
            if found is not None:
                return found
    return getattr(mx.sym, name, None) or getattr(mx.sym._internal, name)

def bound(case, train):
    variables = {name: mx.sym.Variable(name) for name in case["shapes"]}
    attrs = {k: tuple(v) if isinstance(v, list) else v for k, v in case["attrs"].items()}
    made = operator(case["op"])
    made = made(*variables.values(), **attrs) if case["listed"] else made(**variables, **attrs)
    if not variables:
        run = made.bind(mx.cpu(), {})
        return lambda: run.forward(is_train=False), lambda: run.outputs
    dtypes = {name: case["dtypes"].get(name, "float32") for name in variables}
    requests = {name: "write" if train and name not in case["fixed"] else "null" for name in made.list_arguments()}
    run = made.simple_bind(mx.cpu(), grad_req=requests, type_dict=dtypes,
                           **{name: tuple(shape) for name, shape in case["shapes"].items()})
    for name in variables:
        run.arg_dict[name][:] = mx.nd.array(values(name, case), dtype=dtypes[name])
    for name, array in run.aux_dict.items():
        array[:] = 1 if "var" in name else 0
    if not train:
        return lambda: run.forward(is_train=False), lambda: run.outputs
    outputs = run.forward(is_train=True)
    rng = np.random.RandomState(1)
    heads = [mx.nd.array(rng.uniform(0.5, 1, out.shape), dtype=out.dtype) for out in outputs]
    def step():
        run.forward(is_train=True)
        run.backward(heads)
    return step, lambda: [run.outputs[0], *(g for g in run.grad_dict.values() if g is not None)]

def product(shape, transposed):
    rows, columns, count, width = shape
    rng = np.random.RandomState(0)
    numbers = np.sort(rng.randint(0, columns, (rows, count)), 1)
    kept = np.ones(numbers.shape, bool)
    kept[:, 1:] = numbers[:, 1:] != numbers[:, :-1]
    starts = np.append(0, np.cumsum(kept.sum(1)))
    data = rng.rand(starts[-1]).astype("float32")
    other = rng.rand(rows if transposed else columns, width).astype("float32")
    if mx.__name__ == "scipy.sparse":
        x = mx.csr_matrix((data, numbers[kept], starts), shape=(rows, columns))
        x = x.T if transposed else x
        found = []
        def call():
            found[:] = [x @ other]
        return call, lambda: found
    x, other = mx.nd.sparse.csr_matrix((data, numbers[kept], starts), shape=(rows, columns)), mx.nd.array(other)
    found = []
    def call():
        found[:] = [mx.nd.dot(x, other, transpose_a=transposed)]
        found[0].wait_to_read()
    return call, lambda: found

def measured(call, results):
    wait = getattr(getattr(mx, "nd", None), "waitall", lambda: None)
    call()
    wait()
    rounds, found = 1, []
    while len(found) < 3:
        begin = time.process_time()
        for _ in range(rounds):
            call()
            wait()
        took = time.process_time() - begin
        if took < 0.02:
            rounds *= 2
        else:
            found.append(took / rounds * 1e3)
    total = 0.0
    for array in results():
        array = array.asnumpy() if hasattr(array, "asnumpy") else np.asarray(array)
        total += float(np.abs(array.astype("float64")).sum())
    return min(found), total

for line in sys.stdin:
    asked = json.loads(line)
    key = asked["name"], asked["train"]
    try:
        if key not in calls:
            calls.clear()
            calls[key] = (product(asked["csr"], ".T" in asked["name"]) if asked["csr"]
                          else bound(asked["case"], asked["train"]))
        said = measured(*calls[key])
    except Exception as error:
        said = str(error).strip().splitlines()[-1][:160] if str(error) else repr(error)
    print(json.dumps(said), flush=True)
"""


class Worker:
    """A process that measures."""

    def __init__(self, python: str, module: str):
        self.command = [python, "-c", f"import {module} as mx\n{WORKER}"]
        self.process = self.started()

    def started(self) -> subprocess.Popen[str]:
        settings = {"MXC_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MXNET_SUBGRAPH_VERBOSE": "0"}
        return subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                text=True, env={**os.environ, **settings})

    def ask(self, **asked: Any) -> Any:
        """[milliseconds, a sum of the results], or a text that says what went wrong."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        self.process = self.started()
        return "its process ended"


def compared(workers: dict[str, Worker], name: str, train: bool, rounds: int) -> tuple[dict[str, list[float]], str]:
    """The milliseconds of each round by peer, and what is to be said of the results."""
    case, csr = CASES.get(name), CSR.get(name)
    times: dict[str, list[float]] = defaultdict(list)
    sums: dict[str, float] = {}
    for _ in range(rounds):
        for peer, worker in workers.items():
            said = worker.ask(name=name, train=train, case=None if case is None else asdict(case), csr=csr)
            if isinstance(said, str):
                return {}, f"{peer}: {said}"
            times[peer].append(said[0])
            sums[peer] = said[1]
    is_drawn = case is not None and case.drawn
    differ = [peer for peer, total in sums.items()
              if not is_drawn and not math.isclose(total, sums["mxc"], rel_tol=1e-3)]
    return times, "".join(f"  {peer}'s sum is {sums[peer]:g}, mxc's {sums['mxc']:g}" for peer in differ)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mxnet", metavar="PYTHON", help="has MXNet 1.9.1 (default: the peers' environment)")
    parser.add_argument("--quick", action="store_true", help="some operators, in two rounds")
    parser.add_argument("--rounds", type=int, default=5)
    families = sorted({name.split(":")[0] for name in (*CASES, *CSR)})
    parser.add_argument("--families", nargs="+", choices=families, default=families, metavar="NAME")
    parser.add_argument("--least", type=float, default=0.9)
    args = parser.parse_args()
    python = args.mxnet or asked("mxnet")
    if python is None:
        print("bench/operators.py compares with MXNet: name a Python that has it with --mxnet")
        return
    pythons = {"mxc": sys.executable, "mxnet": python}
    if importlib.util.find_spec("scipy"):
        pythons["scipy.sparse"] = sys.executable
    workers = {peer: Worker(where, peer) for peer, where in pythons.items()}
    both = {peer: workers[peer] for peer in ("mxc", "mxnet")}
    print(f"{'':52}{'mxc ms':>10}{'MXNet ms':>10}{'x':>7}")
    ratios: dict[str, list[float]] = defaultdict(list)
    slow = []
    for name in (*CASES, *CSR):
        family, own = name.split(": ")
        if family not in args.families or (args.quick and own not in QUICK and name not in CSR):
            continue
        for train in (False, True) if name in CASES and CASES[name].trains else (False,):
            label = f"{name}, {'train' if train else 'forward'}"
            times, remark = compared(both if name in CASES else workers, name, train, 2 if args.quick else args.rounds)
            if not times:
                print(f"{label:52}  {remark}", flush=True)
                continue
            ratio = statistics.median(b / a for a, b in zip(times["mxc"], times["mxnet"], strict=True))
            ratios[family].append(ratio)
            if ratio < args.least:
                slow.append((ratio, label))
            more = f"  {statistics.median(times['scipy.sparse']) / statistics.median(times['mxc']):.2f} of SciPy's" if (
                "scipy.sparse" in times) else ""
            print(f"{label:52}{min(times['mxc']):10.3f}{min(times['mxnet']):10.3f}{ratio:7.2f}{more}{remark}",
                  flush=True)
    for family, found in ratios.items():
        mean = math.exp(sum(map(math.log, found)) / len(found))
        print(f"{family}: {mean:.2f} times as fast as MXNet (least {min(found):.2f}, of {len(found)})")
    for ratio, label in sorted(slow):
        print(f"below {args.least}: {label} {ratio:.2f}")


if __name__ == "__main__":
    main()
