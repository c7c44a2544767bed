"""Checkpoints: the files of a symbol and of its values after an epoch."""
from __future__ import annotations

import logging
import numbers
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

from mxc import ndarray as nd
from mxc import symbol as sym
from mxc.compiler.error import ArgumentTypeError, ModelFileError
from mxc.ndarray import NDArray

Params = Mapping[str, NDArray]


class CheckpointPaths(NamedTuple):
    """The files of a checkpoint."""

    symbol: str
    params: str
    states: str


def checkpoint_paths(prefix: str, epoch: int) -> CheckpointPaths:
    """Where the checkpoint of an epoch is: PREFIX-symbol.json, PREFIX-0007.params, PREFIX-0007.states.

    epoch: a whole number, also as a float or as NumPy's. Raises TypeError for anything else.
    """
    if not isinstance(epoch, numbers.Real) or epoch != epoch // 1:  # NaN and infinity differ from their floor
        raise ArgumentTypeError(f"the epoch of a checkpoint must be a whole number, such as 7, got {epoch!r}")
    name = f"{prefix}-{int(epoch):04d}"
    return CheckpointPaths(f"{prefix}-symbol.json", f"{name}.params", f"{name}.states")


def save_checkpoint(prefix: str, epoch: int, symbol: Any, arg_params: Params, aux_params: Params,
                    remove_amp_cast: bool = True) -> None:
    """Save a model: the symbol, if it is not None, as PREFIX-symbol.json, the values as PREFIX-EPOCH.params.

    Each file appears whole or not at all.
    """
    paths = checkpoint_paths(prefix, epoch)
    if symbol is not None:
        symbol.save(paths.symbol, remove_amp_cast=remove_amp_cast)
    nd.save(paths.params, {**{f"arg:{name}": value for name, value in arg_params.items()},
                           **{f"aux:{name}": value for name, value in aux_params.items()}})
    logging.info('Saved checkpoint to "%s"', paths.params)


def load_params(prefix: str, epoch: int) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
    """The parameters and auxiliary states of a checkpoint by name.

    Arrays of another kind than arg: and aux: are left out, which a warning tells. Raises ModelFileError when the file
    cannot be read or has arrays without a kind.
    """
    path = checkpoint_paths(prefix, epoch).params
    return _split_params(nd.load(path), path)


def _split_params(loaded: Any, path: str) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
    kinds: dict[str, dict[str, NDArray]] = {"arg": {}, "aux": {}}
    if not isinstance(loaded, dict) and loaded:
        raise ModelFileError(path, "the arrays have no names; expected arg:NAME and aux:NAME")
    others = []
    for key, value in loaded.items() if loaded else ():
        kind, _, name = key.partition(":")
        if not name:
            raise ModelFileError(path, f"an array is called {key!r}; expected arg:NAME or aux:NAME")
        if kind in kinds:
            kinds[kind][name] = value
        else:
            others.append(key)
    if others:
        warnings.warn(f"{path}: left out {', '.join(map(repr, others))}: parameters are called arg:NAME, auxiliary "
                      "states aux:NAME", UserWarning, stacklevel=4)
    return kinds["arg"], kinds["aux"]


def load_checkpoint(prefix: str, epoch: int) -> tuple[Any, dict[str, NDArray], dict[str, NDArray]]:
    """The symbol, parameters and auxiliary states of a checkpoint. Raises ModelFileError when they cannot be read."""
    return (sym.load(checkpoint_paths(prefix, epoch).symbol), *load_params(prefix, epoch))
