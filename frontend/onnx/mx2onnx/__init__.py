"""From symbols to ONNX. Begin with `export.py`; what is said of each operator is in the tables of the other files."""
