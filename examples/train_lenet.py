"""LeNet learns scikit-learn's digits, by Module.fit with what longer runs use: a schedule of the learning rate, several
metrics, the speed in the log, and a checkpoint after each epoch.

    python examples/train_lenet.py FOLDER      # it gets lenet-symbol.json, lenet-0001.params, ...
"""
from __future__ import annotations

import logging
import sys
from pathlib import Path

import numpy as np
from lenet import BATCH, digits, lenet

import mxc as mx

EPOCHS, RATE = 6, 0.005


def main(folder: Path) -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    np.random.seed(0)
    mx.random.seed(0)
    images, labels, test_images, test_labels = digits()
    train = mx.io.NDArrayIter(images, labels, BATCH, shuffle=True, last_batch_handle="discard")
    test = mx.io.NDArrayIter(test_images, test_labels, BATCH)
    prefix = str(folder / "lenet")

    module = mx.mod.Module(lenet(), context=mx.cpu())
    every = 2 * (len(images) // BATCH)  # the updates of two epochs
    halved = mx.lr_scheduler.FactorScheduler(step=every, factor=0.5, base_lr=RATE)
    module.fit(train, eval_data=test, num_epoch=EPOCHS, initializer=mx.init.Xavier(magnitude=2), optimizer="adam",
               optimizer_params={"learning_rate": RATE, "lr_scheduler": halved}, eval_metric=["acc", "ce"],
               batch_end_callback=mx.callback.Speedometer(BATCH, frequent=10),
               epoch_end_callback=mx.callback.do_checkpoint(prefix))

    # Each checkpoint is a model: this is the best of them.
    scores = {}
    for epoch in range(1, EPOCHS + 1):
        saved = mx.mod.Module.load(prefix, epoch)
        saved.bind(test.provide_data, test.provide_label, for_training=False)
        scores[epoch] = dict(saved.score(test, "acc"))["accuracy"]
    best = max(scores, key=lambda epoch: scores[epoch])
    print(f"best test accuracy {scores[best]:.3f}, after epoch {best}: {prefix}-{best:04d}.params")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
