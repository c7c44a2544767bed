"""Plans as data: JSON and text."""
from __future__ import annotations

import mxc as mx
from mxc.compiler.plan import Plan


def plan() -> Plan:
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    return mx.sym.SoftmaxOutput(net, name="softmax").simple_bind(mx.cpu(), data=(2, 4)).compiled(is_train=True).plan


def test_json_gives_the_same_plan():
    made = plan()
    assert made.steps and made.buffers and Plan.from_json(made.to_json()) == made


def test_text_has_a_line_for_each_step():
    made = plan()
    lines = made.text().splitlines()
    assert len(lines) == len(made.steps) + 1 and lines[-1].startswith(f"arena {made.arena_bytes} ")
    assert [line.split()[0] for line in lines[:-1]] == [step.phase for step in made.steps]
    assert {"forward", "backward"} == {step.phase for step in made.steps}
    assert "argument[fc_weight] float32[3, 4]" in made.text() and "gradient[fc_weight]" in made.text()
