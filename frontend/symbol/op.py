"""The operator functions of `mx.sym` without the functions of other kinds: `mx.sym.op.relu`."""
from __future__ import annotations

from mxc.operator_calls import public_names as __dir__
from mxc.symbol.functions import lookup as __getattr__

__all__ = ["__dir__", "__getattr__"]
