"""How long starts take: importing mxc, its help, compiling ResNet-50 cold, and the first result of what is compiled.

    python bench/startup.py [--peers onnxruntime,torch] [--threads N] [--rounds N] [--python PEER=PYTHON ...]
                            [--json FILE]

Every figure is of fresh processes, pinned to the same CPUs, which take turns; printed are the minimum and the median.
Imports and help: the whole process, less one that does nothing. A first result: from the end of importing NumPy, less
one run of the network: importing the library, reading the saved network, whatever it prepares. Peers read what they
save: MXNet its symbol and parameters, onnxruntime and OpenVINO an ONNX file, torch.compile the arrays and its cache of
compiled code. Bytecode of everything is written before.
"""
from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from cases import vision
from cases.registry import Entry
from harness import environments
from harness.measure import difference
from harness.worker import LIMIT, confine, cpus, environment

import mxc as mx

FIRST = Path(__file__).parent / "peers" / "first.py"
PEERS = ("mxc", "mxnet", "onnxruntime", "openvino", "torch.compile", "torch")
SHAPE = (1, 3, 224, 224)
IMPORTS = {"import numpy": ["-c", "import numpy"], "import mxc": ["-c", "import mxc"],
           "import mxc and numpy": ["-c", "import numpy, mxc"], "mxc --help": ["-m", "mxc", "--help"]}


class Bench:
    """folder: what the peers read. pythons: of those that are there."""

    def __init__(self, folder: Path, threads: int, pythons: dict[str, str]):
        self.folder, self.pythons, self.chosen = folder, pythons, cpus(threads)
        self.variables = {**environment(threads), "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
                          "MXC_CACHE_DIR": str(self.private("kernels")),
                          "TORCHINDUCTOR_CACHE_DIR": str(self.private("inductor"))}
        self.variables.pop("PYTHONDONTWRITEBYTECODE", None)

    def private(self, name: str) -> Path:
        (self.folder / name).mkdir(mode=0o700, exist_ok=True)
        return self.folder / name

    def process(self, python: str, arguments: list[str]) -> tuple[float, str]:
        """Seconds of a process, and what it printed. Raises RuntimeError when it failed."""
        begun = time.perf_counter()
        done = subprocess.run([python, *arguments], capture_output=True, text=True, env=self.variables, timeout=LIMIT,
                              preexec_fn=lambda: confine(self.chosen))
        seconds = time.perf_counter() - begun
        if done.returncode:
            raise RuntimeError(f"{' '.join(arguments)}: {done.stderr.strip()[-400:]}")
        return seconds, done.stdout

    def prepare(self) -> dict[str, float]:
        """Write what the peers read; seconds of a cold compilation by each that has one."""
        symbol = vision.resnet50()
        case = Entry("resnet50", "networks", lambda: symbol, {"data": SHAPE}).case()
        case.save(self.folder / "case.json")
        arrays = case.arrays()
        x = arrays.pop("data")
        np.save(self.folder / "x.npy", x)
        np.savez(self.folder / "values.npz", **arrays)
        symbol.save(str(self.folder / "net-symbol.json"))
        mx.nd.save(str(self.folder / "net-0000.params"), {
            f"{'aux' if name in case.aux else 'arg'}:{name}": mx.nd.array(value) for name, value in arrays.items()})
        shape = ",".join(map(str, SHAPE))
        compiling = ["-m", "mxc", "compile", str(self.folder / "net-symbol.json"), "--shape", f"data={shape}"]
        cold = {"mxc compile": self.process(sys.executable, compiling)[0]}
        self.process(sys.executable, [*compiling, "-o", str(self.folder / "net.mxc")])
        onnx = self.pythons.get("onnxruntime") or self.pythons.get("openvino")
        if onnx:
            self.process(onnx, [str(FIRST), "onnx", str(self.folder)])
        for peer in list(self.pythons):
            begun = time.perf_counter()
            try:
                self.first(peer)  # writes bytecode, and torch its compiled code
            except RuntimeError as error:
                print(f"skipped {peer}: {error}", flush=True)
                del self.pythons[peer]
                continue
            if peer == "torch.compile":
                cold["torch.compile"] = time.perf_counter() - begun
        return cold

    def first(self, peer: str) -> dict[str, Any]:
        return json.loads(self.process(self.pythons[peer], [str(FIRST), peer, str(self.folder)])[1].splitlines()[-1])


def show(name: str, times: list[float], note: str = "") -> None:
    print(f"{name:34}{min(times) * 1e3:>10.1f}{statistics.median(times) * 1e3:>10.1f}   {note}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default=os.environ.get("BENCH_PEERS", ""), help="comma-separated; default: all")
    parser.add_argument("--threads", type=int, default=1, help="default: 1")
    parser.add_argument("--rounds", type=int, default=7, help="default: 7")
    parser.add_argument("--python", action="append", default=[], metavar="PEER=PYTHON")
    parser.add_argument("--json", type=Path, help="default: startup.json in the benchmark's cache folder")
    options = parser.parse_args()
    given = dict(pair.split("=", 1) for pair in options.python)
    wanted = options.peers.replace(",", " ").split() or PEERS
    pythons = {}
    for peer in ("mxc", *(p for p in PEERS[1:] if p in wanted)):
        try:
            pythons[peer] = given.get(peer) or environments.python(peer)
        except environments.Unavailable as reason:
            print(f"skipped {peer}: {reason}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        results = run(Bench(Path(folder), options.threads, pythons), options.rounds)
    target = options.json or environments.home() / "startup.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(results))
    print(f"written: {target}")


def run(bench: Bench, rounds: int) -> dict[str, Any]:
    """Measure and print; the times in seconds."""
    imports = dict.fromkeys(IMPORTS, sys.executable)
    commands = dict(IMPORTS)
    if "mxnet" in bench.pythons:
        imports["import mxnet"], commands["import mxnet"] = bench.pythons["mxnet"], ["-c", "import mxnet"]
    times: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, python in imports.items():
            seconds = bench.process(python, commands[name])[0] - bench.process(python, ["-c", ""])[0]
            if turn:  # the first wrote bytecode
                times[name].append(seconds)
    print(f"{'milliseconds':34}{'minimum':>10}{'median':>10}   load {os.getloadavg()[0]:.1f}")
    for name, each in times.items():
        note = f"{(min(each) - min(times['import numpy'])) * 1e3:+.0f} of numpy, goal +40" if "mxc" in name else ""
        show(name, each, note)
    cold = bench.prepare()
    for name, seconds in cold.items():
        show(f"ResNet-50 cold, {name}", [seconds], "goal 3000" if name == "mxc compile" else "")
    starts: dict[str, list[dict[str, Any]]] = {peer: [] for peer in bench.pythons}
    for _ in range(rounds):
        for peer in bench.pythons:
            starts[peer].append(bench.first(peer))
    ours = starts["mxc"][0]["outputs"]
    for peer, found in starts.items():
        note = "goal 150, aim 60" if peer == "mxc" else difference(ours, found[0]["outputs"])
        show(f"ResNet-50 first result, {peer}", [each["first"] - each["network"] for each in found],
             f"a run then {min(each['network'] for each in found) * 1e3:.1f} {note}")
    return {"imports": times, "cold": cold, "first": starts}


if __name__ == "__main__":
    main()
