"""What optimizers have in common: rates and decays of each weight, counts of updates, names, float32 copies of float16
weights."""
from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from mxc import ndarray as nd
from mxc.compiler.error import ArgumentError, ArgumentTypeError, MXNetError, nearest
from mxc.compiler.ops.dtypes import NARROW
from mxc.lr_scheduler import LRScheduler
from mxc.ndarray import NDArray
from mxc.runtime import update_calls, updates
from mxc.symbol import Symbol

DECAYED = ("_weight", "_gamma")  # weights decay by default if their names end so


class SchedulerError(MXNetError, UserWarning):
    """A learning rate was set that a scheduler decides; a UserWarning too, which MXNet raises."""


class RemovedError(MXNetError, DeprecationWarning):
    """A function that MXNet no longer has; a DeprecationWarning too, which MXNet raises."""


class Optimizer:
    """The base of optimizers: how weights change by their gradients.

    rescale_grad: factor of gradients, usually 1 / batch size. clip_gradient: bound of their elements after that. wd:
    weight decay. learning_rate, lr_scheduler: the rate, or a scheduler that gives it; where both are given, the
    scheduler begins with the rate. param_idx2name: names of weights by their indices; a weight whose name ends with
    neither "_weight" nor "_gamma" does not decay. sym: a symbol whose variables tell `__lr_mult__` and `__wd_mult__`.
    param_dict: objects with lr_mult and wd_mult by index, which have precedence over all else. begin_num_update: how
    many updates there were before. multi_precision: whether float16 weights have float32 copies, which are updated.

    A class of a program's own derives from this, defines `create_state` and `update`, and is registered (`register`).
    Raises TypeError where param_idx2name is no dictionary or sym no symbol.
    """

    opt_registry: ClassVar[dict[str, type]] = {}

    # MXNet's signature
    def __init__(self, rescale_grad: float = 1.0, param_idx2name: Mapping[Any, str] | None = None, wd: float = 0.0,
                 clip_gradient: float | None = None, learning_rate: float | None = None,
                 lr_scheduler: LRScheduler | None = None, sym: Symbol | None = None, begin_num_update: int = 0,
                 multi_precision: bool = False, param_dict: Mapping[Any, Any] | None = None):
        self.rescale_grad = rescale_grad
        self.lr_scheduler = lr_scheduler
        if lr_scheduler is None:
            self.lr = 0.01 if learning_rate is None else learning_rate
        else:
            if learning_rate is not None and lr_scheduler.base_lr != learning_rate:
                warnings.warn(f"learning_rate={learning_rate} takes the place of the scheduler's base_lr="
                              f"{lr_scheduler.base_lr}", UserWarning, stacklevel=3)
                lr_scheduler.base_lr = learning_rate
            self.lr = lr_scheduler.base_lr
        self.wd = wd
        self.lr_mult: dict[Any, float] = {}
        self.wd_mult: dict[Any, float] = {}
        self.begin_num_update = begin_num_update
        self.num_update = begin_num_update
        self._all_index_update_counts: dict[int, dict[Any, int]] = {0: {}}
        self._index_update_count = self._all_index_update_counts[0]
        self.clip_gradient = clip_gradient
        self.multi_precision = multi_precision
        self.aggregate_num = 0
        if param_idx2name is not None and not isinstance(param_idx2name, Mapping):
            raise ArgumentTypeError("param_idx2name must be a dictionary from indices to names of weights, got "
                                    f"{type(param_idx2name)}")
        self.idx2name = dict(param_idx2name or {})
        if sym is not None and not isinstance(sym, Symbol):
            raise ArgumentTypeError(f"sym must be a Symbol, got {type(sym)}")
        self.sym_info: tuple = () if sym is None else (sym.attr_dict(), sym.list_arguments())
        self.param_dict = param_dict or {}
        self.allow_np_array = False
        self.set_lr_mult({})
        self.set_wd_mult({})

    # -- names

    @staticmethod
    def register(klass: type) -> type:
        """Register a class for `create` by its name in lower case. Returns the class, so it serves as a decorator.
        Warns where the name is taken; raises TypeError for anything but a class."""
        if not isinstance(klass, type):
            raise ArgumentTypeError(f"an optimizer is a class, got {klass!r}")
        name = klass.__name__.lower()
        before = Optimizer.opt_registry.get(name, klass)
        if before is not klass:
            warnings.warn(f"the optimizer {klass.__module__}.{klass.__name__} takes the name {name!r} of "
                          f"{before.__module__}.{before.__name__}", UserWarning, stacklevel=2)
        Optimizer.opt_registry[name] = klass
        return klass

    @staticmethod
    def create_optimizer(name: str, **kwargs: Any) -> Optimizer:
        """An optimizer by its name, in upper or lower case, and its settings. Raises ValueError for a name that is not
        registered, TypeError for a name that is no text and for settings that the optimizer does not have."""
        if not isinstance(name, str):
            raise ArgumentTypeError(f"an optimizer is created by its name, got {name!r}")
        known = Optimizer.opt_registry
        if name.lower() not in known:
            raise ArgumentError(f"no optimizer is registered as {name!r}; there are {', '.join(sorted(known))}"
                                f"{nearest(name.lower(), known)}")
        return known[name.lower()](**kwargs)

    # -- what a class defines

    def create_state(self, index: Any, weight: NDArray) -> Any:
        """The state that is kept for a weight between updates: None, an array, or a tuple of these."""
        return None

    def create_state_multi_precision(self, index: Any, weight: NDArray) -> Any:
        """`create_state` for the weight. With `multi_precision` a float16 or bfloat16 weight has a pair instead: its
        float32 copy and the state for that. Warns of a float16 weight without `multi_precision`."""
        if self._is_mixed(weight):
            copy = weight.astype("float32")
            return copy, self.create_state(index, copy)
        if weight._array.dtype == "float16":
            warnings.warn("sums in float16 lose small updates: multi_precision=True keeps weights in float32",
                          UserWarning, stacklevel=3)
        return self.create_state(index, weight)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Change the weight, and its state, by its gradient. Where `aggregate_num` is above 0 all are lists."""
        raise NotImplementedError(f"{type(self).__name__} must define update(index, weight, grad, state)")

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """`update` with a state of `create_state_multi_precision`."""
        if self._is_mixed(weight):
            copy, inner = state
            self.update(index, copy, grad.astype("float32"), inner)
            copy.copyto(weight)
        else:
            self.update(index, weight, grad, state)

    def _is_mixed(self, weight: NDArray) -> bool:
        return self.multi_precision and weight._array.dtype in NARROW

    # -- rates and decays

    @property
    def learning_rate(self) -> float:
        """The present rate, without the factors of weights."""
        return self.lr if self.lr_scheduler is None else self.lr_scheduler(self.num_update)

    def set_learning_rate(self, lr: float) -> None:
        """Set the rate. Raises SchedulerError, a UserWarning, where a scheduler decides it."""
        if self.lr_scheduler is not None:
            raise SchedulerError("the learning rate is the scheduler's: it can be set only where there is none")
        self.lr = lr

    def set_lr_scale(self, args_lrscale: Mapping[Any, float]) -> None:
        """Raises RemovedError, a DeprecationWarning: `set_lr_mult` has taken its place."""
        raise RemovedError("set_lr_scale is no longer there; use set_lr_mult")

    def set_lr_mult(self, args_lr_mult: Mapping[Any, float]) -> None:
        """Set factors of weights' learning rates, by name or index; what the symbol says holds for the others."""
        self.lr_mult = {**self._said_by_variables("__lr_mult__"), **args_lr_mult}

    def set_wd_mult(self, args_wd_mult: Mapping[Any, float]) -> None:
        """Set factors of weights' decays, by name or index; the others have what the symbol says, else 0 where their
        names end with neither "_weight" nor "_gamma"."""
        self.wd_mult = {**self._undecayed(DECAYED), **self._said_by_variables("__wd_mult__"), **args_wd_mult}

    def _undecayed(self, endings: tuple[str, ...]) -> dict[Any, float]:
        return {name: 0.0 for name in self.idx2name.values() if not name.endswith(endings)}

    def _said_by_variables(self, key: str) -> dict[Any, float]:
        attributes, arguments = self.sym_info or ({}, ())
        return {name: float(attributes[name][key]) for name in arguments if key in attributes.get(name, ())}

    def _get_lrs(self, indices: Sequence[Any]) -> list[float]:
        """The learning rates of weights, by the number of updates so far. Raises ArgumentError for NaN and infinity,
        which would make all weights NaN."""
        rate = self.learning_rate
        if not math.isfinite(rate):
            raise ArgumentError(f"the learning rate is {rate}, which makes weights NaN; give a finite number"
                                + ("" if self.lr_scheduler is None else "; the scheduler "
                                   f"{type(self.lr_scheduler).__name__} gave it"))
        return [rate * self._factor(index, "lr_mult", self.lr_mult) for index in indices]

    def _get_wds(self, indices: Sequence[Any]) -> list[float]:
        """The weight decays of weights. Raises ArgumentError for NaN and infinity."""
        if not math.isfinite(self.wd):
            raise ArgumentError(f"the weight decay wd is {self.wd}, which makes weights NaN; give a finite number")
        return [self.wd * self._factor(index, "wd_mult", self.wd_mult) for index in indices]

    def _factor(self, index: Any, key: str, given: Mapping[Any, float]) -> float:
        if index in self.param_dict:
            return getattr(self.param_dict[index], key)
        if index in given:
            return given[index]
        return given.get(self.idx2name[index], 1.0) if index in self.idx2name else 1.0

    def _get_lr(self, index: Any) -> float:
        return self._get_lrs([index])[0]

    def _get_wd(self, index: Any) -> float:
        return self._get_wds([index])[0]

    def limits(self) -> dict[str, float]:
        """Parameters that most operators take besides rates: the factor of gradients, and their bound if there is one.
        """
        found = {"rescale_grad": self.rescale_grad}
        if self.clip_gradient:
            found["clip_gradient"] = self.clip_gradient
        return found

    # -- counts

    def _set_current_context(self, device_id: int) -> None:
        """Count updates for the weights of that device from now on. Each device's weights have the same indices."""
        self._index_update_count = self._all_index_update_counts.setdefault(device_id, {})

    def _update_count(self, index: Any) -> None:
        """Count an update of a weight, or of each of a list or tuple. A tuple that has a factor of its own is one
        index: that of a part of a value, on a server of a kvstore."""
        is_one = not isinstance(index, (list, tuple)) or (isinstance(index, tuple) and index in self.lr_mult)
        for one in [index] if is_one else index:
            count = self._index_update_count.get(one, self.begin_num_update) + 1
            self._index_update_count[one] = count
            self.num_update = max(self.num_update, count)

    # -- copies

    def __getstate__(self) -> dict[str, Any]:
        """All attributes but param_dict, whose objects belong to the code that made the optimizer."""
        return {name: value for name, value in self.__dict__.items() if name != "param_dict"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self.param_dict = {}


class WeightUpdate(NamedTuple):
    """An update of a weight as one operator of the table. arrays: the arrays that the operator takes, the weight first.
    out: the array that the result goes to; None for the weight."""

    operator: str
    arrays: list[NDArray]
    params: dict[str, Any]
    out: NDArray | None = None


class SteppingOptimizer(Optimizer):
    """An optimizer whose update of a weight is one operator, which a class names in `step`.

    `update` and `update_multi_precision` also take lists, of indices, weights, gradients and states: all of them are
    one piece of work.
    """

    MIXED = False  # whether an operator updates float16 weights with float32 copies; states are then (inner, copy)

    def step(self, index: Any, weight: NDArray, grad: NDArray, state: Any, rates: dict[str, float],
             copies: Sequence[NDArray] = ()) -> WeightUpdate:
        """The update of a weight. rates: its learning rate "lr" and its decay "wd". copies: with MIXED, the float32
        copy of a float16 weight."""
        raise NotImplementedError

    def create_state_multi_precision(self, index: Any, weight: NDArray) -> Any:
        if self.MIXED and self._is_mixed(weight):
            copy = weight.astype("float32")
            return self.create_state(index, copy), copy
        return super().create_state_multi_precision(index, weight)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self._advance(index, weight, grad, state, False)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        if self.MIXED:
            self._advance(index, weight, grad, state, True)
        elif not isinstance(weight, (list, tuple)):
            super().update_multi_precision(index, weight, grad, state)
        elif not any(map(self._is_mixed, weight)):
            self.update(index, weight, grad, state)
        else:
            for one in zip(index, weight, grad, state, strict=True):
                super().update_multi_precision(*one)

    def _advance(self, index: Any, weight: Any, grad: Any, state: Any, is_mixed: bool) -> None:
        if not isinstance(weight, (list, tuple)):
            index, weight, grad, state = [index], [weight], [grad], [state]
        self._update_count(index)
        steps = []
        for i, w, g, s, lr, wd in zip(index, weight, grad, state, self._get_lrs(index), self._get_wds(index),
                                      strict=True):
            rates = {"lr": lr, "wd": wd}
            steps.append(self.step(i, w, g, s[0], rates, s[1:]) if is_mixed and self._is_mixed(w)
                         else self.step(i, w, g, s, rates))
        run(steps)


def run(steps: Sequence[WeightUpdate]) -> None:
    """Do the updates; those of one operator on dense arrays are one piece of work."""
    by_operator: dict[str, list[WeightUpdate]] = {}
    for step in steps:
        if update_calls.are_dense([array._array for array in step.arrays]):
            by_operator.setdefault(step.operator, []).append(step)
        else:
            target = step.arrays[0] if step.out is None else step.out
            target._check_writable()
            update_calls.update(step.operator, [a._array for a in step.arrays], step.params, [target._array])
    for operator, those in by_operator.items():
        arrays, out = [[a._array for a in step.arrays] for step in those], []
        for step in those:
            target = step.arrays[0] if step.out is None else step.out
            target._check_writable()
            out.append(target._array)
        if len(those) == 1:
            updates.update(operator, arrays[0], those[0].params, out)
        else:
            updates.update_all(operator, arrays, [step.params for step in those], out)


def zeros_like(weight: NDArray, stype: str = "default") -> NDArray:
    """Zeros of a weight's shape and dtype, where it is, in a storage type."""
    return nd.zeros(weight.shape, weight.context, weight.dtype, stype)
