"""What is in force in a thread is read and set as in MXNet 1.9.1 (golden/scopes.json)."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
from golden import scopes

import mxc as mx

REAL = json.loads((Path(__file__).parent / "golden" / "scopes.json").read_text())


@pytest.mark.parametrize("name", scopes.CALLS)
def test_as_in_mxnet(name: str) -> None:
    assert scopes.answer(mx, scopes.CALLS[name]) == REAL[name]


def test_what_is_no_device_is_refused() -> None:
    with pytest.warns(DeprecationWarning, match="default_ctx"), pytest.raises(KeyError, match="no device type 'here'"):
        mx.Context.default_ctx = "here"
    with pytest.raises(AttributeError, match="only `value`"):
        mx.Context._default_ctx.other  # noqa: B018
    assert mx.current_context() == mx.cpu()


def test_a_device_may_be_entered_again() -> None:
    device = mx.cpu(3)  # in MXNet it stays the current one afterwards
    with device, mx.cpu(4), device:
        pass
    assert mx.current_context() == mx.cpu(0)
