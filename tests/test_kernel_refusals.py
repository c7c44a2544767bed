"""What is refused of operators that are functions over whole arrays: each an error that quotes a line."""
from __future__ import annotations

import itertools

import numpy as np
import pytest

import mxc as mx
from mxc.base import MXNetError

numbers = itertools.count()


def refused(function, message: str, line: str, name: str = "", **rules) -> None:
    """Registering it, or else calling it on 3 x 4 numbers, raises an error with the message that quotes the line."""
    name = name or f"t_wrong{next(numbers)}"
    with pytest.raises(MXNetError) as caught:
        mx.operator.kernel(name, **rules)(function)
        getattr(mx.nd, name)(mx.nd.ones((3, 4))).wait_to_read()
    text = str(caught.value)
    assert message in text and f"\n    {line}" in text, text


@mx.operator.kernel("t_taken")
def nothing(x, out):
    out[0, 0] = 1


HEAD = "def nothing(x, out):"


@pytest.mark.parametrize("rules, message", [
    ({"shapes": lambda x: (x[0], -1)}, "gives (3, -1); expected extents that are not negative"),
    ({"shapes": lambda x: (x[0], 1.5)}, "gives (3, 1.5); expected a tuple of integers"),
    ({"shapes": lambda x: 3}, "gives 3; expected a tuple of integers"),
    ({"shapes": lambda x: [(1,), (2,)]}, "gives 2 shapes, [(1,), (2,)]; the function has 1 outputs (out)"),
    ({"shapes": lambda x: x[7]}, "of (3, 4) raises IndexError"),
    ({"shapes": lambda x, y: x}, "takes 2 inputs, so the parameters behind the first 2 are outputs"),
    ({"shapes": lambda *x: x}, "* or ** parameters"),
    ({"shapes": lambda x, *, power: x}, "has the parameter power, which the function has not"),
    ({"shapes": "x"}, "shapes= is 'x'; expected a function"),
    ({"dtypes": lambda x: "float33"}, "gives 'float33'; expected one of bfloat16, bool, float16"),
    ({"dtypes": lambda x: ["int32"] * 2}, "gives 2 dtypes"),
    ({"dtypes": lambda x, y: x}, "dtypes= takes 2 inputs; expected 1"),
])
def test_rules_that_do_not_fit(rules, message):
    refused(nothing, message, HEAD, **rules)


def test_names():
    refused(nothing, "there is an operator of this name already", HEAD, name="relu")
    def other(x, out):
        pass

    refused(other, f"there is an operator of this name already ({__file__}, line", "def other(x, out):", name="t_taken")
    for name in ("a b", "", "_private", "for"):
        with pytest.raises(MXNetError, match="an operator cannot be called"):
            mx.operator.kernel(name)(nothing)
    for name in ("array", "Variable"):
        with pytest.raises(MXNetError, match=rf"there is mx.(nd|sym).{name} already"):
            mx.operator.kernel(name)(nothing)


def test_shape_rules_that_lie():
    def beyond(x, out):
        for i in range(x.shape[0] + 1):
            out[i, 0] = x[0, 0]

    def axes(x, out):
        out[0, 0, 0] = x[0, 0]

    refused(beyond, "an index is out of bounds (x has the shape (3, 4), out has", "out[i, 0] = x[0, 0]")
    def axes_of_another_name(x, out):
        row = out
        row[0, 0, 0] = x[0, 0]

    refused(axes, "out is read or written at 3 indices; its shape is (3, 4)", "out[0, 0, 0] = x[0, 0]")
    with pytest.raises(MXNetError, match="3 indices"):  # with shapes alone
        mx.operator.kernel("t_axes")(axes)
        mx.sym.t_axes(mx.sym.Variable("x")).infer_shape(x=(3, 4))
    refused(axes_of_another_name, "an array of 2 axes is read or written at 3 indices", "row[0, 0, 0] = x[0, 0]")


