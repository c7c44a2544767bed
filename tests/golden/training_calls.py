"""Short programs with gradients and executors, written once for MXNet and mxc: what they answer or raise.

With MXNet's Python, `training_calls.py` writes what MXNet 1.9.1 answers to training_calls.json, a line for each
program; tests/test_training_calls.py compares mxc's.
"""
import math
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import answers

DTYPES = ("float32", "float64", "float16")
EDGES = (math.nan, -1, 0, 1, math.inf, -math.inf)


def _listed(values):
    """Numbers as JSON has them, which knows no NaN: text for what is not finite, the rest with the digits of float16
    less two."""
    return [[float(f"{v:.3g}") if math.isfinite(v) else str(v) for v in np.asarray(value, "float64").ravel().tolist()]
            for value in values]


# ---- what functions and their gradients are where an argument is not finite

def _at_edges(function):
    def call(mx):
        found = {}
        for dtype in DTYPES:
            x = mx.nd.array(EDGES, dtype=dtype)
            x.attach_grad()
            with mx.autograd.record():
                y = function(mx.nd, x)
            y.backward()
            found[dtype] = _listed([y.asnumpy(), x.grad.asnumpy()])
        return found

    return call


def _of_two(name):
    def call(mx):
        x, y = (mx.nd.array(v) for v in ([math.nan, 1, math.nan, 0], [1, math.nan, math.nan, 0]))
        x.attach_grad()
        y.attach_grad()
        with mx.autograd.record():
            z = getattr(mx.nd, name)(x, y)
        z.backward()
        return _listed([z.asnumpy(), x.grad.asnumpy(), y.grad.asnumpy()])

    return call


def _leaky(kind):
    return lambda nd, x: nd.LeakyReLU(x.reshape((1, -1)), act_type=kind).reshape((-1,))


NOT_FINITE = {name: _at_edges(lambda nd, x, name=name: getattr(nd, name)(x)) for name in (
    "relu", "abs", "sign", "hard_sigmoid", "softsign", "sigmoid", "floor", "round", "sqrt", "rsqrt", "square", "cbrt",
    "log1p", "arctanh", "erf", "reciprocal", "max", "min")}
NOT_FINITE |= {f"Activation {kind}": _at_edges(lambda nd, x, kind=kind: nd.Activation(x, act_type=kind))
               for kind in ("relu", "sigmoid", "softrelu", "softsign", "tanh")}
NOT_FINITE |= {f"LeakyReLU {kind}": _at_edges(_leaky(kind)) for kind in ("leaky", "elu", "gelu")}
NOT_FINITE |= {name: _of_two(name) for name in (
    "broadcast_maximum", "broadcast_minimum", "broadcast_hypot", "broadcast_mod", "broadcast_power")}
NOT_FINITE |= {
    "clip": _at_edges(lambda nd, x: nd.clip(x, -0.5, 0.5)),
    "maximum of 0": _at_edges(lambda nd, x: nd.maximum(x, 0.0)),
    "minimum of 0": _at_edges(lambda nd, x: nd.minimum(x, 0.0)),
    "maximum of zeros": _at_edges(lambda nd, x: nd.maximum(nd.zeros_like(x), x)),
    "minimum of zeros": _at_edges(lambda nd, x: nd.minimum(nd.zeros_like(x), x)),
    "prelu": _at_edges(lambda nd, x: nd.LeakyReLU(x.reshape((1, -1)), nd.array([0.3] * 6, dtype=x.dtype),
                                                 act_type="prelu").reshape((-1,))),
    "smooth_l1": _at_edges(lambda nd, x: nd.smooth_l1(x, scalar=1.0)), "x % 2": _at_edges(lambda nd, x: x % 2.0),
    "2 % x": _at_edges(lambda nd, x: 2.0 % x), "x ** 0": _at_edges(lambda nd, x: x ** 0.0),
    "x ** 1": _at_edges(lambda nd, x: x ** 1.0), "x ** 2": _at_edges(lambda nd, x: x ** 2.0),
    "2 ** x": _at_edges(lambda nd, x: 2.0 ** x), "where": _at_edges(lambda nd, x: nd.where(x, x, x * 2)),
    "norm of ord 1": _at_edges(lambda nd, x: nd.norm(x, ord=1)), "x if x > 0": _at_edges(lambda nd, x: (x > 0.0) * x)}

