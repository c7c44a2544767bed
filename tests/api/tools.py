"""What programs test and measure themselves with, and small modules."""
SECTIONS = ("mxnet.profiler", "mxnet.engine", "mxnet.test_utils", "mxnet.util", "mxnet.runtime", "mxnet.error",
            "mxnet.log")

CTYPES = "a helper of MXNet's calls into its C library, which mxc does not have"
NUMPY = "mxc does not have the NumPy interface, mx.np"
SPARSE = "arrays are kept dense"
DOWNLOADS = "mxc downloads nothing"
PARTS = "needs a part of MXNet that mxc does not have yet: "
OWN_TESTS = "for the tests of MXNet itself: it says how those are built and run"
CUDA = "there is no GPU target at run time"
EXCEPTIONS = {
    **{f"mxnet.{module}.{name}": CTYPES for module, names in {
        "profiler": ("c_str", "c_str_array", "check_call", "py_str"), "engine": ("check_call",),
        "util": ("c_str", "check_call", "py_str"), "runtime": ("check_call",)}.items() for name in names},
    **{f"mxnet.profiler.{name}.__del__": "an event has no handle to give back"
       for name in ("Counter", "Event", "Frame", "Task")},
    "mxnet.profiler.set_kvstore_handle": "there is no server process to profile",
    **{f"mxnet.util.{name}": NUMPY for name in (
        "np_array", "np_ufunc_legal_option", "set_np", "use_np", "use_np_array", "wrap_np_binary_func",
        "wrap_np_unary_func")},
    "mxnet.test_utils.use_np": NUMPY,
    **{f"mxnet.{module}.get_cuda_compute_capability": CUDA for module in ("util", "test_utils")},
    **{f"mxnet.test_utils.{name}": SPARSE for name in (
        "create_sparse_array", "create_sparse_array_zd", "rand_sparse_ndarray", "shuffle_csr_column_indices")},
    **{f"mxnet.test_utils.{name}": DOWNLOADS for name in (
        "download", "download_model", "get_bz2_data", "get_cifar10", "get_mnist_pkl", "get_mnist_ubyte",
        "get_zip_data")},
    **{f"mxnet.test_utils.{name}": OWN_TESTS for name in (
        "get_im2rec_path", "has_tvm_ops", "is_aarch64_run", "is_cd_run", "is_op_runnable")},
    **{f"mxnet.test_utils.{name}": f"{PARTS}{part}" for name, part in {
        "DummyIter": "io", "DummyIter.__iter__": "io", "DummyIter.next": "io", "get_mnist_iterator": "io",
        "check_gluon_hybridize_consistency": "gluon", "compare_optimizer": "optimizer"}.items()},
}
