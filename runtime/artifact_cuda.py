"""Artifacts for an NVIDIA GPU: plans, and PTX and machine code of their loop kernels. Nothing here runs them yet."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mxc.compiler.targets.launch import symbol
from mxc.runtime import artifact_file
from mxc.runtime.artifact import CUDA
from mxc.runtime.artifact_writer import Section

if TYPE_CHECKING:
    from mxc.compiler.targets.protocol import KernelTarget

Shape = tuple[int, ...]


def write(path: str | os.PathLike[str], version: str, graph: str, target: KernelTarget, mode: str,
          compiled: Sequence[tuple[Mapping[str, Shape], Any]]) -> None:
    """Write an artifact of plans for `target` (docs/artifact.md has the format).

    version: of mxc. graph: the model's JSON. mode: "inference" or "training". compiled: for each set of input shapes,
    the shapes and what the compiler made (compiler.api.Compiled).
    Raises FileAccessError when the file cannot be written.
    """
    code, kernels, missing, plans = Section(), dict[str, Any](), dict[str, str](), list[dict[str, Any]]()
    sections: dict[str, list[artifact_file.Piece]] = {"graph": [graph.encode()]}
    for shapes, made in compiled:
        name = f"plan {len(plans)}"
        sections[name] = [made.plan.to_json().encode()]
        plans.append({"mode": mode, "section": name, "shapes": {k: list(shape) for k, shape in shapes.items()}})
        missing |= made.library.missing
        for key, parts in made.library.codes.items():
            kernels[key] = {"symbol": symbol(key), **{
                form: [code.add((key, form), np.frombuffer(data, np.uint8)), len(data)]
                for form, data in (("ptx", parts.ptx.encode()), ("cubin", parts.cubin))}}
    manifest = {"parts": {**target.parts, "mxc": f"{version} ({target.parts['mxc']})"}, "plans": plans,
                "code": {"form": CUDA, "kernels": kernels, "missing": missing}}
    artifact_file.write(path, manifest, {**sections, "code": code.pieces})
