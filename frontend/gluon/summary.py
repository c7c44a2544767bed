"""The table that `Block.summary` prints."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from mxc.compiler.error import AssertedError

WIDTH = 80


def summary(block: Any, inputs: Sequence[Any]) -> None:
    """Run a block on `inputs` and print what each block below gives, and how many parameters it has."""
    rows: list[tuple[str, str, int, int, int]] = []
    seen: set[int] = set()
    handles: list[Any] = []

    def watch(each: Any) -> None:
        if getattr(each, "_active", False):
            raise AssertedError(f"{each.name} is hybridised, so its parts do not run by themselves: call summary "
                                "before hybridize, or after hybridize(active=False)")
        if not each._is_container:  # their blocks say it all
            handles.append(each.register_forward_hook(note))

    def note(each: Any, _: Any, outputs: Any) -> None:
        total = trained = shared = 0
        for param in each.params.values():
            count = prod(param.shape or ())
            total += count
            trained += count if param.grad_req != "null" else 0
            shared += count if id(param) in seen else 0
            seen.add(id(param))
        rows.append((f"{type(each).__name__}-{len(rows) + 1}", _shapes(outputs), total, trained, shared))

    try:
        block.apply(watch)
        block(*inputs)
    finally:
        for handle in handles:
            handle.detach()
    total, trained, shared = (sum(column) for column in zip(*(row[2:] for row in rows), strict=True))
    print("-" * WIDTH)
    print(f"{'Layer (type)':>20}  {'Output Shape':>42} {'Param #':>15}")
    print("=" * WIDTH)
    for name, shape, count, *_ in [("Input", _shapes(list(inputs)), 0), *rows]:
        print(f"{name:>20}  {shape:>42} {count:>15}")
    print("=" * WIDTH)
    print("Parameters in forward computation graph, duplicate included")
    print(f"   Total params: {total}\n   Trainable params: {trained}\n   Non-trainable params: {total - trained}")
    print(f"Shared params in forward computation graph: {shared}\nUnique parameters in model: {total - shared}")
    print("-" * WIDTH)


def _shapes(values: Any) -> str:
    """The shapes of arrays in nested lists."""
    if isinstance(values, (list, tuple)):
        return ", ".join(f"[{_shapes(each)}]" if isinstance(each, (list, tuple)) else _shapes(each) for each in values)
    return str(values.shape) if hasattr(values, "shape") else str(values)
