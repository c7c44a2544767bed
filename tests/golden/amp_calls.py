"""Programs of mixed precision, written once for MXNet and mxc: what they answer or raise.

With MXNet's Python, `amp_calls.py` writes what MXNet 1.9.1 answers to amp_calls.json, a line for each setting;
tests/test_amp.py compares mxc's. `amp.init` changes a process for good, so a process answers for one setting: in "off"
nothing was called, in the others `init` with their arguments. MXNet casts arrays on the CPU to bfloat16 alone, and has
no products of float16 there, so what float16 computes is in mxc's own tests.
"""
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

BFLOAT16 = np.dtype([("bfloat16", np.uint16)])
DTYPES = ("float16", "bfloat16")
LISTS = ("lp16_ops", "lp16_fp32_ops", "fp32_ops", "conditional_fp32_ops", "widest_type_cast", "loss_output_functions",
         "lp16_use_fp32_params")
FREE = {"target_precision_ops": ["Convolution", "relu"], "fp32_ops": ["FullyConnected", "flatten"],
        "conditional_fp32_ops": [("Activation", "act_type", ["tanh"])]}
SETTINGS = {"off": None, "float16": {}, "bfloat16": {"target_dtype": "bfloat16"}, "chosen": FREE,
            "chosen bfloat16": {"target_dtype": "bfloat16", **FREE}}


def numbers(shape, seed=0):
    return (np.random.RandomState(seed).randint(-32, 33, shape) / 16).astype("float32")


def described(value):
    """Arrays by dtype, shape and numbers; dtypes by name; dicts by their sorted keys."""
    if hasattr(value, "asnumpy"):
        return [name_of(value.dtype), list(value.shape), value.astype("float32").asnumpy().ravel().tolist()]
    if isinstance(value, dict):
        return {key: described(value[key]) for key in sorted(value)}
    if isinstance(value, (np.dtype, type)):
        return name_of(value)
    return [described(each) for each in value] if isinstance(value, (list, tuple)) else value


def form(array):
    """Dtype and shape alone: the numbers of several layers of bfloat16 are others in each of MXNet's processes."""
    return [name_of(array.dtype), list(array.shape)]


def name_of(dtype):
    return "bfloat16" if dtype == BFLOAT16 else np.dtype(dtype).name


# ---- graphs that are converted

def perceptron(s):
    x = s.FullyConnected(s.Variable("data"), num_hidden=6, name="one")
    return s.softmax(s.FullyConnected(s.Activation(x, act_type="relu"), num_hidden=3, name="two"), name="out")


def convolutions(s):
    x = s.Convolution(s.Variable("data"), kernel=(3, 3), num_filter=4, pad=(1, 1), name="conv")
    x = s.Activation(s.BatchNorm(x, fix_gamma=False, name="norm"), act_type="relu", name="act")
    y = s.Convolution(x, kernel=(1, 1), num_filter=4, no_bias=True, name="again")
    x = s.Pooling(x + y, kernel=(2, 2), stride=(2, 2), pool_type="max", name="pool")
    return s.SoftmaxOutput(s.FullyConnected(s.flatten(x), num_hidden=3, name="fc"), name="softmax")


def conditions(s):
    x = s.FullyConnected(s.Variable("data"), num_hidden=6, name="fc")
    return s.Group([s.Activation(x, act_type=kind, name=kind) for kind in ("softrelu", "tanh")] +
                   [s.LeakyReLU(x, act_type=kind, name=kind) for kind in ("elu", "leaky")])


def joined(s):
    x, y = s.Variable("data"), s.Variable("other")
    x = s.FullyConnected(x, num_hidden=4, name="fc")
    return s.concat(s.broadcast_add(x, y), s.exp(x), s.broadcast_mul(x, s.Variable("scale")), dim=1, name="all")


