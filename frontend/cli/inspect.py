"""`mxc inspect`: a model's layers, and what the compiler makes of them."""
from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from mxc.cli.model import UsageError, add_model_arguments, bind_model, parse_dtypes, parse_shapes, progress
from mxc.compiler.error import FileAccessError

DESCRIPTION = """Print a model's layers: operator, output shape, parameters, floating-point operations (a multiply-add
is two), and what each reads. With --groups, --plan or --memory, show what the compiler makes of it instead; these
compile the model (for inference, or with --train for a training step)."""
EXAMPLES = """
  mxc inspect net-symbol.json --shape data=1,3,224,224
  mxc inspect net-symbol.json --shape data=1,3,224,224 --groups --plan
  mxc inspect net-symbol.json --shape data=8,3,224,224 --train --memory memory.svg"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `mxc inspect`."""
    add_model_arguments(parser)
    parser.add_argument("--train", action="store_true",
                        help="compile a training step, with the gradients of all parameters")
    parser.add_argument("--groups", action="store_true", help="show the fusion groups, a line each")
    parser.add_argument("--plan", action="store_true",
                        help="show the plan: each kernel's launch, what it reads and writes, and the memory")
    parser.add_argument("--memory", metavar="FILE.svg",
                        help="draw the memory plan: which buffer is alive when, and where")


def run(options: argparse.Namespace) -> int:
    """Print the layers, or what of --groups, --plan and --memory is asked for."""
    from mxc.visualization.table import as_data, table_text

    compiles = options.groups or options.plan or options.memory is not None
    if options.train and not compiles:
        raise UsageError("--train: the layers are the same in training; give --groups, --plan or --memory with it")
    shapes = parse_shapes(options.shape)
    with progress(f"inspecting {options.model}"):
        symbol, executor = bind_model(options, shapes, parse_dtypes(options.dtype), needs_values=False,
                                      train=options.train)
        compiled = executor.compiled(options.train) if compiles else None
    if compiled is None:
        found = model_layers(symbol, executor, shapes)
        print(json.dumps(as_data(found)) if options.json else table_text(found), end="\n" if options.json else "")
        return 0
    data: dict[str, Any] = {}
    text = ""
    if options.groups:
        data["groups"] = compiled.groups.splitlines()
        text += f"-- groups\n{compiled.groups}"
    if options.plan:
        data["plan"] = json.loads(compiled.plan.to_json())
        text += f"-- plan\n{compiled.plan.text()}"
    if options.memory is not None:
        data["memory"] = draw(compiled.plan, options)
        text += "{file}: {steps} steps, {buffers} buffers in {arena_bytes:,} bytes\n".format(**data["memory"])
    print(json.dumps(data) if options.json else text, end="\n" if options.json else "")
    return 0


def model_layers(symbol: Any, executor: Any, shapes: dict[str, tuple[int, ...]]) -> Any:
    """The model's layers. shapes: those given for inputs; what else the model reads are parameters, but for labels."""
    from mxc.compiler.graph.summary import layers
    from mxc.compiler.passes.infer_shape import infer_shape

    graph = symbol.graph
    bound = {**executor.arg_dict, **executor.aux_dict}
    inputs = {name for name in bound if name in shapes or name.endswith("label")}
    return layers(graph, infer_shape(graph, {name: array.shape for name, array in bound.items()}), inputs)


def draw(plan: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Write the picture of the memory plan; what it shows. Raises FileAccessError when it cannot be written."""
    from mxc.visualization.memory import boxes, memory_svg, run_steps

    name = Path(options.model).name.removesuffix(".json").removesuffix("-symbol")
    shapes = ", ".join(options.shape)
    title = f"{name}, {'training step' if options.train else 'inference'}{f', {shapes}' if shapes else ''}"
    try:
        Path(options.memory).write_text(memory_svg(plan, title), encoding="utf-8")
    except OSError as error:
        raise FileAccessError(options.memory, "written", error) from None
    return {"file": options.memory, "steps": len(run_steps(plan)), "buffers": len(boxes(plan)),
            "arena_bytes": plan.arena_bytes, "live_bytes": plan.live_bytes, "unplanned_bytes": plan.unplanned_bytes}
