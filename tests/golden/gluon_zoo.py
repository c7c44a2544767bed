"""The networks of Gluon's zoo: names, shapes and graphs as digests, and outputs for parameters made by a recipe.

With MXNet's Python, `gluon_zoo.py` writes what MXNet 1.9.1 answers to gluon_zoo.json, a line for each network;
tests/test_gluon_zoo.py compares mxc's.
"""
import hashlib
import importlib
import json
from pathlib import Path

import numpy as np

PATH = Path(__file__).with_suffix(".json")
NARROW, WIDE, INCEPTION = 32, 224, 299  # pixels: the least that a network takes, and what it was made for
# How wide the input is for which outputs are compared: less than the network was made for, where its last pooling
# takes what there is.
WIDTHS = {
    "alexnet": 64, **{f"vgg{n}{bn}": NARROW for n in (11, 13, 16, 19) for bn in ("", "_bn")},
    **{f"resnet{n}_v{v}": NARROW for v in (1, 2) for n in (18, 34, 50, 101, 152)},
    "squeezenet1.0": WIDE, "squeezenet1.1": WIDE, **{f"densenet{n}": WIDE for n in (121, 161, 169, 201)},
    "inceptionv3": INCEPTION, **{f"mobilenet{m}": NARROW for m in ("1.0", "0.75", "0.5", "0.25")},
    **{f"mobilenetv2_{m}": NARROW for m in ("1.0", "0.75", "0.5", "0.25")},
}
CASES = tuple(WIDTHS)
CLASSES = 10


def digest(value):
    """A short hash of a value, by its JSON."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def make(mx, name):
    """The network, named as the first one of a program."""
    vision = importlib.import_module(f"{mx.__name__}.gluon.model_zoo.vision")
    with mx.name.NameManager():
        return vision.get_model(name, classes=CLASSES)


def structure(mx, name):
    """What a network is, before it has values: the lists themselves."""
    net = make(mx, name)
    width = INCEPTION if name == "inceptionv3" else WIDE
    net.infer_shape(mx.nd.zeros((1, 3, width, width)))
    params = net.collect_params().values()
    with mx.name.NameManager():
        graph = net(mx.sym.var("data"))
    return {"prefix": net.prefix, "names": [p.name for p in params], "shapes": [list(p.shape) for p in params],
            "grad_req": [p.grad_req for p in params], "paths": sorted(net._collect_params_with_prefix()),
            "repr": repr(net), "graph": graph.get_internals().list_outputs()}


def output(mx, name):
    """The first outputs and their largest size, for values made by a recipe in the order of the parameters' paths."""
    net, width = make(mx, name), WIDTHS[name]
    data = mx.nd.array(np.random.RandomState(0).randn(1, 3, width, width))
    net.infer_shape(data)
    net.initialize()
    for seed, (path, param) in enumerate(sorted(net._collect_params_with_prefix().items())):
        random = np.random.RandomState(seed)
        if len(param.shape) > 1:
            values = random.randn(*param.shape) * np.sqrt(2 / np.prod(param.shape[1:]))
        else:
            values = random.rand(*param.shape) * .5 + .75 if path.endswith(("var", "gamma")) else (
                random.randn(*param.shape) * .1)
        param.set_data(mx.nd.array(values))
    net.hybridize()
    found = net(data).asnumpy().ravel().astype("float64")
    return [float(f"{value:.6g}") for value in (*found, np.abs(found).max())]


def answer(mx, name):
    """All of a network, in short."""
    what = structure(mx, name)
    return {"parameters": len(what["names"]), "outputs": len(what["graph"]),
            **{key: digest(value) for key, value in what.items()}, "output": output(mx, name)}


if __name__ == "__main__":
    import answers

    answers.run(__file__, PATH, CASES, answer)
