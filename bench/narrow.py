"""ResNet-50 in bfloat16 and float16 beside float32.

    python bench/narrow.py [--rounds N] [--threads N] [--batch N]

One process runs the network in each dtype in turns. Printed are milliseconds of CPU time of one run, the median of all
rounds, to which a busy machine adds little; ratios are medians of each round's. Which layers are narrow is what
`mxc compile --precision` chooses.
"""
from __future__ import annotations

import argparse
import os
import sys
import time
from statistics import median
from typing import Any

from harness.worker import confine, cpus, environment

DTYPES = ("float32", "float16", "bfloat16")


def executors(batch: int) -> dict[str, Any]:
    """The network of the same weights in each dtype, on the same random pictures."""
    import numpy as np
    from cases import vision

    import mxc as mx
    from mxc.precision import narrowed

    symbol, shape, random = vision.resnet50(), (batch, 3, 224, 224), np.random.default_rng(0)
    made: dict[str, Any] = {}
    for dtype in DTYPES:
        own = symbol if dtype == "float32" else mx.sym.Symbol(narrowed(symbol.graph, dtype)[0].outputs)
        made[dtype] = own.simple_bind(mx.cpu(), grad_req="null", data=shape)
    for name, array in (made["float32"].arg_dict | made["float32"].aux_dict).items():
        if name.endswith(("gamma", "var")):
            array[:] = 1
        elif not name.endswith("label"):
            array[:] = random.standard_normal(array.shape) * (0.05 if name.endswith("weight") else 0.1)
    for executor in made.values():
        executor.copy_params_from(made["float32"].arg_dict, made["float32"].aux_dict)
    return made


def taken(executor: Any) -> float:
    """Milliseconds of CPU time of a run."""
    begin = time.process_time()
    executor.forward(is_train=False)[0].wait_to_read()
    return (time.process_time() - begin) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30, help="turns of each (default: 30)")
    parser.add_argument("--threads", type=int, default=1, help="of the process (default: 1)")
    parser.add_argument("--batch", type=int, default=1, help="images of a run (default: 1)")
    options = parser.parse_args()
    if os.environ.get("MXC_NUM_THREADS") != str(options.threads):
        os.execve(sys.executable, [sys.executable, *sys.argv], environment(options.threads))
    confine(cpus(options.threads))
    made, times = executors(options.batch), {dtype: [] for dtype in DTYPES}  # type: dict, dict
    for executor in made.values():
        taken(executor)
    for _ in range(options.rounds):
        for dtype, executor in made.items():
            times[dtype].append(taken(executor))
    print(f"ResNet-50, batch {options.batch}, {options.threads} thread(s), load {os.getloadavg()[0]:.1f}")
    for dtype, found in times.items():
        ratio = median(a / b for a, b in zip(found, times["float32"], strict=True))
        print(f"{dtype:10}{median(found):>8.1f} ms{ratio:>8.2f} of float32")


if __name__ == "__main__":
    main()
