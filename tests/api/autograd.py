"""Gradients of imperative programs, and operators written in Python."""
SECTIONS = ("mxnet.autograd", "mxnet.operator")

EXCEPTIONS: dict[str, str] = {}
