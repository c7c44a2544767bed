"""Executors whose artifacts are tested, and artifacts that were changed."""
from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import mxc as mx
from mxc.runtime import artifact_file


def bound(symbol: Any, train: bool = False, dtype: str | None = None, **shapes: Sequence[int]) -> Any:
    """An executor with random parameters."""
    grad_req = {name: "null" if name in shapes or name.endswith("label") else "write"
                for name in symbol.list_arguments()} if train else "null"
    types = dict.fromkeys(shapes, dtype) if dtype else None
    executor = symbol.simple_bind(mx.cpu(), grad_req=grad_req, type_dict=types, **shapes)
    rng = np.random.default_rng(1)
    for name, array in {**executor.arg_dict, **executor.aux_dict}.items():
        if name not in shapes and not name.endswith("label"):
            array[:] = rng.uniform(0.5, 1.5, array.shape) if "var" in name or "gamma" in name else \
                rng.standard_normal(array.shape) * 0.1
    return executor


def inputs_of(executor: Any, *names: str) -> dict[str, np.ndarray]:
    return {name: np.random.default_rng(2).standard_normal(executor.arg_dict[name].shape).astype("float32")
            for name in names}


def expected(executor: Any, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    return [output.asnumpy() for output in executor.forward(is_train=False, **inputs)]


def changed(source: Path, target: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """A file with another manifest, its checksums right."""
    contents = artifact_file.read(source)
    manifest = json.loads(json.dumps(contents.manifest))
    del manifest["sections"]
    change(manifest)
    artifact_file.write(target, manifest, {name: [bytes(data)] for name, data in contents.sections.items()})
    return target
