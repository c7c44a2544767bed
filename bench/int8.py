"""ResNet-50 over numbers of 8 bits beside float32, and beside onnxruntime's.

    python bench/int8.py [--rounds N] [--runs N] [--threads N] [--batch N]

Four processes have the same network with the same weights (peers/quantized.py) and take turns: in each round every one
runs it some times. Printed are milliseconds of CPU time of one run, the median of all rounds, to which a busy machine
adds little; ratios are medians of each round's. BENCH_PEERS=mxc leaves onnxruntime out.
"""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from harness.environments import asked
from harness.worker import confine, cpus, environment
from peers.graph import Case

PEER = Path(__file__).parent / "peers" / "quantized.py"
RATIOS = (("mxc", "mxc-int8"), ("onnxruntime", "onnxruntime-int8"), ("onnxruntime-int8", "mxc-int8"))


def network(batch: int) -> Case:
    """ResNet-50 v1 for so many images."""
    from cases import vision

    symbol = vision.resnet50()
    shapes = {"data": (batch, 3, 224, 224)}
    args, outs, aux = symbol.infer_shape(**shapes)
    return Case("resnet50", "forward", json.loads(symbol.tojson()),
                dict(zip(symbol.list_arguments(), args, strict=True)),
                dict(zip(symbol.list_auxiliary_states(), aux, strict=True)), ["data"], [], outs)


def start(kind: str, python: str, case: Path, threads: int) -> subprocess.Popen:
    chosen = cpus(threads)
    return subprocess.Popen([python, str(PEER), kind, str(case)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            text=True, env=environment(threads), preexec_fn=lambda: confine(chosen))


def answer(process: subprocess.Popen) -> list[str]:
    """The words of a process's next line. Raises RuntimeError where it has ended."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"{process.args} ended with {process.wait()}")
    return line.split()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="turns of each (default: 15)")
    parser.add_argument("--runs", type=int, default=3, help="runs of a turn (default: 3)")
    parser.add_argument("--threads", type=int, default=1, help="of each process (default: 1)")
    parser.add_argument("--batch", type=int, default=1, help="images of a run (default: 1)")
    options = parser.parse_args()
    other = asked("onnxruntime")
    kinds = {"mxc": sys.executable, "mxc-int8": sys.executable,
             **({"onnxruntime": other, "onnxruntime-int8": other} if other else {})}
    with tempfile.TemporaryDirectory() as folder:
        case = Path(folder) / "case.json"
        network(options.batch).save(case)
        processes, versions, times = {}, {}, {}  # type: dict, dict, dict
        for kind, python in kinds.items():
            processes[kind] = start(kind, python, case, options.threads)
            versions[kind] = answer(processes[kind])[0]
        for _ in range(options.rounds):
            for kind, process in processes.items():
                process.stdin.write(f"{options.runs}\n")
                process.stdin.flush()
                times.setdefault(kind, []).append(float(answer(process)[0]) * 1e3)
        for process in processes.values():
            process.stdin.close()
            process.wait()
    print(f"ResNet-50, batch {options.batch}, {options.threads} thread(s), load {os.getloadavg()[0]:.1f}")
    for kind, found in times.items():
        print(f"{kind:20}{versions[kind]:>12}{median(found):>10.1f} ms")
    for slow, fast in RATIOS:
        if slow in times and fast in times:
            print(f"{slow} / {fast}: {median(a / b for a, b in zip(times[slow], times[fast], strict=True)):.2f}")


if __name__ == "__main__":
    main()
