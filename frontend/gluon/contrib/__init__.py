"""Parts of Gluon whose interface may change: `mx.gluon.contrib`."""
from mxc.gluon.contrib import nn

__all__ = ["nn"]
