"""Numbers of 8 bits for numbers of float32: there and back, and which range of numbers is worth the bits.

Begin with `graph.py`, which says what a scale is. Of it the family `quantized` takes the scales and `saturated`.
"""
