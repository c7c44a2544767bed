"""What went wrong for users of MXNet: files, binding, shapes and reshaping. Each test's name begins with its report."""
from __future__ import annotations

import copy
import gc
import json
import struct
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mxc as mx
from mxc.compiler.error import ModelFileError, MXNetError
from mxc.runtime import storage

CPU = mx.cpu()


def net() -> Any:
    x = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), pad=(1, 1), num_filter=4, name="conv")
    x = mx.sym.BatchNorm(x, name="bn", fix_gamma=False)
    x = mx.sym.Pooling(mx.sym.Activation(x, act_type="relu"), kernel=(2, 2), stride=(2, 2), name="pool")
    return mx.sym.Pooling(x, global_pool=True, kernel=(1, 1), pool_type="avg", name="global")


def fill(executor: Any, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    for arrays in (executor.arg_dict, executor.aux_dict):
        for name in sorted(arrays):
            arrays[name][:] = rng.uniform(0.5, 1, arrays[name].shape)
    return executor


# -- files


def spelled(document: dict, spelling: str, short: bool, pointers: bool) -> dict:
    document = copy.deepcopy(document)
    for i, node in enumerate(document["nodes"]):
        attrs = node.pop("attrs", {})
        if spelling == "mixed":
            keys = sorted(attrs)
            node["param"], node["attr"] = ({k: attrs[k] for k in part} for part in (keys[::2], keys[1::2]))
        else:
            node[spelling] = attrs
        node["backward_source_id"] = -1 if i % 2 else i
        if short:
            node["inputs"] = [entry[:2] for entry in node["inputs"]]
        if node["op"] == "null":
            node.setdefault("attr", {})["kernel"] = "(3, 3)"  # copied from the layer, as old versions did
    if not pointers:
        del document["node_row_ptr"]
    return document


@pytest.mark.parametrize("spelling", ["attrs", "attr", "param", "mixed"])
@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("pointers", [False, True])
def test_l01_all_spellings_of_a_graph_mean_the_same(spelling: str, short: bool, pointers: bool) -> None:
    plain = net()
    loaded = mx.sym.load_json(json.dumps(spelled(json.loads(plain.tojson()), spelling, short, pointers)))
    for names in ("list_arguments", "list_auxiliary_states", "list_outputs"):
        assert getattr(loaded, names)() == getattr(plain, names)()
    assert loaded.infer_shape(data=(2, 3, 8, 8)) == plain.infer_shape(data=(2, 3, 8, 8))


@pytest.mark.slow
def test_l01_the_values_are_the_same_too() -> None:
    results = []
    for spelling in ("attrs", "mixed"):
        loaded = mx.sym.load_json(json.dumps(spelled(json.loads(net().tojson()), spelling, True, False)))
        results.append(fill(loaded.simple_bind(CPU, data=(2, 3, 8, 8))).forward()[0].asnumpy())
    np.testing.assert_array_equal(*results)


def old_graph(version: int | None, nodes: list[dict], heads: list[list[int]]) -> str:
    document: dict[str, Any] = {"nodes": nodes, "heads": heads}
    if version:
        document["attrs"] = {"mxnet_version": ["int", version]}
    return json.dumps(document)


def test_l03_graphs_of_version_0_8_get_their_auxiliary_states_and_attributes() -> None:
    nodes = [{"op": "null", "name": n, "inputs": []} for n in ("data", "fc_weight", "fc_bias", "bn_gamma", "bn_beta")]
    nodes += [{"op": "FullyConnected", "name": "fc", "inputs": [[0, 0], [1, 0], [2, 0]],
               "param": {"num_hidden": "3", "no_bias": "False"},
               "attr": {"ctx_group": "stage1", "weight_lr_mult": "1.2"}},
              {"op": "BatchNorm", "name": "bn", "param": {}, "inputs": [[5, 0], [3, 0], [4, 0]]}]
    loaded = mx.sym.load_json(old_graph(None, nodes, [[6, 0]]))
    assert loaded.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
    assert loaded.attr_dict()["fc_weight"]["__lr_mult__"] == "1.2"
    assert loaded.attr_dict()["fc"]["__ctx_group__"] == "stage1"
    assert loaded.infer_shape(data=(2, 4))[2] == [(3,), (3,)]


@pytest.mark.parametrize("content, says", [
    (b"<!DOCTYPE html><html>", "looks like an HTML"), (b"\n  <?xml ?>", "looks like an HTML or XML"), (b"", "empty"),
    (b"\xef\xbb\xbf{}", "byte order mark"), (b"\x00\x01\x02", "not a JSON graph|not UTF-8|text"),
    (b'{"nodes": [', "cut off"), (b"{}", "'nodes' is missing")])
def test_l06_a_file_that_is_no_graph_is_named_with_the_reason(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "model-symbol.json"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=says) as caught:
        mx.sym.load(str(path))
    assert str(path) in str(caught.value)


def test_l07_a_file_that_was_cut_off_says_where_and_what_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "model-0000.params"
    mx.nd.save(str(path), {"arg:w": mx.nd.ones((2, 3)), "aux:m": mx.nd.zeros((4,), dtype="int8")})
    whole = path.read_bytes()
    assert set(mx.nd.load(str(path))) == {"arg:w", "aux:m"}
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(ModelFileError) as caught:
            mx.nd.load(str(path))
        text = str(caught.value)
        assert str(path) in text and "byte" in text and (f"{end} bytes" in text or "follow" in text)
    path.write_bytes(whole[:100])
    with pytest.raises(ModelFileError, match=r"array 2 of 2: expected .*file has 100 bytes and needs at least 1\d\d"):
        mx.nd.load(str(path))


@pytest.mark.parametrize("dtype, flag", [("float32", 0), ("float16", 2), ("int64", 6), ("bool", 7)])
def test_l09_files_of_every_version_are_read_and_version_2_is_written(tmp_path: Path, dtype: str, flag: int) -> None:
    values = np.arange(6).reshape(2, 3).astype(dtype)
    tail = struct.pack("<iii", 1, 0, flag) + values.tobytes()
    forms = {"v0": struct.pack("<III", 2, 2, 3), "v1": struct.pack("<Iiqq", 0xF993FAC8, 2, 2, 3),
             "v2": struct.pack("<Iiiqq", 0xF993FAC9, 0, 2, 2, 3), "v3": struct.pack("<Iiiqq", 0xF993FACA, 0, 2, 2, 3)}
    for name, head in forms.items():
        path = tmp_path / name
        path.write_bytes(struct.pack("<QQQ", 0x112, 0, 1) + head + tail + struct.pack("<Q", 0))
        (loaded,) = mx.nd.load(str(path))
        assert loaded.dtype == np.dtype(dtype).type
        np.testing.assert_array_equal(loaded.asnumpy(), values)
    mx.nd.save(str(tmp_path / "new"), [mx.nd.array(values, dtype=dtype)])
    assert (tmp_path / "new").read_bytes() == (tmp_path / "v2").read_bytes()
    mx.nd.save(str(tmp_path / "none"), [])
    assert len(mx.nd.load(str(tmp_path / "none"))) == 0


def test_l12_a_label_without_a_value_does_not_matter_for_inference() -> None:
    scores = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    classifier = mx.sym.SoftmaxOutput(scores, name="prob")
    executor = classifier.simple_bind(CPU, grad_req="null", data=(2, 4))
    assert executor.arg_dict["prob_label"].shape == (2,)
    executor.copy_params_from({"fc_weight": mx.nd.ones((3, 4)), "fc_bias": mx.nd.array([0, 1, 2])})
    executor.arg_dict["prob_label"][:] = np.nan
    powers = np.exp([[0, 1, 2]] * 2)
    np.testing.assert_allclose(executor.forward()[0].asnumpy(), powers / powers.sum(1, keepdims=True), rtol=1e-5)
    given = {"data": mx.nd.ones((2, 4)), "fc_weight": mx.nd.ones((3, 4)), "fc_bias": mx.nd.ones(3)}
    with pytest.raises(ValueError, match=r"`prob_label` is missing in `args`.*looks like a label"):
        classifier.bind(CPU, given)


# -- binding and shapes


@pytest.mark.parametrize("batch", [0, -1])
def test_s02_an_unknown_dimension_cannot_be_bound(batch: int) -> None:
    layer = mx.sym.FullyConnected(mx.sym.Variable("a"), num_hidden=3, name="fc")
    with pytest.raises(MXNetError, match=r"argument 'a': dimension 0 is unknown in \(0, 10, 2\)"):
        layer.simple_bind(CPU, a=(batch, 10, 2))


@pytest.mark.slow
def test_s02_another_batch_by_reshape_compiles_no_kernel() -> None:
    executor = fill(net().simple_bind(CPU, grad_req="null", data=(6, 3, 8, 8)))
    executor.forward()
    for batch in (5, 3, 2):
        other = executor.reshape(data=(batch, 3, 8, 8))
        assert other.compiled().library.misses == 0
        np.testing.assert_allclose(other.forward()[0].asnumpy(), executor.outputs[0].asnumpy()[:batch], rtol=1e-6)


@pytest.mark.parametrize("make, given, parts", [
    (lambda: mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc"),
     {"data": (2, 4), "fc_weight": (3, 5)}, ["FullyConnected 'fc'", "(3, 4) and (3, 5)", "input data (data) = (2, 4)",
                                             "input weight (fc_weight) = (3, 5)",
                                             "\n  data: (2, 4)\n  fc_weight: (3, 5)"]),
    (lambda: mx.sym.Convolution(mx.sym.Variable("data"), num_filter=4, kernel=(3, 3), name="conv"),
     {"data": (1, 3, 8, 8), "conv_weight": (4, 2, 3, 3)}, ["Convolution 'conv'", "(4, 3, 3, 3)", "(4, 2, 3, 3)",
                                                           "input data (data)", "input weight (conv_weight)"]),
    (lambda: mx.sym.Concat(mx.sym.Variable("a"), mx.sym.Variable("b"), dim=1, name="cat"),
     {"a": (2, 3, 4), "b": (2, 3, 5)}, ["Concat 'cat'", "(2, 3, 4)", "(2, 3, 5)", "(a) =", "(b) =",
                                        "given shapes:\n  a:"])])
def test_s03_a_shape_that_does_not_fit_is_told_with_all_that_matters(make: Any, given: dict, parts: list[str]) -> None:
    with pytest.raises(MXNetError) as caught:
        make().simple_bind(CPU, **given)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("count", [300])
def test_s06_memory_stays_bounded_when_sizes_change(count: int) -> None:
    """Random image sizes by reshape: memory within 1.2 of the largest bind, numbers of a fresh bind, nothing kept."""
    rng = np.random.default_rng(0)
    sizes = [tuple(int(n) for n in rng.integers(4, 40, 2)) for _ in range(count)]
    executor = fill(net().simple_bind(CPU, grad_req="null", data=(2, 3, 40, 40)))
    executor.forward()
    gc.collect()
    largest = storage.statistics.used
    previous: weakref.ref | None = None
    image = rng.uniform(-1, 1, (2, 3, 40, 40))
    for i, size in enumerate(sizes):
        small = executor.reshape(data=(2, 3, *size))
        assert previous is None or previous() is None
        given = image[:, :, :size[0], :size[1]]
        out = small.forward(data=given)[0].asnumpy()
        assert storage.statistics.used <= 1.2 * largest
        if i % 10 == 0:
            fresh = fill(net().simple_bind(CPU, grad_req="null", data=(2, 3, *size)))
            for name, array in executor.arg_dict.items():
                if name != "data":
                    fresh.arg_dict[name][:] = array
            for name, array in executor.aux_dict.items():
                fresh.aux_dict[name][:] = array
            np.testing.assert_array_equal(fresh.forward(data=given)[0].asnumpy(), out)
            del fresh
        previous = weakref.ref(small._core)
        del small
    assert storage.statistics.used <= 1.2 * largest


def test_s08_a_batch_that_a_symbol_fixes_is_explained() -> None:
    symbol = mx.sym.Reshape(mx.sym.Variable("data"), shape=(8, 6), name="flat")
    says = r"(?s)Reshape 'flat'.*\(4, 2, 3\).*\(8, 6\).*use 0 or -1.*split between devices"
    with pytest.raises(MXNetError, match=says):
        symbol.simple_bind(CPU, data=(4, 2, 3))
    assert mx.sym.Reshape(mx.sym.Variable("data"), shape=(0, -1)).infer_shape(data=(4, 2, 3))[1] == [(4, 6)]


def test_s09_zeros_of_an_open_shape_are_completed_by_what_uses_them() -> None:
    """Begin states of recurrent networks are written so: the batch is known to their user alone."""
    state = mx.sym.zeros((0, 5), name="begin")
    gates = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=5, name="i2h")
    gates = gates + mx.sym.FullyConnected(state, num_hidden=5, name="h2h")
    shapes = dict(zip(gates.list_arguments(), gates.infer_shape(data=(7, 3))[0], strict=True))
    assert shapes["h2h_weight"] == (5, 5) and shapes["i2h_weight"] == (5, 3)
    assert gates.infer_shape(data=(7, 3))[1] == [(7, 5)]
    joined = mx.sym.Concat(mx.sym.zeros((2, 0, 3)), mx.sym.Variable("data"), dim=0)
    assert joined.infer_shape(data=(1, 4, 3))[1] == [(3, 4, 3)]


@pytest.mark.slow
def test_s09_completed_zeros_run() -> None:
    executor = (mx.sym.zeros((0, 5)) + mx.sym.Variable("data")).simple_bind(CPU, data=(3, 5))
    np.testing.assert_array_equal(executor.forward(data=np.ones((3, 5)))[0].asnumpy(), np.ones((3, 5)))
