"""A network that knows five digits learns the other five from few images: it is loaded from a checkpoint, its last
layer is replaced, and its convolutions are kept as they are by fixed_param_names.

    python examples/fine_tune.py
"""
from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from lenet import BATCH, digits, lenet

import mxc as mx

FEW = 60  # images to learn the new digits from


def pretrain(prefix: str, images: np.ndarray, labels: np.ndarray) -> None:
    """Train LeNet on the digits 0 to 4 and save it as the checkpoint of epoch 8."""
    known = labels < 5
    module = mx.mod.Module(lenet(classes=5))
    module.fit(mx.io.NDArrayIter(images[known], labels[known], BATCH, shuffle=True), num_epoch=8,
               initializer=mx.init.Xavier(), optimizer_params={"learning_rate": 0.1, "momentum": 0.9})
    module.save_checkpoint(prefix, 8)


def main() -> None:
    np.random.seed(0)
    mx.random.seed(0)
    images, labels, test_images, test_labels = digits()
    prefix = str(Path(tempfile.mkdtemp(prefix="mxc-fine-tune-"), "lenet"))
    pretrain(prefix, images, labels)

    # The loaded network up to the features in front of its last layer, and a new last layer after them.
    symbol, arg_params, aux_params = mx.model.load_checkpoint(prefix, 8)
    features = symbol.get_internals()["tanh3_output"]
    net = mx.sym.FullyConnected(features, num_hidden=5, name="new")
    net = mx.sym.SoftmaxOutput(net, name="softmax")
    fixed = [name for name in net.list_arguments() if name.startswith("conv")]

    rows = np.flatnonzero(labels >= 5)[:FEW]
    train = mx.io.NDArrayIter(images[rows], labels[rows] - 5, batch_size=20, shuffle=True)
    rows = test_labels >= 5
    test = mx.io.NDArrayIter(test_images[rows], test_labels[rows] - 5, BATCH)
    module = mx.mod.Module(net, fixed_param_names=fixed)
    # allow_missing: the initializer fills the new layer. The old last layer, which the checkpoint also has, is unused.
    module.fit(train, num_epoch=20, arg_params=arg_params, aux_params=aux_params, allow_missing=True,
               initializer=mx.init.Xavier(), optimizer_params={"learning_rate": 0.05, "momentum": 0.9})

    after, _ = module.get_params()
    changed = [name for name in after if name in arg_params
               and (after[name].asnumpy() != arg_params[name].asnumpy()).any()]
    print(f"kept as loaded: {', '.join(fixed)}")
    print(f"changed: {', '.join(changed)}")
    print(f"test accuracy on the new digits {module.score(test, 'acc')[0][1]:.3f}, learned from {FEW} images")


if __name__ == "__main__":
    main()
