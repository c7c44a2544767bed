"""Symbols written as ONNX models: onnxruntime computes what they do, and so does what is read back."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models import EVERY
from onnx_models import assert_same, computed, run
from op_cases import Case, cases

import mxc as mx
from mxc.compiler.ops import table
from mxc.symbol.construct import apply

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

from mxc.contrib.onnx import import_model, import_to_gluon  # noqa: E402
from mxc.onnx.mx2onnx.export import TABLE, model_of, read_inputs  # noqa: E402
from mxc.onnx.onnx2mx.load import symbol_of  # noqa: E402

Arrays = dict[str, np.ndarray]
CONSTANT = ("parameters", "moving_mean", "moving_var")  # inputs of samples that must be values
# Samples with parameters that ONNX has no counterpart of, and what the error says of them.
REFUSED = {
    ("Pooling", "same"): "pooling_convention=same", ("UpSampling", "nearest,num_args=2"): "num_args=2",
    ("dot", "transpose_a=True)(3,2,2)"): "transpose_a=True", ("RNN", "projection_size"): "projection_size=2",
    ("RNN", "clip_min"): "lstm_state_clip_min",
}
# Operators whose table has no sample that can be taken: parameters of their own.
OWN: dict[str, list[dict[str, Any]]] = {
    "_zeros": [{"shape": (2, 3)}], "_ones": [{"shape": (2, 3), "dtype": "int32"}],
    "_full": [{"shape": (2, 3), "value": 2.5}], "_arange": [{"start": 1, "stop": 7, "step": 2, "repeat": 2}],
    "_eye": [{"N": 3, "M": 4, "k": 1}], "_linspace": [{"start": 0, "stop": 1, "num": 5}],
}
SAMPLES = [*(each for name in TABLE if name not in OWN for each in cases(table.get(name))),
           *(Case(table.get(name), table.get(name).make_params(params), ()) for name, sets in OWN.items()
             for params in sets)]


def values_of(each: Case) -> Arrays:
    """Values of a sample's inputs by name: whole numbers where they are indices or lengths."""
    names = (*each.op.input_names(each.params), *each.op.aux_names(each.params))
    found = dict(zip(names, each.arrays("float32"), strict=True))
    for name, array in found.items():
        if name in ("index", "indices"):
            found[name] = np.random.default_rng(1).integers(0, 2, array.shape).astype(np.float32)
        elif name == "sequence_length":
            found[name] = np.arange(1, array.size + 1, dtype=np.float32)
        elif name == "moving_var":
            found[name] = np.abs(array) + 0.5
    return found


def outputs_of(symbol: Any, values: Arrays) -> list[np.ndarray]:
    """What a symbol computes."""
    arrays = {name: mx.nd.array(array, dtype=array.dtype) for name, array in values.items()}
    states = symbol.list_auxiliary_states()
    executor = symbol.bind(mx.cpu(), {n: arrays[n] for n in symbol.list_arguments()},
                           aux_states={n: arrays[n] for n in states})
    return [output.asnumpy() for output in executor.forward(is_train=False)]


def exported(symbol: Any, values: Arrays, parameters: Any, free: bool = False) -> tuple[Any, Arrays]:
    """(the model, values of its inputs). free: with the first axes of the inputs left open."""
    inputs = {name: values[name] for name in read_inputs(symbol.graph) if name not in parameters}
    shapes: Any = {name: ("batch", *array.shape[1:]) if free else array.shape for name, array in inputs.items()}
    made = model_of(symbol.graph, {name: values[name] for name in parameters if name in values}, shapes,
                    {name: array.dtype.name for name, array in inputs.items()})
    onnx.checker.check_model(made, full_check=True)
    return made, inputs


