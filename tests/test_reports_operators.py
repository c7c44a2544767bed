"""What went wrong for users of MXNet: operators, fusion, precision. Each test's name begins with its report.

Everything runs twice: by the definitions of the kernels that the compiler makes, and (slow) by generated code.
"""
from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from programs import lowered

import mxc as mx
from mxc.compiler.error import MXNetError
from mxc.compiler.targets.cpu.target import cpu_target

CPU = mx.cpu()
MODELS = Path(__file__).parents[2] / "shared" / "models"
X = mx.sym.Variable("x")
Run = Callable[..., dict[str, np.ndarray]]


@pytest.fixture(params=["definitions", pytest.param("native", marks=pytest.mark.slow)])
def run(request: pytest.FixtureRequest) -> Run:
    """run(symbol, arrays, is_train, grad_req, heads) -> outputs ("0", "1", ...), "grad NAME" and auxiliary states."""
    return native if request.param == "native" else by_definition


def by_definition(net: Any, given: Mapping[str, np.ndarray], is_train: bool = False, grad_req: str = "null",
                  merge: bool = True) -> dict[str, np.ndarray]:
    shapes, dtypes = {k: v.shape for k, v in given.items()}, {k: str(v.dtype) for k, v in given.items()}
    program = lowered(net.graph, shapes, dtypes, dict.fromkeys(net.list_arguments(), grad_req), is_train, merge=merge)
    heads = {f"_head_grad_{i}": np.ones(shape) for i, shape in enumerate(net.infer_shape(
        **{n: given[n].shape for n in net.list_arguments()})[1])}
    with np.errstate(all="ignore"):
        results, aux = program.run({**given, **heads})
    outputs = iter(range(len(results)))
    named = {f"grad {s.name}" if s.kind == "grad" else s.name if s.kind == "aux" else str(next(outputs)): r
             for s, r in zip(program.graph.sinks, results, strict=True)}
    return {**{n: given[n] for n in net.list_auxiliary_states()}, **aux, **named}


def native(net: Any, given: Mapping[str, np.ndarray], is_train: bool = False,
           grad_req: str = "null") -> dict[str, np.ndarray]:
    executor = net.simple_bind(CPU, grad_req=grad_req, type_dict={k: v.dtype for k, v in given.items()},
                               **{k: v.shape for k, v in given.items()})
    for arrays in (executor.arg_dict, executor.aux_dict):
        for name in arrays:
            arrays[name][:] = given[name]
    executor.forward(is_train=is_train)
    result = {str(i): out.asnumpy() for i, out in enumerate(executor.outputs)}
    if grad_req != "null":
        executor.backward([mx.nd.ones(out.shape, dtype=out.dtype) for out in executor.outputs])
        result |= {f"grad {n}": g.asnumpy() for n, g in executor.grad_dict.items() if g is not None}
    return {**result, **{n: a.asnumpy() for n, a in executor.aux_dict.items()}}


def f32(*values: Any) -> np.ndarray:
    return np.array(values, "float32")


# -- operators


def test_o02_average_pooling_counts_the_padding_unless_told_not_to(run: Run) -> None:
    image = np.arange(1, 26, dtype="float32").reshape(1, 1, 5, 5)
    given = {"kernel": (5, 5), "pad": (2, 2), "pool_type": "avg"}
    assert run(mx.sym.Pooling(X, **given), {"x": image})["0"][0, 0, 0, 0] == np.float32(2.52)
    alone = run(mx.sym.Pooling(X, **given, count_include_pad=False), {"x": image})["0"][0, 0]
    np.testing.assert_allclose(alone[[0, 0, 2, 4], [0, 2, 2, 4]], [7, 8, 13, 19])
    for count in (True, False):
        full = mx.sym.Pooling(X, kernel=(3, 3), stride=(2, 2), pool_type="avg", pooling_convention="full",
                              count_include_pad=count)
        out = run(full, {"x": np.arange(36, dtype="float32").reshape(1, 1, 6, 6)})["0"]
        assert out.shape == (1, 1, 3, 3) and out[0, 0, 2, 2] == np.float32((28 + 29 + 34 + 35) / 4)


