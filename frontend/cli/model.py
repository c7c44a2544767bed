"""What `mxc compile` and `mxc run` share: reading a model and its options, and binding it."""
from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mxc.compiler.error import ModelFileError, MXNetError, nearest


def parse_pairs(texts: list[str], what: str) -> dict[str, str]:
    """`NAME=VALUE` options as a dict. Raises MXNetError for what is not of that form, or names something twice."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise MXNetError(f"--{what} {text}: expected NAME=VALUE")
        if name in pairs:
            raise MXNetError(f"--{what} {text}: {name} was given already")
        pairs[name] = value
    return pairs


def parse_shapes(texts: list[str]) -> dict[str, tuple[int, ...]]:
    """`NAME=D,D,...` options as shapes. Raises MXNetError for what is no shape of positive numbers."""
    shapes = {}
    for name, text in parse_pairs(texts, "shape").items():
        try:
            shapes[name] = tuple(int(part) for part in text.strip("()").split(",") if part.strip())
        except ValueError:
            raise MXNetError(f"--shape {name}={text}: expected numbers, as {name}=1,3,224,224") from None
        if any(d < 1 for d in shapes[name]):
            raise MXNetError(f"--shape {name}={text}: every dimension must be at least 1")
    return shapes


def parameter_file(options: argparse.Namespace) -> Path | None:
    """The parameter file: as given, else the one of the highest epoch beside NAME-symbol.json; None: there is none."""
    if options.params:
        return Path(options.params)
    symbol = Path(options.symbol)
    stem = symbol.name.removesuffix(".json").removesuffix("-symbol")
    found = sorted(symbol.parent.glob(f"{stem}-[0-9][0-9][0-9][0-9].params"))
    return found[-1] if found else None


def load_model(options: argparse.Namespace) -> tuple[Any, dict[str, Any], dict[str, Any], Path | None]:
    """(symbol, arguments, auxiliary states, parameter file) of the command line's model."""
    import mxc as mx

    symbol = mx.sym.load(options.symbol)
    path = parameter_file(options)
    arguments: dict[str, Any] = {}
    auxiliary: dict[str, Any] = {}
    if path is not None:
        loaded = mx.nd.load(str(path))
        if not isinstance(loaded, dict):
            raise ModelFileError(str(path), "a list of arrays without names; expected names such as arg:fc1_weight")
        for key, array in loaded.items():
            kind, colon, name = key.partition(":")
            if not colon:
                name = key
            (auxiliary if kind == "aux" else arguments)[name] = array
    return symbol, arguments, auxiliary, path


def bind_model(options: argparse.Namespace, shapes: dict[str, tuple[int, ...]], dtypes: dict[str, str]) -> Any:
    """The model's executor for inference with its parameters set.

    Raises MXNetError when shapes do not suffice, or name what is no input, and for parameters of another shape.
    """
    import mxc as mx

    symbol, arguments, auxiliary, path = load_model(options)
    names = symbol.list_arguments()
    for name in (*shapes, *dtypes):
        if name not in names:
            raise MXNetError(f"{name} is not an argument of {options.symbol}{nearest(name, names)}")
    known = {n: a.shape for n, a in arguments.items() if n in names}
    executor = symbol.simple_bind(mx.cpu(), grad_req="null", type_dict=dtypes or None, **{**known, **shapes})
    executor.copy_params_from({n: a for n, a in arguments.items() if n in names},
                              {n: a for n, a in auxiliary.items() if n in symbol.list_auxiliary_states()},
                              allow_extra_params=True)
    missing = [n for n in names if n not in arguments and n not in shapes and not n.endswith("label")]
    missing += [n for n in symbol.list_auxiliary_states() if n not in auxiliary]
    if path is not None and missing:
        raise MXNetError(f"{path} holds no value for {', '.join(missing)}; give the shapes of the model's inputs with "
                         "--shape, or another file with --params")
    return executor
