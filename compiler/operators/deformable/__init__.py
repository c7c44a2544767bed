"""Convolutions that read each tap of the kernel at a place of its own, which an input tells.

Begin with `graph.py`: such a convolution is columns of samples, and a product by the weight.
"""
