"""`mxc convert`: models from and to ONNX, and parameters from one kind of file to another."""
from __future__ import annotations

import argparse
from typing import Any

from mxc.cli.model import UsageError, check_names, listed, parse_dtypes, parse_pairs, progress, read_model
from mxc.cli.output_files import check_apart
from mxc.cli.precisions import add_precision_arguments, check_options, converted
from mxc.cli.tables import keys_of, print_facts, print_json

DESCRIPTION = """Convert a model from ONNX (IN.onnx; OUT gets NAME-symbol.json and NAME-0000.params) or to ONNX
(OUT.onnx; IN is NAME-symbol.json or an artifact), a model to another precision (--precision; OUT is as from ONNX), or a
file of parameters (.params, .npz, .safetensors) to another kind. What is converted follows from how the names end."""
EXAMPLES = """
  mxc convert net.onnx net
  mxc convert net.onnx net --shape data=1,3,224,224
  mxc convert net-symbol.json net.onnx --shape data=batch,3,224,224
  mxc convert net-symbol.json net8 --shape data=16,3,224,224 --precision int8 --calibrate photos --resize 256
  mxc convert net-0000.params net.safetensors"""
SYMBOL = "-symbol.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `mxc convert`."""
    parser.add_argument("source", metavar="IN", help="NAME.onnx, NAME-symbol.json, an artifact NAME.mxc, or a file of "
                        "parameters: .params, .npz or .safetensors")
    parser.add_argument("target", metavar="OUT", help="of IN.onnx, and with --precision: NAME or NAME-symbol.json; "
                        "else NAME.onnx, or a file of parameters")
    parser.add_argument("--params", metavar="FILE", help="parameters of NAME-symbol.json: .params, .npz or "
                        ".safetensors (default: the NAME-0000.params of the highest number beside it)")
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=D,D,...",
                        help="shape of an input, as data=1,3,224,224; a word in place of a number, as in "
                        "data=batch,3,224,224, is a size that stays free; may be repeated")
    parser.add_argument("--dtype", action="append", default=[], metavar="NAME=DTYPE",
                        help="dtype of an input of NAME-symbol.json, as data=float16; may be repeated")
    add_precision_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(options: argparse.Namespace) -> int:
    """Convert, and print what was written."""
    from mxc.parameter_files import ENDINGS, is_parameter_file

    source, target = options.source, options.target
    check_apart(options, target, *written_for(target))
    shapes = parse_free_shapes(options.shape)
    check_options(options)
    with progress(f"converting {source}"):
        if is_parameter_file(source):
            if not is_parameter_file(target):
                raise UsageError(f"{target}: parameters are written to files that end in {', '.join(ENDINGS)}")
            refuse_options(options, ("params", "shape", "dtype"), "parameters")
            facts = convert_parameters(source, target)
        elif options.precision is not None:
            facts = to_precision(options, shapes)
        elif source.lower().endswith(".onnx"):
            if target.lower().endswith((".onnx", *ENDINGS)):
                raise UsageError(f"{target}: a model from ONNX is written as NAME{SYMBOL} and NAME-0000.params; give "
                                 "NAME")
            refuse_options(options, ("params", "dtype"), "a model from ONNX")
            facts = from_onnx(source, target, shapes)
        elif target.lower().endswith(".onnx"):
            facts = to_onnx(options, shapes)
        else:
            raise UsageError(f"{source} to {target}: one of them ends in .onnx, or both in one of "
                             f"{', '.join(ENDINGS)}, unless --precision says what to convert to")
    if options.json:
        print_json(facts)
    else:
        print_facts({name.replace("_", " "): text(value) for name, value in facts.items()})
    return 0


def prefix_of(target: str) -> str:
    """NAME, of NAME or NAME-symbol.json."""
    return target.removesuffix(".json").removesuffix("-symbol")


def written_for(target: str) -> tuple[str, str]:
    """The files of a model that is written to NAME or NAME-symbol.json."""
    from mxc.checkpoints import checkpoint_paths

    return checkpoint_paths(prefix_of(target), 0)[:2]


def refuse_options(options: argparse.Namespace, names: tuple[str, ...], what: str) -> None:
    """Raise UsageError for an option that this conversion has no use for."""
    for name in names:
        if getattr(options, name):
            raise UsageError(f"--{name}: the conversion of {what} has no use for it")


def parse_free_shapes(texts: list[str]) -> dict[str, tuple[int | str, ...]]:
    """`NAME=D,D,...` options as shapes; a word is a free dimension. Raises UsageError for what is neither."""
    shapes: dict[str, tuple[int | str, ...]] = {}
    for name, given in parse_pairs(texts, "shape").items():
        parts = [part.strip() for part in given.split(",")]
        if not all(part.isidentifier() or (part.isdecimal() and int(part) > 0) for part in parts):
            raise UsageError(f"--shape {name}={given}: expected numbers of at least 1, or words for sizes that stay "
                             f"free, as {name}=batch,3,224,224")
        shapes[name] = tuple(int(part) if part.isdecimal() else part for part in parts)
    return shapes


