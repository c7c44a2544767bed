"""Arithmetic element by element, and the rules that operators of several families name.

Begin with `shape.py`: the rules that a kind of operators has where an entry names none. From outside: other families,
and `runtime/elementwise.py`, take `same_shape`, `same_dtype` and `floating` of it.
"""
