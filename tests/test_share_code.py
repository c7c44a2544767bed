"""Numbers as arguments: kernels that differ in them alone have one code, and compute the same bits."""
from __future__ import annotations

import numpy as np
import pytest

from mxc.compiler.graph.phases import FORWARD
from mxc.compiler.kernel import interpret
from mxc.compiler.kernel.ir import LoopKernel, Store, apply, axis, const, load
from mxc.compiler.kernel.text import code_text
from mxc.compiler.lowering.launches import Launch, Storage
from mxc.compiler.lowering.share_code import ALIKE, share_code

NUMBERS = {"float32": [0.1, -2.5, 3.0, float("inf"), float("nan"), -0.0, 1e-42, 7.0],
           "float64": [0.1, -2.5, 3.0, float("-inf"), float("nan"), -0.0, 1e-310, 7.0],
           "int32": [2, 3, -1, 2**31 - 1, -2**31, 5, 6, 7], "int64": [2, 3, -1, 2**62, -2**63, 5, 6, 7]}


def launches(dtype: str, numbers: list, op: str = "add") -> list[Launch]:
    made = []
    for number in numbers:
        value = apply(op, load(0, axis(0), dtype), const(number, dtype))
        kernel = LoopKernel("k", (dtype, dtype), (4,), (), (), (Store(1, axis(0), value),))
        made.append(Launch(FORWARD, "k", kernel, [Storage("argument", dtype, (4,)), Storage("output", dtype, (4,))]))
    return made


@pytest.mark.parametrize("dtype", NUMBERS)
def test_one_code_and_the_same_bits(dtype):
    given = launches(dtype, NUMBERS[dtype])
    shared = share_code(given)
    assert len({code_text(each.kernel) for each in given}) == ALIKE
    assert len({code_text(each.kernel) for each in shared}) == 1
    for before, after in zip(given, shared, strict=True):
        data, (old, new) = np.array([1, 2, 0, -3], dtype), np.zeros((2, 4), dtype)
        with np.errstate(all="ignore"):
            interpret.run(before.kernel, [data, old])
            interpret.run(after.kernel, [data, new])
        assert old.tobytes() == new.tobytes()
        assert after.storages == before.storages and after.reads == before.reads and after.writes == before.writes


def test_few_kernels_keep_their_numbers():
    given = launches("float32", NUMBERS["float32"][1:])
    assert share_code(given) == given
    others = [*launches("float32", NUMBERS["float32"][:4]), *launches("float32", NUMBERS["float32"][:4], "mul")]
    assert share_code(others) == others


def test_the_same_kernel_often_is_no_reason():
    given = launches("float32", [2.5] * 20)
    assert share_code(given) == given
