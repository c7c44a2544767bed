"""How eager operators are computed: which draw random numbers, and when one is compiled."""
import numpy as np
import pytest
from op_cases import cases

import mxc as mx
from mxc import nd
from mxc.compiler.error import MXNetError
from mxc.compiler.ops import table
from mxc.compiler.ops.infer import infer_node
from mxc.compiler.ops.philox import Draws
from mxc.compiler.passes.decompose import draws
from mxc.runtime import eager, specializations

X = np.arange(1, 13, dtype="float32").reshape(3, 4)


@pytest.fixture(autouse=True)
def _no_specials(monkeypatch):
    monkeypatch.setattr(specializations, "remembered", {})


def _deterministic() -> None:
    """Operators of every kind that draw nothing, though the table knows them by references."""
    x = nd.array(X)
    nd.dot(x, x.T)
    nd.softmax(x)
    nd.topk(x)
    nd.take(x, nd.array([1, 0]))
    nd.Pooling(x.reshape((1, 1, 3, 4)), kernel=(2, 2), pool_type="max")
    nd.Dropout(x)
    nd.LeakyReLU(x, act_type="rrelu")
    nd.Dropout(x, p=0, mode="always")
    STEADY.forward()


def _drawn(between, draw) -> list[list[float]]:
    mx.random.seed(5)
    found = []
    for _ in range(3):
        found.append(draw().asnumpy().ravel().tolist())
        between()
    return found


STEADY = mx.sym.tanh(mx.sym.Variable("x")).bind(mx.cpu(), {"x": nd.ones((3, 4))})
DROPPED = mx.sym.Dropout(mx.sym.Variable("x"), mode="always").bind(mx.cpu(), {"x": nd.ones((3, 4))})


@pytest.mark.parametrize("draw", [lambda: nd.random.uniform(shape=(4,)), lambda: nd.shuffle(nd.array(X)),
                                  lambda: nd.Dropout(nd.ones((5, 5)), mode="always"), lambda: DROPPED.forward()[0]],
                         ids=["uniform", "shuffle", "Dropout", "executor"])
def test_deterministic_operators_draw_nothing(draw):
    alone = _drawn(lambda: None, draw)
    assert _drawn(_deterministic, draw) == alone
    assert alone[0] != alone[1] != alone[2]


def test_draws_in_between_count():
    def uniform() -> nd.NDArray:
        return nd.random.uniform(shape=(4,))

    alone = _drawn(lambda: None, uniform)
    with mx.autograd.train_mode():
        for other in (lambda: nd.Dropout(nd.ones((2,))), lambda: nd.LeakyReLU(nd.ones((2,)), act_type="rrelu")):
            found = _drawn(other, uniform)
            assert found[0] == alone[0] and found[1] == alone[2]


@pytest.mark.parametrize("is_train", [False, True])
def test_what_draws_is_what_the_references_draw(is_train):
    seen = 0
    for name in table.names():
        op = table.get(name)
        if "reference" not in op.rules or not all("shapes" in sample for sample in op.samples or [{}]):
            continue
        for case in cases(op):
            arrays = case.arrays("float32")
            facts = [a.shape for a in arrays], [a.dtype.name for a in arrays]
            rng = Draws(1, 2)
            try:
                dtypes = infer_node(mx.compiler.graph.graph.Node(op, "n", None, case.params), *facts)[1]
                op.reference(case.params, arrays, dtypes, is_train, rng)
                found = draws(op, case.params, *facts, is_train)
            except MXNetError:
                continue
            if name.startswith("_mxc_"):  # these name their streams themselves
                continue
            assert found == (rng.streams > 0), case
            seen += found
    assert seen > 3


