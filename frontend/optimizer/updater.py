"""The updater, which applies an optimizer to weights by their indices and keeps their states."""
from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from mxc.compiler.error import ArgumentError, ArgumentTypeError
from mxc.context import Context
from mxc.ndarray import NDArray
from mxc.optimizer import saved_states
from mxc.optimizer.base import Optimizer, SteppingOptimizer


class Updater:
    """A function `updater(index, grad, weight)` that changes a weight as an optimizer does; index, grad and weight may
    be lists, for many weights at once.

    states: what the optimizer keeps for each index, made at the first update of the index.
    Raises TypeError for anything but an Optimizer, and for gradients and weights that are no NDArrays; ValueError for
    loaded states that do not fit the optimizer or the weight.
    """

    def __init__(self, optimizer: Optimizer):
        if not isinstance(optimizer, Optimizer):
            raise ArgumentTypeError(f"an updater needs an Optimizer, as mx.optimizer.create gives, got {optimizer!r}")
        self.optimizer = optimizer
        self.states: dict[Any, Any] = {}
        self.states_synced: dict[Any, bool] = {}  # index -> whether its state is on the device of its weight
        self.aggregate_updates = optimizer.aggregate_num > 0
        self._loaded: list[Any] = []  # the indices of loaded states, until one is asked for that is not among them

    def __call__(self, index: Any, grad: Any, weight: Any) -> None:
        indices, grads, weights = ([index], [grad], [weight]) if not isinstance(index, (list, tuple)) \
            else (list(index), list(grad), list(weight))
        if not len(indices) == len(grads) == len(weights):
            raise ArgumentError(f"an updater needs a gradient and a weight for each index; got {len(indices)} indices, "
                                f"{len(grads)} gradients and {len(weights)} weights")
        if not weights:
            return
        for kind, arrays in (("gradient", grads), ("weight", weights)):
            for i, array in zip(indices, arrays, strict=True):
                if not isinstance(array, NDArray):
                    raise ArgumentTypeError(f"an updater needs an NDArray as the {kind} of {self._called(i)}, got "
                                            f"{type(array)}")
        self.optimizer._set_current_context(weights[0].context.device_id)
        indices = [i.decode() if isinstance(i, bytes) else i for i in indices]
        for i, w in zip(indices, weights, strict=True):
            if i not in self.states:
                self._warn_of_other_keys(i)
                self.states[i] = self.optimizer.create_state_multi_precision(i, w)
            elif not self.states_synced.get(i, False):
                self._check_fits(i, w)
                self.states[i] = self.sync_state_context(self.states[i], w.context)
            self.states_synced[i] = True
        if self._takes_all():
            self.optimizer.update_multi_precision(indices, weights, grads, [self.states[i] for i in indices])
        elif self.aggregate_updates:
            for places in self._groups(weights):
                those, grouped, slopes = zip(*[(indices[p], weights[p], grads[p]) for p in places], strict=True)
                self.optimizer.update_multi_precision(those, grouped, slopes, [self.states[i] for i in those])
        else:
            for i, w, g in zip(indices, weights, grads, strict=True):
                self.optimizer.update_multi_precision(i, w, g, self.states[i])

    def _called(self, index: Any) -> str:
        name = self.optimizer.idx2name.get(index)
        return f"the index {index!r}" if name is None else f"{name!r} (index {index!r})"

    def _warn_of_other_keys(self, index: Any) -> None:
        """Warn once where loaded states are all of names and weights are numbered, or the other way round."""
        loaded, self._loaded = self._loaded, []
        if loaded and not any(isinstance(one, str) == isinstance(index, str) for one in loaded):
            warnings.warn(f"the loaded optimizer states are not used: they are of {loaded[0]!r} and the like, and the "
                          f"weights are {index!r} and the like. A module whose kvstore updates the weights keeps "
                          "states by name, one whose devices do by number: load with as many devices and the same "
                          "kvstore", UserWarning, stacklevel=4)

    def _check_fits(self, index: Any, weight: NDArray) -> None:
        """Raise ArgumentError for a loaded state that is not built like one which the optimizer makes. Only mxc's
        optimizers are asked to make one: a program's own may do more when it makes a state."""
        if not type(self.optimizer).create_state.__module__.startswith("mxc.optimizer"):
            return
        expected = self.optimizer.create_state_multi_precision(index, weight)
        found, wanted = _described(self.states[index]), _described(expected)
        has_momentum = hasattr(self.optimizer, "momentum")
        if found != wanted and not (has_momentum and _without_momentum(self.states[index], expected)):
            kind = type(self.optimizer).__name__
            raise ArgumentError(f"the loaded optimizer states do not fit: those of {self._called(index)} are {found}; "
                                f"{kind} expects {wanted}. Load states that {kind} saved with the same settings, for "
                                "the same parameters on as many devices, or begin without states")

    def _takes_all(self) -> bool:
        """Whether the optimizer updates any number of weights at once: a program may have redefined its functions,
        which then take weights as MXNet gives them."""
        kind = type(self.optimizer)
        return isinstance(self.optimizer, SteppingOptimizer) and kind.update is SteppingOptimizer.update and \
            kind.update_multi_precision is SteppingOptimizer.update_multi_precision

    def _groups(self, weights: Sequence[NDArray]) -> Iterator[list[int]]:
        """The places of weights that go to the optimizer together: of one dtype, aggregate_num at most."""
        by_dtype: dict[type, list[int]] = {}
        for place, weight in enumerate(weights):
            by_dtype.setdefault(weight.dtype, []).append(place)
        most = self.optimizer.aggregate_num
        for places in by_dtype.values():
            yield from (places[first:first + most] for first in range(0, len(places), most))

    def sync_state_context(self, state: Any, context: Context) -> Any:
        """A state with its arrays on a device."""
        if isinstance(state, NDArray):
            return state.as_in_context(context)
        if isinstance(state, (list, tuple)):
            return type(state)([self.sync_state_context(part, context) for part in state])
        return state

    def get_states(self, dump_optimizer: bool = False) -> bytes:
        """All states, and with dump_optimizer the optimizer, as bytes for `set_states` here or in MXNet.

        Raises TypeError for what these bytes cannot hold: they have numbers, text, lists, arrays and optimizers.
        """
        return saved_states.write((self.states, self.optimizer) if dump_optimizer else self.states)

    def set_states(self, states: bytes) -> None:
        """Take over states, and the optimizer if it is with them, from `get_states` here or in MXNet.

        Raises ValueError for bytes that are no states, TypeError for anything but bytes; then all stays as it was.
        """
        self.states, optimizer = _read(states)
        if optimizer is not None:
            self.optimizer = optimizer
            self.aggregate_updates = optimizer.aggregate_num > 0
        self.states_synced = dict.fromkeys(self.states, False)
        self._loaded = list(self.states)


