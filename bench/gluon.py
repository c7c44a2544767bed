"""Training steps and predictions per second with Gluon: mxc and MXNet, hybridised or not, and how many times as many
mxc does.

    python bench/gluon.py [--mxnet PYTHON] [--threads 1 2] [--rounds N] [--cases WORD ...]

Both run the same program, in processes of their own, by turns; a number is the best second of all rounds. The data are
random, and in memory. A step is forward, backward and the update of a Trainer.
"""
from __future__ import annotations

from harness.programs import answer, arguments

# A program for mxc and MXNet alike: `mx` is the module, `case` names the network, `hybrid` says if it is compiled.
PROGRAM = """
import importlib, json, time
import numpy as np
gluon, nn, rnn, loss, zoo = (importlib.import_module(mx.__name__ + part) for part in (
    ".gluon", ".gluon.nn", ".gluon.rnn", ".gluon.loss", ".gluon.model_zoo.vision"))
draw = np.random.RandomState(0)

def mlp():
    net = nn.HybridSequential()
    with net.name_scope():
        net.add(nn.Dense(128, activation="relu"), nn.Dense(64, activation="relu"), nn.Dense(10))
    return net, (64, 784), 10

def resnet18():
    return zoo.get_resnet(1, 18, classes=10, thumbnail=True), (16, 3, 32, 32), 10

class Language(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.embed, self.lstm = nn.Embedding(1000, 128), rnn.LSTM(128, layout="NTC")
            self.decode = nn.Dense(1000, flatten=False)

    def hybrid_forward(self, F, x):
        return self.decode(self.lstm(self.embed(x)))

def second(run):
    best = 0.0
    for _ in range(3):
        count, begin = 0, time.process_time()
        while (passed := time.process_time() - begin) < 1:
            run()
            mx.nd.waitall()
            count += 1
        best = max(best, count / passed)
    return best

if case == "resnet50":
    net, x = zoo.resnet50_v1(), mx.nd.array(draw.rand(1, 3, 224, 224))
    net.initialize(mx.init.Xavier())
    if hybrid:
        net.hybridize(static_alloc=True, static_shape=True)
    run = lambda: net(x)
else:
    if case == "lstm":
        net, x, y = Language(), draw.randint(0, 1000, (32, 20)), draw.randint(0, 1000, (32, 20))
    else:
        net, shape, classes = {"mlp": mlp, "resnet18": resnet18}[case]()
        x, y = draw.rand(*shape), draw.randint(0, classes, shape[0])
    x, y, objective = mx.nd.array(x), mx.nd.array(y), loss.SoftmaxCrossEntropyLoss()
    net.initialize(mx.init.Xavier())
    if hybrid:
        net.hybridize(static_alloc=True, static_shape=True)
        objective.hybridize(static_alloc=True, static_shape=True)
    net(x)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01, "momentum": 0.9})

    def run():
        with mx.autograd.record():
            value = objective(net(x), y)
        value.backward()
        trainer.step(len(x))
run()
mx.nd.waitall()
print(json.dumps(second(run)))
"""
CASES = ("mlp", "resnet18", "lstm", "resnet50")


def main() -> None:
    args = arguments(__doc__, CASES, [1])
    theirs = "mxnet" in args.peers
    print(f"{'':12}{'':12}{'threads':>8}{'mxc /CPU s':>14}{'MXNet':>12}{'x':>7}")
    for case in args.cases:
        for hybrid in (True, False):
            for threads in args.threads:
                best = dict.fromkeys(args.peers, 0.0)
                for _ in range(args.rounds):
                    for peer, python in args.peers.items():
                        best[peer] = max(best[peer], answer(python, peer, PROGRAM, threads, case=case, hybrid=hybrid))
                other = f"{best['mxnet']:12.1f}{best['mxc'] / best['mxnet']:7.2f}" if theirs else ""
                print(f"{case:12}{'hybridised' if hybrid else 'eager':12}{threads:8}{best['mxc']:14.1f}{other}",
                      flush=True)


if __name__ == "__main__":
    main()
