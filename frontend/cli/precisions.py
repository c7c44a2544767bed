"""Models in another precision than that of their files: `--precision`, the examples that it needs, what it costs."""
from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mxc.cli.input_pictures import add_picture_arguments
from mxc.cli.inputs import Shape, made_up, read_inputs
from mxc.cli.main import tell
from mxc.cli.model import Read, UsageError, without_labels

if TYPE_CHECKING:
    import numpy as np

FLOATS, INT8 = ("float16", "bfloat16"), "int8"
FAR = 0.1  # of an output's largest value: a model that is further off is of little use
EIGHT_BITS = ("_contrib_quantized_", "_sg_mkldnn_")  # how operators over numbers of 8 bits are called


def add_precision_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of a conversion."""
    parser.add_argument("--precision", choices=(*FLOATS, INT8),
                        help="what layers and parameters are converted to; prints how large the parameters are then, "
                        "and how far results are from those in float32")
    parser.add_argument("--calibrate", metavar="DATA",
                        help="examples of the input, as --input of `mxc run` takes them: .npz, .npy or a folder of "
                        "pictures; int8 takes the ranges of layers from them, and differences are measured on them "
                        "(default: random numbers)")
    add_picture_arguments(parser)


class Examples(NamedTuple):
    """Examples of a model's inputs, with `rows` of them in each array along the axis that `axes` says."""

    arrays: Mapping[str, np.ndarray]
    axes: Mapping[str, int]
    rows: int

    def batches(self, shapes: Mapping[str, Shape]) -> Iterator[dict[str, np.ndarray]]:
        """All in batches of these shapes; the last is filled up with its last row."""
        import numpy as np

        size = max((shapes[name][axis] for name, axis in self.axes.items()), default=1)
        for start in range(0, self.rows, size):
            places = np.minimum(np.arange(start, start + size), self.rows - 1)
            yield {name: np.take(array, places, self.axes[name]) if name in self.axes else array
                   for name, array in self.arrays.items()}


class Converted(NamedTuple):
    """model: the converted one. facts: what there is to say of it."""

    model: Read
    facts: dict[str, Any]


def check_options(options: argparse.Namespace) -> None:
    """Raise UsageError for options that need a precision where there is none."""
    from mxc.cli.input_pictures import OPTIONS

    if options.precision is None:
        for name in ("calibrate", *OPTIONS):
            if getattr(options, name) is not None:
                raise UsageError(f"--{name}: it is for --precision")


def converted(options: argparse.Namespace, model: Read, shapes: dict[str, Shape],
              axes: Mapping[str, int] | None) -> Converted:
    """A model in the precision that the options say.

    shapes: of its inputs, to which those of examples are added. axes: along which axis they have rows; None: the first,
    of all that are as long there as the first.
    Raises UsageError where examples do not fit, MXNetError for a model without parameters, or that cannot be converted.
    """
    from mxc.compiler.error import ModelFileError

    if model.path is None:
        raise ModelFileError(options.model, "there is no NAME-0000.params beside it, and no parameters to convert\n"
                             "give the file with --params")
    examples = examples_of(options, model, shapes, axes)
    known = {**{name: array.shape for name, array in model.arguments.items()}, **shapes}
    model = model._replace(symbol=without_labels(model.symbol, known))
    if options.precision == INT8:
        made = _in_eight_bits(options, model, shapes, examples)
    else:
        made = _in_floats(model, options.precision)
    sizes = [sum(array.size * array._array.layout.itemsize for array in (each.arguments | each.auxiliary).values())
             for each in (model, made)]
    operators = [node.op.name for node in made.symbol.graph.nodes if node.op is not None]
    layers = {"layers of 8 bits": sum(name.startswith(EIGHT_BITS) for name in operators)} \
        if options.precision == INT8 else {}
    name, largest, share, packed = difference(model, made, examples.batches(shapes), shapes)
    if largest == float("inf"):
        tell(options.command, f"note: in {options.precision} {name} has values that are not finite, and are in "
             "float32: the model leaves its range, so do not use it")
    elif share > FAR:
        tell(options.command, f"note: {name} is off by {rounded(share)} of its largest value: do not use this model" + (
            "; --calibrate EXAMPLES takes the ranges of layers from examples of the input, and each channel of weights "
            "gets a range of its own then" if options.precision == INT8 and not options.calibrate else ""))
    return Converted(made, {
        "precision": options.precision, **layers,
        "parameter bytes in float32": sizes[0], "parameter bytes now": sizes[1],
        "packed parameter bytes in float32": packed[0], "packed parameter bytes now": packed[1],
        "compared on": f"{examples.rows} {'example' if options.calibrate else 'random input'}"
                       f"{'s' * (examples.rows != 1)}",
        "output furthest off": name, "largest difference": rounded(largest), "of its largest value": rounded(share)})


def rounded(value: float) -> float | str:
    """A number with three digits; infinity is text, since JSON has none."""
    return float(f"{value:.2e}") if math.isfinite(value) else str(value)


