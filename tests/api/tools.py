"""What programs test and measure themselves with, and small modules."""
SECTIONS = ("mxnet.profiler", "mxnet.engine", "mxnet.test_utils", "mxnet.util", "mxnet.runtime", "mxnet.error",
            "mxnet.log", "mxnet.registry", "mxnet.visualization")

NUMPY = "mxc does not have the NumPy interface, mx.np"
EXCEPTIONS = {
    **{f"mxnet.profiler.{name}.__del__": "an event has no handle to give back"
       for name in ("Counter", "Event", "Frame", "Task")},
    "mxnet.profiler.set_kvstore_handle": "there is no server process to profile",
    **{f"mxnet.util.{name}": NUMPY for name in ("np_ufunc_legal_option", "wrap_np_binary_func", "wrap_np_unary_func")},
    "mxnet.visualization.plot_network": "no node_attrs are None, not a dict that all calls share",
    "mxnet.visualization.print_summary": "positions are a tuple, not a list that all calls share",
    "mxnet.test_utils.check_gluon_hybridize_consistency": NUMPY,
}
