"""Gradient rules, found by name: `def NAME(g) -> list[Entry | None]`, what flows into each input (auxiliary states left
out), and auxiliary update rules `def NAME(g)`, the new value of each auxiliary state. `g` is a `context.Gradient`.
"""