# ---- backward of an executor that has not run forward, or not in training mode

def _backward(function, forward=None, **options):
    def call(mx):
        executor = function(mx.sym, mx.sym.Variable("x")).simple_bind(mx.cpu(), x=(2, 3))
        for array in executor.arg_arrays:
            array[:] = np.arange(1, array.size + 1).reshape(array.shape) / 4
        if forward is not None:
            executor.forward(is_train=forward)
        executor.backward([mx.nd.ones(o.shape) * 2 for o in executor.outputs], **options)
        return _listed([gradient.asnumpy() for gradient in executor.grad_arrays])

    return call


LINEAR = {
    "repeat": lambda sym, x: sym.repeat(x, repeats=2), "tile": lambda sym, x: sym.tile(x, reps=(2, 2)),
    "sum": lambda sym, x: sym.sum(x, axis=1), "mean": lambda sym, x: sym.mean(x), "x * 2": lambda sym, x: x * 2,
    "transpose": lambda sym, x: sym.transpose(x), "concat": lambda sym, x: sym.concat(x, x, dim=0),
    "identity": lambda sym, x: sym.identity(x), "slice": lambda sym, x: sym.slice_axis(x, axis=1, begin=1, end=3),
    "MakeLoss": lambda sym, x: sym.MakeLoss(x * 2), "x and x * 2": lambda sym, x: sym.Group([x, x * 2]),
    "average": lambda sym, x: sym.Pooling(x.reshape((1, 1, 2, 3)), kernel=(1, 2), pool_type="avg"),
    "a part": lambda sym, x: sym.BlockGrad(sym.exp(x)) + x, "square": lambda sym, x: sym.square(x),
    "sin": lambda sym, x: sym.sin(x), "x * x": lambda sym, x: x * x, "dot": lambda sym, x: sym.dot(x, sym.transpose(x)),
    "FullyConnected": lambda sym, x: sym.FullyConnected(x, num_hidden=2)}
OF_VALUES = {
    "tanh": lambda sym, x: sym.tanh(x), "exp": lambda sym, x: sym.exp(x), "max": lambda sym, x: sym.max(x, axis=1),
    "relu": lambda sym, x: sym.relu(x), "softmax": lambda sym, x: sym.softmax(x),
    "sin of 2x": lambda sym, x: sym.sin(x * 2),
    "SoftmaxOutput": lambda sym, x: sym.SoftmaxOutput(x, name="out"),
    "BatchNorm": lambda sym, x: sym.BatchNorm(x), "Dropout": lambda sym, x: sym.Dropout(x)}
BACKWARD_FIRST = {name: _backward(function) for name, function in LINEAR.items() if name != "dot"}
BACKWARD_FIRST |= {f"inference, {name}": _backward(function, False) for name, function in (LINEAR | OF_VALUES).items()
                   if name != "BatchNorm"}
BACKWARD_FIRST |= {f"all inference, {name}": _backward(function, False, is_train=False)
                   for name, function in (LINEAR | OF_VALUES).items()}
BACKWARD_FIRST |= {f"is_train=False, {name}": _backward(LINEAR[name], is_train=False) for name in ("tile", "sin")}

# ---- where the outputs of executors lie that share memory

def _big(mx, function=None, **options):
    return (function or (lambda sym, x: x * 2))(mx.sym, mx.sym.Variable("x")).simple_bind(mx.cpu(), x=(4, 3), **options)


def _shared(bigger, smaller):
    """What the outputs of an executor hold when each output of another was filled."""
    found = []
    for i, output in enumerate(smaller.outputs):
        for array in bigger.outputs:
            array[:] = 0
        output[:] = i + 1
        found += _listed([array.asnumpy() for array in bigger.outputs])
    return found


def _reshaped(function=None, ran=False, shape=(2, 3), **options):
    def call(mx):
        big = _big(mx, function)
        if ran:
            big.forward(is_train=True)
        return _shared(big, big.reshape(x=shape, **options))

    return call


def _with_shared(net, shape):
    def call(mx):
        big, other = _big(mx), net(mx.sym, mx.sym.Variable("x"))
        return _shared(big, other.bind(mx.cpu(), {"x": mx.nd.ones(shape)}, shared_exec=big))

    return call


