"""The lists of operators for mixed precision.

operators.yaml has them all, as MXNet has them; `of_dtype` reads those of one narrow dtype, and the modules
`symbol_fp16` and `symbol_bf16` bind MXNet's names to them.
"""
from __future__ import annotations

import functools
import importlib.resources
from typing import Any

import yaml


@functools.cache
def of_dtype(dtype: str) -> dict[str, Any]:
    """The lists of a narrow dtype by their names in the file."""
    text = importlib.resources.files("mxc.contrib.amp.lists").joinpath("operators.yaml").read_text(encoding="utf-8")
    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))[dtype]


def conditions(dtype: str) -> list[tuple[str, str, list[str]]]:
    """Operators that compute in float32 where a parameter has one of the values."""
    return [(op, parameter, values) for op, parameter, values in of_dtype(dtype)["conditional"]]
