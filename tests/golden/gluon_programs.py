"""Programs with Gluon, written once for MXNet and mxc: training, names, files, refusals.

With MXNet's Python, `gluon_programs.py` writes what MXNet 1.9.1 answers to gluon_programs.json, a line for each;
tests/test_gluon_programs.py compares mxc's.
"""
import importlib
import os
import tempfile
import warnings
from pathlib import Path

import numpy as np

PATH = Path(__file__).with_suffix(".json")
STEPS = 20


def part(mx, name):
    return importlib.import_module(f"{mx.__name__}.{name}")


def numbers(array):
    return [float(f"{v:.6g}") for v in np.asarray(array.asnumpy(), "float64").ravel()[:8]]


def values(seed, *shape):
    return np.random.RandomState(seed).uniform(-1, 1, shape)


def give(mx, net):
    for seed, (_, param) in enumerate(sorted(net._collect_params_with_prefix().items())):
        if len(param.shape) > 1:
            param.set_data(mx.nd.array(values(seed, *param.shape) * np.sqrt(3 / np.prod(param.shape[1:]))))


def mlp(mx, nn):
    net = nn.HybridSequential(prefix="mlp_")
    with net.name_scope():
        net.add(nn.Dense(16, activation="relu"), nn.Dense(8, activation="tanh"), nn.Dense(4))
    return net


def lenet(mx, nn):
    net = nn.HybridSequential(prefix="lenet_")
    with net.name_scope():
        net.add(nn.Conv2D(6, 3, activation="tanh"), nn.MaxPool2D(2, 2), nn.Conv2D(8, 3), nn.BatchNorm(),
                nn.Activation("relu"), nn.MaxPool2D(2, 2), nn.Flatten(), nn.Dropout(0.0), nn.Dense(10), nn.Dense(4))
    return net


def trained(build, shape, optimizer, options, hybrid, contexts=1, store="device", clip=None):
    """Parameters and losses of a network trained for some steps on one batch."""
    def call(mx):
        gluon, nn, utils = (part(mx, f"gluon{name}") for name in ("", ".nn", ".utils"))
        loss_of = part(mx, "gluon.loss").SoftmaxCrossEntropyLoss()
        devices = [mx.cpu(i) for i in range(contexts)]
        net = build(mx, nn)
        net.initialize(ctx=devices)
        if hybrid:
            net.hybridize()
        data, label = mx.nd.array(values(50, *shape)), mx.nd.array(np.arange(shape[0]) % 4)
        net(data)
        give(mx, net)
        trainer = gluon.Trainer(net.collect_params(), optimizer, dict(options), kvstore=store)
        losses = []
        for _ in range(STEPS):
            with mx.autograd.record():
                parts = [loss_of(net(x), y) for x, y in zip(utils.split_and_load(data, devices),
                                                          utils.split_and_load(label, devices), strict=True)]
            for each in parts:
                each.backward()
            if clip is not None:
                grads = [p.grad(devices[0]) for p in net.collect_params().values() if p.grad_req != "null"]
                utils.clip_global_norm(grads, clip)
            trainer.step(shape[0])
            losses.append(float(f"{sum(each.sum().asscalar() for each in parts):.5g}"))
        found = {name: numbers(p.data(devices[-1])) for name, p in sorted(net.collect_params().items())}
        return {"losses": losses[::5], "parameters": found, "out": numbers(net(data))}

    return call


