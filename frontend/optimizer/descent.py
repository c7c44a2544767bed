"""Optimizers that follow the gradient or its running mean: gradient descent, its accelerations, layerwise rates."""
from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from mxc import ndarray as nd
from mxc.compiler.error import ArgumentError, SettingError
from mxc.compiler.system import env
from mxc.ndarray import NDArray
from mxc.optimizer.base import Optimizer, SteppingOptimizer, WeightUpdate, run, zeros_like
from mxc.runtime import updates

TOGETHER = "MXNET_OPTIMIZER_AGGREGATION_SIZE"
UNSCALED = ("_bias", "_gamma", "_beta")  # endings of the names of weights whose rates LARS leaves as they are


def together(most: int) -> int:
    """How many weights a list for `update` has at most. Raises SettingError where the variable has no number."""
    text = env.text(TOGETHER, str(most))
    try:
        return int(text)
    except ValueError:
        raise SettingError(f"{TOGETHER} must be a whole number, got {text!r}") from None


class _Momentum(SteppingOptimizer):
    """The base of optimizers whose state is a momentum, or None without one."""

    MIXED = True
    ACCELERATED = ""  # the operator with momentum

    def __init__(self, momentum: float, **kwargs: Any):
        super().__init__(**kwargs)
        self.momentum = momentum

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight) if self.momentum else None

    def step(self, index: Any, weight: NDArray, grad: NDArray, state: Any, rates: dict[str, float],
             copies: Sequence[NDArray] = ()) -> WeightUpdate:
        kind = "mp_" if copies else ""
        if state is None:
            return WeightUpdate(f"{kind}sgd_update", [weight, grad, *copies], {**rates, **self.limits()})
        return WeightUpdate(f"{kind}{self.ACCELERATED}", [weight, grad, state, *copies],
                            {**rates, "momentum": self.momentum, **self.limits()})


@Optimizer.register
class SGD(_Momentum):
    """Gradient descent, with momentum: mom = momentum * mom - lr * (grad + wd * weight); weight += mom.

    lazy_update: by a row_sparse gradient only the rows change that it has; else all do, as by a dense one.
    """

    ACCELERATED = "sgd_mom_update"

    def __init__(self, momentum: float = 0.0, lazy_update: bool = True, **kwargs: Any):
        super().__init__(momentum, **kwargs)
        self.lazy_update = lazy_update
        self.aggregate_num = together(4)

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight, weight.stype if self.lazy_update else "default") if self.momentum else None

    def step(self, index: Any, weight: NDArray, grad: NDArray, state: Any, rates: dict[str, float],
             copies: Sequence[NDArray] = ()) -> WeightUpdate:
        made = super().step(index, weight, grad, state, rates, copies)
        return made if self.lazy_update else made._replace(params={**made.params, "lazy_update": False})


@Optimizer.register
class ccSGD(SGD):
    """SGD, under the name that it had for an implementation in C++."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)


@Optimizer.register
class NAG(_Momentum):
    """Nesterov's accelerated gradient; without momentum, gradient descent."""

    ACCELERATED = "nag_mom_update"

    def __init__(self, momentum: float = 0.0, **kwargs: Any):
        super().__init__(momentum, **kwargs)


@Optimizer.register
class Signum(SteppingOptimizer):
    """Steps of the length lr along the sign of the momentum; without momentum, of the gradient.

    wd_lh: a decay of the weight itself, as I. Loshchilov and F. Hutter have it.
    """

    def __init__(self, learning_rate: float = 0.01, momentum: float = 0.9, wd_lh: float = 0.0, **kwargs: Any):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum = momentum
        self.wd_lh = wd_lh

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight, weight.stype) if self.momentum else None

    def step(self, index: Any, weight: NDArray, grad: NDArray, state: Any, rates: dict[str, float],
             copies: Sequence[NDArray] = ()) -> WeightUpdate:
        if state is None:
            return WeightUpdate("signsgd_update", [weight, grad], {**rates, **self.limits()})
        return WeightUpdate("signum_update", [weight, grad, state],
                            {**rates, "momentum": self.momentum, "wd_lh": self.wd_lh, **self.limits()})


