"""What training by modules gives in MXNet 1.9.1, in modules.json: `modules.py`, run by MXNet's Python. The same
programs run under mxc, see tests/test_module_training.py."""
import json
import logging
import os
import re
import sys
import tempfile
from pathlib import Path

import numpy as np

PATH = Path(__file__).with_suffix(".json")
CHECKPOINT = PATH.with_name("lenet")  # the prefix of MXNet's checkpoint
STEPS = 20
ROWS = 40
MLP_ROW, LENET_ROW = (6,), (1, 12, 12)
CLASSES = 3
SCHEDULED = {"learning_rate": 0.2, "momentum": 0.9, "wd": 0.01, "scheduled": True}
OPTIMIZERS = {  # by name; "name/..." for more than one
    "sgd": SCHEDULED, "sgd/plain": {"learning_rate": 0.1}, "nag": {"learning_rate": 0.05, "momentum": 0.9, "wd": 0.01},
    "adam": {"learning_rate": 0.01}, "rmsprop": {"learning_rate": 0.01}, "adagrad": {"learning_rate": 0.05},
    "adadelta": {"rho": 0.9}, "ftrl": {"learning_rate": 0.1}, "lamb": {"learning_rate": 0.01},
    "signum": {"learning_rate": 0.01, "momentum": 0.9},
}
PARALLEL = [  # batch size, loads of the devices, kvstore
    [10, [1], "object"], [10, [1, 1], "local"], [10, [1, 1], "device"], [10, [1, 1], None], [9, [1, 1], "object"],
    [7, [1, 2], "local"], [8, [1, 1, 1], "local"],
]


def mlp(mx):
    sym = mx.sym
    hidden = sym.Activation(sym.FullyConnected(sym.var("data"), num_hidden=8, name="fc1"), act_type="relu")
    return sym.SoftmaxOutput(sym.FullyConnected(hidden, num_hidden=CLASSES, name="fc2"), name="softmax")


def lenet(mx):
    sym = mx.sym
    first = sym.Convolution(sym.var("data"), kernel=(3, 3), num_filter=4, no_bias=True, name="conv1")
    first = sym.BatchNorm(first, fix_gamma=False, name="bn1")
    first = sym.Pooling(sym.Activation(first, act_type="tanh"), pool_type="max", kernel=(2, 2), stride=(2, 2))
    second = sym.Activation(sym.Convolution(first, kernel=(3, 3), num_filter=6, name="conv2"), act_type="relu")
    flat = sym.Flatten(sym.Pooling(second, pool_type="avg", kernel=(3, 3)))
    hidden = sym.Activation(sym.FullyConnected(flat, num_hidden=10, name="fc1"), act_type="tanh")
    return sym.SoftmaxOutput(sym.FullyConnected(hidden, num_hidden=CLASSES, name="fc2"), name="softmax")


NETWORKS = {"mlp": (mlp, MLP_ROW), "lenet": (lenet, LENET_ROW)}


def data(row):
    """Rows and their classes, which a network can learn."""
    draw = np.random.RandomState(3)
    values = draw.uniform(-1, 1, (ROWS, *row)).astype(np.float32)
    scores = values.reshape(ROWS, -1) @ draw.normal(size=(int(np.prod(row)), CLASSES))
    return values, scores.argmax(axis=1).astype(np.float32)


def start(mx, symbol, row):
    """The first values of parameters and states."""
    draw = np.random.RandomState(5)
    shapes, _, states = symbol.infer_shape(data=(1, *row))
    params = {name: mx.nd.array(draw.uniform(-0.5, 0.5, shape) + (1 if name.endswith("gamma") else 0))
              for name, shape in zip(symbol.list_arguments(), shapes, strict=True)
              if name not in ("data", "softmax_label")}
    return params, {name: mx.nd.array(np.ones(shape) if name.endswith("var") else np.zeros(shape))
                    for name, shape in zip(symbol.list_auxiliary_states(), states, strict=True)}


def fingerprint(params):
    """Of each array the products with three vectors, and its length."""
    found = {}
    for name, array in sorted(params.items()):
        values = array.asnumpy().astype(np.float64).reshape(-1)
        vectors = np.random.RandomState(values.size).normal(size=(3, values.size))
        found[name] = [float(f"{number:.8g}") for number in (*(vectors @ values), np.linalg.norm(values))]
    return found


