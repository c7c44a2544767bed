"""The operator table: the loader's complaints, names, inputs and outputs, and agreement with MXNet's registry."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mxc.compiler.error import MXNetError, UnsupportedError, nearest
from mxc.compiler.graph.graph import Node
from mxc.compiler.ops import loader, table
from mxc.compiler.ops.backward_operator import backward_of
from mxc.compiler.ops.dtypes import dtype_name, numpy_dtype
from mxc.compiler.ops.infer import infer_node
from mxc.compiler.ops.operator import Kind, Params, condition
from mxc.compiler.ops.params import DTYPES
from mxc.compiler.ops.rules import rules_of

REGISTRY = Path(__file__).parents[2] / "shared" / "reference" / "ops.json"


def test_the_table_has_no_complaints() -> None:
    assert loader.lint(loader.load()) == []


GOOD = """
- op: double
  kind: elementwise
  inputs: [data]
  expr: data * 2
"""
BAD = [
    ("- op: x\n  kind: elementwise\n  inputz: [a]\n", r"^ops\.yaml:3: unknown key 'inputz'; did you mean 'inputs'"),
    ("- op: x\n  kind: elementwise\n  inputs: [a]\n  starts: {b: one}\n", "operator x: starts: b is not an input"),
    ("- kind: elementwise\n", "ops.yaml:1: operator .*: the key op is missing"),
    ("- op: x\n  aliases:\n  - y\n  kind: opaque\n", r"aliases as \[a, b\]"),
    ("- [x]\n", "expected a mapping with the key op"),
    ("- op: x\n  inputs: []\n", "operator x: the key kind is missing"),
    ("- op: x\n  kind: elementwize\n",
     r"^ops\.yaml:2: operator x: unknown kind 'elementwize'; did you mean 'elementwise'"),
    ("- op: x\n  kind: composite\n",
     "unknown kind 'composite'; expected one of elementwise, broadcast, injective, reduction, anchor, opaque$"),
    ("- op: x\n  kind: opaque\n  float16: true\n", r"^ops\.yaml:3: operator x: float16: expected always or passed"),
    ("- op: x\n  kind: opaque\n  params: {a: integer}\n", "operator x: 'integer' is not a parameter type"),
    ("- op: x\n  kind: opaque\n  inputs: [a when b]\n", "input 'a when b': expected NAME"),
    ("- op: x\n  kind: elementwise\n  inputs: [a]\n  params: {c: float = 1}\n  expr: a + b\n",
     r"operator x: expr 'a \+ b': unknown name b; expected a, c$"),
    ("- op: x\n  kind: elementwise\n  inputs: [a]\n  expr: f(a)\n",
     "f is not a function of the language; docs/adding-an-operator.md lists"),
    ("- op: x\n  kind: elementwise\n  inputs: [a]\n  expr: \"clip(a, 0, 1)\"\n",
     r"clip is not a function of the language; say min\(max\(x, a\), b\); docs/adding-an-operator.md"),
    ("- op: x\n  kind: elementwise\n  inputs: [a]\n  expr: sqr(a)\n", "function of the language; did you mean 'sqrt'"),
    ("- op: x\n  kind: elementwise\n  inputs: [a]\n  expr: a\n  grad: {b: og}\n", "grad: b is not an input"),
    ("- op: x\n  kind: elementwise\n  inputs: [a]\n  expr: a\n  grad: {a: ogg}\n",
     "unknown name ogg; expected a, count, og, out$"),
    ("- op: x\n  kind: reduction\n  inputs: [a]\n  reduce: {combine: add, body: a}\n", "expected combine"),
    ("- op: x\n  kind: opaque\n- op: y\n  aliases: [x]\n  kind: opaque\n", "ops.yaml:3: x is the operator x already"),
    ("- op: x\n  kind: opaque\n  kind: anchor\n", "^ops.yaml:3: the key kind is there twice"),
    ("op: x\n", "expected a list of operators"),
    ("- op: [\n", "ops.yaml"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_mistakes_are_named_with_their_line(text: str, message: str) -> None:
    with pytest.raises(MXNetError, match=message):
        loader.load(text)


def test_all_mistakes_are_listed_at_once() -> None:
    with pytest.raises(MXNetError) as error:
        loader.load(GOOD + "- op: x\n  kind: opaque\n  a: 1\n- op: y\n  kind: opaque\n  b: 1\n")
    assert [line.split(":")[1] for line in str(error.value).splitlines()] == ["8", "11"]


def test_an_unknown_rule_is_named_with_its_line() -> None:
    operators = loader.load(GOOD + "  shape: same_shap\n")
    (complaint,) = [c for c in loader.lint(operators, ["shape"]) if "double" in c]
    assert complaint.startswith("ops.yaml:2: operator double: there is no shape rule 'same_shap'")
    assert "did you mean 'same_shape'" in complaint


def test_a_function_with_other_parameters_is_no_rule() -> None:
    """It is named with what it takes, and what a rule takes."""
    operators = loader.load("- family: softmax\n" + GOOD + "  reference: softmax_over\n")
    (complaint,) = [c for c in loader.lint(operators, ["reference"]) if "double" in c]
    assert complaint == ("ops.yaml:3: operator double: softmax_over in compiler/operators/softmax/reference.py takes "
                         "(x, axes), and a reference rule takes (params, inputs, is_train, rng)")


def test_an_operator_without_kernels_says_by_what_it_is_computed() -> None:
    operators = loader.load("- op: a\n  kind: opaque\n- op: b\n  kind: opaque\n  host: LAPACK\n"
                            "- op: c\n  kind: elementwise\n  inputs: [x]\n  expr: x\n  host: NumPy\n")
    assert [c for c in loader.lint(operators, []) if "operator" in c] == [
        "ops.yaml:1: operator a: it has neither a decomposition nor a routine; say by what the host computes it, as "
        "`host: LAPACK`", "ops.yaml:6: operator c: it has kernels, so `host: NumPy` is wrong"]


def test_what_is_missing_in_an_entry_is_said() -> None:
    softmax, nothing = loader.load("- family: softmax\n- op: softmax\n  kind: opaque\n  decompose: softmax\n"
                                   "- op: nothing\n  kind: opaque\n")
    with pytest.raises(MXNetError, match=r"operator softmax has no reference: its entry of ops.yaml names none; write "
                                         r"`reference: softmax`, a function that is there in "
                                         r"compiler/operators/softmax/reference\.py"):
        softmax.reference(softmax.make_params({}), [], [])
    with pytest.raises(MXNetError, match=r"write `reference: NAME`, a function of .*softmax/reference\.py"):
        nothing.reference(nothing.make_params({}), [], [])
    with pytest.raises(MXNetError, match=r"operator nothing has no shape rule; write `shape: NAME` in its entry of "
                                         r"ops\.yaml, the name of a function of its family's shape\.py"):
        infer_node(Node(nothing, "node", None, nothing.make_params({}), []), [], [])


def test_a_node_without_a_name_has_no_quotes_in_errors() -> None:
    op = table.get("elemwise_add")
    for name, start in ("", "elemwise_add: "), ("sum", "elemwise_add 'sum': "):
        with pytest.raises(MXNetError, match=f"^{start}"):
            infer_node(Node(op, name, None, op.make_params({}), []), [(2,), (3,)], ["float32"] * 2)


def test_unused_rules_are_named_with_file_and_line() -> None:
    complaints = loader.lint(loader.load(GOOD), ["shape", "dtype"])
    assert any("linear/shape.py:" in c and "no operator uses the shape rule dot" in c for c in complaints)
    assert not any("rule same_shape" in c for c in complaints), "a kind's default counts as used"


def test_a_rule_has_the_parameter_names_of_its_role() -> None:
    rules = rules_of("shape", "basic")
    assert "broadcast" in rules and "reduced_axes" not in rules and "merge" not in rules


def test_a_family_holds_for_what_follows_and_its_rules_come_first() -> None:
    text = GOOD + "- family: order\n- op: a\n  kind: opaque\n  dtype: sort_dtype\n- op: b\n  kind: opaque\n"
    operators = loader.load(text)
    assert [op.family for op in operators] == ["basic", "order", "order"]
    assert [op.rule("dtype").__module__.split(".")[-2] for op in operators] == ["basic", "order", "basic"]


def test_an_unknown_family_is_named_with_its_line() -> None:
    operators = loader.load("- family: ordre\n" + GOOD)
    complaint = next(c for c in loader.lint(operators, ["shape"]) if "family" in c)
    assert complaint.startswith("ops.yaml:3: operator double: there is no family 'ordre'; did you mean 'order'?")


@pytest.mark.parametrize(("name", "found"), [
    ("convolution", "Convolution"), ("BATCHNORM", "BatchNorm"), ("lrn", "LRN"), ("FULLYCONECTED", "FullyConnected"),
    ("Tanhh", "tanh"), ("reshap", "reshape"), ("Reshap", "Reshape")])
def test_the_nearest_name_is_one_in_another_case(name: str, found: str) -> None:
    assert nearest(name, table.names()) == f"; did you mean {found!r}?"


def test_no_name_is_near() -> None:
    assert nearest("xyzzy", table.names()) == "" == nearest("x", [])


def test_aliases_name_the_operator_and_unknown_names_get_the_nearest() -> None:
    assert table.get("_plus") is table.get("elemwise_add")
    assert table.has("ElementWiseSum") and not table.has("nothing")
    with pytest.raises(UnsupportedError, match="operator 'sigmiod' is not known; did you mean 'sigmoid'"):
        table.get("sigmiod")
    assert set(table.names()) >= {op.name for op in table.all_operators()}


def test_entries_are_read_when_asked_for_with_their_anchors() -> None:
    text = GOOD + "- op: a\n  kind: opaque\n  params: &p {x: int = 1}\n- op: b\n  kind: opaque\n  params: *p\n- op: [\n"
    assert dict(table.Table(loader.TableText(text)).get("b").make_params({})) == {"x": 1}


def test_kinds_are_ordered() -> None:
    assert list(Kind) == sorted(Kind) and Kind.ELEMENTWISE < Kind.BROADCAST < Kind.OPAQUE


def test_conditional_and_variadic_inputs_and_outputs() -> None:
    op, = loader.load("""
