"""The array interface: arrays, their namespaces, contexts."""
SECTIONS = ("mxnet.context", "mxnet.ndarray", "mxnet.ndarray.linalg", "mxnet.ndarray.contrib", "mxnet.ndarray.image",
            "mxnet.ndarray.sparse")

CTYPES = "a helper of MXNet's calls into its C library, which mxc does not have"
PICKLE = "arrays are pickled by __reduce__"
OUT = "takes `out` besides"
EXCEPTIONS = {
    "mxnet.ndarray.contrib.SparseEmbedding":
        "MXNet's list says sparse_grad, and MXNet refuses it: its operator takes deterministic",
    "mxnet.ndarray.contrib.quantized_rnn": "it takes `quantized`, which MXNet's files have, too",
    "mxnet.ndarray._new_empty_handle": CTYPES,
    "mxnet.ndarray.NDArray.__getstate__": PICKLE,
    **{f"mxnet.ndarray.{name}": OUT for name in ("add", "divide", "maximum", "minimum", "modulo", "multiply", "power",
                                                  "subtract", "true_divide")},
}
