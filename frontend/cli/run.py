"""`mxc run`: run a model on arrays."""
from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from mxc.cli.model import bind_model, parse_pairs, parse_shapes
from mxc.compiler.error import ModelFileError, MXNetError


def read_array(path: str) -> np.ndarray:
    """A .npy file's array. Raises ModelFileError for anything else; pickles are refused."""
    try:
        array = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise ModelFileError(path, "there is no such file") from None
    except (ValueError, OSError, EOFError) as error:
        raise ModelFileError(path, f"expected an array in NumPy's .npy format ({error})") from None
    if not isinstance(array, np.ndarray):
        raise ModelFileError(path, "expected one array in NumPy's .npy format, got an archive")
    return array


def run(options: argparse.Namespace) -> int:
    """Bind for inference, set the inputs, run once, print each output's shape and largest values."""
    inputs = {name: read_array(path) for name, path in parse_pairs(options.input, "input").items()}
    shapes = {name: array.shape for name, array in inputs.items()} | parse_shapes(options.shape)
    executor = bind_model(options, shapes, parse_pairs(options.dtype, "dtype"))
    for name, array in inputs.items():
        if array.shape != executor.arg_dict[name].shape:
            raise MXNetError(f"--input {name}: its shape is {array.shape}; --shape says "
                             f"{executor.arg_dict[name].shape}")
        executor.arg_dict[name][:] = array
    outputs = [output.asnumpy() for output in executor.forward(is_train=False)]
    names = executor.output_dict
    if options.output:
        np.savez(Path(options.output), **dict(zip(names, outputs, strict=True)))
    report = {name: describe(output, options.top) for name, output in zip(names, outputs, strict=True)}
    if options.json:
        print(json.dumps(report))
        return 0
    for name, facts in report.items():
        print(f"{name}: shape {tuple(facts['shape'])}, {facts['dtype']}")
        for row, best in enumerate(facts["top"]):
            print(f"  row {row}: " + ", ".join(f"{index}: {value:.6g}" for index, value in best))
    return 0


def describe(output: np.ndarray, top: int) -> dict:
    """Shape, dtype, and for each of the first 8 rows the `top` largest values as (position, value)."""
    rows = output.reshape(output.shape[0] if output.ndim > 1 else 1, -1)[:8]
    best = [[(int(i), float(row[i])) for i in np.argsort(-row, kind="stable")[:top]] for row in rows]
    return {"shape": list(output.shape), "dtype": str(output.dtype), "top": best}
