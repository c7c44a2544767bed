"""Recurrent cells of `mx.rnn`, written once for MXNet and mxc: their symbols, numbers and weights, and buckets.

With MXNet's Python, `rnn_cells.py` writes what MXNet 1.9.1 answers to rnn_cells.json, a line for each program;
tests/test_rnn_cells.py compares mxc's.
"""
import json
import random
import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import answers

STEPS, WIDTH, HIDDEN = 3, 4, 5


def _short(values):
    return [float(f"{v:.5g}") for v in np.asarray(values, "float64").ravel()]


def _nodes(made):
    """What a saved symbol says of its nodes."""
    return [[n["op"], n["name"], n.get("attrs", {}), [i[:2] for i in n["inputs"]]]
            for n in json.loads(made.tojson())["nodes"]]


def _numbers(mx, made, shapes):
    """The values of a symbol's outputs, and of the gradients, for arguments that a generator gives one by one."""
    generator = np.random.RandomState(7)
    names = made.list_arguments()
    known, results, _ = made.infer_shape(**shapes)
    shaped = list(zip(names, known, strict=True))
    args = {name: mx.nd.array(generator.uniform(-0.8, 0.8, shape)) for name, shape in shaped}
    executor = made.bind(mx.cpu(), args, {name: mx.nd.zeros(shape) for name, shape in shaped})
    outputs = executor.forward(is_train=True)
    executor.backward([mx.nd.array(generator.uniform(-1, 1, shape)) for shape in results])
    return {"shapes": {name: list(shape) for name, shape in shaped},
            "outputs": [_short(o.asnumpy()) for o in outputs],
            "gradients": {name: _short(executor.grad_dict[name].asnumpy()) for name in names}}


def _whole(cell, merge, layout="NTC", width=(WIDTH,), numbers=True):
    """A cell unrolled over one symbol, its outputs merged or a list."""
    def call(mx):
        made = cell(mx.rnn)
        outputs, states = made.unroll(STEPS, mx.sym.Variable("data"), layout=layout, merge_outputs=merge)
        group = outputs if isinstance(outputs, mx.sym.Symbol) else mx.sym.Group(outputs)
        shape = (2, STEPS, *width) if layout == "NTC" else (STEPS, 2, *width)
        found = [group.list_arguments(), group.list_outputs(), _nodes(group), len(states),
                 [str(sorted(info.items())) for info in made.state_info], made._prefix]
        return [*found, _numbers(mx, group, {"data": shape})] if numbers else found

    return call


def _list(cell, width=(WIDTH,)):
    """A cell unrolled over a list of symbols, with the last states among the outputs, but for the first: it is the last
    output, and MXNet leaves out one of two gradients of the same."""
    def call(mx):
        inputs = [mx.sym.Variable(f"t{i}_data") for i in range(STEPS)]
        outputs, states = cell(mx.rnn).unroll(STEPS, inputs)
        group = mx.sym.Group([*outputs, *states[1:]])
        return [group.list_arguments(), group.list_outputs(), _nodes(group),
                _numbers(mx, group, {f"t{i}_data": (2, *width) for i in range(STEPS)})]

    return call


def _stack(rnn):
    stack = rnn.SequentialRNNCell()
    stack.add(rnn.LSTMCell(HIDDEN, prefix="a_"))
    stack.add(rnn.DropoutCell(0.0))
    stack.add(rnn.ResidualCell(rnn.GRUCell(HIDDEN, prefix="b_")))
    return stack


def _both(rnn):
    return rnn.BidirectionalCell(rnn.LSTMCell(HIDDEN, prefix="l_"), rnn.GRUCell(6, prefix="r_"))


def _zoneout(rnn):
    return rnn.ZoneoutCell(rnn.LSTMCell(HIDDEN, prefix="z_"), 0.5, 0.25)


