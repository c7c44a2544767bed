"""A program that trains a network on made data, alone or as one of several workers, and saves its parameters.

dist_training.py PATH --network mlp|lenet --kind none|dist_sync|dist_async --api module|gluon|bucketing|rows|csr
"""
from __future__ import annotations

import argparse
import os

import numpy as np

import mxc as mx

ROWS, STEPS, CLASSES, WORDS = 32, 4, 5, 400


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.RandomState(1)
    labels = rng.randint(0, CLASSES, ROWS * STEPS)
    pictures = rng.rand(ROWS * STEPS, 1, 12, 12).astype("f") + 2 * (labels[:, None, None, None] == np.arange(12))
    return pictures.astype("f"), labels.astype("f")


def mlp() -> mx.sym.Symbol:
    x = mx.sym.FullyConnected(mx.sym.Flatten(mx.sym.var("data")), num_hidden=32, name="one")
    x = mx.sym.FullyConnected(mx.sym.Activation(x, act_type="relu"), num_hidden=CLASSES, name="two")
    return mx.sym.SoftmaxOutput(x, mx.sym.var("softmax_label"), name="softmax")


def lenet() -> mx.sym.Symbol:
    x = mx.sym.Convolution(mx.sym.var("data"), kernel=(3, 3), num_filter=8, name="conv1")
    x = mx.sym.Pooling(mx.sym.Activation(x, act_type="tanh"), kernel=(2, 2), stride=(2, 2), pool_type="max")
    x = mx.sym.Convolution(x, kernel=(3, 3), num_filter=16, name="conv2")
    x = mx.sym.Flatten(mx.sym.Activation(x, act_type="tanh"))
    x = mx.sym.Activation(mx.sym.FullyConnected(x, num_hidden=64, name="one"), act_type="tanh")
    x = mx.sym.FullyConnected(x, num_hidden=CLASSES, name="two")
    return mx.sym.SoftmaxOutput(x, mx.sym.var("softmax_label"), name="softmax")


