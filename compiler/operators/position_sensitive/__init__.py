"""Pooling over regions of images where each part of a region has channels of its own, in place or moved by an input.

Begin with `kernel.py`: the routines. Nothing is imported from outside: rules are found by name.
"""
