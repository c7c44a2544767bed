"""Memory of processes that run a network once: how much of them is in memory, as multiples of its parameters.

    python bench/resident.py FOLDER [--before PACKAGES] [--rounds N] [NAME ...]

FOLDER holds models as examples/check_models.py takes them. Every figure is of a fresh process after its first run, with
made-up parameters from a file, in MiB: all of the process that is in memory (libraries that are mapped too), and behind
it how often that is the parameters.

import:    a process that imported mxc and NumPy: what there is before any model
symbol:    `mxc bench NAME-symbol.json`, with its kernels in the cache
compiled:  the same, which compiles them first
program:   a program that binds the symbol with simple_bind, and so keeps the arrays of the parameters
artifact:  a program that loads the artifact by mxc.load
command:   `mxc bench NAME.mxc`
file:      the artifact's bytes, as a multiple of the parameters'

--before: a folder that has another version's package `mxc`, such as a checkout's build/*: programs of both run in
turns, and the CPU time of a run of each, and their ratio, are printed, the least of N rounds (default 4), with one
thread.
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

import numpy as np

import mxc as mx

RESIDENT = """
import os
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
"""
IMPORT = f"{RESIDENT}\nimport numpy, mxc\nprint(resident())"
LOAD = f"""{RESIDENT}
import sys, numpy as np, mxc
model = mxc.load(sys.argv[1])
(shapes,) = model.input_shapes
model.predict(**{{name: np.zeros(shape, "float32") for name, shape in shapes.items()}})
print(resident())
"""
BIND = f"""{RESIDENT}
import json, sys, time, mxc as mx
symbol, params, shapes, seconds = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), float(sys.argv[4])
executor = mx.sym.load(symbol).simple_bind(mx.cpu(), grad_req="null", **{{n: tuple(s) for n, s in shapes.items()}})
arguments, states = {{}}, {{}}
for key, array in mx.nd.load(params).items():
    (arguments if key.startswith("arg:") else states)[key[4:]] = array
executor.copy_params_from(arguments, states)
del arguments, states, array
mx.nd.waitall()
mx.cpu().empty_cache()
def run():
    for output in executor.forward(is_train=False):
        output.wait_to_read()
run()
found, end, times = resident(), time.perf_counter() + seconds, []
while time.perf_counter() < end:
    begun = time.process_time()
    run()
    times.append(time.process_time() - begun)
print(json.dumps([found, min(times, default=0)]))
"""


class Model:
    """The files of a model, in a folder of its own."""

    def __init__(self, source: Path, case: dict[str, Any], folder: Path):
        self.shapes, self.folder = case["shapes"], folder
        self.symbol, self.params, self.artifact = (str(folder / f"net{end}") for end in ("-symbol.json", "-0000.params",
                                                                                         ".mxc"))
        symbol = mx.sym.load(str(source / case["symbol"]))
        symbol.save(self.symbol)
        shapes, _, states = symbol.infer_shape(**{n: tuple(s) for n, s in self.shapes.items()})
        sizes = {f"arg:{n}": s for n, s in zip(symbol.list_arguments(), shapes, strict=True) if n not in self.shapes}
        sizes |= {f"aux:{n}": s for n, s in zip(symbol.list_auxiliary_states(), states, strict=True)}
        rng = np.random.default_rng(0)
        arrays = {name: rng.uniform(0.01, 0.03, shape).astype("float32") for name, shape in sizes.items()}
        mx.nd.save(self.params, {name: mx.nd.array(array) for name, array in arrays.items()})
        self.nbytes = sum(4 * int(np.prod(s)) for s in sizes.values())
        self.words = [word for n, s in self.shapes.items() for word in ("--shape", f"{n}={','.join(map(str, s))}")]

    def variables(self, **more: str) -> dict[str, str]:
        (self.folder / "kernels").mkdir(mode=0o700, exist_ok=True)
        return {**os.environ, "MXC_CACHE_DIR": str(self.folder / "kernels"), **more}

    def command(self, *words: str, **variables: str) -> Any:
        """What a command prints as JSON."""
        done = subprocess.run([sys.executable, "-m", "mxc", *words, "--json"], env=self.variables(**variables),
                              capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def bench(self, *words: str) -> int:
        return int(self.command("bench", *words, "--warm-up", "0", "--iterations", "1")["memory"]["process_bytes"])

    def program(self, text: str, *words: str, **variables: str) -> Any:
        done = subprocess.run([sys.executable, "-c", text, *words], env=self.variables(**variables),
                              capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def bound(self, seconds: float = 0, **variables: str) -> tuple[int, float]:
        resident, least = self.program(BIND, self.symbol, self.params, json.dumps(self.shapes), str(seconds),
                                       **variables)
        return int(resident), float(least)


def figures(model: Model) -> dict[str, int]:
    found = {"compiled": model.bench(model.symbol, *model.words), "symbol": model.bench(model.symbol, *model.words)}
    found["program"] = model.bound()[0]
    model.command("compile", model.symbol, *model.words, "-o", model.artifact)
    found |= {"artifact": model.program(LOAD, model.artifact), "command": model.bench(model.artifact)}
    return {"import": model.program(IMPORT), **found, "file": Path(model.artifact).stat().st_size}


def speed(model: Model, before: str, rounds: int) -> str:
    """CPU time of a run now and before."""
    (model.folder / "before").mkdir(mode=0o700)
    ways = {"now": {}, "before": {"PYTHONPATH": before, "MXC_CACHE_DIR": str(model.folder / "before")}}
    least = dict.fromkeys(ways, float("inf"))
    for number in range(rounds):
        for way in list(ways)[::-1 if number % 2 else 1]:
            least[way] = min(least[way], model.bound(3, MXC_NUM_THREADS="1", **ways[way])[1])
    return (f"CPU time of a run {least['now'] * 1e3:.1f} ms, before {least['before'] * 1e3:.1f}: "
            f"{least['now'] / least['before']:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", default=["yolo3_mobilenet1.0_voc", "resnet50_v1"])
    parser.add_argument("--before", metavar="PACKAGES", type=os.path.abspath, help="of another version")
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_intermixed_args()
    cases = json.loads((options.folder / "cases.json").read_text())
    for name in options.names:
        with tempfile.TemporaryDirectory() as folder:
            model = Model(options.folder, cases[name], Path(folder))
            print(f"{name}: {model.nbytes / 2**20:.1f} MiB of parameters")
            for what, nbytes in figures(model).items():
                print(f"  {what:10}{nbytes / 2**20:>8.1f}{nbytes / model.nbytes:>8.2f}", flush=True)
            if options.before:
                print(f"  {speed(model, options.before, options.rounds)}", flush=True)


if __name__ == "__main__":
    main()