@pytest.mark.parametrize("each", SAMPLES, ids=str)
def test_an_operator_is_the_same_in_onnxruntime_and_back(each: Case):
    values = values_of(each)
    symbol = apply(each.op, "node", [mx.sym.Variable(name) for name in values], each.op.attrs_of(each.params), "node")
    refused = [text for (name, word), text in REFUSED.items() if name == each.op.name and word in str(each)]
    if refused:
        with pytest.raises(mx.base.MXNetError, match=f"{each.op.name} 'node': ONNX has no counterpart of {refused[0]}"):
            exported(symbol, values, CONSTANT)
        return
    made, inputs = exported(symbol, values, CONSTANT)
    wanted = outputs_of(symbol, values)
    got = computed(made, inputs)
    assert [array.dtype for array in got] == [array.dtype for array in wanted]
    assert_same(got, wanted)
    found = symbol_of(made)
    assert_same(run(found, {n: v for n, v in inputs.items() if n in found.symbol.list_inputs()}), wanted)


def test_every_operator_has_a_sample():
    assert {each.op.name for each in SAMPLES} == {*TABLE}


NETWORKS = ["lenet", "resnet20", "face_proposals", "shufflenet", "face_pyramid", "joints", "encoder", "language_model"]
LARGE = ["face_landmarks", "gender_age", "squeezenet", "mobilenet_v3_small", "densenet", "inception_v3", "ssd", "yolo3"]


def parameters_of(symbol: Any, shapes: Any) -> Arrays:
    """Values of all inputs, with which activations keep their size."""
    from mxc.cli.inputs import made_up_parameter

    arguments, _, states = symbol.infer_shape(**shapes)
    return {name: made_up_parameter(name, shape, "float32") for names, group in (
        (symbol.list_arguments(), arguments), (symbol.list_auxiliary_states(), states))
        for name, shape in zip(names, group, strict=True)}


@pytest.mark.parametrize("name", [*NETWORKS, *(pytest.param(each, marks=pytest.mark.slow) for each in LARGE)])
def test_a_network_is_the_same_in_onnxruntime_and_back(name: str):
    build, shapes = EVERY[name]
    symbol = build()
    values = parameters_of(symbol, shapes)
    rng = np.random.default_rng(0)
    for key in shapes:
        whole = (key == "data" and name == "language_model") or (key in ("segments", "lengths", "data") and \
            name == "encoder")
        values[key] = (rng.integers(1, 2 if key == "segments" else 9, shapes[key]) if whole else
                       rng.normal(size=shapes[key])).astype(np.float32)
    made, inputs = exported(symbol, values, [key for key in values if key not in shapes])
    wanted = outputs_of(symbol, values)
    assert_same(computed(made, inputs), wanted)
    assert_same(run(symbol_of(made), inputs), wanted)


@pytest.mark.parametrize("name", ["resnet20", "squeezenet", "face_proposals"])
def test_the_batch_stays_free(name: str):
    build, shapes = EVERY[name]
    symbol = build()
    values = parameters_of(symbol, shapes)
    made, _ = exported(symbol, values, [key for key in values if key not in shapes], free=True)
    assert made.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert made.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    found = symbol_of(made)
    for batch in (1, 3):
        x = np.random.default_rng(0).normal(size=(batch, *shapes["data"][1:])).astype(np.float32)
        wanted = outputs_of(symbol, {**values, "data": x, **{key: np.zeros(batch, np.float32) for key in values
                                                             if key.endswith("label")}})
        assert_same(computed(made, {"data": x}), wanted)
        assert_same(run(found, {"data": x}), wanted)


FREE = {
    "codes of a reshape": lambda x: mx.sym.reshape(x, (0, -4, 2, -1, -2)),
    "like": lambda x: mx.sym.broadcast_like(mx.sym.ones((1, 1, 1)), x),
    "a product with itself": lambda x: mx.sym.batch_dot(x, x, transpose_b=True),
    "sizes behind": lambda x: mx.sym.slice_like(x, mx.sym.slice_axis(x, axis=1, begin=0, end=2), axes=(1,)),
    "repeated": lambda x: mx.sym.repeat(x, repeats=2, axis=1),
    "places": lambda x: mx.sym.broadcast_add(x, mx.sym.expand_dims(mx.sym.contrib.arange_like(x, axis=1), axis=1)),
}


