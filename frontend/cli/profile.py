"""`mxc profile`: where the time of a run goes, and how near its kernels are to what the machine can do."""
from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mxc.cli import machine
from mxc.cli.bench import add_threads_argument
from mxc.cli.clients import measure
from mxc.cli.inputs import add_input_arguments, read_inputs
from mxc.cli.model import add_model_arguments, parse_shapes, positive, progress
from mxc.cli.output_files import check_ending
from mxc.cli.runnable import MADE_UP, Bound, Stored, open_model
from mxc.cli.tables import Table, kernel_words, print_facts, print_json, print_table, print_text
from mxc.compiler.plan import layers_text
from mxc.compiler.system import env

DESCRIPTION = """Run a model for inference, measure each kernel, and print a table by time: the operators in a kernel,
the shape of what it makes, how often it runs, its time in a run, its share, GFLOP/s of a product, GB/s of what it reads
and writes, how near that is to the machine's limits, and the layers of the model that it comes from. The limits,
float32 multiply-adds, and copying from memory to memory, are measured too. What finds its data in a cache is faster
than copying. Kernels are measured one by one, so their sum may be more than a run takes. Parameters are made up where
there is no file of them."""
EXAMPLES = """
  mxc profile net-symbol.json --shape data=1,3,224,224
  mxc profile net-symbol.json --shape data=1,3,224,224 --threads 1 --top 10
  mxc profile net-symbol.json --shape data=1,3,224,224 --by layer
  mxc profile net-symbol.json --shape data=1,3,224,224 --trace trace.json"""

KERNEL, LAYER = "kernel", "layer"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `mxc profile`."""
    add_model_arguments(parser)
    add_input_arguments(parser, "random")
    parser.add_argument("--iterations", type=positive, default=10, metavar="N",
                        help="runs, of which each kernel's least time counts (default 10)")
    add_threads_argument(parser)
    parser.add_argument("--by", choices=(KERNEL, LAYER), default=KERNEL,
                        help="a line for each kernel on arrays of one shape (default), or for each launch, with its "
                        "layers of the model first")
    parser.add_argument("--top", type=positive, metavar="N", help="print only the N kernels that take longest")
    parser.add_argument("--trace", metavar="FILE.json",
                        help="write the runs as a Chrome trace too, for chrome://tracing or ui.perfetto.dev")


class Call(NamedTuple):
    """A step of a run, and its layers. moved: the bytes that it reads and writes."""

    step: Any
    layers: list[str]
    moved: int
    nanoseconds: int


@dataclass
class Row:
    """A kernel on arrays of the same shapes. calls: in a run. us: of all of them. flops, moved: of all of them; moved:
    the bytes that they read and write. layers: the model's nodes that each call comes from."""

    phase: str
    operators: str
    shape: tuple[int, ...]
    host: bool
    calls: int = 0
    us: float = 0.0
    flops: int = 0
    moved: int = 0
    layers: list[list[str]] = field(default_factory=list)

    @property
    def gflops(self) -> float:
        """10^9 operations of its product a second; 0: it has none."""
        return self.flops / self.us / 1e3

    @property
    def gbytes(self) -> float:
        """10^9 bytes read and written a second."""
        return self.moved / self.us / 1e3


def run(options: argparse.Namespace) -> int:
    """Measure, print the table, write the trace."""
    check_ending("--trace", options.trace, ".json")
    if options.threads:
        env.set("MXC_NUM_THREADS", str(options.threads))
    facts = machine.facts()
    shapes = parse_shapes(options.shape)
    given = read_inputs(options)
    with traced(options.trace) as trace, progress(f"profiling {options.model}"):
        model = open_model(options, shapes, given, "random", needs_values=False)
        model.run()
        report = measured(options.model, model, facts, options.iterations, options.by == LAYER, trace)
    if options.json:
        print_json(report)
    else:
        show(report, options)
    return 0


def measured(path: str, model: Bound | Stored, facts: dict[str, Any], iterations: int, by_layer: bool = False,
             trace: AbstractContextManager[object] | None = None) -> dict[str, Any]:
    """The times of a model's kernels, as plain data. path: of the model. facts: of the machine. by_layer: a row for
    each launch. trace: is around the runs of which each kernel is measured."""
    from mxc.runtime import machine_peaks, profiler

    whole = min(measure(model.run, iterations, 0))
    least: dict[int, Call] = {}  # by the step

    def watch(step: Any, layers: list[str], moved: int, start: int, end: int) -> None:
        known = least.get(id(step))
        if known is None or end - start < known.nanoseconds:
            least[id(step)] = Call(step, layers, moved, end - start)

    first = machine_peaks.measure()
    with trace or nullcontext(), profiler.watching_kernels(watch):
        measure(model.run, iterations, 0)
    most = first.best(machine_peaks.measure())
    rows = table(list(least.values()), model.plan.buffers, by_layer)
    total = sum(row.us for row in rows)
    return {"model": path, "parameters": model.parameters, "machine": facts,
            "limits": {"gflops": round(most.gflops, 2), "gbytes": round(most.gbytes, 2), "threads": most.threads},
            "run_us": round(whole * 1e3, 2), "kernels_us": round(total, 2),
            "kernels": [as_data(row, total, most) for row in rows], "advice": machine.advice(facts)}