PLAIN = {
    "rnn": lambda rnn: rnn.RNNCell(HIDDEN), "relu": lambda rnn: rnn.RNNCell(HIDDEN, activation="relu", prefix="q_"),
    "lstm": lambda rnn: rnn.LSTMCell(HIDDEN, forget_bias=2.0), "gru": lambda rnn: rnn.GRUCell(HIDDEN),
    "stack": _stack, "residual": lambda rnn: rnn.ResidualCell(rnn.RNNCell(WIDTH)),
    "zoneout of nothing": lambda rnn: rnn.ZoneoutCell(rnn.GRUCell(HIDDEN)),
}
IMAGES = {"conv rnn": lambda rnn: rnn.ConvRNNCell((1, 3, 6, 6), 2), "conv lstm": lambda rnn: rnn.ConvLSTMCell(
    (1, 3, 6, 6), 2, activation="tanh"), "conv gru": lambda rnn: rnn.ConvGRUCell(
    (1, 3, 6, 6), 2, h2h_dilate=(2, 2), i2h_kernel=(5, 5), i2h_stride=(2, 2), i2h_pad=(2, 2))}
CASES = {f"{name}, a list": _list(cell) for name, cell in PLAIN.items()}
CASES |= {f"{name}, merged": _whole(cell, True) for name, cell in {**PLAIN, "both": _both}.items()}
CASES |= {f"{name}, not merged": _whole(cell, False) for name, cell in {**PLAIN, "both": _both}.items()}
CASES |= {f"{name}, time first": _whole(cell, True, "TNC") for name, cell in {**PLAIN, "both": _both}.items()}
CASES |= {f"{name}, a list": _list(cell, (3, 6, 6)) for name, cell in IMAGES.items()}
CASES["zoneout"] = _whole(_zoneout, False, numbers=False)
CASES["dropout"] = _whole(lambda rnn: rnn.DropoutCell(0.5), True, numbers=False)
CASES["both, as it comes"] = _whole(_both, None)


# ---- fused cells and their weights

def _fused(mode, bidirectional, **more):
    return lambda rnn: rnn.FusedRNNCell(HIDDEN, num_layers=2, mode=mode, bidirectional=bidirectional, prefix="f_",
                                        **more)


def _states(cell):
    def call(mx):
        outputs, states = cell(mx.rnn).unroll(STEPS, mx.sym.Variable("data"), layout="TNC", merge_outputs=True)
        group = mx.sym.Group([outputs, *states])
        return [group.list_outputs(), _nodes(group), _numbers(mx, group, {"data": (STEPS, 2, WIDTH)})]

    return call


def _packed(mode, bidirectional):
    """The vector's parts, and the same numbers from the single cells with those parts."""
    def call(mx):
        fused = _fused(mode, bidirectional)(mx.rnn)
        data = mx.sym.Variable("data")
        made, _ = fused.unroll(STEPS, data, layout="TNC", merge_outputs=True)
        size = made.infer_shape(data=(STEPS, 2, WIDTH))[0][1][0]
        generator = np.random.RandomState(3)
        args = {"f_parameters": mx.nd.array(generator.uniform(-0.5, 0.5, size)), "other": mx.nd.ones((1,))}
        parts = fused.unpack_weights(args)
        stack = fused.unfuse()
        weights = stack.pack_weights(parts)
        weights.pop("other")
        single, _ = stack.unroll(STEPS, data, layout="TNC", merge_outputs=True)
        values = mx.nd.array(generator.uniform(-1, 1, (STEPS, 2, WIDTH)))
        results = [symbol.bind(mx.cpu(), {"data": values, **given}).forward()[0].asnumpy() for symbol, given in (
            (made, {"f_parameters": args["f_parameters"]}), (single, weights))]
        again = fused.pack_weights(parts)
        return [{name: [list(part.shape), _short(part.asnumpy().ravel()[:2])] for name, part in sorted(parts.items())},
                sorted(weights), single.list_arguments(), [_short(values) for values in results],
                bool((again["f_parameters"].asnumpy() == args["f_parameters"].asnumpy()).all()), sorted(again)]

    return call


MODES = ("rnn_relu", "rnn_tanh", "lstm", "gru")
CASES |= {f"fused {mode} {sides}": _whole(_fused(mode, sides > 1), True) for mode in MODES for sides in (1, 2)}
CASES |= {f"fused {mode}, states": _states(_fused(mode, False, get_next_state=True, dropout=0.0)) for mode in MODES}
CASES |= {f"packed {mode} {sides}": _packed(mode, sides > 1) for mode in MODES for sides in (1, 2)}


