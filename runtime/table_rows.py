"""The rows of a table: of kernels, and of loops, whose rounds run the same rows again with addresses that move on.

A loop's rows, after those of its steps that run once:

    first:   rows that make the flag; a turn: where that is 0, to `behind`, or only to `advance`
             rows of the round
    advance: a turn that moves addresses on and goes to `first`, until the last round
    behind:  a turn that moves the addresses back
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from mxc.compiler.plan import Loop, Step
from mxc.runtime.step_table import Advance, Branch, Reset, Turn


class Place(NamedTuple):
    """Where a buffer is. address: in the first round of all loops. position: of the plan's buffer that it is a part of;
    offset: from the beginning of that one. moves: by how much it moves on in the rounds of which loops."""

    address: int
    position: int
    offset: int = 0
    moves: tuple[tuple[int, int], ...] = ()


Find = Callable[[int], Place]  # of the position of a buffer


class TableRows:
    """Collects the rows of a table.

    address: of a kernel's code, by its key. watched: the positions of buffers that may be at other addresses later;
    `words` has for each where it is read: rows, their arguments, and what is added to the buffer's address.
    """

    def __init__(self, address: Callable[[str], int], watched: Collection[int] = ()):
        self._address, self._watched, self._loops = address, watched, 0
        self.rows: list[tuple[int, Sequence[int] | Turn, int]] = []
        self.words: list[tuple[int, int, int, int]] = []  # position, row, argument, offset
        self._moves: dict[int, list[tuple[int, int, int]]] = {}  # of each loop

    def add(self, steps: Sequence[Step], find: Find) -> None:
        """Append the rows of steps, whose buffers `find` finds."""
        for step in steps:
            if step.loop is not None:
                self._loop(step, step.loop, find)
                continue
            places = list(map(find, step.buffers))
            for argument, place in enumerate(places):
                if place.position in self._watched:
                    self.words.append((place.position, len(self.rows), argument, place.offset))
                for loop, move in place.moves:
                    self._moves[loop].append((len(self.rows), argument, move))
            self.rows.append((self._address(step.kernel), [*(p.address for p in places), *step.numbers(self._address)],
                              step.units))

    def _loop(self, step: Step, loop: Loop, find: Find) -> None:
        number = self._loops
        self._loops += 1
        self._moves[number] = []
        memory, plan = find(step.buffers[-1]), loop.plan

        def inner(position: int) -> Place:
            buffer, move = plan.buffers[position], loop.moves[position]
            outer = find(step.buffers[int(buffer.name)]) if buffer.pool == "outside" else memory
            moves = (*outer.moves, (number, move)) if move else outer.moves
            return Place(outer.address + buffer.offset, outer.position, outer.offset + buffer.offset, moves)

        begun = loop.once + loop.tests
        self.add(plan.steps[:loop.once], inner)
        first = len(self.rows)
        self.add(plan.steps[loop.once:begun], inner)
        turn = len(self.rows)
        if loop.flag >= 0:
            self.rows.append((0, Branch(0, 0), 1))
        self.add(plan.steps[begun:], inner)
        advance = len(self.rows)
        counts = [(inner(position).address + byte, by) for position, byte, by in loop.counts]
        self.rows.append((0, Advance(first, loop.length, self._moves[number], counts), 1))
        self.rows.append((0, Reset(advance), 1))
        if loop.flag >= 0:
            self.rows[turn] = 0, Branch(inner(loop.flag).address, advance + 1 if loop.stops else advance), 1
