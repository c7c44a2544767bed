"""`mxc compile`: compile a model's kernels into the cache, and say what came out."""
from __future__ import annotations

import argparse
import json
import sys

from mxc.cli.model import bind_model, parse_dtypes, parse_shapes, progress


def run(options: argparse.Namespace) -> int:
    """Compile for inference; print nodes, kernels, bytes, cache hits and time."""
    with progress(f"compiling {options.symbol}"):
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

        table = Table("", options.symbol, box=None)
        table.columns[1].justify = "right"
        for name, value in facts.items():
            table.add_row(name, f"{value:,}")
        Console().print(table)
    else:
        for name, value in facts.items():
            print(f"{name}: {value}")
    return 0
