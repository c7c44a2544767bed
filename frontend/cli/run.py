"""`mxc run`: run a model on arrays."""
from __future__ import annotations

import argparse
import json
import math
from typing import TYPE_CHECKING, Any

from mxc.cli.model import (
    UsageError,
    add_model_arguments,
    bind_model,
    parse_dtypes,
    parse_pairs,
    parse_shapes,
    positive,
    progress,
)
from mxc.compiler.error import FileAccessError, ModelFileError

if TYPE_CHECKING:
    import numpy as np

DESCRIPTION = """Run a model once on arrays from .npy files, and print each output's shape and largest values. An
input's shape is its array's; its values are converted to the model's dtype."""
EXAMPLES = """
  mxc run net-symbol.json --input data=image.npy
  mxc run net-symbol.json --input data=image.npy --output outputs.npz --top 1"""
ROWS = 8  # of each output that are printed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `mxc run`."""
    add_model_arguments(parser)
    parser.add_argument("--input", action="append", default=[], metavar="NAME=FILE.npy",
                        help="values of an input; one that has only a --shape is zeros; may be repeated")
    parser.add_argument("--output", metavar="FILE.npz", help="save the outputs there, by name")
    parser.add_argument("--top", type=positive, default=5, metavar="N",
                        help="print the N largest values of each of an output's first rows (default 5)")


def read_array(path: str) -> np.ndarray:
    """A .npy file's array of numbers. Raises ModelFileError for anything else; pickles are refused."""
    import numpy as np

    try:
        array = np.load(path, allow_pickle=False)
    except OSError as error:
        raise FileAccessError(path, "read", error) from None
    except (ValueError, EOFError) as error:
        raise ModelFileError(path, f"expected an array in NumPy's .npy format ({error})") from None
    if not isinstance(array, np.ndarray):
        raise ModelFileError(path, "expected one array in NumPy's .npy format, got an archive")
    if array.dtype.kind not in "fiub":
        raise ModelFileError(path, f"expected an array of numbers, got the dtype {array.dtype}")
    return array


def run(options: argparse.Namespace) -> int:
    """Bind for inference, set the inputs, run once, print each output's shape and largest values."""
    inputs = {name: read_array(path) for name, path in parse_pairs(options.input, "input").items()}
    shapes = parse_shapes(options.shape)
    for name, array in inputs.items():
        if array.shape != shapes.get(name, array.shape):
            raise UsageError(f"--input {name}: its shape is {array.shape}; --shape says {shapes[name]}")
        if not array.size or not array.ndim:
            raise UsageError(f"--input {name}: expected an array with elements, got the shape {array.shape}")
        shapes[name] = array.shape
    with progress(f"running {options.model}"):
        symbol, executor = bind_model(options, shapes, parse_dtypes(options.dtype), needs_values=True)
        for name, array in inputs.items():
            executor.arg_dict[name][:] = array
        outputs = [output.asnumpy() for output in executor.forward(is_train=False)]
    listed = symbol.list_outputs()
    names = [name if listed.count(name) == 1 else f"{name}[{i}]" for i, name in enumerate(listed)]
    if options.output:
        save(options.output, dict(zip(names, outputs, strict=True)))
    report = {name: describe(output, options.top) for name, output in zip(names, outputs, strict=True)}
    if options.json:
        print(json.dumps(report))
        return 0
    for name, facts in report.items():
        print(f"{name}: shape {tuple(facts['shape'])}, {facts['dtype']}")
        for row, best in enumerate(facts["top"]):
            print(f"  row {row}: " + ", ".join(f"{index}: {float(value):.6g}" for index, value in best))
    return 0


def save(path: str, arrays: dict[str, np.ndarray]) -> None:
    """Write arrays as .npz. Raises FileAccessError when the file system does not allow it."""
    import numpy as np

    try:
        with open(path, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]  # no output is called allow_pickle
    except OSError as error:
        raise FileAccessError(path, "written", error) from None


def describe(output: np.ndarray, top: int) -> dict[str, Any]:
    """Shape, dtype, and for each of the first rows the `top` largest values as (position, value).

    NaN, which counts as less than all, and infinities are text: JSON has no numbers for them.
    """
    import numpy as np

    rows = output.reshape(output.shape[0] if output.ndim > 1 else 1, -1)[:ROWS] if output.size else ()
    best = []
    for row in rows:
        order = np.argsort(-row.astype(np.float64), kind="stable")[:top]
        values = [row[i].item() for i in order]
        best.append([(int(i), v if math.isfinite(v) else str(v)) for i, v in zip(order, values, strict=True)])
    return {"shape": list(output.shape), "dtype": str(output.dtype), "top": best}
