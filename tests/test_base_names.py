"""The helpers of mx.base, mx.util, mx.libinfo and mx.codes: what MXNet 1.9.1 answered, or refuses here."""
from __future__ import annotations

import array
import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc import base
from mxc.compiler.error import UnsupportedError


def test_conversions_between_python_and_c() -> None:
    assert base.c_str("a\u00e9").value == b"a\xc3\xa9" and base.py_str(b"a\xc3\xa9") == "a\u00e9"
    assert base.c_array(base.mx_uint, [1, 2])[:] == [1, 2] and base.c_str_array(["a", "b"])[:] == [b"a", b"b"]
    numbers = array.array("I", [1, 2])
    shared = base.c_array_buf(base.mx_uint, numbers)
    numbers[0] = 7
    assert shared[:] == [7, 2]
    pointer = ctypes.cast(ctypes.c_char_p(b"hello"), ctypes.POINTER(ctypes.c_char))
    assert base.ctypes2buffer(pointer, 3) == bytearray(b"hel")
    floats = (ctypes.c_float * 4)(1, 2, 3, 4)
    made = base.ctypes2numpy_shared(ctypes.cast(floats, base.mx_float_p), (2, 2))
    floats[3] = 9
    np.testing.assert_array_equal(made, [[1, 2], [3, 9]])
    assert len(base.c_handle_array([])) == 0 and base.NDArrayHandle is base.ctypes.c_void_p
    for wrong in (lambda: base.ctypes2buffer(floats, 1), lambda: base.ctypes2numpy_shared(floats, (1,)),
                  lambda: base.c_handle_array([mx.nd.ones((1,))]), lambda: base.check_call(-1)):
        with pytest.raises(RuntimeError, match=r"pointer|no handle|returned -1"):
            wrong()
    assert base.check_call(0) is None


def test_texts_folders_and_types(monkeypatch: pytest.MonkeyPatch) -> None:
    assert base.build_param_doc(["a", "b", "a"], ["int", "float", "int"], ["x", "", "y"]) == \
        "Parameters\n----------\na : int\n    x\nb : float\n"
    assert base.build_param_doc(["a", "a"], ["int", "int"], ["x", "y"], remove_dup=False).count("a : int") == 2
    monkeypatch.delenv("MXNET_HOME", raising=False)
    assert base.data_dir() == base.data_dir_default() == str(Path.home() / ".mxnet")
    monkeypatch.setenv("MXNET_HOME", "elsewhere")
    assert base.data_dir() == "elsewhere"
    error = base.NotSupportedForSparseNDArray(mx.nd.ones, "+", 1, 2.0)
    assert isinstance(error, mx.MXNetError) and str(error) == (
        "Function ones (namely operator \"+\") with arguments (<class 'int'>, <class 'float'>) is not supported for "
        "SparseNDArray and only available in NDArray.")
    assert base.string_types == (base.basestring,) and isinstance(3, base.long)
    assert isinstance(np.int32(3), base.integer_types) and isinstance(np.float16(3), base.numeric_types)


def test_numbers_of_dtypes_requests_and_storage_types() -> None:
    to_numbers, to_types = mx.nd._DTYPE_NP_TO_MX, mx.nd._DTYPE_MX_TO_NP
    assert [to_numbers[t] for t in (None, np.float32, np.float64, np.float16, np.uint8, np.int32, np.int8, np.int64,
                                    np.bool_)] == list(range(-1, 8))
    assert to_types == {number: dtype for dtype, number in to_numbers.items()}
    assert mx.autograd._GRAD_REQ_MAP == {"null": 0, "write": 1, "add": 3}
    assert mx.nd.ndarray._STORAGE_TYPE_STR_TO_ID == {"undefined": -1, "default": 0, "row_sparse": 1, "csr": 2}
    assert mx.operator._STORAGE_TYPE_ID_TO_STR[mx.operator._STORAGE_TYPE_CSR] == "csr"


@pytest.mark.parametrize("call", [
    lambda: mx.util.set_np(), lambda: mx.np_array().__enter__(), lambda: mx.use_np(lambda: 1),
    lambda: mx.test_utils.use_np(lambda: 1), lambda: mx.use_np_array(lambda: 1)])
def test_the_numpy_interface_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(UnsupportedError, match=r"the interface mx\.np is not there.*mx\.np_shape"):
        call()
    assert not mx.is_np_shape()


def test_numpys_shapes_alone_can_be_set() -> None:
    mx.util.set_np(shape=True, array=False)
    assert mx.is_np_shape()
    with mx.np_array(False):
        assert mx.is_np_shape()
    mx.util.set_np(shape=False, array=False)
    assert not mx.is_np_shape()
    with pytest.raises(ValueError, match="shape semantics"):
        mx.util.set_np(shape=False, array=True)


def test_what_only_a_gpu_or_a_library_has() -> None:
    with pytest.raises(ValueError, match=r"only a GPU has a compute capability, got cpu\(0\)"):
        mx.util.get_cuda_compute_capability(mx.cpu())
    with pytest.raises(mx.MXNetError, match=r"gpu\(0\): there is none"):
        mx.util.get_cuda_compute_capability(mx.gpu())
    for find in (mx.libinfo.find_lib_path, mx.libinfo.find_include_path, mx.libinfo.find_conf_path):
        with pytest.raises(RuntimeError, match="mxc"):
            find()
    assert mx.libinfo.__version__ == mx.__version__
    assert (mx.test_utils.has_tvm_ops(), mx.test_utils.is_op_runnable()) == (False, True)
