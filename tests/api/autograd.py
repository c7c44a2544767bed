"""Gradients of imperative programs, and operators written in Python."""
SECTIONS = ("mxnet.autograd", "mxnet.operator")

CTYPES = "a helper of MXNet's calls into its C library, which mxc does not have"
EXCEPTIONS = {
    **{f"mxnet.autograd.{name}": CTYPES for name in ("c_array", "c_array_buf", "c_handle_array", "check_call")},
    **{f"mxnet.operator.{name}": CTYPES for name in ("c_array", "c_array_buf", "c_str", "check_call",
                                                    "ctypes2numpy_shared", "py_str")},
    "mxnet.operator.is_np_array": "mxc does not have the NumPy interface, mx.np",
}