def _family(mx):
    big = _big(mx)
    small, middle = big.reshape(x=(2, 3)), big.reshape(x=(3, 3))
    one, again = small.reshape(x=(1, 3)), small.reshape(x=(4, 3), allow_up_sizing=True)
    return [_shared(big, relative) for relative in (small, middle, one, again)] + [_shared(small, again)]


def _runs(mx):
    big = _big(mx, lambda sym, x: sym.Group([x * 2, sym.exp(x), x, sym.sum(x, axis=1)]))
    big.arg_dict["x"][:] = 1
    kept = big.forward()
    small = big.reshape(x=(2, 3))
    small.arg_dict["x"][:] = 3
    small.forward()
    found = _listed([array.asnumpy() for array in kept])
    big.forward()
    return found + _listed([array.asnumpy() for array in small.outputs])


def _zeros_of_unknown_rows(mx):
    x = mx.sym.Variable("x")
    net = mx.sym.RNN(x, mx.sym.Variable("p"), mx.sym._internal._zeros(shape=(1, 0, 4)), state_size=4, num_layers=1,
                     mode="rnn_tanh")
    big = net.simple_bind(mx.cpu(), x=(5, 3, 2))
    shapes = []
    for shape in ((5, 1, 2), (2, 3, 2), (5, 7, 2), (5, 6, 2)):
        relative = big.reshape(x=shape, partial_shaping=True, allow_up_sizing=True)
        shapes.append(list(relative.forward()[0].shape))
    return shapes


SHARED = {
    "reshape": _reshaped(), "reshape of one that ran": _reshaped(ran=True), "of equal shape": _reshaped(shape=(4, 3)),
    "larger": _reshaped(shape=(5, 3), allow_up_sizing=True), "of another rank": _reshaped(shape=(12,)),
    "a layer": _reshaped(lambda sym, x: sym.FullyConnected(x, num_hidden=2)),
    "many": _reshaped(lambda sym, x: sym.Group([x * 2, sym.exp(x), x, sym.sum(x, axis=1)])),
    "bind": _with_shared(lambda sym, x: x * 2, (2, 3)),
    "bind of another": _with_shared(lambda sym, x: sym.exp(x), (4, 3)),
    "family": _family, "runs": _runs, "zeros of unknown rows": _zeros_of_unknown_rows}

# ---- operators through which no gradient can flow

def _bound(function, **options):
    def call(mx):
        executor = _big(mx, function, **options)
        executor.arg_dict["x"][:] = 1
        outputs = executor.forward(is_train=True)
        executor.backward([mx.nd.ones(o.shape) for o in outputs])
        return "bound"

    return call


def _refused(mx, name):
    net = getattr(mx.sym, name)(mx.sym.Variable("x"), mx.sym.Variable("i"))
    return answers.raised(lambda: net.bind(mx.cpu(), {"x": mx.nd.ones((2, 3)), "i": mx.nd.zeros(2)},
                                    {"x": mx.nd.zeros((2, 3))}) and "bound")


ENDS = {
    "argmax": _bound(lambda sym, x: sym.argmax(x, axis=1)), "topk": _bound(lambda sym, x: sym.topk(x)),
    "one_hot": _bound(lambda sym, x: sym.one_hot(x, depth=3)), "x > 2": _bound(lambda sym, x: x > 2),
    "shape_array": _bound(lambda sym, x: sym.shape_array(x)), "shuffle": _bound(lambda sym, x: sym.shuffle(x)),
    "shuffle of exp": _bound(lambda sym, x: sym.shuffle(sym.exp(x)) + x),
    "null": _bound(lambda sym, x: sym.shuffle(x), grad_req="null"),
    "shuffle behind BlockGrad": _bound(lambda sym, x: sym.shuffle(sym.BlockGrad(x)) + x),
    "BlockGrad behind shuffle": _bound(lambda sym, x: sym.BlockGrad(sym.shuffle(x)) + x),
    "argmax behind shuffle": _bound(lambda sym, x: sym.argmax(sym.shuffle(x), axis=1, keepdims=True) + sym.sum(x)),
    "a label behind shuffle": _bound(lambda sym, x: sym.LinearRegressionOutput(x, sym.shuffle(sym.Variable("l"))),
                                     grad_req={"x": "write", "l": "null"}),
    "batch_take by bind": lambda mx: _refused(mx, "batch_take")}