- op: sample
  kind: opaque
  inputs: [data, bias unless no_bias, gamma if act == 'prelu', arg*]
  variadic: num_args
  aux: [moving]
  outputs: [output*]
  count: num_outputs
  visible: 1 if hide else num_outputs
  params: {no_bias: bool = False, act: str = relu, num_args: int = 0, num_outputs: int = 1, hide: bool = False}
""")
    plain = op.make_params({})
    other = op.make_params({"no_bias": True, "act": "prelu", "num_args": 2, "num_outputs": 3})
    assert op.input_names(plain) == ("data", "bias")
    assert op.input_names(other) == ("data", "gamma", "arg0", "arg1")
    assert op.aux_names(plain) == ("moving",)
    assert (op.output_names(plain), op.output_names(other)) == (("output0",), ("output0", "output1", "output2"))
    assert (op.num_outputs(other), op.num_visible(other)) == (3, 3)
    assert op.num_visible(op.make_params({"num_outputs": 3, "hide": True})) == 1


@pytest.mark.parametrize("text", ["f(x)", "x.y", "x[0]", "lambda: x", "[x for x in y]"])
def test_conditions_are_checked(text: str) -> None:
    with pytest.raises(MXNetError, match="is not allowed"):
        condition(text, Params({"x": 1}))


def test_expressions_by_parameter_and_variadic_sums() -> None:
    add = table.get("add_n")
    assert add.expression(add.make_params({"num_args": 3})) == "arg0 + arg1 + arg2"
    chosen, = loader.load("- op: x\n  kind: elementwise\n  inputs: [data]\n  params: {act: \"enum(relu, square)\"}\n"
                          "  expr: {act: {relu: \"max(data, 0)\", square: data * data}}\n")
    square = chosen.make_params({"act": "square"})
    assert chosen.expression(square) == "data * data"
    made, takes = backward_of(chosen, "data")
    assert takes == ("og", "data")
    assert made.reference(square, [np.ones(1), np.full(1, 3.0)], ["float64"])[0].tolist() == [6.0]


SCALARS = [  # operator, dtype, scalar, is_int, result, dtype of the result
    ("_plus_scalar", "int32", 2.5, True, [-5, 5], "int32"),
    ("_plus_scalar", "int32", 2.5, False, [-4.5, 5.5], "float64"),
    ("_plus_scalar", "uint8", -3, True, [246, 0], "uint8"), ("_plus_scalar", "bool", 2, True, [3, 3], "int64"),
    ("_div_scalar", "int32", 2, True, [-3, 1], "int32"), ("_mod_scalar", "float32", -3, True, [-1.0, 0.0], "float32"),
    ("_rpower_scalar", "int32", 2, True, [0, 8], "int32"), ("_equal_scalar", "int32", 3.5, True, [0, 1], "int32"),
    ("_hypot_scalar", "int32", -3, True, [7, 4], "int32"),
    ("_mul_scalar", "float16", 0.1, True, [-0.7, 0.3], "float16"),
]


@pytest.mark.parametrize(("name", "dtype", "scalar", "is_int", "result", "out"), SCALARS)
def test_numbers_beside_tensors(name: str, dtype: str, scalar: float, is_int: bool, result: list, out: str) -> None:
    """As MXNet: the number is cast to the tensor's dtype."""
    op = table.get(name)
    params = op.make_params({"scalar": scalar, "is_int": is_int})
    data = np.array([-7, 3]).astype(dtype)
    rule = op.rule("dtype")
    assert rule is not None and rule(params, [dtype], [None])[1] == [out]
    (found,) = op.reference(params, [data], [out])
    assert found.dtype == out
    assert found.astype("float64") == pytest.approx(np.array(result, "float64"), rel=2e-3)