def shared(s):
    weight = s.Variable("weight")
    x = s.FullyConnected(s.Variable("data"), weight, num_hidden=5, no_bias=True, name="one")
    return s.Group([s.FullyConnected(s.exp(x), weight, num_hidden=5, no_bias=True, name="two"), s.sum(weight), x])


def parts(s):
    x = s.split(s.FullyConnected(s.Variable("data"), num_hidden=6, name="fc"), num_outputs=2, name="split")
    return s.Group([x[0] + x[1], s.sum(x[1], axis=1, name="total"), s.FullyConnected(x[0], num_hidden=2, name="last")])


def words(s):
    x = s.Embedding(s.Variable("data"), input_dim=9, output_dim=4, name="embed")
    x = s.RNN(s.transpose(x, axes=(1, 0, 2)), s.Variable("lstm"), s.Variable("state"), s.Variable("cell"),
              state_size=5, num_layers=1, mode="lstm", name="rnn")
    return s.LayerNorm(s.FullyConnected(x, num_hidden=4, flatten=False, name="fc"), name="norm")


GRAPHS = [perceptron, convolutions, conditions, joined, shared, parts, words]
DATA = ("data", "other", "state", "cell", "softmax_label")
WAYS = {
    "default": {}, "no names": {"data_names": None}, "optional": {"cast_optional_params": True},
    "optional, no names": {"cast_optional_params": True, "data_names": None},
    "excluded": {"excluded_sym_names": ["one", "conv", "fc", "act"]},
    "chosen": {"target_dtype_ops": ["Convolution", "relu", "exp"], "fp32_ops": ["FullyConnected", "softmax"],
               "conditional_fp32_ops": [("Activation", "act_type", ["relu", "tanh"])]},
}


def nodes(symbol):
    """A graph's nodes by name: operator, inputs, and what casts say; and its outputs."""
    graph = json.loads(symbol.tojson(remove_amp_cast=False))
    known = [node["name"] for node in graph["nodes"]]

    def place(entry):
        return [known[entry[0]], entry[1]]

    found = {}
    for node in graph["nodes"]:
        attrs = {key: value for key, value in node.get("attrs", {}).items() if key in ("dtype", "__dtype__")}
        found[node["name"]] = [node["op"], [place(e) for e in node["inputs"]], attrs]
    return {"nodes": {name: found[name] for name in sorted(found)}, "outputs": [place(e) for e in graph["heads"]]}


def convert(graph, dtype, way):
    def call(mx):
        symbol = graph(mx.sym)
        names = [name for name in symbol.list_inputs() if name in DATA]
        options = {"data_names": names, **WAYS[way]}
        return nodes(mx.contrib.amp.convert_symbol(symbol, dtype, **options))

    return call


def given(symbol, mx, **shapes):
    """Numbers for a symbol's arguments and auxiliary states that are no data."""
    args, _, states = symbol.infer_shape(**shapes)
    made = [{name: mx.nd.array(numbers(shape, i) / 4 + 2 * ("var" in name))
             for i, (name, shape) in enumerate(zip(found, of, strict=True)) if name not in DATA}
            for found, of in ((symbol.list_arguments(), args), (symbol.list_auxiliary_states(), states))]
    return made


def model(graph, dtype, way, shape):
    """A converted model: the dtypes of its parameters, and for bfloat16 what its output is."""
    def call(mx):
        symbol = graph(mx.sym)
        args, states = given(symbol, mx, data=shape)
        options = {key: value for key, value in WAYS[way].items() if key != "data_names"}
        made, args, states = mx.contrib.amp.convert_model(symbol, args, states, dtype, **options)
        found = [{name: array.dtype for name, array in each.items()} for each in (args, states)]
        if dtype == "float16":
            return found
        args["data"] = mx.nd.array(numbers(shape, 50))
        if "softmax_label" in made.list_arguments():
            args["softmax_label"] = mx.nd.zeros(shape[:1])
        executor = made.bind(mx.cpu(), args, aux_states=states)
        return [*found, form(executor.forward()[0])]

    return call


