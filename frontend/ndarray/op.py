"""The operator functions of `mx.nd` without the functions of other kinds: `mx.nd.op.relu`."""
from __future__ import annotations

from mxc.ndarray.functions import lookup as __getattr__
from mxc.operator_calls import public_names as __dir__

__all__ = ["__dir__", "__getattr__"]
