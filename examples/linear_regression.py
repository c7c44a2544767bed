"""A line is fitted to noisy points, y = 2 x1 - 3.4 x2 + 4.2, by FeedForward, the interface that old programs use.

    python examples/linear_regression.py
"""
from __future__ import annotations

import warnings

import numpy as np

import mxc as mx

WEIGHT, BIAS = np.array([2, -3.4]), 4.2


def main() -> None:
    warnings.simplefilter("ignore", DeprecationWarning)  # it says that new programs take mx.mod.Module
    np.random.seed(0)
    mx.random.seed(0)
    points = np.random.normal(size=(1000, 2))
    targets = points @ WEIGHT + BIAS + np.random.normal(scale=0.01, size=1000)

    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="line")
    net = mx.sym.LinearRegressionOutput(net, mx.sym.var("lin_label"), name="lin")  # the gradient of the squared error
    train = mx.io.NDArrayIter(points, targets, batch_size=50, shuffle=True, label_name="lin_label")
    model = mx.model.FeedForward.create(net, train, num_epoch=10, optimizer="sgd", learning_rate=0.1,
                                        eval_metric="mse")

    found, bias = (model.arg_params[name].asnumpy().ravel() for name in ("line_weight", "line_bias"))
    print(f"y = {found[0]:.2f} x1 + {found[1]:.2f} x2 + {bias[0]:.2f}")
    print(f"at (1, 1): {model.predict(np.array([[1.0, 1.0]]))[0, 0]:.2f}")


if __name__ == "__main__":
    main()