def text(value: Any) -> str:
    """A fact for people: shapes as they are written, lists with commas."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def convert_parameters(source: str, target: str) -> dict[str, Any]:
    """Write a file of parameters as one of another kind; what was written."""
    from mxc import parameter_files

    arrays = parameter_files.load(source)
    parameter_files.save(target, arrays)
    return {"written": [target], "arrays": len(arrays)}


def from_onnx(source: str, target: str, shapes: dict[str, tuple[int | str, ...]]) -> dict[str, Any]:
    """Write an ONNX model as a symbol and parameters; what was written."""
    from mxc.checkpoints import save_checkpoint
    from mxc.compiler.error import ArgumentError
    from mxc.compiler.passes.stated import attribute_shape
    from mxc.contrib.onnx import import_model

    try:
        symbol, arguments, states = import_model(source, shapes)
    except ArgumentError as error:
        raise UsageError(f"--shape: {error}") from None
    save_checkpoint(prefix_of(target), 0, symbol, arguments, states)
    inputs = {node.name: [extent or "?" for extent in attribute_shape(node) or ()]
              for node in symbol.graph.variables if node.name not in arguments and node.name not in states}
    return {"written": [*written_for(target)], "operators": operators(symbol),
            "parameters": len(arguments) + len(states),
            "inputs": inputs, "outputs": symbol.list_outputs()}


def to_precision(options: argparse.Namespace, shapes: dict[str, tuple[int | str, ...]]) -> dict[str, Any]:
    """Write a symbol and its parameters in another precision; what was written, and what to expect of it."""
    from mxc.checkpoints import save_checkpoint
    from mxc.parameter_files import ENDINGS

    if not options.source.lower().endswith(".json"):
        raise UsageError(f"{options.source}: expected a model to convert to {options.precision}, NAME{SYMBOL}")
    if options.target.lower().endswith((".onnx", ".mxc", *ENDINGS)):
        raise UsageError(f"{options.target}: a model in another precision is written as NAME{SYMBOL} and "
                         "NAME-0000.params; give NAME")
    if options.dtype:
        raise UsageError(f"--dtype: --precision {options.precision} says the dtypes")
    given = argparse.Namespace(**vars(options), model=options.source)
    known = {name: tuple(int(extent) for extent in shape if isinstance(extent, int)) for name, shape in shapes.items()}
    for name, shape in shapes.items():
        if len(known[name]) != len(shape):
            raise UsageError(f"--shape {name}={','.join(map(str, shape))}: --precision needs numbers alone")
    model = read_model(given, known)
    check_names(known, model.symbol.list_arguments(), options.source)
    made, facts = converted(given, model, known, None)
    save_checkpoint(prefix_of(options.target), 0, made.symbol, made.arguments, made.auxiliary)
    return {"written": [*written_for(options.target)], **keys_of(facts)}


def to_onnx(options: argparse.Namespace, shapes: dict[str, tuple[int | str, ...]]) -> dict[str, Any]:
    """Write a symbol and its parameters as an ONNX model; what was written."""
    from mxc.compiler.error import ModelFileError
    from mxc.onnx.export_model import export_model
    from mxc.onnx.mx2onnx.export import read_inputs
    from mxc.onnx.mx2onnx.writer import OPSET

    if not options.source.lower().endswith((".json", ".mxc")):
        raise UsageError(f"{options.source}: expected a model, NAME{SYMBOL} or NAME.mxc")
    compiled: dict[str, tuple[int, ...]] = {}  # the shapes that an artifact was compiled for
    symbol, path, arguments, states = read_model(
        argparse.Namespace(model=options.source, params=options.params, dtype=options.dtype), compiled)
    shapes = {**compiled, **shapes}
    names = [name for name in read_inputs(symbol.graph) if name not in arguments and name not in states]
    # A label that inference does not read may have a shape, as for the other commands.
    check_names(shapes, [*symbol.list_arguments(), *compiled], options.source)
    missing = [name for name in names if name not in shapes]
    if missing and path is None:
        raise ModelFileError(options.source, "there is no NAME-0000.params beside it\ngive the file with --params")
    if missing:
        raise UsageError(f"{options.source}: the shape of {listed(missing)} is not known\n"
                         f"give it: --shape {missing[0]}=D,D,...")
    dtypes = parse_dtypes(options.dtype)
    check_names(dtypes, names, options.source)
    export_model(symbol, {**arguments, **states}, shapes, [dtypes.get(name, "float32") for name in names],
                 options.target)
    return {"written": [options.target], "opset": OPSET, "operators": operators(symbol),
            "parameters": len(arguments) + len(states), "inputs": {name: list(shapes[name]) for name in names},
            "outputs": symbol.list_outputs()}


def operators(symbol: Any) -> int:
    """How many operators a symbol has."""
    return sum(node.op is not None for node in symbol.graph.nodes)
