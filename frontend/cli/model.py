"""What the commands share: reading a model and its options, binding it, and what is shown meanwhile."""
from __future__ import annotations

import argparse
import contextlib
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mxc.compiler.error import (
    ArgumentError,
    ModelFileError,
    MXNetError,
    OutOfMemoryError,
    SettingError,
    TargetError,
    nearest,
)
from mxc.compiler.system.input_files import is_regular

Shape = tuple[int, ...]
MOST = 6  # names that a message lists at most


class UsageError(MXNetError):
    """An option that is wrong in itself, or that does not go with the model."""


class Read(NamedTuple):
    """A model as its files have it. path: of the parameters' file; None: there is none. arguments, auxiliary: values of
    parameters and auxiliary states by name."""

    symbol: Any
    path: str | None
    arguments: dict[str, Any]
    auxiliary: dict[str, Any]

    @property
    def inputs(self) -> list[str]:
        """The arguments that are no parameters."""
        from mxc.compiler.graph.purity import static_names

        learned = {*self.arguments, *static_names(self.symbol.graph)}
        return [name for name in self.symbol.list_arguments() if name not in learned]


NOT_THE_FILES = (UsageError, OutOfMemoryError, SettingError, TargetError)  # errors to which no file's name is added


def add_model_arguments(parser: argparse.ArgumentParser, artifacts: bool = True) -> None:
    """The options that say which model, and on which inputs. artifacts: whether it may be one."""
    parser.add_argument("model", metavar="MODEL" if artifacts else "SYMBOL.json", help="the model's graph, "
                        "NAME-symbol.json" + (", or an artifact, NAME.mxc, that `mxc compile -o` made" * artifacts))
    parser.add_argument("--params", metavar="FILE",
                        help="its parameters: .params, .npz or .safetensors (default: the NAME-0000.params of the "
                        "highest number beside it)")
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=D,D,...",
                        help="shape of an input, as data=1,3,224,224; may be repeated")
    parser.add_argument("--dtype", action="append", default=[], metavar="NAME=DTYPE",
                        help="dtype of an input, as data=float16; may be repeated")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def positive(text: str) -> int:
    """An option's number of at least 1."""
    return int(checked(text, text.isdecimal() and int(text) >= 1, "a whole number of at least 1"))


def checked(text: str, fits: bool, expected: str) -> str:
    """An option's text. Raises what argparse tells as an error where it does not fit what is expected."""
    if not fits:
        raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}")
    return text


def is_number(text: str, least: float, most: float = float("inf")) -> bool:
    """Whether a text is a number from `least` on, and below `most`."""
    try:
        return least <= float(text) < most
    except ValueError:
        return False


def parse_pairs(texts: list[str], what: str) -> dict[str, str]:
    """`NAME=VALUE` options as a dict. Raises UsageError for what is not of that form, or names something twice."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = split_pair(text, what)
        if not equals or not name or not value:
            raise UsageError(f"--{what} {text}: expected NAME=VALUE")
        if name in pairs:
            raise UsageError(f"--{what} {text}: {name} was given already")
        pairs[name] = value
    return pairs


def split_pair(text: str, what: str) -> tuple[str, str, str]:
    """`NAME=VALUE` as name, `=` and value. A name may have a `=` too, and so may the file of an input."""
    if what != "input":
        return text.rpartition("=")
    name, mark, file = text.partition("=@")
    return (name, "=", f"@{file}") if mark else text.partition("=")


def parse_shapes(texts: list[str]) -> dict[str, tuple[int, ...]]:
    """`NAME=D,D,...` options as shapes. Raises UsageError for what is no shape of positive numbers."""
    shapes = {}
    for name, text in parse_pairs(texts, "shape").items():
        try:
            shapes[name] = tuple(map(int, text.strip("()").removesuffix(",").split(",")))
        except ValueError:
            raise UsageError(f"--shape {name}={text}: expected numbers, as {name}=1,3,224,224") from None
        if any(d < 1 for d in shapes[name]):
            raise UsageError(f"--shape {name}={text}: expected dimensions of at least 1, as {name}=1,3,224,224")
    return shapes


def parse_dtypes(texts: list[str]) -> dict[str, str]:
    """`NAME=DTYPE` options. Raises UsageError for a dtype that there is not."""
    from mxc.runtime.array import dtype_name

    dtypes = parse_pairs(texts, "dtype")
    for name, dtype in dtypes.items():
        try:
            dtype_name(dtype)
        except MXNetError as error:
            raise UsageError(f"--dtype {name}={dtype}: {error}") from None
    return dtypes


def parameter_file(options: argparse.Namespace) -> str | None:
    """The parameter file, or its URL: as given, else the one of the highest epoch beside NAME-symbol.json or NAME.mxc,
    if any."""
    if options.params:
        return str(options.params)
    symbol, stem = Path(options.model), stem_of(options.model)
    numbers = [(int(number[1]), path) for path in symbol.parent.glob("*.params")
               if (number := re.fullmatch(re.escape(stem) + r"-(\d{4,})\.params", path.name))]
    return str(max(numbers)[1]) if numbers else None


def stem_of(model: str) -> str:
    """The name that a model's files have in common: `net` of net-symbol.json and of net.mxc."""
    return Path(model).name.removesuffix(".mxc").removesuffix(".json").removesuffix("-symbol")


