"""The page that `mxc report` writes, out of what other commands report."""
from __future__ import annotations

import time
from typing import Any

import mxc
from mxc.cli import bench, differences, inspect, machine, overview, profile
from mxc.cli.runnable import MADE_UP, Bound
from mxc.cli.tables import Table
from mxc.cli.verify import Comparison
from mxc.runtime.array import dtype_name
from mxc.visualization import page, table
from mxc.visualization.graph import graph_svg
from mxc.visualization.histogram import histogram_svg
from mxc.visualization.memory import bytes_text, memory_svg
from mxc.visualization.page import Section

WARM_UP = 3  # runs before those that are timed
MARKS = ("p50", "p90", "p99")  # the times that the picture of them names
UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def layers_of(model: Bound) -> list[Any]:
    """The model's layers."""
    from mxc.compiler.graph.summary import layers

    graph = model.executor._core.graph
    return layers(graph, graph.facts.shape, model.inputs)


def highlights(data: dict[str, Any]) -> dict[str, str]:
    """What matters most, in a few words each. data: of the whole report."""
    totals, times = data["layers"]["totals"], data["benchmark"]
    verdicts = [each["verdict"] for each in data["verification"]["outputs"]]
    right = data["verification"]["right"]
    return {"median": f"{times['milliseconds']['p50']:,.3f} ms", "rate": f"{times['throughput']:,.1f} runs/s",
            "outputs": differences.WRONG if not right else max(verdicts, key=verdicts.count),
            "parameters": _short(totals["parameters"]), "FLOPs": _short(totals["flops"]),
            "kernels in a run": str(sum(row["calls"] for row in data["profile"]["kernels"])),
            "arena": bytes_text(data["memory"]["arena_bytes"])}


def page_of(data: dict[str, Any], model: Bound, comparison: Comparison, title: str) -> str:
    """The text of the HTML file. data: of the whole report. comparison: of which data has the plain form. title: the
    model and the shapes that were given."""
    sections = [Section("summary", "Summary", _summary(data, model)), Section("layers", "Layers", _layers(model)),
                Section("graph", "Graph", _graph(model, title)),
                Section("memory", "Memory", _memory(data, model, title)),
                Section("profile", "Profile", _profile(data["profile"])),
                Section("verification", "Verification", _verification(data, comparison)),
                Section("benchmark", "Benchmark", _benchmark(data["benchmark"]))]
    made = time.strftime("%Y-%m-%d %H:%M %z")
    return page.page(title, bench.inputs_text(data["benchmark"]), sections,
                     f"Made by mxc report, version {mxc.VERSION}, {made}")


def _table(found: Table, about: str, bars: dict[int, list[float]] | None = None) -> str:
    return page.table(found.columns, found.rows, found.right, bars, about)


def _notes(lines: list[str]) -> str:
    return "".join(page.note(line) for line in lines)


def _ends(data: dict[str, Any], model: Bound) -> str:
    """The inputs and outputs of what was run."""
    inputs = [(name, "input", each["dtype"], table.shape_text(each["shape"]))
              for name, each in data["benchmark"]["inputs"].items()]
    outputs = [(name, "output", dtype_name(array.dtype), table.shape_text(array.shape))
               for name, array in zip(model.outputs, model.executor.outputs, strict=True)]
    return page.table(("name", "", "dtype", "shape"), inputs + outputs, about="inputs and outputs")


def _summary(data: dict[str, Any], model: Bound) -> str:
    about, times = data["overview"], data["benchmark"]
    of_artifact = "plans" in about
    made_up = [] if times["parameters"] != MADE_UP else ["The parameters are made up, for there is no file of them."]
    what = overview.facts_of_artifact(about) if of_artifact else overview.facts_of_symbol(about)
    tested = {"machine": machine.text(times["machine"])} | {
        name: version or "not installed" for name, version in times["versions"].items()} | {
        f"SHA-256 of the {name}": digest for name, digest in times["digests"].items() if digest}
    plans = _table(overview.plans_of(about), "plans") if of_artifact else ""
    wrong = ["outputs"] * (not data["verification"]["right"])
    return (page.tiles(highlights(data), wrong) + _notes(made_up) + page.facts(what) + plans
            + "<h3>Measured with</h3>" + _ends(data, model) + page.facts(tested))


def _layers(model: Bound) -> str:
    found = layers_of(model)
    return (page.facts(dict(line.split(": ", 1) for line in table.totals_text(found)))
            + page.table(table.COLUMNS, table.rows_of(found), table.NUMBERS, about="layers"))


def _graph(model: Bound, title: str) -> str:
    arrays = {**model.executor.arg_dict, **model.executor.aux_dict}
    svg = graph_svg(model.symbol, {name: array.shape for name, array in arrays.items()}, title)
    return page.figure("graph-picture", svg, "The operators, with the shapes of what they make")


def _memory(data: dict[str, Any], model: Bound, title: str) -> str:
    found, compiled = data["memory"], model.executor.compiled()
    svg = memory_svg(compiled.plan, inspect.names_of(compiled), compiled.names, f"{title}, inference", found)
    return page.facts({
        "arena": f"{bytes_text(found['arena_bytes'])} for {found['buffers']} buffers in {found['steps']} steps; at "
                 f"most {bytes_text(found['live_bytes'])} are in use at once",
        "without a plan": bytes_text(found["unplanned_bytes"]),
        "prepared parameters": bytes_text(compiled.plan.prepared_bytes),
        "scratch": f"{bytes_text(compiled.plan.scratch_bytes)} a thread",
        "in memory": bytes_text(found["resident_bytes"]),
    }) + page.figure("memory-picture", svg, "Which buffer is alive when, and where in the arena")


def _profile(report: dict[str, Any]) -> str:
    found = profile.table_of(report["kernels"])
    shares = {found.columns.index("share"): [row["share"] for row in report["kernels"]]}
    return page.facts(profile.facts_of(report)) + _table(found, "kernels", shares)


def _verification(data: dict[str, Any], comparison: Comparison) -> str:
    parts = ["<p>Outputs as compiled, against those of the reference interpreter.</p>",
             _table(differences.table_of("output", comparison.outputs), "outputs"),
             _notes(differences.notes_of(comparison.outputs))]
    if comparison.first:
        of = f"; its kernel is of {comparison.part.layers}" if comparison.part else ""
        parts.append(page.note(f"The first that is wrong: {comparison.first}{of}", bad=True))
    elif not comparison.right:
        parts.append(page.note("mxc verify --nodes finds the first operator that is wrong", bad=True))
    if comparison.nodes:
        parts += ["<h3>Operators</h3>", _table(differences.table_of("node", comparison.nodes), "operators")]
    return "".join(parts)


def _benchmark(report: dict[str, Any]) -> str:
    times = [each for client in report["times"] for each in client]
    marks = {name: report["milliseconds"][name] for name in MARKS}
    return (page.facts(bench.facts_of(report, WARM_UP)) + _notes(report["advice"])
            + page.figure("times-picture", histogram_svg(times, marks, "ms"), "How many runs took how long"))


def _short(number: int) -> str:
    """`25.6 M`."""
    size, unit = next(((number / size, unit) for size, unit in UNITS if number >= size), (float(number), ""))
    return f"{size:.3g} {unit}".rstrip()
