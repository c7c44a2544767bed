"""Arrays made of numbers and shapes: zeros, ranges, eye, index arrays.

Begin with `shape.py`: shapes that parameters state. Nothing is imported from outside: rules are found by name.
"""
