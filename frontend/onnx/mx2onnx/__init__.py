"""From symbols to ONNX.

Begin with `export.py`. What is said of each operator is in the tables of the other files, by what operators do.
"""
