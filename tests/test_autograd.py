"""Gradients of imperative programs: recording, backward, grad, functions of one's own, and what is refused."""
from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import mxc as mx
from mxc import autograd, nd
from mxc.base import MXNetError


def marked(*values: float, request: str = "write") -> nd.NDArray:
    array = nd.array(values)
    array.attach_grad(request)
    return array


def gradient_of(function, *values: float) -> list[float]:
    """The gradient of a function of an array, computed by backward."""
    x = marked(*values)
    with autograd.record():
        y = function(x)
    y.backward()
    return x.grad.asnumpy().tolist()


# -- state

def test_scopes_set_what_the_thread_does_and_restore_it():
    def now():
        return autograd.is_recording(), autograd.is_training()

    assert now() == (False, False)
    with autograd.record():
        assert now() == (True, True)
        with autograd.pause():
            assert now() == (False, False)
        with autograd.pause(train_mode=True):
            assert now() == (False, True)
        with autograd.predict_mode():
            assert now() == (True, False)
        assert now() == (True, True)
    with autograd.record(train_mode=False):
        assert now() == (True, False)
        with autograd.train_mode():
            assert now() == (True, True)
    assert now() == (False, False)
    with pytest.raises(KeyError), autograd.record():
        raise KeyError
    assert now() == (False, False)
    assert [autograd.set_recording(True), autograd.set_recording(False)] == [False, True]
    assert [autograd.set_training(True), autograd.set_training(False)] == [False, True]


def test_each_thread_has_a_state_of_its_own():
    seen = []
    with autograd.record():
        thread = threading.Thread(target=lambda: seen.append((autograd.is_recording(), autograd.is_training())))
        thread.start()
        thread.join()
    assert seen == [(False, False)]


# -- backward

def test_a_chain_and_a_value_that_is_used_twice():
    assert gradient_of(lambda x: x * x, 1, 2, 3) == [2, 4, 6]
    assert gradient_of(lambda x: (x * 2 + x) * x, 1, 2) == [6, 12]


def test_a_head_gradient_flows_in():
    x = marked(1, 2)
    with autograd.record():
        y = x * x
    y.backward(nd.array([10, 100]))
    assert x.grad.asnumpy().tolist() == [20, 400]
    with autograd.record():
        y = x * x
    with pytest.raises(MXNetError, match=r"head gradient 0 has the shape \(3,\)"):
        y.backward(nd.ones((3,)))


def test_several_heads():
    x = marked(1, 2)
    with autograd.record():
        y = x * x
        z = y * 3
    autograd.backward([y, z], [nd.array([1, 10]), None])
    assert x.grad.asnumpy().tolist() == [2 * 1 + 6, 4 * 10 + 12]
    with pytest.raises(AssertionError, match="same length"):
        autograd.backward([y], [None, None])


def test_a_head_given_twice_counts_twice():
    x = marked(1, 2)
    with autograd.record():
        y = x * x
    autograd.backward([y, y], [nd.array([1, 2]), None])
    assert x.grad.asnumpy().tolist() == [4, 12]


def test_a_marked_array_as_head():
    x = marked(1, 2)
    x.backward()
    assert x.grad.asnumpy().tolist() == [1, 1]


def test_requests():
    x, y, z = marked(1, 2), marked(1, 2, request="add"), marked(1, 2, request="null")
    for _ in range(2):
        z.attach_grad("null")
        assert z.grad.asnumpy().tolist() == [0, 0]
        with autograd.record():
            out = x * y * z
        out.backward()
    assert x.grad.asnumpy().tolist() == [1, 4] and y.grad.asnumpy().tolist() == [2, 8]
    assert z.grad is None
    with pytest.raises(KeyError, match="other"):
        x.attach_grad("other")
    z.attach_grad("null")
    with autograd.record():
        out = z * 2
    with pytest.raises(MXNetError, match="no inputs in computation graph that require gradients"):
        out.backward()


def test_grad_is_none_before_it_is_attached_and_zeros_then():
    x = nd.ones((2,))
    assert x.grad is None
    x.attach_grad()
    assert x.grad.asnumpy().tolist() == [0, 0]


def test_mark_variables():
    x, gradient = nd.array([1, 2]), nd.ones((2,))
    autograd.mark_variables(x, gradient, "add")
    with autograd.record():
        y = x * x
    y.backward()
    assert gradient.asnumpy().tolist() == x.grad.asnumpy().tolist() == [3, 5]
    with pytest.raises(MXNetError, match="0 gradients"):
        autograd.mark_variables([x], [])
    with pytest.raises(MXNetError, match="must be the same"):
        autograd.mark_variables([x], [nd.ones((3,))])


