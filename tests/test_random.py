"""Random numbers: their distributions against SciPy's, with seeds that are fixed, and where the same ones must come."""
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy import stats

import mxc as mx

COUNT = 20000
CONTINUOUS = {
    "uniform": ({"low": -1.5, "high": 4.0}, stats.uniform(-1.5, 5.5)),
    "normal": ({"loc": 2.0, "scale": 3.0}, stats.norm(2, 3)),
    "exponential": ({"scale": 2.0}, stats.expon(scale=2)),
    "gamma": ({"alpha": 2.5, "beta": 1.5}, stats.gamma(2.5, scale=1.5)),
    "gamma of a small shape": ({"alpha": 0.25, "beta": 2.0}, stats.gamma(0.25, scale=2)),
}
COUNTS = {
    "poisson of small rate": ("poisson", {"lam": 3.5}, stats.poisson(3.5)),
    "poisson": ("poisson", {"lam": 40.0}, stats.poisson(40)),
    "negative_binomial": ("negative_binomial", {"k": 4, "p": 0.25}, stats.nbinom(4, 0.25)),
    "generalized_negative_binomial": ("generalized_negative_binomial", {"mu": 6.0, "alpha": 0.5},
                                      stats.nbinom(2, 1 / 4)),
    "no dispersion": ("generalized_negative_binomial", {"mu": 6.0, "alpha": 0.0}, stats.poisson(6)),
}


def drawn(name, seed=11, **params):
    mx.random.seed(seed)
    return getattr(mx.nd.random, name.split()[0])(**params).asnumpy()


def check_counts(found, distribution):
    """A chi-square test over bins of at least 20 expected numbers."""
    edges = [k for k in range(int(found.max()) + 2) if distribution.cdf(k) * found.size > 20]
    edges = [k for k in edges if distribution.sf(k) * found.size > 20]
    seen = np.histogram(found, [-0.5, *(k + 0.5 for k in edges), np.inf])[0]
    chances = np.diff([0, *distribution.cdf(edges), 1])
    assert stats.chisquare(seen, chances * found.size).pvalue > 1e-3


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name, dtype):
    params, distribution = CONTINUOUS[name]
    numbers = drawn(name, shape=COUNT, dtype=dtype, **params)
    assert numbers.dtype == dtype and numbers.shape == (COUNT,)
    assert stats.kstest(numbers, distribution.cdf).pvalue > 1e-3
    sigma = distribution.std() / np.sqrt(COUNT)
    assert abs(numbers.mean() - distribution.mean()) < 4 * sigma
    np.testing.assert_allclose(numbers.std(), distribution.std(), rtol=0.05)


@pytest.mark.parametrize("name", COUNTS)
def test_distributions_of_counts(name):
    name, params, distribution = COUNTS[name]
    numbers = drawn(name, shape=COUNT, **params)
    assert numbers.dtype == np.float32
    check_counts(numbers, distribution)
    assert abs(numbers.mean() - distribution.mean()) < 4 * distribution.std() / np.sqrt(COUNT)


def test_float64_has_53_bits():
    numbers = drawn("uniform", shape=1000, dtype="float64")
    assert len(np.unique(numbers)) == 1000
    assert np.any(numbers != numbers.astype(np.float32))
    assert np.all(numbers * 2.0**53 == np.trunc(numbers * 2.0**53))