def _described(state: Any) -> str:
    """The structure of a state as text: shapes of arrays, in the parentheses of tuples."""
    if isinstance(state, NDArray):
        return f"an array of shape {state.shape}"
    if isinstance(state, (list, tuple)):
        return f"({', '.join(map(_described, state))})"
    return "None" if state is None else f"of {type(state)}"


def _without_momentum(found: Any, expected: Any) -> bool:
    """Whether the states differ only in that one has a momentum and the other has none. Optimizers with a momentum work
    with either state, so a run may be continued with the momentum switched on or off."""
    if isinstance(found, (list, tuple)) and isinstance(expected, (list, tuple)):
        return len(found) == len(expected) and all(map(_without_momentum, found, expected))
    return isinstance(found, (NDArray, type(None))) and isinstance(expected, (NDArray, type(None))) and \
        (found is None or expected is None or found.shape == expected.shape)


def _read(data: bytes) -> tuple[dict[Any, Any], Optimizer | None]:
    found = saved_states.read(data)
    held, optimizer = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
    if not isinstance(held, dict) or not isinstance(optimizer, (Optimizer, type(None))):
        raise ArgumentError("optimizer states: expected a dictionary of states, or that and an optimizer, got "
                            f"{type(held).__name__} and {type(optimizer).__name__}")
    return held, optimizer


def get_updater(optimizer: Optimizer) -> Updater:
    """The updater of an optimizer, as a KVStore takes it."""
    return Updater(optimizer)
