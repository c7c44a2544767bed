"""Each simplification by itself, and the pass on whole graphs."""
from __future__ import annotations

import pytest
from pass_checks import assert_graph, assert_same_numbers, options

from mxc.compiler.graph.text import graph_text, parse_graph, same_graph
from mxc.compiler.ops import table
from mxc.compiler.passes.simplify import RULES, apply_rules, simplify
from mxc.compiler.planning import plan_graph
from mxc.compiler.targets.cpu.emit.skeletons import skeleton
from mxc.compiler.targets.cpu.target import cpu_target

# rule, graph before, graph after one round of that rule alone
CASES = [
    ("as_fill", "graph(x: float32[2,3])\n a = ones_like(x)\n b = _zeros(shape=(4,), dtype=int32)\n return a, b",
     "graph()\n a = _full(shape=(2, 3), value=1)\n b = _full(shape=(4,), value=0, dtype=int32)\n return a, b"),
    ("same_dtype", "graph(x: float32[2])\n a = Cast(x, dtype=float32)\n return a", "graph(x: float32[2])\n return x"),
    ("same_dtype", "graph(x: float32[2])\n a = identity(x)\n b = exp(a)\n return b",
     "graph(x: float32[2])\n b = exp(x)\n return b"),
    ("same_dtype", "graph(x: float32[2])\n a = Cast(x, dtype=int32)\n return a", None),
    ("neutral_scalar", "graph(x: float32[2])\n a = _mul_scalar(x, scalar=1)\n b = _plus_scalar(a, scalar=0)\n"
     " c = _div_scalar(b, scalar=1)\n d = _minus_scalar(c, scalar=0)\n e = _power_scalar(d, scalar=1)\n return e",
     "graph(x: float32[2])\n return x"),
    ("neutral_scalar", "graph(x: int32[2])\n a = _mul_scalar(x, scalar=1, is_int=False)\n return a", None),
    ("neutral_scalar", "graph(x: float32[2])\n a = _mul_scalar(x, scalar=2)\n return a", None),
    ("neutral_array", "graph(x: float32[2])\n o = _full(shape=(2,), value=0)\n a = elemwise_add(o, x)\n"
     " b = elemwise_sub(a, o)\n return b", "graph(x: float32[2])\n return x"),
    ("neutral_array", "graph(x: int32[2,3])\n o = _full(shape=(1, 3), value=1, dtype=int32)\n"
     " a = broadcast_mul(x, o)\n b = broadcast_div(a, o)\n return b", "graph(x: int32[2,3])\n return x"),
    ("neutral_array", "graph(x: float32[1,3])\n o = _full(shape=(2, 3), value=1)\n a = broadcast_mul(x, o)\n return a",
     None),
    ("neutral_array", "graph(x: float32[2])\n o = _full(shape=(2,), value=0)\n a = elemwise_sub(o, x)\n"
     " return a", None),
    ("integer_times_zero", "graph(x: int32[2])\n a = _mul_scalar(x, scalar=0)\n return a",
     "graph()\n a = _full(shape=(2,), value=0, dtype=int32)\n return a"),
    ("integer_times_zero", "graph(x: float32[2])\n a = _mul_scalar(x, scalar=0)\n return a", None),
    ("where_of_constant", "graph(x: float32[2], y: float32[2])\n c = _full(shape=(2,), value=1)\n"
     " a = where(c, x, y)\n return a", "graph(x: float32[2])\n return x"),
    ("where_of_constant", "graph(c: float32[2], x: float32[2])\n a = where(c, x, x)\n return a",
     "graph(x: float32[2])\n return x"),
    ("fill_moved", "graph()\n o = _full(shape=(2, 3), value=5)\n a = Reshape(o, shape=(6,))\n return a",
     "graph()\n a = _full(shape=(6,), value=5)\n return a"),
    ("fill_moved", "graph()\n o = _full(shape=(1, 3), value=5)\n a = broadcast_to(o, shape=(2, 3))\n return a",
     "graph()\n a = _full(shape=(2, 3), value=5)\n return a"),
    ("fill_computed", "graph()\n o = _full(shape=(200, 300), value=4)\n p = _full(shape=(200, 300), value=3)\n"
     " a = elemwise_mul(o, p)\n return a", "graph()\n a = _full(shape=(200, 300), value=12)\n return a"),
    ("fill_computed", "graph()\n o = _full(shape=(2, 3), value=4)\n a = sum(o, axis=(1,))\n return a",
     "graph()\n a = _full(shape=(2,), value=12)\n return a"),
    ("fill_computed", "graph()\n o = _full(shape=(2000, 3000), value=4)\n a = sum(o)\n return a", None),
    ("fill_computed", "graph()\n o = _full(shape=(2,), value=200, dtype=uint8)\n a = elemwise_add(o, o)\n return a",
     "graph()\n a = _full(shape=(2,), value=144, dtype=uint8)\n return a"),
    ("fill_as_scalar", "graph(x: float32[2])\n o = _full(shape=(2,), value=3)\n a = elemwise_sub(o, x)\n return a",
     "graph(x: float32[2])\n a = _rminus_scalar(x, scalar=3)\n return a"),
    ("fill_as_scalar", "graph(x: float32[2,3])\n o = _full(shape=(3,), value=3)\n a = broadcast_div(x, o)\n return a",
     "graph(x: float32[2,3])\n a = _div_scalar(x, scalar=3)\n return a"),
    ("fill_as_scalar", "graph(x: int32[2])\n o = _full(shape=(2,), value=3, dtype=int32)\n"
     " a = elemwise_sub(o, x)\n return a", None),
    ("scalar_chain", "graph(x: float32[2])\n a = _mul_scalar(x, scalar=0.3)\n b = _mul_scalar(a, scalar=0.5)\n"
     " return b",
     "graph(x: float32[2])\n b = _mul_scalar(x, scalar=0.15)\n return b"),
    ("scalar_chain", "graph(x: float32[2])\n a = _mul_scalar(x, scalar=0.3)\n b = _mul_scalar(a, scalar=3)\n return b",
     None),
    ("scalar_chain", "graph(x: int32[2])\n a = _mul_scalar(x, scalar=3)\n b = _mul_scalar(a, scalar=7)\n return b",
     "graph(x: int32[2])\n b = _mul_scalar(x, scalar=21)\n return b"),
    ("scalar_chain", "graph(x: int32[2])\n a = _mul_scalar(x, scalar=2.5)\n b = _mul_scalar(a, scalar=2)\n return b",
     None),
    ("scalar_chain", "graph(x: float32[2])\n a = _mul_scalar(x, scalar=1e-30)\n"
     " b = _mul_scalar(a, scalar=6.103515625e-05)"
     "\n c = _mul_scalar(b, scalar=6.103515625e-05)\n return c",
     "graph(x: float32[2])\n a = _mul_scalar(x, scalar=1e-30)\n b = _mul_scalar(a, scalar=3.725290298461914e-09)\n"
     " return b"),
    ("saturated_relu", "graph(x: float32[2])\n a = relu(x)\n b = _mxc_saturate(a, dtype=uint8)\n return b",
     "graph(x: float32[2])\n b = _mxc_saturate(x, dtype=uint8)\n return b"),
    ("saturated_relu", "graph(x: float32[2])\n a = relu(x)\n b = _mxc_saturate(a, dtype=int8)\n return b", None),
    ("double_negative", "graph(x: float32[2])\n a = negative(x)\n b = negative(a)\n return b",
     "graph(x: float32[2])\n return x"),
    ("idempotent", "graph(x: float32[2])\n a = relu(x)\n b = relu(a)\n return b",
     "graph(x: float32[2])\n a = relu(x)\n return a"),
    ("idempotent", "graph(x: float32[2])\n a = floor(x)\n b = ceil(a)\n return b", None),
    ("reshape_to_same", "graph(x: float32[2,3])\n a = Reshape(x, shape=(2, -1))\n return a",
     "graph(x: float32[2,3])\n return x"),
    ("reshape_of_reshape", "graph(x: float32[2,3])\n a = Reshape(x, shape=(6,))\n b = Reshape(a, shape=(3, 2))\n"
     " return b",
     "graph(x: float32[2,3])\n b = Reshape(x, shape=(3, 2))\n return b"),
    ("reshape_of_reshape", "graph(x: float32[2,3])\n a = Reshape(x, shape=(6,))\n b = Reshape(a, shape=(2, 3))\n"
     " return b",
     "graph(x: float32[2,3])\n return x"),
    ("transpose_of_transpose", "graph(x: float32[2,3,4])\n a = transpose(x, axes=(1, 2, 0))\n"
     " b = transpose(a, axes=(0, 2, 1))\n return b",
     "graph(x: float32[2,3,4])\n b = transpose(x, axes=(1, 0, 2))\n return b"),
    ("transpose_as_reshape", "graph(x: float32[2,1,4])\n a = transpose(x, axes=(1, 0, 2))\n return a",
     "graph(x: float32[2,1,4])\n a = Reshape(x, shape=(1, 2, 4))\n return a"),
    ("transpose_as_reshape", "graph(x: float32[2,3])\n a = transpose(x, axes=(0, 1))\n return a",
     "graph(x: float32[2,3])\n return x"),
    ("transpose_as_reshape", "graph(x: float32[2,3])\n a = transpose(x)\n return a", None),
    ("transpose_into_product", "graph(x: float32[2,3], y: float32[4,2])\n a = transpose(x)\n b = transpose(y)\n"
     " c = dot(a, b)\n return c",
     "graph(x: float32[2,3], y: float32[4,2])\n c = dot(x, y, transpose_a=True, transpose_b=True)\n return c"),
    ("transpose_into_product", "graph(x: float32[4,2,3], y: float32[4,2,5])\n a = transpose(x, axes=(0, 2, 1))\n"
     " c = batch_dot(a, y)\n return c",
     "graph(x: float32[4,2,3], y: float32[4,2,5])\n c = batch_dot(x, y, transpose_a=True)\n return c"),
    ("transpose_into_product", "graph(x: float32[2,3,4], y: float32[2,5])\n a = transpose(x)\n c = dot(a, y)\n"
     " return c", None),
    ("takes_all", "graph(x: float32[2,3])\n a = slice_axis(x, axis=0, begin=0, end=None)\n b = Concat(a, num_args=1)\n"
     " c = broadcast_to(b, shape=(2, 3))\n return c", "graph(x: float32[2,3])\n return x"),
    ("takes_all", "graph(x: float32[2,3])\n a = Concat(x, x, num_args=2)\n return a", None),
    ("broadcast_of_equal_shapes", "graph(x: float32[2,3], y: float32[2,3])\n a = broadcast_maximum(x, y)\n return a",
     "graph(x: float32[2,3], y: float32[2,3])\n a = _maximum(x, y)\n return a"),
    ("broadcast_of_equal_shapes", "graph(x: float32[2,3], y: float32[1,3])\n a = broadcast_add(x, y)\n return a", None),
    ("pick_before_arithmetic", "graph(x: float32[2,3], y: float32[2,1], i: float32[2])\n a = broadcast_sub(x, y)\n"
     " b = pick(a, i, mode=wrap)\n return b",
     "graph(x: float32[2,3], y: float32[2,1], i: float32[2])\n p = pick(x, i, axis=1, keepdims=True, mode=wrap)\n"
     " a = broadcast_sub(p, y)\n b = Reshape(a, shape=(2,))\n return b"),
    ("pick_before_arithmetic", "graph(x: float32[2,3,4], i: float32[2,1,4])\n a = exp(x)\n"
     " s = sum(a, axis=(1,))\n b = pick(a, i, axis=1, keepdims=True)\n return b, s",
     "graph(x: float32[2,3,4], i: float32[2,1,4])\n p = pick(x, i, axis=1, keepdims=True)\n b = exp(p)\n a = exp(x)\n"
     " s = sum(a, axis=(1,))\n return b, s"),
    # the whole is an output, is read from memory, or has two large operands; y differs along the axis
    ("pick_before_arithmetic", "graph(x: float32[2,3], i: float32[2])\n a = exp(x)\n b = pick(a, i)\n return b, a",
     None),
    ("pick_before_arithmetic", "graph(x: float32[2,3], i: float32[2], w: float32[3,2])\n a = exp(x)\n b = pick(a, i)\n"
     " c = dot(a, w)\n return b, c", None),
    ("pick_before_arithmetic", "graph(x: float32[2,3], y: float32[2,3], i: float32[2])\n a = elemwise_mul(x, y)\n"
     " b = pick(a, i)\n return b", None),
    ("pick_before_arithmetic", "graph(x: float32[2,3], y: float32[1,3], i: float32[2])\n a = broadcast_mul(x, y)\n"
     " b = pick(a, i)\n return b", None),
    ("pick_before_arithmetic", "graph(x: float32[2,1], i: float32[2])\n a = exp(x)\n b = pick(a, i)\n return b", None),
    ("sum_of_unpicked", "graph(g: float32[2], i: float32[2])\n a = _mxc_unpick(g, i, axis=1, size=3)\n"
     " b = sum(a, axis=(1,), keepdims=True)\n return b",
     "graph(g: float32[2])\n b = Reshape(g, shape=(2, 1))\n return b"),
    ("sum_of_unpicked", "graph(g: float32[2,1], i: float32[2])\n a = _mxc_unpick(g, i, axis=1, size=3, kept=True)\n"
     " b = sum(a, axis=(0,))\n return b", None),
]