def settings(mx, name):
    params = dict(OPTIMIZERS[name])
    if params.pop("scheduled", False):
        params["lr_scheduler"] = mx.lr_scheduler.FactorScheduler(step=6, factor=0.5)
    return {"optimizer": name.partition("/")[0], "optimizer_params": params}


def iterator(mx, row, batch):
    values, labels = data(row)
    return mx.io.NDArrayIter(values, labels, batch_size=batch)


def trained(mx, network, optimizer="sgd", batch=8, loads=(1,), kvstore="local", **more):
    """The module after STEPS updates."""
    make, row = NETWORKS[network]
    symbol = make(mx)
    module = mx.mod.Module(symbol, context=[mx.cpu(i) for i in range(len(loads))], work_load_list=list(loads), **more)
    batches = iterator(mx, row, batch)
    module.bind(batches.provide_data, batches.provide_label)
    module.init_params(None, *start(mx, symbol, row))
    module.init_optimizer(mx.kv.create("local") if kvstore == "object" else kvstore, **settings(mx, optimizer))
    done = 0
    while done < STEPS:
        batches.reset()
        for each in batches:
            if done == STEPS:
                break
            module.forward_backward(each)
            module.update()
            mx.nd.waitall()  # MXNet's BatchNorm may else take the next batch's statistics for this one's
            done += 1
    return module


def both(module):
    return [fingerprint(params) for params in module.get_params()]


def optimizers(mx, network):
    return {name: both(trained(mx, network, name)) for name in OPTIMIZERS}


def parallel(mx, network):
    return [both(trained(mx, network, "sgd/plain", *case)) for case in PARALLEL]


def fixed(mx, network):
    # not a weight, without whose gradient MXNet computes none of the bias either
    return both(trained(mx, network, fixed_param_names=["fc1_bias", "fc2_bias"]))


