"""The rewrite rules of `simplify`, by what they are about: arithmetic, constants, scales of channels, shapes.

Begin with `rule.py`: a rule is a named function that sees one node and may offer an entry in its place. Only
`simplify.py` imports this.
"""
