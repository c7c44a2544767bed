"""What MXNet 1.9.1 makes of loops and choices in graphs: the cases, and the script that asks.

With MXNet's Python:  make_control_flow.py        writes control_flow.json
A case of GRAPHS answers with the graph's JSON and the names of its arguments; one of RUNS, whose graph is in GRAPHS,
with outputs and gradients; one of REFUSED with the class of the error; one of GLUON with a block's numbers.
"""
from pathlib import Path

import numpy as np

ANSWERS = Path(__file__).with_name("control_flow.json")


class Graphs:
    """Functions that make graphs, in either library."""

    def __init__(self, mx):
        self.sym, self.contrib, self.mx = mx.sym, mx.sym.contrib, mx

    def __getattr__(self, name):
        return self.sym.Variable(name)

    def foreach(self, body, data, states, **options):
        return self.group(*self.contrib.foreach(body, data, states, **options))

    def while_loop(self, cond, func, loop_vars, limit=4, **options):
        return self.group(*self.contrib.while_loop(cond, func, loop_vars, max_iterations=limit, **options))

    def cond(self, *args, **options):
        return self.group(self.contrib.cond(*args, **options), [])

    def group(self, outputs, states):
        def leaves(value):
            return [leaf for part in value for leaf in leaves(part)] if isinstance(value, (list, tuple)) else [value]

        return self.sym.Group([*leaves(outputs), *leaves(states)])

    def fc(self, data, weight, **options):
        return self.sym.FullyConnected(data, weight=weight, num_hidden=3, no_bias=True, **options)

    def cell(self, w, u):
        def body(x, h):
            made = self.sym.tanh(self.fc(x, w) + self.fc(h, u))
            return [made * 2, made], made

        return body


def _scoped(g):
    with g.mx.AttrScope(ctx_group="g"), g.mx.name.Prefix("p_"):
        return g.foreach(lambda x, s: (x * 2, s + x), g.a, g.s)


def _split(g):
    parts = g.sym.split(g.a, num_outputs=2, axis=1, name="sp")
    return g.foreach(lambda x, s: (x[0] + x[1], [s[0] + x[0]]), [parts[0], parts[1]], [g.s])


def _captured(g):
    parts = g.sym.split(g.w, num_outputs=2, name="u")
    return g.foreach(lambda x, s: (x * parts[0] + parts[1], s + x * parts[0]), g.a, g.s)


def _computed(g):
    p = g.p * 2
    return g.while_loop(lambda i, s: i < p, lambda i, s: (s + p, [i + 1, s * p]), [g.i * 1, g.s + 1])


def _shared(g):
    w = g.w
    return g.while_loop(lambda i, s: i < w, lambda i, s: (s * w, [i + 1, s * w]), [g.i, g.s])


def _nested(g):
    w = g.w
    return g.foreach(lambda x, s: g.contrib.foreach(lambda y, q: (y * w + q, q * y), x, s), g.a, g.s)


def _inner_while(g):
    w = g.w
    return g.foreach(lambda x, s: g.contrib.while_loop(
        lambda i: g.sym.sum(i) < g.sym.sum(w), lambda i: (i * x, i + x), s, max_iterations=3), g.a, g.s)


def _inner_cond(g):
    def body(x, s):
        made = g.contrib.cond(g.sym.sum(x) < 1, lambda: x * s, lambda: x - s)
        return made, s + made

    return g.foreach(body, g.a, g.s)


def _both(g):
    q = g.p * 2
    return g.cond(q, lambda: q * 2, lambda: q + g.b)


def _attributes(g):
    v = g.sym.Variable("v", lr_mult=2.0, shape=(3,))
    return g.foreach(lambda x, s: (x * v, s + x), g.a, g.s)


def _plain(g):
    w = g.w
    return g.foreach(lambda x, s: (x * w + s, s + x * w), g.a, g.s)


def _counting(g):
    w = g.w
    return g.while_loop(lambda i, s: i < 3, lambda i, s: (s * w, [i + 1, g.sym.broadcast_add(s * w, i)]), [g.i, g.s], 3)


