"""What a GPU computes and how fast it is, in some minutes: a table, a verdict, and the figures as JSON.

    python bench/gpu.py [--minutes 8] [--parts NAME ...] [--models FOLDER] [--json FILE]

Parts, in this order: `checks` (tests/gpu_check.py: every kind of kernel against its definition, LeNet, ResNet-20,
random numbers, memory), `models` (saved networks against the outputs recorded with them), `training` (steps of LeNet
and ResNet-18), `loops` (fused chains, beside a copy of as many bytes), `products` and `convolutions` (mxc's kernel and
NVIDIA's library through mxc, each alone, where the extra `cuda` has it; torch takes the libraries too), `networks`
(ResNet-50 for 1 and 64 pictures, a BERT layer), `overlap` (copies beside computing, against both apart) and `sums` (of
gradients over all GPUs, where there are several, by NCCL). Each runs in a process of its own, which is ended at its
share of the time, so that one that hangs or breaks the device costs no other.

mxc is measured as it runs by itself, which takes a library where that is faster. The peer is torch, where this Python
has it, eager and compiled with CUDA graphs, without TF32: all compute in float32. All run by turns; a time is the
median of the rounds, a run ends when the device has done all. Another result than torch's, or than that of mxc's kernel
or of the library alone, by 1e-3 of the largest value (3e-2 for gradients of a deep network), as
`harness.measure.difference` says it, is wrong. Exit code 1: something was wrong or failed, or there is no GPU. With
NUMBA_ENABLE_CUDASIM=1 and MXC_SIMULATED_GPUS=1, or 2 for sums, it is rehearsed, with small cases and stand-ins for the
libraries.
"""
from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import queue
import signal
import statistics
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from harness.rows import ALONE, PEERS, REHEARSED, Check, Row, timed

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "tests"), str(HERE.parent / "examples")]  # whose modules the checks are
# The parts, and how much of the time each may take, of what is left when it begins.
SHARES = {"checks": 25, "models": 15, "training": 12, "loops": 6, "products": 7, "convolutions": 10, "networks": 25,
          "overlap": 5, "sums": 4}
GRACE = 10.0  # seconds that a part may be late by before its process is ended

def last_line(error: BaseException) -> str:
    """An error as one line."""
    return traceback.format_exception_only(error)[-1].strip().replace("\n", " ")[:300]


# -- the parts, in a process of their own


def correctness() -> Iterator[Check]:
    """tests/gpu_check.py's checks."""
    import gpu_check

    def row(name: str, run: Callable[[], None]) -> Row:
        start = time.perf_counter()
        run()
        return Row("checks", name, note=f"{time.perf_counter() - start:.1f} s with compilation")

    for name, run in gpu_check.checks(quick=REHEARSED):
        yield name, lambda name=name, run=run: row(name, run)


def saved(folder: Path) -> Iterator[Check]:
    """examples/check_models.py for every network of a folder, on the GPU; in a rehearsal for the smallest."""
    import check_models

    import mxc as mx

    def row(name: str, case: dict) -> Row:
        agrees = check_models.check(folder, name, case, mx.gpu(0))
        return Row("models", name, "ok" if agrees else "WRONG")

    file = folder / "cases.json"
    cases = json.loads(file.read_text()) if file.is_file() else {}
    for name, case in cases.items():
        if not REHEARSED or name == "mtcnn_det2":
            yield name, lambda name=name, case=case: row(name, case)


def entries(part: str) -> list[Any]:
    """The cases of a part: those of cases/registry.py that matter, or small ones for a rehearsal."""
    import networks
    from cases import others, registry

    known = {entry.name: entry for entry in registry.entries(Path())}
    if REHEARSED:
        make = registry.Entry
        steps = make("small lenet", "training", networks.lenet, {"data": (1, 1, 8, 8), "softmax_label": (1,)}, "step")
        small = make("softmax", "loops", others.softmax, {"rows": (3, 9)})
        product = make("sgemm 5x9x7", "products", others.sgemm, {"left": (5, 9), "right": (9, 7)})
        conv = replace(known["conv r50 1x1 64->64 56px b1"], name="convolution", shapes={"data": (1, 8, 3, 3)})
        return {"training": [steps], "loops": [small], "products": [product], "convolutions": [conv],
                "networks": [replace(product, name="network")]}[part]
    large = [replace(known["sgemm 2048x2048x2048"], name=f"sgemm {m}x{k}x{n}", shapes={"left": (m, k), "right": (k, n)})
             for m, k, n in ((4096, 4096, 4096), (8192, 8192, 8192))]
    names = {
        "training": ["lenet step", "resnet18 step"],
        "loops": ["chain", "gelu", "softmax", "layernorm", "chain small", "softmax small"],
        "products": ["sgemm 1024x1024x1024", "sgemm 128x768x3072", "sgemm 3136x576x64", "sgemm 1x4096x4096"],
        "convolutions": [name for name in known if name.startswith("conv") and name.endswith("b16")],
        "networks": ["resnet50 b1", "bert forward b1", "bert forward b8", "bert b8"],
    }[part]
    found = [known[name] for name in names]
    if part == "networks":
        found.insert(1, replace(known["resnet50 b1"], name="resnet50 b64", shapes={"data": (64, 3, 224, 224)}))
    return found + (large if part == "products" else [])


