"""The graph interface: symbols, executors, names, attributes."""
SECTIONS = ("mxnet.symbol", "mxnet.symbol.random", "mxnet.symbol.linalg", "mxnet.symbol.contrib",
            "mxnet.symbol.sparse", "mxnet.symbol.image", "mxnet.executor", "mxnet.name", "mxnet.attribute")

CTYPES = "a helper of MXNet's calls into its C library, which mxc does not have"
METACLASS = "a helper by which MXNet makes its own classes"
EXCEPTIONS = {
    **{f"mxnet.executor.{name}": CTYPES for name in ("c_array_buf", "c_handle_array", "c_str_array", "check_call",
                                                    "py_str")},
    **{f"mxnet.{module}.{name}": METACLASS for module in ("name", "attribute")
       for name in ("classproperty", "with_metaclass")},
    "mxnet.executor.Executor": "bind and simple_bind make executors; MXNet's constructor takes a handle of its library",
    "mxnet.executor.Executor.__del__": "Python frees an executor's memory",
    "mxnet.symbol.Group": "create_fn is None instead of Symbol by default, which means the same",
}
