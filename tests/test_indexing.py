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
# MXNet's classes that say nothing of the key are MXNetError here.
CLASSES = {**vars(builtins), **dict.fromkeys(("AssertionError", "AttributeError", "MXNetError"), MXNetError)}
OTHERS = {  # refused here for a plainer reason
    "z[[0]]": IndexError, "a[0:0][[0]]": IndexError, "a[nd.array([1],dtype='bool')] = 1": ValueError,
    **dict.fromkeys((f"nd.indexing_key_expand_implicit_axes((nd.array(A[0]>3,dtype='bool'){t},),(2,3,4))"
                     for t in ("", ".T")), ValueError)}


def test_every_case_is_recorded():
    assert list(REAL) == make_indexing.CASES and len(REAL) > 700


@pytest.mark.parametrize("case", [c for c in REAL if "error" not in REAL[c]])
def test_selects_what_mxnet_selects(case):
    assert make_indexing.answer(mx, case) == REAL[case]


@pytest.mark.parametrize("case", [c for c in REAL if "error" in REAL[c]])
def test_refuses_what_mxnet_refuses(case):
    names = make_indexing.arrays(mx)
    with pytest.raises(OTHERS.get(case) or CLASSES[REAL[case]["error"][0]]):
        (exec if "] = " in case else eval)(case, names)
