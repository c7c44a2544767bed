"""From ONNX to symbols. Begin with `load.py`; what is made of each operator is in the tables of the other files."""