@pytest.mark.parametrize(("name", "before", "after"), CASES, ids=lambda v: v if v and "\n" not in v else "")
def test_rule(name, before, after):
    graph = parse_graph(before)
    rules = tuple(rule for rule in RULES if rule.name == name)
    result, count = apply_rules(graph, options(), rules)
    if after is None:
        assert count == 0, graph_text(result)
    else:
        assert_graph(result, after)
    assert_same_numbers(graph, result)


def test_a_loss_over_classes_keeps_two_numbers_of_each_row():
    """The gradient makes the logarithms of all probabilities anew; no array of their size lies between the two."""
    graph = parse_graph("graph(x: float32[64,1000], i: float32[64])\n a = log_softmax(x)\n b = pick(a, i)\n return b")
    planned = plan_graph(graph, {"x": (64, 1000), "i": (64,)}, {}, {"x": "write"}, True, cpu_target(), True)
    assert planned.plan.arena_bytes < 64 * 1000 * 4 / 8
    # A row is read along itself, however many numbers of each row are stored.
    assert [skeleton(k) for k in planned.kernels.values() if "max" in k.name] == ["rows"]


CONV = "conv = Convolution(x, w, kernel=(3, 3), num_filter=4, num_group=2, no_bias=True)"
HEAD = "graph(x: float32[2,4,5,5], w: float32[4,2,3,3], b: float32[1,4,1,1], s: float32[1,4,1,1])"
# rule, before, after; static: w, b and s
SCALES = [
    ("scale_into_weight", f"{HEAD}\n {CONV}\n y = broadcast_mul(conv, s)\n return y",
     f"{HEAD.replace(', b: float32[1,4,1,1]', '')}\n t = Reshape(s, shape=(4, 1, 1, 1))\n v = broadcast_mul(w, t)\n"
     f" {CONV.replace('w,', 'v,')}\n return conv"),
    ("scale_into_weight", "graph(x: float32[2,3], w: float32[4,3], s: float32[1,4])\n"
     " f = FullyConnected(x, w, num_hidden=4, no_bias=True, flatten=False)\n y = broadcast_mul(s, f)\n return y",
     "graph(x: float32[2,3], w: float32[4,3], s: float32[1,4])\n t = Reshape(s, shape=(4, 1))\n"
     " v = broadcast_mul(w, t)\n f = FullyConnected(x, v, num_hidden=4, no_bias=True, flatten=False)\n return f"),
    ("scale_into_weight", "graph(x: float32[1,4,3], w: float32[4,3,2], s: float32[1,6,1])\n d = _mxc_conv_data_grad("
     "x, w, kernel=(2,), stride=(1,), dilate=(1,), pad=(0,), num_group=2, shape=(1, 6, 4))\n"
     " y = broadcast_mul(d, s)\n return y",
     "graph(x: float32[1,4,3], w: float32[4,3,2], s: float32[1,6,1])\n u = Reshape(w, shape=(2, 2, 3, 2))\n"
     " t = Reshape(s, shape=(2, 1, 3, 1))\n m = broadcast_mul(u, t)\n v = Reshape(m, shape=(4, 3, 2))\n"
     " d = _mxc_conv_data_grad(x, v, kernel=(2,), stride=(1,), dilate=(1,), pad=(0,), num_group=2, shape=(1, 6, 4))\n"
     " return d"),
    # another reader of the convolution; a scale that is not static, or not one for each channel
    ("scale_into_weight", f"{HEAD}\n {CONV}\n y = broadcast_mul(conv, s)\n return y, conv", None),
    ("scale_into_weight", f"{HEAD}\n {CONV}\n z = mean(conv, axis=(0, 2, 3), keepdims=True)\n"
     " y = broadcast_mul(conv, z)\n return y", None),
    ("scale_into_weight", "graph(x: float32[2,4,5,5], w: float32[4,2,3,3], s: float32[1,1,1,3])\n"
     f" {CONV}\n y = broadcast_mul(conv, s)\n return y", None),
    ("scale_before_shift", f"{HEAD}\n {CONV}\n y = broadcast_add(conv, b)\n z = broadcast_mul(y, s)\n return z",
     f"{HEAD}\n {CONV}\n y = broadcast_mul(conv, s)\n c = elemwise_mul(b, s)\n z = broadcast_add(y, c)\n return z"),
    ("shifts_together", f"{HEAD}\n {CONV}\n y = broadcast_add(conv, b)\n z = broadcast_add(y, s)\n return z",
     f"{HEAD}\n {CONV}\n c = elemwise_add(b, s)\n z = broadcast_add(conv, c)\n return z"),
]
STATIC = frozenset(["w", "b", "s"])


