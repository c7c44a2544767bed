"""Arithmetic element by element, and the rules that operators of several families name."""
