"""Networks that are ready to be trained or loaded: `mx.gluon.model_zoo`."""
from mxc.gluon.model_zoo import model_store, vision

__all__ = ["model_store", "vision"]