def test_o04_fix_gamma_is_the_default_and_takes_gamma_for_1(run: Run) -> None:
    data = np.random.default_rng(0).normal(size=(4, 3, 2)).astype("float32")
    given = {"x": data, "b_beta": f32(1, 2, 3), "b_moving_mean": f32(0, 0.5, 1), "b_moving_var": f32(1, 2, 3)}
    stored, ones = f32(0.5, 2, -1), f32(1, 1, 1)
    fixed, free = mx.sym.BatchNorm(X, name="b"), mx.sym.BatchNorm(X, name="b", fix_gamma=False)
    for train in (False, True):
        one, other = (run(fixed, {**given, "b_gamma": g}, train, "write") for g in (stored, ones))
        np.testing.assert_array_equal(one["0"], other["0"])
        assert not one["grad b_gamma"].any() and one["grad b_beta"].any()
        assert np.abs(run(free, {**given, "b_gamma": stored}, train, "write")["0"] - one["0"]).max() > 0.1


@pytest.mark.slow
@pytest.mark.skipif(not MODELS.is_dir(), reason="the real models are not there")
def test_o04_a_real_model_stores_gammas_that_do_not_count() -> None:
    case = json.loads((MODELS / "cases.json").read_text())["genderage"]
    loaded = mx.sym.load(str(MODELS / case["symbol"]))
    stored = {name.split(":", 1)[1]: value for name, value in mx.nd.load(str(MODELS / case["params"])).items()}
    executor = loaded.simple_bind(CPU, grad_req="null", data=(1, 3, 112, 112))
    executor.copy_params_from({n: stored[n] for n in executor.arg_dict if n in stored},
                              {n: stored[n] for n in executor.aux_dict})
    data = np.random.default_rng(0).uniform(-1, 1, (1, 3, 112, 112))
    out = executor.forward(data=data)[0].asnumpy()
    nodes = json.loads(loaded.tojson())["nodes"]
    fixed = [nodes[n["inputs"][1][0]]["name"] for n in nodes if n["op"] == "BatchNorm"
             and n.get("attrs", {}).get("fix_gamma", "True") == "True"]
    assert fixed and any((stored[name].asnumpy() != 1).any() for name in fixed)
    for name in fixed:
        executor.arg_dict[name][:] = 1
    np.testing.assert_array_equal(executor.forward()[0].asnumpy(), out)


def test_o05_moving_statistics_are_biased_and_move_by_the_momentum(run: Run) -> None:
    data = np.random.default_rng(0).normal(size=(5, 2)).astype("float32")
    given = {"x": data, "b_gamma": f32(1, 1), "b_beta": f32(0, 0), "b_moving_mean": f32(3, 4),
             "b_moving_var": f32(5, 6)}
    moved = run(mx.sym.BatchNorm(X, name="b", momentum=0), given, True, "write")
    np.testing.assert_allclose(moved["b_moving_var"], data.var(0), rtol=1e-5)
    np.testing.assert_allclose(moved["b_moving_mean"], data.mean(0), rtol=1e-5)
    tenth = run(mx.sym.BatchNorm(X, name="b"), given, True, "write")  # the default momentum is 0.9
    np.testing.assert_allclose(tenth["b_moving_mean"], 0.9 * f32(3, 4) + 0.1 * data.mean(0), rtol=1e-5)
    for still in (run(mx.sym.BatchNorm(X, name="b", use_global_stats=True), given, True, "write"),
                  run(mx.sym.BatchNorm(X, name="b"), given, False, "write")):
        np.testing.assert_array_equal(still["b_moving_mean"], f32(3, 4))
        np.testing.assert_array_equal(still["b_moving_var"], f32(5, 6))
        np.testing.assert_allclose(still["0"], (data - f32(3, 4)) / np.sqrt(f32(5, 6) + 1e-3), rtol=1e-4, atol=1e-6)


