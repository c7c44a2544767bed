"""`mx.rnn`: cells, weights and buckets answer what MXNet 1.9.1 does (golden/rnn_cells.json), and what is mxc's own."""
from __future__ import annotations

import importlib
import json
import math
from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc.base import MXNetError

rnn_cells = importlib.import_module("golden.rnn_cells")
REAL = json.loads((Path(__file__).parent / "golden" / "rnn_cells.json").read_text())


def same(ours, theirs) -> bool:
    """Equal, but for rounding, and an error of mxc that is one of that class."""
    if isinstance(theirs, dict) and "error" in theirs:
        return isinstance(ours, dict) and theirs["error"][0] in ours.get("error", ())
    if isinstance(theirs, (list, dict)):
        keys = theirs if isinstance(theirs, dict) else range(len(theirs))
        return type(ours) is type(theirs) and len(ours) == len(theirs) and all(same(ours[k], theirs[k]) for k in keys)
    if isinstance(theirs, float):
        return isinstance(ours, float) and math.isclose(ours, theirs, rel_tol=3e-4, abs_tol=3e-6)
    return type(ours) is type(theirs) and ours == theirs


def test_every_program_is_recorded():
    assert REAL.keys() == set(rnn_cells.CASES)


@pytest.mark.parametrize("case", REAL)
def test_answers_as_mxnet(case: str):
    ours = rnn_cells.answer(mx, case)
    assert same(ours, REAL[case]), (ours, REAL[case])


def test_weights_that_do_not_fit_are_refused():
    fused = mx.rnn.FusedRNNCell(5, num_layers=2)
    with pytest.raises(MXNetError, match="lstm_parameters has 17 elements"):
        fused.unpack_weights({"lstm_parameters": mx.nd.zeros((17,))})
    parts = fused.unpack_weights({"lstm_parameters": mx.nd.zeros((460,))})
    parts["lstm_l1_h2h_f_bias"] = mx.nd.zeros((4,))
    with pytest.raises(MXNetError, match=r"lstm_l1_h2h_f_bias has the shape \(4,\); expected \(5,\)"):
        fused.pack_weights(parts)


def test_packing_leaves_what_it_is_given():
    cell = mx.rnn.LSTMCell(2)
    given = {f"lstm_{place}_{kind}": mx.nd.ones((8, 3) if kind == "weight" else (8,)) for place in ("i2h", "h2h")
             for kind in ("weight", "bias")}
    parts = cell.unpack_weights(given)
    assert len(given) == 4
    assert len(parts) == 16
    again = cell.pack_weights(parts)
    assert len(parts) == 16
    assert {name: array.asnumpy().tolist() for name, array in again.items()} == {
        name: array.asnumpy().tolist() for name, array in given.items()}


def test_a_sequence_of_another_length_is_refused():
    cell, data = mx.rnn.GRUCell(5), mx.sym.Variable("data")
    with pytest.raises(ValueError, match="the length is 3, but there are 2 inputs"):
        cell.unroll(3, [data, data])
    with pytest.raises(ValueError, match="layout 'NC' has no axis T"):
        cell.unroll(3, data, layout="NC")
    with pytest.raises(TypeError, match="a symbol or a list of symbols, got <class 'int'>"):
        cell.unroll(3, 4)
    with pytest.raises(ValueError, match="of one output"):
        cell.unroll(2, mx.sym.split(data, num_outputs=2))


def test_a_cell_that_a_modifier_has_is_not_used_by_itself():
    cell = mx.rnn.GRUCell(5)
    modifier = mx.rnn.ResidualCell(cell)
    with pytest.raises(MXNetError, match="a modifier such as ZoneoutCell has this GRUCell"):
        cell.begin_state()
    assert [state.name for state in modifier.begin_state()] == ["gru_begin_state_0"]


def test_cells_without_steps_have_no_zoneout():
    both = mx.rnn.BidirectionalCell(mx.rnn.RNNCell(2), mx.rnn.RNNCell(2))
    stack = mx.rnn.SequentialRNNCell()
    stack.add(both)
    for cell in (mx.rnn.FusedRNNCell(2), both, stack):
        with pytest.raises(MXNetError, match="has no steps"):
            mx.rnn.ZoneoutCell(cell)


