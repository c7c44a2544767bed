"""The reference: graphs run node by node by the operators' NumPy definitions, slow and obvious.

`interpreter.py` is all of it. It says what the other targets have to compute; `mxc verify` compares with it, and
arrays without elements, which kernels do not take, are computed by it.
"""
