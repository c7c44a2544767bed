"""Pooling over windows, and its gradients.

Begin with `kernel.py`: window rules and library calls. Nothing is imported from outside: rules are found by name.
"""