@pytest.mark.parametrize("name", FREE)
def test_an_operator_with_a_free_batch(name: str):
    symbol = FREE[name](mx.sym.Variable("x"))
    made, _ = exported(symbol, {"x": np.zeros((2, 4, 6), np.float32)}, (), free=True)
    for batch in (1, 3):
        x = {"x": np.random.default_rng(0).normal(size=(batch, 4, 6)).astype(np.float32)}
        assert_same(computed(made, x), outputs_of(symbol, x))
        assert_same(run(symbol_of(made), x), outputs_of(symbol, x))


X = mx.sym.Variable("x")
OPTIONS = {
    "softmax of samples": mx.sym.SoftmaxActivation(X), "softmax of rows": mx.sym.SoftmaxOutput(X, name="s"),
    "softmax of channels": mx.sym.SoftmaxOutput(X, multi_output=True, name="s"),
    "softmax of the last axis": mx.sym.SoftmaxOutput(X, preserve_shape=True, name="s"),
    "softmax that is flatter": mx.sym.softmax(X, temperature=2.0),
    "norm over space": mx.sym.L2Normalization(X, mode="spatial"),
    "layer norm of an inner axis": mx.sym.LayerNorm(X, mx.sym.ones((3,)) * 2, mx.sym.ones((3,)), axis=1),
    "average pooling beyond the padding": mx.sym.Pooling(X, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="avg",
                                                         pooling_convention="full"),
    "average pooling without the padding": mx.sym.Pooling(X, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="avg",
                                                          pooling_convention="full", count_include_pad=False),
    "average pooling of few rows": mx.sym.Pooling(X, kernel=(2, 2), stride=(3, 3), pool_type="avg",
                                                  pooling_convention="full"),
    "sum pooling beyond the data": mx.sym.Pooling(X, kernel=(3, 3), stride=(2, 2), pool_type="sum",
                                                  pooling_convention="full"),
    "sum pooling by another name": mx.sym.Pooling(X, kernel=(2, 2), pool_type="lp", p_value=1),
    "norm pooling beyond the data": mx.sym.Pooling(X, kernel=(3, 3), stride=(2, 2), pool_type="lp", p_value=2,
                                                   pooling_convention="full"),
    "halves": mx.sym.Group([mx.sym.rint(X * 0 + 2.5), mx.sym.round(X * 0 - 2.5), mx.sym.fix(X * 2)]),
    "pooling to sizes that do not divide": mx.sym.contrib.AdaptiveAvgPooling2D(X, output_size=(3, 2)),
    "resizing by scales": mx.sym.contrib.BilinearResize2D(X, scale_height=1.5, scale_width=2, mode="odd_scale"),
    "transposed convolution to a size": mx.sym.Deconvolution(
        X, mx.sym.ones((3, 2, 4, 4)), kernel=(4, 4), stride=(2, 2), num_filter=2, target_shape=(8, 11)),
    "backwards": mx.sym.slice(X, begin=(None, 2, None), end=(None, 0, None), step=(1, -1, 2)),
    "the largest of all": mx.sym.Group([mx.sym.argmax(X), mx.sym.topk(X, axis=None, k=3, ret_typ="value")]),
    "rows by a condition": mx.sym.where(mx.sym.Reshape(mx.sym.slice(X, begin=(0, 0, 0, 0), end=(2, 1, 1, 1)),
                                                       shape=(2,)) > 0, X, -X),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_of_operators(name: str):
    values = {"x": np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)}
    symbol = OPTIONS[name]
    made, inputs = exported(symbol, values, ())
    shapes, _, _ = symbol.infer_shape(x=(2, 3, 4, 5))
    labels = {key: np.zeros(shape, np.float32) for key, shape in zip(symbol.list_arguments(), shapes, strict=True)}
    wanted = outputs_of(symbol, {**labels, **values})
    assert_same(computed(made, inputs), wanted)
    assert_same(run(symbol_of(made), inputs), wanted)


