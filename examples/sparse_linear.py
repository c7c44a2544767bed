"""Logistic regression on data of mostly zeros, read from a LibSVM file: csr batches, a row_sparse weight and gradient.

    python examples/sparse_linear.py
"""
from __future__ import annotations

import logging
import os
import tempfile

import numpy as np

import mxc as mx

FEATURES, ROWS, BATCH = 10_000, 4_000, 200
PER_ROW = 20  # features that a row has


def write(path: str, seed: int) -> None:
    """A file of rows whose class a hidden weight decides: LABEL INDEX:VALUE ..."""
    weight = np.random.RandomState(0).randn(FEATURES)
    draw = np.random.RandomState(seed)
    with open(path, "w") as file:
        for _ in range(ROWS):
            # few features are frequent, as words are
            columns = np.unique((FEATURES ** draw.uniform(0, 1, PER_ROW)).astype(int) - 1)
            values = draw.uniform(0.5, 1.5, len(columns))
            pairs = " ".join(f"{c}:{v:.4f}" for c, v in zip(columns, values, strict=True))
            file.write(f"{int(weight[columns] @ values > 0)} {pairs}\n")


def network() -> mx.sym.Symbol:
    """Two classes; only the rows of the weight that a batch reads have a gradient."""
    data = mx.sym.var("data", stype="csr")
    weight = mx.sym.var("weight", stype="row_sparse", shape=(FEATURES, 2), init=mx.init.Normal(0.01))
    bias = mx.sym.var("bias", shape=(2,), init=mx.init.Zero())
    score = mx.sym.broadcast_add(mx.sym.sparse.dot(data, weight), bias)
    return mx.sym.SoftmaxOutput(score, mx.sym.var("softmax_label"), name="softmax")


def batches(path: str) -> mx.io.DataIter:
    return mx.io.LibSVMIter(data_libsvm=path, data_shape=(FEATURES,), batch_size=BATCH)


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    mx.random.seed(0)
    np.random.seed(0)
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ("train.libsvm", "test.libsvm")]
        for seed, path in enumerate(paths, 1):
            write(path, seed)
        train, test = map(batches, paths)
        module = mx.mod.Module(network())
        module.fit(train, eval_data=test, num_epoch=5, optimizer="adam", optimizer_params={"learning_rate": 0.02},
                   eval_metric="acc")
        print(f"test accuracy {module.score(test, 'acc')[0][1]:.4f}")
        weight = module.get_params()[0]["weight"]
        print(f"the weight is {weight.stype}; mean of its squares {(weight.asnumpy() ** 2).mean():.6f}")


if __name__ == "__main__":
    main()
