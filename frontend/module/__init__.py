"""MXNet's `mx.module`: a symbol with its parameters, an optimizer and the loops that train, score and predict.

Begin with `base_module.py` (what every module does) and `module.py` (a symbol on devices, by the executors of
`executor_group.py`). Programs import the names below.
"""
from mxc.module import base_module, bucketing_module, executor_group, module, python_module, sequential_module
from mxc.module.base_module import BaseModule
from mxc.module.bucketing_module import BucketingModule
from mxc.module.module import Module
from mxc.module.python_module import PythonLossModule, PythonModule
from mxc.module.sequential_module import SequentialModule

__all__ = ["BaseModule", "BucketingModule", "Module", "PythonLossModule", "PythonModule", "SequentialModule",
           "base_module", "bucketing_module", "executor_group", "module", "python_module", "sequential_module"]
