"""Optimizers, which change weights by their gradients: `mx.optimizer`.

Begin with `base.py` (what they have in common); `descent.py` and `adaptive.py` have the optimizers, `updater.py`
applies one to weights by their indices, `saved_states.py` stores states. Programs and other modules import the names
below.
"""
from mxc.optimizer import contrib
from mxc.optimizer.optimizer import (
    DCASGD,
    FTML,
    LAMB,
    LARS,
    LBSGD,
    NAG,
    SGD,
    SGLD,
    AdaDelta,
    AdaGrad,
    Adam,
    Adamax,
    Ftrl,
    Nadam,
    Optimizer,
    RMSProp,
    Signum,
    Test,
    Updater,
    ccSGD,
    create,
    get_updater,
    register,
)
from mxc.runtime.elsewhere import elsewhere

__getattr__, _names = elsewhere(__name__, {"mxc.ndarray": "NDabs=abs"})
__all__ = [
    "AdaDelta", "AdaGrad", "Adam", "Adamax", "DCASGD", "FTML", "Ftrl", "LAMB", "LARS", "LBSGD", "NAG", "Nadam",
    "Optimizer", "RMSProp", "SGD", "SGLD", "Signum", "Test", "Updater", "ccSGD", "contrib", "create", "get_updater",
    "register", *_names]