@pytest.mark.parametrize(("name", "before", "after"), SCALES, ids=lambda v: v if v and "\n" not in v else "")
def test_scales_go_into_weights(name, before, after):
    graph = parse_graph(before)
    rules = tuple(rule for rule in RULES if rule.name == name)
    result, count = apply_rules(graph, options(static=STATIC), rules)
    if after is None:
        assert count == 0, graph_text(result)
    else:
        assert_graph(result, after)
    assert_same_numbers(graph, result)
    for other in (options(), options(static=STATIC, is_train=True), options(static=STATIC, grad_req={"w": "write"})):
        assert apply_rules(graph, other, rules)[1] == 0


def test_rules_are_for_operators_of_the_table():
    assert [op for rule in RULES for op in rule.ops if table.get(op).name != op] == []


def test_every_rule_is_tested():
    assert {rule.name for rule in RULES} == {name for name, *_ in [*CASES, *SCALES]}


def test_the_pass_repeats_until_nothing_changes_and_drops_what_nothing_needs():
    graph = parse_graph("""graph(x: float32[2,3])
      o = ones_like(x)
      p = Reshape(o, shape=(3, 2))
      q = Reshape(p, shape=(2, 3))
      a = broadcast_mul(x, q)
      n = negative(a)
      m = negative(n)
      r = _plus_scalar(m, scalar=0)
      s = Reshape(r, shape=(6,))
      return s""")
    result = simplify(graph, options())
    assert_graph(result, "graph(x: float32[2,3])\n s = Reshape(x, shape=(6,))\n return s")
    assert same_graph(simplify(result, options()), result)
    assert_same_numbers(graph, result)


def test_a_convolution_with_bias_takes_in_scale_and_shift():
    graph = parse_graph(f"""graph(x: float32[2,4,5,5], w: float32[4,2,3,3], b: float32[1,4,1,1], s: float32[1,4,1,1],
        t: float32[1,4,1,1])
      {CONV}
      y = broadcast_add(conv, b)
      z = broadcast_mul(y, s)
      u = broadcast_add(z, t)
      r = relu(u)
      return r""".replace("\n        t:", " t:"))
    result = simplify(graph, options(static=frozenset("wbst")))
    data_nodes = [n.op.name for n in result.nodes if n.op and _reads(n, "x")]
    assert data_nodes == ["Convolution", "broadcast_add", "relu"]
    assert_same_numbers(graph, result)


def _reads(node, name):
    return any(e.node.name == name or (e.node.op is not None and _reads(e.node, name)) for e in node.inputs)


@pytest.mark.parametrize("scalar", ["inf", "-inf", "nan"])
def test_integers_times_what_is_no_integer_stay(scalar: str) -> None:
    text = f"graph(x: int32[3])\n a = _mul_scalar(x, scalar={scalar})\n b = _mul_scalar(a, scalar=2.0)\n return b"
    assert_graph(simplify(parse_graph(text), options()), text)
