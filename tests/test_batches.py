"""Batches of any size on the plans that an artifact has: what each row gives is what it gives in a batch of its own."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mxc as mx
from mxc import artifact
from mxc.compiler.error import ArgumentError, MXNetError
from mxc.runtime.batches import Batches, Part, Place, cover

SIZES = (2, 5)  # batches that are compiled


def bound(symbol: Any, seed: int = 0, **shapes: Sequence[int]) -> Any:
    """An executor with random parameters, the same for a seed."""
    executor = symbol.simple_bind(mx.cpu(), grad_req="null", **shapes)
    rng = np.random.default_rng(seed)
    for name, array in {**executor.arg_dict, **executor.aux_dict}.items():
        if name not in shapes and not name.endswith("label"):
            array[:] = rng.uniform(0.5, 1.5, array.shape) if "var" in name or "gamma" in name else \
                rng.standard_normal(array.shape) * 0.3
    return executor


def saved(path: Path, symbol: Any, sizes: Sequence[int], shape: Sequence[int], seed: int = 0) -> Any:
    """The artifact, loaded, of a model of one input `data`: a batch of rows of a shape, compiled for these sizes."""
    executors = [bound(symbol, seed, data=(size, *shape)) for size in sizes]
    artifact.save(path, executors, ["data"], keep_params=True)
    return mx.load(path)


# ---- random networks

Layer = Callable[[Any, np.random.Generator], Any]
PICTURES: list[Layer] = [  # of (N, C, H, W)
    lambda x, rng: mx.sym.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=int(rng.choice([4, 8, 16]))),
    lambda x, rng: mx.sym.Convolution(x, kernel=(1, 1), num_filter=8, num_group=4),
    lambda x, rng: mx.sym.BatchNorm(x, fix_gamma=False),
    lambda x, rng: mx.sym.InstanceNorm(x, mx.sym.Variable(f"gamma{rng.integers(1e9)}"),
                                       mx.sym.Variable(f"beta{rng.integers(1e9)}")),
    lambda x, rng: mx.sym.Activation(x, act_type=str(rng.choice(["relu", "tanh", "sigmoid"]))),
    lambda x, rng: mx.sym.Pooling(x, kernel=(2, 2), stride=(1, 1), pool_type=str(rng.choice(["max", "avg"]))),
    lambda x, rng: mx.sym.Concat(x, mx.sym.relu(x), dim=1),
    lambda x, rng: mx.sym.broadcast_sub(x, mx.sym.mean(x, axis=(2, 3), keepdims=True)),
    lambda x, rng: mx.sym.softmax(x, axis=1),
    lambda x, rng: mx.sym.slice_axis(x, axis=2, begin=0, end=-1),
    lambda x, rng: mx.sym.transpose(mx.sym.transpose(x, axes=(0, 2, 3, 1)) * 2, axes=(0, 3, 1, 2)),
    lambda x, rng: mx.sym.L2Normalization(x, mode="channel"),
    lambda x, rng: mx.sym.Pad(x, mode="edge", pad_width=(0, 0, 0, 0, 1, 1, 0, 0)),
    lambda x, rng: x + mx.sym.broadcast_mul(x, mx.sym.sigmoid(mx.sym.Pooling(x, kernel=(1, 1), global_pool=True))),
]
ROWS: list[Layer] = [  # of (N, K)
    lambda x, rng: mx.sym.FullyConnected(x, num_hidden=int(rng.choice([6, 12]))),
    lambda x, rng: mx.sym.LayerNorm(x, mx.sym.Variable(f"gamma{rng.integers(1e9)}"),
                                    mx.sym.Variable(f"beta{rng.integers(1e9)}")),
    lambda x, rng: mx.sym.LeakyReLU(x, act_type="elu"),
    lambda x, rng: mx.sym.softmax(x),
    lambda x, rng: mx.sym.Concat(mx.sym.sort(x), x, dim=1),
    lambda x, rng: mx.sym.broadcast_div(x, mx.sym.norm(x, axis=1, keepdims=True) + 1),
    lambda x, rng: mx.sym.Reshape(mx.sym.batch_dot(mx.sym.expand_dims(x, axis=2), mx.sym.expand_dims(x, axis=1)),
                                  shape=(0, -1)),
    lambda x, rng: mx.sym.reverse(x, axis=1) * mx.sym.zeros_like(x) + x,
    lambda x, rng: mx.sym.Reshape(mx.sym.tanh(mx.sym.Reshape(x, shape=(-1, 2))), shape=(-4, -1, 3, 0)).reshape((-3, 0))
    .reshape((-1, 6)),
]


def random_network(seed: int) -> Any:
    """A model of pictures (N, 4, 6, 6), of two outputs: one has the rows side by side with others' parts."""
    rng = np.random.default_rng(seed)
    x = mx.sym.Variable("data")
    for i in rng.integers(len(PICTURES), size=5):
        x = PICTURES[i](x, rng)
    y = mx.sym.FullyConnected(x, num_hidden=6)
    for i in rng.integers(len(ROWS) - 1, size=3):
        y = ROWS[i](y, rng)
    y = ROWS[-1](mx.sym.FullyConnected(y, num_hidden=6), rng)
    return mx.sym.Group([mx.sym.Reshape(x, shape=(-3, -2)), y])


