"""Functions over whole arrays reach no memory but their arrays': what is not known to be safe is refused, the rest is
checked, whatever Numba and Python are told in their settings."""
from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import mxc as mx
from mxc.base import MXNetError

numbers = itertools.count()


def run(function) -> np.ndarray:
    """The operator on 3 x 4 numbers and 4 integers, of which one is beyond all of the arrays."""
    name = f"t_memory{next(numbers)}"
    mx.operator.kernel(name, shapes=lambda x, i: x, dtypes=lambda x, i: x)(function)
    places = mx.nd.array([1, 2, 400, 0], dtype="int64")
    return getattr(mx.nd, name)(mx.nd.arange(12).reshape((3, 4)), places).asnumpy()


def refused(function, message: str) -> None:
    with pytest.raises(MXNetError) as caught:
        run(function)
    assert message in str(caught.value)


def test_ways_to_memory_that_nobody_checks():
    def flat(x, i, out):
        out.flat[2**33] = 1

    def iterator(x, i, out):
        for value in np.nditer(x):
            value[()] = 1

    def strided(x, i, out):
        out[0, 0] = np.lib.stride_tricks.as_strided(x, (100,), (4,))[50]

    def other_dtype(x, i, out):
        out.view(np.float64)[0, 0] = 1

    def address(x, i, out):
        out[0, 0] = x.ctypes.data

    def method_of_a_function(x, i, out):
        np.add.at(out, i, 1)

    def shape(x, i, out):
        out.shape = (4, 3)

    for function, word in ((flat, ".flat"), (iterator, "numpy.nditer"), (strided, "numpy.lib"), (other_dtype, ".view"),
                           (address, ".ctypes"), (method_of_a_function, ".at")):
        refused(function, f"{word} cannot be compiled")
    refused(shape, "it sets .shape")


def test_numpy_writes_to_no_arrays():
    def plain(x, i, out):
        np.add(x[0, :1], x[0, :1], out[0])

    def by_another_name(x, i, out):
        function = np.minimum
        function(x[0, :1], x[0, :1], out[0])

    refused(plain, "it calls add with arrays")
    refused(by_another_name, "it calls minimum with arrays")


def test_arrays_as_indices():
    def writes(x, i, out):
        out[0, i] = 1

    def reads(x, i, out):
        out[0, 0] = x[i][0, 0]

    def mask(x, i, out):
        out[0, i > 0] = 1

    for function in (writes, reads, mask):
        refused(function, "an array is an index")


def first(x, out):
    out[0, 0] = x[0, 4]


def second(x, out):
    out[0, 0] = x[3, 0]


def test_functions_that_are_called_have_checks():
    def by_name(x, i, out):
        first(x, out)

    def by_a_variable(x, i, out):
        function = first if x[0, 0] > 0 else second
        function(x, out)

    refused(by_name, "an index is out of bounds")
    refused(by_a_variable, "by way of a variable")


def test_whole_arrays_are_changed_by_ones_that_fit():
    def grow(x, i, out):
        out += x
        out[1:] *= 2
        out[1] += x[0]
        out += x[:, :1]

    def short(x, i, out):
        out[0] += x[1, :2]

    def wrong_axis(x, i, out):
        out[0, :3] += x[0]

    def too_many_axes(x, i, out):
        out[0] += x

    def reads_only(x, i, out):
        x += 1

    x = np.arange(12.0).reshape(3, 4)
    wanted = np.zeros((3, 4))
    grow(x, None, wanted)
    np.testing.assert_array_equal(run(grow), wanted)
    for function in (short, wrong_axis):
        refused(function, "it raised ValueError")
    refused(too_many_axes, "an array of 1 axes is changed by one of 2")
    refused(reads_only, "it writes to x, an input")


def test_indices_of_views():
    def row(x, i, out):
        out[1][4] = 1

    def stepped(x, i, out):
        out[0, ::2][2] = 1

    def turned(x, i, out):
        out.T[3, 3] = 1

    def before(x, i, out):
        out[:, 1:][0, -4] = 1

    def row_of_an_input(x, i, out):
        for line in x:
            line[0] = 1

    for function in (row, stepped, turned, before):
        refused(function, "an index is out of bounds")
    refused(row_of_an_input, "read only: an input")


def test_functions_of_arrays():
    def reads(x, i, out):
        row = x[1]
        out[0, 0], out[0, 1], out[0, 2], out[0, 3] = np.max(row), np.min(x[:, 1]), row.max(), row.argmin()
        out[1, 0], out[1, 1], out[1, 2], out[1, 3] = np.sum(x), x.mean(), np.std(row), np.nanmax(x[1:, 2])
        out[2, 0], out[2, 1], out[2, 2] = np.any(row), len(x) + x.size, math.sqrt(row[0]) + np.sqrt(row[1])
        out[2, 3] = np.searchsorted(row, 5.5)

    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    wanted = np.zeros((3, 4), np.float32)
    reads(x, None, wanted)
    np.testing.assert_allclose(run(reads), wanted, rtol=1e-6)


PROGRAM = textwrap.dedent('''
    import numpy as np
    import mxc as mx

    def grown(x, *, by=2.0, more):
        return x * by + more

    @mx.operator.kernel("placed")
    def placed(x, out):
        assert x[0] >= 0
        out[int(x[0])] = grown(x[1], more=np.max(x))

    for place in (2, 2**20, -1):
        try:
            print(mx.nd.placed(mx.nd.array([place, 3, 0])).asnumpy().tolist())
        except mx.MXNetError as error:
            print(str(error).splitlines()[0].partition(": its function ")[2].partition("): ")[2])
''')


@pytest.mark.parametrize("setting", ["NUMBA_BOUNDSCHECK=0", "NUMBA_DISABLE_JIT=1", "NUMBA_DEVELOPER_MODE=1",
                                     "PYTHONOPTIMIZE=1"])
def test_settings_change_nothing(setting, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    name, value = setting.split("=")
    environment = {**os.environ, "MXC_CACHE_DIR": str(tmp_path / "cache"), name: value}
    lines = subprocess.run([sys.executable, str(path)], env=environment, check=True, capture_output=True,
                           text=True).stdout.splitlines()
    assert lines == ["[0.0, 0.0, 9.0]", "an index is out of bounds (x has the shape (3,), out has the shape (3,))",
                     "it raised AssertionError"]
