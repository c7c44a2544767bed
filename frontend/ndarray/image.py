"""Image operators: `mx.nd.image.to_tensor` is the operator `_image_to_tensor`."""
from __future__ import annotations

from mxc.ndarray import functions

__getattr__, __dir__ = functions.namespace("image")