def network(mx, prefix="net_"):
    nn = mx.gluon.nn
    net = nn.HybridSequential(prefix=prefix)
    with net.name_scope():
        net.add(nn.Conv2D(4, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(), nn.Dense(3))
    net.initialize()
    net(mx.nd.array(numbers((2, 3, 6, 6))))
    for i, param in enumerate(net.collect_params().values()):
        param.set_data(mx.nd.array(numbers(param.shape, i) / 4 + ("var" in param.name)))
    return net


def block(dtype, **options):
    def call(mx):
        net, data = network(mx), mx.nd.array(numbers((2, 3, 6, 6), 9))
        net.hybridize()
        net(data)
        made = mx.contrib.amp.convert_hybrid_block(net, dtype, ctx=mx.cpu(), **options)
        dtypes = {name: param.dtype for name, param in made.collect_params().items()}
        kinds = {name: param.data().dtype for name, param in made.collect_params().items()}
        return [type(made).__name__, dtypes, kinds, *([form(made(data))] if dtype == "bfloat16" else [])]

    return call


def bucketing(mx):
    module = mx.mod.BucketingModule(lambda key: (perceptron(mx.sym), ["data"], []), default_bucket_key=4)
    module.bind([("data", (2, 4))], for_training=False)
    args, _ = given(perceptron(mx.sym), mx, data=(2, 4))
    module.set_params(args, {})
    made = mx.contrib.amp.amp.convert_bucketing_module(module, "bfloat16")
    made.bind([("data", (2, 4))], for_training=False)
    made.forward(mx.io.DataBatch([mx.nd.array(numbers((2, 4), 50))], bucket_key=4, provide_data=[("data", (2, 4))]))
    return [type(made).__name__, {name: array.dtype for name, array in made.get_params()[0].items()},
            form(made.get_outputs()[0])]


# ---- loss scaling

def trainer_of(mx, net):
    return mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.25})


