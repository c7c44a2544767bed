"""Gluon: blocks, parameters, layers, losses, data and networks."""
SECTIONS = ("mxnet.gluon", "mxnet.gluon.nn", "mxnet.gluon.rnn", "mxnet.gluon.loss", "mxnet.gluon.data",
            "mxnet.gluon.model_zoo", "mxnet.gluon.model_zoo.vision", "mxnet.gluon.utils", "mxnet.gluon.contrib",
            "mxnet.gluon.contrib.nn", "mxnet.gluon.contrib.rnn", "mxnet.gluon.contrib.estimator",
            "mxnet.gluon.contrib.data", "mxnet.gluon.data.vision", "mxnet.gluon.data.vision.transforms",
            "mxnet.gluon.parameter", "mxnet.gluon.block",
            "mxnet.gluon.trainer")

EXCEPTIONS: dict[str, str] = {}
