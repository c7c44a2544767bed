"""Recurrent cells and layers: `mx.gluon.rnn`.

Begin with `rnn_cell.py`, the cells of one step; `combined_cells.py` has cells of cells, `rnn_layer.py` layers that read
whole sequences. Programs import the classes from here.
"""
from mxc.gluon.rnn import rnn_cell, rnn_layer
from mxc.gluon.rnn.combined_cells import (
    BidirectionalCell,
    DropoutCell,
    HybridSequentialRNNCell,
    ModifierCell,
    ResidualCell,
    SequentialRNNCell,
    ZoneoutCell,
)
from mxc.gluon.rnn.rnn_cell import GRUCell, HybridRecurrentCell, LSTMCell, RecurrentCell, RNNCell
from mxc.gluon.rnn.rnn_layer import GRU, LSTM, RNN

__all__ = ["GRU", "LSTM", "RNN", "BidirectionalCell", "DropoutCell", "GRUCell", "HybridRecurrentCell",
           "HybridSequentialRNNCell", "LSTMCell", "ModifierCell", "RNNCell", "RecurrentCell", "ResidualCell",
           "SequentialRNNCell", "ZoneoutCell", "rnn_cell", "rnn_layer"]
