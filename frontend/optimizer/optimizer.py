"""All optimizers and what they are made with, under the name of MXNet's module: `mx.optimizer.optimizer`."""
from mxc.optimizer.adaptive import FTML, LAMB, AdaDelta, AdaGrad, Adam, Adamax, Ftrl, Nadam, RMSProp, Test
from mxc.optimizer.base import Optimizer
from mxc.optimizer.descent import DCASGD, LARS, LBSGD, NAG, SGD, SGLD, Signum, ccSGD
from mxc.optimizer.updater import Updater, get_updater
from mxc.runtime.elsewhere import elsewhere

register = Optimizer.register
create = Optimizer.create_optimizer

__getattr__, _names = elsewhere(__name__, {"mxc.ndarray": "NDabs=abs"}, {
    "": "logging math numpy os pickle warnings", "mxc.base": "py_str", "mxc.util": "is_np_array",
    "mxc.ndarray.random": "normal",
    "mxc.ndarray": """
        NDArray NDnorm=norm adam_update array cast clip ftml_update ftrl_update lamb_update_phase1 lamb_update_phase2
        maximum mp_lamb_update_phase1 mp_lamb_update_phase2 mp_nag_mom_update mp_sgd_mom_update mp_sgd_update
        multi_mp_sgd_mom_update multi_mp_sgd_update multi_sgd_mom_update multi_sgd_update multiply nag_mom_update
        preloaded_multi_mp_sgd_mom_update preloaded_multi_mp_sgd_update preloaded_multi_sgd_mom_update
        preloaded_multi_sgd_update rmsprop_update rmspropalex_update sgd_mom_update sgd_update signsgd_update
        signum_update sparse sqrt square zeros"""})
__all__ = [
    "AdaDelta", "AdaGrad", "Adam", "Adamax", "DCASGD", "FTML", "Ftrl", "LAMB", "LARS", "LBSGD", "NAG", "Nadam",
    "Optimizer", "RMSProp", "SGD", "SGLD", "Signum", "Test", "Updater", "ccSGD", "create", "get_updater", "register",
    *_names]
