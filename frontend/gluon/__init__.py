"""Gluon: networks as Python objects that compute with arrays, and that are compiled when they are hybridised.

Begin with `block.py` (a block and its parameters) and `hybrid_block.py`, which traces a block and calls it as a
`runtime/cached_op.py`. Layers are in `nn`, `rnn` and `loss`, networks in `model_zoo`, and what feeds them in `data`.
"""
from mxc.gluon import block, contrib, data, loss, model_zoo, nn, parameter, rnn, trainer, utils
from mxc.gluon.block import Block
from mxc.gluon.compiled import compile  # noqa: F401  mxc's own, so it is not among those of `import *`
from mxc.gluon.hybrid_block import HybridBlock
from mxc.gluon.parameter import Constant, DeferredInitializationError, Parameter, tensor_types
from mxc.gluon.parameter_dict import ParameterDict
from mxc.gluon.symbol_block import SymbolBlock
from mxc.gluon.trainer import Trainer

__all__ = ["Block", "Constant", "DeferredInitializationError", "HybridBlock", "Parameter", "ParameterDict",
           "SymbolBlock", "Trainer", "block", "contrib", "data", "loss", "model_zoo", "nn", "parameter", "rnn",
           "tensor_types", "trainer", "utils"]
