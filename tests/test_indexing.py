"""Indexing of arrays does what MXNet 1.9.1 does (golden/indexing.json): values, shapes, shared memory, refusals."""
import builtins
import json
import sys
from pathlib import Path

import pytest

import mxc as mx
from mxc.compiler.error import MXNetError

GOLDEN = Path(__file__).parent / "golden"
sys.path.insert(0, str(GOLDEN))
import make_indexing  # noqa: E402

REAL = json.loads((GOLDEN / "indexing.json").read_text())
ACCIDENTS = {"AssertionError", "AttributeError"}  # classes of MXNet's refusals that say nothing of the key


def test_every_case_is_recorded():
    assert list(REAL) == make_indexing.CASES and len(REAL) > 700


@pytest.mark.parametrize("case", [c for c in REAL if "error" not in REAL[c]])
def test_selects_what_mxnet_selects(case):
    assert make_indexing.answer(mx, case) == REAL[case]


@pytest.mark.parametrize("case", [c for c in REAL if "error" in REAL[c]])
def test_refuses_what_mxnet_refuses(case):
    name = REAL[case]["error"][0]
    expected = MXNetError if name in ACCIDENTS | {"MXNetError"} else getattr(builtins, name)
    names = make_indexing.arrays(mx)
    with pytest.raises(expected):
        (exec if "] = " in case else eval)(case, names)
