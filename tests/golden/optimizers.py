"""Weights and states after 20 updates by each optimizer of MXNet 1.9.1, in optimizers.json: `optimizers.py`, run by
MXNet's Python. The same program runs under mxc."""
import json
from pathlib import Path

import numpy as np

PATH = Path(__file__).with_suffix(".json")
STEPS = 20
SHAPES = {"fc_weight": (2, 3), "fc_bias": (3,), "bn_gamma": (2,)}
SOME = {"wd": 0.1, "rescale_grad": 0.5, "clip_gradient": 0.3}
# optimizer: its settings, each run alone and with SOME
SETTINGS = {
    "sgd": [{"learning_rate": 0.1}, {"learning_rate": 0.1, "momentum": 0.9}],
    "ccsgd": [{"momentum": 0.9}],
    "nag": [{"learning_rate": 0.1}, {"learning_rate": 0.1, "momentum": 0.9}],
    "signum": [{}, {"momentum": 0}, {"wd_lh": 0.05}],
    "dcasgd": [{"learning_rate": 0.1}, {"learning_rate": 0.1, "lamda": 0.2}],  # with momentum MXNet raises
    "lars": [{"learning_rate": 0.1}, {"learning_rate": 0.1, "momentum": 0.9, "eta": 0.1, "eps": 0.01},
             {"learning_rate": 0.1, "momentum": 0.9, "eta": 0.1, "momentum_correction": False}],
    "lbsgd": [{"learning_rate": 0.1, "momentum": 0.9, "batch_scale": 4, "updates_per_epoch": 2, "warmup_epochs": 3,
               "warmup_strategy": strategy} for strategy in ("linear", "power2", "sqrt", "lars", "none")]
             + [{"learning_rate": 0.1, "batch_scale": 3, "updates_per_epoch": 5, "begin_epoch": 2}, {}],
    "adam": [{}, {"learning_rate": 0.1, "beta1": 0.8, "beta2": 0.9, "epsilon": 0.01}],
    "adamax": [{}, {"learning_rate": 0.1, "beta1": 0.8, "beta2": 0.9}],
    "nadam": [{}, {"learning_rate": 0.1, "beta1": 0.8, "beta2": 0.9, "epsilon": 0.01, "schedule_decay": 0.1}],
    "adagrad": [{}, {"learning_rate": 0.1, "eps": 0.01}],
    "adadelta": [{}, {"rho": 0.5, "epsilon": 0.01}],
    "rmsprop": [{}, {"centered": True}, {"learning_rate": 0.1, "gamma1": 0.8, "gamma2": 0.7, "epsilon": 0.01,
                                         "centered": True, "clip_weights": 0.6}, {"clip_weights": 0.6}],
    "ftrl": [{}, {"lamda1": 0.2, "learning_rate": 0.5, "beta": 2}],
    "ftml": [{}, {"learning_rate": 0.1, "beta1": 0.8, "beta2": 0.9, "epsilon": 0.01}],
    "lamb": [{}, {"learning_rate": 0.1, "beta1": 0.8, "beta2": 0.9, "epsilon": 0.01, "lower_bound": 0.5,
                  "upper_bound": 1.5}, {"learning_rate": 0.1, "bias_correction": False}],
    "test": [{}],
}
FACTOR = {"learning_rate": 0.2, "step": 4, "factor": 0.5}  # of the runs whose rates change


def questions():
    """[optimizer, settings, dtype of the weights, whether all weights go to the updater in one call]"""
    found = []
    for name, settings in SETTINGS.items():
        for given in settings:
            for more in ({}, SOME):
                found.append([name, {**given, **more}, "float32", False])
                if name in ("sgd", "lars", "lamb", "adam"):
                    found.append([name, {**given, **more}, "float32", True])
        mixed = {**settings[-1], **SOME, "multi_precision": True}
        if name not in ("lbsgd", "dcasgd"):  # these do not take states of other dtypes
            found.append([name, mixed, "float16", name == "lamb"])
        if name in ("sgd", "nag", "adam"):
            found.append([name, {**settings[-1], **SOME}, "float16", False])
        if name == "sgd":
            found.append([name, {**settings[0], **SOME, "multi_precision": True}, "float16", False])
            found += [[name, mixed, "float16", True], [name, {**mixed, "momentum": 0}, "float16", True]]
        if name in ("sgd", "adam"):
            found.append([name, {**settings[-1], **SOME}, "float64", False])
        found.append([name, {**settings[-1], **SOME, "scheduled": True}, "float32", name == "lars"])
    return found


def flat(state):
    """The arrays of a state, in order."""
    if isinstance(state, (list, tuple)):
        return [a for part in state for a in flat(part)]
    return [] if state is None else [state]


def start(mx, name, settings, dtype):
    """The updater of an optimizer, and the weights."""
    given = dict(settings)
    if given.pop("scheduled", False):
        rate = given.pop("learning_rate", FACTOR["learning_rate"])
        given["lr_scheduler"] = mx.lr_scheduler.FactorScheduler(FACTOR["step"], FACTOR["factor"], base_lr=rate)
        given["learning_rate"] = rate
    optimizer = mx.optimizer.create(name, param_idx2name=dict(enumerate(SHAPES)), **given)
    rng = np.random.RandomState(5)
    weights = [mx.nd.array(rng.uniform(-1, 1, shape), dtype=dtype) for shape in SHAPES.values()]
    return mx.optimizer.get_updater(optimizer), weights


def advance(mx, updater, weights, first, steps, together=False):
    """Updates with gradients that the number of the step gives."""
    for step in range(first, first + steps):
        rng = np.random.RandomState(100 + step)
        grads = [mx.nd.array(rng.uniform(-1, 1, w.shape), dtype=w.dtype) for w in weights]
        if together:
            updater(list(range(len(weights))), grads, weights)
        else:
            for i, (weight, grad) in enumerate(zip(weights, grads, strict=True)):
                updater(i, grad, weight)


def answer(mx, question):
    name, settings, dtype, together = json.loads(question)
    updater, weights = start(mx, name, settings, dtype)
    advance(mx, updater, weights, 0, STEPS, together)
    states = [a for i in sorted(updater.states) for a in flat(updater.states[i])]
    return [[np.dtype(a.dtype).name, [float(f"{x:.9g}") for x in a.asnumpy().ravel().tolist()]]
            for a in (*weights, *states)]


if __name__ == "__main__":
    import answers

    answers.run(__file__, PATH, [json.dumps(q) for q in questions()], answer)