def shares(store, whole):
    """This worker's rows of every batch."""
    workers, rank = (1, 0) if store is None else (store.num_workers, store.rank)
    kept = np.arange(len(whole)).reshape(STEPS, workers, ROWS // workers)[:, rank].reshape(-1)
    return whole[kept]


def with_module(options, store):
    pictures, labels = (shares(store, each) for each in data())
    rows = ROWS // (1 if store is None else store.num_workers)
    batches = mx.io.NDArrayIter(pictures, labels, rows)
    symbol = {"mlp": mlp, "lenet": lenet}[options.network]()
    if options.api == "bucketing":
        module = mx.mod.BucketingModule(lambda key: (symbol, ("data",), ("softmax_label",)), default_bucket_key=0)
        batches.provide_bucket_key = None
    else:
        module = mx.mod.Module(symbol)
    module.bind(batches.provide_data, batches.provide_label)
    mx.random.seed(0 if store is None else store.rank)  # worker 0's are taken
    np.random.seed(0 if store is None else store.rank)
    module.init_params(mx.init.Xavier())
    # Adam divides by the size of gradients: of those near 0, which differ by rounding, it would make whole steps.
    settings = {"learning_rate": 0.005, "epsilon": 1e-3} if options.optimizer == "adam" else {"learning_rate": 0.05}
    module.init_optimizer(kvstore=store, optimizer=options.optimizer, optimizer_params=settings)
    if options.tell:
        print("training", flush=True)
    for _ in range(options.epochs):
        batches.reset()
        for batch in batches:
            batch.bucket_key = 0
            module.forward(batch, is_train=True)
            module.backward()
            module.update()
    metric = mx.metric.Accuracy()
    found, auxiliary = module.get_params()
    batches.reset()
    for batch in batches:
        batch.bucket_key = 0
        module.forward(batch, is_train=False)
        module.update_metric(metric, batch.label)
    print("accuracy", metric.get()[1], flush=True)
    return {name: value.asnumpy() for name, value in {**found, **auxiliary}.items()}


def train(net, trainer, inputs, labels, rows, epochs):
    """Gluon's training. rows: of this worker's batches."""
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    for _ in range(epochs):
        for i in range(STEPS):
            at = slice(i * rows, (i + 1) * rows)
            with mx.autograd.record():
                value = loss(net(mx.nd.array(inputs[at])), mx.nd.array(labels[at]))
            value.backward()
            trainer.step(ROWS)


def with_gluon(options, store):
    pictures, labels = (shares(store, each) for each in data())
    rows = ROWS // (1 if store is None else store.num_workers)
    net = mx.gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(mx.gluon.nn.Dense(32, activation="relu"), mx.gluon.nn.Dense(CLASSES))
    mx.random.seed(0)  # a Trainer takes worker 0's values in its first step, when the first gradients are there
    np.random.seed(0)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    net(mx.nd.array(pictures[:rows]))
    trainer = mx.gluon.Trainer(net.collect_params(), options.optimizer, {"learning_rate": 0.05}, kvstore=store,
                               update_on_kvstore=False if options.own_updates else None)
    train(net, trainer, pictures, labels, rows, options.epochs)
    return {name: value.data().asnumpy() for name, value in net.collect_params().items()}


class Words(mx.gluon.Block):
    """Scores of words by two tables, one with row_sparse gradients alone, one that is row_sparse itself (which stores
    must update)."""

    def __init__(self, own_updates):
        super().__init__(prefix="words_")
        with self.name_scope():
            self.dense = mx.gluon.nn.Embedding(WORDS, 6, sparse_grad=True)
            self.rows = (mx.gluon.nn.Embedding(WORDS, 6, sparse_grad=True) if own_updates else
                         mx.gluon.contrib.nn.SparseEmbedding(WORDS, 6))
            self.out = mx.gluon.nn.Dense(CLASSES)

    def forward(self, words):
        return self.out((self.dense(words) * self.rows(words)).mean(axis=1))


def with_rows(options, store):
    """Embeddings, of which a batch reads few rows."""
    rng = np.random.RandomState(2)
    words, labels = rng.randint(0, WORDS, (ROWS * STEPS, 3)).astype("f"), rng.randint(0, CLASSES, ROWS * STEPS)
    words, labels = (shares(store, each) for each in (words, labels.astype("f")))
    rows = ROWS // (1 if store is None else store.num_workers)
    net = Words(options.own_updates)
    mx.random.seed(0)
    np.random.seed(0)
    net.initialize(mx.init.Uniform(1))
    momentum = {"momentum": 0.9} if options.optimizer == "sgd" else {}
    trainer = mx.gluon.Trainer(net.collect_params(), options.optimizer, {"learning_rate": 0.5, "wd": 0.01, **momentum},
                               kvstore="local" if store is None else store,
                               update_on_kvstore=False if options.own_updates else None)
    train(net, trainer, words, labels, rows, options.epochs)
    every = mx.nd.arange(WORDS)
    return {name: (value.row_sparse_data(every) if "sparse" in name else value.data()).asnumpy()
            for name, value in net.collect_params().items()}


def with_csr(options, store):
    """A linear model of csr data in a module, whose row_sparse weight is pulled row by row."""
    rng = np.random.RandomState(3)
    values = rng.rand(ROWS * STEPS, WORDS).astype("f") * (rng.rand(ROWS * STEPS, WORDS) < 0.01)
    labels = rng.randint(0, CLASSES, ROWS * STEPS).astype("f")
    values, labels = (shares(store, each) for each in (values, labels))
    rows = ROWS // (1 if store is None else store.num_workers)
    batches = mx.io.NDArrayIter(mx.nd.array(values).tostype("csr"), labels, rows, last_batch_handle="discard")
    weight = mx.sym.var("weight", stype="row_sparse", shape=(WORDS, CLASSES))
    x = mx.sym.broadcast_add(mx.sym.sparse.dot(mx.sym.var("data", stype="csr"), weight),
                             mx.sym.var("bias", shape=(1, CLASSES)))
    module = mx.mod.Module(mx.sym.SoftmaxOutput(x, mx.sym.var("softmax_label"), name="softmax"))
    module.bind(batches.provide_data, batches.provide_label)
    mx.random.seed(0 if store is None else store.rank)
    np.random.seed(0 if store is None else store.rank)
    module.init_params(mx.init.Uniform(1))
    module.init_optimizer(kvstore=mx.kv.create("local") if store is None else store, optimizer=options.optimizer,
                          optimizer_params={"learning_rate": 0.5, "wd": 0.01})
    for epoch in range(options.epochs):
        batches.reset()
        for batch in batches:
            if epoch:  # before, whole weights are pulled
                module.prepare(batch, sparse_row_id_fn=lambda batch: {"weight": batch.data[0].indices})
            module.forward(batch, is_train=True)
            module.backward()
            module.update()
    return {name: value.asnumpy() for name, value in module.get_params()[0].items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("path")
    parser.add_argument("--network", default="mlp")
    parser.add_argument("--kind", default="none")
    parser.add_argument("--api", default="module")
    parser.add_argument("--optimizer", default="sgd")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--own-updates", action="store_true")
    parser.add_argument("--tell", action="store_true", help="print a line when training begins")
    options = parser.parse_args()
    store = None if options.kind == "none" else mx.kv.create(options.kind)
    found = {"gluon": with_gluon, "rows": with_rows, "csr": with_csr}.get(options.api, with_module)(options, store)
    rank = 0 if store is None else store.rank
    os.makedirs(options.path, exist_ok=True)
    np.savez(f"{options.path}/{rank}.npz", **found)


if __name__ == "__main__":
    main()
