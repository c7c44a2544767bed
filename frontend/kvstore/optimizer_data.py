"""Optimizers as plain data, for servers: a class of mxc's by name, and its settings. Nothing that runs is sent."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mxc import lr_scheduler
from mxc.compiler.error import ArgumentError
from mxc.lr_scheduler import LRScheduler
from mxc.optimizer import Optimizer

Data = dict[str, Any]
PLAIN = (bool, int, float, str, type(None))
SCHEDULER = "lr_scheduler"
LEFT_OUT = ("param_dict", "_index_update_count")  # objects of the program's; a part of another setting


def described(optimizer: Any) -> Data:
    """An optimizer as numbers, text and containers of these.

    Raises TypeError for anything but an optimizer, ValueError for one whose class servers do not know, or whose
    settings are more than data.
    """
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"kvstore: set_optimizer takes an Optimizer, got {type(optimizer)}")
    data = _object(optimizer, "optimizer")
    for kind in ("lr_mult", "wd_mult"):  # those of Gluon's parameters
        data["settings"][kind].update({index: getattr(each, kind) for index, each in optimizer.param_dict.items()})
    return data


def made(data: Data) -> Optimizer:
    """The optimizer of what `described` gave. Raises ValueError for a class that there is not."""
    found = _class_of(data, Optimizer.opt_registry)
    optimizer: Any = object.__new__(found)
    settings = dict(data["settings"])
    if settings[SCHEDULER] is not None:
        kind = _class_of(settings[SCHEDULER], vars(lr_scheduler))
        scheduler: Any = object.__new__(kind)
        scheduler.__dict__.update(settings[SCHEDULER]["settings"])
        settings[SCHEDULER] = scheduler
    counts = settings["_all_index_update_counts"]
    optimizer.__setstate__({**settings, "_index_update_count": counts.setdefault(0, {})})
    return optimizer


def _object(value: Any, what: str) -> Data:
    kind = type(value)
    if not kind.__module__.startswith("mxc."):
        raise ArgumentError(f"kvstore: servers know mxc's own classes, and the {what} is a {kind.__module__}."
                            f"{kind.__qualname__}; let the workers update: update_on_kvstore=False in a Trainer, or "
                            "MXNET_UPDATE_ON_KVSTORE=0")
    settings = {name: each for name, each in value.__dict__.items() if name not in LEFT_OUT}
    return {"class": kind.__name__, "settings": {name: _plain(each, f"{what}'s {name}")
                                                 for name, each in settings.items()}}


def _plain(value: Any, where: str) -> Any:
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, LRScheduler):
        return _object(value, where)
    if isinstance(value, Mapping):
        return {key: _plain(each, where) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_plain(each, where) for each in value])
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        return value.item()  # a number of NumPy's
    raise ArgumentError(f"kvstore: the {where} cannot be sent to servers: it holds {type(value)}; numbers, text and "
                        "containers of these can be")


def _class_of(data: Data, known: Mapping[str, Any]) -> Any:
    name = data["class"]
    found = next((each for each in known.values() if isinstance(each, type) and each.__name__ == name
                  and issubclass(each, (Optimizer, LRScheduler))), None)
    if found is None:
        raise ArgumentError(f"kvstore: this server has no {name!r}: do all machines have the same mxc?")
    return found
