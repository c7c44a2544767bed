"""Loops and choices over arrays: Python's own, with the arguments and results that graphs have for them."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mxc.compiler.error import ArgumentError, ArgumentTypeError
from mxc.ndarray import creation
from mxc.ndarray.ndarray import NDArray, apply

Nested = Any  # an array, or a list of Nested


def foreach(body: Callable[[Nested, Nested], tuple[Nested, Nested]], data: Nested,
            init_states: Nested) -> tuple[Nested, Nested]:
    """`body(slice, states) -> (outputs, states)` for each slice of the data along axis 0, one after the other.

    data, init_states: an array, or (nested) lists of them. Returns the outputs of all steps, stacked along a new axis
    0, and the last states. Raises TypeError for anything but arrays, ValueError for data of several lengths or none:
    what the body's outputs are is known only from a step.
    """
    arrays = list(_leaves(data, "data"))
    lengths = {a.shape[0] for a in arrays}
    if len(lengths) != 1:
        raise ArgumentError(f"foreach: the data must have one length along axis 0, got {sorted(lengths) or 'no data'}")
    if lengths == {0}:
        raise ArgumentError("foreach: the data have no slices along axis 0, so the body is never called and its "
                            "outputs are not known")
    list(_leaves(init_states, "init_states"))
    states, steps = init_states, []
    for i in range(lengths.pop()):
        made, states = body(_map(lambda a, i=i: a[i], data), states)
        list(_leaves(made, "foreach: an output of body"))
        steps.append(made)
    return _map(lambda *values: apply("stack", values, {"axis": 0}), *steps), states


def while_loop(cond: Callable[..., Any], func: Callable[..., tuple[Nested, Nested]], loop_vars: Nested,
               max_iterations: int | None = None) -> tuple[Nested, Nested]:
    """`func(*loop_vars) -> (outputs, loop_vars)` while `cond(*loop_vars)` holds, at most `max_iterations` times.

    Returns the outputs (an array or a list, as `func` gives them), each stacked along a new axis 0 of length
    max_iterations (zeros for steps that were not taken; an empty list where there was no step), and the last loop_vars.
    Raises ValueError without loop_vars or max_iterations.
    """
    if max_iterations is None:
        raise ArgumentError("while_loop: max_iterations must be given")
    single = isinstance(loop_vars, NDArray)
    values = [loop_vars] if single else list(loop_vars)
    if not values:
        raise ArgumentError("while_loop: loop_vars has no arrays")
    list(_leaves(values, "loop_vars"))
    steps: list[list[NDArray]] = []
    made: Nested = []
    while len(steps) < int(max_iterations) and _holds(cond(*values), "cond"):
        made, changed = func(*values)
        steps.append([] if made is None else list(_leaves(made, "while_loop: an output of func")))
        changed = [] if changed is None else list(_leaves(changed, "while_loop: a new loop_var"))
        if len(changed) != len(values):
            raise ArgumentError(f"while_loop: func must return as many loop_vars as it gets; it gets {len(values)} and "
                                f"returns {len(changed)}")
        values = changed
    outputs = []
    for column in zip(*steps, strict=True):
        stacked = apply("stack", column, {"axis": 0})
        missing = int(max_iterations) - len(column)
        if missing:
            rest = creation.zeros((missing, *column[0].shape), column[0].context, column[0].dtype)
            stacked = apply("Concat", [stacked, rest], {"dim": 0})
        outputs.append(stacked)
    return outputs[0] if isinstance(made, NDArray) else outputs, values[0] if single else values


def cond(pred: Any, then_func: Callable[[], Nested], else_func: Callable[[], Nested]) -> Nested:
    """What `then_func()` gives where `pred`, an array of one element, is not 0, else what `else_func()` gives."""
    return then_func() if _holds(pred, "pred") else else_func()


def _holds(value: Any, name: str) -> bool:
    if isinstance(value, NDArray) and value.size != 1:
        raise ArgumentError(f"{name} must be an array of one element, got the shape {value.shape}")
    return bool(value)


def _leaves(value: Nested, name: str) -> Iterator[NDArray]:
    """The arrays of a nested list. Raises TypeError for anything else in it."""
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _leaves(part, name)
    elif isinstance(value, NDArray):
        yield value
    else:
        raise ArgumentTypeError(f"{name} must be an NDArray or a nested list of them, got {type(value)}")


def _map(function: Callable[..., Any], *trees: Nested) -> Nested:
    """`function` of the arrays at equal places in nested lists."""
    if isinstance(trees[0], (list, tuple)):
        return [_map(function, *parts) for parts in zip(*trees, strict=True)]
    return function(*trees)
