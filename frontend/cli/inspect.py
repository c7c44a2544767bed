"""`mxc inspect`: a model's layers, and what the compiler makes of them."""
from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

from mxc.cli import memory
from mxc.cli.model import UsageError, add_model_arguments, is_artifact, parse_dtypes, parse_shapes, progress
from mxc.cli.output_files import check_ending, check_place, write_text
from mxc.cli.tables import on_terminal, print_json, print_table
from mxc.cli.unbound import Unbound, open_unbound
from mxc.compiler.error import nearest
from mxc.compiler.system import env

DESCRIPTION = """Print what a model's file holds: inputs and outputs with their shapes (guessed where they do not follow
from the parameters), operators and how many of each, and what mxc does not know; of an artifact its plans, sizes, the
CPU that it is for, and who made it. With --shape, print the layers: operator, output shape, parameters, floating-point
operations (a multiply-add is two), and what each reads. --plot draws them. With --groups, --plan, --memory or --diff,
show what the compiler makes of the model instead (for inference, or with --train for a training step), with --target
what its kernels take of a GPU, which need not be there. Nothing is bound or run: no arrays are made, whatever the
shapes."""
EXAMPLES = """
  mxc inspect net-symbol.json
  mxc inspect net.mxc
  mxc inspect net-symbol.json --shape data=1,3,224,224
  mxc inspect net-symbol.json --shape data=1,3,224,224 --plot net.svg
  mxc inspect net-symbol.json --shape data=1,3,224,224 --groups --plan
  mxc inspect net-symbol.json --shape data=1,3,224,224 --diff simplify
  mxc inspect net-symbol.json --shape data=1,3,224,224 --target cuda:sm_90
  mxc inspect net-symbol.json --shape data=8,3,224,224 --train --memory memory.svg"""
CONTEXT = 2  # lines around each change of --diff


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `mxc inspect`."""
    add_model_arguments(parser)
    parser.add_argument("--train", action="store_true",
                        help="of a training step, with the gradients of all parameters")
    parser.add_argument("--plot", metavar="FILE.svg",
                        help="draw the graph: operators and shapes, joined by arrows (- for standard output)")
    parser.add_argument("--groups", action="store_true", help="show the fusion groups, a line each")
    parser.add_argument("--plan", action="store_true",
                        help="show the plan: each kernel's launch, what it reads and writes, and the memory")
    parser.add_argument("--memory", metavar="FILE.svg",
                        help="draw the memory plan: which buffer is alive when, and where (- for standard output)")
    parser.add_argument("--target", metavar="cuda:sm_90",
                        help="show the kernels of a GPU: registers, shared memory, occupancy, and predicted times")
    parser.add_argument("--diff", metavar="PASS", help="show what one pass of the compiler changes in the graph")


def run(options: argparse.Namespace) -> int:
    """Print the overview, the layers, or what of --plot, --groups, --plan, --memory and --diff is asked for."""
    for option, path in (("--plot", options.plot), ("--memory", options.memory)):
        if path != "-":
            check_ending(option, path, ".svg")
            check_place(path)
    compiles = options.groups or options.plan or options.memory is not None
    if options.target is not None and not options.target.startswith("cuda:"):
        raise UsageError(f"--target {options.target}: expected cuda: and an architecture, as cuda:sm_90")
    if options.train and not compiles and options.diff is None and options.target is None:
        raise UsageError("--train: the layers are the same in training; give --groups, --plan, --memory, --diff or "
                         "--target with it")
    shows = compiles or options.target is not None or options.plot is not None or options.diff is not None
    if not (options.shape or options.dtype or shows):
        return overview(options)
    shapes = parse_shapes(options.shape)
    with progress(f"inspecting {options.model}"):
        model = open_unbound(options, shapes, parse_dtypes(options.dtype), options.train)
        compiled: Any = model.compiled(options.train) if compiles else None
    data: dict[str, Any] = {}
    parts: list[str] = []
    held = compiled.plan.memory(parameter_sizes(model, shapes), env.num_threads()) if compiles else {}
    if options.target is not None:
        from mxc.cli import device_kernels

        with progress(f"compiling {options.model} for {options.target}"):
            data["kernels"] = device_kernels.of_model(model, options.train, options.target)
        if not options.json:
            device_kernels.show(data["kernels"])
    if options.groups:
        data["groups"] = compiled.groups.splitlines()
        parts.append(f"-- groups\n{compiled.groups}")
    if options.plan:
        data["plan"] = json.loads(compiled.plan.to_json())
        data["layers"] = [step.layers(compiled.names) for step in compiled.plan.steps]
        has_hosts = any(step.host is not None for step in compiled.plan.steps)
        parts.append(f"-- plan\n{compiled.plan.text(names_of(compiled) if has_hosts else (), compiled.names)}")
    if options.memory is not None:
        drawn = draw_memory(compiled, options, held)
        parts += told(options.memory, "{steps} steps, {buffers} buffers in {arena_bytes:,} bytes", drawn)
        held = {**drawn, **held}
    if options.plan or options.memory is not None:
        data["memory"] = held
        parts += told(options.memory or "", "{text}", {"text": memory.text(held)}, "memory")
    if options.plot is not None:
        data["plot"] = draw_graph(model, options)
        parts += told(options.plot, "{nodes} operators", data["plot"])
    if options.diff is not None:
        data["diff"] = changes(model, options.diff, options.train)
        parts.append("\n".join(data["diff"]) + "\n" if data["diff"] else f"{options.diff}: no change\n")
    if not data:
        return print_layers(model_layers(model, shapes), options.json)
    if options.json:
        print_json(data)
    elif options.diff is not None:
        print_changes("".join(parts))
    else:
        print("".join(parts), end="")
    return 0


def print_layers(found: Any, as_json: bool) -> int:
    """Print the layers: as JSON, as a table in the terminal's width, or as one that is as wide as it is."""
    from mxc.visualization import table

    if as_json:
        print_json(table.as_data(found))
    elif on_terminal():
        print_table(table.COLUMNS, table.rows_of(found), right=table.NUMBERS)
        print("\n".join(["", *table.totals_text(found)]))
    else:
        print(table.table_text(found), end="")
    return 0


