"""Kvstores of several processes: pushing and pulling ResNet-50's gradients, against MXNet's, and how it scales.

    python bench/dist.py                    # MB/s per worker with 1 and 2 workers, mxc and MXNet 1.9.1 by turns
    python bench/dist.py --trace out.json   # one worker trains: what is sent while backward still runs
    python bench/dist.py --simulate         # 256 workers by a model of network and servers: what saturates first

MB/s count what a worker pushes and what it pulls. MXNet's python is BENCH_MXNET, or the one that bench/peers makes.
"""
from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROUNDS, WARM = 8, 2


def resnet50() -> list[tuple[int, ...]]:
    """The shapes of ResNet-50's parameters, in the order of the network."""
    shapes: list[tuple[int, ...]] = [(64, 3, 7, 7), (64,), (64,)]
    before = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            out = 4 * width
            for shape in ((width, before, 1, 1), (width, width, 3, 3), (out, width, 1, 1)):
                shapes += [shape, shape[:1], shape[:1]]
            if block == 0:
                shapes += [(out, before, 1, 1), (out,), (out,)]
            before = out
    return [*shapes, (1000, 2048), (1000,)]


def worker(mx: Any) -> None:
    """What each worker does, in mxc and in MXNet: pushes and pulls all, ROUNDS times; prints the seconds of each."""
    store = mx.kv.create("dist_sync")
    values = [mx.nd.ones(shape) for shape in resnet50()]
    outs = [mx.nd.zeros(shape) for shape in resnet50()]
    for i, value in enumerate(values):
        store.init(i, value)
    times = []
    for _ in range(WARM + ROUNDS):
        start = time.perf_counter()
        for i, value in enumerate(values):
            store.push(i, value, priority=-i)
            store.pull(i, outs[i], priority=-i)
        mx.nd.waitall()
        times.append(time.perf_counter() - start)
    # MXNet's pull also writes to the array that was pushed before, so that its sums grow from round to round
    wanted = store.num_workers if mx.__name__ == "mxc" else store.num_workers ** (WARM + ROUNDS)
    wrong = [i for i, out in enumerate(outs) if not (out[:1].asnumpy() == wanted).all()]
    print("TIMES", json.dumps({"times": times[WARM:], "wrong": wrong}), flush=True)


def told(text: str) -> list[list[float]]:
    found = [json.loads(line.partition("TIMES ")[2]) for line in text.splitlines() if "TIMES " in line]
    if not found or any(each["wrong"] for each in found):
        raise SystemExit(f"no result, or a wrong one:\n{text[-3000:]}")
    return [each["times"] for each in found]


def ours(workers: int) -> list[list[float]]:
    command = [sys.executable, "-m", "mxc", "launch", "-n", str(workers), "-s", "1", "--store", "1500M", sys.executable,
               __file__, "--worker", "mxc"]
    return told(subprocess.run(command, capture_output=True, text=True, timeout=600).stdout)


def mxnets(workers: int, python: str) -> list[list[float]]:
    """MXNet's own transport, ps-lite: a scheduler, a server and workers on this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    variables = {**os.environ, "DMLC_PS_ROOT_URI": "127.0.0.1", "DMLC_PS_ROOT_PORT": str(port), "OMP_NUM_THREADS": "1",
                 "DMLC_NUM_WORKER": str(workers), "DMLC_NUM_SERVER": "1"}
    others = [subprocess.Popen([python, "-c", "import mxnet"], env={**variables, "DMLC_ROLE": role})
              for role in ("scheduler", "server")]
    try:
        running = [subprocess.Popen([python, __file__, "--worker", "mxnet"], env={**variables, "DMLC_ROLE": "worker"},
                                    stdout=subprocess.PIPE, text=True) for _ in range(workers)]
        return told("".join(each.communicate(timeout=600)[0] for each in running))
    finally:
        for each in others:
            each.kill()
            each.wait()


def compare(rounds: int) -> None:
    import math

    python = os.environ.get("BENCH_MXNET") or str(Path.home() / ".cache/mxnet-oracle/bin/python")
    megabytes = 2 * sum(math.prod(shape) for shape in resnet50()) * 4 / 1e6
    print(f"ResNet-50's gradients, {megabytes / 2:.1f} MB pushed and pulled; MB/s per worker, both directions")
    for workers in (1, 2):
        found: dict[str, list[float]] = {"mxc": [], "MXNet": []}
        for _ in range(rounds):
            found["mxc"] += [t for times in ours(workers) for t in times]
            found["MXNet"] += [t for times in mxnets(workers, python) for t in times]
        speed = {name: megabytes / statistics.median(times) for name, times in found.items()}
        print(f"{workers} workers: mxc {speed['mxc']:,.0f}, MXNet 1.9.1 (ps-lite) {speed['MXNet']:,.0f}: "
              f"{speed['mxc'] / speed['MXNet']:.2f} times", flush=True)


def traced() -> None:
    """What the worker of --trace does: trains ResNet-18 and prints when its pieces of work ran, in nanoseconds."""
    import mxc as mx
    from mxc.runtime import engine

    events: list[tuple[str, int, int]] = []
    net = mx.gluon.model_zoo.vision.resnet18_v1()
    net.initialize()
    net.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.001}, kvstore="dist_sync")
    loss_of = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    data, label = mx.nd.random.uniform(shape=(8, 3, 96, 96)), mx.nd.zeros((8,))
    for i in range(6):
        if i == 3:
            engine.observer = lambda *event: events.append(event)
        with mx.autograd.record():
            loss = loss_of(net(data), label)
        loss.backward()
        trainer.step(8)
        mx.nd.waitall()
    engine.observer = None
    print("TIMES", json.dumps({"times": events, "wrong": []}), flush=True)


def trace(path: str) -> None:
    """Write a trace of a worker, and print how much was sent while backward ran."""
    command = [sys.executable, "-m", "mxc", "launch", "-n", "1", "--store", "600M", sys.executable, __file__,
               "--worker", "trace"]
    (events,) = told(subprocess.run(command, capture_output=True, text=True, timeout=600).stdout)
    found: list[Any] = events
    backward = [(start, end) for name, start, end in found if "backward" in name]
    sent = [(int(name.split()[2]), start, end) for name, start, end in found if name.startswith("kvstore send")]
    during = sum(size for size, start, _ in sent if any(begin <= start < end for begin, end in backward))
    Path(path).write_text(json.dumps({"traceEvents": [
        {"name": name, "ph": "X", "ts": start / 1e3, "dur": (end - start) / 1e3, "pid": 0,
         "tid": "kvstore" if name.startswith("kvstore") else "engine"} for name, start, end in found]}))
    total = sum(size for size, *_ in sent)
    print(f"{during / 1e6:.1f} of {total / 1e6:.1f} MB were sent while backward ran ({during / total:.0%}), in "
          f"{len(sent)} messages of 3 steps; see {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each")
    parser.add_argument("--trace", metavar="FILE", help="write a trace for chrome://tracing of a worker's steps")
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--workers", type=int, default=256, help="--simulate: how many")
    parser.add_argument("--worker", choices=("mxc", "mxnet", "trace"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.workers < 1 or options.rounds < 1:
        parser.error("--workers and --rounds must be above 0")
    if options.worker in ("mxc", "mxnet"):
        worker(__import__(options.worker))
    elif options.worker == "trace":
        traced()
    elif options.trace:
        trace(options.trace)
    elif options.simulate:
        from dist_simulation import report

        report(resnet50(), options.workers)
    else:
        compare(options.rounds)


if __name__ == "__main__":
    main()
