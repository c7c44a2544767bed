"""Samples per second that a DataLoader gives: mxc and MXNet, and how many times as many mxc does.

    python bench/loader.py [--mxnet PYTHON] [--rounds N] [--cases WORD ...]

Both run the same program, in processes of their own, by turns; a number is the best pass over the samples of all rounds
by the wall clock, as worker processes take part. A sample is a picture of 3 x 64 x 64 bytes that a function of
NumPy's turns and scales, and a label; a batch has 64.
"""
from __future__ import annotations

from harness.programs import answer, arguments

# A program for mxc and MXNet alike: `mx` is the module, `case` says who loads.
PROGRAM = """
import importlib, json, time
import numpy as np
data = importlib.import_module(mx.__name__ + ".gluon.data")
pictures = np.random.RandomState(0).randint(0, 256, (1280, 64, 64, 3)).astype("uint8")
labels = np.arange(len(pictures)).astype("float32")

def prepared(picture, label):
    return picture[::-1].transpose(2, 0, 1).astype("float32") / 255, label

samples = data.ArrayDataset(pictures, labels).transform(prepared)
loader = data.DataLoader(samples, 64, **{
    "caller": {}, "processes": {"num_workers": 2}, "threads": {"num_workers": 2, "thread_pool": True}}[case])
best = 0.0
for _ in range(8):
    begin, count = time.perf_counter(), 0
    for x, y in loader:
        count += len(x)
    mx.nd.waitall()
    best = max(best, count / (time.perf_counter() - begin))
print(json.dumps(best))
"""
CASES = ("caller", "processes", "threads")


def main() -> None:
    args = arguments(__doc__, CASES, [1])
    theirs = "mxnet" in args.peers
    print(f"{'':12}{'mxc /s':>12}{'MXNet':>12}{'x':>7}")
    for case in args.cases:
        best = dict.fromkeys(args.peers, 0.0)
        for _ in range(args.rounds):
            for peer, python in args.peers.items():
                best[peer] = max(best[peer], answer(python, peer, PROGRAM, args.threads[0], case=case))
        other = f"{best['mxnet']:12.0f}{best['mxc'] / best['mxnet']:7.2f}" if theirs else ""
        print(f"{case:12}{best['mxc']:12.0f}{other}", flush=True)


if __name__ == "__main__":
    main()