def language_model(hybrid):
    """An embedding, an LSTM and a decoder, with clipped gradients and states that go on."""
    def call(mx):
        gluon, nn, rnn, utils = (part(mx, f"gluon{name}") for name in ("", ".nn", ".rnn", ".utils"))
        embed, lstm = nn.Embedding(12, 6, prefix="embed_"), rnn.LSTM(8, 2, prefix="lstm_")
        decode = nn.Dense(12, flatten=False, prefix="decode_")
        blocks = [embed, lstm, decode]
        loss_of = part(mx, "gluon.loss").SoftmaxCrossEntropyLoss()
        text = mx.nd.array(np.arange(40).reshape(10, 4) * 7 % 12)
        for block in blocks:
            block.initialize()
            if hybrid:
                block.hybridize()
        decode(lstm(embed(text), lstm.begin_state(4))[0])
        params = gluon.ParameterDict()
        for block in blocks:
            give(mx, block)
            params.update(block.collect_params())
        trainer, states, losses = gluon.Trainer(params, "sgd", {"learning_rate": 0.5}), lstm.begin_state(4), []
        for _i in range(STEPS):
            with mx.autograd.record():
                out, states = lstm(embed(text[:9]), states)
                states = [state.detach() for state in states]
                loss = loss_of(decode(out), text[1:])
            loss.backward()
            utils.clip_global_norm([p.grad() for p in params.values()], 2.0)
            trainer.step(36)
            losses.append(float(f"{loss.mean().asscalar():.5g}"))
        return {"losses": losses[::5], "parameters": {n: numbers(p.data()) for n, p in sorted(params.items())}}

    return call


def penalty(hybrid):
    """A gradient penalty: the gradient of a function of a gradient. MXNet refuses it."""
    def call(mx):
        nn, autograd = part(mx, "gluon.nn"), mx.autograd
        net = nn.HybridSequential(prefix="critic_")
        with net.name_scope():
            net.add(nn.Dense(6), nn.HybridLambda("tanh"), nn.Dense(1))
        net.initialize()
        if hybrid:
            net.hybridize()
        data = mx.nd.array(values(9, 3, 4))
        net(data)
        give(mx, net)
        data.attach_grad()
        with autograd.record():
            grads = autograd.grad(net(data), [data], create_graph=True, retain_graph=True)[0]
            loss = (grads * grads - 0.1) * grads
        loss.backward()
        return {"loss": numbers(loss), "data": numbers(data.grad),
                **{name: numbers(p.grad()) for name, p in sorted(net.collect_params().items())}}

    return call


def names(mx):
    """Names that scopes, sharing and counting make."""
    gluon, nn = part(mx, "gluon"), part(mx, "gluon.nn")
    with mx.name.NameManager():
        one, two = nn.Dense(3), nn.Dense(3)
        outer = nn.HybridSequential(prefix="outer_")
        with outer.name_scope():
            inner = nn.HybridSequential()
            with inner.name_scope():
                inner.add(nn.Dense(2), nn.Dense(2, prefix="own_"))
            outer.add(inner, nn.Conv2D(2, 3), nn.Activation("relu"), nn.MaxPool2D())
        shared = nn.Dense(3, in_units=2, params=nn.Dense(3, in_units=2, prefix="first_").params, prefix="second_")
        plain = nn.Sequential(prefix="")
        with plain.name_scope():
            plain.add(nn.Dense(1))
        blocks = [one, two, outer, shared, plain]
        params = gluon.ParameterDict("p_")
        params.get("w", shape=(2, 0), allow_deferred_init=True)
        params.get("w", shape=(0, 3))
        return [[b.prefix, b.name, list(b.collect_params()), repr(b), sorted(b._collect_params_with_prefix())]
                for b in blocks] + [[repr(params), repr(outer.collect_params(".*own")), outer[1].name]]


def traced(mx):
    """The graph of a hybridised network, and what its files hold."""
    nn = part(mx, "gluon.nn")
    with mx.name.NameManager(), tempfile.TemporaryDirectory() as folder:
        net = lenet(mx, nn)
        net.initialize()
        net.hybridize()
        net(mx.nd.ones((1, 1, 14, 14)))
        net.export(os.path.join(folder, "net"), 3)
        net.save_parameters(os.path.join(folder, "net.params"))
        made = mx.sym.load(os.path.join(folder, "net-symbol.json"))
        again = part(mx, "gluon").SymbolBlock.imports(os.path.join(folder, "net-symbol.json"), ["data"],
                                                      os.path.join(folder, "net-0003.params"))
        close = abs(again(mx.nd.ones((1, 1, 14, 14))) - net(mx.nd.ones((1, 1, 14, 14)))).max().asscalar() < 1e-6
        return [made.get_internals().list_outputs(), sorted(made.attr_dict().items()),
                sorted(mx.nd.load(os.path.join(folder, "net-0003.params"))),
                sorted(mx.nd.load(os.path.join(folder, "net.params"))), bool(close), sorted(os.listdir(folder))]


