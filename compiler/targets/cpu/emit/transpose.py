"""The transposition of a square of vectors by shuffles."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mxc.compiler.targets.cpu.emit.builder import Builder, Value

SHUFFLED = 16  # bytes within which one instruction interleaves elements


def transposed(b: Builder, rows: Sequence[Value], width: int) -> list[Value]:
    """A square of as many vectors as they have lanes, transposed: first within the 128 bits that one instruction
    interleaves, then by swapping ever smaller blocks of these. width: bytes of an element."""
    lines, lanes = list(rows), len(rows)
    part = min(lanes, SHUFFLED // width)
    order, size = [0], 1
    while size < part:
        for i in range(lanes):
            if not i & size:
                x, y = lines[i], lines[i + size]
                blocks = [[p + at + k for k in range(size)] for p in range(0, lanes, part)
                          for at in range(0, part, size)]
                half = part // size // 2
                picks: list[list[int]] = [[], []]
                for n, block in enumerate(blocks):
                    picks[n // half % 2] += [*block, *(k + lanes for k in block)]
                lines[i], lines[i + size] = (b.shuffle(x, y, p) for p in picks)
        order, size = [2 * k for k in order] + [2 * k + 1 for k in order], 2 * size
    lines = [lines[i - i % part + order[i % part]] for i in range(lanes)]
    size = lanes // 2
    while size >= part:
        for i in range(lanes):
            if not i & size:
                x, y = lines[i], lines[i + size]
                upper = [lane + lanes - size if lane & size else lane for lane in range(lanes)]
                lower = [lane + lanes if lane & size else lane + size for lane in range(lanes)]
                lines[i], lines[i + size] = b.shuffle(x, y, upper), b.shuffle(x, y, lower)
        size //= 2
    return lines
