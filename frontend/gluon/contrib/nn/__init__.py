"""Layers that stand beside those of `mx.gluon.nn`: `mx.gluon.contrib.nn`.

Begin with `basic_layers.py`. Programs import the layers from here; so does `model_zoo`.
"""
from mxc.gluon.contrib.nn.basic_layers import *  # noqa: F403
from mxc.gluon.contrib.nn.basic_layers import __all__

__all__ = list(__all__)
