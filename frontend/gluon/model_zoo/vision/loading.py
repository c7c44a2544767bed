"""Weights of trained networks."""
from __future__ import annotations

from typing import Any

from mxc.gluon.model_zoo.model_store import get_model_file


def load_weights(net: Any, name: str, ctx: Any, root: str) -> None:
    """Read the weights of the network of that name in the folder `root`. Raises ModelFileError when there are none."""
    net.load_parameters(get_model_file(name, root=root), ctx=ctx)
