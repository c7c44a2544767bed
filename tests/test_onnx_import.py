"""ONNX models read as symbols: each operator as onnxruntime computes it, shapes that stay free, and what is refused."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_cases import CASES, NodeCase, case, f, i, random
from onnx_models import assert_same, computed, described, model, run

import mxc as mx

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from mxc.contrib.onnx import get_model_metadata, import_model, import_to_gluon  # noqa: E402
from mxc.onnx.onnx2mx.load import CONSTANT, TABLE, symbol_of  # noqa: E402

helper = onnx.helper


def model_of_case(each: NodeCase) -> Any:
    """The model of one node."""
    values, constants = each.values(), each.constants()
    names = [f"x{k}" if given is not None else "" for k, given in enumerate(each.inputs)]
    outputs = [f"y{k}" for k in range(each.outputs)]
    node = helper.make_node(each.op_type, names, outputs, "node", **each.attributes)
    inputs = [described(name, array.shape, array.dtype) for name, array in values.items() if name not in constants]
    initializers = [onnx.numpy_helper.from_array(values[name], name) for name in sorted(constants)]
    return model([node], inputs, [onnx.ValueInfoProto(name=name) for name in outputs], initializers, each.opset)


@pytest.mark.parametrize("each", CASES, ids=str)
def test_an_operator_computes_what_onnxruntime_does(each: NodeCase):
    made = model_of_case(each)
    inputs = {name: array for name, array in each.values().items() if name not in each.constants()}
    wanted = computed(made, inputs)
    found = symbol_of(made)
    assert_same(run(found, {n: v for n, v in inputs.items() if n in found.symbol.list_inputs()}), wanted)


def test_every_operator_has_a_case():
    assert {*TABLE, *CONSTANT} <= {each.op_type for each in CASES}


FREE = {
    "flatten by hand": ([("Shape", ["x"], "s", {}), ("Gather", ["s", "zero"], "n", {}),
                         ("Concat", ["n", "minus"], "t", {"axis": 0}), ("Reshape", ["x", "t"], "y", {})],
                        {"zero": i(0), "minus": i(-1)}, (2, 3, 4)),
    "a token for each sample": ([("Shape", ["x"], "s", {}), ("Slice", ["s", "zero", "one"], "n", {}),
                                 ("Concat", ["n", "rest"], "t", {"axis": 0}), ("Expand", ["token", "t"], "e", {}),
                                 ("Concat", ["e", "x"], "y", {"axis": 1})],
                                {"zero": i(0), "one": i(1), "rest": i(1, 4), "token": random(1, 1, 4)}, (2, 3, 4)),
    "zeros of the batch's size": ([("Shape", ["x"], "s", {}), ("ConstantOfShape", ["s"], "z", {}),
                                   ("Sub", ["z", "x"], "y", {})], {}, (2, 3, 4)),
    "attention": ([("MatMul", ["x", "w"], "q", {}), ("Transpose", ["x"], "k", {"perm": [0, 2, 1]}),
                   ("MatMul", ["q", "k"], "a", {}), ("Softmax", ["a"], "p", {}), ("MatMul", ["p", "x"], "y", {})],
                  {"w": random(4, 4)}, (2, 3, 4)),
    "a convolution": ([("Conv", ["x", "w"], "c", {"pads": [1, 1, 1, 1]}), ("GlobalAveragePool", ["c"], "g", {}),
                       ("Flatten", ["g"], "y", {})], {"w": random(4, 3, 3, 3)}, (2, 3, 5, 5)),
    "states of a recurrent layer": ([("Transpose", ["x"], "t", {"perm": [1, 0, 2]}),
                                     ("LSTM", ["t", "w", "r"], "l", {"hidden_size": 2}),
                                     ("Squeeze", ["l", "one"], "y", {})],
                                    {"w": random(1, 8, 4), "r": random(1, 8, 2), "one": i(1)}, (2, 3, 4)),
    "elements by their places": ([("TopK", ["x", "one"], "v", {"axis": 2}), ("Identity", ["v"], "y", {})],
                                 {"one": i(1)}, (2, 3, 4)),
}


@pytest.mark.parametrize("name", FREE)
def test_the_batch_stays_free(name: str):
    nodes, constants, shape = FREE[name]
    made = model([helper.make_node(op, ins, [out, *(["v1"] if op == "TopK" else [])], **attributes)
                  for op, ins, out, attributes in nodes], [described("x", ["batch", *shape[1:]])],
                 [onnx.ValueInfoProto(name="y")],
                 [onnx.numpy_helper.from_array(array, key) for key, array in constants.items()])
    found = symbol_of(made)
    assert found.symbol.attr_dict()["x"]["__shape__"] == str((0, *shape[1:]))
    for batch in (1, 2, 5):
        x = {"x": random(batch, *shape[1:], seed=batch)}
        assert_same(run(found, x), computed(made, x))


def test_a_free_size_that_cannot_be_told_is_refused_and_can_be_given():
    made = model([helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Gather", ["s", "zero"], ["n"]),
                  helper.make_node("Range", ["zero", "n", "one"], ["r"]),
                  helper.make_node("Cast", ["r"], ["c"], to=1), helper.make_node("Add", ["x", "c"], ["y"], "sum")],
                 [described("x", ["length"])], [onnx.ValueInfoProto(name="y")],
                 [onnx.numpy_helper.from_array(np.array(value), name) for name, value in (("zero", 0), ("one", 1))])
    with pytest.raises(mx.base.MXNetError, match="Add 'sum': tensor 'c' depends on the free dimension length: give"):
        symbol_of(made)
    x = {"x": random(4)}
    assert_same(run(symbol_of(made, {"x": (4,)}), x), computed(made, x))
    with pytest.raises(ValueError, match="'z' is no input of the model; its inputs are x"):
        symbol_of(made, {"z": (4,)})


def test_what_there_is_no_counterpart_of_is_named_all_at_once():
    nodes = [helper.make_node("NonZero", ["x"], ["a"], "first"),
             helper.make_node("MaxPool", ["x"], ["b"], "second", kernel_shape=[2, 2], dilations=[2, 2]),
             helper.make_node("Relu", ["a"], ["c"], "behind"),
             helper.make_node("Thing", ["x"], ["d"], "third", domain="org.example")]
    graph = helper.make_graph(nodes, "graph", [described("x", (1, 1, 4, 4))],
                              [onnx.ValueInfoProto(name=name) for name in "bcd"])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("org.example", 1)])
    with pytest.raises(mx.base.MXNetError) as error:
        symbol_of(made)
    assert str(error.value).splitlines() == [
        "NonZero 'first': there is no counterpart of this operator",
        "MaxPool 'second': there is no counterpart of dilations=[2, 2]",
        "Thing 'third': there is no counterpart of this operator of the domain 'org.example'"]


REFUSED = {
    "GRU of another kind": (case("GRU", (5, 2, 3), random(1, 12, 3), random(1, 12, 4), hidden_size=4),
                            "linear_before_reset=None"),
    "an attribute": (case("CumSum", (3,), [np.array(0)]),
                     "an input axis that is computed, or depends on a free dimension"),
    "a mode": (case("Pad", (2, 3), i(1, 0, 0, 1), mode="wrap"), "mode='wrap'"),
    "ScatterND with a sum": (case("ScatterND", (4,), i(1, 2).reshape(2, 1), (2,), reduction="add"), "reduction='add'"),
    "indices of a pooling": (case("MaxPool", (1, 1, 4, 4), kernel_shape=[2, 2], outputs=2), "the output Indices"),
    "a reversed ArgMax": (case("ArgMax", (2, 3), select_last_index=1), "select_last_index=1"),
    "an einsum of one": (case("Einsum", (3, 3), equation="ii->i"), "equation='ii->i'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_attribute_without_counterpart_is_named(name: str):
    each, text = REFUSED[name]
    with pytest.raises(mx.base.MXNetError) as error:
        symbol_of(model_of_case(each))
    assert str(error.value) == f"{each.op_type} 'node': there is no counterpart of {text}"


def test_half_precision_and_constants_that_several_nodes_read():
    """MXNet's BatchNorm has float32 beside float16; its moving mean is its own, though the model has one for all."""
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"]),
             helper.make_node("BatchNormalization", ["c", "b", "b", "b", "v"], ["d"]),
             helper.make_node("BatchNormalization", ["d", "v", "b", "b", "v"], ["e"]),
             helper.make_node("Relu", ["e"], ["y"])]
    for dtype in (np.float16, np.float32):
        constants = {"w": random(4, 3, 3, 3), "b": random(4), "v": random(4) ** 2 + 1}
        made = model(nodes, [described("x", (1, 3, 5, 5), dtype)], [onnx.ValueInfoProto(name="y")],
                     [onnx.numpy_helper.from_array(array.astype(dtype), name) for name, array in constants.items()])
        x = {"x": random(1, 3, 5, 5).astype(dtype)}
        ((ours,), (theirs,)) = run(symbol_of(made), x), computed(made, x)
        assert ours.dtype == theirs.dtype == dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-2 if dtype == np.float16 else 1e-5, atol=1e-2)