def test_o07_deconvolution_sizes(run: Run) -> None:
    def sized(size: int, **given: Any) -> Any:
        return mx.sym.Deconvolution(X, num_filter=1, name="d", **given).infer_shape(x=(1, 1, size, size))

    assert sized(16, kernel=(3, 3), stride=(2, 2), pad=(1, 1), adj=(1, 1))[1] == [(1, 1, 32, 32)]
    assert sized(16, kernel=(3, 3), stride=(2, 2), pad=(1, 1))[1] == [(1, 1, 31, 31)]
    assert sized(12, kernel=(3, 3), stride=(2, 2), target_shape=(24, 24))[1] == [(1, 1, 24, 24)]
    with pytest.raises(MXNetError, match="25"):
        sized(12, kernel=(2, 2), stride=(2, 2), target_shape=(25, 25))
    assert mx.sym.Deconvolution(X, kernel=(2, 2), num_filter=1, name="d").list_arguments() == ["x", "d_weight"]
    assert "c_bias" in mx.sym.Convolution(X, kernel=(2, 2), num_filter=1, name="c").list_arguments()
    net = mx.sym.Deconvolution(X, kernel=(3,), stride=(2,), pad=(1,), adj=(1,), num_filter=1, name="d")
    out = run(net, {"x": f32([[1, 2, 3]]), "d_weight": f32([[10, 20, 30]])})["0"]
    np.testing.assert_array_equal(out, f32([[20, 50, 40, 90, 60, 90]]))


RESHAPES = [
    ((2, 3, 4), (4, 0, 2), False, (4, 3, 2)), ((2, 3, 4), (2, 0, 0), False, (2, 3, 4)),
    ((2, 3, 4), (6, 1, -1), False, (6, 1, 4)), ((2, 3, 4), (3, -1, 8), False, (3, 1, 8)),
    ((2, 3, 4), (-2,), False, (2, 3, 4)), ((2, 3, 4), (2, -2), False, (2, 3, 4)),
    ((2, 3, 4), (-2, 1, 1), False, (2, 3, 4, 1, 1)), ((2, 3, 4), (-3, 4), False, (6, 4)),
    ((2, 3, 4, 5), (-3, -3), False, (6, 20)), ((2, 3, 4), (0, -3), False, (2, 12)),
    ((2, 3, 4), (-3, -2), False, (6, 4)),
    ((2, 3, 4), (-4, 1, 2, -2), False, (1, 2, 3, 4)), ((2, 3, 4), (2, -4, -1, 3, -2), False, (2, 1, 3, 4)),
    ((10, 5, 4), (-1, 0), False, (40, 5)), ((10, 5, 4), (-1, 0), True, (50, 4)),
    ((2, 8, 5, 6), (0, 2, -1, 6), False, (2, 2, 20, 6)), ((2, 84, 3), (0, -1, 21), False, (2, 12, 21)),
    ((2, 84), (1, -1, 4), False, (1, 42, 4)), ((2, 4, 3, 5), (0, 2, -1, 5), False, (2, 2, 6, 5)),
]


@pytest.mark.parametrize("shape, codes, reverse, expected", RESHAPES)
def test_o10_reshape_codes(shape: tuple, codes: tuple, reverse: bool, expected: tuple) -> None:
    net = mx.sym.Reshape(X, shape=codes, reverse=reverse)
    assert net.infer_shape(x=shape)[1] == [expected]
    assert mx.nd.zeros(shape).reshape(codes, reverse=reverse).shape == expected


