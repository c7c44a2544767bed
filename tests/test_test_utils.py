"""mx.test_utils: tolerances and reports as MXNet 1.9.1 has them, checks that find what is wrong, and no more."""
from __future__ import annotations

import gzip
import os
import struct
from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc import nd, sym
from mxc import test_utils as tu
from mxc.test_utils.statistics import chi_square_tail

X = sym.Variable("x")
WRONG = sym.BlockGrad(X) * X  # its gradient is half of what differences give


@pytest.fixture(autouse=True)
def seed():
    np.random.seed(0)


# -- tolerances and comparisons; the numbers and texts are what MXNet gives

def test_default_tolerances():
    half, single, double, whole = (np.dtype(n) for n in ("float16", "float32", "float64", "int32"))
    assert [tu.default_rtols()[d] for d in (half, single, double, whole)] == [1e-2, 1e-4, 1e-5, 0]
    assert [tu.default_atols()[d] for d in (half, single, double, whole)] == [1e-1, 1e-3, 1e-20, 0]
    assert [tu.default_numeric_eps()[d] for d in (half, single, double)] == [1 / 64, 1 / 512, 1 / 16384]
    assert (tu.get_rtol(), tu.get_atol(), tu.get_etol(), tu.get_atol(0.5)) == (1e-5, 1e-20, 0, 0.5)


def test_the_larger_tolerance_of_two_dtypes_holds():
    single, double, whole = np.ones(2, np.float32), np.ones(2), np.ones(2, np.int32)
    assert tu.get_tols(single, double, None, None) == (1e-4, 1e-3)
    assert tu.get_tols(whole, double, None, None) == (1e-5, 1e-20)
    assert tu.get_tols(1, 2, None, None) == (0, 0)
    assert tu.get_tols(single, double, 0.5, {np.dtype("float32"): 2, np.dtype("float64"): 3}) == (0.5, 3)
    tu.assert_almost_equal(nd.ones((2, 3)), np.ones((2, 3)) + 1e-4)
    with pytest.raises(AssertionError):
        tu.assert_almost_equal(np.ones((2, 3)), np.ones((2, 3)) + 1e-4)