def torch_device() -> str | None:
    """Where torch runs; in a rehearsal on the CPU. None where this Python has none that could."""
    try:
        import torch
    except ImportError:
        return None
    if torch.cuda.is_available():
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        return "cuda"
    return "cpu" if REHEARSED else None


def compared(part: str, entry: Any) -> Row:
    """Run a case by mxc and by torch, compare what comes out, and time both by turns."""
    from harness.measure import difference
    from peers import symbolic
    from peers.graph import Unsupported

    case, row = entry.case(), Row(part, entry.name)
    run, fetch = symbolic.make("mxc", case, on_gpu=True)
    run()
    ours, calls, notes = fetch(), {"mxc": run}, list[str]()
    results = {}
    for name, way in ALONE.items() if part in ("products", "convolutions") else ():
        if (made := alone(case, way)) is not None:
            calls[name], results[name] = made
    where = torch_device()
    for peer in PEERS if where else ():
        from peers import torch_peer

        try:
            other, result = torch_peer.make(peer, case, where)
            other()
            results[peer] = result()
        except Unsupported as reason:
            notes.append(f"{peer}: {reason}")
            continue
        except Exception as error:
            notes.append(f"{peer} failed: {last_line(error)}")
            continue
        calls[peer] = other
    for peer, theirs in results.items():
        if text := difference(ours, theirs, entry.tolerance):
            row.verdict = "WRONG"
            notes.append(f"another result than {peer}: {text}")
    seconds = timed(calls)
    row.ms = seconds.pop("mxc") * 1e3
    row.peers = {peer: s * 1e3 for peer, s in seconds.items()}
    row.note = "; ".join([*rates(part, case, row.ms / 1e3), *notes])
    return row


def alone(case: Any, way: str) -> tuple[Callable[[], None], list[Any]] | None:
    """A case by mxc's kernels alone, or by NVIDIA's libraries wherever they can: what runs it, and its results. None
    where no library is taken."""
    from peers import symbolic

    from mxc.compiler.targets import kernel_target
    from mxc.compiler.targets.cuda.nvidia.choice import Libraries

    launcher: Any = kernel_target("gpu:0")
    launcher = launcher.launcher
    usual, launcher.libraries = launcher.libraries, Libraries(launcher.memory, way=way)
    try:
        run, fetch = symbolic.make("mxc", case, on_gpu=True)
        run()
        return (run, fetch()) if way == "never" or any(launcher.libraries.choices.values()) else None
    finally:
        launcher.libraries = usual


def rates(part: str, case: Any, seconds: float) -> list[str]:
    """What a time means: the bytes that must be moved, or multiply-adds, a second."""
    if part == "loops":
        moved = 4 * sum(math.prod(shape) for shape in [*case.shapes.values(), *case.heads])
        return [f"{moved / seconds / 1e9:,.0f} GB/s"]
    if part == "products":
        (m, k), (_, n) = case.shapes["left"], case.shapes["right"]
        return [f"{2 * m * k * n / seconds / 1e12:.2f} TFLOP/s"]
    if part == "networks" and "data" in case.shapes:
        return [f"{case.shapes['data'][0] / seconds:,.0f} a second"]
    return []


def copied() -> Row:
    """A copy of 256 MiB within the device: what loops are measured by."""
    import mxc as mx

    source = mx.nd.ones((9 if REHEARSED else 1 << 26,), ctx=mx.gpu(0))
    target = mx.nd.zeros(source.shape, ctx=mx.gpu(0))

    def run() -> None:
        source.copyto(target)
        mx.nd.waitall()

    seconds = timed({"copy": run})["copy"]
    if target[0].asscalar() != 1:
        return Row("loops", "a copy", "WRONG")
    return Row("loops", "a copy", ms=seconds * 1e3, note=f"{8 * source.size / seconds / 1e9:,.0f} GB/s")


def checks_of(part: str, models: Path) -> Iterator[Check]:
    """What a part does."""
    if part == "checks":
        yield from correctness()
    elif part == "models":
        yield from saved(models)
    elif part in ("overlap", "sums"):
        import gpu_streams

        yield from gpu_streams.overlapped() if part == "overlap" else gpu_streams.summed()
    else:
        if part == "loops":
            yield "a copy", copied
        for entry in entries(part):
            yield entry.name, lambda entry=entry: compared(part, entry)


