"""A perceptron learns scikit-learn's digits in several processes: each reads its own part of the data, and all have the
same parameters.

    mxc launch -n 2 python examples/distributed.py
    mxc launch -n 4 -s 2 python examples/distributed.py --epochs 20 --prefix run/digits   # goes on where it stopped
    mxc launch -n 2 python examples/distributed.py --gluon
"""
from __future__ import annotations

import argparse
import re
from pathlib import Path

import numpy as np
from lenet import digits
from train_mlp import network

import mxc as mx

BATCH = 64  # of all workers together


class Share(mx.gluon.data.Sampler):
    """One of `num_parts` equal parts of the numbers below `length`, in an order that is another one in each pass. All
    parts draw the same order, so none has a number of another one."""

    def __init__(self, length: int, num_parts: int, part_index: int):
        self.length, self.num_parts, self.part_index, self.passes = length, num_parts, part_index, 0

    def __iter__(self):
        order = np.random.RandomState(self.passes).permutation(self.length)
        self.passes += 1
        return iter(order[self.part_index::self.num_parts][:len(self)].tolist())

    def __len__(self) -> int:
        return self.length // self.num_parts


def with_module(store: mx.kv.KVStore, epochs: int, prefix: str) -> float:
    """Train by Module.fit; the accuracy on the test images. prefix: of checkpoints, which worker 0 writes and all read.
    Iterators over files take the part themselves: mx.io.ImageRecordIter(..., num_parts=store.num_workers,
    part_index=store.rank), as CSVIter, LibSVMIter, MNISTIter and mx.image.ImageIter do."""
    images, labels, test_images, test_labels = digits()
    own = slice(store.rank, len(images) // store.num_workers * store.num_workers, store.num_workers)
    train = mx.io.NDArrayIter(images[own], labels[own], BATCH // store.num_workers, shuffle=True,
                              last_batch_handle="discard")
    done = [int(number) for path in Path(prefix).parent.glob(f"{Path(prefix).name}-*.params")
            if (number := re.search(r"-(\d{4})\.params$", path.name)[1])] if prefix else []
    module, given = mx.mod.Module(network()), {}
    if done:
        _, given["arg_params"], given["aux_params"] = mx.model.load_checkpoint(prefix, max(done))
    store.barrier()  # nobody looks for checkpoints any more
    saves = mx.callback.do_checkpoint(prefix) if prefix and store.rank == 0 else None
    module.fit(train, num_epoch=epochs, begin_epoch=max(done, default=0), kvstore=store, initializer=mx.init.Xavier(),
               optimizer="sgd", optimizer_params={"learning_rate": 0.1, "momentum": 0.9}, epoch_end_callback=saves,
               **given)
    return module.score(mx.io.NDArrayIter(test_images, test_labels, BATCH), "acc")[0][1]


def with_gluon(store: mx.kv.KVStore, epochs: int) -> float:
    """Train with a Trainer; the accuracy on the test images."""
    images, labels, test_images, test_labels = digits()
    data = mx.gluon.data.DataLoader(mx.gluon.data.ArrayDataset(images, labels.astype("float32")),
                                    BATCH // store.num_workers, last_batch="discard",
                                    sampler=Share(len(images), store.num_workers, store.rank))
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(128, activation="relu"), mx.gluon.nn.Dense(10))
    mx.random.seed(0)  # the same in all workers: a Trainer spreads worker 0's values in its first step only
    np.random.seed(0)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9}, kvstore=store)
    loss_of = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    for _ in range(epochs):
        for pictures, numbers in data:
            with mx.autograd.record():
                loss = loss_of(net(pictures), numbers)
            loss.backward()
            trainer.step(BATCH)
    return float((net(mx.nd.array(test_images)).asnumpy().argmax(1) == test_labels).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--kvstore", default="dist_sync", help="dist_sync or dist_async")
    parser.add_argument("--prefix", default="", help="where checkpoints go")
    parser.add_argument("--gluon", action="store_true", help="a training loop of one's own in place of Module.fit")
    options = parser.parse_args()
    store = mx.kv.create(options.kvstore)
    print(f"worker {store.rank} of {store.num_workers}", flush=True)
    if options.gluon:
        accuracy = with_gluon(store, options.epochs)
    else:
        accuracy = with_module(store, options.epochs, options.prefix)
    print(f"test accuracy {accuracy:.3f}", flush=True)


if __name__ == "__main__":
    main()