def _choice(g):
    w = g.w
    return g.cond(g.p, lambda: [w * 2, w], lambda: [w * g.b, w + 1])


GRAPHS = {
    "plain": _plain, "cell": lambda g: g.foreach(g.cell(g.w, g.u), g.a, g.h), "counting": _counting, "choice": _choice,
    "computed data": lambda g: g.foreach(lambda x, s: (x, s + x), g.a * 2, g.s * 1), "split": _split,
    "captured": _captured, "returned": lambda g: g.foreach(lambda x, s: (x, s), g.a, g.s), "nested": _nested,
    "lists": lambda g: g.foreach(lambda x, s: ([x[0], [x[1][0], x[1][1]]], [s[0], [s[1][0] + x[0]]]),
                                 [g.a, [g.b, g.c]], [g.s, [g.t]]),
    "named": lambda g: g.foreach(lambda x, s: (x * 2, s + x), g.a, g.s, name="my"), "scoped": _scoped,
    "no outputs": lambda g: g.foreach(lambda x, s: ([], s + x), g.a, g.s),
    "no states": lambda g: g.foreach(lambda x, s: (x * 2, []), g.a, []),
    "constant": lambda g: g.foreach(lambda x, s: (g.sym.zeros((2,)), s + x), g.a, g.s), "attributes": _attributes,
    "dropout": lambda g: g.foreach(lambda x, s: (g.sym.Dropout(x), s + x), g.a, g.s), "inner while": _inner_while,
    "inner cond": _inner_cond,
    "while one": lambda g: g.while_loop(lambda i: i < 3, lambda i: (i * 2, i + 1), g.i, name="w"),
    "while order": lambda g: g.while_loop(lambda i, s: i < 3, lambda i, s: (s, [i + 1, s]), [g.i, g.s]),
    "while none": lambda g: g.while_loop(lambda i, s: i < 3, lambda i, s: (None, [i + 1, s * 2]), [g.i, g.s]),
    "while computed": _computed, "while shared": _shared,
    "while free": lambda g: g.while_loop(lambda i, s: g.w, lambda i, s: (i + s, [i + 1, s + 1]), [g.i, g.s]),
    "cond variables": lambda g: g.cond(g.p, lambda: g.a * 2, lambda: g.a + g.b, name="cc"), "cond both": _both,
    "cond lists": lambda g: g.cond(g.p, lambda: [g.a * 2, g.a], lambda: [g.a + g.b, g.b]),
    "cond constant": lambda g: g.cond(g.p, lambda: g.sym.zeros((2,)), lambda: g.a),
    "cond of scope": lambda g: (lambda w: g.cond(w, lambda: w * 2, lambda: w + 1))(g.w),
    "one axis": lambda g: g.foreach(lambda x, s: (x + s, s + x), g.a, g.s),
    "sums": lambda g: g.foreach(lambda x, s: (g.sym.sum(x), s + x), g.a, g.s),
    "falling": lambda g: g.while_loop(lambda i: i, lambda i: (i * 2, i - 0.5), g.i, 2),
    "no steps": lambda g: g.while_loop(lambda i: i < 3, lambda i: ([], i + 1), g.i),
}
_A = [[0, 0.5], [1, 1.5], [2, -2.5]]
_SMALL = {"a": _A, "s": [1, 2], "w": [2, 3]}
RUNS = {  # name of a graph, values of the arguments, and how gradients are asked for
    "plain": ("plain", _SMALL, "write"), "plain, added": ("plain", _SMALL, "add"),
    "plain, not to w": ("plain", _SMALL, {"a": "write", "s": "write"}),
    "plain, not to a": ("plain", _SMALL, {"s": "write", "w": "write"}),
    "plain, to s alone": ("plain", _SMALL, {"s": "write"}), "plain, no gradient": ("plain", _SMALL, {}),
    "cell": ("cell", {"a": [[[0.1, 0.2, 0.3]], [[0.4, -0.5, 0.6]], [[0.7, 0.8, -0.9]]], "h": [[0.1, 0.2, 0.3]],
                      "w": [[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.5, -0.5, 0.2]],
                      "u": [[0.2, 0.1, 0.1], [-0.3, 0.4, 0.1], [0.1, 0.1, 0.3]]}, "write"),
    "captured": ("captured", {"a": [[[0.5], [1.5]], [[1], [2]]], "s": [[1], [2]], "w": [[1, 2], [3, 4]]}, {}),
    "nested": ("nested", {"a": [_A, [[0.2, 0.1], [0.4, 0.3], [0.5, 0.6]]], "s": [1, 2], "w": [2, 3]}, "write"),
    "one axis": ("one axis", {"a": [1, 2, 3], "s": [1]}, "write"), "sums": ("sums", {"a": _A, "s": [1, 2]}, "write"),
    "no outputs": ("no outputs", {"a": _A, "s": [1, 2]}, "write"), "no states": ("no states", {"a": _A}, "write"),
    "counting": ("counting", {"i": [0], "s": [1, 2], "w": [2, 3]}, "write"),
    "counting, added": ("counting", {"i": [0], "s": [1, 2], "w": [2, 3]}, "add"),
    "counting, to s alone": ("counting", {"i": [0], "s": [1, 2], "w": [2, 3]}, {"s": "write"}),
    "falling": ("falling", {"i": [1]}, "write"), "no steps": ("no steps", {"i": [5]}, "write"),
    "while none": ("while none", {"i": [1], "s": [3]}, "write"),
    **{f"choice {p}": ("choice", {"p": [p], "w": [1, 2], "b": [3, 4]}, "write") for p in (0, 1, 0.5, -1)},
}
REFUSED = {
    "data": lambda g: g.foreach(lambda x, s: (x, s), 3, g.s),
    "states": lambda g: g.foreach(lambda x, s: (x, s), g.a, 3),
    "arrays": lambda g: g.foreach(lambda x, s: (x, s), g.mx.nd.ones(3), g.s),
    "one result": lambda g: g.foreach(lambda x, s: x + s, g.a, g.s),
    "number": lambda g: g.foreach(lambda x, s: (3, s), g.a, g.s),
    "no state": lambda g: g.foreach(lambda x, s: (x, None), g.a, g.s),
    "more states": lambda g: g.foreach(lambda x, s: (x + s, [s + x, s]), g.a, g.s),
    "list of a state": lambda g: g.foreach(lambda x, s: (x + s, [s + x]), g.a, g.s),
    "unused data": lambda g: g.foreach(lambda x, s: (s * 2, s + 1), g.a, g.s),
    "unused state": lambda g: g.foreach(lambda x, s: (x * 2, x + 1), g.a, g.s),
    "same names": lambda g: g.foreach(lambda x, s: (x + g.w, g.w + s), g.a, g.s),
    "data twice": lambda g: g.foreach(lambda x, s: (x[0] * x[1], s + x[0]), [g.a, g.a], g.s),
    "no limit": lambda g: g.while_loop(lambda i: i < 3, lambda i: (i, i + 1), g.i, None),
    "limit of letters": lambda g: g.while_loop(lambda i: i < 3, lambda i: (i, i + 1), g.i, "x"),
    "limit of 0": lambda g: g.while_loop(lambda i: i < 3, lambda i: (i * 2, i + 1), g.i, 0),
    "no loop_vars": lambda g: g.while_loop(lambda: 3, lambda: (1, 2), []),
    "loop_vars": lambda g: g.while_loop(lambda i: i, lambda i: (i, 2), 3),
    "true": lambda g: g.while_loop(lambda i: True, lambda i: (i, i + 1), g.i),
    "fewer loop_vars": lambda g: g.while_loop(lambda i, j: i < 3, lambda i, j: (i, [i + 1]), [g.i, g.j]),
    "no new loop_vars": lambda g: g.while_loop(lambda i: i < 3, lambda i: (i, None), g.i),
    "unused loop_var": lambda g: g.while_loop(lambda i, s: i < 3, lambda i, s: (i, [i + 1, i * 2]), [g.i, g.s]),
    "pred": lambda g: g.cond(1, lambda: g.a, lambda: g.b),
    "no branch": lambda g: g.cond(g.p, lambda: None, lambda: g.b),
    "branch of a number": lambda g: g.cond(g.p, lambda: 3, lambda: g.b),
    "unlike branches": lambda g: g.cond(g.p, lambda: [g.a * 2, g.a], lambda: [g.a + g.b]),
}