REDUCED = [
    ("sum", {}, (1,), [3]), ("sum", {"axis": ()}, (1,), [3]), ("mean", {"axis": 1}, (2,), [-1, 2]),
    ("sum", {"axis": 1, "exclude": True}, (3,), [-1, 1, 3]), ("prod", {"axis": 1, "keepdims": True}, (2, 1), [0, 6]),
    ("max", {"axis": (0, 1), "keepdims": True}, (1, 1), [3]), ("min", {"axis": (-1, -2)}, (1,), [-2]),
]


@pytest.mark.parametrize(("name", "given", "shape", "values"), REDUCED)
def test_reductions_of_integers(name: str, given: dict, shape: tuple[int, ...], values: list[int]) -> None:
    op = table.get(name)
    data = np.arange(6, dtype="int32").reshape(2, 3) - 2
    (found,) = op.reference(op.make_params(given), [data], ["int32"])
    rule = op.rule("shape")
    assert rule is not None
    assert rule(op.make_params(given), [data.shape], [None])[1] == [shape]
    assert found.shape == shape and found.ravel().tolist() == values


SHAPES = [  # operator, parameters, inputs, outputs, the inputs and outputs that follow
    ("exp", {}, [(2, 0)], [(0, 3)], [(2, 3)], [(2, 3)]),
    ("exp", {}, [None], [(2, 3)], [(2, 3)], [(2, 3)]),
    ("elemwise_add", {}, [None, (2, 3)], [None], [(2, 3), (2, 3)], [(2, 3)]),
    ("broadcast_add", {}, [(2, 1), (3,)], [None], [(2, 1), (3,)], [(2, 3)]),
    ("broadcast_add", {}, [(0, 1), (1, 3)], [(2, 3)], [(2, 1), (1, 3)], [(2, 3)]),
    ("broadcast_add", {}, [None, (1, 3)], [(2, 3)], [None, (1, 3)], [(2, 3)]),
    ("sum", {"axis": 1}, [(2, 3, 0)], [(2, 4)], [(2, 3, 4)], [(2, 4)]),
    ("sum", {"axis": 1, "keepdims": True}, [(2, 3, 0)], [(2, 1, 4)], [(2, 3, 4)], [(2, 1, 4)]),
    ("sum", {}, [None], [None], [None], [None]),
    ("_zeros", {"shape": (2, 0, 200)}, [], [(2, 5, 200)], [], [(2, 5, 200)]),
    ("_zeros", {}, [], [None], [], [None]),
    ("_arange", {"start": 0, "stop": 1, "step": 0.3, "repeat": 2}, [], [None], [], [(8,)]),
    ("_arange", {"start": 5}, [], [None], [], [(5,)]),
    ("where", {}, [(2,), None, (2, 3)], [None], [(2,), (2, 3), (2, 3)], [(2, 3)]),
    ("where", {}, [(2, 3), None, None], [(2, 0)], [(2, 3), (2, 3), (2, 3)], [(2, 3)]),
    ("dot", {}, [(2, 3, 4), (0, 5)], [None], [(2, 3, 4), (4, 5)], [(2, 3, 5)]),
    ("dot", {"transpose_a": True, "transpose_b": True}, [(4, 2), (5, 4)], [None], [(4, 2), (5, 4)], [(2, 5)]),
    ("dot", {}, [(3,), (3,)], [None], [(3,), (3,)], [(1,)]),
    ("batch_dot", {"transpose_b": True}, [(0, 2, 3), (5, 4, 0)], [None], [(5, 2, 3), (5, 4, 3)], [(5, 2, 4)]),
    ("batch_dot", {"transpose_a": True}, [(5, 3, 0), None], [(0, 2, 4)], [(5, 3, 2), (5, 3, 4)], [(5, 2, 4)]),
]


