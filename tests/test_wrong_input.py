"""Wrong input gives one clear error, and unusual but right input gives right numbers."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference_plan import compile_reference

import mxc as mx
from mxc.compiler.error import MXNetError, UnsupportedError
from mxc.runtime import executor as runtime_executor
from mxc.runtime import storage

CPU = mx.cpu()
ONES = np.ones((2, 4), "float32")


@pytest.fixture(autouse=True)
def reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Executors run the operators' references: nothing here needs generated code."""
    original = runtime_executor.GraphExecutor.__init__

    def init(self: Any, *args: Any) -> None:
        original(self, *args[:4], compile_reference)

    monkeypatch.setattr(runtime_executor.GraphExecutor, "__init__", init)


def layer() -> Any:
    return mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")


def bound(**given: Any) -> Any:
    executor = layer().simple_bind(CPU, **{"data": (2, 4), **given})
    executor.arg_dict["fc_weight"][:] = np.arange(12).reshape(3, 4)
    return executor


def arrays(**changed: Any) -> dict[str, Any]:
    return {"data": mx.nd.ones((2, 4)), "fc_weight": mx.nd.ones((3, 4)), "fc_bias": mx.nd.ones(3), **changed}


def bind(args: dict[str, Any] | None = None, **given: Any) -> Any:
    return layer().bind(CPU, arrays() if args is None else args, **given)


def ran(executor: Any) -> Any:
    executor.forward(is_train=True)
    return executor


def variable(**given: Any) -> Any:
    return mx.sym.relu(mx.sym.Variable("data", **given), name="r")


def without(name: str) -> dict[str, Any]:
    return {k: v for k, v in arrays().items() if k != name}


OTHER = mx.nd.ones((2, 4), ctx=mx.cpu(1))
HUGE = (2**40, 2**40)

