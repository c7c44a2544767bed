"""What artifacts for NVIDIA's GPUs have of their kernels: machine code and PTX, which a `DeviceTarget` runs.

    {"form": "cuda", "kernels": {key: {"name", "buffers", "scratch", "cubin": [offset, bytes], "ptx": [offset, bytes]}}}
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mxc.compiler.targets.launch import DeviceCode
from mxc.runtime.artifact_file import Piece, Section

FORM, CUDA = "cuda", "cuda:"  # what the manifest calls such code, and how the name of its target begins


def stored(codes: Mapping[str, DeviceCode]) -> tuple[dict[str, Any], list[Piece]]:
    """What the manifest says of the code, and the section `code`."""
    section, kernels = Section(), dict[str, Any]()
    for key, code in codes.items():
        forms = {form: [section.add((key, form), np.frombuffer(data, np.uint8)), len(data)]
                 for form, data in (("cubin", code.cubin), ("ptx", code.ptx))}
        kernels[key] = {"name": code.name, "buffers": list(code.buffers), "scratch": list(code.scratch), **forms}
    return {"form": FORM, "kernels": kernels}, section.pieces


def read(entry: Mapping[str, Any], arch: str, code: memoryview) -> dict[str, DeviceCode]:
    """The kernels by key, of the manifest's entry and the section. Raises ValueError, KeyError or TypeError for what is
    not of the form."""
    def part(place: Any) -> bytes:
        start, length = map(int, place)
        if not 0 <= start <= start + length <= len(code):
            raise ValueError(f"code is at {start} of {len(code)} bytes")
        return bytes(code[start:start + length])

    return {str(key): DeviceCode(str(kernel["name"]), tuple(map(str, kernel["buffers"])),
                                 tuple(map(str, kernel["scratch"])), arch, part(kernel["cubin"]), part(kernel["ptx"]))
            for key, kernel in entry["kernels"].items()}
