"""Convolution and Deconvolution, blocked, by Winograd and depthwise, their gradients, im2col."""
