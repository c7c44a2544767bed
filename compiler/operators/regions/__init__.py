"""Pooling over regions of images: ROIPooling, ROIAlign.

Begin with `kernel.py`: the routines. Nothing is imported from outside: rules are found by name.
"""
