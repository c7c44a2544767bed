"""How far a model's outputs are from what the reference interpreter computes in float64.

    python bench/accuracy.py FOLDER [NAME ...]

FOLDER holds models as examples/check_models.py takes them, with the same values. Of each output the largest
|a - b| / max |b|, and of those the largest: as compiled by default, with MXC_STRICT=1, and of the outputs that MXNet
recorded, where the folder has them whole. Of detectors the heads are compared, from which boxes are chosen: what is
chosen may change with the last bit. Limits (docs/design.md): 1e-4, and 1e-5 strict.
"""
from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from cases import saved

import mxc as mx
from mxc.compiler.passes.infer import infer
from mxc.compiler.targets.reference import interpreter

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

from check_models import gives_detections, recipe, stored_values

SETTINGS = ("0", "1")  # of MXC_STRICT


def distance(outputs: list[np.ndarray], exact: list[np.ndarray]) -> float:
    """The largest difference relative to the largest value, over all outputs."""
    return max(float(np.abs(a.astype("float64") - b).max() / max(np.abs(b).max(), 1e-300))
               for a, b in zip(outputs, exact, strict=True))


def values_of(symbol: Any, case: dict, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The value of every argument and auxiliary state by name, those that are not given by the recipe."""
    arguments, _, states = symbol.infer_shape(**{n: tuple(s) for n, s in case["shapes"].items()})
    names = [*zip(symbol.list_arguments(), arguments, strict=True),
             *zip(symbol.list_auxiliary_states(), states, strict=True)]
    return {name: given[name] if name in given else recipe(name, shape) for name, shape in names}


def in_float64(symbol: mx.sym.Symbol) -> mx.sym.Symbol:
    """The symbol with float64 where it names float32 itself, as for the first states of an LSTM."""
    model = json.loads(symbol.tojson())
    for node in model["nodes"]:
        if node.get("attrs", {}).get("dtype") == "float32":
            node["attrs"]["dtype"] = "float64"
    return mx.sym.load_json(json.dumps(model))


def measure(folder: Path, case: dict) -> tuple[list[float], float | None]:
    """The distances by default and strict, and that of MXNet's outputs where they are there whole."""
    file = folder / case["symbol"]
    symbol = mx.sym.load(str(file))
    detects = gives_detections(symbol)
    symbol = saved.heads(file) if detects else symbol
    given, recorded = stored_values(folder, case)
    values = values_of(symbol, case, given)
    exact_values = {name: value.astype("float64") for name, value in values.items()}
    graph = infer(in_float64(symbol).graph, {n: v.shape for n, v in values.items()}, dict.fromkeys(values, "float64"))
    computed = interpreter.run(graph, exact_values, exact_values)
    exact = [computed[entry] for entry in graph.outputs]
    found = []
    for setting in SETTINGS:
        os.environ["MXC_STRICT"] = setting
        executor = symbol.simple_bind(mx.cpu(), grad_req="null", **{n: v.shape for n, v in values.items()})
        for name, array in {**executor.arg_dict, **executor.aux_dict}.items():
            array[:] = values[name]
        found.append(distance([o.asnumpy() for o in executor.forward(is_train=False)], exact))
    whole = not detects and not any(key.endswith("/rows") for key in recorded)
    return found, distance([recorded[f"out/{i}"] for i in range(len(exact))], exact) if whole else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    cases = json.loads((options.folder / "cases.json").read_text())
    print(f"{'model':28}{'default':>10}{'strict':>10}{'MXNet':>10}{'seconds':>9}")
    for name in options.names or cases:
        start = time.perf_counter()
        try:
            (default, strict), theirs = measure(options.folder, cases[name])
        except mx.MXNetError as error:  # a graph that says float32 itself
            print(f"{name:28}{'-':>10}{'-':>10}{'-':>10}  {str(error).splitlines()[0]}", flush=True)
            continue
        print(f"{name:28}{default:>10.1e}{strict:>10.1e}{'-' if theirs is None else f'{theirs:.1e}':>10}"
              f"{time.perf_counter() - start:>9.0f}", flush=True)


if __name__ == "__main__":
    main()
