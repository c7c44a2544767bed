"""Small operators that are one piece of the engine's work: their specializations, one after another, over numbered
values."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mxc.compiler.ops import dtypes
from mxc.runtime import engine
from mxc.runtime.array import Array
from mxc.runtime.eager import Specialization, quiet
from mxc.runtime.tape import Recorded

ValuePlace = tuple[int, int]  # a node's position and an output of it: recorded nodes, then heads, then those made


class Bundle:
    """Values are numbered. count: how many there are. given: number and place of each value that is read but not made
    here. steps: a specialization, and the numbers of the values that it reads, that it makes, and that are not needed
    after it. results: the numbers of the values that are wanted."""

    def __init__(self, count: int, given: list[tuple[int, ValuePlace]],
                 steps: list[tuple[Specialization, list[int], list[int], list[int]]], results: list[int]):
        self.count, self.given, self.steps, self.results = count, given, steps, results
        self._slow = [special for special, *_ in steps if special.function is None]
        self._foreign = {value for value, _ in given}

    @property
    def is_ready(self) -> bool:
        """Whether NumPy can do all of it: no specialization is to be compiled."""
        return not any(special.wants_code for special in self._slow)

    def run(self, nodes: Sequence[Recorded], heads: Sequence[Array], flowing: Sequence[Array | None],
            targets: Sequence[tuple[Array, bool]]) -> None:
        """Write each result to its array of `targets`, or add it to what is there where the target says True.

        nodes: the recorded graph. flowing: the gradient of each head; None for ones.
        """
        known: list[tuple[int, Array]] = []
        ones: list[tuple[int, np.ndarray]] = []
        for value, (position, index) in self.given:
            if position < len(nodes):
                known.append((value, nodes[position].outputs[index]))
            else:
                array, head = flowing[position - len(nodes)], heads[position - len(nodes)]
                if array is None:
                    ones.append((value, dtypes.ones(head.shape, head.dtype)))
                else:
                    known.append((value, array))

        def work() -> None:
            values: list[Any] = [None] * self.count
            for value, array in known:
                values[value] = array.read()
            for value, memory in ones:
                values[value] = memory
            quiet.run(self._compute, values, targets)

        engine.push(work, [a.variable for _, a in known], [a.variable for a, _ in targets], "backward")

    def _compute(self, values: list[Any], targets: Sequence[tuple[Array, bool]]) -> None:
        for special, ins, outs, over in self.steps:
            if special.function is not None:
                values[outs[0]] = special.function(*[values[i] for i in ins])
            else:
                for i, result in zip(outs, special.values([values[i] for i in ins]), strict=True):
                    values[i] = result
            for i in over:
                values[i] = None
        found = [values[i] for i in self.results]
        if len(found) > 1:  # a target may be what another result is a view of
            found = [v.copy() if i in self._foreign or v.base is not None else v
                     for i, v in zip(self.results, found, strict=True)]
        for value, (target, is_added) in zip(found, targets, strict=True):
            (dtypes.add if is_added else dtypes.write)(target.memory, value)


def bundle_of(specials: Sequence[Specialization], inputs: Sequence[Sequence[ValuePlace]], known: int, heads: int,
              sought: Sequence[ValuePlace]) -> Bundle | None:
    """The bundle of specializations and the places that they read; None when one of them is not small, or draws
    numbers.

    known, heads: how many recorded nodes and heads there are, whose positions come first.
    """
    if any(special.wants_code or special.draws or not special.small for special in specials):
        return None
    first = known + heads
    places: dict[ValuePlace, int] = {}
    given: list[tuple[int, ValuePlace]] = []
    steps: list[tuple[Specialization, list[int], list[int], list[int]]] = []
    last: dict[int, int] = {}  # the step that reads a value last

    def value_of(place: ValuePlace) -> int:
        if place not in places:
            places[place] = len(places)
            if place[0] < first:
                given.append((places[place], place))
        return places[place]

    for step, (special, read) in enumerate(zip(specials, inputs, strict=True)):
        ins, outs = [value_of(p) for p in read], [value_of((first + step, i)) for i in range(len(special.shapes))]
        last |= dict.fromkeys([*outs, *ins], step)
        steps.append((special, ins, outs, []))
    results = [value_of(place) for place in sought]
    wanted = set(results)
    for value, step in last.items():
        if value not in wanted:
            steps[step][3].append(value)
    return Bundle(len(places), given, steps, results)
