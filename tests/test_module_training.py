"""Training by modules, step by step as MXNet 1.9.1 does it: tests/golden/modules.py has the programs."""
import json

import numpy as np
import pytest
from golden import modules

import mxc as mx

ANSWERS = json.loads(modules.PATH.read_text())
CLOSE = 1e-4


def differences(found, wanted, place=""):
    """Where two nested values differ; numbers may by CLOSE."""
    if isinstance(wanted, dict) and isinstance(found, dict) and found.keys() == wanted.keys():
        return [d for key in wanted for d in differences(found[key], wanted[key], f"{place}/{key}")]
    if isinstance(wanted, list) and isinstance(found, (list, tuple)) and len(found) == len(wanted):
        return [d for i, pair in enumerate(zip(found, wanted, strict=True)) for d in differences(*pair, f"{place}/{i}")]
    same = np.isclose(found, wanted, CLOSE, CLOSE) if isinstance(wanted, float) else found == wanted
    return [] if same else [f"{place}: {found!r}, MXNet {wanted!r}"]


@pytest.mark.parametrize("name", modules.CASES)
def test_it_trains_as_mxnet(name: str) -> None:
    assert differences(modules.answers(mx, name), ANSWERS[name]) == []


def test_a_checkpoint_of_mxnets_is_read_and_trained_on() -> None:
    found = modules.loaded(mx, "lenet", str(modules.CHECKPOINT))
    assert differences(found, ANSWERS["resumed lenet"]["resumed"]) == []


def test_the_questions_are_those_that_mxnet_answered() -> None:
    assert list(ANSWERS) == list(modules.CASES)
