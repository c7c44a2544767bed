"""Run the models of a folder and compare with the outputs recorded there.

    python examples/check_models.py FOLDER [NAME ...]

FOLDER holds `cases.json`: name -> {symbol, params or null, shapes, expected}. Values that the parameter file does not
hold are made by `recipe` below, but for inputs that the recorded file has as `in/NAME`; of an output it may have only
the rows that `out/NUMBER/rows` lists. Outputs agree when |a - b| <= 1e-4 |b| + 1e-5 max|b|. Detections (what
non-maximum suppression gives) agree when their scores do so in order, and 98 % of the rows match one with the same
class, a score within 1e-4 and an equal box: neighbours whose scores differ by rounding alone may change places. A
recurrent network may amplify rounding from step to step: outputs that do not agree are compared again, with as much
more allowed for each row as it changes, times 4, when the parameters are rounded otherwise, which the line then says.
One line for each model; exit code 1 when one does not agree.
"""
from __future__ import annotations

import json
import sys
import time
import zlib
from pathlib import Path

import numpy as np

import mxc as mx


def recipe(name: str, shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    """Deterministic values for the array of that name: the recipe by which the expected outputs were made."""
    rng = np.random.RandomState(zlib.crc32(name.encode()) & 0xFFFFFFFF)
    if name.endswith(("moving_var", "running_var")):
        value = rng.uniform(0.5, 1.5, shape)
    elif name.endswith(("moving_mean", "running_mean", "beta", "bias")):
        value = rng.uniform(-0.1, 0.1, shape)
    elif name.endswith("gamma"):
        value = rng.uniform(0.8, 1.2, shape)
    elif name.endswith("weight") and len(shape) > 1:
        value = rng.standard_normal(shape) * np.sqrt(1.6 / max(1, int(np.prod(shape[1:]))))
    elif name.endswith("label"):
        value = rng.randint(0, 10, shape)
    else:
        value = rng.uniform(-1, 1, shape)
    return np.asarray(value).astype(dtype)


def stored_values(folder: Path, case: dict) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """What a case's files hold: values of arrays by name, from the parameters and the recorded inputs, and all that was
    recorded. `recipe` makes the other arrays."""
    given = mx.nd.load(str(folder / case["params"])) if case["params"] else {}
    values = {key.split(":", 1)[-1]: array.asnumpy() for key, array in given.items()}
    with np.load(folder / case["expected"]) as expected:
        recorded = dict(expected)
    return values | {key[3:]: array for key, array in recorded.items() if key.startswith("in/")}, recorded


def error_of(output: np.ndarray, expected: np.ndarray, more: np.ndarray | float = 0.0) -> float:
    """The largest |a - b| as a multiple of what is allowed, and `more`: at most 1 is agreement."""
    if output.shape != expected.shape:
        return float("inf")
    allowed = 1e-4 * np.abs(expected) + 1e-5 * np.abs(expected).max() + more
    return float((np.abs(output.astype("float64") - expected) / np.maximum(allowed, 1e-30)).max())


def changed_by_rounding(executor: mx.executor.Executor, inputs: set[str]) -> list[np.ndarray]:
    """How much each row of each output changes when all arguments but the inputs change in their last bit or so."""
    before = [o.asnumpy() for o in executor.outputs]
    rng = np.random.default_rng(0)
    for key, array in executor.arg_dict.items():
        if key not in inputs:
            array[:] = array.asnumpy() * (1 + rng.choice([-6e-8, 6e-8], array.shape))
    after = [o.asnumpy() for o in executor.forward(is_train=False)]
    return [np.abs(a - b).max(-1, keepdims=True) for a, b in zip(after, before, strict=True)]


def gives_detections(symbol: mx.sym.Symbol) -> bool:
    """Whether every output is what non-maximum suppression gives, or columns of it: rows of class, score and box."""
    graph = json.loads(symbol.tojson())
    for position, *_ in graph["heads"]:
        node = graph["nodes"][position]
        while node["op"] == "slice_axis":
            node = graph["nodes"][node["inputs"][0][0]]
        if node["op"] not in ("_contrib_box_nms", "_contrib_MultiBoxDetection"):
            return False
    return True


def detection_error(outputs: list[np.ndarray], expected: list[np.ndarray]) -> float:
    """As `error_of` for rows of class, score and box, given whole or as columns; of rows 2 % may be without a match."""
    if [o.shape for o in outputs] != [e.shape for e in expected]:
        return float("inf")
    found, wanted = (np.concatenate(columns, -1).astype("float64") for columns in (outputs, expected))
    near = 1e-5 * np.abs(wanted[..., 2:]).max()
    missing = count = 0
    for rows, others in zip(found, wanted, strict=True):
        free = np.ones(len(rows), bool)
        for row in others[others[:, 0] >= 0]:
            same = free & (rows[:, 0] == row[0]) & (np.abs(rows[:, 1] - row[1]) <= 1e-4)
            same &= (np.abs(rows[:, 2:] - row[2:]) <= 1e-4 * np.abs(row[2:]) + near).all(1)
            matches = np.flatnonzero(same)
            free[matches[:1]] = False
            missing += not len(matches)
            count += 1
    return max(error_of(found[..., 1], wanted[..., 1]), missing / max(1, count) / 0.02)


def check(folder: Path, name: str, case: dict, context: mx.Context) -> bool:
    """Run one case and print its line; whether it agrees."""
    symbol = mx.sym.load(str(folder / case["symbol"]))
    given, recorded = stored_values(folder, case)
    shapes = {n: tuple(s) for n, s in case["shapes"].items()}
    executor = symbol.simple_bind(context, grad_req="null", **shapes)
    for group in (executor.arg_dict, executor.aux_dict):
        for key, array in group.items():
            array[:] = given[key] if key in given else recipe(key, array.shape)
    start = time.perf_counter()
    compiled = executor.compiled()
    compile_ms = (time.perf_counter() - start) * 1e3
    outputs = [o.asnumpy() for o in executor.forward(is_train=False)]
    times = []
    for _ in range(3):
        start = time.perf_counter()
        for output in executor.forward(is_train=False):
            output.wait_to_read()
        times.append(time.perf_counter() - start)
    wanted = [recorded[f"out/{i}"] for i in range(len(outputs))]
    rows = [recorded.get(f"out/{i}/rows", slice(None)) for i in range(len(outputs))]
    outputs = [o[chosen] for o, chosen in zip(outputs, rows, strict=True)]
    if gives_detections(symbol):
        worst = detection_error(outputs, wanted)
    else:
        worst = max(error_of(output, value) for output, value in zip(outputs, wanted, strict=True))
    rounding, first = "", worst
    if worst > 1 and not gives_detections(symbol):
        more = [4 * m[chosen] for m, chosen in zip(changed_by_rounding(executor, set(shapes)), rows, strict=True)]
        worst = max(map(error_of, outputs, wanted, more))
        rounding = f" ({first:.0f} without what rounding changes)"
    plan = compiled.plan
    host = [s.label for s in plan.steps if s.host is not None]
    print(f"{'ok  ' if worst <= 1 else 'FAIL'} {name:20} error {worst:5.2f} of allowed{rounding}; "
          f"{len(plan.steps_of('forward')):3} kernels; host steps: {', '.join(host) or 'none'}; "
          f"arena {plan.arena_bytes:>9,} bytes; compile {compile_ms:6.0f} ms; run {min(times) * 1e3:8.2f} ms",
          flush=True)
    return worst <= 1


def main(arguments: list[str]) -> int:
    if not arguments or {"-h", "--help"} & {*arguments}:
        print(__doc__)
        return 0 if arguments else 2
    folder = Path(arguments[0])
    if not (folder / "cases.json").is_file():
        print(f"{folder} holds no cases.json, which says what models there are", file=sys.stderr)
        return 2
    cases = json.loads((folder / "cases.json").read_text())
    unknown = [name for name in arguments[1:] if name not in cases]
    if unknown:
        print(f"{folder / 'cases.json'} has no case {', '.join(unknown)}; it has {', '.join(cases)}", file=sys.stderr)
        return 2
    results = []
    for name in arguments[1:] or cases:
        try:
            results.append(check(folder, name, cases[name], mx.cpu()))
        except mx.MXNetError as error:
            print(f"FAIL {name:20} {error}", flush=True)
            results.append(False)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