@pytest.mark.parametrize("codes", [(1, -2), (-1, -1), (7, -1), (-4, 3, 3), (0, 0, 0)])
def test_o10_codes_that_do_not_fit_are_refused(codes: tuple) -> None:
    with pytest.raises(MXNetError, match="Reshape 'r'"):
        mx.sym.Reshape(X, shape=codes, name="r").infer_shape(x=(2, 2))


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 2, 2)])
@pytest.mark.parametrize("slopes", [3, 1])
def test_o16_prelu_has_a_slope_for_each_channel(run: Run, shape: tuple, slopes: int) -> None:
    data = np.random.default_rng(0).normal(size=shape).astype("float32")
    gamma = np.linspace(0.1, 0.5, slopes).astype("float32")
    got = run(mx.sym.LeakyReLU(X, act_type="prelu", name="p"), {"x": data, "p_gamma": gamma}, True, "write")
    along = gamma.reshape(-1, *[1] * (len(shape) - 2))
    np.testing.assert_allclose(got["0"], np.where(data > 0, data, data * along), rtol=1e-6)
    back = np.where(data > 0, 0, data)
    expected = back.sum((0, *range(2, len(shape))))
    expected = expected if slopes > 1 else expected.sum(keepdims=True)
    np.testing.assert_allclose(got["grad p_gamma"], expected, rtol=1e-5)


def test_o16_other_slopes(run: Run) -> None:
    data = f32(-2, -0.5, 0, 3)
    below, above = data < 0, np.maximum(data, 0)
    expected = {"leaky": 0.25 * data, "rrelu": (0.125 + 0.334) / 2 * data, "elu": 0.25 * np.expm1(data)}
    for kind, values in expected.items():
        out = run(mx.sym.LeakyReLU(X, act_type=kind), {"x": data})["0"]
        np.testing.assert_allclose(out, np.where(below, values, above), rtol=1e-5)
    selu = 1.0507009873554805 * np.where(below, 1.6732632423543772 * np.expm1(data), above)
    np.testing.assert_allclose(run(mx.sym.LeakyReLU(X, act_type="selu"), {"x": data})["0"], selu, rtol=1e-5)
    gelu = f32(-0.04550026, -0.15426877, 0, 2.9959502)  # x * Phi(x)
    np.testing.assert_allclose(run(mx.sym.LeakyReLU(X, act_type="gelu"), {"x": data})["0"], gelu, rtol=1e-5)


# -- fusion


FUSED: dict[str, tuple[Callable[[], Any], Callable[[np.ndarray], np.ndarray]]] = {
    "neighbours": (lambda: (mx.sym.slice_axis(X, axis=1, begin=0, end=-1)
                            + mx.sym.slice_axis(X, axis=1, begin=1, end=None)),
                   lambda x: x[:, :-1] + x[:, 1:]),
    "transposed": (lambda: mx.sym.transpose(X, axes=(1, 0)) * 2 + mx.sym.transpose(mx.sym.relu(X), axes=(1, 0)),
                   lambda x: x.T * 2 + np.maximum(x, 0).T),
    "last": (lambda: mx.sym.relu(mx.sym.slice_axis(X * 2, axis=-1, begin=-2, end=None)),
             lambda x: np.maximum(x * 2, 0)[..., -2:]),
    "broadcast": (lambda: mx.sym.broadcast_sub(X, mx.sym.slice_axis(X, axis=0, begin=-1, end=None)),
                  lambda x: x - x[-1:]),
    "joined": (lambda: mx.sym.Concat(X + 1, mx.sym.slice_axis(X, axis=1, begin=1, end=3) * 3, dim=1),
               lambda x: np.concatenate([x + 1, x[:, 1:3] * 3], 1)),
    "split": (lambda: mx.sym.SliceChannel(X, num_outputs=2)[0] - mx.sym.SliceChannel(X, num_outputs=2)[1] * 2,
              lambda x: x[:, :3] - x[:, 3:] * 2),
    "reshaped": (lambda: mx.sym.Reshape(mx.sym.slice_axis(X, axis=1, begin=1, end=-1), shape=(-1,)) + 1,
                 lambda x: x[:, 1:-1].reshape(-1) + 1),
}


