"""Arrays that are kept in parts: what is mxc's own. Parts that are damaged, sizes of 0, copies, executors, blocks."""
from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc.base import MXNetError
from mxc.runtime import sparse_invoke
from mxc.runtime.sparse_invoke import StorageFallbackWarning

A = np.array([[1, 0, 2, 0], [0, 0, 0, 0], [3, 0, 0, 0.25]], "float32")
nd = mx.nd


def csr(columns: list[int], starts: list[int], shape: tuple[int, int] = (3, 4)) -> nd.NDArray:
    return nd.sparse.csr_matrix((np.arange(1, len(columns) + 1, dtype="float32"), columns, starts), shape=shape)


def rows(numbers: list[int], shape: tuple[int, ...] = (3, 4)) -> nd.NDArray:
    return nd.sparse.row_sparse_array((np.ones((len(numbers), *shape[1:]), "float32"), numbers), shape=shape)


def kept(stype: str) -> nd.NDArray:
    return nd.array(A).tostype(stype)


# ---- damaged parts

DAMAGED = {
    "a column too large": (lambda: csr([0, 4, 1], [0, 1, 2, 3]), "columns run from 0 to 4; expected 0 to 3"),
    "a negative column": (lambda: csr([0, -1, 1], [0, 1, 2, 3]), "columns run from -1 to 1"),
    "a huge column": (lambda: csr([0, 2**40], [0, 1, 2, 2]), "columns run from 0 to 1099511627776"),
    "starts that fall": (lambda: csr([0, 1, 1], [0, 2, 1, 3]), "row starts do not rise"),
    "starts that end late": (lambda: csr([0, 1], [0, 1, 1, 9]), "row starts do not rise from 0 to 2"),
    "starts that begin late": (lambda: csr([0, 1], [1, 1, 1, 2]), "row starts do not rise"),
    "too few starts": (lambda: csr([0, 1], [0, 1, 2]), "3 row starts do not fit 3 rows: expected 4"),
    "a row too large": (lambda: rows([0, 3]), "row numbers run from 0 to 3; expected 0 to 2"),
    "a negative row": (lambda: rows([-1, 1]), "row numbers run from -1 to 1"),
}
USES: dict[str, Callable[[nd.NDArray], object]] = {
    "asnumpy": lambda x: x.asnumpy(), "tostype": lambda x: x.tostype("default").asnumpy(),
    "times 2": lambda x: (x * 2).asnumpy(), "plus": lambda x: (x + x).asnumpy(), "sum": lambda x: nd.sum(x).asnumpy(),
    "dot": lambda x: nd.dot(x, nd.ones((4, 2))).asnumpy(), "exp": lambda x: nd.exp(x).asnumpy(),
    "dot transposed": lambda x: nd.dot(x, nd.ones((3, 2)), transpose_a=True).asnumpy(),
    "copyto": lambda x: x.copyto(nd.zeros((3, 4))).asnumpy(), "check_format": lambda x: x.check_format(),
}


@pytest.mark.parametrize("damage", DAMAGED)
@pytest.mark.parametrize("use", USES)
@pytest.mark.filterwarnings("ignore::mxc.runtime.sparse_invoke.StorageFallbackWarning")
def test_damaged_parts_are_told_of(damage: str, use: str):
    make, message = DAMAGED[damage]
    with pytest.raises(MXNetError, match=message):
        USES[use](make())


def test_work_goes_on_after_damage():
    bad = csr([0, 4, 1], [0, 1, 2, 3])
    doubled = bad * 2
    with pytest.raises(MXNetError, match="columns run from"):
        doubled.wait_to_read()
    bad[:] = nd.array(A)
    assert (bad * 2).asnumpy().tolist() == (A * 2).tolist()


def test_disorder_is_told_of_when_asked_and_put_right_when_used():
    mixed = csr([2, 0, 1], [0, 2, 2, 3])
    with pytest.raises(MXNetError, match="the columns of a row must ascend"):
        mixed.check_format()
    mixed.check_format(full_check=False)
    assert mixed.indices.asnumpy().tolist() == [2, 0, 1] and (mixed * 1).indices.asnumpy().tolist() == [0, 2, 1]
    assert mixed.asnumpy().tolist() == [[2, 0, 1, 0], [0, 0, 0, 0], [0, 3, 0, 0]]
    back = rows([2, 0])
    with pytest.raises(MXNetError, match="row numbers must ascend"):
        back.check_format()
    assert (back * 1).indices.asnumpy().tolist() == [0, 2]