def test_shapes_of_parameters_are_stated():
    """Nothing else says how large a constant is that is added to something smaller."""
    made = model([helper.make_node("Add", ["x", "anchors"], ["y"])], [described("x", (1, 4))],
                 [onnx.ValueInfoProto(name="y")], [onnx.numpy_helper.from_array(random(7, 1), "anchors")])
    executor = symbol_of(made).symbol.simple_bind(mx.cpu(), x=(1, 4))
    assert executor.arg_dict["anchors"].shape == (7, 1) and executor.outputs[0].shape == (7, 4)


UNFIT = {
    "an input too few": (case("Add", (2, 3)), r"Add 'node': Node.* input size 1"),
    "no kernel": (case("MaxPool", (1, 1, 4, 4)), "MaxPool 'node': Required attribute 'kernel_shape' is missing"),
    "shapes": (case("Add", (2, 3), (2, 4)), "Add 'node': broadcast_add"),
    "a permutation": (case("Transpose", (2, 3), perm=[0, 5]), "Transpose 'node': "),
    "pads of another rank": (case("Pad", (2, 3), i(1)), "Pad 'node': "),
    "a state of another size": (case("RNN", (5, 2, 3), random(1, 4, 3), random(1, 4, 4), hidden_size=9),
                                "RNN 'node': "),
    "a mode that there is not": (case("Resize", (1, 1, 2, 2), None, f(1, 1, 3, 3), mode="nosuch"), "Resize 'node': "),
}