@pytest.mark.parametrize("name", FUSED)
def test_m02_fusion_does_not_change_what_slices_and_broadcasts_give(run: Run, name: str) -> None:
    make, expected = FUSED[name]
    data = np.random.default_rng(0).normal(size=(5, 6)).astype("float32")
    got = run(make(), {"x": data})["0"]
    np.testing.assert_allclose(got, expected(data), rtol=1e-6)
    apart, together = (by_definition(make(), {"x": data}, merge=merge)["0"] for merge in (False, True))
    np.testing.assert_array_equal(apart, together)


def kernels_of(net: Any, **shapes: tuple[int, ...]) -> tuple[list[str], list[str]]:
    program = lowered(net.graph, shapes, {}, {}, target=cpu_target())
    return [launch.label for launch in program.launches], [cpu_target().launch(k.kernel).key for k in program.launches]


def block(x: Any, i: int, width: int = 8) -> Any:
    def dense(y: Any, name: str, hidden: int = width) -> Any:
        return mx.sym.FullyConnected(y, num_hidden=hidden, flatten=False, name=f"{name}{i}")

    scores = mx.sym.batch_dot(dense(x, "q"), dense(x, "k"), transpose_b=True) * 0.3
    x = x + mx.sym.batch_dot(mx.sym.softmax(scores), dense(x, "v"))
    centred = mx.sym.broadcast_sub(x, mx.sym.mean(x, axis=-1, keepdims=True))
    x = mx.sym.broadcast_mul(centred, mx.sym.rsqrt(mx.sym.mean(mx.sym.square(centred), axis=-1, keepdims=True) + 1e-5))
    return x + dense(mx.sym.LeakyReLU(dense(x, "up", 2 * width), act_type="gelu"), "down")


def test_m04_equal_blocks_share_their_kernels_and_names_stay_short() -> None:
    few, many = X, X
    for i in range(2):
        few = block(few, i)
    for i in range(24):
        many = block(many, i)
    few_keys = set(kernels_of(few, x=(2, 5, 8))[1])
    labels, keys = kernels_of(many, x=(2, 5, 8))
    assert len(set(keys)) <= len(few_keys) + 2
    assert max(map(len, labels)) < 400 and max(map(len, keys)) < 80


def test_m04_a_long_chain_is_cut_or_small() -> None:
    net = X
    for i in range(500):
        moved = mx.sym.Reshape(mx.sym.expand_dims(net, axis=i % 2), shape=(3, 4))
        net = moved + 1 if i % 5 == 0 else mx.sym.sin(net) * 2
    labels, _ = kernels_of(net, x=(3, 4))
    assert len(labels) <= 40 and max(map(len, labels)) < 1000
    lengths = [len(p.splitlines()) for p in texts(net, x=(3, 4))]
    assert max(lengths) < 400


def texts(net: Any, **shapes: tuple[int, ...]) -> list[str]:
    from mxc.compiler.kernel.text import kernel_text

    return [kernel_text(launch.kernel) for launch in lowered(net.graph, shapes).launches]


