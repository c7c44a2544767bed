"""Tables of steps, as the code of the runner reads them.

A step is a compiled function (its address), its arguments (addresses and integers, see `compiler/kernel/ir.py`) and how
many units of work it has.
"""
from __future__ import annotations

from array import array
from collections.abc import Sequence

WORD, HEAD, ROW = 8, 4, 4  # bytes of a word; words before the rows of a table; words of a row
TAKES = 1024  # pieces into which a step's units are divided at most: with more units the grain grows


class StepTable:
    """Steps as native code takes them: words {rows*, steps, scratch, stride}, then the rows {function, arguments*,
    units, grain}, then the arguments, in one piece of memory at `address`.

    Thread i of `runner.num_threads()` uses the scratch memory at scratch + i * stride; both should be multiples of 64.
    """

    def __init__(self, steps: Sequence[tuple[int, Sequence[int], int]], scratch: int = 0, stride: int = 0):
        self.scratch, self.stride = scratch, stride
        self.shared = any(units > 1 for _, _, units in steps)  # whether there is work for more than one thread
        first = HEAD + ROW * len(steps)
        words, arguments = [WORD * HEAD, len(steps), scratch, stride], list[int]()
        self._firsts: list[int] = []  # for each row, the word of its first argument
        for address, given, units in steps:
            self._firsts.append(first + len(arguments))
            words += (address, WORD * (first + len(arguments)), units, max(1, -(-units // TAKES)))
            arguments += given
        self.words = array("q", words + arguments)
        self.address: int = self.words.buffer_info()[0]
        for place in (0, *range(HEAD + 1, first, ROW)):  # pointers, up to here distances from the beginning
            self.words[place] += self.address

    def put(self, row: int, argument: int, address: int) -> None:
        """Put another address in the place of an argument of a row."""
        self.words[self._firsts[row] + argument] = address

    def lend(self, scratch: int) -> None:
        """Have other scratch memory, of the same stride."""
        self.words[2] = scratch

    def rows(self) -> list[list[int]]:
        """(function, arguments*, units, grain) of each step."""
        words = self.words[HEAD:HEAD + ROW * self.words[1]].tolist()
        return [words[i:i + ROW] for i in range(0, len(words), ROW)]