@pytest.mark.parametrize(("name", "given", "ins", "outs", "ins_found", "outs_found"), SHAPES)
def test_shapes_flow_both_ways(name: str, given: dict, ins: list, outs: list, ins_found: list,
                               outs_found: list) -> None:
    op = table.get(name)
    rule = op.rule("shape")
    assert rule is not None
    assert rule(op.make_params(given), ins, outs) == (ins_found, outs_found)


CONFLICTS = [("exp", {}, [(2, 3)], [(2, 4)]), ("exp", {}, [(2,)], [(2, 1)]),
             ("broadcast_add", {}, [(2,), (3,)], [None]),
             ("sum", {"axis": 5}, [(2, 3)], [None]), ("sum", {"axis": (0, 0)}, [(2, 3)], [None]),
             ("dot", {}, [(2, 3), (4, 5)], [None]), ("batch_dot", {}, [(2, 3, 4), (2, 5, 6)], [None]),
             ("batch_dot", {}, [(2, 3), None], [None]), ("_arange", {"start": 0, "stop": -1}, [], [None])]


@pytest.mark.parametrize(("name", "given", "ins", "outs"), CONFLICTS)
def test_shapes_that_conflict_are_refused(name: str, given: dict, ins: list, outs: list) -> None:
    op = table.get(name)
    rule = op.rule("shape")
    assert rule is not None
    with pytest.raises(MXNetError):
        rule(op.make_params(given), ins, outs)


