"""Bytes of activations: the plan's arena, the largest live set, and what MXNet's `debug_str` says.

    python bench/memory.py FOLDER [--mxnet PYTHON] [NAME ...]

FOLDER holds models as examples/check_models.py takes them. Each is bound for inference and for training. `arena` is
what an executor allocates for values between kernels, with the threads' scratch; outputs, gradients and packed weights
are apart. Without MXNet the last column is left out.
"""
from __future__ import annotations

import argparse
import json
import re
import subprocess
from pathlib import Path

from harness.environments import asked

import mxc as mx
from mxc.compiler.system import env

ASK_MXNET = """
import sys, json, mxnet as mx
symbol, shapes, train = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3] == "1"
sym = mx.sym.load(symbol)
shapes = {k: tuple(v) for k, v in shapes.items()}
e = sym.simple_bind(mx.cpu(), grad_req="write" if train else "null", **shapes)
print(e.debug_str())
"""


def mxnet_bytes(python: str, symbol: Path, shapes: dict, train: bool) -> int | None:
    """What MXNet says it allocates, in bytes; None where it says nothing."""
    command = [python, "-c", ASK_MXNET, str(symbol), json.dumps(shapes), str(int(train))]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"Total (\d+) MB allocated", text)
    return int(found[1]) << 20 if found else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--mxnet", metavar="PYTHON", help="has MXNet 1.9.1 (default: the peers' environment)")
    options = parser.parse_intermixed_args()
    options.mxnet = options.mxnet or asked("mxnet")
    cases = json.loads((options.folder / "cases.json").read_text())
    print(f"{'model':22}{'mode':11}{'arena':>12}{'live set':>12}{'ratio':>7}{'unplanned':>13}{'outputs':>11}"
          f"{'gradients':>12}{'packed':>12}{'MXNet':>13}")
    for name in options.names or cases:
        case = cases[name]
        symbol = mx.sym.load(str(options.folder / case["symbol"]))
        for train in (False, True):
            executor = symbol.simple_bind(mx.cpu(), grad_req="write" if train else "null",
                                          **{n: tuple(s) for n, s in case["shapes"].items()})
            plan = executor.compiled(is_train=train).plan
            scratch = plan.scratch_bytes * env.num_threads()
            total, live = plan.arena_bytes + scratch, plan.live_bytes + scratch
            theirs = None
            if options.mxnet:
                theirs = mxnet_bytes(options.mxnet, options.folder / case["symbol"], case["shapes"], train)
            sums = {pool: sum(b.nbytes for b in plan.buffers if b.pool == pool) for pool in ("output", "gradient")}
            print(f"{name:22}{'training' if train else 'inference':11}{total:>12,}{live:>12,}"
                  f"{total / max(live, 1):>7.3f}{plan.unplanned_bytes:>13,}{sums['output']:>11,}"
                  f"{sums['gradient']:>12,}{plan.prepared_bytes:>12,}"
                  f"{f'{theirs:,}' if theirs is not None else '-':>13}", flush=True)


if __name__ == "__main__":
    main()
