"""What the reference interpreter gives for a model's arrays: in the model's own dtypes, in float64, and in float64 with
every value rounded otherwise, which tells how much rounding alone changes a result."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, Graph, Node
from mxc.compiler.ops.dtypes import converted, epsilon, is_number
from mxc.compiler.ops.philox import Draws
from mxc.compiler.targets.reference.interpreter import Values, evaluate, run

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray
WIDE = "float64"


class Reference:
    """The values of every output of every node of `graph` for these values of its variables.

    draws: makes the random numbers of a run, the same each time.
    """

    def __init__(self, graph: Graph, given: Mapping[str, Array], draws: Callable[[], Draws]):
        self.graph, self.given, self.draws = graph, given, draws

    @cached_property
    def values(self) -> Values:
        """In the model's dtypes."""
        return run(self.graph, self.given, {}, False, self.draws())

    @cached_property
    def exact(self) -> Values:
        """With float64 in place of narrower floats."""
        return self._widely(None)

    @cached_property
    def swayed(self) -> Values:
        """As `exact`, with the value of each variable and of each operator changed as rounding it might."""
        return self._widely(np.random.default_rng(0))

    def _widely(self, sway: np.random.Generator | None) -> Values:
        values: Values = {}
        rng = self.draws()
        for node in self.graph.nodes:
            if node.is_variable:
                outputs = [self.given[node.name]]
            else:
                outputs = widely(node, [values[e] for e in node.inputs], [self.values[e] for e in node.inputs], rng)
            for i, output in enumerate(outputs):
                entry = Entry(node, i)
                values[entry] = wide(output)
                if sway is not None:
                    values[entry] = swayed(values[entry], self.values[entry].dtype, sway)
        return values


def of_executor(executor: Any) -> Reference:
    """The reference of an executor's graph for its arguments and states, with the random numbers of its last run."""
    given = {name: array.asnumpy() for name, array in (executor.arg_dict | executor.aux_dict).items()}
    return Reference(executor._core.graph, given, draws_of(executor))


def draws_of(executor: Any) -> Callable[[], Draws]:
    """What makes the random numbers of an executor's last run."""
    draw = executor._core._draws[0]
    return lambda: Draws(*draw)


def widely(node: Node, inputs: Sequence[Array], narrow: Sequence[Array], rng: Draws) -> list[Array]:
    """A node's outputs for wide inputs. narrow: the same inputs in the model's dtypes, for an operator that does not
    take wide ones beside what its parameters say."""
    try:
        return evaluate(node, list(inputs), False, rng)
    except MXNetError:
        return evaluate(node, [converted(a, b.dtype) for a, b in zip(inputs, narrow, strict=True)], False, rng)


def wide(array: Array) -> Array:
    """An array of floats in float64; any other as it is."""
    return converted(array, np.dtype(WIDE)) if is_number(array.dtype, "f") else array


def swayed(array: Array, dtype: np.dtype, sway: np.random.Generator) -> Array:
    """A float64 array, each value moved up or down by what rounding it to `dtype` moves it at most. Whole numbers stay:
    they are not rounded, and may be indices or counts."""
    if not is_number(dtype, "f"):
        return array
    with np.errstate(all="ignore"):
        moved = array * (1 + sway.choice((-1.0, 1.0), array.shape) * epsilon(dtype) / 2)
        return np.where(array == np.rint(array), array, moved)
