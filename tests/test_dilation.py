"""Dilated convolutions that are computed as plain ones, of the pixels of each remainder, against the reference."""
from __future__ import annotations

import numpy as np
import pytest
from pass_checks import options

import mxc as mx
from mxc.compiler.graph.text import parse_graph
from mxc.compiler.passes.decompose import decompose

CASES = {  # extents, dilation, padding
    "even": ((12, 16), (2, 2), (2, 2)), "odd": ((13, 11), (2, 2), (2, 2)), "axes differ": ((9, 14), (2, 3), (2, 3)),
    "one axis": ((10, 10), (1, 4), (1, 4)), "without padding": ((15, 13), (4, 3), (0, 0)),
    "more padding": ((7, 8), (2, 3), (4, 6)), "smaller than the dilation": ((5, 3), (12, 6), (12, 6)),
}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_they_give_what_they_are(name: str, bias: bool):
    extents, dilate, pad = CASES[name]
    draw = np.random.default_rng(0)
    data, weight, offset = (draw.uniform(-1, 1, shape).astype(np.float32)
                            for shape in ((2, 64, *extents), (66, 64, 3, 3), (66,)))
    symbol = mx.sym.Convolution(mx.sym.var("data"), num_filter=66, kernel=(3, 3), dilate=dilate, pad=pad,
                                no_bias=not bias, name="c")
    arrays = {"data": mx.nd.array(data), "c_weight": mx.nd.array(weight)}
    arrays |= {"c_bias": mx.nd.array(offset)} if bias else {}
    grads = {key: mx.nd.zeros(value.shape) for key, value in arrays.items()}
    executor = symbol.bind(mx.cpu(), arrays, grads)
    out = executor.forward(is_train=True)[0].asnumpy()
    padded = np.pad(data.astype(np.float64), ((0, 0), (0, 0), *((p, p) for p in pad)))
    want = np.zeros(out.shape)
    for i, j in np.ndindex(3, 3):
        part = padded[:, :, i * dilate[0]:i * dilate[0] + out.shape[2], j * dilate[1]:j * dilate[1] + out.shape[3]]
        want += np.einsum("nchw,fc->nfhw", part, weight[:, :, i, j].astype(np.float64))
    np.testing.assert_allclose(out, want + (offset[:, None, None] if bias else 0), rtol=1e-4, atol=1e-3)
    flowing = draw.uniform(-1, 1, out.shape).astype(np.float32)
    executor.backward(mx.nd.array(flowing))
    slope = (flowing.astype(np.float64) * (want - want.mean())).sum()  # the output is linear in the weight
    assert np.isclose((grads["c_weight"].asnumpy() * weight).sum() - want.mean() * flowing.sum(dtype=np.float64), slope,
                      rtol=1e-3, atol=0.5)


@pytest.mark.parametrize(("shape", "attributes"), [
    ("1,32,8,8", "kernel=(3, 3), dilate=(2, 2), pad=(2, 2)"),  # few channels: moving them would take longer
    ("1,64,8,8", "kernel=(3, 3), dilate=(2, 2), pad=(1, 1)"),  # padding that is no multiple
    ("1,64,8,8", "kernel=(3, 3), dilate=(2, 2), pad=(2, 2), stride=(2, 2)"),
    ("1,64,8,8", "kernel=(3, 3), dilate=(2, 2), pad=(2, 2), num_group=2"),
    ("1,64,8,8", "kernel=(5, 5), dilate=(2, 2), pad=(4, 4)"),
])
def test_others_stay_as_they_are(shape: str, attributes: str):
    channels = int(shape.split(",")[1]) // (2 if "num_group" in attributes else 1)
    kernel = "5,5" if "5, 5" in attributes else "3,3"
    text = (f"graph(x: float32[{shape}], w: float32[64,{channels},{kernel}])\n"
            f" c = Convolution(x, w, num_filter=64, no_bias=True, {attributes})\n return c")
    made = decompose(parse_graph(text), options())
    assert [node.op.name for node in made.nodes if node.op is not None] == ["Convolution"]
