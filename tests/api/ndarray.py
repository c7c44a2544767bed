"""The array interface: arrays, their namespaces, contexts."""
SECTIONS = ("mxnet.context", "mxnet.ndarray", "mxnet.ndarray.linalg", "mxnet.ndarray.contrib", "mxnet.ndarray.image",
            "mxnet.ndarray.sparse")

CTYPES = "a helper of MXNet's calls into its C library, which mxc does not have"
DENSE = "arrays are kept dense: sparse ones are refused with a message, and loaded from files as dense ones"
PICKLE = "arrays are pickled by __reduce__"
OUT = "takes `out` besides"
EXCEPTIONS = {
    "mxnet.ndarray.contrib.quantized_rnn": "it takes `quantized`, which MXNet's files have, too",
    "mxnet.ndarray._new_empty_handle": CTYPES,
    "mxnet.ndarray.NDArray.__getstate__": PICKLE,
    **{f"mxnet.ndarray.{space}{name}": OUT for space in ("", "sparse.") for name in ("add", "divide", "multiply",
                                                                                     "subtract")},
    **{f"mxnet.ndarray.{name}": OUT for name in ("maximum", "minimum", "modulo", "power", "true_divide")},
    **{f"mxnet.ndarray.sparse.{name}": DENSE for name in (
        "BaseSparseNDArray", "CSRNDArray", "RowSparseNDArray", "_ndarray_cls", "array", "csr_matrix", "empty",
        "row_sparse_array", "zeros")},
}
