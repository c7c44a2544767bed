"""Networks for images, 34 of them: `mx.gluon.model_zoo.vision`.

Begin with `get_model`, here, and `resnet.py`: each family of networks has a file. Programs import classes and functions
from here.
"""
from typing import Any

from mxc.compiler.error import nearest
from mxc.gluon.model_zoo.vision import alexnet as _alexnet
from mxc.gluon.model_zoo.vision import densenet, inception, mobilenet, resnet, squeezenet, vgg
from mxc.gluon.model_zoo.vision.alexnet import *  # noqa: F403
from mxc.gluon.model_zoo.vision.densenet import *  # noqa: F403
from mxc.gluon.model_zoo.vision.inception import *  # noqa: F403
from mxc.gluon.model_zoo.vision.mobilenet import *  # noqa: F403
from mxc.gluon.model_zoo.vision.resnet import *  # noqa: F403
from mxc.gluon.model_zoo.vision.squeezenet import *  # noqa: F403
from mxc.gluon.model_zoo.vision.vgg import *  # noqa: F403

_PARTS = (_alexnet, densenet, inception, mobilenet, resnet, squeezenet, vgg)
__all__ = ["densenet", "get_model", "inception", "mobilenet", "resnet", "squeezenet", "vgg",
           *(name for part in _PARTS for name in part.__all__)]

# MXNet's names of networks where they differ from those of the functions.
_NAMES = {"inceptionv3": "inception_v3", "squeezenet1.0": "squeezenet1_0", "squeezenet1.1": "squeezenet1_1",
          **{f"mobilenet{m}": f"mobilenet{m.replace('.', '_')}" for m in ("1.0", "0.75", "0.5", "0.25")},
          **{f"mobilenetv2_{m}": f"mobilenet_v2_{m.replace('.', '_')}" for m in ("1.0", "0.75", "0.5", "0.25")}}
_SAME = [name for part in _PARTS for name in part.__all__
         if name.islower() and not name.startswith("get_") and name not in _NAMES.values()]


def get_model(name: str, **kwargs: Any) -> Any:
    """The network of that name, as "resnet50_v1", made with `kwargs`: classes, pretrained, ctx, root.

    Raises ValueError for a name of none.
    """
    names = [*_SAME, *_NAMES]
    if name.lower() not in names:
        raise ValueError(f"there is no network {name!r}{nearest(name.lower(), names)}; expected one of "
                         f"{', '.join(sorted(names))}")
    return globals()[_NAMES.get(name.lower(), name.lower())](**kwargs)