# -- agreement with MXNet's registry

def _registry() -> dict[str, dict]:
    return json.loads(REGISTRY.read_text()) if REGISTRY.exists() else {}


def _shared_operators() -> list[str]:
    return [op.name for op in table.all_operators() if op.name in _registry()] or ["nothing"]


@pytest.mark.skipif(not REGISTRY.exists(), reason="the facts about MXNet's registry are not there")
@pytest.mark.parametrize("name", _shared_operators())
def test_inputs_parameters_and_defaults_are_mxnets(name: str) -> None:
    op, facts = table.get(name), _registry()[name]
    if name in ("_linspace", "_contrib_SparseEmbedding"):
        return  # Listed with those of _arange and Embedding; golden/norms.py and golden/values.py ask what MXNet takes.
    params = {k: f for k, f in facts.get("params", {}).items() if "Symbol" not in f["type"]}  # Crop's inputs
    unlisted = {"_contrib_quantized_rnn": {"quantized"}}.get(name, set())  # MXNet's files have it
    assert set(op.params) - unlisted == set(params) | ({op.variadic} - {""})
    for key, fact in params.items():
        kind = op.params[key]
        if "default" in fact:
            default = fact["default"]
            spelled = "None" if default == "None" and kind.optional else "()" if default == "None" else default
            assert kind.parse(spelled) == pytest.approx(kind.default), key
        if fact.get("required"):
            assert kind.required, key
        if fact["type"] == "enum":
            choices = {*kind.choices, *(["None"] if kind.optional else [])}
            assert choices >= set(fact["choices"]), key
    assert set(op.aliases) >= set(facts.get("aliases", []))


@pytest.mark.skipif(not REGISTRY.exists(), reason="the facts about MXNet's registry are not there")
@pytest.mark.parametrize("name", _shared_operators())
def test_inputs_are_mxnets(name: str) -> None:
    op, facts = table.get(name), _registry()[name]
    variadic = [i for i in op.inputs if i.variadic]
    if variadic:
        # UpSampling has named ones too; of quantized_concat's arrays each has a range, which MXNet does not list
        unnamed = {i.name for i in op.inputs if i.condition == variadic[0].condition}
        assert facts.get("variadic", "") == op.variadic and len(facts["inputs"] or ["data"]) == len(unnamed)
    else:
        listed = facts["inputs"] or [k for k, f in facts.get("params", {}).items() if "Symbol" in f["type"]]
        assert [n for n in op.listed_inputs if n in listed or n not in op.aux] == listed


def test_dtypes_are_numpys() -> None:
    assert all(dtype_name(numpy_dtype(d)) == d for d in DTYPES)
    assert all(np.dtype(d).name == d for d in DTYPES if d != "bfloat16")
