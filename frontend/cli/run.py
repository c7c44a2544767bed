"""`mxc run`: run a model on arrays."""
from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any

from mxc.cli.inputs import add_input_arguments, read_inputs
from mxc.cli.model import UsageError, add_model_arguments, parse_shapes, positive, progress
from mxc.cli.output_files import check_ending, check_place, write_array, write_arrays
from mxc.cli.runnable import open_model
from mxc.cli.tables import print_json

if TYPE_CHECKING:
    import numpy as np

DESCRIPTION = """Run a model once and print each output's shape and largest values. An input's shape is its file's, or
what --shape says; its values are converted to the model's dtype."""
EXAMPLES = """
  mxc run net-symbol.json --input data=@image.npy
  mxc run net-symbol.json --shape data=1,3,224,224 --input data=@cat.jpg --top 3
  mxc run net-symbol.json --shape data=1,3,224,224 --input data=random --output y.npy --print"""
ROWS = 8  # rows of each output whose largest values are printed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `mxc run`."""
    add_model_arguments(parser)
    add_input_arguments(parser, "zeros")
    parser.add_argument("--output", metavar="FILE",
                        help="save the outputs: FILE.npz by name, or FILE.npy where there is one alone")
    parser.add_argument("--print", action="store_true", dest="whole", help="print all values of the outputs")
    parser.add_argument("--top", type=positive, default=5, metavar="N",
                        help="print the N largest values of each of an output's first rows (default 5)")


def run(options: argparse.Namespace) -> int:
    """Set the inputs, run once, print each output's shape and largest values, or all values."""
    check_ending("--output", options.output, ".npz", ".npy")
    check_place(options.output)
    shapes = parse_shapes(options.shape)
    given = read_inputs(options.input, shapes)
    with progress(f"running {options.model}"):
        model = open_model(options, shapes, given, "zeros", needs_values=True)
        model.run()
        outputs = dict(zip(model.outputs, model.values(), strict=True))
    if options.output:
        save(options.output, outputs)
    report = {name: describe(output, options.top) for name, output in outputs.items()}
    if options.json:
        print_json({name: facts | ({"values": plain(outputs[name])} if options.whole else {})
                    for name, facts in report.items()})
        return 0
    for name, facts in report.items():
        nan = f", {facts['nan']} of {outputs[name].size} values are NaN" if facts["nan"] else ""
        print(f"{name}: shape {tuple(facts['shape'])}, {facts['dtype']}{nan}")
        if options.whole:
            print(whole_text(outputs[name]))
            continue
        for row, best in enumerate(facts["top"]):
            print(f"  row {row}: " + ", ".join(f"{index}: {float(value):.6g}" for index, value in best))
    return 0


def save(path: str, arrays: dict[str, np.ndarray]) -> None:
    """Write arrays as .npz, or one as .npy. Raises UsageError for several as .npy, FileAccessError when the file system
    does not allow it."""
    if not path.lower().endswith(".npy"):
        write_arrays(path, arrays)
    elif len(arrays) == 1:
        write_array(path, next(iter(arrays.values())))
    else:
        raise UsageError(f"--output {path}: the model has {len(arrays)} outputs ({', '.join(arrays)}); save them as "
                         ".npz")


def describe(output: np.ndarray, top: int) -> dict[str, Any]:
    """Shape, dtype, how many values are NaN, and for each of the first rows the `top` largest values as (position,
    value).

    NaN, which counts as less than all, and infinities are text: JSON has no numbers for them.
    """
    import numpy as np

    rows = output.reshape(output.shape[0] if output.ndim > 1 else 1, -1)[:ROWS] if output.size else ()
    best = []
    for row in rows:
        order = np.argsort(-row.astype(np.float64), kind="stable")[:top]
        values = [row[i].item() for i in order]
        best.append([(int(i), v if math.isfinite(v) else str(v)) for i, v in zip(order, values, strict=True)])
    nan = int(np.isnan(output).sum()) if output.dtype.kind == "f" else 0
    return {"shape": list(output.shape), "dtype": str(output.dtype), "nan": nan, "top": best}


def plain(output: np.ndarray) -> Any:
    """All values as nested lists; NaN and infinities are text."""
    def finite(value: Any) -> Any:
        if isinstance(value, list):
            return [finite(each) for each in value]
        return value if math.isfinite(value) else str(value)

    return finite(output.tolist())


def whole_text(output: np.ndarray) -> str:
    """All values as NumPy prints them."""
    import sys

    import numpy as np

    return np.array2string(output, separator=", ", threshold=sys.maxsize, max_line_width=120)