def test_arguments_of_cells_are_checked():
    with pytest.raises(ValueError, match="mode is 'LSTM'; expected one of rnn_relu"):
        mx.rnn.FusedRNNCell(2, mode="LSTM")
    with pytest.raises(TypeError, match="the probability must be a number"):
        mx.rnn.DropoutCell("0.5")
    with pytest.raises(ValueError, match="odd extents"):
        mx.rnn.ConvRNNCell((1, 3, 8, 8), 4, h2h_kernel=(2, 2))
    stack = mx.rnn.SequentialRNNCell(params=mx.rnn.RNNParams("s_"))
    with pytest.raises(MXNetError, match="give them to one of both"):
        stack.add(mx.rnn.RNNCell(2, params=mx.rnn.RNNParams("t_")))


def test_the_forget_gates_bias_is_kept_when_a_cell_is_unfused():
    cells = mx.rnn.FusedRNNCell(2, forget_bias=3.0).unfuse()
    attributes = cells.unroll(1, [mx.sym.Variable("data")])[0][0].attr_dict()
    assert json.loads(attributes["lstm_l0_i2h_bias"]["__init__"]) == ["lstmbias", {"forget_bias": 3.0}]


def test_unrolling_without_inputs_makes_variables():
    with pytest.warns(UserWarning, match="rnn_unroll is deprecated"):
        outputs, _ = mx.rnn.rnn_unroll(mx.rnn.RNNCell(2), 2, input_prefix="x_")
    assert mx.sym.Group(outputs).list_arguments()[0] == "x_t0_data"


def test_a_word_that_is_not_known_is_named():
    with pytest.raises(ValueError, match="the word 'z' is not in the vocabulary"):
        mx.rnn.encode_sentences([["a", "z"]], vocab={"a": 1})


def test_a_bucket_may_have_no_sentences():
    it = mx.rnn.BucketSentenceIter([[1, 2]] * 4, 2, buckets=[2, 100])
    assert [batch.bucket_key for batch in it] == [2, 2]
    assert it.default_bucket_key == 100


def test_sequences_of_length_one_in_a_batch_have_a_label_of_nothing():
    it = mx.rnn.BucketSentenceIter([[5]] * 2, 2, invalid_label=9)
    batch = it.next()
    assert batch.label[0].asnumpy().tolist() == [[9], [9]]
    np.testing.assert_array_equal(batch.data[0].asnumpy(), [[5], [5]])


def test_checkpoints_have_weights_by_gate(tmp_path: Path):
    fused = mx.rnn.FusedRNNCell(2, num_layers=2, bidirectional=True, prefix="f_")
    data = mx.sym.Variable("data")
    made, _ = fused.unroll(3, data, layout="TNC", merge_outputs=True)
    size = made.infer_shape(data=(3, 2, 4))[0][1][0]
    args, values = {"f_parameters": mx.nd.random.uniform(-1, 1, (size,))}, mx.nd.random.uniform(-1, 1, (3, 2, 4))
    prefix = str(tmp_path / "net")
    save = mx.rnn.do_rnn_checkpoint(fused, prefix, period=2)
    for epoch in range(3):
        save(epoch, made, args, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net-0002.params", "net-symbol.json"]
    assert "arg:f_r1_h2h_o_weight" in mx.nd.load(f"{prefix}-0002.params")
    network, again, aux = mx.rnn.load_rnn_checkpoint(fused, prefix, 2)
    assert (network.list_arguments(), sorted(again), aux) == (["data", "f_parameters"], ["f_parameters"], {})
    np.testing.assert_array_equal(again["f_parameters"].asnumpy(), args["f_parameters"].asnumpy())
    stack = fused.unfuse()
    single, _ = stack.unroll(3, data, layout="TNC", merge_outputs=True)
    _, weights, _ = mx.rnn.load_rnn_checkpoint([stack], prefix, 2)
    results = [symbol.bind(mx.cpu(), {"data": values, **given}).forward()[0].asnumpy()
               for symbol, given in ((made, again), (single, weights))]
    np.testing.assert_allclose(results[0], results[1], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("size", [0, -1, 2.5, True])
def test_batches_of_sentences_have_a_whole_number_of_them(size: float) -> None:
    with pytest.raises(mx.MXNetError, match="batch_size must be a whole number from 1 on"):
        mx.rnn.BucketSentenceIter([[1, 2]], size, buckets=[5])