@Optimizer.register
class DCASGD(SteppingOptimizer):
    """Gradient descent that makes up for the delay of gradients which were computed at an earlier weight.

    lamda: the factor of that correction. Its state is the momentum (None without one) and the weight before the last
    update.
    """

    def __init__(self, momentum: float = 0.0, lamda: float = 0.04, **kwargs: Any):
        super().__init__(**kwargs)
        self.momentum = momentum
        self.weight_previous: dict[Any, NDArray] = {}
        self.lamda = lamda

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight) if self.momentum else None, weight.copy()

    def step(self, index: Any, weight: NDArray, grad: NDArray, state: Any, rates: dict[str, float],
             copies: Sequence[NDArray] = ()) -> WeightUpdate:
        params = {**rates, "momentum": self.momentum, "lamda": self.lamda, **self.limits()}
        momentum, previous = state
        if momentum is None:
            return WeightUpdate("_mxc_dcasgd_update", [weight, grad, previous], params)
        return WeightUpdate("_mxc_dcasgd_mom_update", [weight, grad, momentum, previous], params)


@Optimizer.register
class SGLD(Optimizer):
    """Gradient descent with noise (M. Welling, Y. Teh 2011): half a step, and a normal number of the variance lr."""

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        self._update_count(index)
        rate = self._get_lr(index)
        params = {"lr": rate / 2, "wd": self._get_wd(index), **self.limits()}
        run([WeightUpdate("sgd_update", [weight, grad], params)])
        weight += nd.random.normal(0, rate ** 0.5, out=nd.zeros_like(weight))


@Optimizer.register
class LARS(SGD):
    """Gradient descent with momentum and a rate for each layer (Y. You et al. 2017).

    The rate of a weight is lr * eta * |weight| / (|grad| + wd * |weight| + eps), but lr where its name ends with
    "_bias", "_gamma" or "_beta", or where a norm is 0. momentum_correction: where lr changes, so does the momentum in
    that update.
    """

    def __init__(self, momentum: float = 0.0, lazy_update: bool = True, eta: float = 0.001, eps: float = 0,
                 momentum_correction: bool = True, **kwargs: Any):
        super().__init__(momentum, lazy_update, **kwargs)
        self.momentum_correction = momentum_correction
        self.eta = eta
        self.eps = eps
        self.skip = 0  # MXNet, which may read this optimizer when it is saved, needs the attribute.
        self.last_lr: float | None = None
        self.cur_lr: float | None = None

    def set_wd_mult(self, args_wd_mult: Any) -> None:
        """See `Optimizer.set_wd_mult`; but here no weight decays whose name does not end with "_weight"."""
        self.wd_mult = {**self._undecayed(("_weight",)), **self._said_by_variables("__wd_mult__"), **args_wd_mult}

    def _get_lrs(self, indices: Any) -> list[float]:
        rate = self.learning_rate
        self.last_lr, self.cur_lr = rate if self.cur_lr is None else self.cur_lr, rate
        return [rate * self._factor(index, "lr_mult", self.lr_mult) for index in indices]

    def _advance(self, index: Any, weight: Any, grad: Any, state: Any, is_mixed: bool) -> None:
        if not isinstance(weight, (list, tuple)):
            index, weight, grad, state = [index], [weight], [grad], [state]
        self._update_count(index)
        rates, decays = self._get_lrs(index), self._get_wds(index)
        groups: dict[tuple[bool, bool], list[int]] = {}  # positions of the weights that one operator updates
        for place, one in enumerate(weight):
            mixed = is_mixed and self._is_mixed(one)
            has_momentum = (state[place][0] if mixed else state[place]) is not None
            groups.setdefault((mixed, has_momentum), []).append(place)
        for (mixed, has_momentum), places in groups.items():
            arrays = [a for p in places for a in (weight[p], grad[p], *_listed(state[p]))]
            scaled = self._scaled([weight[p] for p in places], [grad[p] for p in places],
                                  [not self.idx2name.get(index[p], "").endswith(UNSCALED) for p in places],
                                  [rates[p] for p in places], [decays[p] for p in places])
            name = f"preloaded_multi_{'mp_' if mixed else ''}sgd_{'mom_' if has_momentum else ''}update"
            momentum = {"momentum": self._corrected()} if has_momentum else {}
            getattr(nd, name)(*arrays, *scaled, out=[weight[p] for p in places], num_weights=len(places), **momentum,
                              **self.limits())

    def _corrected(self) -> float:
        """The momentum of this update."""
        if not self.momentum_correction or not self.last_lr or self.cur_lr is None:
            return self.momentum
        return self.momentum * self.cur_lr / self.last_lr

    def _scaled(self, weights: list[NDArray], grads: list[NDArray], is_scaled: list[bool], rates: list[float],
                decays: list[float]) -> tuple[NDArray, NDArray]:
        """The rates of weights and their decays, as arrays, so that nothing waits for the norms."""
        context, count = weights[0].context, len(weights)
        rate, decay, chosen = (nd.array(values, context) for values in (rates, decays, is_scaled))
        length, slope = nd.empty((count,), context), nd.empty((count,), context)
        updates.norms([a._array for a in (*weights, *grads)],
                      [norms[i]._array for norms in (length, slope) for i in range(count)])
        slope *= self.rescale_grad
        scaled = rate * length * self.eta / (slope + decay * length + self.eps)
        return nd.where((length > 0) * (slope > 0) * chosen, scaled, rate), decay


