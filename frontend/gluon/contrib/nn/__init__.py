"""Layers that stand beside those of `mx.gluon.nn`: `mx.gluon.contrib.nn`."""
from mxc.gluon.contrib.nn.basic_layers import *  # noqa: F403
from mxc.gluon.contrib.nn.basic_layers import __all__

__all__ = list(__all__)
