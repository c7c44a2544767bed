"""Programs of bench/gluon.py: networks that train, and one that predicts. They print runs per second of CPU time."""

# How often something runs in a second of CPU time, the best of three.
SECOND = """
import time

def second(run, wait):
    best = 0.0
    for _ in range(3):
        count, begin = 0, time.process_time()
        while (passed := time.process_time() - begin) < 1:
            run()
            wait()
            count += 1
        best = max(best, count / passed)
    return best
"""

# A program for mxc and MXNet alike: `mx` is the module, `case` names the network, `hybrid` says if it is compiled.
PROGRAM = SECOND + """
import importlib, json
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
print(json.dumps(second(run, mx.nd.waitall)))
"""

# The same networks, data and steps; `mx` is torch. hybrid: by torch.compile.
TORCH = SECOND + """
import json, os
import torch
from torch import nn
from torch.nn import functional as F
torch.manual_seed(0)
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))

class Unit(nn.Module):
    # Version 1 of the residual units, of two convolutions or, narrow, of three.
    def __init__(self, before, after, stride, narrow):
        super().__init__()
        inner = after // 4 if narrow else after
        sizes = [(before, inner, 1), (inner, inner, 3), (inner, after, 1)] if narrow else [
            (before, after, 3), (after, after, 3)]
        parts = []
        for number, (i, o, k) in enumerate(sizes):
            parts += [nn.Conv2d(i, o, k, stride if number == 0 else 1, k // 2, bias=narrow and k == 1),
                      nn.BatchNorm2d(o), nn.ReLU()]
        self.body = nn.Sequential(*parts[:-1])
        self.beside = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)) if (
            stride > 1 or before != after) else nn.Identity()

    def forward(self, x):
        return F.relu(self.beside(x) + self.body(x))

def resnet(first, widths, counts, classes, narrow):
    parts, before = first, 64
    for number, (width, count) in enumerate(zip(widths, counts)):
        for unit in range(count):
            parts.append(Unit(before, width, 2 if number and not unit else 1, narrow))
            before = width
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes))

class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.lstm = nn.Embedding(1000, 128), nn.LSTM(128, 128, batch_first=True)
        self.decode = nn.Linear(128, 1000)

    def forward(self, x):
        return self.decode(self.lstm(self.embed(x))[0])

def mlp():
    return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))

def resnet18():
    return resnet([nn.Conv2d(3, 64, 3, 1, 1, bias=False)], (64, 128, 256, 512), (2, 2, 2, 2), 10, False)

if case == "resnet50":
    net = resnet([nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)],
                 (256, 512, 1024, 2048), (3, 4, 6, 3), 1000, True).eval()
    x = torch.rand(1, 3, 224, 224)
    call = torch.compile(net) if hybrid else net

    def run():
        with torch.no_grad():
            call(x)
else:
    if case == "lstm":
        net, x, y = Language(), torch.randint(0, 1000, (32, 20)), torch.randint(0, 1000, (32, 20))
    else:
        net, shape = {"mlp": (mlp, (64, 784)), "resnet18": (resnet18, (16, 3, 32, 32))}[case]
        net, x, y = net(), torch.rand(shape), torch.randint(0, 10, shape[:1])

    def objective(x, y):
        return F.cross_entropy(net(x).flatten(0, -2), y.flatten())

    call = torch.compile(objective) if hybrid else objective
    trainer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    def run():
        trainer.zero_grad()
        call(x, y).backward()
        trainer.step()
for _ in range(3):
    run()
print(json.dumps(second(run, lambda: None)))
"""
