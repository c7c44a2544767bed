"""`mxc compile`: compile a model's kernels into the cache, and say what came out."""
from __future__ import annotations

import argparse
import json

from mxc.cli.model import bind_model, parse_pairs, parse_shapes


def run(options: argparse.Namespace) -> int:
    """Compile for inference; print nodes, kernels, bytes, cache hits and time."""
    executor = bind_model(options, parse_shapes(options.shape), parse_pairs(options.dtype, "dtype"))
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
        return 0
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False, box=None)
    for name, value in facts.items():
        table.add_row(name, f"{value:,}")
    Console().print(table)
    return 0
