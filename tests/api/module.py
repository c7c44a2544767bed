"""Modules, models, and the key-value stores that they use."""
SECTIONS = ("mxnet.kvstore", "mxnet.module", "mxnet.model")

EXCEPTIONS = {"mxnet.kvstore.KVStore.__del__": "a step of MXNet's calls into its C library"}
