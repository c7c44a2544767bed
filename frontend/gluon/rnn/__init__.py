"""Recurrent cells and layers: `mx.gluon.rnn`."""
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