def examples_of(options: argparse.Namespace, model: Read, shapes: dict[str, Shape],
                axes: Mapping[str, int] | None) -> Examples:
    """The examples that --calibrate gives; random ones for inputs that it does not give. `shapes` gets the shapes of
    inputs that it lacks."""
    inputs = [name for name in model.inputs if not name.endswith("label")]
    arrays: dict[str, np.ndarray] = {}
    if options.calibrate is not None:
        given = read_inputs(argparse.Namespace(**{**vars(options), "input": [options.calibrate]}))
        found: dict[str, Shape] = {}
        given.settle(inputs, found, shapes, options.model)
        arrays = given.arrays
        shapes |= {name: shape for name, shape in found.items() if name not in shapes}
    missing = [name for name in inputs if name not in shapes]
    if missing:
        raise UsageError(f"{options.model}: the shape of {missing[0]} is not known\n"
                         f"give it: --shape {missing[0]}=D,D,...")
    first = next(iter(arrays), inputs[0] if inputs else "")
    along = dict(axes) if axes is not None else {
        name: 0 for name in inputs if shapes[name][:1] == shapes[first][:1]}
    for name, array in arrays.items():
        expected = [extent for i, extent in enumerate(shapes[name]) if i != along.get(name)]
        if len(array.shape) != len(shapes[name]) or \
                [extent for i, extent in enumerate(array.shape) if i != along.get(name)] != expected:
            raise UsageError(f"--calibrate {options.calibrate}: {name} has the shape {array.shape}; the model takes "
                             f"{shapes[name]}")
    rows = min((array.shape[along[name]] for name, array in arrays.items() if name in along),
               default=max((shapes[name][axis] for name, axis in along.items()), default=1))
    made = {name: made_up(name, "random", shapes[name], "float32") for name in inputs if name not in arrays}
    return Examples({**made, **arrays}, {name: axis for name, axis in along.items() if name in (arrays or made)}, rows)


def _in_floats(model: Read, dtype: str) -> Read:
    from mxc.precision import narrowed
    from mxc.symbol import Symbol

    graph, names = narrowed(model.symbol.graph, dtype, {*model.arguments})
    return model._replace(symbol=Symbol(graph.outputs), arguments={
        name: array.astype(dtype) if name in names else array for name, array in model.arguments.items()})


def _in_eight_bits(options: argparse.Namespace, model: Read, shapes: Mapping[str, Shape], examples: Examples) -> Read:
    """Convolutions and products, and what lies between them, in 8 bits."""
    import mxc as mx
    from mxc.contrib.quantization import quantize_model_mkldnn
    from mxc.io import DataBatch, DataIter

    names = list(examples.arrays)
    calibrated = options.calibrate is not None

    class Batches(DataIter):
        """The examples, for a calibration."""

        def __init__(self) -> None:
            super().__init__()
            self.batches = examples.batches(shapes)

        def next(self) -> DataBatch:
            return DataBatch([mx.nd.array(array) for array in next(self.batches).values()], pad=0)

    if not calibrated:
        tell(options.command, "note: without --calibrate the ranges of layers are found anew in every run, which takes "
             "longer and mixes the rows of a batch; give examples of the input")
    symbol, arguments, auxiliary = quantize_model_mkldnn(
        model.symbol, model.arguments, model.auxiliary, names, (), mx.cpu(),
        calib_mode="naive" if calibrated else "none", calib_data=Batches() if calibrated else None,
        quantized_dtype="auto")
    _name_outputs(symbol, model.symbol.list_outputs())
    used = {*symbol.list_arguments(), *symbol.list_auxiliary_states()}
    return model._replace(symbol=symbol, arguments={name: array for name, array in arguments.items() if name in used},
                          auxiliary={name: array for name, array in auxiliary.items() if name in used})


def _name_outputs(symbol: Any, names: Sequence[str]) -> None:
    """Give outputs the names that they had in float32, where a node of one output makes them."""
    taken = {node.name for node in symbol.graph.nodes}
    for entry, name in zip(symbol.graph.outputs, names, strict=True):
        own = name.removesuffix("_output")
        if entry.node.op is not None and entry.node.num_outputs == 1 and own != name and own not in taken:
            entry.node.name = own


def difference(model: Read, other: Read, batches: Iterator[dict[str, np.ndarray]],
               shapes: Mapping[str, Shape]) -> tuple[str, float, float, list[int]]:
    """Of two models' outputs the one that is furthest off: its name, by how much (inf: it is not finite where the first
    model's is), and that over its largest value; and how many bytes both models' packed parameters have."""
    import numpy as np

    executors = [_bound(each, shapes) for each in (model, other)]
    largest: dict[str, list[float]] = {name: [0.0, 0.0] for name in model.symbol.list_outputs()}
    for batch in batches:
        outputs = [[output.asnumpy().astype(np.float64) for output in executor.forward(is_train=False, **batch)]
                   for executor in executors]
        for name, first, second in zip(largest, *outputs, strict=True):
            with np.errstate(all="ignore"):
                off = np.where(np.isfinite(first) & ~np.isfinite(second), np.inf, np.abs(first - second))
            largest[name][0] = max(largest[name][0], float(np.nanmax(off, initial=0)))
            largest[name][1] = max(largest[name][1], float(np.nanmax(np.abs(first), initial=0)))
    shares = {name: off / (most or 1.0) for name, (off, most) in largest.items()}
    worst = max(shares, key=lambda name: shares[name])
    return worst, largest[worst][0], shares[worst], [each.compiled().plan.prepared_bytes for each in executors]


def _bound(model: Read, shapes: Mapping[str, Shape]) -> Any:
    import mxc as mx
    from mxc.symbol.binding import simple_bind

    dtypes = {name: array.dtype for name, array in (model.arguments | model.auxiliary).items()}
    names = {*model.symbol.list_arguments(), *model.symbol.list_auxiliary_states()}
    executor = simple_bind(model.symbol, mx.cpu(), "null", {n: d for n, d in dtypes.items() if n in names}, shapes)
    executor.copy_params_from({n: a for n, a in model.arguments.items() if n in names},
                              {n: a for n, a in model.auxiliary.items() if n in names})
    return executor
