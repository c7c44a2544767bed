"""docs/operators.md has every operator as it is, and says of every operator of MXNet's where it is."""
from __future__ import annotations

import json

import pytest
from operators_page import BRIDGES, DOCUMENT, ELSEWHERE, LEFT_OUT, users_operators, written
from test_table import REGISTRY

from mxc.compiler.ops import table


def test_the_page_is_as_it_is_written() -> None:
    """`python tests/operators_page.py --write` makes it so."""
    pytest.importorskip("numba_cuda")
    text = DOCUMENT.read_text()
    assert written(text) == text


def test_the_page_has_every_operator_once() -> None:
    rows = [line.split("`")[1] for line in DOCUMENT.read_text().splitlines() if line.startswith("| `")]
    assert sorted(rows) == sorted(op.name for op in users_operators())


def test_what_is_not_in_the_table_has_a_reason() -> None:
    assert not any(table.has(name) for name in (*ELSEWHERE, *LEFT_OUT, *BRIDGES))
    assert not ELSEWHERE.keys() & LEFT_OUT.keys()


@pytest.mark.skipif(not REGISTRY.exists(), reason="the facts about MXNet's registry are not there")
def test_every_operator_of_mxnet_is_on_the_page() -> None:
    names = json.loads(REGISTRY.read_text())
    assert {name for name in names if not table.has(name)} == {*ELSEWHERE, *LEFT_OUT}
