"""`mx.operator.get_operator_arguments` tells what MXNet 1.9.1 tells (golden/operator_arguments.json)."""
import json
import re
from pathlib import Path

import pytest
from golden import make_operator_arguments

import mxc as mx

REAL = json.loads((Path(__file__).parent / "golden" / "operator_arguments.json").read_text())


def plain(kind):
    """A type without what MXNet tells only of some integers."""
    kind = kind.replace("long", "int").replace(" (non-negative)", "")
    kind = kind.replace("'None', ", "None, ")
    return re.sub(r"^(int.*default=)'?([-\w]+)'?$", r"\1\2", kind)


def test_every_operator_is_recorded():
    assert list(REAL) == make_operator_arguments.CASES


@pytest.mark.parametrize("name", REAL)
def test_arguments_are_mxnets(name):
    found, real = make_operator_arguments.answer(mx, name), REAL[name]
    if name in ("nope", "_mxc_key"):
        assert found == real == "refused"
        return
    assert found[:2] == real[:2]
    assert [plain(kind) for kind in found[2]] == [plain(kind) for kind in real[2]]


def test_what_the_compiler_alone_makes_is_not_listed():
    names = mx.operator.get_all_registered_operators()
    assert names == sorted(set(names)) and {"Custom", "Concat", "concat", "_plus"} <= set(names)
    assert not [name for name in names if name.startswith("_mxc_")]
    assert all(mx.operator.get_operator_arguments(name).narg >= 0 for name in names)
