"""Optimizers whose rates differ from element to element and depend on the gradients so far."""
from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from mxc import ndarray as nd
from mxc.ndarray import NDArray
from mxc.optimizer.base import Optimizer, SteppingOptimizer, WeightUpdate, run, zeros_like
from mxc.optimizer.descent import together
from mxc.runtime import updates
from mxc.runtime.array import Array


class _Adaptive(SteppingOptimizer):
    """The base of optimizers whose state is one or several arrays like the weight, zeros at first. LAZY: whether the
    storage type is the weight's; else they are dense."""

    STATES, LAZY = 2, False

    def create_state(self, index: Any, weight: NDArray) -> Any:
        stype = weight.stype if self.LAZY and getattr(self, "lazy_update", True) else "default"
        return tuple([zeros_like(weight, stype) for _ in range(self.STATES)])


@Optimizer.register
class Adam(_Adaptive):
    """Adam (D. Kingma, J. Ba 2014): the mean of gradients over the root of the mean of their squares.

    lazy_update: by a row_sparse gradient only the rows change that it has; else all do, as by a dense one.
    """

    LAZY = True

    def __init__(self, learning_rate: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
                 lazy_update: bool = True, **kwargs: Any):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.lazy_update = lazy_update

    def step(self, index: Any, weight: NDArray, grad: NDArray, state: Any, rates: dict[str, float],
             copies: Sequence[NDArray] = ()) -> WeightUpdate:
        t = self._index_update_count[index]
        rate = rates["lr"] * (1 - self.beta2 ** t) ** 0.5 / (1 - self.beta1 ** t)
        params = {"lr": rate, "wd": rates["wd"], "beta1": self.beta1, "beta2": self.beta2, "epsilon": self.epsilon,
                  **self.limits()}
        if not self.lazy_update:
            params["lazy_update"] = False
        return WeightUpdate("adam_update", [weight, grad, *state], params)


@Optimizer.register
class Adamax(_Adaptive):
    """Adam with the largest gradient in place of the mean of squares (D. Kingma, J. Ba 2014)."""

    def __init__(self, learning_rate: float = 0.002, beta1: float = 0.9, beta2: float = 0.999, **kwargs: Any):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2

    def step(self, index: Any, weight: NDArray, grad: NDArray, state: Any, rates: dict[str, float],
             copies: Sequence[NDArray] = ()) -> WeightUpdate:
        rate = rates["lr"] / (1 - self.beta1 ** self._index_update_count[index])
        return WeightUpdate("_mxc_adamax_update", [weight, grad, *state],
                            {"lr": rate, "wd": rates["wd"], "beta1": self.beta1, "beta2": self.beta2, **self.limits()})


@Optimizer.register
class Nadam(_Adaptive):
    """Adam with Nesterov's momentum (T. Dozat 2016). schedule_decay: how the momentum approaches beta1.

    As in MXNet, the momentum's schedule advances with the update of each weight, not once for a step of all weights.
    """

    def __init__(self, learning_rate: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
                 schedule_decay: float = 0.004, **kwargs: Any):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.schedule_decay = schedule_decay
        self.m_schedule = 1.0

    def step(self, index: Any, weight: NDArray, grad: NDArray, state: Any, rates: dict[str, float],
             copies: Sequence[NDArray] = ()) -> WeightUpdate:
        t = self._index_update_count[index]
        now, following = [self.beta1 * (1 - 0.5 * 0.96 ** (n * self.schedule_decay)) for n in (t, t + 1)]
        self.m_schedule *= now
        params = {**rates, "beta1": self.beta1, "beta2": self.beta2, "epsilon": self.epsilon, "t": t, "now": now,
                  "next": following, "product": self.m_schedule, "product_next": self.m_schedule * following}
        return WeightUpdate("_mxc_nadam_update", [weight, grad, *state], {**params, **self.limits()})


@Optimizer.register
class AdaGrad(_Adaptive):
    """AdaGrad (J. Duchi et al. 2011): the gradient over the root of the sum of squares. eps: added to that sum.

    Its state is the sum.
    """

    def __init__(self, eps: float = 1e-7, **kwargs: Any):
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight, weight.stype)

    def step(self, index: Any, weight: NDArray, grad: NDArray, state: Any, rates: dict[str, float],
             copies: Sequence[NDArray] = ()) -> WeightUpdate:
        return WeightUpdate("_sparse_adagrad_update", [weight, grad, state],
                            {**rates, "epsilon": self.float_stable_eps, **self.limits()})


@Optimizer.register
class AdaDelta(_Adaptive):
    """AdaDelta (M. Zeiler 2012), which needs no learning rate: steps are in proportion to the steps before."""

    def __init__(self, rho: float = 0.90, epsilon: float = 1e-5, **kwargs: Any):
        super().__init__(**kwargs)
        self.rho = rho
        self.epsilon = epsilon

    def step(self, index: Any, weight: NDArray, grad: NDArray, state: Any, rates: dict[str, float],
             copies: Sequence[NDArray] = ()) -> WeightUpdate:
        return WeightUpdate("_mxc_adadelta_update", [weight, grad, *state],
                            {"wd": rates["wd"], "rho": self.rho, "epsilon": self.epsilon, **self.limits()})


