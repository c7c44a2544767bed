"""Parts beside the others whose interface may change: `mx.contrib`. There are `onnx`, and `amp` as far as packages
ask for it.

Begin with `onnx/import_model.py`. Programs import them by their names, `from mxc.contrib import onnx`; mxc's command
`convert` does too.
"""
__all__: list[str] = []
