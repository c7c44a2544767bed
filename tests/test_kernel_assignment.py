"""Names that may have no value where a function reads them are refused; those that have one on every way are not."""
from __future__ import annotations

import ast
import inspect
import itertools
import textwrap

import numpy as np
import pytest

import mxc as mx
from mxc.base import MXNetError

numbers = itertools.count()
LEFT_OUT = '''
def branch(x, out):
    if x[0] > 100:
        b = 1.0
    out[0] = b
def loop(x, out):
    for i in range(x.shape[0]):
        b = x[i]
    out[0] = b
def behind_a_loop(x, out):
    for i in range(x.shape[0]):
        out[i] = 1
    out[0] = i
def loop_of_none(x, out):
    for i in range(2, 2):
        b = 1.0
    out[0] = b
def while_loop(x, out):
    n = 0
    while n < x[0]:
        n += 1
        b = 1.0
    out[0] = b
def one_way(x, out):
    if x[0] > 1:
        b = 1.0
    elif x[0] < 0:
        pass
    else:
        b = 2.0
    out[0] = b
def left_early(x, out):
    while True:
        if x[0] > 100:
            break
        b = 1.0
        if x[1] > 0:
            break
    out[0] = b
def before(x, out):
    out[0] = b
    b = 1.0
def in_place(x, out):
    b += 1
    out[0] = 0
def chosen(x, out):
    a = b if x[0] > 100 else 1.0
    out[0] = a
    b = 1.0
'''
GIVEN = '''
def branches(x, out):
    if x[0] > 100:
        b = 1.0
    elif x[0] > 0:
        b = 2.0
    else:
        raise ValueError("negative")
    out[0] = b
def known_loop(x, out):
    for i in range(3):
        b = x[i]
    out[0] = b + i
def endless(x, out):
    n = 0
    while True:
        n += 1
        b = n * 2.0
        if n > x[1]:
            break
    out[0] = b
def either(x, out):
    for i in range(x.shape[0]):
        if x[i] > 1:
            b = x[i]
            break
    else:
        b = -1.0
    out[0] = b
def left(x, out):
    if x[0] > 100:
        return
    else:
        b = 1.0
    out[0] = b
def within(x, out):
    for i in range(x.shape[0]):
        b = x[i]
        if b > 2:
            continue
        out[i] = b
'''


def functions(text: str, path) -> list:
    path.write_text(text)
    space: dict = {}
    exec(compile(text, str(path), "exec"), space)
    return [value for value in space.values() if inspect.isfunction(value)]


def test_names_without_a_value(tmp_path):
    found = functions(LEFT_OUT, tmp_path / "left_out.py")
    assert len(found) == 10
    for function in found:
        with pytest.raises(MXNetError, match="may have no value here") as caught:
            mx.operator.kernel(f"t_assigned{next(numbers)}")(function)
        name = "i" if function.__name__ == "behind_a_loop" else "b"
        quoted = ast.parse(textwrap.dedent(str(caught.value).splitlines()[1]))
        assert f": {name} may have no value" in str(caught.value)
        assert name in [n.id for n in ast.walk(quoted) if isinstance(n, ast.Name)]


def test_names_with_a_value(tmp_path):
    x = np.array([1, 2, 3], np.float32)
    for function in functions(GIVEN, tmp_path / "given.py"):
        name = f"t_assigned{next(numbers)}"
        mx.operator.kernel(name)(function)
        wanted = np.zeros(3, np.float32)
        function(x, wanted)
        np.testing.assert_array_equal(getattr(mx.nd, name)(mx.nd.array(x)).asnumpy(), wanted)


def test_functions_that_are_called():
    def chosen(x):
        if x > 0:
            b = x
        return b

    def calls(x, out):
        out[0] = chosen(x[0])

    with pytest.raises(MXNetError, match=r"function chosen .*: b may have no value here"):
        mx.operator.kernel("t_assigned_called")(calls)
