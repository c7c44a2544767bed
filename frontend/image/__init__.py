"""Images: decoding, resizing, cropping, augmentation, and iterators over them: `mx.image`.

Begin with `resizing.py` (functions of one image) and `augmenters.py`; `iterator.py` reads lists, folders and records.
`detection.py` is the same with boxes. Programs import the names from here, or from `mx.image.image` and
`mx.image.detection` as MXNet has them.
"""
from mxc.image import detection, image
from mxc.image.detection import *  # noqa: F403
from mxc.image.image import *  # noqa: F403

det = detection
__all__ = sorted({*image.__all__, *detection.__all__, "det", "detection", "image"})
