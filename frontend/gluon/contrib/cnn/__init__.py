"""Convolutions that stand beside those of `mx.gluon.nn`: `mx.gluon.contrib.cnn`.

Begin with `conv_layers.py`. Programs import the layers from here.
"""
from mxc.gluon.contrib.cnn.conv_layers import *  # noqa: F403
from mxc.gluon.contrib.cnn.conv_layers import __all__

__all__ = list(__all__)
