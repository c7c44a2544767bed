"""What the families of networks share: weights of trained ones, and functions for the networks that have a name."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxc.gluon.model_zoo.model_store import get_model_file


def load_weights(net: Any, name: str, ctx: Any, root: str) -> None:
    """Read the weights of the network of that name in the folder `root`. Raises ModelFileError when there are none."""
    net.load_parameters(get_model_file(name, root=root), ctx=ctx)


def named(name: str, doc: str, get: Callable[..., Any], *args: Any, **fixed: Any) -> Callable[..., Any]:
    """A function of that name which gives `get(*args, **kwargs)`, with `fixed` in place of kwargs of the same names."""
    def make(**kwargs: Any) -> Any:
        return get(*args, **{**kwargs, **fixed})

    make.__name__ = make.__qualname__ = name
    make.__module__, make.__doc__ = get.__module__, doc
    return make
