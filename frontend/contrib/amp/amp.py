"""Whether operators take float16 by themselves: never in mxc."""
from __future__ import annotations

from typing import Any

from mxc.compiler.error import MXNetError

__all__ = ["init"]

_amp_initialized = False  # packages for MXNet read it, to choose numbers that float16 has


def init(target_dtype: str = "float16", target_precision_ops: Any = None, conditional_fp32_ops: Any = None,
         fp32_ops: Any = None) -> None:
    """Raises MXNetError: there is no automatic mixed precision here."""
    raise MXNetError(f"amp.init(target_dtype={target_dtype!r}): mxc has no automatic mixed precision; train in "
                     "float32, or cast the network by net.cast('float16') and give the optimizer multi_precision=True")
