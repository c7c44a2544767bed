"""Milliseconds of operators on csr and row_sparse arrays: mxc, MXNet and SciPy, and how many times as fast mxc is.

    python bench/sparse.py [--mxnet PYTHON] [--rounds N] [--cases WORD ...] [--threads N ...]

All run the same program, in processes of their own, by turns; a number is the least of all rounds, of CPU time with one
thread and else by the wall clock. SciPy has one thread. `x . w` is a csr matrix times a dense one, `x.T . w` its
transposed, to a row_sparse array (to a dense one in SciPy), `x.T . w dense` to a dense one. `sgd` and `adam` update the
rows of a weight that a row_sparse gradient has. The sums of what comes out are compared.
"""
from __future__ import annotations

import importlib.util
import math
import sys

from harness.programs import answer, arguments

# For each case the rows and columns of the csr matrix, its elements in a row, and the columns of what it is multiplied
# with; of updates the weight's rows and columns, and the gradient's rows.
SHAPES = {
    "classifier": (1024, 1000000, 40, 1), "two classes": (8192, 100000, 40, 2), "factors": (2048, 100000, 39, 16),
    "bag of words": (256, 30000, 200, 128), "citations": (2708, 2708, 5, 16), "graph": (20000, 20000, 10, 64),
    "dense graph": (20000, 20000, 50, 128), "pruned layer": (1024, 1024, 102, 64),
}
UPDATES = {"embedding": (100000, 64, 2000), "large embedding": (1000000, 16, 20000),
           "factors of all": (20000, 16, 20000)}
# `mx` is the module, `case` the row of SHAPES or UPDATES.
PROGRAM = """
import json, time
import numpy as np
rng = np.random.RandomState(0)
clock = time.process_time if threads == 1 else time.perf_counter

def measured(call):
    call()
    rounds, found = 1, []
    while len(found) < 9:
        begin = clock()
        for _ in range(rounds):
            result = call()
        each = (clock() - begin) / rounds
        if each * rounds < 0.02:
            rounds *= 2
        else:
            found.append(each)
    return min(found) * 1e3, result

def waited(array):
    array.wait_to_read()
    return array

rows, columns, count, width = case + (0,) * (4 - len(case))
found = {}
if width:
    numbers = np.sort(rng.randint(0, columns, (rows, count)), 1)
    kept = np.ones(numbers.shape, bool)
    kept[:, 1:] = numbers[:, 1:] != numbers[:, :-1]
    starts = np.append(0, np.cumsum(kept.sum(1)))
    values = rng.rand(starts[-1]).astype("float32")
    right, left = rng.rand(columns, width).astype("float32"), rng.rand(rows, width).astype("float32")
    if mx.__name__ == "scipy.sparse":
        x = mx.csr_matrix((values, numbers[kept], starts), shape=(rows, columns))
        calls = {"x . w": lambda: x @ right, "x.T . w": lambda: x.T @ left, "x.T . w dense": lambda: x.T @ left}
    else:
        x = mx.nd.sparse.csr_matrix((values, numbers[kept], starts), shape=(rows, columns))
        right, left = mx.nd.array(right), mx.nd.array(left)
        calls = {"x . w": lambda: waited(mx.nd.dot(x, right)),
                 "x.T . w": lambda: waited(mx.nd.dot(x, left, transpose_a=True)),
                 "x.T . w dense": lambda: waited(mx.nd.dot(x, left, transpose_a=True, forward_stype="default"))}
    for name, call in calls.items():
        if len(values) * width < 2e7 or name != "x.T . w dense" or mx.__name__ != "mxnet":  # there it takes minutes
            took, result = measured(call)
            found[name] = took, float(getattr(result, "data", result).asnumpy().sum(dtype="float64")
                                      if hasattr(result, "asnumpy") else result.sum(dtype="float64"))
else:
    chosen = np.sort(rng.permutation(rows)[:count])
    grad = mx.nd.sparse.row_sparse_array((rng.rand(count, columns).astype("float32"), chosen), shape=(rows, columns))
    for name, more in (("sgd", {"momentum": 0.9}), ("adam", {})):
        weight = mx.nd.ones((rows, columns))
        updater = mx.optimizer.get_updater(mx.optimizer.create(name, learning_rate=1e-6, **more))
        call = lambda: (updater(0, grad, weight), weight.wait_to_read())
        took, _ = measured(call)
        found[name] = took, float(weight[:100].asnumpy().sum())
print(json.dumps(found))
"""


def main() -> None:
    args = arguments(__doc__, [*SHAPES, *UPDATES], [1])
    peers = dict(args.peers)
    if importlib.util.find_spec("scipy"):
        peers["scipy.sparse"] = sys.executable
    others = [name for name in ("mxnet", "scipy.sparse") if name in peers]
    print(f"{'':32}{'threads':>8}{'mxc ms':>10}" + "".join(f"{name.split('.')[0]:>10}{'x':>7}" for name in others))
    ratios: dict[tuple[str, str, int], list[float]] = {}
    for case in args.cases:
        for threads in args.threads:
            best: dict[str, dict[str, float]] = {name: {} for name in peers}
            sums: dict[str, dict[str, float]] = {}
            for _ in range(args.rounds):
                for peer, python in peers.items():
                    if peer == "scipy.sparse" and case in UPDATES:
                        continue
                    said = answer(python, peer, f"threads = {threads}{PROGRAM}", threads,
                                  case=SHAPES.get(case) or UPDATES[case])
                    for name, (took, total) in said.items():
                        best[peer][name] = min(best[peer].get(name, math.inf), took)
                        sums.setdefault(name, {})[peer] = total
            for name, mine in best["mxc"].items():
                line = f"{case:18}{name:14}{threads:8}{mine:10.3f}"
                for other in others:
                    theirs = best[other].get(name)
                    line += f"{theirs:10.3f}{theirs / mine:7.2f}" if theirs else f"{'':17}"
                    if theirs:
                        ratios.setdefault((name, other, threads), []).append(theirs / mine)
                        if case in SHAPES and not math.isclose(sums[name]["mxc"], sums[name][other], rel_tol=1e-4):
                            line += f"  {other}'s sum is {sums[name][other]:g}, not {sums[name]['mxc']:g}"
                print(line, flush=True)
    for (name, other, threads), found in ratios.items():
        mean = math.exp(sum(map(math.log, found)) / len(found))
        print(f"{name}, {threads} threads: {mean:.2f} times as fast as {other} (least {min(found):.2f})")


if __name__ == "__main__":
    main()
