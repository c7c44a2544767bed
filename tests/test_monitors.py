"""What a monitor of an executor is told, in which order: as MXNet 1.9.1 (golden/monitors.json)."""
import json
from pathlib import Path

import pytest
from golden import make_monitors

import mxc as mx
from mxc.compiler.ops import table

REAL = json.loads((Path(__file__).parent / "golden" / "monitors.json").read_text())


def test_every_case_is_recorded():
    assert list(REAL) == make_monitors.CASES


@pytest.mark.parametrize("case", REAL)
def test_names_are_mxnets(case):
    assert make_monitors.answer(mx, case) == REAL[case]


def test_values_have_the_shapes_of_what_they_are_called_after():
    shapes = {}
    net = mx.sym.RNN(mx.sym.Variable("x"), state_size=2, num_layers=1, mode="lstm", state_outputs=True, name="r")
    bound = net.simple_bind(mx.cpu(), x=(3, 1, 4))
    bound.set_monitor_callback(lambda name, array: shapes.update({name: array.shape}), monitor_all=True)
    bound.forward()
    assert shapes["r_data"] == (3, 1, 4) and shapes["r_statecell_output"] == (1, 1, 2) and "r_mask" not in shapes


def test_only_one_input_can_be_unnamed():
    for name in table.names():
        op = table.get(name)
        assert not op.named or (len(op.inputs) == 1 and not op.aux), f"{name}: `named` is of operators of one input"
        assert set(op.unwatched) <= set(op.outputs)
