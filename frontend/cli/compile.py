"""`mxc compile`: compile a model's kernels into the cache, and say what came out."""
from __future__ import annotations

import argparse
import json
import sys

from mxc.cli.model import add_model_arguments, bind_model, parse_dtypes, parse_shapes, progress

DESCRIPTION = """Compile a model for inference on inputs of given shapes. The kernels are kept in the cache
(MXC_CACHE_DIR, default ~/.cache/mxc), from which later runs load them. Prints how many nodes became how many kernels,
the memory between them, and how many kernels the cache had."""
EXAMPLES = """
  mxc compile net-symbol.json --shape data=1,3,224,224
  mxc compile net-symbol.json --shape data=1,3,224,224 --dtype data=float16 --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `mxc compile`."""
    add_model_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Compile for inference; print nodes, kernels, bytes, cache hits and time."""
    with progress(f"compiling {options.model}"):
        _, executor = bind_model(options, parse_shapes(options.shape), parse_dtypes(options.dtype), needs_values=False)
        compiled = executor.compiled()
    plan = compiled.plan
    forward = plan.steps_of("forward")
    facts = {
        "nodes": plan.nodes,
        "kernels": len(forward),
        "distinct kernels": len({s.kernel for s in forward}),
        "prepare steps": len(plan.steps_of("prepare")),
        "host steps": sum(bool(s.host) for s in plan.steps),
        "arena bytes": plan.arena_bytes,
        "arena bytes before planning": plan.unplanned_bytes,
        "packed parameter bytes": plan.prepared_bytes,
        "cache hits": compiled.library.hits,
        "cache misses": compiled.library.misses,
        "seconds": round(compiled.seconds, 3),
    }
    if options.json:
        print(json.dumps({k.replace(" ", "_"): v for k, v in facts.items()}))
    elif sys.stdout is not None and sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table

        table = Table("", options.model, box=None)
        table.columns[1].justify = "right"
        for name, value in facts.items():
            table.add_row(name, f"{value:,}")
        Console().print(table)
    else:
        for name, value in facts.items():
            print(f"{name}: {value}")
    return 0