@contextmanager
def traced(path: str | None) -> Iterator[AbstractContextManager[object]]:
    """What records its block into the file `path`, if any. Raises FileAccessError at once when it cannot be written."""
    from mxc.runtime import profiler
    from mxc.runtime.whole_file import check_replacing

    @contextmanager
    def recording() -> Iterator[None]:
        profiler.set_running(True)
        try:
            yield
        finally:
            profiler.dump(finished=True)

    if path is None:
        yield nullcontext()
        return
    check_replacing(path)
    before = profiler.settings()
    profiler.configure(profiler.Settings(filename=path, continuous_dump=False))
    try:
        yield recording()
    finally:
        profiler.configure(before)


def table(calls: list[Call], buffers: Any, by_layer: bool = False) -> list[Row]:
    """The rows of a run's calls, those that take longest first. by_layer: a row for each call."""
    rows: dict[tuple, Row] = {}
    for number, (step, layers, moved, nanoseconds) in enumerate(calls):
        made = step.writes or step.buffers[-1:]
        shape = buffers[made[0]].shape if made else ()
        key = (number,) if by_layer else (step.phase, step.label, shape, step.flops, moved)
        row = rows.setdefault(key, Row(step.phase, step.label, shape, step.host is not None))
        row.calls += 1
        row.us += nanoseconds / 1e3
        row.flops += step.flops
        row.moved += moved
        row.layers.append(layers)
    return sorted(rows.values(), key=lambda row: -row.us)


def as_data(row: Row, total: float, most: Any) -> dict[str, Any]:
    """A row as plain data. layers: those of each call, in the order of the plan. of_multiply_adds, of_copying: its
    rates as parts of the limits."""
    return {"phase": row.phase, "layers": row.layers, "operators": row.operators, "shape": list(row.shape),
            "host": row.host, "calls": row.calls, "us": round(row.us, 2), "share": round(row.us / total, 4),
            "gflops": round(row.gflops, 2), "gbytes": round(row.gbytes, 2),
            "of_multiply_adds": round(row.gflops / most.gflops, 4), "of_copying": round(row.gbytes / most.gbytes, 4)}


def facts_of(report: dict[str, Any]) -> dict[str, str]:
    """What a report says of the run as a whole."""
    limits = report["limits"]
    return {"limits": f"{limits['gflops']:,.1f} GFLOP/s of multiply-adds, {limits['gbytes']:,.1f} GB/s of copying",
            "a run": f"{report['run_us'] / 1e3:,.3f} ms; its kernels one by one {report['kernels_us'] / 1e3:,.3f} ms"}


def table_of(rows: list[dict[str, Any]], by_layer: bool = False) -> Table:
    """A table of kernels."""
    columns = {"layer" if by_layer else "kernel": layers_of if by_layer else named, "makes": shape_of,
               "calls": lambda row: str(row["calls"]), "us": lambda row: f"{row['us']:,.1f}",
               "share": lambda row: f"{row['share'] * 100:.1f} %",
               "GFLOP/s": lambda row: f"{row['gflops']:.1f}" if row["gflops"] else "",
               "GB/s": lambda row: f"{row['gbytes']:.1f}", "of limit": nearest_limit,
               "kernel" if by_layer else "layers": named if by_layer else layers_of}
    if by_layer:
        del columns["calls"]
    return Table(tuple(columns), [[text(row) for text in columns.values()] for row in rows],
                 [i for i, name in enumerate(columns) if name in ("calls", "us", "share", "GFLOP/s", "GB/s")])


def show(report: dict[str, Any], options: argparse.Namespace) -> None:
    """Print the report for people."""
    note = " (made-up parameters)" if report["parameters"] == MADE_UP else ""
    print_facts({"model": report["model"] + note, "machine": machine.text(report["machine"])} | facts_of(report))
    print()
    rows = report["kernels"][:options.top]
    print_table(*table_of(rows, options.by == LAYER))
    if len(rows) < len(report["kernels"]):
        print(f"and {len(report['kernels']) - len(rows)} more")
    for line in report["advice"]:
        print_text(f"note: {line}")
    if options.trace:
        print(f"trace: {options.trace}")


def shape_of(row: dict[str, Any]) -> str:
    """The shape of what a kernel makes."""
    from mxc.visualization.table import shape_text

    return shape_text(row["shape"])


def layers_of(row: dict[str, Any]) -> str:
    """The layers of a row's first call, and how many further calls there are."""
    first, *others = row["layers"]
    return layers_text(first) + (f", and {len(others)} more" if others else "")


def nearest_limit(row: dict[str, Any]) -> str:
    """The limit that a kernel is nearer to. Copying is none for one that finds its data in a cache."""
    product, copy = row["of_multiply_adds"], row["of_copying"]
    if product >= copy or (copy > 1 and product):
        return f"{product * 100:.0f} % multiply-add"
    return f"{copy * 100:.0f} % copy" if copy <= 1 else "in cache"


def named(row: dict[str, Any]) -> str:
    """A kernel's operators; what Python runs says so."""
    words = kernel_words(row["operators"])
    return f"{words} (Python)" if row["host"] else words
