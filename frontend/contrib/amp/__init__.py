"""Automatic mixed precision: `mx.contrib.amp`. Networks compute in float16 or bfloat16 where it does, else in float32.

Begin with `amp.py`: `init` for training, in which every operator casts its inputs; `loss_scaler.py` has the factor of
the loss. `conversion.py` makes trained symbols and blocks of mixed precision, by the casts of `casts.py`. `choices.py`
and `lists` say which operator computes in which dtype.
"""
from mxc.contrib.amp import amp, lists, loss_scaler
from mxc.contrib.amp.amp import *  # noqa: F403  # the names that it lists, as in MXNet

__all__ = [*amp.__all__, "amp", "lists", "loss_scaler"]
