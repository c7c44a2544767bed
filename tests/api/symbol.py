"""The graph interface: symbols, executors, names, attributes."""
SECTIONS = ("mxnet.symbol", "mxnet.symbol.random", "mxnet.symbol.linalg", "mxnet.symbol.contrib",
            "mxnet.symbol.sparse", "mxnet.symbol.image", "mxnet.executor", "mxnet.name", "mxnet.attribute")

EXCEPTIONS = {
    "mxnet.symbol.contrib.SparseEmbedding":
        "MXNet's list says sparse_grad, and MXNet refuses it: its operator takes deterministic",
    "mxnet.symbol.contrib.quantized_rnn": "it takes `quantized`, which MXNet's files have, too",
    "mxnet.executor.Executor": "bind and simple_bind make executors; MXNet's constructor takes a handle of its library",
    "mxnet.executor.Executor.__del__": "Python frees an executor's memory",
    "mxnet.symbol.Group": "create_fn is None instead of Symbol by default, which means the same",
}