def test_attaching_to_a_computed_array_cuts_the_graph():
    x = marked(1, 2)
    with autograd.record():
        y = x * x
        y.attach_grad()
        z = y * x
    z.backward()
    assert x.grad.asnumpy().tolist() == [1, 4] and y.grad.asnumpy().tolist() == [1, 2]


def test_detach_and_pause_cut_the_graph():
    assert gradient_of(lambda x: (x * x).detach() * x, 1, 2) == [1, 4]
    x = marked(1, 2)
    with autograd.record():
        y = x * x
        with autograd.pause():
            w = y * 2
        z = w * x
    z.backward()
    assert x.grad.asnumpy().tolist() == [2, 8]
    assert gradient_of(lambda x: nd.BlockGrad(x * x) * x, 1, 2) == [1, 4]


def test_detach_shares_memory():
    x = marked(1, 2)
    x.detach()[:] = 5
    assert x.asnumpy().tolist() == [5, 5] and x.detach().grad is None


def test_a_loss_begins_a_gradient_of_its_own():
    x = marked(1, 2)
    with autograd.record():
        y = nd.SoftmaxOutput(x.reshape((1, 2)), nd.array([1]))
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), [0.26894143, -0.26894143], rtol=1e-5)


def test_integers_that_are_indices_get_zeros():
    x, i = marked(1, 2), nd.array([1, 0], dtype="int32")
    i.attach_grad()
    with autograd.record():
        y = nd.take(x, i)
    y.backward()
    assert x.grad.asnumpy().tolist() == [1, 1]
    assert i.grad.dtype == np.int32 and i.grad.asnumpy().tolist() == [0, 0]


# -- the graph's life

@pytest.mark.parametrize("again", [lambda y, x: y.backward(), lambda y, x: autograd.grad(y, x)])
def test_the_graph_is_freed_by_backward_unless_it_is_kept(again):
    x = marked(1, 2)
    with autograd.record():
        y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.asnumpy().tolist() == [2, 4]
    with pytest.raises(MXNetError, match=r"not in a computational graph.*retain_graph=True"):
        again(y, x)


def test_a_graph_above_a_freed_one_is_refused():
    x = marked(1, 2)
    with autograd.record():
        y = x * x
        z = y * 2
    y.backward()
    with pytest.raises(MXNetError, match="freed by an earlier call of backward"):
        z.backward()


def test_what_was_not_recorded_has_no_gradient():
    with pytest.raises(MXNetError, match="not in a computational graph"):
        (marked(1, 2) * 2).backward()
    with autograd.record():
        y = nd.ones((2,)) * 2
    with pytest.raises(MXNetError, match="not in a computational graph"):
        y.backward()


def test_values_go_with_the_last_array_that_leads_to_them():
    x = marked(1, 2)
    with autograd.record():
        y = nd.exp(x)
        z = nd.log(y) * 2
    step = weakref.ref(z._array.entry.node.inputs[0].node.outputs[0])
    gc.disable()
    try:
        del y
        assert step() is not None
        del z
        assert step() is None
    finally:
        gc.enable()


# -- views, elements, writing

@pytest.mark.parametrize("read", [
    lambda x: x[0], lambda x: x[-1], lambda x: x[0:1], lambda x: x[:, 1], lambda x: x[:, 0:2], lambda x: x[::-1],
    lambda x: x[::-1, ::2], lambda x: x[None, 0], lambda x: x[..., 1:], lambda x: x[1, 2], lambda x: x[[1, 1, 0]],
    lambda x: x[nd.array([0, 1]), nd.array([1, 1])], lambda x: x[0, None, [2, 2]], lambda x: x.reshape((3, 2)),
    lambda x: x.reshape((-1,))[2:4], lambda x: x.T, lambda x: x.expand_dims(0), lambda x: x.flatten(),
    lambda x: x.expand_dims(1, inplace=True), lambda x: x.flatten(inplace=True), lambda x: x.copy(),
    lambda x: x.copyto(mx.cpu()), lambda x: x.astype("float64"), lambda x: x.slice_axis(axis=1, begin=0, end=2)])
