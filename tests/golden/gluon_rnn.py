"""Recurrent cells and layers of Gluon, written once for MXNet and mxc: names, shapes, outputs, states, gradients.

With MXNet's Python, `gluon_rnn.py` writes what MXNet 1.9.1 answers to gluon_rnn.json, a line for each case;
tests/test_gluon_layers.py compares mxc's, hybridised and not.
"""
import importlib
import warnings
from pathlib import Path

import numpy as np

PATH = Path(__file__).with_suffix(".json")
N, T, C = 3, 4, 5


def short(array):
    """The shape, and some of the values with the sum of all."""
    values = np.asarray(array.asnumpy(), "float64").ravel()
    return [list(array.shape), [float(f"{v:.5g}") for v in (*values[:6], values.sum())]]


def values(seed, *shape):
    return np.random.RandomState(seed).uniform(-1, 1, shape)


def give(mx, block):
    for seed, (_, param) in enumerate(sorted(block._collect_params_with_prefix().items())):
        param.set_data(mx.nd.array(values(seed, *param.shape) * 0.7))


def parameters(block):
    return {path: [param.name.split("_", 1)[-1], list(param.shape), short(param.grad())]
            for path, param in sorted(block._collect_params_with_prefix().items())}


def cell(make, **options):
    """A cell, made by `make(rnn)`: one step by itself unless it has none, and an unrolled sequence."""
    def call(mx, hybrid):
        rnn = importlib.import_module(f"{mx.__name__}.gluon.rnn")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = make(rnn)
            made.initialize()
            data = mx.nd.array(values(50, *((T, N, C) if options.get("layout") == "TNC" else (N, T, C))))
            valid = options.get("valid_length")
            given = {**options, **({} if valid is None else {"valid_length": mx.nd.array(valid)})}
            made.unroll(T, data, **given)
            give(mx, made)
            if hybrid:
                made.hybridize()
            data.attach_grad()
            with mx.autograd.record():
                outputs, states = made.unroll(T, data, **given)
                listed = outputs if isinstance(outputs, (list, tuple)) else [outputs]
                total = sum((out * out).sum() for out in listed) + sum((s * s * 0.5).sum() for s in states)
            total.backward()
            found = {"repr": repr(made), "info": [[list(i["shape"]), i["__layout__"]] for i in made.state_info(N)],
                     "is list": isinstance(outputs, (list, tuple)), "outputs": [short(out) for out in listed],
                     "states": [short(state) for state in states], "data": short(data.grad),
                     "parameters": parameters(made)}
            made.reset()
            if not isinstance(made, rnn.BidirectionalCell) and "BidirectionalCell" not in repr(made):
                first = data[0] if options.get("layout") == "TNC" else data[:, 0]
                out, states = made(first, made.begin_state(func=mx.nd.zeros, batch_size=N))
                found["step"] = [short(out), [short(state) for state in states]]
        return found

    return call


def layer(make, shape=(T, N, C), states=False, trains=True):
    """A layer, made by `make(rnn)`, with states of its own or given ones. trains: MXNet has its gradients."""
    def call(mx, hybrid):
        made = make(importlib.import_module(f"{mx.__name__}.gluon.rnn"))
        made.initialize()
        data = mx.nd.array(values(50, *shape))
        made(data)
        give(mx, made)
        if hybrid:
            made.hybridize()
        begin = [state + 0.25 for state in made.begin_state(N)]
        if not trains:
            return [[short(array) for array in (out, *after)] for out, after in [made(data, begin)]]
        for array in (data, *begin):
            array.attach_grad()
        with mx.autograd.record():
            if states:
                out, after = made(data, begin)
            else:
                out, after = made(data), []
            total = (out * out).sum() + sum((state * state).sum() for state in after)
        total.backward()
        return {"repr": repr(made), "info": [[list(i["shape"]), i["__layout__"]] for i in made.state_info(N)],
                "out": short(out), "after": [short(state) for state in after], "data": short(data.grad),
                "states": [short(state.grad) for state in begin] if states else [], "parameters": parameters(made)}

    return call


def stack(rnn, kind, *cells):
    made = getattr(rnn, kind)(prefix="stack_")
    with made.name_scope():
        for each in cells:
            made.add(each(rnn))
    return made


def lstm(rnn):
    return rnn.LSTMCell(4, prefix="lstm_")


def gru(rnn):
    return rnn.GRUCell(5, prefix="gru_")


VALID = [2, 4, 1]
BOTH = {"rnn": lambda rnn: rnn.RNNCell(4), "rnn relu": lambda rnn: rnn.RNNCell(4, "relu"), "lstm": lstm, "gru": gru}
CASES = {
    **{f"{name} cell": cell(make, merge_outputs=True) for name, make in BOTH.items()},
    **{f"{name} cell, steps": cell(make, layout="TNC") for name, make in BOTH.items()},
    **{f"{name} cell, valid lengths": cell(make, valid_length=VALID) for name, make in BOTH.items()},
    "lstm cell of other activations": cell(lambda rnn: rnn.LSTMCell(4, activation="relu",
                                                                    recurrent_activation="tanh")),
    "stack": cell(lambda rnn: stack(rnn, "SequentialRNNCell", lstm, gru), merge_outputs=True),
    "hybrid stack": cell(lambda rnn: stack(rnn, "HybridSequentialRNNCell", gru, lstm)),
    "stack, valid lengths": cell(lambda rnn: stack(rnn, "SequentialRNNCell", lstm, gru), valid_length=VALID,
                                 merge_outputs=False),
    "residual": cell(lambda rnn: rnn.ResidualCell(gru(rnn)), merge_outputs=True),
    "residual, valid lengths": cell(lambda rnn: rnn.ResidualCell(gru(rnn)), valid_length=VALID),
    "dropout of nothing": cell(lambda rnn: stack(rnn, "SequentialRNNCell", lstm, lambda r: r.DropoutCell(0.0))),
    "zoneout of nothing": cell(lambda rnn: rnn.ZoneoutCell(lstm(rnn))),
    "bidirectional": cell(lambda rnn: rnn.BidirectionalCell(lstm(rnn), gru(rnn)), merge_outputs=True),
    "bidirectional, valid lengths": cell(lambda rnn: rnn.BidirectionalCell(lstm(rnn), gru(rnn)), valid_length=VALID,
                                         layout="TNC"),
    "stack of both directions": cell(lambda rnn: stack(
        rnn, "SequentialRNNCell", lambda r: r.BidirectionalCell(lstm(r), gru(r)), lambda r: r.RNNCell(3))),
    "rnn": layer(lambda rnn: rnn.RNN(4)), "rnn tanh, both ways": layer(
        lambda rnn: rnn.RNN(4, 2, "tanh", bidirectional=True), states=True),
    "lstm": layer(lambda rnn: rnn.LSTM(4, 2), states=True),
    "lstm, batch first": layer(lambda rnn: rnn.LSTM(4, layout="NTC", bidirectional=True), (N, T, C)),
    "lstm with projection": layer(lambda rnn: rnn.LSTM(4, projection_size=3), trains=False),
    "lstm, input size": layer(lambda rnn: rnn.LSTM(4, input_size=C)),
    "gru": layer(lambda rnn: rnn.GRU(4, 2, bidirectional=True), states=True),
}


def answer(mx, case, hybrid=False):
    """What a case gives."""
    return CASES[case](mx, hybrid)


if __name__ == "__main__":
    import answers

    answers.run(__file__, PATH, CASES, answer)
