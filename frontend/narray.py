"""The name that early programs have for `mx.nd`: `mx.narray.create((10, 10))`, `narray.save`, `narray.load`."""
from __future__ import annotations

from mxc.ndarray import *  # noqa: F403
from mxc.ndarray import __dir__, __getattr__  # noqa: F401
from mxc.ndarray.creation import create  # noqa: F401