def test_a_slow_reference_is_compiled_when_it_took_long_enough(monkeypatch):
    image = nd.array(np.random.RandomState(3).rand(1, 2, 9, 9))

    def pooled() -> np.ndarray:
        return nd.Pooling(image, kernel=(3, 3), pool_type="avg").asnumpy()

    monkeypatch.setattr(eager, "SLOW_CALL", 0)
    first = pooled()
    (special,) = specializations.remembered.values()
    assert not special.wants_code and special.code() is None
    monkeypatch.setattr(eager, "COMPILATION", 0)
    np.testing.assert_array_equal(pooled(), first)
    assert special.wants_code
    np.testing.assert_allclose(pooled(), first, rtol=1e-6)
    assert special.code() is not None


def test_quick_calls_are_never_compiled(monkeypatch):
    monkeypatch.setattr(eager, "SLOW_CALL", 1e9)
    monkeypatch.setattr(eager, "COMPILATION", 0)
    for _ in range(3):
        nd.topk(nd.array(X))
    assert not any(special.wants_code for special in specializations.remembered.values())


def test_what_the_compiler_cannot_make_stays_with_its_reference(monkeypatch):
    monkeypatch.setattr(eager, "SLOW_CALL", 0)
    monkeypatch.setattr(eager, "COMPILATION", 0)
    tried = []
    monkeypatch.setattr(eager, "compiled", lambda *args: tried.append(args))
    for _ in range(4):
        nd.topk(nd.array(X))
    assert len(tried) == 1


def test_elements_from_which_forms_are_compiled():
    def wants_code(name: str, elements: int, **params: object) -> bool:
        op = table.get(name)
        node = mx.compiler.graph.graph.Node(op, "n", None, op.make_params(params))
        count = len(op.input_names(node.params))
        return specializations.special_of(node, ((elements,),) * count, ("float32",) * count, False).wants_code

    for name, few, params in (("broadcast_add", eager.ARITHMETIC_ELEMENTS, {}), ("exp", eager.MAP_ELEMENTS, {}),
                              ("erf", eager.MAP_ELEMENTS, {}),
                              ("sum", eager.MAP_ELEMENTS, {}), ("sort", eager.LIBRARY_ELEMENTS, {}),
                              ("tile", eager.MAP_ELEMENTS // 2, {"reps": 2})):
        assert not wants_code(name, few - 1, **params) and wants_code(name, few, **params), name


def test_parameters_in_lists_find_the_form_of_those_in_tuples():
    x = nd.array(X)
    for _ in range(3):
        nd.transpose(x, axes=[1, 0])
    nd.transpose(x, axes=(1, 0))
    assert len({id(special) for special in specializations.remembered.values()}) <= 2


@pytest.mark.parametrize("request_", ["write", "add"])
def test_a_gradient_that_flows_in_may_be_one_that_is_written(request_):
    x, z = nd.array([1, 2]), nd.array([3, 4])
    x.attach_grad(request_)
    z.attach_grad(request_)
    x.grad[:] = [10, 20]
    with mx.autograd.record():
        y = x + z.reshape((2,))
    y.backward(x.grad)
    assert x.grad.asnumpy().tolist() == ([20, 40] if request_ == "add" else [10, 20])
    assert z.grad.asnumpy().tolist() == [10, 20]


def test_backward_waits_for_queued_work_that_it_reads():
    x = nd.ones((2,))
    x.attach_grad()
    large = nd.ones((1 << 20,))
    with mx.autograd.record():
        y = x * nd.sum(nd.exp(large) * 0 + 1) / (1 << 20) * x
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), [2, 2])


@pytest.mark.parametrize("rows", [6, 1200])
def test_results_that_lie_where_others_come_from(rows):
    """Of an array in parts, each written where another one was."""
    values = np.arange(rows * 4, dtype="float32").reshape(rows, 4)
    x, half = nd.array(values), rows // 2
    nd.SliceChannel(x, num_outputs=2, axis=0, out=[x[half:], x[:half]])
    np.testing.assert_array_equal(x.asnumpy(), np.roll(values, half, 0))