class Lines(logging.Handler):
    """Keeps what is logged, without times: each line with # for the numbers, and these."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        line = re.sub(r"(Time cost=|Speed: )[\d.e+]+", r"\1T", record.getMessage())
        line = re.sub(r'"\S*/', '"', line)
        number = r"(?<==)\d+\.\d+"
        self.lines.append([re.sub(number, "#", line), [float(n) for n in re.findall(number, line)]])


def logged(work):
    """What `work` gives, and the lines that it logs."""
    root, handler = logging.getLogger(), Lines()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        return work(), handler.lines
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def rounded(values):
    return [[name, float(f"{value:.6g}")] for name, value in values]


def tutorial(mx, network):
    """The usual program: fit with a schedule, callbacks, a store and checkpoints, then predict and score."""
    make, row = NETWORKS[network]
    symbol = make(mx)
    args, auxs = start(mx, symbol, row)
    values, labels = data(row)
    train = mx.io.NDArrayIter({"data": values[:32]}, {"softmax_label": labels[:32]}, 8)
    test = mx.io.NDArrayIter({"data": values[30:]}, {"softmax_label": labels[30:]}, 4)  # the last batch is padded
    seen = []
    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, "model")
        module = mx.mod.Module(symbol, context=mx.cpu())
        schedule = mx.lr_scheduler.FactorScheduler(step=20, factor=0.9)
        _, lines = logged(lambda: module.fit(
            train, test, eval_metric=["acc", "ce"], kvstore=mx.kv.create("local"), optimizer="sgd",
            optimizer_params={"learning_rate": 0.1, "momentum": 0.9, "wd": 0.001, "lr_scheduler": schedule},
            arg_params=args, aux_params=auxs, num_epoch=6,
            batch_end_callback=[mx.callback.Speedometer(8, 2), lambda told: seen.append([told.epoch, told.nbatch])],
            epoch_end_callback=mx.callback.do_checkpoint(prefix, period=2)))
        files = sorted(os.listdir(folder))
        outputs = module.predict(test)
        again = mx.mod.Module.load(prefix, 6, context=mx.cpu())
        again.bind(test.provide_data, test.provide_label, for_training=False)
        return {"lines": lines, "seen": seen, "files": files, "params": both(module),
                "outputs": fingerprint({"outputs": outputs}), "again": fingerprint({"outputs": again.predict(test)}),
                "score": rounded(module.score(test, ["acc", "ce"])),
                "first": rounded(module.score(test, mx.metric.Accuracy(), num_batch=1)),
                "shapes": [list(one.shape) for one in (outputs, *module.predict(test, always_output_list=True))],
                "apart": [[list(one.shape) for one in each] for each in module.predict(test, merge_batches=False)]}


def feed_forward(mx, network):
    """The interface before modules."""
    make, row = NETWORKS[network]
    symbol = make(mx)
    args, auxs = start(mx, symbol, row)
    values, labels = data(row)
    train = mx.io.NDArrayIter(values[:32], labels[:32], 8)
    model = mx.model.FeedForward(symbol, ctx=mx.cpu(), num_epoch=4, learning_rate=0.1, momentum=0.9, arg_params=args,
                                 aux_params=auxs, numpy_batch_size=8)
    _, lines = logged(lambda: model.fit(train, eval_data=(values[32:], labels[32:])))
    outputs, given, known = model.predict(mx.io.NDArrayIter(values, labels, 9), return_data=True)
    return {"lines": lines, "params": [fingerprint(model.arg_params), fingerprint(model.aux_params)],
            "shapes": [list(one.shape) for one in (outputs, given, known)],
            "score": float(f"{model.score(mx.io.NDArrayIter(values, labels, 8)):.6g}")}


def arrays(mx, _):
    """The same over arrays, in an order that NumPy draws; what does not fill a batch waits for the next epoch."""
    draw = np.random.RandomState(0)
    values = draw.rand(50, 5)
    labels = (values.dot([1, -2, 3, 0.5, 2]) > 2).astype(np.float32)
    np.random.seed(5)
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    model, lines = logged(lambda: mx.model.FeedForward.create(
        mx.sym.SoftmaxOutput(net, name="softmax"), values, labels, ctx=mx.cpu(), num_epoch=4, learning_rate=0.5,
        numpy_batch_size=16, initializer=mx.init.Zero(), eval_data=(values[:40], labels[:40])))
    return {"lines": lines, "params": fingerprint(model.arg_params)}


def hand_written(mx, network):
    """An iterator as programs write theirs, and a loop of the steps that fit takes."""
    make, row = NETWORKS[network]
    symbol = make(mx)
    values, labels = data(row)

    class Simple(mx.io.DataIter):
        def __init__(self, size, count):
            super().__init__(size)
            self.count, self.cur = count, 0

        @property
        def provide_data(self):
            return [mx.io.DataDesc("data", (self.batch_size, *row))]

        @property
        def provide_label(self):
            return [("softmax_label", (self.batch_size,))]

        def reset(self):
            self.cur = 0

        def __next__(self):
            return self.next()

        def next(self):
            if self.cur == self.count:
                raise StopIteration
            rows = slice(self.cur * self.batch_size, (self.cur + 1) * self.batch_size)
            self.cur += 1
            return mx.io.DataBatch([mx.nd.array(values[rows])], [mx.nd.array(labels[rows])], pad=0, index=None)

    args, auxs = start(mx, symbol, row)
    module, batches = mx.mod.Module(symbol), Simple(8, 4)
    metric = mx.metric.create(["acc", "ce"])
    _, lines = logged(lambda: module.fit(batches, eval_data=Simple(8, 2), eval_metric=metric, num_epoch=10,
                                         optimizer="adam", optimizer_params=(("learning_rate", 0.01),),
                                         arg_params=args, aux_params=auxs))
    scores = rounded(module.score(batches, metric))
    batches.reset()
    metric.reset()
    for batch in batches:
        module.forward(batch, is_train=True)
        module.update_metric(metric, batch.label)
        module.backward()
        module.update()
    return {"lines": lines, "scores": scores, "loop": rounded(metric.get_name_value()), "params": both(module)}


def run(mx, module, network, epochs):
    """The module after more epochs of two batches, by Adam."""
    batches = iterator(mx, NETWORKS[network][1], 20)
    module.bind(batches.provide_data, batches.provide_label)
    if not module.params_initialized:
        module.init_params(None, *start(mx, module.symbol, NETWORKS[network][1]))
    module.init_optimizer(**settings(mx, "adam"))
    for _ in range(epochs):
        batches.reset()
        for each in batches:
            module.forward_backward(each)
            module.update()
            mx.nd.waitall()
    return module


def saved(mx, network, prefix):
    """Trains for 3 epochs and saves a checkpoint."""
    run(mx, mx.mod.Module(NETWORKS[network][0](mx)), network, 3).save_checkpoint(prefix, 3, save_optimizer_states=True)


def loaded(mx, network, prefix):
    """What 3 more epochs make of that checkpoint."""
    return both(run(mx, mx.mod.Module.load(prefix, 3, load_optimizer_states=True), network, 3))


def resumed(mx, network):
    """6 epochs, and 3, a checkpoint, and 3 more: they end alike."""
    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, "model")
        saved(mx, network, prefix)
        return {"whole": both(run(mx, mx.mod.Module(NETWORKS[network][0](mx)), network, 6)),
                "resumed": loaded(mx, network, prefix)}


def sequence_length(mx, key):
    sym = mx.sym
    words = sym.Embedding(sym.var("data"), input_dim=7, output_dim=4, name="embed")
    if key > 3:
        words = sym.broadcast_add(words, sym.var("shift_bias", shape=(1, 1, 4)))
    pooled = sym.mean(words, axis=1)
    return sym.SoftmaxOutput(sym.FullyConnected(pooled, num_hidden=2, name="fc"), name="softmax"), ("data",), \
        ("softmax_label",)


def buckets(mx, _):
    """Batches of several lengths."""
    module = mx.mod.BucketingModule(lambda key: sequence_length(mx, key), default_bucket_key=6)
    draw, found = np.random.RandomState(2), []

    def batch(key, rows=4):
        return mx.io.DataBatch(
            [mx.nd.array(draw.randint(0, 7, (rows, key)))], [mx.nd.array(draw.randint(0, 2, rows))], bucket_key=key,
            provide_data=[mx.io.DataDesc("data", (rows, key))],
            provide_label=[mx.io.DataDesc("softmax_label", (rows,))])

    module.bind([("data", (4, 6))], [("softmax_label", (4,))])
    params = {"embed_weight": draw.normal(size=(7, 4)), "fc_weight": draw.normal(size=(2, 4)),
              "fc_bias": np.zeros(2), "shift_bias": np.zeros((1, 1, 4))}
    module.init_params(None, {name: mx.nd.array(value) for name, value in params.items()}, {})
    module.init_optimizer(optimizer_params={"learning_rate": 0.5})
    for key in (6, 5, 4, 5, 6, 4):
        module.forward(batch(key))
        module.backward()
        module.update()
        found.append([key, list(module.data_shapes[0].shape), fingerprint({"outputs": module.get_outputs()[0]})])
    return [found, both(module)]


def sequential(mx, _):
    """Two modules in a row, and one whose loss is Python's."""
    values, labels = data(MLP_ROW)
    batch = mx.io.DataBatch([mx.nd.array(values[:8])], [mx.nd.array(labels[:8])])
    first = mx.sym.Activation(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=5, name="one"), act_type="tanh")
    second = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="two"), name="softmax")
    loss = mx.mod.PythonLossModule(grad_func=lambda scores, label: scores - label.reshape((-1, 1)))
    found = []
    for last in (mx.mod.Module(second), loss):
        module = mx.mod.SequentialModule()
        module.add(mx.mod.Module(first, label_names=None)).add(last, take_labels=True, auto_wiring=True)
        module.bind([("data", (8, 6))], [("softmax_label", (8,))])
        draw = np.random.RandomState(4)
        known = {"one_weight": (5, 6), "one_bias": (5,), "two_weight": (3, 5), "two_bias": (3,)}
        module.init_params(None, {name: mx.nd.array(draw.normal(size=shape)) for name, shape in known.items()}, {})
        module.init_optimizer(optimizer_params={"learning_rate": 0.1, "momentum": 0.9})
        for _ in range(5):
            module.forward(batch, is_train=True)
            module.backward()
            module.update()
        found.append([both(module), fingerprint({"outputs": module.get_outputs()[0]})])
    return found


CASES = {f"{case.__name__} {network}": (case, network) for network in NETWORKS
         for case in (optimizers, parallel, fixed, tutorial, feed_forward, resumed, hand_written)}
CASES.update({case.__name__: (case, "") for case in (buckets, sequential, arrays)})


def answers(mx, name):
    case, network = CASES[name]
    return case(mx, network)


def main():
    """Without arguments writes the answers and MXNet's checkpoint; with a prefix says what becomes of that one, which
    mxc has saved."""
    import mxnet

    if sys.argv[1:]:
        print(json.dumps(loaded(mxnet, "lenet", sys.argv[1])))
        return
    saved(mxnet, "lenet", str(CHECKPOINT))
    logging.getLogger().setLevel(logging.WARNING)
    found = {name: answers(mxnet, name) for name in CASES}
    lines = [f"{json.dumps(name)}: {json.dumps(found[name])}" for name in found]
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    sys.exit(main())
