"""Layers and losses of Gluon, written once for MXNet and mxc: names, shapes, outputs, gradients, running statistics.

With MXNet's Python, `gluon_layers.py` writes what MXNet 1.9.1 answers to gluon_layers.json, a line for each case;
tests/test_gluon_layers.py compares mxc's, hybridised and not.
"""
import importlib
import warnings
from pathlib import Path

import numpy as np

PATH = Path(__file__).with_suffix(".json")
NN, LOSS = "gluon.nn", "gluon.loss"


def part(mx, name):
    """A module of Gluon."""
    return importlib.import_module(f"{mx.__name__}.{name}")


def short(array):
    """The shape, and some of the values with the sum of all."""
    values = np.asarray(array.asnumpy(), "float64").ravel()
    return [list(array.shape), [float(f"{v:.5g}") for v in (*values[:6], values.sum())]]


def values(seed, *shape):
    return np.random.RandomState(seed).uniform(-1, 1, shape)


def give(block):
    """Give every parameter values, in the order of their paths."""
    for seed, (path, param) in enumerate(sorted(block._collect_params_with_prefix().items())):
        if path.endswith("gamma") and param.grad_req == "null":
            continue  # MXNet's operator sets it to 1, where it is 1 already
        positive = "var" in path or "gamma" in path
        made = values(seed, *param.shape)
        param.set_data(part_of(block).nd.array(np.abs(made) + 0.5 if positive else made * 0.7))


def part_of(block):
    return importlib.import_module(type(block).__module__.split(".")[0])


def layer(make, *shapes, dtype="float32", flows=True):
    """A layer, made by `make(nn)`, on arrays of these shapes: one step of training, and a look at it.

    flows: gradients flow into the inputs.
    """
    def call(mx, hybrid):
        nn = part(mx, NN)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            block = make(nn)
            block.initialize()
            if dtype != "float32":
                block.cast(dtype)
            if hybrid:
                block.hybridize()
            inputs = [mx.nd.array(values(100 + i, *shape), dtype=dtype) for i, shape in enumerate(shapes)]
            block(*inputs)
            give(block)
            for array in inputs if flows else ():
                array.attach_grad()
            with mx.autograd.record():
                out = block(*inputs)
                total = (out * out).sum()
            total.backward()
            found = {"repr": repr(block), "out": short(out), "inputs": [short(a.grad) for a in inputs if flows]}
            for path, param in sorted(block._collect_params_with_prefix().items()):
                found[path] = [param.name.split("_", 1)[-1], list(param.shape), param.grad_req, short(param.data()),
                               short(param.grad()) if param.grad_req != "null" else None]
            found["inference"] = short(block(*inputs))
        return found

    return call


def loss(make, *inputs, grads=1):
    """A loss, made by `make(loss)`, of arrays."""
    def call(mx, hybrid):
        block = make(part(mx, LOSS))
        if hybrid:
            block.hybridize()
        arrays = [None if a is None else mx.nd.array(a) for a in inputs]
        for array in arrays[:grads]:
            array.attach_grad()
        with mx.autograd.record():
            out = block(*arrays)
        out.backward()
        return {"repr": repr(block), "out": short(out), "inputs": [short(a.grad) for a in arrays[:grads]]}

    return call


def moved(nn, *args, **options):
    """A convolution of gluon.contrib."""
    return part(part_of(nn.Flatten()), "gluon.contrib.cnn").DeformableConvolution(*args, prefix="moved_", **options)


