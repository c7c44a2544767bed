"""Recurrent layers where MXNet on the CPU has no answer, or another: lengths, bounds, dropout, projection, float16."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from programs import lowered

import mxc as mx
from mxc.compiler.kernel.ir import RoutineKernel
from mxc.compiler.lowering.plan_memory import intervals
from mxc.compiler.operators.rnn.kernel import ROWS
from mxc.compiler.operators.rnn.shape import length_of, pieces
from mxc.compiler.ops import table
from mxc.compiler.targets.cpu.emit.routines import routine_source

STEPS, BATCH, INPUTS, SIZE = 4, 3, 2, 3
Arrays = dict[str, np.ndarray]


def symbol(mode: str, **params: Any) -> Any:
    names = ["data", "parameters", "state", *["state_cell"] * (mode == "lstm"),
             *["sequence_length"] * ("use_sequence_length" in params)]
    net = mx.sym.RNN(**{n: mx.sym.Variable(n) for n in names}, mode=mode, state_size=SIZE, state_outputs=True, **params)
    return mx.sym.Group([net[i] for i in range(len(net.list_outputs()))])


def arrays(net: Any, dtype: str = "float32", **shapes: tuple[int, ...]) -> Arrays:
    rng = np.random.default_rng(0)
    found = net.infer_shape(**{"data": (STEPS, BATCH, INPUTS), **shapes})[0]
    return {n: rng.uniform(-1, 1, s).astype(dtype) for n, s in zip(net.list_arguments(), found, strict=True)}


def run(net: Any, given: Mapping[str, np.ndarray], is_train: bool = False) -> tuple[list[np.ndarray], Arrays]:
    """Outputs, and gradients of the sum of all of them."""
    made = {k: mx.nd.array(v, dtype=v.dtype) for k, v in given.items()}
    grads = {k: mx.nd.zeros(v.shape, dtype=v.dtype) for k, v in given.items() if k != "sequence_length"}
    executor = net.bind(mx.cpu(), made, args_grad=grads)
    outputs = executor.forward(is_train=is_train)
    executor.backward([mx.nd.ones(o.shape, dtype=o.dtype) for o in outputs])
    return [o.asnumpy() for o in outputs], {k: g.asnumpy() for k, g in grads.items()}


@pytest.mark.parametrize("mode", ["lstm", "gru"])
def test_a_row_ends_at_its_length_as_if_it_were_alone(mode: str) -> None:
    attrs = {"num_layers": 2, "bidirectional": True}
    net, alone = symbol(mode, use_sequence_length=True, **attrs), symbol(mode, **attrs)
    given = arrays(net)
    given["sequence_length"] = np.array([4, 1, 2], "float32")
    outputs, grads = run(net, given)
    total = np.zeros_like(given["parameters"])
    for row, length in enumerate((4, 1, 2)):
        one = {k: v[:, row:row + 1] for k, v in given.items() if k.startswith("state")}
        part = {**one, "data": given["data"][:length, row:row + 1], "parameters": given["parameters"]}
        expected, its = run(alone, part)
        np.testing.assert_allclose(outputs[0][:length, row], expected[0][:, 0], 1e-5, 1e-6)
        assert not outputs[0][length:, row].any() and not grads["data"][length:, row].any()
        for ours, theirs in zip(outputs[1:], expected[1:], strict=True):
            np.testing.assert_allclose(ours[:, row], theirs[:, 0], 1e-5, 1e-6)
        np.testing.assert_allclose(grads["data"][:length, row], its["data"][:, 0], 1e-4, 1e-5)
        for name in one:
            np.testing.assert_allclose(grads[name][:, row], its[name][:, 0], 1e-4, 1e-5)
        total += its["parameters"]
    np.testing.assert_allclose(grads["parameters"], total, 1e-4, 1e-5)


@pytest.mark.parametrize("mode", ["rnn_relu", "rnn_tanh", "gru", "lstm"])
def test_rows_do_not_depend_on_those_beside_them(mode: str) -> None:
    """More rows than a unit of work has, against each half of them alone; 19 units of state are no whole vectors."""
    names = ("data", "state", *["state_cell"] * (mode == "lstm"))
    net = mx.sym.RNN(**{n: mx.sym.Variable(n) for n in (names[0], "parameters", *names[1:])}, mode=mode, state_size=19,
                     num_layers=2, bidirectional=True)
    given = arrays(net, "float64", data=(STEPS, 2 * ROWS + 4, INPUTS))
    outputs, grads = run(net, given)
    total = np.zeros_like(given["parameters"])
    for part in (np.s_[:, :ROWS + 2], np.s_[:, ROWS + 2:]):
        expected, its = run(net, {n: a if n == "parameters" else a[part] for n, a in given.items()})
        np.testing.assert_allclose(outputs[0][part], expected[0], 1e-9, 1e-12)
        for name in names:
            np.testing.assert_allclose(grads[name][part], its[name], 1e-9, 1e-12)
        total += its["parameters"]
    np.testing.assert_allclose(grads["parameters"], total, 1e-9, 1e-12)


def test_cells_stay_within_bounds_when_both_are_given() -> None:
    bounds = {"lstm_state_clip_min": -0.1, "lstm_state_clip_max": 0.2}
    net = symbol("lstm", num_layers=1, **bounds)
    given = arrays(net)
    (_, _, cells), _ = run(net, given)
    assert cells.min() == np.float32(-0.1) and cells.max() == np.float32(0.2)
    given["data"][0, 0, 0] = np.nan
    assert np.isnan(run(net, given)[0][2][0, 0]).all()
    assert not np.isnan(run(symbol("lstm", num_layers=1, lstm_state_clip_nan=True, **bounds), given)[0][2]).any()
    one = run(symbol("lstm", num_layers=1, lstm_state_clip_min=-0.1), arrays(net))[0][2]
    assert one.min() < -0.1


@pytest.mark.parametrize("mode, given", [
    ("rnn_tanh", {}), ("gru", {"bidirectional": True}), ("lstm", {"projection_size": 2}),
    ("lstm", {"projection_size": 2, "bidirectional": True}),
])
@pytest.mark.parametrize("layers", [1, 3])
def test_a_vector_is_as_long_as_its_pieces(mode: str, given: dict[str, object], layers: int) -> None:
    params = table.get("RNN").make_params({"mode": mode, "num_layers": layers, "state_size": SIZE, **given})
    assert length_of(params, INPUTS) == pieces(params, INPUTS)[-1].stop


def test_layers_without_number_are_refused_at_once() -> None:
    with pytest.raises(mx.MXNetError, match="parameters"):
        symbol("lstm", num_layers=2**31 - 1).infer_shape(data=(STEPS, BATCH, INPUTS), parameters=(100,))


def test_training_drops_what_a_layer_gives_to_the_next() -> None:
    net = symbol("lstm", num_layers=2, p=1)[0]
    given = arrays(net)
    (kept, *_), _ = run(net, given)
    (dropped, *_), grads = run(net, given, is_train=True)
    params = table.get("RNN").make_params({"mode": "lstm", "num_layers": 2, "state_size": SIZE})
    (second,) = [p for p in pieces(params, INPUTS) if (p.layer, p.name) == (1, "input")]
    assert not grads["data"].any() and not grads["parameters"][second.start:second.stop].any()
    given["parameters"][second.start:second.stop] = 0
    np.testing.assert_allclose(dropped, run(net, given)[0][0], 1e-5, 1e-6)
    assert np.abs(dropped - kept).max() > 0.01


@pytest.mark.parametrize("others", ["null", "add"])
def test_a_gradient_does_not_depend_on_those_of_the_others(others: str) -> None:
    net = symbol("rnn_tanh", num_layers=2)
    given = arrays(net, "float64")
    _, expected = run(net, given)
    for wanted in given:
        made = {k: mx.nd.array(v, dtype=v.dtype) for k, v in given.items()}
        grads = {k: mx.nd.ones(v.shape, dtype=v.dtype) for k, v in given.items()}
        requests = {k: "write" if k == wanted else others for k in given}
        executor = net.bind(mx.cpu(), made, args_grad=grads, grad_req=requests)
        executor.backward([mx.nd.ones(o.shape, dtype=o.dtype) for o in executor.forward(is_train=True)])
        for name, grad in grads.items():
            added = {"write": expected[name], "null": 1, "add": 1 + expected[name]}[requests[name]]
            np.testing.assert_allclose(grad.asnumpy() - added, 0, atol=1e-12)


def test_half_precision_is_computed_in_single() -> None:
    net = symbol("gru", num_layers=1)
    given = arrays(net, "float16")
    outputs, grads = run(net, given)
    wide, exact = run(net, {k: v.astype("float32") for k, v in given.items()})
    assert outputs[0].dtype == grads["parameters"].dtype == np.float16
    np.testing.assert_array_equal(outputs[0], wide[0].astype("float16"))
    np.testing.assert_allclose(grads["parameters"], exact["parameters"], 1e-2, 1e-2)


def test_training_does_the_steps_of_a_layer_once() -> None:
    """The gradient writes the forward pass again, for its values in between: equal nodes are one."""
    net = symbol("lstm", num_layers=2)[0]
    given = arrays(net)
    program = lowered(net.graph, {k: v.shape for k, v in given.items()}, dict.fromkeys(given, "float32"),
                      dict.fromkeys(given, "write"), True)
    kernels = [launch.kernel.name for launch in program.launches if launch.kernel is not None]
    assert kernels.count("_mxc_rnn_layer") == kernels.count("_mxc_rnn_layer_grad") == 2


@pytest.mark.parametrize("mode, shared", [("lstm", 3), ("gru", 1)])
def test_gates_and_their_gradients_lie_where_the_inputs_sums_were(mode: str, shared: int) -> None:
    """Where all have one size: gru's gates have another."""
    net = symbol(mode, num_layers=1)[0]
    given = arrays(net)
    program = lowered(net.graph, {k: v.shape for k, v in given.items()}, dict.fromkeys(given, "float32"),
                      dict.fromkeys(given, "write"), True)
    places = [{id(s) for s in interval.storages} for interval in intervals(program.launches)]
    forward, back = (launch for launch in program.launches if isinstance(launch.kernel, RoutineKernel)
                     and launch.kernel.routine.startswith("rnn_layer"))
    (pre,) = [place for place in places if id(forward.storages[0]) in place]
    assert len(pre & {id(forward.storages[0]), id(forward.storages[9]), id(back.storages[10])}) == shared


def test_what_constants_rule_out_is_not_compiled() -> None:
    net = symbol("rnn_tanh", num_layers=1)[0]
    given = arrays(net)
    program = lowered(net.graph, {k: v.shape for k, v in given.items()}, dict.fromkeys(given, "float32"))
    (kernel,) = [launch.kernel for launch in program.launches if isinstance(launch.kernel, RoutineKernel)]
    source = routine_source(kernel)
    assert "tanh_" in source and "masked" in source
    assert not any(word in source for word in ("sigmoid_", "max_(", "if lstm", "if gru", "clip_nan and"))
    compile(source, "kernel", "exec")


@pytest.mark.parametrize("params, says", [
    ({"mode": "gru", "projection_size": 2}, "mode=lstm with projection_size"),
    ({"mode": "lstm", "projection_size": 0}, "projection_size of at least 1"),
])
def test_refusals(params: dict[str, Any], says: str) -> None:
    with pytest.raises(mx.MXNetError, match=says):
        symbol(num_layers=1, **params).infer_shape(data=(STEPS, BATCH, INPUTS))