def test_of_an_element_that_is_there_twice_the_last_counts_everywhere():
    twice = csr([1, 1], [0, 2, 2, 2])
    assert twice.asnumpy()[0].tolist() == [0, 2, 0, 0]
    assert nd.dot(twice, nd.ones((4, 1))).asnumpy().ravel().tolist() == [2, 0, 0]
    assert nd.sparse.sum(twice, axis=1).asnumpy().tolist() == [2, 0, 0]


@pytest.mark.parametrize(("make", "error"), [
    (lambda: nd.sparse.csr_matrix(([1, 2], [0], [0, 1])), MXNetError),
    (lambda: nd.sparse.csr_matrix(([[1, 2]], [0, 1], [0, 2]), shape=(1, 2)), MXNetError),
    (lambda: nd.sparse.row_sparse_array((np.ones((2, 3)), [0]), shape=(4, 3)), MXNetError),
    (lambda: nd.sparse.row_sparse_array((np.ones((1, 2)), [0]), shape=(4, 3)), MXNetError),
    (lambda: nd.sparse.csr_matrix((-1, 3)), MXNetError), (lambda: nd.sparse.zeros("csr", (2,)), MXNetError),
    (lambda: nd.sparse.zeros("row_sparse", ()), MXNetError), (lambda: nd.sparse.csr_matrix("text"), TypeError),
    (lambda: nd.sparse.csr_matrix(A, dtype="complex64"), MXNetError),
    (lambda: nd.sparse.csr_matrix(None), TypeError), (lambda: kept("csr").tostype("coo"), MXNetError),
    (lambda: nd.sparse.retain(nd.array(A), nd.array([5.0])).asnumpy().any() or 1 / 0, ZeroDivisionError),
])
def test_what_cannot_be_made(make: Callable[[], object], error: type[Exception]):
    with pytest.raises(error):
        found = make()
        if isinstance(found, nd.NDArray):
            found.check_format()


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 0)])
@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_sizes_of_0(shape: tuple[int, int], stype: str):
    x = nd.sparse.zeros(stype, shape)
    assert x.asnumpy().shape == (x * 2).asnumpy().shape == (x + x).asnumpy().shape == shape
    assert nd.dot(x, nd.array(np.ones((shape[1], 2)))).asnumpy().tolist() == [[0, 0]] * shape[0]
    assert x.tostype("default").tostype(stype).shape == shape
    assert pickle.loads(pickle.dumps(x)).asnumpy().shape == shape


# ---- copies

@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: x.copy(), lambda x: x.as_in_context(mx.cpu(1)),
                                    lambda x: pickle.loads(pickle.dumps(x)), lambda x: x.astype("float32")])
def test_copies_are_of_their_own(stype: str, copied: Callable[[nd.NDArray], nd.NDArray]):
    x = kept(stype)
    other = copied(x)
    x[:] = nd.zeros((3, 4))
    assert other.stype == stype and other.asnumpy().tolist() == A.tolist() and not x.asnumpy().any()


def test_parts_are_copies():
    x = kept("csr")
    x.data[:] = 9
    assert x.asnumpy().tolist() == A.tolist()


def test_a_file_has_what_was_saved(tmp_path: Path):
    arrays = {"c": kept("csr"), "r": kept("row_sparse"), "d": nd.array(A), "half": kept("csr").astype("float16"),
              "deep": rows([1], (3, 2, 2)), "none": nd.sparse.zeros("csr", (3, 4))}
    nd.save(str(tmp_path / "x.params"), arrays)
    for name, array in nd.load(str(tmp_path / "x.params")).items():
        assert (array.stype, array.dtype, array.shape) == (arrays[name].stype, arrays[name].dtype, arrays[name].shape)
        assert array.asnumpy().tolist() == arrays[name].asnumpy().tolist()