def test_m05_one_expression_on_arrays_of_other_ranks_and_dtypes(run: Run) -> None:
    net = mx.sym.broadcast_add(X, mx.sym.Variable("y")) * 2 > 3
    plain = mx.sym.broadcast_mul(mx.sym.broadcast_add(X, mx.sym.Variable("y")), X)
    rng = np.random.default_rng(0)
    cases = [((6,), (6,), "float32"), ((4, 6), (4, 6), "float32"), ((4, 6), (4, 1), "float32"),
             ((4, 6), (1, 6), "float32"),
             ((4, 1), (1, 6), "float32"), ((4, 6), (4, 6), "float16"), ((4, 6), (4, 6), "float64"),
             ((4, 6), (1, 6), "int32"), ((4, 6), (6,), "int8"), ((6,), (6,), "bool")]
    for left, right, dtype in cases:
        x, y = (rng.integers(0, 2, s).astype(dtype) if dtype == "bool" else rng.integers(-3, 4, s).astype(dtype)
                for s in (left, right))
        got = run(plain, {"x": x, "y": y})["0"]
        wide = x.astype("float64"), y.astype("float64")
        expected = (wide[0] + wide[1]) * wide[0]
        np.testing.assert_array_equal(got.astype("float64"), expected != 0 if dtype == "bool" else expected)
        assert got.dtype == dtype
        if dtype != "bool":
            np.testing.assert_array_equal(run(net, {"x": x, "y": y})["0"].astype(bool), (wide[0] + wide[1]) * 2 > 3)


@pytest.mark.slow
def test_m08_batch_norm_writes_adds_or_leaves_each_gradient() -> None:
    rng = np.random.default_rng(0)
    data, head = (rng.normal(size=(6, 3)).astype("float32") for _ in range(2))
    net = mx.sym.BatchNorm(X, name="b", fix_gamma=False)
    names = ("x", "b_gamma", "b_beta")
    once: dict[str, np.ndarray] = {}
    for modes in (("write",) * 3, ("add", "write", "null"), ("null", "add", "add"), ("write", "null", "add")):
        executor = net.simple_bind(CPU, grad_req=dict(zip(names, modes, strict=True)), x=(6, 3))
        executor.arg_dict["b_gamma"][:] = [1, 2, 3]
        for grad in executor.grad_arrays:
            if grad is not None:
                grad[:] = 0
        for _ in range(3):
            executor.forward(is_train=True, x=data)
            executor.backward(mx.nd.array(head))
        for name, mode in zip(names, modes, strict=True):
            grad = executor.grad_dict[name]
            if mode == "null":
                assert grad is None
            else:
                value = grad.asnumpy() / (3 if mode == "add" else 1)
                np.testing.assert_allclose(value, once.setdefault(name, value), rtol=1e-4, atol=1e-6)
    given = {n: mx.nd.ones((6, 3) if n == "x" else (3,)) for n in names}
    kept = {n: mx.nd.ones(a.shape) * 7 for n, a in given.items()}
    executor = net.bind(CPU, given, args_grad=kept, grad_req={"x": "write"}, aux_states=[mx.nd.zeros(3), mx.nd.ones(3)])
    executor.forward(is_train=True)
    executor.backward(mx.nd.array(head))
    for name in ("b_gamma", "b_beta"):
        assert (kept[name].asnumpy() == 7).all()


@pytest.mark.parametrize("op", ["softmax", "log_softmax", "SoftmaxActivation", "SoftmaxOutput"])
def test_m09_softmax_of_large_and_masked_numbers(run: Run, op: str) -> None:
    rows = f32([1e4, -1e4, 0], [-1e4, -1e4, -1e4], [-np.inf, 0, 0], [100, -21, 100], [88.9, 89, -89])
    shifted = rows.astype("float64") - rows.max(1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    net = getattr(mx.sym, op)(X, **({"label": mx.sym.Variable("l")} if op == "SoftmaxOutput" else {}))
    given = {"x": rows, **({"l": np.zeros(5, "float32")} if op == "SoftmaxOutput" else {})}
    out = run(net, given)["0"]
    np.testing.assert_allclose(out, logs if op == "log_softmax" else np.exp(logs), rtol=1e-5, atol=1e-30)
    back = run(net, given, True, "write")["grad x"]
    assert np.isfinite(back).all()


def test_m09_the_log_of_a_softmax_stays_finite(run: Run) -> None:
    out = run(mx.sym.log_softmax(X), {"x": f32([100, -21])})["0"]
    np.testing.assert_allclose(out, f32([0, -121]))