def overview(options: argparse.Namespace) -> int:
    """Print what the file holds; the exit code for models with something unknown where there is some."""
    from mxc.cli import overview
    from mxc.cli.main import OK, UNSUPPORTED

    of_artifact = is_artifact(options.model)
    about = overview.of_artifact(options.model) if of_artifact else overview.of_symbol(options)
    if options.json:
        print_json(about)
    else:
        (overview.show_artifact if of_artifact else overview.show_symbol)(about)
    return UNSUPPORTED if about.get("unsupported") else OK


def told(path: str, text: str, facts: dict[str, Any], what: str = "") -> list[str]:
    """What is said of a picture that was written, or of `what`; nothing where the picture is on standard output."""
    return [] if path == "-" else [f"{what or path}: {text.format(**facts)}\n"]


def parameter_sizes(model: Unbound, shapes: dict[str, tuple[int, ...]]) -> dict[str, int]:
    """The bytes of each parameter and auxiliary state: of all that is no input and no label."""
    from mxc.compiler.ops.dtypes import numpy_dtype

    return {name: math.prod(shape) * numpy_dtype(dtype).itemsize for name, (shape, dtype) in model.facts.items()
            if name not in shapes and not name.endswith("label")}


def changes(model: Unbound, name: str, train: bool) -> list[str]:
    """What a pass changes in the graph's text, as the lines of a unified diff; none when it changes nothing.

    Raises UsageError when there is no such pass.
    """
    from difflib import unified_diff

    from mxc.compiler.graph.text import graph_text
    from mxc.compiler.passes.pipeline import PASSES

    names = [each.name for each in PASSES]
    if name not in names:
        raise UsageError(f"--diff {name}: there is no such pass{nearest(name, names)}\n"
                         f"expected one of {', '.join(names)}; --groups shows what is fused")
    lines: list[str] = []

    def watch(done: str, before: Any, after: Any) -> None:
        if done == name:
            old, new = (lines_of(graph_text(graph)) for graph in (before, after))
            lines.extend(unified_diff(old, new, f"before {name}", f"after {name}", n=CONTEXT, lineterm=""))

    model.watch_passes(train, watch)
    return lines


def lines_of(text: str) -> list[str]:
    """A graph's text in lines, each of its arguments in one of its own."""
    head, *rest = text.splitlines()
    return [*head.replace("], ", "],\n      ").splitlines(), *rest]


def print_changes(text: str) -> None:
    """Print text with the lines of a diff; on a terminal what went is red and what came is green."""
    if not on_terminal():
        print(text, end="")
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(soft_wrap=True)
    for line in text.splitlines():
        console.print(Text(line, style={"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")))


def model_layers(model: Unbound, shapes: dict[str, tuple[int, ...]]) -> Any:
    """The model's layers. shapes: those given for inputs; what else the model reads are parameters, but for labels."""
    from mxc.compiler.graph.summary import layers

    inputs = {name for name in model.facts if name in shapes or name.endswith("label")}
    return layers(model.graph, model.graph.facts.shape, inputs)


def title_of(options: argparse.Namespace, *words: str) -> str:
    """What stands above a picture: the model, `words`, and the shapes that were given."""
    name = Path(options.model).name.removesuffix(".json").removesuffix("-symbol").removesuffix(".mxc")
    return ", ".join([name, *words, *options.shape])


def names_of(compiled: Any) -> list[str]:
    """The names of the nodes of the graph that the passes made; they run where the plan was there already."""
    return [node.name for node in compiled.graph.nodes]


def draw_memory(compiled: Any, options: argparse.Namespace, held: dict[str, int]) -> dict[str, Any]:
    """Write the picture of the memory plan; what it shows. Raises FileAccessError when it cannot be written."""
    from mxc.visualization.memory import memory_svg

    title = title_of(options, "training step" if options.train else "inference")
    write_text(options.memory, memory_svg(compiled.plan, names_of(compiled), compiled.names, title, held))
    return {"file": options.memory} | memory_facts(compiled)


def memory_facts(compiled: Any) -> dict[str, int]:
    """What a memory plan has: steps, buffers, bytes."""
    from mxc.visualization.memory import boxes, run_steps

    plan = compiled.plan
    return {"steps": len(run_steps(plan)), "buffers": len(boxes(plan, names_of(compiled))),
            "arena_bytes": plan.arena_bytes, "live_bytes": plan.live_bytes, "unplanned_bytes": plan.unplanned_bytes}


def draw_graph(model: Unbound, options: argparse.Namespace) -> dict[str, Any]:
    """Write the picture of the graph; what it shows. Raises FileAccessError when it cannot be written."""
    from mxc.visualization.graph import graph_svg

    shapes = {name: shape for name, (shape, _) in model.facts.items()}
    write_text(options.plot, graph_svg(model.symbol, shapes, title_of(options)))
    return {"file": options.plot, "nodes": sum(node.op is not None for node in model.graph.nodes)}