# ---- whether a gradient is fresh


def _fresh(mx):
    def told(*arrays):
        return [int(array._fresh_grad) for array in arrays]

    def recorded(function):
        with mx.autograd.record():
            return function()

    x, z = mx.nd.array([1, 2]), mx.nd.array([3, 4])
    found = {"unmarked": told(x), "set unmarked": answers.raised(lambda: setattr(x, "_fresh_grad", True))}
    x.attach_grad()
    z.attach_grad()
    found["marked"] = told(x, x.grad)
    found["set to text"] = answers.raised(lambda: setattr(x, "_fresh_grad", "yes"))
    y = recorded(lambda: x * 2)
    found["recorded"] = told(x, y)
    y.backward()
    found["backward"] = told(x, x.grad, y, z, x.detach(), x[0:1], x.reshape((2, 1)), x.copy())
    x._fresh_grad = False
    found["set to False"] = told(x)
    y = recorded(lambda: x * z)
    mx.autograd.grad(y, x)
    found["grad"] = told(x, z)
    recorded(lambda: mx.nd.BlockGrad(z) + x).backward()
    found["reached through BlockGrad"] = told(x, z)
    x[:] = 5
    x._fresh_grad = 0
    z._fresh_grad = 1
    found["set"] = told(x, z)
    x.attach_grad("add")
    z.attach_grad()
    found["marked again"] = told(x, z)
    recorded(lambda: x * 3).backward()
    found["add"] = told(x, z)
    y = recorded(lambda: x * 2)
    y._fresh_grad = True
    found["of a result"] = told(y)
    y.backward()
    found["of a freed result"] = told(y)
    return found


# ---- errors that come when the result is waited for

def _waits(function):
    """What each of these raises, in this order, or that it does not."""
    def call(mx):
        found = []
        for wait in ("wait_to_read", "asnumpy", "waitall", "of what depends on it", "in training"):
            array = function(mx)
            if wait == "in training":
                x = mx.nd.ones(array.shape)
                x.attach_grad()
                with mx.autograd.record():
                    y = x * array
                y.backward()
                call = x.grad.asnumpy
            else:
                call = mx.nd.waitall if wait == "waitall" else (array + 1).asnumpy if "depends" in wait else \
                    getattr(array, wait)
            found.append(answers.raised(lambda call=call: call() is None or "a value"))
            answers.raised(mx.nd.waitall)
        return found

    return call


def _of_executor(net, **shapes):
    def call(mx):
        executor = net(mx.sym, mx.sym.Variable("x")).simple_bind(mx.cpu(), grad_req="null", **shapes)
        executor.arg_dict["x"][:] = 1
        if "i" in shapes:
            executor.arg_dict["i"][:] = 7
        output = executor.forward()[0]
        found = [answers.raised(lambda: output.wait_to_read()), (mx.nd.ones(2) + 1).asnumpy().tolist()]
        if "i" in shapes:
            executor.arg_dict["i"][:] = 0
            found += _listed([executor.forward()[0].asnumpy()])
        return found

    return call


LATER = {
    "gather_nd": _waits(lambda mx: mx.nd.gather_nd(mx.nd.ones((2, 3)), mx.nd.array([[5], [0]]))),
    "take": _waits(lambda mx: mx.nd.take(mx.nd.ones((2, 3)), mx.nd.array([5]), mode="raise")),
    "gather_nd in a graph": _of_executor(lambda sym, x: sym.gather_nd(x, sym.Variable("i")), x=(2, 3), i=(2, 1)),
    "take in a graph": _of_executor(lambda sym, x: sym.take(x, sym.Variable("i"), mode="raise"), x=(2, 3), i=(1,))}

FAMILIES = {"ends": ENDS, "fresh": {"grad": _fresh}, "later": LATER, "shared memory": SHARED,
            "not finite": NOT_FINITE, "backward first": BACKWARD_FIRST}


def answer(mx, case):
    """What MXNet, or mxc, says of a program: `FAMILY: NAME`."""
    family, name = case.split(": ", 1)
    return answers.raised(lambda: FAMILIES[family][name](mx))


CASES = [f"{family}: {name}" for family, programs in FAMILIES.items() for name in programs]

if __name__ == "__main__":
    answers.run(__file__, Path(__file__).with_suffix(".json"), CASES, answer)