@Optimizer.register
class RMSProp(_Adaptive):
    """RMSProp: T. Tieleman's and G. Hinton's (2012), or with `centered` that of A. Graves (2013), which has a momentum,
    gamma2. clip_weights: bound of the weights."""

    def __init__(self, learning_rate: float = 0.001, gamma1: float = 0.9, gamma2: float = 0.9, epsilon: float = 1e-8,
                 centered: bool = False, clip_weights: float | None = None, **kwargs: Any):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.gamma1, self.gamma2, self.epsilon = gamma1, gamma2, epsilon
        self.centered, self.clip_weights = centered, clip_weights

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return tuple([zeros_like(weight, weight.stype) for _ in range(3 if self.centered else 1)])

    def step(self, index: Any, weight: NDArray, grad: NDArray, state: Any, rates: dict[str, float],
             copies: Sequence[NDArray] = ()) -> WeightUpdate:
        params = {**rates, "gamma1": self.gamma1, "epsilon": self.epsilon, **self.limits()}
        if self.clip_weights:
            params["clip_weights"] = self.clip_weights
        if not self.centered:
            return WeightUpdate("rmsprop_update", [weight, grad, *state], params)
        return WeightUpdate("rmspropalex_update", [weight, grad, *state], {**params, "gamma2": self.gamma2})


@Optimizer.register
class Ftrl(_Adaptive):
    """FTRL-Proximal (H. McMahan et al. 2013). lamda1: the factor of the regularization that makes weights 0."""

    LAZY = True

    def __init__(self, lamda1: float = 0.01, learning_rate: float = 0.1, beta: float = 1, **kwargs: Any):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.lamda1 = lamda1
        self.beta = beta

    def step(self, index: Any, weight: NDArray, grad: NDArray, state: Any, rates: dict[str, float],
             copies: Sequence[NDArray] = ()) -> WeightUpdate:
        return WeightUpdate("ftrl_update", [weight, grad, *state],
                            {**rates, "lamda1": self.lamda1, "beta": self.beta, **self.limits()})


@Optimizer.register
class FTML(_Adaptive):
    """FTML, follow the moving leader (S. Zheng, J. Kwok 2017)."""

    STATES = 3

    def __init__(self, beta1: float = 0.6, beta2: float = 0.999, epsilon: float = 1e-8, **kwargs: Any):
        super().__init__(**kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon

    def step(self, index: Any, weight: NDArray, grad: NDArray, state: Any, rates: dict[str, float],
             copies: Sequence[NDArray] = ()) -> WeightUpdate:
        params = {**rates, "beta1": self.beta1, "beta2": self.beta2, "epsilon": self.epsilon,
                  "t": self._index_update_count[index], "rescale_grad": self.rescale_grad}
        if self.clip_gradient:
            params["clip_grad"] = self.clip_gradient
        return WeightUpdate("ftml_update", [weight, grad, *state], params)


@Optimizer.register
class LAMB(Optimizer):
    """LAMB (Y. You et al. 2019): Adam's direction, at a length in proportion to the weight's, for large batches.

    lower_bound, upper_bound: bounds of the weight's length in that proportion. `update` also takes lists.
    """

    def __init__(self, learning_rate: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-6,
                 lower_bound: float | None = None, upper_bound: float | None = None, bias_correction: bool = True,
                 **kwargs: Any):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2, self.epsilon, self.bias_correction = beta1, beta2, epsilon, bias_correction
        self.lower_bound, self.upper_bound = lower_bound, upper_bound
        self.aggregate_num = max(1, min(45, together(45)))

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight), zeros_like(weight)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self._each(index, weight, grad, state, False)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self._each(index, weight, grad, state, True)

    def _each(self, index: Any, weight: Any, grad: Any, state: Any, is_mixed: bool) -> None:
        if not isinstance(weight, (list, tuple)):
            index, weight, grad, state = [index], [weight], [grad], [state]
        self._update_count(index)
        bounds = {"lower_bound": self.lower_bound, "upper_bound": self.upper_bound}
        found: list[tuple[WeightUpdate, WeightUpdate]] = []  # for each weight: the direction, and the step along it
        measured: list[Array] = []
        norms: list[Array] = []
        for i, w, g, s, lr, wd in zip(index, weight, grad, state, self._get_lrs(index), self._get_wds(index),
                                      strict=True):
            inner, copies, kind = (s[1], [s[0]], "mp_") if is_mixed and self._is_mixed(w) else (s, [], "")
            basis = copies[0] if copies else w
            direction, length, reach = _room(basis)
            params = {"beta1": self.beta1, "beta2": self.beta2, "epsilon": self.epsilon, "wd": wd,
                      "t": self._index_update_count[i], "bias_correction": self.bias_correction, **self.limits()}
            found.append((WeightUpdate(f"{kind}lamb_update_phase1", [w, g, *inner, *copies], params, direction),
                          WeightUpdate(f"{kind}lamb_update_phase2", [w, direction, length, reach, *copies],
                                       {"lr": lr, **{name: bound for name, bound in bounds.items() if bound}})))
            measured += basis._array, direction._array
            norms += length._array, reach._array
        run([first for first, _ in found])
        updates.norms(measured, norms)
        run([second for _, second in found])


# weight -> the arrays in which LAMB computes its step. They are kept because updates of the same arrays are fast.
_rooms: weakref.WeakKeyDictionary[Array, tuple[NDArray, NDArray, NDArray]] = weakref.WeakKeyDictionary()


def _room(weight: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Arrays for the direction of a step, for the weight's norm, and for the direction's norm."""
    found = _rooms.get(weight._array)
    if found is None:
        one = nd.empty((2, 1), weight.context, weight.dtype)
        found = _rooms[weight._array] = nd.empty(weight.shape, weight.context, weight.dtype), one[0], one[1]
    return found


@Optimizer.register
class Test(Optimizer):
    """An optimizer for tests of code that calls optimizers: it adds the gradient to the weight, and its state is the
    new weight."""

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight)

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        run([WeightUpdate("sgd_update", [weight, grad], {"lr": -1.0, "rescale_grad": self.rescale_grad})])
        weight.copyto(state)