def test_suppression_of_boxes_is_a_function_that_is_read_back():
    rng = np.random.default_rng(0)
    corners = rng.uniform(0, 50, (2, 30, 4))
    corners[..., 2:] += corners[..., :2] * rng.choice([1, -1], (2, 30, 2), p=[0.8, 0.2])
    rows = np.concatenate([rng.integers(-1, 3, (2, 30, 1)), rng.uniform(size=(2, 30, 1)), corners], -1)
    data = {"data": rows.astype(np.float32)}
    for options in ({"id_index": 0}, {"id_index": 0, "force_suppress": True, "topk": 10}, {"valid_thresh": 0.4},
                    {"in_format": "center", "out_format": "corner", "id_index": 0}, {"topk": 0},
                    {"out_format": "center", "background_id": 1, "id_index": 0}):
        symbol = mx.sym.contrib.box_nms(mx.sym.Variable("data"), overlap_thresh=0.3, coord_start=2, score_index=1,
                                        **options)
        made, _ = exported(symbol, data, ())
        assert_same(computed(made, data), outputs_of(symbol, data))
        found = symbol_of(made)
        assert [node.op.name for node in found.symbol.graph.nodes if node.op] == ["_contrib_box_nms"]
        assert_same(run(found, data), outputs_of(symbol, data))


def test_files(tmp_path: Path):
    net = mx.sym.Activation(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc"), act_type="relu",
                            name="act")
    rng = np.random.default_rng(0)
    parameters = {"arg:fc_weight": mx.nd.array(rng.normal(size=(3, 4))), "arg:fc_bias": mx.nd.array([1, 2, 3])}
    net.save(str(tmp_path / "net-symbol.json"))
    mx.nd.save(str(tmp_path / "net-0000.params"), parameters)
    x = {"data": rng.normal(size=(5, 4)).astype(np.float32)}
    arguments = {key[4:]: value for key, value in parameters.items()}
    wanted = outputs_of(net, {**x, **{key: value.asnumpy() for key, value in arguments.items()}})
    path = tmp_path / "net.onnx"
    for symbol, given, shapes in (
            (net, parameters, [(5, 4)]), (net, [arguments, {}], (5, 4)),
            (str(tmp_path / "net-symbol.json"), str(tmp_path / "net-0000.params"), [(5, 4)])):
        assert mx.onnx.export_model(symbol, given, shapes, np.float32, path) == path
        assert_same(computed(onnx.load(path), x), wanted)
    mx.contrib.onnx.export_model(net, parameters, onnx_file_path=path, dynamic=True,
                                 dynamic_input_shapes=[("None", 4)], run_shape_inference=True)
    made = onnx.load(path)
    assert [d.dim_param for d in made.graph.input[0].type.tensor_type.shape.dim] == ["batch", ""]
    assert [each.name for each in made.graph.output] == ["act_output"] and len(made.graph.value_info) == 1
    assert_same(computed(made, x), wanted)
    symbol, read, states = import_model(path)
    assert symbol.list_outputs() == ["act_output"] and {*read} == {"fc_weight", "fc_bias"} and not states


@pytest.mark.parametrize(("shapes", "types", "text"), [
    (None, np.float32, "in_shapes: give the shapes of the inputs a, b"),
    ([(1, 2)], np.float32, "in_shapes has 1 shapes; the symbol has 2 inputs without values: a, b"),
    ({"a": (1, 2)}, np.float32, "in_shapes: the shape of b is missing"),
    ([(1, 2), (1, 2)], [np.float32], "in_types has 1 dtypes; the symbol has 2 inputs"),
    ([(1, 2), (1, 3)], np.float32, "elemwise_add 'sum'")])
def test_shapes_that_do_not_fit(shapes: Any, types: Any, text: str, tmp_path: Path):
    symbol = mx.sym.elemwise_add(mx.sym.Variable("a"), mx.sym.Variable("b"), name="sum")
    with pytest.raises(mx.base.MXNetError, match=text):
        mx.onnx.export_model(symbol, {}, shapes, types, tmp_path / "net.onnx")
    assert not [*tmp_path.iterdir()]