@pytest.mark.parametrize("seed", range(12))
def test_batches_of_any_size_give_what_the_exact_batch_gives(seed: int, tmp_path: Path):
    symbol = random_network(seed)
    model = saved(tmp_path / "net.mxc", symbol, SIZES, (4, 6, 6), seed)
    data = np.random.default_rng(seed).standard_normal((13, 4, 6, 6)).astype(np.float32)
    for rows in (1, 3, 4, 7, 13):
        exact = bound(symbol, seed, data=(rows, 4, 6, 6)).forward(is_train=False, data=mx.nd.array(data[:rows]))
        for found, wanted in zip(model.predict(data=data[:rows]).values(), exact, strict=True):
            np.testing.assert_allclose(found, wanted.asnumpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(12, 18))
def test_rows_that_are_filled_up_change_nothing(seed: int, tmp_path: Path):
    """On one plan, the first rows of a batch are the same to the bit, whatever the others are."""
    model = saved(tmp_path / "net.mxc", random_network(seed), (6,), (4, 6, 6), seed)
    data = np.random.default_rng(seed).standard_normal((6, 4, 6, 6)).astype(np.float32)
    whole = model.predict(data=data)
    for rows in range(1, 6):
        for place, (name, found) in zip(model._artifact.batches.outputs[0], model.predict(data=data[:rows]).items(),
                                        strict=True):
            np.testing.assert_array_equal(place.rows(found, rows), place.rows(whole[name], 6)[:, :rows])


# ---- which plans

