"""docs/walk-through.md shows what is printed."""
from __future__ import annotations

import re

import walk_through


def test_every_block_is_what_is_printed_now():
    text = walk_through.DOCUMENT.read_text()
    assert text.count("<!-- printed:") == len(walk_through.parts(text))
    assert walk_through.written(text) == text, "python tests/walk_through.py --write"


def test_every_pass_that_changes_a_graph_is_shown():
    shown = walk_through.parts(walk_through.DOCUMENT.read_text())
    for name, walk in walk_through.walks().items():
        changing = [each for each, (before, after) in walk.passes.items() if before != after]
        assert [part for graph, part in shown if graph == name and part in walk.passes] == changing


def test_numbers_in_the_prose_are_those_of_the_blocks():
    text = walk_through.DOCUMENT.read_text()
    arena, unplanned = re.findall(r"arena of ([\d,]+) bytes instead of ([\d,]+)", text)[0]
    plan = walk_through.walks()["conv"].part("plan")
    assert f"arena {arena.replace(',', '')} (" in plan and f"unplanned {unplanned.replace(',', '')})" in plan
