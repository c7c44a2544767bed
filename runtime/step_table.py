"""Tables of steps, as the code of the runner reads them.

A step is a compiled function (its address), its arguments (addresses and integers, see `compiler/kernel/ir.py`) and how
many units of work it has. A row without a function is a turn: it tells which row comes next.
"""
from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from typing import NamedTuple

WORD, HEAD, ROW = 8, 4, 4  # bytes of a word; words before the rows of a table; words of a row
TAKES = 1024  # pieces into which a step's units are divided at most: with more units the grain grows


class Branch(NamedTuple):
    """A turn that goes to the row `target` where the int32 at the address `flag` is 0."""

    flag: int
    target: int


class Advance(NamedTuple):
    """A turn at the end of a loop's round: it adds to words, and goes back to the row `target` until this was the round
    number `length`. moves: arguments of rows, as (row, argument, by how much). counts: int64 numbers in memory, as
    (address, by how much)."""

    target: int
    length: int
    moves: Sequence[tuple[int, int, int]]
    counts: Sequence[tuple[int, int]] = ()


class Reset(NamedTuple):
    """A turn behind a loop: it takes back what the turn in the row `advance` has added."""

    advance: int


Turn = Branch | Advance | Reset
BRANCH, ADVANCE, RESET = range(3)  # the first word of a turn's arguments


class StepTable:
    """Steps as native code takes them: words {rows*, steps, scratch, stride}, then the rows {function, arguments*,
    units, grain}, then the arguments, in one piece of memory at `address`. The arguments of turns are the words
    {BRANCH, flag*, target}, {ADVANCE, rounds that have ended, length, target, number of words to add to, and for each
    of these the word* and what is added}, {RESET, arguments of the other turn*}.

    Thread i of `runner.num_threads()` uses the scratch memory at scratch + i * stride; both should be multiples of 64.
    """

    def __init__(self, steps: Sequence[tuple[int, Sequence[int] | Turn, int]], scratch: int = 0, stride: int = 0):
        self.scratch, self.stride = scratch, stride
        self.shared = any(units > 1 for _, _, units in steps)  # whether there is work for more than one thread
        first = HEAD + ROW * len(steps)
        words, arguments = [WORD * HEAD, len(steps), scratch, stride], list[int]()
        self._firsts: list[int] = []  # for each row, the word of its first argument
        pointers = [0, *range(HEAD + 1, first, ROW)]  # words that are, for now, distances from the beginning
        for address, given, units in steps:
            start = first + len(arguments)
            self._firsts.append(start)
            words += (address, WORD * start, units, max(1, -(-units // TAKES)))
            if isinstance(given, Turn):
                arguments += self._turn(given, start, pointers)
            else:
                arguments += given
        self.words = array("q", words + arguments)
        self.address: int = self.words.buffer_info()[0]
        for place in pointers:
            self.words[place] += self.address

    def _turn(self, turn: Turn, start: int, pointers: list[int]) -> list[int]:
        """The arguments of a turn, which begin at the word `start`."""
        if isinstance(turn, Branch):
            return [BRANCH, *turn]
        if isinstance(turn, Reset):
            pointers.append(start + 1)
            return [RESET, WORD * self._firsts[turn.advance]]
        words = [ADVANCE, 0, turn.length, turn.target, len(turn.moves) + len(turn.counts)]
        for row, argument, step in turn.moves:
            pointers.append(start + len(words))
            words += (WORD * (self._firsts[row] + argument), step)
        for address, step in turn.counts:
            words += (address, step)
        return words

    def put(self, row: int, argument: int, address: int) -> None:
        """Put another address in the place of an argument of a row."""
        self.words[self._firsts[row] + argument] = address

    def lend(self, scratch: int) -> None:
        """Have other scratch memory, of the same stride."""
        self.scratch = self.words[2] = scratch

    def rows(self) -> list[list[int]]:
        """(function, arguments*, units, grain) of each step."""
        words = self.words[HEAD:HEAD + ROW * self.words[1]].tolist()
        return [words[i:i + ROW] for i in range(0, len(words), ROW)]

    def turned(self, row: int) -> int:
        """Do what the turn in a row says; the row that comes next."""
        words, start = self.words, self._firsts[row]
        if words[start] == BRANCH:
            return words[start + 2] if ctypes.c_int32.from_address(words[start + 1]).value == 0 else row + 1
        if words[start] == ADVANCE:
            self._move(start, 1)
            words[start + 1] += 1
            return words[start + 3] if words[start + 1] < words[start + 2] else row + 1
        start = (words[start + 1] - self.address) // WORD
        self._move(start, -words[start + 1])
        words[start + 1] = 0
        return row + 1

    def _move(self, start: int, times: int) -> None:
        """Add to the words of an Advance, whose arguments begin at the word `start`, so often what it adds."""
        for place in range(start + 5, start + 5 + 2 * self.words[start + 4], 2):
            ctypes.c_int64.from_address(self.words[place]).value += times * self.words[place + 1]
