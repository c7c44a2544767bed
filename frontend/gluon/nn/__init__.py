"""Layers: `mx.gluon.nn`.

Begin with `basic_layers.py` and `containers.py`; convolutions and poolings are in `conv_layers.py` and `poolings.py`,
norms in `norms.py`. Programs import the layers from here; the rest of Gluon does so from the files.
"""
from mxc.gluon.block import Block
from mxc.gluon.hybrid_block import HybridBlock
from mxc.gluon.nn import activations, basic_layers, conv_layers
from mxc.gluon.nn.activations import *  # noqa: F403
from mxc.gluon.nn.activations import __all__ as _activations
from mxc.gluon.nn.basic_layers import *  # noqa: F403
from mxc.gluon.nn.basic_layers import __all__ as _basic
from mxc.gluon.nn.conv_layers import *  # noqa: F403
from mxc.gluon.nn.conv_layers import __all__ as _conv
from mxc.gluon.symbol_block import SymbolBlock

__all__ = ["Block", "HybridBlock", "SymbolBlock", "activations", "basic_layers", "conv_layers", *_activations,
           *_basic, *_conv]