def test_what_there_is_no_counterpart_of_is_named_all_at_once(tmp_path: Path):
    x = mx.sym.Variable("x")
    with pytest.raises(mx.base.MXNetError) as error:
        mx.onnx.export_model(mx.sym.gammaln(mx.sym.erfinv(x, name="first"), name="second"), {}, [(2,)],
                             onnx_file_path=tmp_path / "net.onnx")
    assert str(error.value) == "erfinv 'first': ONNX has no counterpart of this operator"
    with pytest.raises(mx.base.MXNetError) as error:
        mx.onnx.export_model(mx.sym.Group([mx.sym.topk(x, ret_typ="mask", name="a"), mx.sym.softmax(
            x, mx.sym.Variable("l"), use_length=True, name="b")]), {}, {"x": (2, 3), "l": (2,)}, ["float32", "int32"],
            onnx_file_path=tmp_path / "net.onnx")
    assert str(error.value).splitlines() == ["topk 'a': ONNX has no counterpart of ret_typ=mask",
                                             "softmax 'b': ONNX has no counterpart of use_length=True"]


def test_the_operators_that_are_written_are_listed():
    assert "Convolution" in mx.onnx.get_operator_support() and "gamma" not in mx.onnx.get_operator_support()


def test_other_dtypes(tmp_path: Path):
    x = mx.sym.Variable("x")
    for dtype in ("float16", "float64", "int32"):
        symbol = mx.sym.Group([x * 2 + 1, mx.sym.Cast(x > 1, dtype="float32"), mx.sym.sum(x, axis=1)])
        values = {"x": np.array([[1, 2, 3], [4, 5, 0]], dtype)}
        made, inputs = exported(symbol, values, ())
        assert_same(computed(made, inputs), outputs_of(symbol, values))
    with pytest.raises(mx.base.MXNetError, match=r"_mul_scalar.*no counterpart of the number 0.5 with values of dtype"):
        exported(x * 0.5, {"x": np.array([1], "int32")}, ())


@pytest.mark.parametrize("make", [lambda: mx.gluon.rnn.LSTM(5, 2, bidirectional=True),
                                  lambda: mx.gluon.rnn.GRU(5, layout="NTC")], ids=["LSTM", "GRU"])
def test_recurrent_layers_of_gluon(make: Any, tmp_path: Path):
    """Their vector of parameters is joined in the graph, of parameters alone."""
    net = make()
    net.initialize()
    x = mx.nd.array(np.random.default_rng(0).normal(size=(3, 2, 4)))
    wanted = net(x).asnumpy()
    values = {name: parameter.data() for name, parameter in net.collect_params().items()}
    mx.onnx.export_model(net(mx.sym.Variable("data")), values, (3, 2, 4), onnx_file_path=tmp_path / "net.onnx")
    assert_same(computed(onnx.load(tmp_path / "net.onnx"), {"data": x.asnumpy()}), [wanted])
    assert_same([import_to_gluon(tmp_path / "net.onnx")(x).asnumpy()], [wanted])


def test_labels_and_what_computes_them_are_no_inputs():
    label = mx.sym.Reshape(mx.sym.Variable("label"), shape=(-1,))
    symbol = mx.sym.SoftmaxOutput(mx.sym.Variable("data"), label, name="softmax")
    made, _ = exported(symbol, {"data": np.zeros((2, 3), np.float32)}, ())
    assert [each.name for each in made.graph.input] == ["data"]


def test_json_of_what_is_read_is_that_of_mxnet():
    symbol = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    values = {"data": np.zeros((1, 3), np.float32), "fc_weight": np.ones((2, 3), np.float32),
              "fc_bias": np.ones(2, np.float32)}
    made, _ = exported(symbol, values, ("fc_weight", "fc_bias"))
    found = json.loads(symbol_of(made).symbol.tojson())
    assert [node["op"] for node in found["nodes"]] == ["null", "null", "null", "FullyConnected"]
