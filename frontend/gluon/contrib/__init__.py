"""Parts of Gluon whose interface may change: `mx.gluon.contrib`."""
from mxc.gluon.contrib import data, estimator, nn, rnn

__all__ = ["data", "estimator", "nn", "rnn"]