def load_parameters(path: str | None, states: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(arguments, auxiliary states) in a parameter file, by name. Raises ModelFileError for what is none.

    states: the names of auxiliary states, for files whose names have no `arg:` or `aux:`.
    """
    arguments: dict[str, Any] = {}
    auxiliary: dict[str, Any] = {}
    if path is not None:
        from mxc import parameter_files

        for key, array in parameter_files.load(path).items():
            kind, colon, name = key.partition(":")
            if not colon:
                kind, name = "aux" if key in states else "arg", key
            (auxiliary if kind == "aux" else arguments)[name] = array
    return arguments, auxiliary


def bind_model(options: argparse.Namespace, shapes: dict[str, tuple[int, ...]], dtypes: dict[str, str],
               needs_values: bool, train: bool = False,
               settle: Callable[[list[str]], None] | None = None) -> tuple[Any, Any]:
    """(symbol, executor with its parameters set) of the command line's model.

    shapes: of the inputs. needs_values: every argument that is no input must have a value; else only when there is a
    parameter file. train: with gradients of all arguments that are no inputs; else for inference. settle: told the
    names of the inputs, it may add to `shapes`.

    Raises UsageError for options that name no input or leave a shape open, and MXNetError for what the model or its
    parameters do not allow.
    """
    model = read_model(options, shapes)
    if settle is not None:
        settle(model.inputs)
    return bind_read(options, model, shapes, dtypes, needs_values, train)


def bind_read(options: argparse.Namespace, model: Read, shapes: Mapping[str, Shape], dtypes: dict[str, str],
              needs_values: bool, train: bool = False) -> tuple[Any, Any]:
    """As `bind_model`, of a model that was read."""
    import mxc as mx
    from mxc.runtime import runner
    from mxc.symbol.binding import simple_bind  # takes inputs of any name, as Symbol's methods do not

    runner.chosen()  # wrong in a command that runs nothing too, as other settings are
    symbol, path, arguments, auxiliary = model
    if not train:
        symbol = without_labels(symbol, {**{n: a.shape for n, a in arguments.items()}, **shapes})
    names, states = symbol.list_arguments(), symbol.list_auxiliary_states()
    check_names((*shapes, *dtypes), names, options.model)
    missing = [n for n in names if n not in arguments and n not in shapes and not n.endswith("label")]
    with told_of(options.model, shapes):
        known = known_shapes(options, symbol, {n: a.shape for n, a in arguments.items()}, shapes,
                             needs_values or path is not None, " or --input" * needs_values)
        executor = simple_bind(symbol, mx.cpu(), gradients(symbol, shapes, train) or "null", dtypes or None, known,
                               shared_buffer={n: a for n, a in arguments.items() if n not in shapes})
    missing += [n for n in states if n not in auxiliary]
    if missing and path is None and needs_values:
        raise ModelFileError(options.model, "there is no NAME-0000.params beside it, and it needs values for "
                             f"{listed(missing)}\ngive the file with --params")
    if missing and path is not None:
        raise ModelFileError(str(path), f"it holds no value for {listed(missing)}\n"
                             "give another file with --params, or --shape where that is an input of the model")
    try:
        executor.copy_params_from({n: a for n, a in arguments.items() if n in names and executor.arg_dict[n] is not a},
                                  {n: a for n, a in auxiliary.items() if n in states})
    except NOT_THE_FILES:
        raise
    except MXNetError as error:
        raise ModelFileError(str(path), f"{error}\ncheck that these files belong together, and that --shape gives the "
                             "shapes they were made for") from error
    return symbol, executor


def known_shapes(options: argparse.Namespace, symbol: Any, parameters: Mapping[str, Shape], shapes: Mapping[str, Shape],
                 demands: bool, other_way: str = "") -> dict[str, Shape]:
    """The shapes from which those of all arguments follow: of the inputs, and of parameters in a file.

    demands: whether an argument of an unknown shape is an error although there are shapes. other_way: to give a shape.
    Raises UsageError when a shape does not follow.
    """
    from mxc.compiler.graph.purity import static_names
    from mxc.symbol.inference import shapes as inferred_shapes

    names = symbol.list_arguments()
    known = {**shapes, **{n: shape for n, shape in parameters.items() if n in names and n not in shapes}}
    found, _, _ = inferred_shapes(symbol, (), known, partial=True)
    unknown = [n for n, shape in zip(names, found, strict=True) if n not in known and not n.endswith("label")
               and not is_known(shape)]
    if unknown and (demands or not shapes):
        learned = static_names(symbol.graph)  # their shapes follow from those of inputs
        unknown = [n for n in unknown if n not in learned] or unknown
        raise UsageError(f"{options.model}: the shape of {listed(unknown)} is not known\n"
                         f"give it: --shape {unknown[0]}=D,D,...{other_way}")
    return known


def without_labels(symbol: Any, known: Mapping[str, Shape]) -> Any:
    """The symbol, in which labels that inference does not read have the shapes that the operators behind them say,
    where what lies between leaves them open. known: shapes of arguments."""
    from mxc.compiler.passes.unread import without_unread
    from mxc.symbol import Symbol
    from mxc.symbol.inference import shapes as inferred_shapes

    names = symbol.list_arguments()
    known = {name: shape for name, shape in known.items() if name in names}
    try:
        found, _, _ = inferred_shapes(symbol, (), known, partial=True)
        unknown = {name for name, shape in zip(names, found, strict=True)
                   if name.endswith("label") and name not in known and not is_known(shape)}
        return Symbol(without_unread(symbol.graph, known, unknown).outputs) if unknown else symbol
    except MXNetError:  # shapes that do not go together: who binds it says which
        return symbol


def gradients(symbol: Any, shapes: Mapping[str, Shape], train: bool) -> dict[str, str]:
    """What a training step writes: the gradients of all arguments that are no inputs; nothing without `train`."""
    return {n: "write" for n in symbol.list_arguments() if train and n not in shapes and not n.endswith("label")}


@contextlib.contextmanager
def told_of(model: str, shapes: Mapping[str, Shape]) -> Iterator[None]:
    """Errors of shapes and dtypes that do not go together say of which model, and what to do. Of the shapes that were
    given they say those of inputs, `shapes`: those of a file's parameters are many, and what does not fit is there."""
    try:
        yield
    except NOT_THE_FILES:
        raise
    except MXNetError as error:
        reason = str(error).removeprefix("simple_bind error: ").removeprefix("infer_shape error: ")
        head, given, lines = reason.partition("\ngiven shapes:\n")
        if given:
            own = [line for line in lines.splitlines() if line.strip().partition(": ")[0] in shapes]
            reason = head + (given + "\n".join(own) if own else "")
        if "\n" in reason:  # it lists the shapes or dtypes that do not go together
            reason += "\ngive those that the model was made for, with --shape and --dtype, and its own parameters"
        raise MXNetError(f"{model}: {reason}") from error


def read_model(options: argparse.Namespace, shapes: dict[str, tuple[int, ...]]) -> Read:
    """The command line's model. shapes: of the inputs; those of an artifact's plan are added."""
    import mxc as mx

    if not is_artifact(options.model):
        symbol, path = mx.sym.load(options.model), parameter_file(options)
        return Read(symbol, path, *load_parameters(path, symbol.list_auxiliary_states()))
    predictor, path = open_whole_artifact(options)
    shapes |= chosen_shapes(predictor, options.model, shapes)
    predictor.need_params()
    symbol = predictor.symbol
    arrays = {name: mx.nd.array(array, dtype=array.dtype) for name, array in predictor.params.items()}
    arguments, auxiliary = ({name: arrays[name] for name in group if name in arrays}
                            for group in (symbol.list_arguments(), symbol.list_auxiliary_states()))
    return Read(symbol, path if arrays else None, arguments, auxiliary)


def is_artifact(path: str) -> bool:
    """Whether the file is named as what `mxc compile -o` writes, or begins as that does."""
    from mxc.runtime.artifact_file import MAGIC

    if path.endswith(".mxc") or not is_regular(path):  # what is read from a pipe is gone
        return path.endswith(".mxc")
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:  # who reads it will say what is wrong
        return False


def open_artifact(options: argparse.Namespace, params: dict[str, Any] | None = None) -> Any:
    """The Predictor of the command line's artifact. params: values of parameters, on top of those of --params.

    Raises UsageError for options that an artifact has no use for, MXNetError as mxc.load does.
    """
    import mxc as mx

    if options.dtype:
        raise UsageError(f"--dtype: {options.model} was compiled for the dtypes it has; compile it anew for others")
    arguments, auxiliary = load_parameters(options.params, [])
    return mx.load(options.model, params=arguments | auxiliary | (params or {}))


def open_whole_artifact(options: argparse.Namespace) -> tuple[Any, str]:
    """As `open_artifact`, and where its parameters come from. Of those that the file has only as its plans read them,
    values are taken from the NAME-0000.params of the highest number beside it, if it is of this model."""
    predictor = open_artifact(options)
    beside = parameter_file(options) if predictor.prepared_params and not options.params else None
    if beside is not None:
        arguments, auxiliary = load_parameters(beside, [])
        try:
            return open_artifact(options, arguments | auxiliary), beside
        except ArgumentError:  # of another model; who needs the parameters says so
            pass
    return predictor, str(options.params or options.model)


def chosen_shapes(predictor: Any, path: str, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """The first set of input shapes of an artifact that agrees with those given. Raises UsageError when none does."""
    return set_that_agrees(predictor.input_shapes, path, shapes)


def set_that_agrees(sets: list[dict[str, Shape]], path: str, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    """The first of an artifact's sets of shapes that agrees with those given. Raises UsageError when none does."""
    for each in sets:
        if all(each.get(name, shape) == shape for name, shape in shapes.items()):
            return dict(each)
    there = "; ".join(", ".join(f"{name}={','.join(map(str, shape))}" for name, shape in each.items()) for each in sets)
    raise UsageError(f"{path} was not compiled for these shapes\nit has {there}")


def check_names(given: Iterable[str], names: Collection[str], model: str) -> None:
    """Raise UsageError for one of `given` that is not among the names of the model's inputs."""
    for name in given:
        if name not in names:
            raise UsageError(f"{name} is not an input of {model}{nearest(name, names)}")


def is_known(shape: tuple[int, ...] | None) -> bool:
    return bool(shape) and all(shape or ())


def listed(names: list[str]) -> str:
    """The names, a few of them when they are many."""
    return ", ".join(names[:MOST]) + (f" and {len(names) - MOST} more" if len(names) > MOST else "")


@contextlib.contextmanager
def progress(what: str) -> Iterator[Callable[[str], None]]:
    """Shows on a terminal's standard error that `what` goes on, and how many kernels are compiled of how many.

    Gives a function that adds how far it is.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.text import Text

    from mxc.compiler.system.progress import watched

    with Console(stderr=True).status(Text(what)) as status, watched(lambda done, total, name: status.update(
            Text(f"{what}: {done} of {total} kernels compiled" if done < total else what))):
        yield lambda far: status.update(Text(f"{what}: {far}"))
