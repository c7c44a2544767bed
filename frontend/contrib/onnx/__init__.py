"""`mx.contrib.onnx`: ONNX models read as symbols or blocks, and written. Needs the extra `onnx`.

Begin with `import_model.py`; `mxc/onnx/` has what it rests on. MXNet has each function under a second name with `_`.
"""
from mxc.contrib.onnx.import_model import get_model_metadata, import_model, import_to_gluon
from mxc.onnx import onnx2mx
from mxc.onnx.export_model import export_model

export_model_, import_model_ = export_model, import_model
import_to_gluon_, get_model_metadata_ = import_to_gluon, get_model_metadata
__all__ = ["export_model", "export_model_", "get_model_metadata", "get_model_metadata_", "import_model",
           "import_model_", "import_to_gluon", "import_to_gluon_", "onnx2mx"]