def work(part: str, until: float, models: Path) -> None:
    """In a part's process: print the device, and before each row its name, then the row. until: seconds from now on,
    after which no row is begun."""
    end = time.monotonic() + until
    from mxc.compiler.targets import kernel_target

    if REHEARSED:
        from nvidia_stand_ins import CublasLt, Cudnn

        from mxc.compiler.targets.cuda.simulator import SimulatedGpu

        SimulatedGpu.libraries = {"nvmath.bindings.cublasLt": CublasLt(), "cudnn": Cudnn()}
    target: Any = kernel_target("gpu:0")
    device = target.launcher.memory.device
    tell("DEVICE", f"{device.name} ({device.arch}), {device.memory_info()[1] >> 20:,} MiB")
    for name, make in checks_of(part, models):
        if time.monotonic() > end:
            tell("ROW", asdict(Row(part, name, "not reached")))
            continue
        tell("BEGIN", name)
        try:
            row = make()
        except Exception as error:
            row = Row(part, name, "FAILED", note=last_line(error))
        tell("ROW", asdict(row))


def tell(word: str, what: Any) -> None:
    print(f"@{word} {json.dumps(what)}", flush=True)


# -- the process that starts them


class Part:
    """A part's process, whose rows are taken until it ends or is ended."""

    def __init__(self, name: str, seconds: float, models: Path):
        self.name, self.seconds, self.device, self.now = name, seconds, "", "the start"
        command = [sys.executable, __file__, "--work", name, "--until", str(seconds), "--models", str(models)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        start_new_session=True, env={"OMP_NUM_THREADS": "4", **os.environ})
        self.lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.errors: list[str] = []
        for stream, take in ((self.process.stdout, self.lines.put), (self.process.stderr, self.errors.append)):
            threading.Thread(target=self._read, args=(stream, take), daemon=True).start()

    def _read(self, stream: Any, take: Callable[[str], None]) -> None:
        for line in stream:
            take(line)
        if stream is self.process.stdout:
            self.lines.put(None)

    def rows(self) -> Iterator[Row]:
        """Its rows, as they come; at the end one of what it did not finish."""
        end = time.monotonic() + self.seconds + GRACE
        while True:
            try:
                line = self.lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                self.stop()
                yield Row(self.name, self.now, "FAILED", note=f"ended after {self.seconds + GRACE:.0f} s; the rest of "
                                                             "the part was not reached")
                return
            if line is None:
                break
            word, _, text = line.partition(" ")
            if word == "@DEVICE":
                self.device = json.loads(text)
            elif word == "@BEGIN":
                self.now = json.loads(text)
            elif word == "@ROW":
                self.now = "the end"
                yield Row(**json.loads(text))
        if code := self.process.wait():
            why = next((line.strip() for line in reversed(self.errors) if line.strip()), "")
            yield Row(self.name, self.now, "FAILED", note=f"the process ended with {code}: {why[:200]}")

    def stop(self) -> None:
        """End it, with whatever it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def verdict(rows: list[Row]) -> str:
    """The sentence under the table."""
    count = {name: sum(row.verdict == name for row in rows) for name in ("ok", "WRONG", "FAILED", "not reached")}
    said = ", ".join(f"{number} {name}" for name, number in count.items())
    for peer in PEERS:
        ratios = [row.peers[peer] / row.ms for row in rows if row.ms and peer in row.peers]
        if ratios:
            said += (f"; {statistics.geometric_mean(ratios):.2f} times as fast as {peer} "
                     f"(ahead in {sum(ratio >= 1 for ratio in ratios)} of {len(ratios)})")
    return said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=8, help="for all parts (default: 8)")
    parser.add_argument("--parts", nargs="+", choices=SHARES, default=list(SHARES), help="these alone")
    parser.add_argument("--models", type=Path, default=HERE.parents[1] / "shared" / "models",
                        help="a folder of saved networks, as examples/check_models.py takes it")
    parser.add_argument("--json", type=Path, help="write the rows there, after each part")
    parser.add_argument("--work", choices=SHARES, help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        work(asked.work, asked.until, asked.models)
        return 0
    from mxc.compiler.error import TargetError
    from mxc.compiler.targets.cuda import devices

    try:
        devices.require(0)
    except TargetError as error:
        print(error)
        return 1
    end, rows, device = time.monotonic() + 60 * asked.minutes, list[Row](), ""
    print(f"{'part':13}{'case':38}{'verdict':12}{'mxc ms':>10}" + "".join(
        f"{peer[:9]:>10}" for peer in (*ALONE, *PEERS)) + "  (others: their time / mxc's)", flush=True)
    for i, name in enumerate(asked.parts):
        share = SHARES[name] / sum(SHARES[each] for each in asked.parts[i:])
        part = Part(name, max(0.0, end - time.monotonic() - GRACE) * share, asked.models)
        try:
            for row in part.rows():
                rows.append(row)
                print(row.line(), flush=True)
        finally:
            part.stop()
        device = part.device or device
        if asked.json:
            asked.json.write_text(json.dumps({"device": device, "rows": [asdict(row) for row in rows]}, indent=1))
    print(f"{device}: {verdict(rows)}")
    return 1 if any(row.verdict in ("WRONG", "FAILED") for row in rows) or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