# what is done, the error's type, what its message says
WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "forward: unknown name": (lambda: bound().forward(datta=ONES), TypeError, "datta.*data, fc_weight, fc_bias"),
    "forward: shape": (lambda: bound().forward(data=np.ones((3, 4))), ValueError, r"data.*\(2, 4\).*\(3, 4\)"),
    "forward: None": (lambda: bound().forward(data=None), ValueError, "NoneType.*data"),
    "forward: list": (lambda: bound().forward(data=[[1.0] * 4] * 2), ValueError, "list.*data"),
    "forward: text": (lambda: bound().forward(data="x"), ValueError, "str.*data"),
    "forward: array of text": (lambda: bound().forward(data=np.full((2, 4), "a")), TypeError, "data needs numbers"),
    "forward: objects": (lambda: bound().forward(data=np.full((2, 4), None)), TypeError, "data needs numbers.*object"),
    "forward: complex": (lambda: bound().forward(data=ONES + 1j), TypeError, "data needs numbers.*complex"),
    "forward: records": (lambda: bound().forward(data=np.zeros((2, 4), [("a", "f4")])), TypeError, "needs numbers"),
    "set: shape": (lambda: bound().arg_dict["data"].__setitem__(slice(None), np.ones((3, 3))), ValueError,
                   r"\(3, 3\).*\(2, 4\)"),
    "array: None": (lambda: mx.nd.array(None), TypeError, "numbers"),
    "array: ragged": (lambda: mx.nd.array([[1, 2], [3]]), TypeError, "like an array"),
    "array: context": (lambda: mx.nd.array([1], ctx="cpu"), TypeError, r"Context such as mx.cpu\(\), got 'cpu'"),
    "array: dtype": (lambda: mx.nd.array([1], dtype="float8"), TypeError, "'float8'.*float32"),
    "array: negative": (lambda: mx.nd.zeros((-1, 2)), MXNetError, "negative dimension"),
    "array: huge": (lambda: mx.nd.zeros(HUGE), MXNetError, "elements; an array has at most"),
    "array: more than memory": (lambda: mx.nd.zeros((2**50,)), MXNetError, "out of memory"),
    "array: beyond int64": (lambda: mx.nd.zeros((10**30,)), MXNetError, "expected shape"),
    "array: rank": (lambda: mx.nd.zeros((1,) * 33), MXNetError, "33 dimensions"),
    "array: fraction": (lambda: mx.nd.zeros((2.5,)), MXNetError, "expected shape"),
    "bind: missing": (lambda: bind(without("fc_weight")), ValueError, "`fc_weight` is missing in `args`"),
    "bind: too few": (lambda: bind(list(arrays().values())[:2]), ValueError, "2 for 3.*data, fc_weight, fc_bias"),
    "bind: NumPy": (lambda: bind(arrays(data=ONES)), TypeError, "NDArray.*ndarray"),
    "bind: shape": (lambda: bind(arrays(fc_weight=mx.nd.ones((3, 5)))), MXNetError,
                    r"(?s)FullyConnected 'fc'.*\(3, 4\) and \(3, 5\).*data \(data\) = \(2, 4\).*weight \(fc_weight\)"),
    "bind: dtype": (lambda: bind(arrays(data=mx.nd.ones((2, 4), dtype="int32"))), MXNetError,
                    "(?s)FullyConnected 'fc'.*int32 and float32"),
    "bind: context": (lambda: bind(arrays(data=OTHER)), MXNetError, r"'data' is on cpu\(1\).*bound on cpu\(0\)"),
    "bind: 0-d": (lambda: variable().bind(CPU, [mx.nd.ones((1,)).reshape(())]), MXNetError, "needs the new shape"),
    "bind: gradient's shape": (lambda: bind(args_grad={"data": mx.nd.ones((2, 5))}), MXNetError,
                               r"gradient array of argument 'data'.*\(2, 5\).*\(2, 4\)"),
    "bind: gradient's dtype": (lambda: bind(args_grad={"data": mx.nd.ones((2, 4), dtype="float64")}), MXNetError,
                               "gradient array of argument 'data'.*float64"),
    "bind: gradient's context": (lambda: bind(args_grad={"data": OTHER}), MXNetError, r"'data' is on cpu\(1\)"),
    "bind: gradients missing": (lambda: bind(args_grad=[mx.nd.ones((2, 4))]), ValueError, "args_grad.*1 for 3"),
    "bind: no device": (lambda: layer().simple_bind(mx.gpu(0), data=(2, 4)), MXNetError, "gpu"),
    "simple_bind: nothing": (lambda: layer().simple_bind(CPU), MXNetError, "argument 'data': nothing is known"),
    "simple_bind: 0": (lambda: bound(data=(0, 4)), MXNetError, "argument 'data': dimension 0 is unknown"),
    "simple_bind: -5": (lambda: bound(data=(-5, 4)), MXNetError, "the shape of 'data': .* got .-5, 4"),
    "simple_bind: text": (lambda: bound(data="x"), TypeError, "'data'.*tuple"),
    "simple_bind: fraction": (lambda: bound(data=(2.5, 4)), TypeError, "'data'.*whole numbers"),
    "simple_bind: None within": (lambda: bound(data=(None, 4)), TypeError, "'data'.*whole numbers"),
    "simple_bind: huge": (lambda: bound(data=HUGE), MXNetError, "(?s)FullyConnected 'fc': data.*elements"),
    "simple_bind: huge output": (lambda: mx.sym.broadcast_to(mx.sym.Variable("x"), shape=HUGE, name="b").simple_bind(
        CPU, x=(1, 1)), MXNetError, "(?s)broadcast_to 'b': output.*elements"),
    "simple_bind: more than memory": (lambda: variable().simple_bind(CPU, data=(2**50,)), MXNetError, "out of memory"),
    "simple_bind: a variable": (lambda: mx.sym.Variable("x").simple_bind(CPU, x=HUGE), MXNetError, "elements"),
    "simple_bind: rank": (lambda: variable().simple_bind(CPU, data=(1,) * 33), MXNetError, "33 dimensions"),
    "simple_bind: dtype": (lambda: bound(type_dict={"data": "float8"}), TypeError, "'float8'"),
    "simple_bind: list of dtypes": (lambda: bound(type_dict=["float32"]), TypeError, "type_dict.*list"),
    "variable: shape": (lambda: variable(shape="x").simple_bind(CPU), MXNetError, "'data': its attribute __shape__"),
    "variable: name": (lambda: mx.sym.Variable(None), TypeError, "name"),
    "backward: shape": (lambda: ran(bound()).backward(mx.nd.ones((5, 5))), MXNetError,
                        r"'fc_output'.*\(5, 5\).*\(2, 3\)"),
    "backward: NumPy": (lambda: ran(bound()).backward(np.ones((2, 3))), TypeError, "NDArray"),
    "backward: name": (lambda: ran(bound()).backward({"x": mx.nd.ones((2, 3))}), ValueError, "'fc_output'"),
    "backward: nothing": (lambda: ran(bound()).backward(), MXNetError, "needs a head gradient for output 0"),
    "backward: first": (lambda: variable().simple_bind(CPU, data=(2, 3)).backward(mx.nd.ones((2, 3))), MXNetError,
                        "needs a value of <relu r>.*forward"),
    "copy_params_from: name": (lambda: bound().copy_params_from({"x": mx.nd.ones(2)}), ValueError, '"x".*data, fc_w'),
    "copy_params_from: shape": (lambda: bound().copy_params_from({"data": mx.nd.ones((2, 2))}), MXNetError,
                                r"'data'.*\(2, 2\).*\(2, 4\)"),
    "copy_params_from: None": (lambda: bound().copy_params_from({"data": None}), TypeError, "'data'.*NoneType"),
    "copy_params_from: list": (lambda: bound().copy_params_from([1]), TypeError, "arguments must be a dict"),
    "reshape: name": (lambda: bound().reshape(datta=(2, 4)), MXNetError, "'datta'.*data, fc_weight"),
    "reshape: -1": (lambda: bound().reshape(data=(-1, 4)), MXNetError, r"\(-1, 4\) of 'data' is not complete"),
    "reshape: text": (lambda: bound().reshape(data="x"), TypeError, "'data'.*tuple"),
    "reshape: huge": (lambda: bound().reshape(data=(2**50, 4), allow_up_sizing=True), MXNetError, "out of memory"),
    "operator: array": (lambda: mx.sym.relu(mx.nd.ones(3)), TypeError, "Symbol"),
    "operator: attribute": (lambda: mx.sym.FullyConnected(mx.sym.Variable("x"), num_hiden=3), MXNetError,
                            "unknown attribute 'num_hiden'; did you mean 'num_hidden'"),
    "operator: needed": (lambda: mx.sym.FullyConnected(mx.sym.Variable("x")), MXNetError, "'num_hidden'.*missing"),
    "operator: value": (lambda: mx.sym.Activation(mx.sym.Variable("x"), act_type="rellu"), MXNetError,
                        "'rellu'; did you mean 'relu'"),
    "operator: infinite integer": (lambda: mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=10**30), MXNetError,
                                   "num_hidden"),
    "operator: count": (lambda: mx.sym.SliceChannel(mx.sym.Variable("x"), num_outputs=2**40), MXNetError, "at most"),
    "two arguments of one name": (lambda: (mx.sym.Variable("x") + mx.sym.Variable("x")).simple_bind(CPU, x=(2,)),
                                  MXNetError, "both named 'x'"),
    "two outputs of one name": (lambda: mx.sym.Group([mx.sym.relu(mx.sym.Variable(v), name="n") for v in "ab"])
                                .simple_bind(CPU, a=(2,), b=(3,)).output_dict, ValueError, "same name"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input(name: str) -> None:
    call, error, says = WRONG[name]
    used = storage.statistics.used
    with pytest.raises(error, match=says) as caught:
        call()
    assert len(str(caught.value)) < 1000
    del caught
    assert abs(storage.statistics.used) <= used + (1 << 20)


def test_what_failed_left_the_executor_as_it_was() -> None:
    executor = bound()
    first = executor.forward(data=ONES)[0].asnumpy()
    for call in (lambda: executor.forward(data=ONES + 1, datta=ONES), lambda: executor.forward(data=np.ones((1, 4))),
                 lambda: executor.forward(data=ONES + 1, fc_bias=np.ones(4)), lambda: executor.reshape(data=(9, 4))):
        with pytest.raises((MXNetError, ValueError, TypeError)):
            call()
    np.testing.assert_array_equal(executor.forward()[0].asnumpy(), first)


BASE = np.arange(64, dtype="float32").reshape(8, 8)
LAYOUTS = {
    "transposed": BASE[:4, :2].T, "every other": BASE[::4, ::2], "backwards": BASE[1::-1, 3::-1],
    "broadcast": np.broadcast_to(np.float32([1, 2, 3, 4]), (2, 4)), "big endian": BASE[:2, :4].astype(">f4"),
    "big endian doubles, transposed": BASE[:4, :2].astype(">f8").T, "int16": BASE[:2, :4].astype("int16"),
    "uint64": BASE[:2, :4].astype("uint64"), "bool": BASE[:2, :4] % 2 == 0, "float16": BASE[:2, :4].astype("float16"),
    "unaligned": np.frombuffer(b"x" + BASE[:1].tobytes(), "float32", 8, 1).reshape(2, 4),
    "Fortran": np.asfortranarray(BASE[:2, :4]), "masked": np.ma.masked_array(BASE[:2, :4], BASE[:2, :4] > 3),
    "matrix": BASE[:2, :4].view(np.matrix),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_any_layout_of_numpy(name: str) -> None:
    values = LAYOUTS[name]
    plain = np.array(np.asarray(values), "float32")
    executor = bound()
    weight = executor.arg_dict["fc_weight"].asnumpy()
    np.testing.assert_array_equal(executor.forward(data=values)[0].asnumpy(), plain @ weight.T)
    executor.arg_dict["data"][:] = values
    np.testing.assert_array_equal(executor.arg_dict["data"].asnumpy(), plain)
    np.testing.assert_array_equal(mx.nd.array(values, dtype="float32").asnumpy(), plain)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_numbers_that_are_none_pass_through(value: float) -> None:
    executor = variable().simple_bind(CPU, data=(2,))
    with np.errstate(over="ignore"):
        expected = np.maximum(np.float32(value), 0)
    np.testing.assert_array_equal(executor.forward(data=np.full(2, value))[0].asnumpy(), [expected] * 2)


def test_a_file_tells_everything_unknown_at_once(tmp_path: Path) -> None:
    nodes = [{"op": "null", "name": "d", "inputs": []},
             {"op": "Convolutoin", "name": "c", "inputs": [[0, 0]]}, {"op": "Cafe", "name": "k", "inputs": [[1, 0]]},
             {"op": "FullyConnected", "name": "f", "attrs": {"num_hidden": "3", "no_bais": "1"}, "inputs": [[2, 0]]},
             {"op": "Convolutoin", "name": "e", "inputs": [[3, 0]]}]
    path = tmp_path / "net-symbol.json"
    path.write_text(json.dumps({"nodes": nodes, "heads": [[4, 0]]}))
    with pytest.raises(UnsupportedError) as caught:
        mx.sym.load(str(path))
    text = str(caught.value)
    for part in (str(path), "'Convolutoin' (node 'c', 'e', 2 of them); did you mean 'Convolution'?", "'Cafe'",
                 "'no_bais'; did you mean 'no_bias'?"):
        assert part in text


# -- operators


def convolution(**given: Any) -> Any:
    given = {"kernel": (3, 3), "num_filter": 4, **given}
    return mx.sym.Convolution(mx.sym.Variable("x"), name="op", **given)


def pooling(**given: Any) -> Any:
    return mx.sym.Pooling(mx.sym.Variable("x"), name="op", **given)


IMAGE = (2, 4, 6, 6)
EXTREME: dict[str, tuple[Any, tuple[int, ...], str]] = {
    "kernel larger than the image": (lambda: convolution(kernel=(9, 9)), IMAGE, "kernel"),
    "dilated kernel larger": (lambda: convolution(dilate=(4, 4)), IMAGE, "kernel"),
    "stride 0": (lambda: convolution(stride=(0, 1)), IMAGE, "stride"),
    "negative stride": (lambda: convolution(stride=(-1, 1)), IMAGE, "stride"),
    "negative pad": (lambda: convolution(pad=(-1, 0)), IMAGE, "pad"),
    "dilate 0": (lambda: convolution(dilate=(0, 1)), IMAGE, "dilate"),
    "kernel of another rank": (lambda: convolution(kernel=(3,)), IMAGE, "kernel|axes|dimensions"),
    "stride of another rank": (lambda: convolution(stride=(1, 1, 1)), IMAGE, "stride"),
    "groups that do not divide the data": (lambda: convolution(num_group=3, num_filter=3), IMAGE, "num_group"),
    "groups that do not divide the filters": (lambda: convolution(num_group=4, num_filter=6), IMAGE, "num_group"),
    "no filters": (lambda: convolution(num_filter=0), IMAGE, "num_filter"),
    "no groups": (lambda: convolution(num_group=0), IMAGE, "num_group"),
    "kernel 0": (lambda: convolution(kernel=(0, 3)), IMAGE, "kernel"),
    "kernel of 2**40": (lambda: convolution(kernel=(2**40, 1)), IMAGE, "kernel"),
    "weight that is too large": (lambda: convolution(num_filter=2**60), IMAGE, "elements"),
    "target too large": (lambda: mx.sym.Deconvolution(mx.sym.Variable("x"), kernel=(2, 2), stride=(2, 2), num_filter=1,
                                                      target_shape=(25, 25), name="op"), (1, 1, 12, 12), "25"),
    "window larger": (lambda: pooling(kernel=(7, 7)), IMAGE, "kernel"),
    "window empty": (lambda: pooling(kernel=(0, 0)), IMAGE, "kernel"),
    "window missing": (lambda: pooling(), IMAGE, "kernel"),
    "window in the padding": (lambda: pooling(kernel=(2, 2), pad=(2, 2)), IMAGE, "pad"),
    "pooling stride 0": (lambda: pooling(kernel=(2, 2), stride=(0, 0)), IMAGE, "stride"),
    "axis out of range": (lambda: mx.sym.sum(mx.sym.Variable("x"), axis=4, name="op"), IMAGE, "axis"),
    "axis twice": (lambda: mx.sym.sum(mx.sym.Variable("x"), axis=(1, -3), name="op"), IMAGE, "ax[ei]s"),
    "softmax axis": (lambda: mx.sym.softmax(mx.sym.Variable("x"), axis=-5, name="op"), IMAGE, "axis"),
    "expand_dims axis": (lambda: mx.sym.expand_dims(mx.sym.Variable("x"), axis=6, name="op"), IMAGE, "axis"),
    "batch norm axis": (lambda: mx.sym.BatchNorm(mx.sym.Variable("x"), axis=4, name="op"), IMAGE, "axis"),
    "permutation": (lambda: mx.sym.transpose(mx.sym.Variable("x"), axes=(0, 1, 1, 2), name="op"), IMAGE, "order"),
    "reshape size": (lambda: mx.sym.Reshape(mx.sym.Variable("x"), shape=(5, -1), name="op"), IMAGE, "elements"),
    "reshape codes": (lambda: mx.sym.Reshape(mx.sym.Variable("x"), shape=(-4, 7, 2, -2), name="op"), IMAGE, "7|split"),
    "reshape -1 twice": (lambda: mx.sym.Reshape(mx.sym.Variable("x"), shape=(-1, -1), name="op"), IMAGE, "-1"),
    "reshape -7": (lambda: mx.sym.Reshape(mx.sym.Variable("x"), shape=(-7,), name="op"), IMAGE, "-7"),
    "slice outside": (lambda: mx.sym.slice_axis(mx.sym.Variable("x"), axis=1, begin=5, end=9, name="op"), IMAGE,
                      "begin|end"),
    "slice of nothing": (lambda: mx.sym.slice_axis(mx.sym.Variable("x"), axis=1, begin=2, end=2, name="op"), IMAGE,
                         "begin|end|empty"),
    "split": (lambda: mx.sym.SliceChannel(mx.sym.Variable("x"), num_outputs=3, name="op"), IMAGE, "divisible"),
    "squeeze": (lambda: mx.sym.SliceChannel(mx.sym.Variable("x"), num_outputs=2, squeeze_axis=True, name="op"), IMAGE,
                "squeeze"),
    "concat axis": (lambda: mx.sym.Concat(mx.sym.Variable("x"), dim=4, name="op"), IMAGE, "axis|dim"),
    "concat shapes": (lambda: mx.sym.Concat(mx.sym.Variable("x"), mx.sym.Variable("y", shape=(2, 4, 6, 5)), name="op"),
                      IMAGE, r"\(2, 4, 6, 5\)"),
    "concat ranks": (lambda: mx.sym.Concat(mx.sym.Variable("x"), mx.sym.Variable("y", shape=(2, 4)), name="op"), IMAGE,
                     r"\(2, 4\)"),
    "broadcast": (lambda: mx.sym.broadcast_add(mx.sym.Variable("x"), mx.sym.Variable("y", shape=(5,)), name="op"),
                  IMAGE,
                  "broadcast"),
    "broadcast_to": (lambda: mx.sym.broadcast_to(mx.sym.Variable("x"), shape=(2, 4, 6, 7), name="op"), IMAGE, "6|7"),
    "dot": (lambda: mx.sym.dot(mx.sym.Variable("x"), mx.sym.Variable("y", shape=(5, 6)), name="op"), (2, 4), "4.*5"),
    "no hidden": (lambda: mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=0, name="op"), IMAGE, "num_hidden"),
    "probability": (lambda: mx.sym.Dropout(mx.sym.Variable("x"), p=1.5, name="op"), IMAGE, "p"),
    "dropout axes": (lambda: mx.sym.Dropout(mx.sym.Variable("x"), axes=(7,), name="op"), IMAGE, "axes"),
    "prelu of scalars": (lambda: mx.sym.LeakyReLU(mx.sym.Variable("x"), mx.sym.Variable("g", shape=(3,)),
                                                  act_type="prelu", name="op"), IMAGE, "gamma"),
    "endless range": (lambda: mx.sym.arange(0, float("inf")) + mx.sym.Variable("x"), (4,), "finite"),
    "label": (lambda: mx.sym.SoftmaxOutput(mx.sym.Variable("x"), mx.sym.Variable("y", shape=(5,)), name="op"), (4, 10),
              r"label.*\(5,\)|\(4,\)"),
}


@pytest.mark.parametrize("name", EXTREME)
def test_extreme_parameters(name: str) -> None:
    make, shape, says = EXTREME[name]
    with pytest.raises(MXNetError, match=f"(?s){says}"):
        make().simple_bind(CPU, x=shape)


@pytest.mark.parametrize("seed, count", [(11, 400), pytest.param(12, 6000, marks=pytest.mark.slow)])
def test_e02_operators_at_random(seed: int, count: int) -> None:
    """Bad shapes, dtypes and parameters of every operator: MXNetError, ValueError or TypeError, nothing else."""
    here = Path(__file__).parent
    done = subprocess.run([sys.executable, str(here / "fuzz_operators.py"), str(seed), str(count)], capture_output=True,
                          text=True, timeout=900, env={**os.environ, "PYTHONPATH": str(here), "MXC_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.mark.parametrize("name, shapes, given, says", [
    ("min", [(0,)], {}, r"data has the shape \(0,\)"), ("broadcast_mul", [(2, 3), (2, 0, 3)], {}, "rhs has the shape"),
    ("LogisticRegressionOutput", [(2,), ()], {}, "label"), ("elemwise_add", [(2,)], {}, "takes 2 arrays"),
    ("_arange", [], {"start": 2.0, "repeat": 2**55}, "memory"), ("sum", [(2, 3)], {"axis": 2}, "axis"),
])
def test_one_operator_on_wrong_arrays(name: str, shapes: list, given: dict, says: str) -> None:
    from mxc.runtime.array import Array
    from mxc.runtime.invoke import invoke

    with pytest.raises(MXNetError, match=says):
        invoke(name, [Array.of(np.ones(shape, "float32")) for shape in shapes], given)


@pytest.mark.parametrize("value", ["0", "-3", "abc", "2.5", "\u00b2", "100000"])
def test_impossible_numbers_of_threads(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    from mxc.compiler.system import env

    monkeypatch.setenv("MXC_NUM_THREADS", value)
    monkeypatch.setenv("MXC_DEBUG", value)
    assert 1 <= env.num_threads() <= 256 and env.debug_level() >= 0


@pytest.mark.parametrize("dtype", ["(1,2", "1" * 5000, "float33", "(2,)f4", object, "O", "S3"])
def test_what_is_no_dtype(dtype: object) -> None:
    with pytest.raises(TypeError, match="is not supported; use one of float32"):
        mx.nd.zeros((2,), dtype=dtype)
