"""`mxc bench`: how long a run takes."""
from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from mxc.cli import machine, memory
from mxc.cli.inputs import add_input_arguments, read_inputs
from mxc.cli.model import UsageError, add_model_arguments, checked, is_number, parse_shapes, positive, progress
from mxc.cli.runnable import MADE_UP, open_model
from mxc.cli.tables import print_facts, print_json, print_text
from mxc.compiler.error import ModelFileError
from mxc.compiler.system import env
from mxc.compiler.system.input_files import content

DESCRIPTION = """Measure how long one run of a model takes, for inference: the least time, percentiles and the mean, in
milliseconds, and how much memory it takes: parameters as they were given, what is prepared of them, the arena between
kernels, what of all this runs hold, and the whole process. Parameters are made up where there is no file of them: times
do not depend on them. With --compare, say how the least time, which other programs disturb least, stands to that of an
earlier --json."""
EXAMPLES = """
  mxc bench net-symbol.json --shape data=1,3,224,224
  mxc bench net-symbol.json --shape data=1,3,224,224 --threads 1 --seconds 10 --json > old.json
  mxc bench net-symbol.json --shape data=1,3,224,224 --threads 1 --compare old.json --fail-if-slower 5%"""
LEAST = 5  # runs that are measured at least, however long they take
PERCENTILES = (50, 90, 99)
MOST_REPORT = 16 << 20  # bytes of a report that --compare reads at most


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `mxc bench`."""
    add_model_arguments(parser)
    add_input_arguments(parser, "random")
    parser.add_argument("--warm-up", type=count, default=3, metavar="N", help="runs that are not measured (default 3)")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--iterations", type=positive, metavar="N", help="measure N runs")
    length.add_argument("--seconds", type=seconds, default=3.0, metavar="S",
                        help=f"measure runs for S seconds, {LEAST} runs at least (default 3)")
    add_threads_argument(parser)
    parser.add_argument("--compare", metavar="OLD.json", help="compare with what --json printed earlier")
    parser.add_argument("--fail-if-slower", type=percent, metavar="P%",
                        help="with --compare: exit code 1 when the least time is more than P %% longer")


def add_threads_argument(parser: argparse.ArgumentParser) -> None:
    """The option --threads."""
    parser.add_argument("--threads", type=positive, metavar="N",
                        help="threads that run the model (default: MXC_NUM_THREADS, or the CPUs)")


def count(text: str) -> int:
    """An option's number of at least 0."""
    return int(checked(text, text.isdecimal(), "a whole number of at least 0"))


def seconds(text: str) -> float:
    """An option's number above 0."""
    return float(checked(text, is_number(text, 1e-9, 1e6), "a number of seconds above 0 and below a million"))


def percent(text: str) -> float:
    """A number of per cent: `5%` or `5`."""
    number = text.removesuffix("%")
    return float(checked(number, is_number(number, 0, 1e6), "a number of per cent from 0 on, as 5%"))


def run(options: argparse.Namespace) -> int:
    """Measure, print, compare; 1 when --fail-if-slower says so."""
    if options.fail_if_slower is not None and options.compare is None:
        raise UsageError("--fail-if-slower: than what? give --compare OLD.json with it")
    old = None if options.compare is None else read_report(options.compare)
    if options.threads:
        env.set("MXC_NUM_THREADS", str(options.threads))
    facts = machine.facts()  # before: the load is not this program's own
    shapes = parse_shapes(options.shape)
    given = read_inputs(options.input, shapes)
    with progress(f"compiling {options.model}"):
        model = open_model(options, shapes, given, "random", needs_values=False)
        model.run()
    report: dict[str, Any] = {
        "model": options.model, "inputs": {name: {"shape": list(shape), "dtype": dtype}
                                           for name, (shape, dtype) in model.inputs.items()},
        "parameters": model.parameters, "machine": facts}
    if old is not None and report["inputs"] != old["inputs"]:
        raise UsageError(f"--compare {options.compare}: it has other inputs: {inputs_text(old)}; this is "
                         f"{inputs_text(report)}")
    with progress(f"measuring {options.model}"):
        for _ in range(options.warm_up):
            model.run()
        times = measure(model.run, options.iterations, options.seconds)
    held = model.plan.memory(model.sizes, env.num_threads())
    report |= {"iterations": len(times), "milliseconds": statistics(times),
               "memory": {**held, "process_bytes": memory.of_process()}}
    report["advice"] = machine.advice(facts, report["milliseconds"]["p50"] / report["milliseconds"]["min"])
    code = 0
    if old is not None:
        report["comparison"] = compared(report, old, options.compare)
        limit = options.fail_if_slower
        code = int(limit is not None and report["comparison"]["slower_percent"] > limit)
    if options.json:
        print_json(report)
    else:
        show(report, options, code)
    return code


