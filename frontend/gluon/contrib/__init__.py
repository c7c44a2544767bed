"""Parts of Gluon whose interface may change: `mx.gluon.contrib`.

Begin with `estimator`, which trains a network in one call. `nn`, `rnn` and `data` stand beside Gluon's packages of
those names, `cnn` has convolutions. Programs import from here; `model_zoo` takes layers of `nn`.
"""
from mxc.gluon.contrib import cnn, data, estimator, nn, rnn

__all__ = ["cnn", "data", "estimator", "nn", "rnn"]
