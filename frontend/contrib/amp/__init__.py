"""Automatic mixed precision: `mx.contrib.amp`. mxc does not have it, and says so when it is to begin.

Begin with `amp.py`. Packages ask there whether it is on.
"""
from mxc.contrib.amp.amp import init

__all__ = ["init"]