def measure(work: Callable[[], None], iterations: int | None, limit: float) -> list[float]:
    """Milliseconds of each run: of so many, or of as many as `limit` seconds have room for."""
    times: list[float] = []
    start = time.perf_counter()
    while len(times) < (iterations or LEAST) or (not iterations and time.perf_counter() - start < limit):
        before = time.perf_counter()
        work()
        times.append((time.perf_counter() - before) * 1e3)
    return times


def statistics(times: Sequence[float]) -> dict[str, float]:
    """min, the percentiles and the mean."""
    import numpy as np

    found = {"min": min(times)} | {f"p{p}": float(np.percentile(times, p)) for p in PERCENTILES}
    return {name: round(value, 5) for name, value in (found | {"mean": sum(times) / len(times)}).items()}


def read_report(path: str) -> dict[str, Any]:
    """What `--json` printed into a file. Raises ModelFileError when it is something else."""
    try:
        report = json.loads(content(path, MOST_REPORT))
        inputs_text(report)
        if report["milliseconds"]["min"] > 0 and isinstance(report["model"], str) and {**report["machine"]}:
            return dict(report)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise ModelFileError(path, "expected what `mxc bench --json` prints")


def compared(report: dict[str, Any], old: dict[str, Any], path: str) -> dict[str, Any]:
    """How the least time stands to the old one, and what differs besides."""
    now, before = ({"model": each["model"], **each["machine"]} for each in (report, old))
    differs = [name for name in ("model", "cpu", "cpus", "threads") if now[name] != before.get(name)]
    ratio = report["milliseconds"]["min"] / old["milliseconds"]["min"]
    return {"file": path, "old_min": old["milliseconds"]["min"], "slower_percent": round((ratio - 1) * 100, 2),
            "differs": {name: [before.get(name), now[name]] for name in differs}}


def inputs_text(report: dict[str, Any]) -> str:
    """The inputs as `NAME dtype SHAPE`."""
    return ", ".join(f"{name} {each['dtype']} {'x'.join(map(str, each['shape']))}"
                     for name, each in report["inputs"].items())


def show(report: dict[str, Any], options: argparse.Namespace, code: int) -> None:
    """Print a report for people."""
    times, parameters = report["milliseconds"], report["parameters"]
    print_facts({"model": report["model"] + (" (made-up parameters)" if parameters == MADE_UP else ""),
                 "inputs": inputs_text(report), "machine": machine.text(report["machine"]),
                 "memory": memory.text(report["memory"]),
                 "runs": f"{report['iterations']}, after {options.warm_up} to warm up"}
                | {name: f"{value:.3f} ms" for name, value in times.items()}
                | {"rate": f"{1e3 / times['p50']:,.1f} runs a second"})
    for line in report["advice"]:
        print_text(f"note: {line}")
    if (comparison := report.get("comparison")) is not None:
        for name, (before, now) in comparison["differs"].items():
            print(f"note: {name} was {before}, is {now}")
        change = comparison["slower_percent"]
        print(f"min {abs(change):.1f} % {'slower' if change > 0 else 'faster'} than {comparison['file']} "
              f"({comparison['old_min']:.3f} ms)")
        if code:
            print(f"slower by more than {options.fail_if_slower:g} %")
