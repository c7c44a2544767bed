"""From ONNX to symbols.

Begin with `load.py`. What is made of each operator is in the tables of the other files, by what operators do.
"""
