"""Training in one call: an Estimator with metrics, a checkpoint of the best epoch, an early end, and a handler of one's
own, on scikit-learn's digits.

    python examples/gluon_estimator.py FOLDER      # it gets the checkpoints
"""
from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from gluon_digits import network
from lenet import digits

import mxc as mx
from mxc import gluon
from mxc.gluon.contrib.estimator import CheckpointHandler, EarlyStoppingHandler, EpochEnd, Estimator

BATCH, EPOCHS = 50, 12


class Table(EpochEnd):
    """Prints a line for each epoch."""

    def epoch_end(self, estimator: Estimator, *args, **kwargs) -> None:
        print(", ".join(f"{name} {value:.3f}" for name, value in (
            metric.get() for metric in (*estimator.train_metrics, *estimator.val_metrics))))


def main(folder: Path) -> None:
    np.random.seed(0)
    mx.random.seed(0)
    images, labels, test_images, test_labels = digits()
    train = gluon.data.DataLoader(gluon.data.ArrayDataset(images, labels), BATCH, shuffle=True)
    test = gluon.data.DataLoader(gluon.data.ArrayDataset(test_images, test_labels), 256)
    net = network()
    net.initialize(mx.init.Xavier(magnitude=2))
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.003})
    estimator = Estimator(net, gluon.loss.SoftmaxCrossEntropyLoss(), train_metrics=mx.metric.Accuracy(),
                          trainer=trainer)
    accuracy = estimator.val_metrics[0]
    estimator.fit(train, test, epochs=EPOCHS, event_handlers=[
        Table(), CheckpointHandler(str(folder), "digits", monitor=accuracy, mode="max", save_best=True),
        EarlyStoppingHandler(accuracy, patience=2, mode="max")])

    net.load_parameters(str(folder / "digits-best.params"))
    estimator.evaluate(test)
    print(f"the best: test accuracy {accuracy.get()[1]:.3f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
