"""Region proposals: boxes of interest from scores and offsets of anchors.

Begin with `reference.py`: what they compute. Nothing is imported from outside: rules are found by name.
"""
