"""Recurrent cells that stand beside those of `mx.gluon.rnn`: `mx.gluon.contrib.rnn`.

Begin with `rnn_cell.py`; the cells of `conv_rnn_cell.py` have convolutions for products. Programs import them
from here.
"""
from mxc.gluon.contrib.rnn import conv_rnn_cell, rnn_cell
from mxc.gluon.contrib.rnn.conv_rnn_cell import *  # noqa: F403
from mxc.gluon.contrib.rnn.rnn_cell import *  # noqa: F403

__all__ = [*conv_rnn_cell.__all__, *rnn_cell.__all__]