def test_gradients_through_views_and_elements(read):
    values = np.arange(6, dtype="float32").reshape(2, 3)
    x, head = nd.array(values), None
    x.attach_grad()
    with autograd.record():
        y = read(x)
        head = nd.array(np.arange(1, y.size + 1).reshape(y.shape), dtype=y.dtype)
        z = y * 3
    z.backward(head)
    wanted = np.zeros(6)
    np.add.at(wanted, y.asnumpy().astype(int).ravel(), 3 * np.arange(1, y.size + 1))  # the values are the places
    assert x.grad.asnumpy().ravel().tolist() == wanted.tolist()


def test_a_view_shares_memory_while_recording():
    x = marked(1, 2, 3)
    with autograd.record():
        y = x[1:]
    x[1] = 7
    assert y.asnumpy().tolist() == [7, 3]


def test_values_count_as_they_are_when_backward_runs():
    x = marked(1, 2)
    with autograd.record():
        y = x * x
    x[:] = 10
    y.backward()
    assert x.grad.asnumpy().tolist() == [20, 20]


def test_writing_a_whole_array_is_recorded():
    for write in (lambda y, x: y.__setitem__(slice(None), x), lambda y, x: x.copyto(y), lambda y, x: nd.exp(x, out=y)):
        x = marked(1, 2)
        with autograd.record():
            y = nd.zeros((2,))
            write(y, x)
            z = y * y
        z.backward()
        e = np.exp([1, 2]) if y[0].asscalar() > 1 else np.array([1, 2])
        np.testing.assert_allclose(x.grad.asnumpy(), 2 * e * (e if e[0] > 1 else 1), rtol=1e-5)
    x = marked(1)
    with autograd.record():
        y = nd.zeros((2, 3))
        y[:] = x
    y.backward()
    assert x.grad.asnumpy().tolist() == [6]


def iadd(y):
    y += 1


def assign_one(y):
    y[1] = 5


def assign_all(y):
    y[:] = 5


@pytest.mark.parametrize("write", [iadd, assign_one, assign_all, lambda y: nd.exp(nd.ones((2,)), out=y),
                                   lambda y: iadd(y.reshape((2, 1))), lambda y: assign_all(y[0:1]),
                                   lambda y: nd.ones((2,)).copyto(y)])
@pytest.mark.parametrize("computed", [False, True])
def test_writing_to_an_array_of_the_graph_is_refused_while_recording(write, computed: bool):
    x = marked(1, 2)
    with autograd.record():
        y = x * 2 if computed else x
        with pytest.raises(MXNetError, match="already in a computational graph"):
            write(y)
    write(y)  # allowed outside


def test_in_place_operations_with_an_array_of_the_graph_are_refused():
    x = marked(1, 2)
    with autograd.record():
        y = nd.zeros((2,))
        iadd(y)
        with pytest.raises(MXNetError, match="Inplace operations"):
            y += x
        with pytest.raises(MXNetError, match="Inplace operations"):
            y[0:1] = x[0:1]


# -- operators with a state

def test_batch_norm_changes_its_statistics_in_backward():
    data, gamma, beta = nd.array(np.arange(8).reshape(4, 2)), nd.ones((2,)), nd.zeros((2,))
    mean, var = nd.zeros((2,)), nd.ones((2,))
    for array in (data, gamma, beta):
        array.attach_grad()

    def run():
        return nd.BatchNorm(data, gamma, beta, mean, var, momentum=0.5)

    seen = []

    def note():
        seen.append(mean.asnumpy().tolist())

    with autograd.record():
        y = run()
    note()
    y.backward(retain_graph=True)
    note()
    y.backward()
    note()
    with autograd.train_mode():
        run()
    note()
    for recorded, back in ((False, False), (True, False), (False, True)):
        with autograd.record(train_mode=recorded):
            y = run()
        y.backward(train_mode=back)
        note()
    assert seen == [[0, 0], [1.5, 2], *[[2.25, 3]] * 5]
    # what ran in inference mode is differentiated as it ran
    np.testing.assert_allclose(data.grad.asnumpy(), 1 / np.sqrt(np.tile(var.asnumpy(), (4, 1)) + 1e-3), rtol=1e-5)


def test_dropout_has_one_mask_for_both_passes():
    x = nd.ones((1000,))
    x.attach_grad()
    with autograd.record():
        y = nd.Dropout(x, p=0.5)
    y.backward()
    assert y.asnumpy().tolist() == x.grad.asnumpy().tolist() and set(y.asnumpy()) == {0, 2}
    with autograd.record(train_mode=False):
        y = nd.Dropout(x, p=0.5)
    y.backward()
    assert set(y.asnumpy()) == set(x.grad.asnumpy()) == {1}


