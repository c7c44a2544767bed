"""What went wrong for users of MXNet: symbols. Each test's name begins with its report."""
import re

import pytest

import mxc as mx
from mxc.compiler.error import MXNetError


def _dense(x):
    return mx.sym.FullyConnected(x, num_hidden=3, name="wide")


def _convolution(x):
    return mx.sym.Convolution(x, kernel=(3, 3), num_filter=4, name="filters")


def _joined(x):
    return mx.sym.Concat(x, mx.sym.Variable("other"), dim=1, name="joined")


@pytest.mark.parametrize("make, given, parts", [
    (_dense, {"data": (2, 5), "wide_weight": (3, 4)},
     ["FullyConnected 'wide'", r"\(3, 5\) and \(3, 4\)", r"data \(data\) = \(2, 5\)",
      r"weight \(wide_weight\) = \(3, 4\)", r"bias \(wide_bias\)"]),
    (_convolution, {"data": (2, 3, 8, 8), "filters_weight": (4, 2, 3, 3)},
     ["Convolution 'filters'", r"\(4, 3, 3, 3\) and \(4, 2, 3, 3\)", r"data \(data\) = \(2, 3, 8, 8\)",
      r"weight \(filters_weight\) = \(4, 2, 3, 3\)"]),
    (_joined, {"data": (2, 3, 4), "other": (2, 3, 5)},
     ["Concat 'joined'", r"arg0 \(data\) = \(2, 3, 4\)", r"arg1 \(other\) = \(2, 3, 5\)"]),
])
@pytest.mark.parametrize("bind", [False, True])
def test_s03_a_shape_that_does_not_fit_says_where(make, given, parts, bind):
    """Operator, node, each input's name and shape, what was expected, and what was given, in a deep graph."""
    symbol = make(mx.sym.Variable("data"))
    for i in range(20):
        symbol = mx.sym.relu(symbol, name=f"r{i}")
    with pytest.raises(MXNetError) as caught:
        symbol.simple_bind(mx.cpu(), **given) if bind else symbol.infer_shape(**given)
    text = str(caught.value)
    for part in parts:
        assert re.search(part, text), text
    listed = text.partition("given shapes:")[2].splitlines()
    assert [line.strip() for line in listed if line.strip()] == [f"{name}: {shape}" for name, shape in given.items()]
