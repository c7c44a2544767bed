"""Networks that are ready to be trained or loaded: `mx.gluon.model_zoo`.

Begin with `vision`. `model_store.py` finds trained weights in a folder of this machine.
"""
from mxc.gluon.model_zoo import model_store, vision

__all__ = ["model_store", "vision"]
