"""Recurrent layers: RNN, LSTM and GRU.

Begin with `graph.py`: layers and directions; `kernel.py` has the routine of one. Nothing is imported from outside:
rules are found by name.
"""