# long: a list of wrong programs.
def refusals(mx):
    """The classes of the errors of wrong programs, as MXNet raises them."""
    gluon, nn = part(mx, "gluon"), part(mx, "gluon.nn")

    class Plain(gluon.Block):
        def forward(self, x):
            return x

    class Two(gluon.HybridBlock):
        def hybrid_forward(self, F, x, y=None):
            return x if y is None else x + y

    def two():
        net = Two()
        net.hybridize()
        net(mx.nd.ones(2), mx.nd.ones(2))
        net(mx.nd.ones(2))

    def child():
        nn.HybridSequential().add(Plain())

    def deferred():
        net = nn.Dense(2)
        net.initialize()
        net.weight.data()

    def stale():
        net = nn.Dense(2, in_units=2)
        net.initialize()
        gluon.Trainer(net.collect_params(), "sgd").step(1)

    def assign():
        net = gluon.Block()
        net.child = nn.Dense(2)
        net.child = 3

    def device():
        net = nn.Dense(2, in_units=2)
        net.initialize(ctx=mx.cpu(0))
        net.weight.data(mx.cpu(1))

    cases = {
        "structure": two, "child": child, "deferred": deferred, "stale": stale, "assign": assign, "device": device,
        "not initialized": lambda: nn.Dense(2, in_units=2)(mx.nd.ones((1, 2))),
        "list_ctx": lambda: gluon.Parameter("p", shape=(1,)).list_ctx(),
        "shape": lambda: gluon.Parameter("p", shape=(0,)).initialize(),
        "request": lambda: gluon.Parameter("p", grad_req="twice"),
        "stype": lambda: gluon.Parameter("p", stype="dense"),
        "number": lambda: nn.Dense(2)(3), "export": lambda: nn.Dense(2).export("none"),
        "no constant": lambda: gluon.ParameterDict().get_constant("c"),
        "trainer": lambda: gluon.Trainer(3, "sgd"), "trainer's list": lambda: gluon.Trainer([3], "sgd"),
        "optimizer": lambda: gluon.Trainer([], mx.optimizer.SGD(), {"learning_rate": 1}),
        "lambda": lambda: nn.HybridLambda("no_such_function"), "lambda of a number": lambda: nn.Lambda(3),
        "layout": lambda: nn.Conv2D(2, 3, layout="CHWN"), "kernel": lambda: nn.Conv2D(2, (3, 3, 3)),
        "split": lambda: part(mx, "gluon.utils").split_data(mx.nd.ones((3, 2)), 2),
        "zoo": lambda: part(mx, "gluon.model_zoo.vision").get_model("resnet17"),
    }
    found = {}
    for name, call in cases.items():
        try:
            call()
            found[name] = []
        except Exception as error:
            found[name] = [c.__name__ for c in type(error).__mro__]
    return found


SGD = {"learning_rate": 0.1, "momentum": 0.9, "wd": 1e-3}
CASES = {
    "mlp": trained(mlp, (12, 6), "sgd", SGD, False), "hybrid mlp": trained(mlp, (12, 6), "sgd", SGD, True),
    "mlp with adam": trained(mlp, (12, 6), "adam", {"learning_rate": 0.01}, True),
    "lenet": trained(lenet, (8, 1, 14, 14), "sgd", SGD, False),
    "hybrid lenet": trained(lenet, (8, 1, 14, 14), "nag", SGD, True),
    "two devices": trained(mlp, (12, 6), "sgd", SGD, True, contexts=2),
    "two devices with a local store": trained(mlp, (12, 6), "adam", {"learning_rate": 0.01}, False, 2, "local"),
    "clipped": trained(mlp, (12, 6), "sgd", SGD, True, clip=0.5),
    "language model": language_model(False), "hybrid language model": language_model(True),
    "names": names, "traced": traced,
    "refusals": refusals,
}


def answer(mx, case):
    """What a program gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CASES[case](mx)


if __name__ == "__main__":
    import answers

    answers.run(__file__, PATH, CASES, answer)
