"""Networks over numbers of 8 bits are those of MXNet 1.9.1 (golden/quantized_networks.json)."""
from __future__ import annotations

import importlib
import json
import math

import numpy as np
import pytest

import mxc as mx
from mxc.compiler.error import MXNetError
from mxc.contrib import quantization
from mxc.gluon import nn

golden = importlib.import_module("golden.quantized_networks")
REAL = json.loads(golden.PATH.read_text())
DIGITS = 2e-6  # of a range: MXNet sums a convolution in float32 in another order
TOLERANCE = 2e-5


def is_close(ours: str, theirs: str) -> bool:
    try:
        return math.isclose(float(ours), float(theirs), rel_tol=DIGITS, abs_tol=2e-6)
    except ValueError:
        return ours == theirs


def same(ours: object, theirs: object) -> bool:
    """Equal, but for the last digits of numbers."""
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return list(ours) == list(theirs) and all(same(ours[k], theirs[k]) for k in theirs)
    if isinstance(theirs, str) and isinstance(ours, str):
        return is_close(ours, theirs)
    if isinstance(theirs, float):
        return isinstance(ours, (int, float)) and math.isclose(ours, theirs, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return ours == theirs


def test_every_case_is_recorded() -> None:
    assert list(REAL) == list(golden.CASES)


@pytest.mark.parametrize("case", [case for case in golden.CASES if case != "thresholds"])
def test_networks_are_those_of_mxnet(case: str) -> None:
    assert same(golden.CASES[case](mx), REAL[case])


def test_thresholds_are_those_of_mxnet() -> None:
    """The thresholds themselves; the divergence is a sum of logarithms in float32, which differs in its last digits."""
    ours = golden.thresholds(mx)
    assert [pair[0] for pair in ours] == [pair[0] for pair in REAL["thresholds"]]
    np.testing.assert_allclose([pair[1] for pair in ours], [pair[1] for pair in REAL["thresholds"]], rtol=1e-3,
                               atol=1e-6)


def test_a_sum_without_a_stated_range_is_a_sum() -> None:
    """MXNet adds other numbers to sums in int32."""
    (_, (ours,)), (_, (calibrated,)) = (golden.model(mx, "residual", calib_mode=mode, quantized_dtype="int8")
                                        for mode in ("none", "naive"))
    np.testing.assert_allclose(ours, calibrated, atol=0.05)


def block() -> nn.HybridSequential:
    net = nn.HybridSequential()
    net.add(nn.Conv2D(8, 3, padding=1, in_channels=3), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(),
            nn.Conv2D(8, 3, padding=1, use_bias=False), nn.BatchNorm(), nn.Activation("relu"), nn.GlobalAvgPool2D(),
            nn.Dense(5))
    net.initialize(mx.init.Xavier())
    return net


@pytest.mark.parametrize("mode", ["naive", "entropy", "none"])
def test_a_block_computes_nearly_the_same_in_8_bits(mode: str) -> None:
    mx.random.seed(2)
    net, data = block(), mx.nd.random.uniform(-1, 1, (8, 3, 8, 8))
    expected = net(data).asnumpy()
    loader = mx.gluon.data.DataLoader(mx.gluon.data.ArrayDataset(data, mx.nd.zeros(8)), batch_size=4)
    made = quantization.quantize_net(net, calib_mode=mode, quantized_dtype="int8" if mode == "none" else "auto",
                                     calib_data=loader)
    assert any(node.op and node.op.name == "_sg_mkldnn_conv" for node in made(mx.sym.var("data")).graph.nodes)
    assert abs(made(data).asnumpy() - expected).max() < 0.05 * abs(expected).max() + 0.01


@pytest.mark.parametrize("mode", ["naive", "entropy"])
def test_examples_that_are_not_finite_are_refused(mode: str) -> None:
    with pytest.raises(MXNetError, match=r"calibration: .* has numbers that are not finite"):
        quantization.quantize_net(block(), calib_mode=mode, quantized_dtype="auto",
                                  calib_data=mx.io.NDArrayIter(mx.nd.ones((4, 3, 8, 8)) * np.nan, None, 4))


def test_what_is_excluded_stays_in_float32() -> None:
    net = block()
    net.hybridize()
    made = quantization.quantize_net(net, data_shapes=[("data", (1, 3, 8, 8))], exclude_layers_match=["conv1", "dense"],
                                     exclude_operators=["Pooling"], quantized_dtype="int8")
    operators = [node.op.name for node in made(mx.sym.var("data")).graph.nodes if node.op]
    assert "Pooling" in operators
    assert "_contrib_quantized_pooling" not in operators


@pytest.mark.parametrize(("changes", "text"), [
    ({"quantized_dtype": "int4"}, "quantized_dtype"), ({"calib_mode": "best"}, "calib_data"),
    ({"calib_mode": "naive"}, "calib_data"), ({"calib_mode": "naive", "calib_data": 3}, "DataIter"),
    ({"excluded_sym_names": "conv"}, "excluded_sym_names"), ({"excluded_op_names": "conv"}, "excluded_op_names"),
    ({"quantize_granularity": "row", "calib_mode": "none"}, "granularity"),
])
def test_what_is_wrong_is_named(changes: dict, text: str) -> None:
    made, args, aux = golden.network(mx, "residual")
    with pytest.raises(ValueError, match=text):
        quantization.quantize_model(made, args, aux, **changes)


def test_an_unknown_mode_is_named() -> None:
    made, args, aux = golden.network(mx, "residual")
    with pytest.raises(MXNetError, match="quantize_mode: expected full or smart, got half"):
        quantization.quantize_model(made, args, aux, calib_mode="none", quantize_mode="half")


def test_a_graph_of_fused_operators_is_saved_and_read() -> None:
    """What is read computes the same, and is written as it was."""
    made, args, aux = golden.network(mx, "residual")
    graph, _, _ = quantization.quantize_model_mkldnn(made, args, aux, calib_mode="none", quantized_dtype="int8")
    text = graph.tojson()
    assert mx.sym.load_json(text).tojson() == text


@pytest.mark.parametrize(("subgraph", "text"), [
    ([], "expected one subgraph"),
    ([{"nodes": [{"op": "null", "name": "x", "inputs": []}, {"op": "relu", "name": "r", "inputs": [[0, 0, 0]]}],
       "heads": [[1, 0, 0]]}], "begins with Convolution"),
])
def test_a_fused_operator_without_its_layer_is_refused(subgraph: list, text: str) -> None:
    nodes = [{"op": "null", "name": name, "inputs": []} for name in ("data", "weight", "bias")]
    nodes.append({"op": "_sg_mkldnn_conv", "name": "op", "inputs": [[0, 0, 0], [1, 0, 0], [2, 0, 0]],
                  "subgraphs": subgraph})
    with pytest.raises(MXNetError, match=text):
        mx.sym.load_json(json.dumps({"nodes": nodes, "heads": [[3, 0, 0]]}))