def _unrolled(mx, hybridised, **options):
    """An LSTM over three steps of two examples by dynamic_unroll: outputs, states and the gradient of the inputs."""
    import importlib

    unroll = importlib.import_module(f"{mx.__name__}.gluon.contrib.rnn.rnn_cell").dynamic_unroll

    class Net(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.cell = mx.gluon.rnn.LSTMCell(3)

        def hybrid_forward(self, F, data, first, second, length=None):
            given = {} if length is None else {"valid_length": length}
            return unroll(self.cell, data, [first, second], **given, **options)

    data = mx.nd.array(np.arange(24).reshape(3, 2, 4) / 24)
    data = data.swapaxes(0, 1) if options.get("layout") == "NTC" else data
    answers = []
    for length in (None, [1, 3]):
        net = Net()
        net.initialize(mx.init.One())
        if hybridised:
            net.hybridize()
        data.attach_grad()
        states = [mx.nd.ones((2, 3)) * 0.1, mx.nd.zeros((2, 3))]
        with mx.autograd.record():
            outputs, last = net(data, *states, *([] if length is None else [mx.nd.array(length)]))
            loss = (outputs * outputs).sum() + last[1].sum()
        loss.backward()
        answers += [array.asnumpy().round(5).tolist() for array in (outputs, *last, data.grad)]
    return answers


GLUON = {f"{layout}{', hybridised' * hybridised}": (lambda mx, h=hybridised, o=layout: _unrolled(mx, h, layout=o))
         for hybridised in (False, True) for layout in ("TNC", "NTC")}
CASES = [f"{kind}: {name}" for kind, cases in (("graph", GRAPHS), ("run", RUNS), ("refused", REFUSED), ("gluon", GLUON))
         for name in cases]


def graph(mx, name):
    """The graph of that name, whose automatic names begin anew."""
    mx.AttrScope._subgraph_names.clear()
    with mx.name.NameManager():
        return GRAPHS[name](Graphs(mx))


def run(mx, symbol, values, grad_req):
    """Outputs, and the gradients that are asked for, by name; what flows into the outputs is 1, 2, 3, ..."""
    names = symbol.list_arguments()
    modes = {name: grad_req if isinstance(grad_req, str) else grad_req.get(name, "null") for name in names}
    args = {name: mx.nd.array(values[name]) for name in names}
    grads = {name: mx.nd.ones(args[name].shape) * (modes[name] == "add") for name in names if modes[name] != "null"}
    bound = symbol.bind(mx.cpu(), args, grads, modes)
    outputs = bound.forward(is_train=bool(grads))
    if grads:
        bound.backward([mx.nd.array(np.arange(1, o.size + 1).reshape(o.shape)) for o in outputs])
    slopes = {name: grad.asnumpy().round(4).tolist() for name, grad in grads.items()}
    return [o.asnumpy().round(5).tolist() for o in outputs], slopes


def answer(mx, case):
    """What a case of CASES answers."""
    kind, _, name = case.partition(": ")
    if kind == "graph":
        symbol = graph(mx, name)
        return [symbol.tojson(), symbol.list_arguments(), symbol.list_outputs()]
    if kind == "run":
        return list(run(mx, graph(mx, RUNS[name][0]), *RUNS[name][1:]))
    if kind == "gluon":
        return GLUON[name](mx)
    try:
        REFUSED[name](Graphs(mx))
    except Exception as error:
        return type(error).__name__
    return "accepted"


if __name__ == "__main__":
    from answers import run as write  # beside this script

    made = write(__file__, ANSWERS, CASES, answer)
    print(f"{len(made)} cases")