TIMES = values(7, 2, 7, 5) * 3  # (batch, steps, classes)
PRED, OTHER, WEIGHT = values(1, 4, 5) * 2, values(2, 4, 5) * 2, np.abs(values(3, 4, 1))
CLASSES, BINARY = np.array([0, 4, 2, 1]), (values(2, 4, 5) > 0).astype("float32")
SIGMOID = 1 / (1 + np.exp(-PRED))
CASES = {
    "dense": layer(lambda nn: nn.Dense(3), (2, 5)),
    "dense relu, no bias, not flat": layer(lambda nn: nn.Dense(3, activation="relu", use_bias=False, flatten=False),
                                           (2, 4, 5)),
    "embedding of float16": layer(lambda nn: nn.Embedding(7, 3), (2, 4), dtype="float16", flows=False),
    "tanh of float16": layer(lambda nn: nn.Activation("tanh"), (3, 4), dtype="float16"),
    "embedding": layer(lambda nn: nn.Embedding(7, 3), (2, 4), flows=False),
    "deformable": layer(lambda nn: moved(nn, 4, 3), (2, 3, 6, 5)),
    "deformable by groups": layer(lambda nn: moved(
        nn, 4, (3, 2), (2, 1), 1, (1, 2), groups=2, num_deformable_group=2, use_bias=False, offset_use_bias=False,
        activation="tanh"), (2, 4, 5, 6)),
    "flatten": layer(lambda nn: nn.Flatten(), (2, 3, 4)),
    "dropout of nothing": layer(lambda nn: nn.Dropout(0), (3, 4)),
    "lambda": layer(lambda nn: nn.HybridLambda("tanh"), (3, 4)),
    "own lambda": layer(lambda nn: nn.HybridLambda(lambda F, x: F.relu(x) * 2), (3, 4)),
    "sequential": layer(lambda nn: _sequential(nn.Sequential(), nn), (2, 5)),
    "hybrid sequential": layer(lambda nn: _sequential(nn.HybridSequential(), nn), (2, 5)),
    **{name: layer(lambda nn, name=name: nn.Activation(name), (3, 4))
       for name in ("relu", "sigmoid", "tanh", "softrelu", "softsign")},
    "leaky": layer(lambda nn: nn.LeakyReLU(0.2), (3, 4)), "prelu": layer(lambda nn: nn.PReLU(), (3, 4, 2)),
    "prelu of channels": layer(lambda nn: nn.PReLU(in_channels=4), (3, 4, 2)),
    "elu": layer(lambda nn: nn.ELU(0.5), (3, 4)), "selu": layer(lambda nn: nn.SELU(), (3, 4)),
    "gelu": layer(lambda nn: nn.GELU(), (3, 4)), "swish": layer(lambda nn: nn.Swish(1.5), (3, 4)),
    "batch norm": layer(lambda nn: nn.BatchNorm(), (3, 4, 5)),
    "batch norm of the last axis": layer(lambda nn: nn.BatchNorm(axis=-1, momentum=0.8, epsilon=0.01), (3, 4, 5)),
    "batch norm, fixed": layer(lambda nn: nn.BatchNorm(center=False, scale=False), (3, 4)),
    "batch norm, global": layer(lambda nn: nn.BatchNorm(use_global_stats=True), (3, 4, 2, 2)),
    "batch norm relu": layer(lambda nn: nn.BatchNormReLU(), (3, 4, 5, 2)),
    "instance norm": layer(lambda nn: nn.InstanceNorm(), (2, 3, 4, 5)),
    "instance norm, scaled, axis 2": layer(lambda nn: nn.InstanceNorm(axis=2, scale=True), (2, 3, 4)),
    "layer norm": layer(lambda nn: nn.LayerNorm(), (2, 3, 4)),
    "layer norm of axis 1": layer(lambda nn: nn.LayerNorm(axis=1, scale=False), (2, 3, 4)),
    "group norm": layer(lambda nn: nn.GroupNorm(num_groups=2), (2, 4, 3)),
    "conv1d": layer(lambda nn: nn.Conv1D(3, 3, strides=2, padding=1), (2, 4, 7)),
    "conv2d": layer(lambda nn: nn.Conv2D(4, (3, 2), activation="relu"), (2, 3, 5, 6)),
    "conv2d in groups": layer(lambda nn: nn.Conv2D(4, 3, groups=2, dilation=2, padding=2, use_bias=False),
                              (1, 4, 6, 6)),
    "conv3d": layer(lambda nn: nn.Conv3D(2, 2, padding=(1, 0, 1)), (1, 2, 3, 4, 3)),
    "conv1d transpose": layer(lambda nn: nn.Conv1DTranspose(3, 3, strides=2, output_padding=1), (2, 4, 5)),
    "conv2d transpose": layer(lambda nn: nn.Conv2DTranspose(3, 3, strides=2, padding=1), (2, 4, 3, 4)),
    "conv3d transpose": layer(lambda nn: nn.Conv3DTranspose(2, 2, in_channels=3), (1, 3, 2, 3, 2)),
    "max pool 1d": layer(lambda nn: nn.MaxPool1D(), (2, 3, 7)),
    "max pool 2d, full": layer(lambda nn: nn.MaxPool2D(3, 2, 1, ceil_mode=True), (2, 3, 6, 7)),
    "max pool 3d": layer(lambda nn: nn.MaxPool3D(), (1, 2, 4, 4, 4)),
    "avg pool 1d": layer(lambda nn: nn.AvgPool1D(3, 1, 1), (2, 3, 7)),
    "avg pool 2d without padding": layer(lambda nn: nn.AvgPool2D(3, 2, 1, count_include_pad=False), (2, 3, 6, 7)),
    "avg pool 3d": layer(lambda nn: nn.AvgPool3D(2), (1, 2, 4, 5, 4)),
    "global max pool": layer(lambda nn: nn.GlobalMaxPool2D(), (2, 3, 4, 5)),
    "global avg pool": layer(lambda nn: nn.GlobalAvgPool1D(), (2, 3, 4)),
    "reflection pad": layer(lambda nn: nn.ReflectionPad2D(2), (1, 2, 4, 5)),
    "l2": loss(lambda ls: ls.L2Loss(), PRED, OTHER),
    "l2 weighted": loss(lambda ls: ls.L2Loss(3.0), PRED, OTHER, WEIGHT),
    "l1": loss(lambda ls: ls.L1Loss(), PRED, OTHER, WEIGHT),
    "bce": loss(lambda ls: ls.SigmoidBCELoss(), PRED, BINARY),
    "bce of probabilities": loss(lambda ls: ls.SigmoidBCELoss(from_sigmoid=True), SIGMOID, BINARY, WEIGHT),
    "bce with more of the positive": loss(lambda ls: ls.SigmoidBCELoss(), PRED, BINARY, WEIGHT, np.abs(OTHER[:1])),
    "softmax ce": loss(lambda ls: ls.SoftmaxCELoss(), PRED, CLASSES),
    "softmax ce of probabilities": loss(lambda ls: ls.SoftmaxCELoss(sparse_label=False), PRED, np.abs(OTHER)),
    "softmax ce of axis 1": loss(lambda ls: ls.SoftmaxCELoss(axis=1), values(4, 2, 3, 4), np.array([[0, 2, 1, 1]] * 2)),
    "kl": loss(lambda ls: ls.KLDivLoss(), PRED, np.abs(OTHER)),
    "kl of scores": loss(lambda ls: ls.KLDivLoss(from_logits=False), PRED, np.abs(OTHER), WEIGHT),
    "huber": loss(lambda ls: ls.HuberLoss(rho=0.7), PRED, OTHER),
    "hinge": loss(lambda ls: ls.HingeLoss(), PRED, BINARY * 2 - 1),
    "squared hinge": loss(lambda ls: ls.SquaredHingeLoss(margin=2), PRED, BINARY * 2 - 1, WEIGHT),
    "logistic": loss(lambda ls: ls.LogisticLoss(), PRED, BINARY * 2 - 1),
    "logistic of 0 and 1": loss(lambda ls: ls.LogisticLoss(label_format="binary"), PRED, BINARY),
    "triplet": loss(lambda ls: ls.TripletLoss(), PRED, OTHER, values(6, 4, 5), grads=3),
    "poisson": loss(lambda ls: ls.PoissonNLLLoss(), PRED, np.abs(OTHER)),
    "cosine": loss(lambda ls: ls.CosineEmbeddingLoss(margin=0.1), PRED, OTHER, np.array([1, -1, 1, -1]), grads=2),
    "ctc": loss(lambda ls: ls.CTCLoss(), TIMES, np.array([[0, 3, 1], [2, 2, -1]])),
    "ctc of time first": loss(lambda ls: ls.CTCLoss("TNC", "TN", weight=0.5), TIMES.swapaxes(0, 1),
                              np.array([[0, 3, 1], [2, 2, -1]]).T),
    "ctc with lengths": loss(lambda ls: ls.CTCLoss(), TIMES, np.array([[0, 3, 1], [2, 2, 1]]), np.array([5, 7]),
                             np.array([3, 2])),
    "ctc weighted": loss(lambda ls: ls.CTCLoss(), TIMES, np.array([[0, 3, 1], [2, 2, -1]]), None, None,
                         np.array([0.5, 2])),
    "sdml": loss(lambda ls: ls.SDMLLoss(), PRED, OTHER, grads=2),
}


def _sequential(net, nn):
    with net.name_scope():
        net.add(nn.Dense(4, activation="tanh"), nn.Dropout(0), nn.Dense(3))
    return net


def answer(mx, case, hybrid=False):
    """What a case gives."""
    return CASES[case](mx, hybrid)


if __name__ == "__main__":
    import answers

    answers.run(__file__, PATH, CASES, answer)