def line(mx):
    """A layer of one weight, that is 1; without a product, which MXNet does not have in float16 here."""
    class Line(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__(prefix="line_")
            self.weight = self.params.get("weight", shape=(1, 1))

        def hybrid_forward(self, F, x, weight):
            return F.broadcast_mul(x, weight)

    net = Line()
    net.initialize(mx.init.One())
    return net


def steps(finite, length):
    """The scale, and the weight, before the first of some steps and behind each."""
    def call(mx):
        net = line(mx)
        trainer = trainer_of(mx, net)
        mx.contrib.amp.init_trainer(trainer)
        scaler = trainer._amp_loss_scaler
        scaler._scale_seq_len = length
        found = [[scaler.loss_scale, 1.0]]
        for is_finite in finite:
            with mx.autograd.record():
                loss = net(mx.nd.ones((2, 1))) * (1 if is_finite else float("inf"))
                with mx.contrib.amp.scale_loss(loss, trainer) as scaled:
                    scaled.backward()
            trainer.step(2)
            found.append([scaler.loss_scale, float(net.weight.data().asscalar())])
        return found

    return call


def scaled(mx):
    """The loss and the trainer's factor in `scale_loss`, of an array and of a list."""
    trainer = trainer_of(mx, line(mx))
    mx.contrib.amp.init_trainer(trainer)
    trainer._amp_loss_scaler._loss_scale = 1024.0
    found = []
    for loss in (mx.nd.array([1, 2]), [mx.nd.array([1]), mx.nd.array([2])]):
        with mx.contrib.amp.scale_loss(loss, trainer) as made:
            found.append([made, trainer._scale])
    return [*found, trainer._scale]


def unscaled(mx):
    net = line(mx)
    trainer = trainer_of(mx, net)
    mx.contrib.amp.init_trainer(trainer)
    with mx.autograd.record():
        loss = net(mx.nd.ones((2, 1)))
        with mx.contrib.amp.scale_loss(loss, trainer) as made:
            made.backward()
    before = float(net.weight.grad().asscalar())
    mx.contrib.amp.unscale(trainer)
    middle = float(net.weight.grad().asscalar())
    trainer.step(2)
    return [before, middle, trainer._scale, float(net.weight.data().asscalar())]


def scalers(mx):
    """Whose scaler is whose: the first trainer's is that of `init`."""
    trainers = [trainer_of(mx, line(mx)) for _ in range(3)]
    for trainer in trainers:
        mx.contrib.amp.init_trainer(trainer)
    own = mx.contrib.amp.amp._loss_scaler
    return [trainer._amp_loss_scaler is own for trainer in trainers] + [own.loss_scale, own._max_loss_scale]


def scaled_output(mx):
    """The gradient of an operator that makes a loss's."""
    data = mx.nd.array(numbers((2, 3)))
    data.attach_grad()
    found = []
    for options in ({}, {"grad_scale": 2}):
        with mx.autograd.record():
            out = mx.nd.SoftmaxOutput(data, mx.nd.array([0, 2]), **options)
        out.backward()
        found.append([out, data.grad])
    return found


# ---- what arrays and symbols compute in

def arrays(mx, only=()):
    """What functions and methods give, those of these names (default: all)."""
    data, narrow = mx.nd.array(numbers((2, 6))), mx.nd.amp_cast(mx.nd.array(numbers((2, 6), 3)), dtype=BFLOAT16)
    weight = mx.nd.array(numbers((4, 6), 1))
    nd, picture = mx.nd, mx.nd.array(numbers((1, 2, 5, 5)))
    vectors = [mx.nd.array(numbers((2,), i) + 2) for i in range(4)]
    calls = {
        "FullyConnected": lambda: nd.FullyConnected(data, weight, num_hidden=4, no_bias=True),
        "narrow": lambda: nd.FullyConnected(narrow, weight, num_hidden=4, no_bias=True),
        "by name": lambda: nd.FullyConnected(data=data, weight=weight, num_hidden=4, no_bias=True),
        "Convolution": lambda: nd.Convolution(picture, mx.nd.array(numbers((3, 2, 3, 3))), kernel=(3, 3), num_filter=3,
                                              no_bias=True),
        **{name: lambda name=name: getattr(nd, name)(narrow) for name in ("exp", "softmax", "relu", "sum")},
        "float32 relu": lambda: nd.relu(data), "add": lambda: nd.broadcast_add(data, narrow),
        "add narrow": lambda: nd.broadcast_add(narrow, narrow), "elemwise_add": lambda: nd.elemwise_add(narrow, data),
        "plus": lambda: data + narrow, "method": lambda: narrow.exp(), "dot": lambda: nd.dot(data, narrow.T),
        **{kind: lambda kind=kind: nd.Activation(narrow, act_type=kind) for kind in ("softrelu", "tanh")},
        "BatchNorm": lambda: nd.BatchNorm(picture, *vectors), "reshape": lambda: narrow.reshape((3, 4)),
        "float64": lambda: nd.FullyConnected(data.astype("float64"), weight.astype("float64"), num_hidden=4,
                                             no_bias=True),
        "LayerNorm": lambda: nd.LayerNorm(narrow, mx.nd.ones(6), mx.nd.zeros(6)),
    }
    return {name: said(call) for name, call in calls.items() if name in (only or calls)}


def symbols(mx):
    """What symbols are made of: the graphs without their names."""
    return {graph.__name__: operators(graph(mx.sym)) for graph in GRAPHS}


def operators(symbol):
    """The operators of a graph, with the operators that their inputs come from, and the dtypes of casts."""
    graph = json.loads(symbol.tojson(remove_amp_cast=False))
    found = [[node["op"] if node["op"] != "null" else node["name"],
              [graph["nodes"][e[0]]["op"].replace("null", graph["nodes"][e[0]]["name"]) for e in node["inputs"]],
              node.get("attrs", {}).get("dtype", "")] for node in graph["nodes"]]
    return sorted(found)


def named(mx):
    symbol = perceptron(mx.sym)
    return [symbol.list_arguments(), symbol.list_outputs()]


def trains(hybrid):
    """Losses of some steps of a network, and the dtypes of its parameters and output."""
    def call(mx):
        net = network(mx)
        if hybrid:
            net.hybridize()
        trainer, loss_of = trainer_of(mx, net), mx.gluon.loss.SoftmaxCrossEntropyLoss()
        mx.contrib.amp.init_trainer(trainer)
        data, label = mx.nd.array(numbers((4, 3, 6, 6), 7)), mx.nd.array([0, 1, 2, 0])
        found = []
        for _ in range(6):
            with mx.autograd.record():
                out = net(data)
                loss = loss_of(out, label)
                with mx.contrib.amp.scale_loss(loss, trainer) as scaled_loss:
                    mx.autograd.backward(scaled_loss)
            trainer.step(4)
            found.append(float(loss.mean().astype("float32").asscalar()))
        return [found, out.dtype, {name: param.dtype for name, param in net.collect_params().items()}]

    return call


# ---- lists and refusals

def lists(kind):
    """How long a list is for each way to say a dtype, and a digest of it."""
    def call(mx):
        found = []
        for dtype in ("float16", np.float16, BFLOAT16):
            value = getattr(mx.contrib.amp, f"list_{kind}")(dtype)
            text = json.dumps(value, sort_keys=True)
            found.append([None if value is None else len(value), hashlib.sha256(text.encode()).hexdigest()[:16]])
        return found

    return call


def refusals(mx):
    """The classes of errors, of calls that are wrong."""
    amp, symbol, net = mx.contrib.amp, perceptron(mx.sym), network(mx)
    args, _ = given(symbol, mx, data=(2, 4))
    wrong = {
        "dtype of init": lambda: amp.init("float32"), "list of float32": lambda: amp.list_lp16_ops("float32"),
        "trainer before init": lambda: amp.init_trainer(trainer_of(mx, line(mx))),
        "scale before init_trainer": lambda: amp.scale_loss(mx.nd.ones(1), trainer_of(mx, line(mx))).__enter__(),
        "unscale an optimizer": lambda: amp.unscale(mx.optimizer.create("sgd")),
        "unscale a number": lambda: amp.unscale(3),
        "no symbol": lambda: amp.convert_symbol("x"), "dtype": lambda: amp.convert_symbol(symbol, "float32"),
        "no list": lambda: amp.convert_symbol(symbol, target_dtype_ops="relu"),
        "no list of float32": lambda: amp.convert_symbol(symbol, fp32_ops=("relu",)),
        "no list of conditions": lambda: amp.convert_symbol(symbol, conditional_fp32_ops={}),
        "no list of names": lambda: amp.convert_symbol(symbol, excluded_sym_names="one"),
        "in two lists": lambda: amp.convert_symbol(symbol, target_dtype_ops=["relu"], fp32_ops=["relu"]),
        "in two lists by default": lambda: amp.convert_symbol(symbol, target_dtype_ops=["softmax"]),
        "condition in two": lambda: amp.convert_symbol(symbol, fp32_ops=["Activation"]),
        "unknown operator": lambda: amp.convert_symbol(symbol, target_dtype_ops=["nothing"]),
        "widest operator": lambda: amp.convert_symbol(symbol, target_dtype_ops=["broadcast_add"]),
        "condition of numbers": lambda: amp.convert_symbol(symbol, conditional_fp32_ops=[("relu", 1, ["x"])]),
        "condition without a list": lambda: amp.convert_symbol(symbol, conditional_fp32_ops=[("relu", "x", "x")]),
        "model without dicts": lambda: amp.convert_model(symbol, [], {}),
        "states without dicts": lambda: amp.convert_model(symbol, args, None),
        "model of a block": lambda: amp.convert_model(net, {}, {}),
        "block before it ran": lambda: amp.convert_hybrid_block(network(mx, "new_")),
        "no block": lambda: amp.convert_hybrid_block(symbol), "no hybrid": lambda: amp.convert_hybrid_block(
            mx.gluon.nn.Sequential()),
        "no module": lambda: amp.amp.convert_bucketing_module(symbol),
    }
    return {name: said(call) for name, call in wrong.items()}


def refusals_of_trainers(mx):
    amp = mx.contrib.amp
    return [said(lambda: amp.init_trainer(mx.optimizer.create("sgd"))), said(lambda: amp.init_trainer(3)),
            said(lambda: amp.init("float32"))]


def said(call):
    """What a call gives, or the class of its error and those that it derives from."""
    try:
        return described(call())
    except Exception as error:
        return {"error": [each.__name__ for each in type(error).__mro__[:-3]]}


OFF = {
    **{f"list {kind}": lists(kind) for kind in LISTS},
    **{f"{graph.__name__} {dtype} {way}": convert(graph, dtype, way)
       for graph in GRAPHS for dtype in DTYPES for way in WAYS},
    **{f"model {graph.__name__} {dtype} {way}": model(graph, dtype, way, shape)
       for graph, shape in ((perceptron, (2, 4)), (convolutions, (2, 3, 6, 6)))
       for dtype in DTYPES for way in ("default", "optional", "excluded")},
    **{f"block {dtype}": block(dtype) for dtype in DTYPES},
    **{f"block {dtype} optional": block(dtype, cast_optional_params=True) for dtype in DTYPES},
    "bucketing": bucketing, "refusals": refusals,
}
ON = {
    "scalers": scalers, "finite": steps([True] * 7, 3), "overflows": steps([True, False, False, True, True, True], 2),
    "only overflows": steps([False] * 4, 2), "scaled": scaled, "unscaled": unscaled, "scaled output": scaled_output,
    "symbols": symbols, "named": named, "refusals of trainers": refusals_of_trainers,
}
NARROW = {"arrays": arrays, "trains": trains(False), "trains hybridized": trains(True)}
CASES = {"off": OFF, "float16": ON, "bfloat16": {**ON, **NARROW}, "chosen": {"symbols": symbols},
         "chosen bfloat16": {
             "arrays": lambda mx: arrays(mx, ("FullyConnected", "narrow", "Convolution", "relu", "tanh")),
             "symbols": symbols}}


def answer(mx, setting):
    """What MXNet, or mxc, says of all programs of a setting, in which this process is from now on."""
    from importlib import import_module
    import_module(f"{mx.__name__}.contrib.amp")
    if SETTINGS[setting] is not None:
        mx.contrib.amp.init(**SETTINGS[setting])
    return {name: said(lambda call=call: call(mx)) for name, call in CASES[setting].items()}


PATH = Path(__file__).with_suffix(".json")

if __name__ == "__main__":
    if len(sys.argv) == 2:
        import mxnet

        printed, sys.stdout = sys.stdout, sys.stderr  # where MXNet prints some errors
        printed.write(json.dumps(answer(mxnet, sys.argv[1])))
        printed.flush()
        os._exit(0)  # MXNet's threads may not end
    rows = []
    for setting in SETTINGS:
        asked = subprocess.run([sys.executable, __file__, setting], stdout=subprocess.PIPE, check=True)
        rows.append(f'{json.dumps(setting)}: {{\n' + ",\n".join(
            f"{json.dumps(case)}: {json.dumps(said)}" for case, said in json.loads(asked.stdout).items()) + "\n}")
    PATH.write_text("{\n" + ",\n".join(rows) + "\n}\n")
