"""Data for training, batch by batch: `mx.io`.

Begin with `io.py` (what iterators are and give); `ndarray_iter.py` has arrays in memory, `built_in.py` files,
`image_records.py` records of images, and `prefetching.py` makes batches in a thread. Programs and other modules import
the names below.
"""
# ruff: noqa: F401 (what is imported is what the module gives)
from mxc.io import io
from mxc.io.built_in import CSVIter, LibSVMIter, MNISTIter, MXDataIter
from mxc.io.io import DataBatch, DataDesc, DataIter, ResizeIter
from mxc.io.ndarray_iter import NDArrayIter, _init_data
from mxc.io.prefetching import PrefetchingIter
from mxc.runtime.elsewhere import elsewhere

# What decodes images is imported when it is asked for.
__getattr__, _images = elsewhere(__name__, {
    "mxc.io.box_records": "ImageDetRecordIter",
    "mxc.io.image_records": "ImageRecordInt8Iter ImageRecordIter ImageRecordIter_v1 ImageRecordUInt8Iter "
                            "ImageRecordUInt8Iter_v1"})
__all__ = ["CSVIter", "DataBatch", "DataDesc", "DataIter", "LibSVMIter", "MNISTIter", "MXDataIter", "NDArrayIter",
           "PrefetchingIter", "ResizeIter", "io", *_images]
