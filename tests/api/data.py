"""Iterators over data, files of records, images, and recurrent cells as symbols."""
SECTIONS = ("mxnet.io", "mxnet.rnn", "mxnet.recordio", "mxnet.image")

EXCEPTIONS: dict[str, str] = {}