def test_functions_that_cannot_be_kernels():
    def returns(x, out):
        return x[0, 0]

    def writes(x, out):
        x[0, 0] = 1

    def writes_a_row(x, out):
        row = x[0]
        row[0] = 1

    def text(x, out):
        out[0, 0] = "a"

    def prints(x, out):
        print(x[0, 0])

    def makes(x, out):
        work = np.zeros(3)
        out[0, 0] = work[0]

    def draws(x, out):
        out[0, 0] = np.random.rand()

    def multiplies(x, out):
        out[0, 0] = np.dot(x[0], x[1])

    def lists(x, out):
        work = [1.0, 2.0]
        out[0, 0] = work[0]

    def method(x, out):
        out[0, 0] = x.mean_of_all()

    def computed(x, out):
        raise ValueError("it is", x[0, 0])

    def generates(x, out):
        yield x

    refused(returns, "it returns a value", "return x[0, 0]")
    refused(writes, "it writes to x, an input", "x[0, 0] = 1")
    refused(writes_a_row, "read only: an input", "row[0] = 1")
    refused(text, "no compiled form of setitem", 'out[0, 0] = "a"')
    refused(prints, "print cannot be compiled", "print(x[0, 0])")
    refused(makes, "numpy.zeros cannot be compiled", "work = np.zeros(3)")
    refused(draws, "numpy.random cannot be compiled", "out[0, 0] = np.random.rand()")
    refused(multiplies, "numpy.dot cannot be compiled", "out[0, 0] = np.dot(x[0], x[1])")
    refused(lists, "it makes an array, a list", "work = [1.0, 2.0]")
    refused(method, ".mean_of_all cannot be compiled", "out[0, 0] = x.mean_of_all()")
    refused(computed, "arguments are computed", 'raise ValueError("it is", x[0, 0])')
    refused(generates, "it is a generator", "yield x")

    async def waits(x, out):
        pass

    with pytest.raises(MXNetError, match="asynchronous"):
        mx.operator.kernel("t_waits")(waits)


def of_two(x, *, y):
    return x * y


def test_what_numba_says_is_told_shortly():
    def unpacks(x, out):
        first, *others = x[0, 0], x[0, 1]
        out[0, 0] = first + len(others)

    def names(x, out):
        out[0, 0] = (y := x[0, 0]) + y

    def handles(x, out):
        try:
            out[0, 0] = x[0, 9]
        except Exception:
            out[0, 0] = 1

    def raises_again(x, out):
        raise

    def too_few(x, out):
        out[0, 0] = of_two(x[0, 0])

    def keyword(x, out):
        out[0, 0] = round(x[0, 0], ndigits=1)

    refused(unpacks, "it unpacks with *", "first, *others = ")
    refused(names, "it assigns within an expression", "out[0, 0] = (y :=")
    refused(handles, "it handles errors", "try:")
    refused(raises_again, "expected `raise` and an error alone", "raise")
    refused(too_few, "a function with the parameters (x, y) is called with others: missing", "")
    refused(keyword, "Keyword arguments", "def keyword(x, out):")


def test_chains_that_are_too_long(tmp_path):
    text = "def chain(x, out):\n    if x[0, 0] < 0:\n        out[0, 0] = 1\n"
    text += "".join(f"    elif x[0, 0] < {i}:\n        out[0, 0] = {i}\n" for i in range(400))
    path, space = tmp_path / "chain.py", {}
    path.write_text(text)
    exec(compile(text, str(path), "exec"), space)
    with pytest.raises(MXNetError, match="t_chain: its function is nested too deeply"):
        mx.operator.kernel("t_chain")(space["chain"])


def test_gradients_that_do_not_fit():
    def unknown(x, grad_z):
        pass

    def none(x, grad_out):
        pass

    def parameter(x, grad_x, *, power):
        pass

    def writes(grad_out, grad_x):
        grad_out[0, 0] = 1

    refused(nothing, "it has the parameter grad_z; did you mean 'grad_x'?", "def unknown(x, grad_z):", gradient=unknown)
    refused(nothing, "it writes no gradient; expected parameters among grad_x", "def none(x, grad_out):", gradient=none)
    refused(nothing, "it has the parameter power", "def parameter(x, grad_x, *, power):", gradient=parameter)
    refused(nothing, "it writes to grad_out, an input", "grad_out[0, 0] = 1", gradient=writes)


def test_backward_without_a_gradient_names_the_argument():
    x = mx.nd.ones((3, 4))
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.t_taken(x)
    with pytest.raises(MXNetError, match=r"t_taken.*gradient=FUNCTION"):
        y.backward()