# -- grad

def test_grad_gives_new_arrays_and_leaves_those_attached():
    x = marked(1, 2)
    with autograd.record():
        y = x * x * x
    found = autograd.grad(y, x)
    assert isinstance(found, list) and found[0].asnumpy().tolist() == [3, 12]
    assert x.grad.asnumpy().tolist() == [0, 0]
    head = nd.ones((2,))
    gradient, = autograd.grad(x, [x], head_grads=head)
    gradient[:] = 9
    assert head.asnumpy().tolist() == [1, 1]


def test_grad_refuses_what_is_not_marked_or_not_reached():
    x, other = marked(1, 2), marked(3, 4)
    with autograd.record():
        y = x * x
        z = y * 2
    for variable, text in ((nd.ones((2,)), "1-th.*does not require"), (y, "1-th.*does not require"),
                           (other, "1-th.*unreachable")):
        with pytest.raises(MXNetError, match=text):
            autograd.grad(z, [variable])
    with pytest.raises(AssertionError):
        autograd.grad(z, [])


def test_a_gradient_penalty():
    x, w = marked(1, 2), marked(3, 4)
    with autograd.record():
        y = (w * x * x).sum()
        gradient, = autograd.grad(y, [x], create_graph=True, retain_graph=True)
        penalty = (gradient * gradient).sum()
    penalty.backward()
    assert x.grad.asnumpy().tolist() == [8 * 9 * 1, 8 * 16 * 2]  # of (2wx)^2: 8 w^2 x
    assert w.grad.asnumpy().tolist() == [8 * 3 * 1, 8 * 4 * 4]


# -- symbols and functions

def test_get_symbol_is_what_was_recorded():
    x = marked(1, 2)
    with autograd.record():
        y = nd.exp(x) * 2
    symbol = autograd.get_symbol(y)
    name, = symbol.list_arguments()
    out, = symbol.bind(mx.cpu(), {name: x}).forward()
    np.testing.assert_allclose(out.asnumpy(), 2 * np.exp([1, 2]), rtol=1e-6)
    assert mx.sym.load_json(symbol.tojson()).list_arguments() == [name]
    with pytest.raises(MXNetError, match="not part of a computation graph"):
        autograd.get_symbol(nd.ones((2,)))


class Sigmoid(autograd.Function):
    def forward(self, x):
        y = 1 / (1 + nd.exp(-x))
        self.save_for_backward(y)
        return y

    def backward(self, dy):
        assert not autograd.is_recording()
        y, = self.saved_tensors
        return dy * y * (1 - y)


class Both(autograd.Function):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x, y):
        return x * self.factor, x + y

    def backward(self, first, second):
        return [first * self.factor + second, second]


def test_functions_of_ones_own():
    np.testing.assert_allclose(gradient_of(lambda x: Sigmoid()(x) * 2, 1, 2), [0.39322385, 0.20998725], rtol=1e-5)
    x, y = marked(1, 2), marked(3, 4)
    with autograd.record():
        first, second = Both(10)(x, y)
        z = first * 1 + second * 2
    z.backward()
    assert x.grad.asnumpy().tolist() == [12, 12] and y.grad.asnumpy().tolist() == [2, 2]
    with autograd.record():
        z = Both(10)(x, y)[1]
    z.backward()
    assert x.grad.asnumpy().tolist() == [1, 1]
    np.testing.assert_allclose(Sigmoid()(x).asnumpy(), 1 / (1 + np.exp([-1, -2])), rtol=1e-6)


def test_functions_are_called_once_and_must_fit():
    x, function = marked(1, 2), Sigmoid()
    function(x)
    with pytest.raises(AssertionError, match="only be called once"):
        function(x)
    for result, text in ((lambda dy: [dy, dy], "expected 1, got 2"), (lambda dy: 3, "must return an NDArray"),
                         (lambda dy: nd.ones((3,)), r"shape \(3,\)")):
        function = Sigmoid()
        function.backward = result
        with autograd.record():
            y = function(x)
        with pytest.raises(MXNetError, match=text):
            y.backward()
    for given, result in ((3, x), (x, x.asnumpy()), (x, None), (x, [x, 3])):
        function = Sigmoid()
        function.forward = lambda _, result=result: result
        with autograd.record(), pytest.raises(MXNetError, match=r"Sigmoid\.forward .*, got"):
            function(given)