# ---- names and states

def _begin(mx):
    cell = mx.rnn.LSTMCell(HIDDEN)
    zeros = cell.begin_state()
    variables = cell.begin_state(func=mx.sym.Variable, lr_mult=2)
    both = _both(mx.rnn).begin_state()
    return [[s.name for s in zeros], [s.attr_dict()[s.name] for s in (*zeros, *variables)], [s.name for s in both],
            [list(shape) for shape in cell.state_shape]]


def _shared(mx):
    shared = mx.rnn.RNNParams("p_")
    one, other = mx.rnn.GRUCell(HIDDEN, prefix="x_", params=shared), mx.rnn.GRUCell(HIDDEN, prefix="y_", params=shared)
    data = mx.sym.Variable("data")
    made = one(data, one.begin_state())[0] + other(data, other.begin_state())[0]
    return [made.list_arguments(), one.params is other.params, sorted(shared._params)]


CASES |= {
    "begin": _begin, "shared": _shared,
    "no step": lambda mx: _both(mx.rnn)(1, 2), "no fused step": lambda mx: mx.rnn.FusedRNNCell(HIDDEN)(1, 2),
    "a base": lambda mx: mx.rnn.BaseRNNCell().state_info,
    "a weight that is missing": lambda mx: mx.rnn.LSTMCell(HIDDEN).unpack_weights({}),
}


# ---- sentences

def _bucketed(**more):
    def call(mx):
        generator = random.Random(1)
        sentences = [[generator.randint(1, 20) for _ in range(generator.randint(1, 12))] for _ in range(60)]
        random.seed(4)
        np.random.seed(5)
        it = mx.rnn.BucketSentenceIter(sentences, 4, **more)
        found = [[str(d) for d in (*it.provide_data, *it.provide_label)], it.default_bucket_key, list(it.buckets)]
        for _ in range(2):
            found.append([[b.bucket_key, *(part[0].asnumpy().astype(int).tolist() for part in (b.data, b.label)),
                           b.pad, b.index, [str(d) for d in (*b.provide_data, *b.provide_label)]] for b in it])
            it.reset()
        return [*found, random.randint(0, 10**6), int(np.random.randint(10**6))]

    return call


def _coded(*args, **kwargs):
    return lambda mx: [list(map(str, sorted(part.items()))) if isinstance(part, dict) else part
                       for part in mx.rnn.encode_sentences(*args, **kwargs)]


WORDS = [["a", "b", "c"], ["b", "d"]]
CASES |= {f"buckets {name}": call for name, call in {
    "given": _bucketed(buckets=[3, 6, 9, 12]), "short": _bucketed(buckets=[6, 3]), "found": _bucketed(),
    "time first": _bucketed(buckets=[12, 4], layout="TN", invalid_label=0, data_name="x", label_name="y",
                            dtype="int32"),
    "another layout": _bucketed(buckets=[12], layout="XX"),
    "none": lambda mx: mx.rnn.BucketSentenceIter([[1, 2]], 4),
}.items()}
CASES |= {f"coded {name}": call for name, call in {
    "new": _coded(WORDS), "from 5": _coded(WORDS, start_label=5, invalid_label=0, invalid_key="<pad>"),
    "over the invalid one": _coded(WORDS, invalid_label=1), "text": _coded(["ab"]),
    "known": lambda mx: _coded([["a", "b"]], vocab={"a": 1, "b": 2})(mx),
    "unknown": lambda mx: _coded([["a", "z", "y"]], vocab={"a": 1, "b": 2}, unknown_token="<unk>")(mx),
}.items()}


def answer(mx, case):
    """What one program answers."""
    warnings.simplefilter("ignore")
    with mx.name.NameManager():
        return json.loads(json.dumps(answers.raised(lambda: CASES[case](mx))))


if __name__ == "__main__":
    found = answers.run(__file__, Path(__file__).with_name("rnn_cells.json"), CASES, answer)
    print(f"{len(found)} programs")