def test_the_cheapest_cover_is_found():
    rng = np.random.default_rng(0)
    for _ in range(200):
        sizes = sorted({int(n) for n in rng.integers(1, 9, size=3)})
        costs = tuple((size, int(rng.integers(1, 30))) for size in sizes)
        rows = int(rng.integers(1, 25))
        found = cover(rows, costs)
        by_size = dict(costs)
        counts = itertools.product(*(range(-(-rows // size) + 1) for size in sizes))
        least = min((sum(n * by_size[size] for n, size in zip(ns, sizes, strict=True)), sum(ns),
                     sum(n * size for n, size in zip(ns, sizes, strict=True)))
                    for ns in counts if sum(n * size for n, size in zip(ns, sizes, strict=True)) >= rows)
        assert (sum(by_size[size] for size in found), len(found), sum(found)) == least, (costs, rows)
        assert list(found) == sorted(found, reverse=True)


def test_large_batches_are_covered_too():
    found = cover(1_000_003, ((1, 10), (8, 40), (64, 300)))
    assert sum(found) == 1_000_003 and {*found} == {1, 64}


def batches(*axes: int) -> Batches:
    """Of two plans."""
    return Batches({f"x{i}": Place(axis) for i, axis in enumerate(axes)}, [[Place(0), None]] * 2)


def test_plans_of_other_shapes_are_left_out():
    plans = [({"x0": (2, 8)}, [(2, 3), (7,)], 10), ({"x0": (4, 9)}, [(4, 3), (7,)], 1)]
    assert batches(0).parts(plans, {"x0": (5, 8)}) == [Part(0, 2, 0, 2), Part(0, 2, 2, 2), Part(0, 2, 4, 1)]
    assert batches(0).parts(plans, {"x0": (5, 7)}) == []
    assert batches(1).parts(plans, {"x0": (2, 3)}) == []  # its outputs are not those of 8 rows
    assert batches(1).parts([({"x0": (2, 8)}, [(8, 3), (7,)], 10)], {"x0": (2, 3)}) == [Part(0, 8, 0, 3)]
    assert Batches({"x0": Place(0)}, [[Place(0), None]] * 2, "mixed").parts(plans, {"x0": (5, 8)}) == []


def test_inputs_of_different_numbers_of_rows_have_no_batch():
    plans = [({"x0": (2, 8), "x1": (3, 2)}, [(2, 3), (7,)], 10)]
    assert batches(0, 1).rows({"x0": (5, 8), "x1": (3, 4)}) is None
    assert batches(0, 1).parts(plans, {"x0": (5, 8), "x1": (3, 4)}) == []
    assert len(batches(0, 1).parts(plans, {"x0": (5, 8), "x1": (3, 5)})) == 3


# ---- models

def language_model() -> Any:
    """Steps of a sequence along axis 0, the batch along axis 1, as MXNet's own example has them."""
    data, label = mx.sym.Variable("data"), mx.sym.Variable("softmax_label")
    embedded = mx.sym.Embedding(data, input_dim=20, output_dim=8, name="embed")
    steps = mx.sym.RNN(embedded, mx.sym.Variable("lstm_weight"), mx.sym.zeros((1, 0, 6)), mx.sym.zeros((1, 0, 6)),
                       mode="lstm", state_size=6, num_layers=1, name="lstm")
    scores = mx.sym.FullyConnected(mx.sym.Reshape(steps, shape=(-1, 6)), num_hidden=20, name="scores")
    return mx.sym.SoftmaxOutput(scores, mx.sym.Reshape(label, shape=(-1,)), name="softmax")


def test_a_recurrent_model_takes_several_lengths_and_any_batch(tmp_path: Path):
    symbol = language_model()
    shapes = [(7, 1), (7, 3), (4, 3)]
    executors = [bound(symbol, data=shape, softmax_label=shape) for shape in shapes]
    assert artifact.save(tmp_path / "lstm.mxc", executors, ["data", "softmax_label"], batch_axes={"data": 1}) == ""
    model = mx.load(tmp_path / "lstm.mxc")
    assert model.input_names == ("data",) and model.further_inputs == ("softmax_label",)
    words = np.random.default_rng(0).integers(0, 20, (7, 8))
    for length, rows in ((7, 1), (7, 2), (7, 8), (4, 1), (4, 5)):
        data = words[:length, :rows]
        exact = bound(symbol, data=data.shape, softmax_label=data.shape).forward(is_train=False, data=mx.nd.array(data))
        for label in {}, {"softmax_label": np.zeros(data.shape)}, {"softmax_label": [1, 2]}:
            found = model.predict(data=data, **label)["softmax_output"]
            np.testing.assert_allclose(found, exact[0].asnumpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(MXNetError, match=r"has no plan for data=5,2; it has plans for data=7,1 or data=7,3 or data="):
        model.predict(data=words[:5, :2])


def test_a_model_that_mixes_rows_is_refused_with_the_layer(tmp_path: Path):
    data = mx.sym.Variable("data")
    centred = mx.sym.broadcast_sub(data, mx.sym.mean(data, axis=0, keepdims=True, name="centre"))
    model = saved(tmp_path / "net.mxc", mx.sym.FullyConnected(centred, num_hidden=3), SIZES, (4,))
    assert [output.shape for output in model.predict(data=np.ones((5, 4))).values()] == [(5, 3)]
    with pytest.raises(MXNetError) as error:
        model.predict(data=np.ones((3, 4)))
    assert str(error.value).endswith(
        "net.mxc has no plan for data=3,4; it has plans for data=2,4 or data=5,4; batches of other sizes cannot be "
        "made of these: centre (mean): it computes across axis 0 of an array (N, 4), which has the rows of the batch "
        "(N)\n"
        "give one of these shapes, or compile the model with --shape data=3,4 too")


def test_an_artifact_that_is_compiled_here_takes_any_batch_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    symbol = random_network(0)
    data = np.random.default_rng(0).standard_normal((7, 4, 6, 6)).astype(np.float32)
    wanted = saved(tmp_path / "net.mxc", symbol, SIZES, (4, 6, 6)).predict(data=data)
    monkeypatch.setenv("MXC_SKIP", "cse")
    with pytest.warns(RuntimeWarning, match="compiled for something else"):
        model = mx.load(tmp_path / "net.mxc")
    for name, found in model.predict(data=data).items():
        np.testing.assert_allclose(found, wanted[name], rtol=1e-4, atol=1e-5)


def test_outputs_that_are_the_same_for_every_batch_come_once(tmp_path: Path):
    data = mx.sym.Variable("data")
    anchors = mx.sym.contrib.MultiBoxPrior(data, sizes=(0.5,))
    model = saved(tmp_path / "net.mxc", mx.sym.Group([anchors, mx.sym.mean(data, axis=(1, 2, 3))]), (2,), (1, 3, 3))
    first, second = model.predict(data=np.arange(45.0).reshape(5, 1, 3, 3)).values()
    assert first.shape == (1, 9, 4) and second.tolist() == [4, 13, 22, 31, 40]


def test_inputs_without_rows_go_to_every_part(tmp_path: Path):
    scaled = mx.sym.broadcast_mul(mx.sym.Variable("data"), mx.sym.Variable("scale"))
    executors = [scaled.simple_bind(mx.cpu(), grad_req="null", data=(n, 3), scale=(1, 3)) for n in SIZES]
    artifact.save(tmp_path / "net.mxc", executors, ["data", "scale"])
    data, scale = np.arange(12.0).reshape(4, 3), np.array([[1.0, 2.0, 3.0]])
    (found,) = mx.load(tmp_path / "net.mxc").predict(data=data, scale=scale).values()
    np.testing.assert_array_equal(found, data * scale)


def test_axes_of_a_batch_may_be_given(tmp_path: Path):
    symbol = mx.sym.sum(mx.sym.Variable("data"), axis=0)
    executor = symbol.simple_bind(mx.cpu(), grad_req="null", data=(3, 2))
    assert "computes across axis 0" in artifact.save(tmp_path / "net.mxc", [executor], ["data"])
    assert artifact.save(tmp_path / "net.mxc", [executor], ["data"], batch_axes={"data": 1}) == ""
    (found,) = mx.load(tmp_path / "net.mxc").predict(data=np.ones((3, 5))).values()
    assert found.tolist() == [3] * 5
    for axes, message in ({"data": 2}, "it has no axis 2"), ({"dat": 0}, "did you mean 'data'"):
        with pytest.raises(ArgumentError, match=message):
            artifact.save(tmp_path / "net.mxc", [executor], ["data"], batch_axes=axes)


def test_an_operator_of_the_programs_own_is_never_filled_up(tmp_path: Path):
    class Centre(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] - mx.nd.mean(in_data[0], axis=0, keepdims=True))

    @mx.operator.register("batches_centre")
    class CentreProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Centre()

    symbol = mx.sym.Custom(mx.sym.Variable("data"), op_type="batches_centre", name="mine")
    executor = symbol.simple_bind(mx.cpu(), grad_req="null", data=(2, 3))
    assert artifact.save(tmp_path / "net.mxc", [executor], ["data"]) == \
        "mine (Custom): it is not known that it computes each row of a batch by itself"


def test_a_file_of_an_earlier_version_takes_the_batches_that_it_has(tmp_path: Path):
    from test_artifact import changed

    saved(tmp_path / "net.mxc", mx.sym.relu(mx.sym.Variable("data")), SIZES, (3,))

    def earlier(manifest: dict[str, Any]) -> None:
        del manifest["batches"], manifest["unread"]
        for plan in manifest["plans"]:
            del plan["cost"]

    model = mx.load(changed(tmp_path / "net.mxc", tmp_path / "old.mxc", earlier))
    assert next(iter(model.predict(data=-np.ones((2, 3))).values())).tolist() == [[0] * 3] * 2
    with pytest.raises(MXNetError, match="cannot be made of these: the file is of an earlier version"):
        model.predict(data=np.ones((3, 3)))