@pytest.mark.parametrize("low, high, dtype", [(-3, 9, "int32"), (0, 10, "int64"), (-2**62, 2**63 - 1, "int64")])
def test_whole_numbers_are_even(low, high, dtype):
    numbers = drawn("randint", low=low, high=high, shape=COUNT, dtype=dtype)
    assert numbers.dtype == dtype and numbers.min() >= low and numbers.max() < high
    parts = min(high - low, 12)
    places = [(int(n) - low) * parts // (high - low) for n in numbers]
    assert stats.chisquare(np.bincount(places, minlength=parts)).pvalue > 1e-3


def test_neighbours_and_streams_are_independent():
    mx.random.seed(5)
    one, two = (mx.nd.random.uniform(shape=COUNT).asnumpy() for _ in range(2))
    for a, b in ((one[:-1], one[1:]), (one, two), (one[:-64], one[64:])):
        cells = np.histogram2d(a, b, bins=8, range=[[0, 1], [0, 1]])[0]
        assert stats.chisquare(cells.ravel()).pvalue > 1e-3
    mx.random.seed(6)
    other = mx.nd.random.uniform(shape=COUNT).asnumpy()
    assert abs(np.corrcoef(one, other)[0, 1]) < 4 / np.sqrt(COUNT)


def test_each_element_of_the_parameters_is_a_distribution():
    mx.random.seed(2)
    means, deviations = np.array([-4.0, 0.0, 9.0]), np.array([0.5, 1.0, 2.0])
    numbers = mx.nd.random.normal(mx.nd.array(means), mx.nd.array(deviations), shape=(40, 50)).asnumpy()
    assert numbers.shape == (3, 40, 50)
    for row, mean, deviation in zip(numbers, means, deviations, strict=True):
        assert stats.kstest(row.ravel(), stats.norm(mean, deviation).cdf).pvalue > 1e-3
    rates = np.array([[0.0, 2.0], [30.0, 400.0]])
    counts = mx.nd.random.poisson(mx.nd.array(rates), shape=5000).asnumpy()
    assert not counts[0, 0].any()
    for at in ((0, 1), (1, 0), (1, 1)):
        check_counts(counts[at], stats.poisson(rates[at]))


def test_classes_have_their_probabilities():
    mx.random.seed(3)
    chances = np.array([[0.1, 0.0, 0.6, 0.3], [0.0, 0.5, 0.5, 0.0]])
    classes, logs = mx.nd.random.multinomial(mx.nd.array(chances), shape=COUNT, get_prob=True)
    for row, chance in zip(classes.asnumpy(), chances, strict=True):
        seen = np.bincount(row, minlength=4)
        assert not seen[chance == 0].any()
        assert stats.chisquare(seen[chance > 0], chance[chance > 0] * COUNT).pvalue > 1e-3
    np.testing.assert_allclose(logs.asnumpy(), np.log(np.take_along_axis(chances, classes.asnumpy(), 1)), rtol=1e-6)


def test_the_gradient_of_a_class_is_that_of_its_log_probability():
    data = mx.nd.array([[0.1, 0.5, 0.4], [0.3, 0.3, 0.4]])
    data.attach_grad()
    with mx.autograd.record():
        classes, logs = mx.nd.random.multinomial(data, shape=50, get_prob=True)
    logs.backward()
    seen = np.array([np.bincount(row, minlength=3) for row in classes.asnumpy()])
    np.testing.assert_allclose(data.grad.asnumpy(), seen / data.asnumpy(), rtol=1e-5)


def test_probabilities_need_no_sum_of_one():
    mx.random.seed(3)
    for scale in (0.1, 7.0):
        classes = mx.nd.random.multinomial(mx.nd.array([scale, scale, 2 * scale]), shape=4000).asnumpy()
        assert stats.chisquare(np.bincount(classes), [1000, 1000, 2000]).pvalue > 1e-3
    with pytest.raises(mx.MXNetError, match="at most range_max = 4 different classes"):
        mx.nd._internal._sample_unique_zipfian(range_max=4, shape=(1, 5))


def test_every_order_is_as_likely():
    mx.random.seed(4)
    seen = {}
    for _ in range(600):
        order = tuple(mx.nd.random.shuffle(mx.nd.arange(3)).asnumpy().astype(int))
        seen[order] = seen.get(order, 0) + 1
    assert len(seen) == 6 and stats.chisquare(list(seen.values())).pvalue > 1e-3
    rows = mx.nd.random.shuffle(mx.nd.array(np.arange(12).reshape(6, 2), dtype="int32")).asnumpy()
    assert rows.dtype == np.int32 and sorted(map(tuple, rows)) == [(i, i + 1) for i in range(0, 12, 2)]


def test_different_classes_are_log_uniform():
    mx.random.seed(8)
    classes, tries = mx.nd._internal._sample_unique_zipfian(range_max=50, shape=(4000, 1))
    chances = np.diff(np.log(np.arange(1, 52))) / np.log(51)
    assert stats.chisquare(np.bincount(classes.asnumpy().ravel(), minlength=50), chances * 4000).pvalue > 1e-3
    classes, tries = mx.nd._internal._sample_unique_zipfian(range_max=9, shape=(3, 9))
    assert all(sorted(row) == list(range(9)) for row in classes.asnumpy()) and (tries.asnumpy() >= 9).all()


GRAPHS = {name: (name, params) for name, (params, _) in CONTINUOUS.items() if " " not in name}
GRAPHS |= {name: (name, params) for name, params, _ in COUNTS.values()}
GRAPHS["randint"] = ("randint", {"low": 0, "high": 1000})


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_and_arrays_draw_the_same(name):
    _, params = GRAPHS[name]
    eager = drawn(name, shape=(7, 30), **params)
    executor = getattr(mx.sym.random, name)(shape=(7, 30), **params).simple_bind(mx.cpu())
    mx.random.seed(11)
    compiled = executor.forward()[0].asnumpy()
    np.testing.assert_allclose(compiled, eager, 2e-6, 1e-6)
    assert np.any(executor.forward()[0].asnumpy() != compiled)
    shown = {}
    executor.set_monitor_callback(lambda key, value: shown.update({key: value.asnumpy()}))
    mx.random.seed(11)
    executor.forward()
    np.testing.assert_allclose(next(iter(shown.values())), eager, 2e-6, 1e-6)


def test_any_number_of_threads_draws_the_same():
    text = ("import mxc as mx, hashlib; mx.random.seed(9); R = mx.sym.random; "
            "s = mx.sym.Group([R.normal(shape=70000), R.gamma(0.5, 2, shape=70000), R.poisson(20, shape=70000)]); "
            "print(hashlib.sha256(b''.join(o.asnumpy().tobytes() for o in s.simple_bind(mx.cpu()).forward()))"
            ".hexdigest())")
    printed = [subprocess.run([sys.executable, "-c", text], env={**os.environ, "MXC_NUM_THREADS": threads}, check=True,
                              capture_output=True, text=True).stdout for threads in ("1", "2")]
    assert printed[0] == printed[1] and len(printed[0]) > 60


def test_seeds_of_devices():
    def numbers(device):
        return mx.nd.random.uniform(shape=4, ctx=device).asnumpy().tolist()

    mx.random.seed(3)
    first, second = numbers(mx.cpu(0)), numbers(mx.cpu(1))
    assert first != second
    mx.random.seed(3, ctx=mx.cpu(1))
    assert numbers(mx.cpu(1)) == first and numbers(mx.cpu(0)) != first
    with mx.cpu(1):
        assert mx.nd.random.uniform(shape=2).context == mx.cpu(1)
    for wrong in ({"seed_state": 1.5}, {"seed_state": 1, "ctx": "cpu"}):
        with pytest.raises(ValueError, match="must be"):
            mx.random.seed(**wrong)


def test_shapes_and_dtypes_are_those_of_mxnet():
    one, pair = mx.nd.random, mx.nd.array([[1, 2, 3]])
    assert one.uniform().shape == (1,) and one.uniform(shape=3).shape == (3,) and one.randn(2, 3).shape == (2, 3)
    assert one.randint(0, 3).dtype == np.int32 and one.poisson(dtype="float16").dtype == np.float16
    assert one.uniform(pair, pair).shape == (1, 3) and one.gamma(pair, pair, shape=(2, 4)).shape == (1, 3, 2, 4)
    assert one.normal_like(pair.astype("float64")).dtype == np.float64
    assert mx.nd.sample_uniform(pair.astype("int32"), pair.astype("int32"), shape=2).dtype == np.float32
    assert one.multinomial(mx.nd.array([0.5, 0.5])).shape == (1,)
    assert one.multinomial(mx.nd.ones((2, 3, 4)) / 4, shape=5, dtype="uint8").shape == (2, 3, 5)
    filled = mx.nd.zeros((2, 3), dtype="float64")
    assert one.uniform(1, 2, out=filled) is filled and (filled.asnumpy() >= 1).all()


@pytest.mark.parametrize("size", [3, 1 << 17])
@pytest.mark.parametrize("name, params, text", [
    ("uniform", {"low": 2, "high": 1}, "low <= high"), ("normal", {"scale": -1}, "scale above 0"),
    ("exponential", {"scale": -1.0}, "lam above 0"), ("gamma", {"alpha": 0}, "alpha above 0"),
    ("poisson", {"lam": -1}, "lam of at least 0"), ("negative_binomial", {"k": -1}, "k of at least 0"),
    ("negative_binomial", {"p": -1}, "p from 0 to 1"), ("negative_binomial", {"p": 1.5}, "p from 0 to 1"),
    ("generalized_negative_binomial", {"mu": -1}, "mu of at least 0"),
    ("normal", {"scale": float("nan")}, "scale above 0"),
    ("randint", {"low": 3, "high": 3}, "low < high"), ("randint", {"low": 0, "high": 2**31 + 1}, "beyond int32"),
    ("randint", {"low": -2**31 - 1, "high": 0, "dtype": "int32"}, "beyond int32")])
def test_values_that_a_distribution_does_not_have_fail_where_the_numbers_are_waited_for(name, params, text, size):
    """As in MXNet; what is drawn later is as if nobody had asked, and the array can be written again."""
    drawn = getattr(mx.nd.random, name)(**params, shape=size)
    right = mx.nd.random.uniform(shape=size)
    with pytest.raises(mx.MXNetError, match=text):
        drawn.wait_to_read()
    assert 0 <= float(right.min().asscalar()) <= float(right.max().asscalar()) <= 1
    drawn[:] = 1
    assert drawn.asnumpy().sum() == size


def test_numbers_that_are_not_drawn_leave_the_seed_alone():
    mx.random.seed(5)
    expected = mx.nd.random.normal(shape=(4,)).asnumpy()
    mx.random.seed(5)
    failed = mx.nd.random.normal(0, -1, shape=(4,))
    np.testing.assert_array_equal(mx.nd.random.normal(shape=(4,)).asnumpy(), expected)
    with pytest.raises(mx.MXNetError):
        failed.wait_to_read()


def test_a_graph_with_such_values_is_refused_when_it_is_bound():
    symbol = mx.sym.random.normal(scale=-1, shape=(2, 3), name="noise") + mx.sym.Variable("x")
    with pytest.raises(mx.MXNetError, match=r"noise.*scale above 0"):
        symbol.simple_bind(mx.cpu(), x=(2, 3))


@pytest.mark.parametrize("name, params, text", [
    ("uniform", {"shape": 2, "dtype": "int32"}, "dtype"), ("uniform", {"low": "a"}, "a number or an array")])
def test_wrong_parameters_are_refused(name, params, text):
    with pytest.raises(mx.MXNetError, match=text):
        getattr(mx.nd.random, name)(**params)


def test_parameters_in_arrays_that_make_no_sense_give_no_warnings():
    wrong, right = mx.nd.array([-1.0, 0.0]), mx.nd.ones((2,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mx.nd.waitall()
        for arrays in ((wrong, right), (right, wrong)):
            for name in ("gamma", "negative_binomial", "generalized_negative_binomial"):
                getattr(mx.nd.random, name)(*arrays).wait_to_read()
        mx.nd.random.multinomial(wrong * 0, get_prob=True)[1].wait_to_read()
