"""Gluon: networks as Python objects that compute with arrays, and that are compiled when they are hybridised."""
from mxc.gluon.block import Block
from mxc.gluon.hybrid_block import HybridBlock
from mxc.gluon.parameter import Constant, DeferredInitializationError, Parameter
from mxc.gluon.parameter_dict import ParameterDict
from mxc.gluon.symbol_block import SymbolBlock
from mxc.gluon.trainer import Trainer

__all__ = ["Block", "Constant", "DeferredInitializationError", "HybridBlock", "Parameter", "ParameterDict",
           "SymbolBlock", "Trainer"]
