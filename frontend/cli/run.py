"""`mxc run`: run a model on arrays."""
from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mxc import class_names, detections
from mxc.cli import detection_tables
from mxc.cli.inputs import add_input_arguments, read_inputs
from mxc.cli.main import tell
from mxc.cli.model import UsageError, add_model_arguments, listed, parse_shapes, positive, progress
from mxc.cli.output_files import check_apart, check_ending, check_place, write_array, write_arrays
from mxc.cli.runnable import open_model
from mxc.cli.tables import print_json

if TYPE_CHECKING:
    import numpy as np

DESCRIPTION = """Run a model once and print each output's shape and largest values; of outputs that are detections
(classes, scores and boxes) the best ones. An input's shape is its file's, or what --shape says; its values are
converted to the model's dtype. What --output writes is an --input of the next model."""
EXAMPLES = """
  mxc run net-symbol.json --input data=@image.npy
  mxc run net-symbol.json --shape data=1,3,224,224 --input data=@cat.jpg --top 3
  mxc run net.mxc --input photos --resize 256 --mean 124,117,104 --scale 0.017 --labels synset.txt
  mxc run features.mxc --input data=@cat.jpg -o out.npz
  mxc run head.mxc --input out.npz
  mxc run net-symbol.json --shape data=1,3,224,224 --input data=random --output y.npy --print"""
ROWS = 8  # rows of each output whose largest values are printed, unless each is a file's


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `mxc run`."""
    add_model_arguments(parser)
    add_input_arguments(parser, "zeros")
    parser.add_argument("-o", "--output", metavar="FILE",
                        help="save the outputs: FILE.npz by name, or FILE.npy where there is one alone")
    parser.add_argument("--print", action="store_true", dest="whole", help="print all values of the outputs")
    parser.add_argument("--top", type=positive, default=5, metavar="N",
                        help="print the N largest values of each of an output's first rows, or the N best detections "
                        "(default 5)")
    parser.add_argument("--labels", metavar="FILE",
                        help="names of classes: a text with a name in each line, or a JSON list")


def run(options: argparse.Namespace) -> int:
    """Set the inputs, run once, print each output's shape and largest values, or all values."""
    from mxc.compiler.ops.dtypes import widened

    check_ending("--output", options.output, ".npz", ".npy")
    check_apart(options, options.output)
    check_place(options.output)
    shapes = parse_shapes(options.shape)
    given = read_inputs(options)
    names = None if options.labels is None else class_names.read(options.labels)
    with progress(f"running {options.model}"):
        model = open_model(options, shapes, given, "zeros", needs_values=True)
        model.run()
        outputs = dict(zip(model.outputs, model.values(), strict=True))
    missing = [name for name in model.inputs if not given.has(name) and not name.endswith("label")]
    if missing:
        tell("run", f"note: {listed(missing)}: zeros, for no --input gives values")
    if options.output:
        save(options.output, outputs)
    numbers = {name: widened(output) for name, output in outputs.items()}
    found = None if options.whole else detections.of_outputs(numbers, model.operators)
    report = {name: describe(output, options.top, names if found is None else None, given.rows)
              for name, output in outputs.items()}
    boxes = None if found is None else detections.as_data(found, options.top, names, given.rows)
    if names is not None and boxes is None and not any("names" in facts for facts in report.values()):
        tell("run", f"note: --labels {options.labels} has {len(names)} names, and no output as many values in a row")
    if options.json:
        print_json({name: facts | ({"values": plain(numbers[name])} if options.whole else {})
                    for name, facts in report.items()} | ({} if boxes is None else {"detections": boxes}))
        return 0
    show(report, numbers, options.whole, boxes is not None)
    if boxes is not None:
        detection_tables.show(boxes)
    return 0


def show(report: Mapping[str, dict[str, Any]], outputs: Mapping[str, np.ndarray], whole: bool, heads: bool) -> None:
    """Print what `describe` gives for each output. whole: all values instead. heads: no values."""
    for name, facts in report.items():
        nan = f", {facts['nan']} of {outputs[name].size} values are NaN" if facts["nan"] else ""
        print(f"{name}: shape {tuple(facts['shape'])}, {facts['dtype']}{nan}")
        if whole:
            print(whole_text(outputs[name]))
            continue
        for row, best in enumerate(facts["top"] if not heads else ()):
            words = facts["names"][row] if "names" in facts else [str(index) for index, _ in best]
            file = f" ({facts['rows'][row]})" if "rows" in facts else ""
            print(f"  row {row}{file}: " + ", ".join(f"{word}: {float(value):.6g}"
                                                     for word, (_, value) in zip(words, best, strict=True)))


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


def describe(output: np.ndarray, top: int, names: Sequence[str] | None = None,
             files: Sequence[str] = ()) -> dict[str, Any]:
    """Shape, dtype, how many values are NaN, and for each of the first rows the `top` largest values as (position,
    value); with names of classes for as many values as a row has, those of the positions. files: of the rows, where
    the output has as many: then of all rows, not the first alone.

    NaN, which counts as less than all, and infinities are text: JSON has no numbers for them.
    """
    import numpy as np

    from mxc.compiler.ops.dtypes import dtype_name, widened

    dtype, output = dtype_name(output.dtype), widened(output)
    count = output.shape[0] if output.ndim > 1 else 1
    is_named = bool(files) and output.ndim > 0 and output.shape[0] == len(files)
    rows = output.reshape(len(files) if is_named else count, -1)[:len(files) if is_named else ROWS] \
        if output.size else output[:0]
    best = []
    for row in rows:
        order = np.argsort(-row.astype(np.float64), kind="stable")[:top]
        values = [row[i].item() for i in order]
        best.append([(int(i), v if math.isfinite(v) else str(v)) for i, v in zip(order, values, strict=True)])
    nan = int(np.isnan(output).sum()) if output.dtype.kind == "f" else 0
    facts = {"shape": list(output.shape), "dtype": dtype, "nan": nan, "top": best}
    if names is not None and len(rows) and len(rows[0]) == len(names):
        facts["names"] = [[names[i] for i, _ in each] for each in best]
    return facts | ({"rows": list(files)} if is_named else {})


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