def _listed(state: Any) -> list[NDArray]:
    """The arrays of a state of gradient descent, in the order of its operators."""
    return [a for a in (state if isinstance(state, tuple) else (state,)) if a is not None]


@Optimizer.register
class LBSGD(Optimizer):
    """Gradient descent for batches so large that they come in `batch_scale` parts, whose gradients are added up.

    In the first warmup_epochs * updates_per_epoch updates the rate rises to batch_scale times lr, as
    warmup_strategy says: "linear", "power2", "sqrt", or else at their end. "lars": each weight has a rate of its own
    instead. begin_epoch: where training goes on.
    """

    # MXNet's signature
    def __init__(self, momentum: float = 0.0, multi_precision: bool = False, warmup_strategy: str = "linear",
                 warmup_epochs: int = 5, batch_scale: int = 1, updates_per_epoch: int = 32, begin_epoch: int = 0,
                 num_epochs: int = 60, **kwargs: Any):
        super().__init__(multi_precision=multi_precision, **kwargs)
        if batch_scale < 1:
            raise ArgumentError(f"batch_scale is the number of parts of a batch, at least 1; got {batch_scale}")
        logging.info("Running Large-Batch SGD Algorithm")
        logging.info("(Batch_scale=%f, warmup_epochs=%d, warmup_strategy=%s, updates_per_epoch=%d)", batch_scale,
                     warmup_epochs, warmup_strategy, updates_per_epoch)
        self.momentum, self.batch_scale, self.updates_per_epoch = momentum, batch_scale, updates_per_epoch
        self.warmup_strategy, self.warmup_epochs = warmup_strategy, warmup_epochs
        self.init_updates = begin_epoch * updates_per_epoch
        self.num_epochs = num_epochs
        self.cumgrads: dict[Any, dict[str, Any]] = {}
        self.lbmult, self.adaptive, self.admult = 1, False, 1  # MXNet needs them when it reads a saved optimizer.

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight) if self.momentum else None

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        held = self.cumgrads.setdefault(index, {"cum_grad": 0, "num_cums": self.init_updates})
        held["num_cums"] += 1
        held["cum_grad"] = held["cum_grad"] + grad
        rate, wd = self._get_lr(index), self._get_wd(index)  # In MXNet too, this update does not count yet.
        self._update_count(index)
        if held["num_cums"] % self.batch_scale:
            return
        mean = held["cum_grad"] / self.batch_scale
        held["cum_grad"] = 0
        if self.warmup_strategy == "lars":
            rate *= self._get_lars(weight, mean, wd)
        else:
            rate *= self._get_lbmult(held["num_cums"])
        params = {"lr": rate, "wd": wd, **self.limits()}
        if state is None:
            run([WeightUpdate("sgd_update", [weight, mean], params)])
        else:
            run([WeightUpdate("sgd_mom_update", [weight, mean, state], {**params, "momentum": self.momentum})])

    def _get_lbmult(self, nup: int) -> float:
        """The factor of the rate at an update."""
        length, most = self.warmup_epochs * self.updates_per_epoch, float(self.batch_scale)
        if nup >= length:
            return most
        passed = nup / length
        rise = {"linear": passed, "power2": passed ** 2, "sqrt": passed ** 0.5}.get(self.warmup_strategy, 0.0)
        return 1.0 + (most - 1) * rise

    def _get_lars(self, weight: NDArray, grad: NDArray, wd: float) -> float:
        """The factor of a weight's rate by its length and its gradient's, from 0.01 to 100."""
        length, slope = float(nd.square(weight).sum()), float(nd.square(grad).sum())
        found = (length / (slope + wd * length + 1e-18)) ** 0.5
        return min(max(found, 0.01), 100.0)
