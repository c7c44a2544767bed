"""Operators of a program's own that are defined again: cells that run again, modules that are loaded again."""
from __future__ import annotations

import importlib
import itertools
import linecache
import sys
import warnings

import pytest

import mxc as mx
from mxc.base import MXNetError

numbers = itertools.count()
KERNEL = '''
@mx.operator.kernel("NAME", shapes=lambda x: x)
def scaled(x, out, *, by=1.0):
    for i in range(x.shape[0]):
        out[i] = x[i] * by
'''
ELEMENTWISE = '''
@mx.operator.elementwise("NAME")
def scaled(x, *, by=1.0):
    return x * by
'''


def run(text: str) -> None:
    """Text as a notebook's cell runs it: in one module, each time as another file."""
    file = f"<cell {next(numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), {"mx": mx, "__name__": "__main__"})


@pytest.mark.parametrize("text, name", [(KERNEL, "t_cell"), (ELEMENTWISE, "t_formula_cell")])
def test_cells(text, name):
    text, x = text.replace("NAME", name), mx.nd.array([1, 2])

    def value(**parameters) -> list:
        return getattr(mx.nd, name)(x, **parameters).asnumpy().tolist()

    run(text)
    assert value(by=3) == [3, 6]
    symbol = getattr(mx.sym, name)(mx.sym.Variable("x"), by=2)
    bound = symbol.simple_bind(mx.cpu(), grad_req="null", x=(2,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(text)
    assert value(by=3) == [3, 6]
    with pytest.warns(UserWarning, match="another scaled takes the place of the one that was defined"):
        run(text.replace("by", "factor").replace(" * factor", " * factor + 1"))
    assert value(factor=3) == [4, 7]
    assert bound.forward(x=x)[0].asnumpy().tolist() == [2, 4]  # made before
    again = symbol.simple_bind(mx.cpu(), grad_req="null", x=(2,))
    assert again.forward(x=x)[0].asnumpy().tolist() == [2, 4]
    new = getattr(mx.sym, name)(mx.sym.Variable("x"), factor=2)
    assert new.simple_bind(mx.cpu(), grad_req="null", x=(2,)).forward(x=x)[0].asnumpy().tolist() == [3, 5]
    with pytest.raises(MXNetError, match="there is an operator of this name already"):
        run(text.replace("scaled", "other"))
    assert value(factor=3) == [4, 7]


def test_a_kernel_that_does_not_compile_can_be_mended():
    text = KERNEL.replace("NAME", "t_mended")
    run(text.replace("x[i] * by", "'a'"))
    with pytest.raises(MXNetError, match="cannot be compiled"):
        mx.nd.t_mended(mx.nd.ones((2,))).wait_to_read()
    with pytest.warns(UserWarning, match="takes the place"):
        run(text)
    assert mx.nd.t_mended(mx.nd.ones((2,))).asnumpy().tolist() == [1, 1]


def test_a_module_that_is_loaded_again(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    path, text = tmp_path / "again_module.py", "import mxc as mx\n" + KERNEL.replace("NAME", "t_loaded")
    path.write_text(text)
    module = importlib.import_module("again_module")
    path.write_text(text.replace("* by", "* by - 100"))
    linecache.checkcache()
    with pytest.warns(UserWarning, match=r"defined \(.*again_module.py, line"):
        importlib.reload(module)
    assert mx.nd.t_loaded(mx.nd.ones((2,))).asnumpy().tolist() == [-99, -99]


def test_a_name_is_needed():
    def function(x, out):
        out[0] = x[0]

    with pytest.raises(MXNetError, match="expected the operator's name"):
        mx.operator.kernel(function)
