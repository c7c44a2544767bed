"""Iterators over data, files of records, images, and recurrent cells as symbols."""
SECTIONS = ("mxnet.io", "mxnet.rnn", "mxnet.recordio", "mxnet.image")

EXCEPTIONS = {"mxnet.io.ImageDetRecordIter": "records of images with boxes are read by mx.image.ImageDetIter"}
