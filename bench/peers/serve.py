"""One peer in a process of its own: reads a JSON request a line from stdin, answers on stdout.

    serve.py PEER                      the first answer is {"versions": {...}} or {"missing": REASON}
    {"do": "load", "case": FILE}       -> {"outputs": [[shape, largest, samples], ...], "seconds": to make and run it}
                                          or {"unsupported": REASON}
    {"do": "time", "runs": N}          -> {"seconds": of one of N runs, "anchor": of the anchor, before and behind}

    serve.py PEER --once FILE          the time of a process: ends after the case's first result
"""
from __future__ import annotations

import gc
import importlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path[0] = str(Path(__file__).parents[1])

from peers.graph import Case, Unsupported  # noqa: E402

MODULES = {"mxc": "symbolic", "mxnet": "symbolic", "torch": "torch_peer", "torch.compile": "torch_peer",
           "jax": "jax_peer", "onnxruntime": "onnx_peer", "openvino": "onnx_peer", "numpy": "numpy_peer",
           "numexpr": "numpy_peer"}
SAMPLES = 256
A, B = np.full(1 << 14, 1.5, np.float32), np.full(1 << 14, 0.5, np.float32)


def anchor() -> float:
    """Seconds of a fixed piece of work on one thread: how fast the machine is just now."""
    out = np.empty_like(A)
    best = 1.0
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(30):
            np.multiply(A, B, out=out)
            np.add(out, B, out=out)
        best = min(best, time.perf_counter() - start)
    return best


def sample(array: np.ndarray, ordered: bool) -> tuple[list[int], float, list[float]]:
    """(shape, largest absolute value, values spread over the array)."""
    flat = array.ravel() if ordered else np.sort(array.ravel())
    spread = flat[np.linspace(0, flat.size - 1, min(SAMPLES, flat.size)).astype(int)]
    return list(array.shape), float(np.abs(flat).max()), [float(x) for x in spread]


class Session:
    """The case that is loaded, and what is asked of it."""

    def __init__(self, make: Callable, peer: str):
        self.make, self.peer = make, peer
        self.run: Callable | None = None

    def load(self, case: str) -> dict:
        self.run = None
        gc.collect()
        start = time.perf_counter()
        what = Case.load(case)
        try:
            self.run, fetch = self.make(self.peer, what)
            self.run()
            arrays = fetch()
        except Unsupported as reason:
            self.run = None
            return {"unsupported": str(reason)}
        seconds = time.perf_counter() - start
        chosen = arrays if what.compare is None else [arrays[i] for i in what.compare]
        return {"outputs": [sample(np.asarray(a), what.ordered) for a in chosen], "seconds": seconds}

    def time(self, runs: int) -> dict:
        run = self.run
        assert run is not None, "nothing is loaded"
        run()  # the caches are another process's
        before = anchor()
        start = time.perf_counter()
        for _ in range(runs):
            run()
        seconds = (time.perf_counter() - start) / runs
        return {"seconds": seconds, "anchor": (before + anchor()) / 2}


def main(peer: str, once: str | None = None) -> None:
    answer = sys.stdout
    sys.stdout = sys.stderr  # what a library prints must not be taken for an answer

    def say(what: dict) -> None:
        print(json.dumps(what), file=answer, flush=True)

    try:
        module = importlib.import_module(f"peers.{MODULES[peer]}")
        versions = module.versions(peer)
    except ImportError as error:
        say({"missing": str(error)})
        return
    session = Session(module.make, peer)
    if once:
        say(session.load(once))
        return
    say({"versions": versions})
    for line in sys.stdin:
        request = json.loads(line)
        call = {"load": session.load, "time": session.time}[request.pop("do")]
        try:
            say(call(**request))
        except Exception as error:  # one case's failure is reported; the next may still run
            say({"failed": f"{type(error).__name__}: {error}"[:600]})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[3] if sys.argv[2:3] == ["--once"] else None)