def test_a_shape_may_be_larger_than_any_memory():
    wide = nd.sparse.csr_matrix(([1.0, 2], [2**40, 5], [0, 1, 2]), shape=(2, 2**45))
    assert (wide * 2).data.asnumpy().tolist() == [2, 4] and nd.sparse.sum(wide, axis=1).asnumpy().tolist() == [1, 2]
    with pytest.raises(MXNetError, match="no memory for all its elements"):
        wide.asnumpy()
    tall = nd.sparse.row_sparse_array(([[1.0, 2]], [2**40]), shape=(2**45, 2))
    assert (tall + tall).data.asnumpy().tolist() == [[2, 4]]


# ---- dense copies

def test_dense_copies_are_told_of_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sparse_invoke, "_told", set())
    with pytest.warns(StorageFallbackWarning, match="operator exp has no form for arrays of the storage types csr"):
        nd.exp(kept("csr"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nd.exp(kept("csr"))
    with pytest.warns(StorageFallbackWarning, match="row_sparse"):
        nd.exp(kept("row_sparse"))


def test_a_variable_ends_the_messages(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sparse_invoke, "_told", set())
    monkeypatch.setenv("MXNET_STORAGE_FALLBACK_LOG_VERBOSE", "0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nd.exp(kept("csr"))


# ---- symbols

def linear() -> mx.sym.Symbol:
    """Squares of a csr matrix times a row_sparse weight, and dense layers behind it."""
    out = mx.sym.sparse.dot(mx.sym.var("x", stype="csr"), mx.sym.var("w", stype="row_sparse"))
    out = mx.sym.tanh(mx.sym.broadcast_add(out, mx.sym.var("b")) * 2, name="act")
    return mx.sym.MakeLoss(mx.sym.sum(out * out, name="total"))


def bound(mode: str = "write") -> mx.executor.Executor:
    weight = np.linspace(-1, 1, 8, dtype="float32").reshape(4, 2)
    args = {"x": kept("csr"), "w": nd.array(weight).tostype("row_sparse"), "b": nd.array([0.5, -0.5])}
    grads = {"w": nd.sparse.zeros("row_sparse", (4, 2)), "b": nd.zeros((2,))}
    return linear().bind(mx.cpu(), args, grads, {"x": "null", "w": mode, "b": mode})


def dense_gradients() -> tuple[float, np.ndarray, np.ndarray]:
    """The loss and the gradients of `bound`, from dense arrays."""
    executor = bound()
    args = {name: nd.array(array.asnumpy()) for name, array in executor.arg_dict.items()}
    grads = {"w": nd.zeros((4, 2)), "b": nd.zeros((2,))}
    out = mx.sym.dot(mx.sym.var("x"), mx.sym.var("w"))
    out = mx.sym.tanh(mx.sym.broadcast_add(out, mx.sym.var("b")) * 2)
    requests = {"x": "null", "w": "write", "b": "write"}
    other = mx.sym.MakeLoss(mx.sym.sum(out * out)).bind(mx.cpu(), args, grads, requests)
    other.forward(is_train=True)
    other.backward()
    return float(other.outputs[0].asscalar()), grads["w"].asnumpy(), grads["b"].asnumpy()


@pytest.mark.parametrize("mode", ["write", "add"])
def test_executors_run_again_and_again(mode: str):
    loss, weight, bias = dense_gradients()
    executor = bound(mode)
    for time in range(1, 4):
        (out,) = executor.forward(is_train=True)
        executor.backward()
        assert out is executor.outputs[0] and out.asscalar() == pytest.approx(loss, rel=1e-5)
        times = time if mode == "add" else 1
        assert executor.grad_dict["w"].stype == "row_sparse"
        assert executor.grad_dict["w"].indices.asnumpy().tolist() == [0, 2, 3]
        np.testing.assert_allclose(executor.grad_dict["w"].asnumpy(), weight * times, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(executor.grad_dict["b"].asnumpy(), bias * times, rtol=1e-5)


def test_monitors_see_every_operator():
    executor, seen = bound(), {}
    executor.set_monitor_callback(lambda name, array: seen.setdefault(name, array.stype), monitor_all=True)
    executor.forward(is_train=True)
    assert seen["x"] == "csr" and seen["w"] == "row_sparse" and seen["act_output"] == "default"


def test_an_executor_refuses_what_does_not_fit():
    executor = bound()
    with pytest.raises(MXNetError, match="no forward has run"):
        executor.backward()
    with pytest.raises(ValueError, match="Shape not match! Argument x"):
        executor.forward(is_train=True, x=nd.zeros((5, 4)))
    with pytest.raises(MXNetError, match="csr"):
        linear().simple_bind(mx.cpu(), x=(2, 3, 4), w=(4, 2), b=(2,))


def test_storage_types_are_inferred():
    executor = linear().simple_bind(mx.cpu(), x=(3, 4), w=(4, 2), b=(2,))
    assert [executor.arg_dict[name].stype for name in "xwb"] == ["csr", "row_sparse", "default"]
    assert executor.grad_dict["w"].stype == "row_sparse"


# ---- blocks

class Mixed(mx.gluon.HybridBlock):
    """Dense layers, a product with a csr matrix between them, and dense layers behind it."""

    def __init__(self, **kwargs: object):
        super().__init__(**kwargs)
        with self.name_scope():
            self.first, self.last = mx.gluon.nn.Dense(4, activation="tanh"), mx.gluon.nn.Dense(2)

    def hybrid_forward(self, F: object, x: object, matrix: object) -> object:
        return self.last(F.dot(matrix, self.first(x)) * 2)


@pytest.mark.parametrize("stype", ["csr", "default"])
def test_blocks_are_the_same_hybrid_or_not(stype: str):
    found = []
    for hybrid in (False, True):
        mx.random.seed(1)
        block = Mixed(prefix="mixed_")
        block.initialize(mx.init.Constant(0.25))
        if hybrid:
            block.hybridize()
        matrix = nd.array(A).tostype(stype)
        for _ in range(3):
            with mx.autograd.record():
                out = block(nd.ones((4, 3)), matrix)
            out.backward()
        found.append([out.asnumpy(), *(p.grad().asnumpy() for p in block.collect_params().values())])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_a_hybrid_block_takes_arrays_of_one_kind_after_those_of_another():
    block = Mixed()
    block.initialize(mx.init.Constant(0.25))
    block.hybridize()
    outs = [block(nd.ones((4, 3)), nd.array(A).tostype(stype)).asnumpy() for stype in ("default", "csr") * 2]
    for out in outs[1:]:
        np.testing.assert_allclose(out, outs[0], rtol=1e-6)


def test_gradients_are_of_the_storage_type_that_is_asked_for():
    weight = nd.array(A.T)
    weight.attach_grad(stype="row_sparse")
    with mx.autograd.record():
        loss = (nd.dot(kept("csr"), weight) ** 2).sum()
    (grad,) = mx.autograd.grad(loss, [weight], retain_graph=True)
    loss.backward()
    assert grad.stype == weight.grad.stype == "row_sparse"
    np.testing.assert_allclose(grad.asnumpy(), weight.grad.asnumpy())


def test_gradients_of_what_is_between_dense_layers_are_dense():
    """No warning tells of dense copies: the product with a transposed matrix makes a dense array at once."""
    weight = nd.ones((3, 2))
    weight.attach_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with mx.autograd.record():
            loss = nd.dot(kept("csr"), nd.tanh(nd.dot(nd.ones((4, 3)), weight))).sum()
        loss.backward()
    np.testing.assert_allclose(weight.grad.asnumpy(), np.full((3, 2), A.sum() / np.cosh(3) ** 2), rtol=1e-4)


def test_norms_of_gradients_are_clipped():
    grads = [kept("row_sparse"), nd.array([3.0, 4.0])]
    norm = float(np.sqrt((A**2).sum() + 25))
    assert mx.gluon.utils.clip_global_norm(grads, 1.0) == pytest.approx(norm, rel=1e-6)
    assert grads[0].stype == "row_sparse"
    np.testing.assert_allclose(grads[0].asnumpy(), A / norm, rtol=1e-5)


def test_metrics_take_labels_that_are_kept_in_parts():
    metric = mx.metric.MSE()
    metric.update([kept("csr")], [nd.zeros((3, 4))])
    assert metric.get()[1] == pytest.approx((A**2).mean())
