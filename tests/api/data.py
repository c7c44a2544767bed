"""Iterators over data, files of records, images, and recurrent cells as symbols."""
SECTIONS = ("mxnet.io", "mxnet.rnn", "mxnet.recordio", "mxnet.image")

IMAGES = "iterators over images are not there yet"
EXCEPTIONS = {
    **{f"mxnet.io.{name}": IMAGES for name in (
        "ImageDetRecordIter", "ImageRecordInt8Iter", "ImageRecordIter", "ImageRecordIter_v1", "ImageRecordUInt8Iter",
        "ImageRecordUInt8Iter_v1")},
}
