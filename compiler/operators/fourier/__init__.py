"""Fourier transforms along the last axis: fft, ifft.

Begin with `kernel.py`: the routine. Nothing is imported from outside: rules are found by name.
"""
