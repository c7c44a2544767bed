"""Comparing optimizers, as `mx.test_utils` has it."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mxc.compiler.error import ArgumentError
from mxc.ndarray import NDArray
from mxc.test_utils.sparse_values import rand_ndarray
from mxc.test_utils.tolerance import assert_almost_equal

if TYPE_CHECKING:
    from mxc.optimizer import Optimizer


# MXNet's signature
def compare_optimizer(opt1: Optimizer, opt2: Optimizer, shape: Any, dtype: Any, w_stype: str = "default",
                      g_stype: str = "default", rtol: float = 1e-4, atol: float = 1e-5, compare_states: bool = True,
                      ntensors: int = 1) -> None:
    """Raise AssertionError unless both optimizers make the same of random weights and gradients in one update.

    shape: of the weight; with ntensors above 1 a list of so many, which `opt1` updates in one call, `opt2` one by one.
    w_stype, g_stype: storage types of weight and gradient. compare_states: the states they begin with and end with must
    be the same too. Raises ValueError where there are not as many shapes as ntensors.
    """
    shapes = [shape] if ntensors == 1 else list(shape)
    if len(shapes) != ntensors:
        raise ArgumentError(f"compare_optimizer: expected {ntensors} shapes, got {len(shapes)}")
    weights = [rand_ndarray(s, w_stype, dtype=dtype) for s in shapes]
    others = [w.copy() for w in weights]
    grads = [rand_ndarray(s, g_stype, dtype=dtype) for s in shapes]
    states = [opt1.create_state_multi_precision(i, w) for i, w in enumerate(weights)]
    other_states = [opt2.create_state_multi_precision(i, w) for i, w in enumerate(others)]

    def compare() -> None:
        for ours, theirs in zip(_arrays(states), _arrays(other_states), strict=True):
            assert_almost_equal(ours, theirs, rtol, atol)

    if compare_states:
        compare()
    if ntensors == 1:
        opt1.update_multi_precision(0, weights[0], grads[0], states[0])
    else:
        opt1.update_multi_precision(list(range(ntensors)), weights, grads, states)
    for i, (weight, grad, state) in enumerate(zip(others, grads, other_states, strict=True)):
        opt2.update_multi_precision(i, weight, grad, state)
    if compare_states:
        compare()
    for weight, other in zip(weights, others, strict=True):
        assert_almost_equal(weight, other, rtol, atol)


def _arrays(state: Any) -> Sequence[NDArray]:
    """The arrays in a state, in order."""
    if isinstance(state, (list, tuple)):
        return [a for part in state for a in _arrays(part)]
    return [state] if isinstance(state, NDArray) else []
