"""Recurrent networks as symbols, unrolled over time, and sentences in buckets: `mx.rnn`.

Begin with `rnn_cell.py` (what a cell is, and the simple ones); `several_cells.py`, `modifier_cells.py`,
`fused_cell.py` and `conv_cells.py` have the others. Programs import the names below.
"""

from mxc.rnn import io, rnn, rnn_cell
from mxc.rnn.conv_cells import BaseConvRNNCell, ConvGRUCell, ConvLSTMCell, ConvRNNCell
from mxc.rnn.dropout_cell import DropoutCell
from mxc.rnn.fused_cell import FusedRNNCell
from mxc.rnn.io import BucketSentenceIter, encode_sentences
from mxc.rnn.modifier_cells import ModifierCell, ResidualCell, ZoneoutCell
from mxc.rnn.rnn import do_rnn_checkpoint, load_rnn_checkpoint, rnn_unroll, save_rnn_checkpoint
from mxc.rnn.rnn_cell import BaseRNNCell, GRUCell, LSTMCell, RNNCell, RNNParams
from mxc.rnn.several_cells import BidirectionalCell, SequentialRNNCell
from mxc.runtime.elsewhere import elsewhere

__getattr__, _names = elsewhere(
    __name__, {"": "bisect functools np=numpy random warnings init=mxc.initializer ndarray=mxc.ndarray "
                   "symbol=mxc.symbol",
               "mxc.base": "numeric_types string_types", "mxc.io": "DataBatch DataDesc DataIter",
               "mxc.model": "load_checkpoint save_checkpoint"})
__all__ = ["BaseConvRNNCell", "BaseRNNCell", "BidirectionalCell", "BucketSentenceIter", "ConvGRUCell", "ConvLSTMCell",
           "ConvRNNCell", "DropoutCell", "FusedRNNCell", "GRUCell", "LSTMCell", "ModifierCell", "RNNCell", "RNNParams",
           "ResidualCell", "SequentialRNNCell", "ZoneoutCell", "do_rnn_checkpoint", "encode_sentences", "io",
           "load_rnn_checkpoint", "rnn", "rnn_cell", "rnn_unroll", "save_rnn_checkpoint", *_names]
