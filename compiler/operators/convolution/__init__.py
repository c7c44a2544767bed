"""Convolution and Deconvolution, blocked, by Winograd and depthwise, their gradients, im2col.

Begin with `shape.py`: the geometry of windows. From outside: `resize` takes that, and Deconvolution's rules.
"""
