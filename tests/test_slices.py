"""Convolutions over three axes that go Winograd's way over two of them, and their gradients."""
from __future__ import annotations

import numpy as np
import pytest
from pass_checks import assert_same_numbers, options

import mxc as mx
from mxc.compiler.graph.text import graph_text, parse_graph
from mxc.compiler.passes.layout import layout

OF = {"convolution": "Convolution(x, w, {form}, num_filter=32, num_group=1, no_bias=True)",
      "data": "_mxc_conv_data_grad(y, w, {form}, shape=({x}), num_group=1)",
      "weight": "_mxc_conv_weight_grad(x, y, {form}, num_group=1)"}
FORMS = {  # slices of the data, kernel's slices, padding, images
    "same": (5, 3, (1, 1, 1), 1), "of several images": (4, 3, (1, 1, 1), 2), "without padding": (5, 3, (0, 0, 0), 2),
    "more padding": (3, 3, (2, 2, 1), 1), "even": (4, 2, (1, 1, 1), 2), "two slices of a kernel": (3, 2, (0, 1, 1), 2),
    "one slice of the data": (1, 3, (1, 1, 1), 2),
}


def laid_out(of, slices, depth, pad, images, stride=(1, 1, 1), dilate=(1, 1, 1), **fields):
    space, kernel = (slices, 17, 14), (depth, 3, 3)
    out = [(e + 2 * p - d * (k - 1) - 1) // s + 1 for e, p, d, k, s in
           zip(space, pad, dilate, kernel, stride, strict=True)]
    x = ",".join(map(str, (images, 16, *space)))
    form = f"kernel={kernel}, stride={stride}, dilate={dilate}, pad={pad}"
    graph = parse_graph(f"graph(x: float32[{x}], w: float32[32,16,{depth},3,3], "
                        f"y: float32[{','.join(map(str, (images, 32, *out)))}])\n"
                        f" z = {OF[of].format(form=form, x=x)}\n return z")
    return graph, layout(graph, options(**fields))


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("of", OF)
def test_pass(of, name):
    graph, result = laid_out(of, *FORMS[name])
    assert "_winograd" in graph_text(result)
    assert_same_numbers(graph, result, rtol=0, atol=2e-3)


@pytest.mark.parametrize("of", OF)
def test_other_forms(of):
    for form in ({"stride": (2, 1, 1)}, {"stride": (1, 2, 2)}, {"dilate": (2, 1, 1)}, {"strict": True}):
        assert "_winograd" not in graph_text(laid_out(of, 7, 3, (1, 1, 1), 2, **form)[1])
    assert "_winograd" not in graph_text(laid_out(of, 4, 3, (3, 1, 1), 1)[1])  # a slice that reads padding alone
    assert "_winograd" not in graph_text(laid_out(of, 5, 3, (1, 1, 1), 1, small=True)[1])


@pytest.mark.parametrize("is_train", [False, True])
def test_with_and_without(is_train, monkeypatch):
    symbol = mx.sym.Convolution(mx.sym.var("x"), name="c", num_filter=32, kernel=(3, 3, 3), pad=(1, 1, 1))
    found = []
    for strict in ("", "1"):
        monkeypatch.setenv("MXC_STRICT", strict)
        executor = symbol.simple_bind(mx.cpu(), grad_req="write" if is_train else "null", x=(2, 16, 4, 17, 14))
        rng = np.random.default_rng(1)
        for array in executor.arg_dict.values():
            array[:] = rng.standard_normal(array.shape)
        (out,) = executor.forward(is_train=is_train)
        if is_train:
            executor.backward(mx.nd.array(rng.standard_normal(out.shape)))
        assert ("_winograd" in executor.compiled(is_train).groups) == (not strict)
        found.append([out.asnumpy(), *(g.asnumpy() for g in executor.grad_dict.values() if g is not None)])
    for got, expected in zip(*found, strict=True):
        np.testing.assert_allclose(got, expected, rtol=0, atol=2e-5 * np.abs(expected).max())