@pytest.mark.parametrize("name", UNFIT)
def test_a_node_that_does_not_fit(name: str):
    each, text = UNFIT[name]
    values, constants = each.values(), each.constants()
    node = helper.make_node(each.op_type, [f"x{k}" if given is not None else "" for k, given in
                                           enumerate(each.inputs)], ["y"], "node", **each.attributes)
    graph = helper.make_graph([node], "graph", [described(key, array.shape) for key, array in values.items()
                                                if key not in constants], [described("y", None)],
                              [onnx.numpy_helper.from_array(values[key], key) for key in sorted(constants)])
    with pytest.raises(mx.base.MXNetError, match=text):
        symbol_of(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))


def test_files(tmp_path: Path):
    made = model([helper.make_node("Conv", ["data", "w"], ["c"], "conv"),
                  helper.make_node("BatchNormalization", ["c", "g", "b", "m", "v"], ["y"], "bn")],
                 [described("data", ["batch", 3, 5, 5])], [onnx.ValueInfoProto(name="y")],
                 [onnx.numpy_helper.from_array(random(*shape) ** 2, name) for name, shape in (
                     ("w", (4, 3, 3, 3)), *((each, (4,)) for each in "gbmv"))])
    path = tmp_path / "net.onnx"
    onnx.save(made, path)
    symbol, arguments, states = import_model(path)
    assert symbol.list_arguments() == ["data", "w", "g", "b"] and [*arguments] == ["w", "g", "b"]
    assert symbol.list_auxiliary_states() == [*states] == ["m", "v"]
    assert symbol.list_outputs() == ["bn_output"]
    assert get_model_metadata(path) == {"input_tensor_data": [("data", (0, 3, 5, 5))],
                                        "output_tensor_data": [("y", (0, 4, 3, 3))]}
    x = random(2, 3, 5, 5, seed=3)
    (wanted,) = computed(made, {"data": x})
    np.testing.assert_allclose(import_to_gluon(path, mx.cpu())(mx.nd.array(x)).asnumpy(), wanted, rtol=1e-5, atol=1e-5)
    onnx.save(made, tmp_path / "apart.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    again = import_model(tmp_path / "apart.onnx")
    assert (again[1]["w"].asnumpy() == arguments["w"].asnumpy()).all()
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(mx.base.MXNetError, match=r"apart.onnx: parameters in files beside it cannot be read"):
        import_model(tmp_path / "apart.onnx")


@pytest.mark.parametrize("content", [b"", b"<!DOCTYPE html><html>", b"\x08\x08" * 40], ids=["empty", "html", "noise"])
def test_a_file_that_is_no_model(content: bytes, tmp_path: Path):
    path = tmp_path / "net.onnx"
    path.write_bytes(content)
    with pytest.raises(mx.base.MXNetError, match=r"net.onnx: expected an ONNX model"):
        import_model(path)
    with pytest.raises(mx.base.MXNetError, match=r"none.onnx: cannot be read"):
        import_model(tmp_path / "none.onnx")


def test_older_models_are_converted():
    made = model([helper.make_node("Softmax", ["x"], ["y"], axis=1)], [described("x", (2, 3, 4))],
                 [onnx.ValueInfoProto(name="y")], opset=11)
    x = {"x": random(2, 3, 4)}
    assert_same(run(symbol_of(made), x), computed(made, x))  # all further axes are one in that version


def test_functions_of_a_model_are_its_nodes():
    square = helper.make_function("own", "square", ["a"], ["b"], [helper.make_node("Mul", ["a", "a"], ["b"])],
                                  [helper.make_opsetid("", 21)])
    graph = helper.make_graph([helper.make_node("square", ["x"], ["y"], domain="own")], "graph",
                              [described("x", (3,))], [described("y", (3,))])
    made = helper.make_model(graph, functions=[square], ir_version=10, opset_imports=[
        helper.make_opsetid("", 21), helper.make_opsetid("own", 1)])
    np.testing.assert_array_equal(run(symbol_of(made), {"x": f(1, 2, 3)})[0], [1, 4, 9])