def test_the_report_of_a_difference(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(AssertionError) as error:
        tu.assert_almost_equal(np.arange(4.0), np.arange(4.0) + np.array([1, 2, 3, 0.1]), names=("got", "want"),
                               mismatches=(2, 3))
    assert capsys.readouterr().out.splitlines()[1:] == [
        "*** Maximum errors for vector of size 4:  rtol=1e-05, atol=1e-20", "",
        "  1: Error 100000.000000  Location of error: (0,), got=0.00000000, want=1.00000000",
        "  2: Error 66666.666667  Location of error: (1,), got=1.00000000, want=3.00000000"]
    assert str(error.value).splitlines()[1:] == [
        "Items are not equal:",
        "Error 100000.000000 exceeds tolerance rtol=1.000000e-05, atol=1.000000e-20 (mismatch 100.000000%).",
        "Location of maximum error: (0,), got=0.00000000, want=1.00000000",
        " ACTUAL: array([0., 1., 2., 3.])", " DESIRED: array([1. , 3. , 5. , 3.1])"]


def test_nan_leads_the_report(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(AssertionError, match=r"Error nan exceeds .*mismatch 66.666667%"):
        tu.assert_almost_equal(np.array([1, np.inf, np.nan]), np.array([1.0, 2, 3]))
    shown = capsys.readouterr().out
    assert shown.index("Error nan") < shown.index("Error inf")
    both = np.array([np.nan, 1])
    tu.assert_almost_equal(both, both, equal_nan=True)
    with pytest.raises(AssertionError):
        tu.assert_almost_equal(both, both)
    tu.assert_almost_equal_ignore_nan(both, np.array([2.0, 1]))


def test_shapes():
    tu.assert_almost_equal(np.ones((2, 3)), np.ones(3))
    with pytest.raises(AssertionError, match=r"a.shape = \(2, 3\) and b.shape = \(3,\) are not equal"):
        tu.assert_almost_equal(np.ones((2, 3)), np.ones(3), use_broadcast=False)
    with pytest.raises(ValueError, match="broadcast"):
        tu.assert_almost_equal(np.ones((2, 3)), np.ones(4))
    assert tu.almost_equal(nd.ones(2), np.ones((2, 2))) and not tu.almost_equal(nd.ones(2), np.zeros(2))
    assert tu.same(nd.ones(2), np.ones(2)) and not tu.same(np.ones(2), np.ones(3))


def test_numbers_and_whole_numbers_must_be_equal():
    tu.assert_almost_equal(1, 1)
    with pytest.raises(AssertionError, match="Items are not equal"):
        tu.assert_almost_equal(1, 2)
    with pytest.raises(AssertionError, match=r"mismatch 50.000000%"):
        tu.assert_almost_equal(np.array([1, 2]), np.array([1, 3]))


def test_a_share_of_wrong_elements():
    wrong = np.arange(10.0)
    wrong[3] += 1
    tu.assert_almost_equal_with_err(wrong, np.arange(10.0), etol=0.2)
    with pytest.raises(AssertionError):
        tu.assert_almost_equal_with_err(wrong, np.arange(10.0), etol=0.05)


def test_comparing_tuples_and_exceptions():
    a = nd.ones(2)
    tu.compare_ndarray_tuple((a, (a, None)), (a, (a * 1, a)))
    with pytest.raises(AssertionError):
        tu.compare_ndarray_tuple((a, (a, None)), (a, (a * 2, None)))
    tu.assert_exception(int, ValueError, "x")
    with pytest.raises(AssertionError, match="ValueError"):
        tu.assert_exception(int, ValueError, "1")


# -- symbols

@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_numeric_gradients(dtype):
    point = np.array([[1.0, 2], [3, 4]])
    tu.check_numeric_gradient(X * X, [point], dtype=dtype)
    tu.check_numeric_gradient(X * X, {"x": point}, grad_nodes={"x": "add"}, dtype=dtype)
    with pytest.raises(AssertionError, match="NUMERICAL_x"):
        tu.check_numeric_gradient(WRONG, [point], dtype=dtype)


def test_numeric_gradients_of_layers_with_states():
    net = sym.BatchNorm(sym.FullyConnected(X, num_hidden=3, name="fc"), fix_gamma=False, name="bn")
    shapes, _, aux = net.infer_shape(x=(4, 5))
    location = [np.random.uniform(0.5, 1.5, s) for s in shapes]
    tu.check_numeric_gradient(net, location, [np.ones(s) for s in aux], rtol=1e-4, atol=1e-4, dtype=np.float64)
    group = sym.Group([sym.exp(X), sym.sum(X * X)])
    tu.check_numeric_gradient(group, {"x": location[0]}, dtype=np.float64, rtol=1e-4)


def test_numeric_gradient_refusals():
    with pytest.raises(AssertionError):
        tu.check_numeric_gradient(X * X, [np.ones(3)], dtype=np.int32)
    with pytest.raises(ValueError, match="do not match"):
        tu.check_numeric_gradient(X * X, {"z": np.ones(3)})
    with pytest.raises(ValueError, match="grad_nodes"):
        tu.check_numeric_gradient(X * X, [np.ones(3)], grad_nodes=3)


def test_numeric_gradients_of_arrays_kept_in_parts():
    data = tu.rand_ndarray((5, 4), "csr", density=0.5, dtype="float64")
    net = sym.dot(sym.var("data", stype="csr"), X)
    tu.check_numeric_gradient(net, {"data": data, "x": np.random.uniform(size=(4, 2))}, grad_nodes=["x"],
                              grad_stype_dict={"x": "row_sparse"}, dtype=np.float64, rtol=1e-4)


def test_numeric_grad_leaves_the_values():
    executor = (X * X).simple_bind(mx.cpu(), grad_req="null", x=(2,))
    found = tu.numeric_grad(executor, {"x": np.array([1.0, 2])}, eps=1e-2)
    np.testing.assert_allclose(found["x"], [2, 4], rtol=1e-3)
    assert executor.arg_dict["x"].asnumpy().tolist() == [1, 2]


def test_symbolic_forward_and_backward():
    point = [np.array([1.0, 2])]
    (out,) = tu.check_symbolic_forward(X * X, point, [np.array([1.0, 4])])
    assert out.asnumpy().tolist() == [1, 4]
    named = sym.square(X, name="sq")
    tu.check_symbolic_forward(named, {"x": point[0]}, {"sq_output": np.array([1.0, 4])})
    with pytest.raises(AssertionError, match=r"EXPECTED_sq_output=5\.0+, FORWARD_sq_output=4\.0"):
        tu.check_symbolic_forward(named, point, [np.array([1.0, 5])])
    heads = [np.ones(2)]
    grads = tu.check_symbolic_backward(X * X, point, heads, {"x": np.array([2.0, 4])})
    assert grads["x"].asnumpy().tolist() == [2, 4]
    tu.check_symbolic_backward(named, point, {"sq_output": heads[0]}, [np.array([2.0, 4])], grad_req={"x": "add"})
    tu.check_symbolic_backward(X * X, point, heads, [np.array([9.0, 9])], grad_req="null")
    tu.check_symbolic_backward(X * sym.Variable("y"), [point[0]] * 2, heads, [point[0]])  # of the first
    tu.check_symbolic_forward(sym.Group([X * 2, X * X]), point, [2 * point[0]])
    right, wrong = [np.array([2.0, 4]), np.zeros(2)], [np.array([1.0, 4]), np.zeros(2)]
    tu.check_symbolic_backward(X * X, point, heads * 2, right)  # as many are compared as there are, as in MXNet
    tu.check_symbolic_forward(X * X, point, wrong)
    with pytest.raises(AssertionError, match="EXPECTED_x"):
        tu.check_symbolic_backward(X * X, point, heads, [np.array([2.0, 5])])
    with pytest.raises(mx.MXNetError, match="head gradient"):
        tu.check_symbolic_backward(X * X, point, None, [np.array([2.0, 4])])


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
def test_arrays_keep_their_dtypes(dtype: str):
    """With the dtype "asnumpy"."""
    point = np.array([[1, 2], [3, 4]], dtype)
    (out,) = tu.check_symbolic_forward(X * 2, [point], [point * 2], dtype="asnumpy")
    grads = tu.check_symbolic_backward(X * 2, [point], [point], [point * 2], dtype="asnumpy")
    assert out.dtype == grads["x"].dtype == np.dtype(dtype)
    (out,) = tu.check_symbolic_forward(X * 2, [point], [point * 2])
    assert out.dtype == np.float32
    with pytest.raises(AssertionError, match="asnumpy"):
        tu.check_numeric_gradient(X * 2, [point], dtype="asnumpy")


def test_outputs_of_one_name():
    both, point = sym.Group([sym.square(X, name="q"), sym.square(X, name="q")]), np.array([1.0, 2])
    tu.check_symbolic_forward(both, [point], [point**2, point**2])
    tu.check_symbolic_forward(both, [point], {"q_output": point**2})
    tu.check_symbolic_backward(both, [point], [point, 2 * point], [6 * point**2])
    tu.check_symbolic_backward(both, [point], {"q_output": point}, [4 * point**2])
    with pytest.raises(AssertionError):
        tu.check_symbolic_forward(both, [point], [point**2, point])
    entries = [{"ctx": mx.cpu(), "x": (2,), "type_dict": {"x": dtype}} for dtype in (np.float32, np.float64)]
    with pytest.raises(ValueError, match="q_output"):
        tu.check_consistency(both, entries)


def test_gradients_of_what_is_expected_are_returned():
    point = np.array([1.0, 2])
    assert list(tu.check_symbolic_backward(X + sym.Variable("y"), [point] * 2, [point], {"x": point})) == ["x"]


def test_consistency_of_dtypes(capsys: pytest.CaptureFixture[str]):
    net = sym.FullyConnected(X, num_hidden=2, name="fc")
    entries = [{"ctx": mx.cpu(), "x": (2, 3), "type_dict": {"x": dtype}} for dtype in (np.float32, np.float64)]
    truth = tu.check_consistency(net, entries)
    assert set(truth) == {"fc_output", "x", "fc_weight", "fc_bias"} and truth["x"].dtype == np.float64
    with pytest.raises(AssertionError, match="fc_output"):
        tu.check_consistency([net, net * 2], [entries[0]] * 2)
    tu.check_consistency(net, entries, ground_truth={"fc_bias": np.zeros(2)}, raise_on_err=False)
    assert "truth of fc_bias" in capsys.readouterr().out
    with pytest.raises(AssertionError, match="fewer than two"):
        tu.check_consistency(net, entries[:1])


def test_simple_forward_and_speed():
    assert tu.simple_forward(X * X, x=np.full(2, 3)).tolist() == [9, 9]
    assert [o.tolist() for o in tu.simple_forward(sym.Group([X * X, X]), x=np.ones(1))] == [[1], [1]]
    assert tu.check_speed(X * X, N=2, x=(2, 3)) > 0 and tu.check_speed(X, {"x": np.ones(2)}, N=1, typ="forward") > 0
    with pytest.raises(ValueError, match="whole"):
        tu.check_speed(X * X, typ="half", x=(2, 3))


def test_structure_of_symbols():
    assert tu.same_symbol_structure(X * X, sym.Variable("y") * sym.Variable("y")) is False
    assert tu.same_symbol_structure(sym.exp(X, name="a"), sym.exp(X, name="b"))
    assert not tu.same_symbol_structure(sym.exp(X), sym.sin(X))


# -- values

def test_random_values():
    one, (first, scalar) = tu.random_arrays((2, 3)), tu.random_arrays((4,), ())
    assert (one.shape, first.shape, scalar.shape, one.dtype) == ((2, 3), (4,), (), np.float32)
    (low,) = tu.random_uniform_arrays((5,), low=3, high=4, dtype="float64")
    assert low.dtype == np.float64 and 3 <= low.min() <= low.max() < 4
    assert sorted(tu.random_sample([1, 2, 3], 3)) == [1, 2, 3] and len(tu.random_sample(range(9), 2)) == 2
    for _ in range(20):
        assert all(1 <= n <= 3 for n in (*tu.rand_shape_2d(3, 3), *tu.rand_shape_3d(3, 3, 3), *tu.rand_shape_nd(4, 3)))
        x, y = tu.rand_coord_2d(1, 3, 7, 8)
        assert 1 <= x < 3 and y == 7
    assert any(0 in tu.rand_shape_nd(3, 2, allow_zero_size=True) for _ in range(50))
    array = tu.rand_ndarray((2, 3), dtype="int32")
    assert array.shape == (2, 3) and array.dtype == np.int32
    array = tu.rand_ndarray((20, 30), "csr", density=0.5)
    assert array.stype == "csr" and 200 < array.data.size < 400


def test_vectors_and_matrices():
    assert tu.create_vector(3).asnumpy().tolist() == [0, 1, 2] and tu.create_vector(3).dtype == np.int64
    assert tu.create_2d_tensor(2, 3).asnumpy().tolist() == [[0] * 3, [1] * 3]
    assert tu.get_identity_mat_batch(2).asnumpy().tolist() == [tu.get_identity_mat(2).asnumpy().tolist()] * 2
    q = tu.new_orthonormal_matrix_2d(4)
    np.testing.assert_allclose(q @ q.T, np.eye(4), atol=1e-12)
    symmetric = tu.new_sym_matrix_with_real_eigvals_nd((2, 3, 3))
    np.testing.assert_allclose(symmetric, symmetric.transpose(0, 2, 1))
    general = tu.new_matrix_with_real_eigvals_nd((2, 2, 3, 3))
    assert general.shape == (2, 2, 3, 3) and np.abs(np.linalg.eigvals(general).imag).max() < 1e-9
    with pytest.raises(AssertionError):
        tu.new_matrix_with_real_eigvals_nd((2, 3))


def test_reductions_and_loops():
    x = np.arange(24.0).reshape(2, 3, 4)
    for axis in (None, 1, (0, -1)):
        for keep in (False, True):
            np.testing.assert_array_equal(tu.np_reduce(x, axis, keep, np.sum), x.sum(axis, keepdims=keep))
    np.testing.assert_array_equal(tu.collapse_sum_like(x, (3, 1)), x.sum((0, 2)).reshape(3, 1))
    np.testing.assert_array_equal(tu.collapse_sum_like(x, x.shape), x)
    with pytest.raises(AssertionError):
        tu.collapse_sum_like(x, (2, 1))
    assert tu.assign_each(np.array([1.0, 2]), lambda v: v + 1).tolist() == [2, 3]
    assert tu.assign_each2(np.array([1.0, 2]), np.array([3.0, 4]), lambda v, w: v * w).tolist() == [3, 8]


def test_same_memory():
    a = nd.ones((2, 3))
    assert tu.same_array(a, a.reshape((6,)).reshape((2, 3))) and not tu.same_array(a, a.copy())


# -- random generators

def test_chi_square_tail():
    # the 5 % and 1 % points of the distribution, from tables
    for x, freedom, p in ((3.841, 1, 0.05), (5.991, 2, 0.05), (11.345, 3, 0.01), (18.307, 10, 0.05),
                          (135.807, 100, 0.01)):
        assert chi_square_tail(x, freedom) == pytest.approx(p, rel=2e-3)
    assert chi_square_tail(0, 5) == 1 and chi_square_tail(1e4, 5) < 1e-100


def test_generators():
    uniform = lambda n: np.random.random(n)  # noqa: E731
    buckets, probs = tu.gen_buckets_probs_with_ppf(lambda p: p, 4)
    assert buckets == [(0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1)] and probs == [0.25] * 4
    assert len(tu.verify_generator(uniform, buckets, probs, nsamples=4000, nrepeat=3)) == 3
    with pytest.raises(AssertionError, match="does not fit"):
        tu.verify_generator(lambda n: np.random.random(n) ** 2, buckets, probs, nsamples=4000)
    coins = lambda n: nd.array(np.random.randint(0, 2, n))  # noqa: E731
    p, observed, expected = tu.chi_square_check(coins, [0, 1], [0.5, 0.5], nsamples=1000)
    assert p > 1e-6 and observed.sum() == 1000 and expected.tolist() == [500, 500]
    assert tu.chi_square_check(coins, [0, 2], [0.5, 0.5], nsamples=1000)[0] == 0
    assert tu.mean_check(np.random.standard_normal, 0, 1, 10000)
    assert not tu.mean_check(np.random.standard_normal, 0.2, 1, 10000)
    assert tu.var_check(np.random.standard_normal, 1, 10000)
    assert not tu.var_check(np.random.standard_normal, 1.2, 10000)


# -- surroundings

def test_default_context():
    assert tu.default_context() == mx.cpu() and tu.default_dtype() is np.float32 and list(tu.list_gpus()) == []
    tu.set_default_context(mx.cpu(3))
    try:
        assert nd.ones(1).context == mx.cpu(3) == mx.current_context()
        with mx.cpu(1):
            assert tu.default_context() == mx.cpu(1)
    finally:
        tu.set_default_context(mx.cpu())


def test_environment():
    name = "MXC_TEST_OF_ENVIRONMENT"
    with tu.environment({name: "1", "PATH": None}):
        assert (tu.getenv(name), tu.getenv("PATH")) == ("1", None)
        with pytest.raises(KeyError), tu.environment(name, "2"):
            assert os.environ[name] == "2"
            raise KeyError
        assert os.environ[name] == "1"
    assert name not in os.environ and os.environ["PATH"]
    with pytest.raises(TypeError), tu.environment(name):
        pass


def test_discarded_errors(capfd: pytest.CaptureFixture[str]):
    with tu.discard_stderr():
        os.write(2, b"hidden")
    os.write(2, b"shown")
    assert capfd.readouterr().err == "shown"


def test_retry():
    tries = []

    @tu.retry(3)
    def test(last: int) -> int:
        tries.append(len(tries))
        assert tries[-1] >= last
        return tries[-1]

    assert test(2) == 2 and tries == [0, 1, 2]
    with pytest.raises(AssertionError):
        test(99)
    assert len(tries) == 6
    with pytest.raises(AssertionError):
        tu.retry(0)


def idx(values: np.ndarray) -> bytes:
    return struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape) + values.tobytes()


def test_mnist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(mx.MXNetError, match=r"put train-images-idx3-ubyte or train-images-idx3-ubyte.gz into .*data"):
        tu.get_mnist()
    (tmp_path / "data").mkdir()
    images, labels = np.arange(2 * 28 * 28).astype(np.uint8).reshape(2, 28, 28), np.array([7, 1], np.uint8)
    for part in ("train", "t10k"):
        (tmp_path / f"data/{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
        (tmp_path / f"data/{part}-labels-idx1-ubyte").write_bytes(idx(labels))
    found = tu.get_mnist()
    assert {k: (v.shape, str(v.dtype)) for k, v in found.items()} == {
        f"{part}_{kind}": facts for part in ("train", "test")
        for kind, facts in (("data", ((2, 1, 28, 28), "float32")), ("label", ((2,), "uint8")))}
    np.testing.assert_array_equal(found["test_data"], images[:, None] / np.float32(255))
    (tmp_path / "data/t10k-labels-idx1-ubyte").write_bytes(idx(labels)[:-1])
    with pytest.raises(mx.MXNetError, match=r"t10k-labels-idx1-ubyte, byte 8: expected 2 = 2 bytes.* got 1"):
        tu.get_mnist()


def test_iterators_over_mnist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    for part, count in (("train", 20), ("t10k", 9)):
        images = np.arange(count * 12).astype(np.uint8).reshape(count, 3, 4)
        (tmp_path / f"data/{part}-images-idx3-ubyte").write_bytes(idx(images))
        (tmp_path / f"data/{part}-labels-idx1-ubyte").write_bytes(idx(np.arange(count, dtype=np.uint8)))
    for shape, batch_shape in (((1, 3, 4), (4, 1, 3, 4)), ((12,), (4, 12))):
        train, test = tu.get_mnist_iterator(4, shape, num_parts=2, part_index=1)
        assert train.provide_data == [("data", batch_shape)]
        # As MXNet 1.9.1 shuffles them.
        assert [b.label[0].asnumpy().tolist() for b in train] == [[10, 12, 13, 15], [19, 11, 16, 18]]
        assert [b.label[0].asnumpy().tolist() for b in test] == [[4, 6, 7, 5]]


def test_a_dummy_iterator_gives_one_batch():
    it = mx.io.NDArrayIter(np.arange(10), None, 4)
    dummy = tu.DummyIter(it)
    batches = [dummy.next() for _ in range(5)]
    assert iter(dummy) is dummy and all(batch is batches[0] for batch in batches)
    assert batches[0].data[0].asnumpy().tolist() == [0, 1, 2, 3]
    assert (dummy.batch_size, dummy.provide_data, dummy.provide_label) == (4, it.provide_data, [])


# -- the small modules

def test_shape_semantics():
    assert not mx.is_np_shape() and not mx.is_np_array()
    with mx.np_shape():
        assert mx.is_np_shape()
        with mx.np_shape(False):
            assert not mx.is_np_shape()
        assert mx.is_np_shape()
        assert nd.zeros(()).asnumpy() == 0 and nd.ones((0, 2), dtype="int32").shape == (0, 2)
        assert nd.ones((2,)).asnumpy().tolist() == [1, 1]
    with pytest.raises(mx.MXNetError, match="np_shape"):
        nd.zeros(())

    @mx.use_np_shape
    class Model:
        def call(self) -> bool:
            return mx.is_np_shape()

        @property
        def seen(self) -> bool:
            return mx.is_np_shape()

    assert Model().call() and Model().seen and mx.use_np_shape(mx.is_np_shape)() and not mx.is_np_shape()
    assert mx.set_np_shape(True) is False and mx.set_np_shape(False) is True
    with pytest.raises(TypeError, match="use_np_shape can only decorate"):
        mx.use_np_shape(3)


def test_features():
    features = mx.runtime.Features()
    assert features is mx.runtime.Features() and list(features) == [f.name for f in mx.runtime.feature_list()]
    assert not features.is_enabled("cuda") and features.is_enabled("PROFILER") and "✖ CUDA" in repr(features)
    with pytest.raises(RuntimeError, match="Feature 'FOO' is unknown, known features are"):
        features.is_enabled("foo")


def test_errors_and_util():
    @mx.error.register
    class Special(mx.error.MXNetError):
        pass

    assert issubclass(Special, mx.MXNetError) and mx.error.register("Special", Special) is Special
    assert str(mx.error.InternalError("x")).startswith("x\n")
    assert mx.util.get_gpu_count() == 0
    with pytest.raises(mx.MXNetError, match="num_gpus"):
        mx.util.get_gpu_memory(0)
    assert mx.util.set_module("elsewhere")(lambda: 0).__module__ == "elsewhere"
    assert mx.engine.set_bulk_size(5) == 0
    with mx.engine.bulk(7):
        assert mx.engine.set_bulk_size(7) == 7
    assert mx.engine.set_bulk_size(0) == 5


def test_log(tmp_path: Path):
    path = tmp_path / "log"
    logger = mx.log.get_logger("mxc test of log", str(path), "w", mx.log.INFO)
    logger.info("text %d", 3)
    logger.debug("not")
    assert mx.log.get_logger("mxc test of log") is logger and len(logger.handlers) == 1
    logger.handlers[0].close()
    line = path.read_text()
    assert line.startswith("[I") and line.endswith("] text 3\n") and "test_log" in line and line.count("\n") == 1
    with pytest.warns(DeprecationWarning):
        mx.log.getLogger()
