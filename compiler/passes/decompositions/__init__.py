"""Composite operators as primitives: `def NAME(builder, node, inputs, options) -> entries`, one for each output.

`inputs` are the new graph's entries; `builder.old` knows the shapes and dtypes that the node's own outputs have.
"""
