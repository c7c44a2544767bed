"""Every module that mxc has gives the names that MXNet 1.9.1's gives, by `from MODULE import *` and by themselves.

module_names.json has them for each module of MXNet: `star` is what the star import binds, `others` lives there too.
EXCEPTIONS says what is not there, and why. `python tests/golden/make_golden.py module_names` asks MXNet for the table.
"""
from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from collections.abc import Iterator, Set
from pathlib import Path

import pytest

from mxc.base import MXNetError
from mxc.compiler.ops import table

TABLE = Path(__file__).parent / "module_names.json"
NAMES = {module: {kind: names.split() for kind, names in kinds.items()}
         for module, kinds in json.loads(TABLE.read_text()).items()}

LIBRARY = "a step of MXNet's calls into its C library, or of how it makes modules from it, which mxc does not have"
PRIVATE = "a helper of MXNet's own code, which mxc does otherwise"
NUMPY = "the interface mx.np is not there"
GENERATED = "modules that MXNet generates: op, contrib, image, linalg and sparse have the functions"
DLPACK = "DLPack's structures in C: NumPy reads and makes them here"
PACKAGE = "a package that mxc does not need"
OTHER_TOOLS = "tools and bindings around MXNet, for its documentation, Torch, TVM and CUDA"
OPENCV = "OpenCV, which mxc imports when an image is decoded"
PARTS = "needs a part of MXNet that mxc does not have yet"
MISSING = {
    ("mxnet", NUMPY): "np np_symbol npx numpy numpy_dispatch_protocol numpy_extension numpy_op_fallback "
                      "numpy_op_signature _numpy_op_doc",
    ("mxnet", OTHER_TOOLS): "library ndarray_doc notebook rtc symbol_doc th torch tvmop",
    ("mxnet", LIBRARY): "_api_internal _ctypes _cy3 _ffi _global_var api",
    ("mxnet.base", LIBRARY): "_find_error_type _generate_op_module_signature _get_op_name_prefix "
                             "_get_op_submodule_name _init_np_op_module _init_op_module _load_lib _notify_shutdown "
                             "_output_is_list _OP_NAME_PREFIX_LIST _valid_error_name add_fileline_to_docstring "
                             "c2pyerror error_types get_last_ffi_error",
    ("mxnet.base", NUMPY): "_NP_EXT_OP_PREFIX _NP_EXT_OP_SUBMODULE_LIST _NP_INTERNAL_OP_PREFIX _NP_OP_PREFIX "
                           "_NP_OP_SUBMODULE_LIST _NP_OUTPUT_IS_LIST_OPERATORS _is_np_op",
    ("mxnet.test_utils", NUMPY): "check_gluon_hybridize_consistency np_symbol",
    ("mxnet.test_utils", PACKAGE): "requests ss",
    ("mxnet.test_utils", PRIVATE): "_features _find_max_violation _parse_aux_states _parse_location _sorted_dict "
                                   "_sorted_items",
    ("mxnet.util", NUMPY): "_NumpyArrayScope _np_ufunc_default_kwargs _sanity_check_params _set_np_array "
                           "_set_np_array_logged np_ufunc_legal_option wrap_np_binary_func wrap_np_unary_func",
    ("mxnet.util", PRIVATE): "_CUDA_SUCCESS _set_np_shape_logged",
    ("mxnet.autograd", PRIVATE): "_RecordingStateScope _parse_head", ("mxnet.autograd", LIBRARY): "_ndarray_cls",
    ("mxnet.ndarray", LIBRARY): "CachedOp _ndarray_cls _new_empty_handle register",
    ("mxnet.ndarray", GENERATED): "gen__internal gen_contrib gen_image gen_linalg gen_op gen_sparse",
    ("mxnet.ndarray", NUMPY): "np npx numpy numpy_extension",
    ("mxnet.ndarray", PRIVATE): "utils",
    ("mxnet.ndarray.ndarray", LIBRARY): "_INT64_TENSOR_SIZE_ENABLED _new_alloc_handle _new_empty_handle "
                                        "_new_from_shared_mem _storage_type",
    ("mxnet.ndarray.ndarray", DLPACK): "DLContext DLDataType DLManagedTensor DLTensor DeleterFunc PyCapsuleDestructor "
                                       "_c_dlpack_deleter _c_str_dltensor _c_str_used_dltensor _dlpack_deleter "
                                       "dl_managed_tensor_deleter",
    ("mxnet.ndarray.ndarray", PRIVATE): "_NDARRAY_NO_ZERO_DIM_BOOL_ARRAY _NDARRAY_ZERO_DIM_BOOL_ARRAY_FALSE "
                                        "_NDARRAY_ZERO_DIM_BOOL_ARRAY_TRUE _broadcast_shapes _get_broadcast_shape "
                                        "_get_dim_size _get_index_range _get_slice_len _int_to_slice "
                                        "_is_advanced_index _shape_for_bcast _ufunc_helper "
                                        "check_boolean_array_dimension",
    ("mxnet.symbol", LIBRARY): "register",
    ("mxnet.symbol", GENERATED): "gen__internal gen_contrib gen_image gen_linalg gen_op gen_sparse",
    ("mxnet.symbol", NUMPY): "np npx numpy numpy_extension",
    ("mxnet.symbol.symbol", LIBRARY): "_ndarray_cls _set_symbol_class",
    ("mxnet.executor", LIBRARY): "_monitor_callback_wrapper _ndarray_cls",
    ("mxnet.executor", PRIVATE): "_load_data _load_label",
    ("mxnet.model", PRIVATE): "_create_sparse_kvstore _load_data _train_multi_device _update_params_on_kvstore_nccl",
    ("mxnet.engine", PRIVATE): "_BulkScope",
    ("mxnet.optimizer.optimizer", PRIVATE): "_as_classic _flatten_list",
    ("mxnet.optimizer.optimizer", PARTS): "multi_lamb_update multi_lars multi_mp_lamb_update multi_sum_sq",
    ("mxnet.operator", LIBRARY): "_Registry _ndarray_cls _np_ndarray_cls _registry",
    ("mxnet.profiler", LIBRARY): "profiler_kvstore_handle set_kvstore_handle",
    ("mxnet.visualization", PRIVATE): "_str2tuple",
    ("mxnet.metric", PRIVATE): "_BinaryClassificationMetrics",
    ("mxnet.initializer", NUMPY): "_mx_np",
    ("mxnet.io", PRIVATE): "_getdata_by_idx _has_instance utils",
    ("mxnet.io.io", LIBRARY): "_build_param_doc _init_io_module _make_io_iterator _ndarray_cls",
    ("mxnet.io.io", PRIVATE): "_getdata_by_idx _has_instance _slice_along_batch_axis",
    ("mxnet.gluon.block", PRIVATE): "_brief_print_list _check_all_np_ndarrays _check_same_symbol_type _common_prefix "
                                    "_flatten _gather_type_ctx_info _indent _infer_param_types _name _regroup",
    ("mxnet.gluon.block", NUMPY): "_mx_np _mx_npx np_symbol",
    ("mxnet.gluon.parameter", PRIVATE): "_brief_print_list _indent", ("mxnet.gluon.parameter", NUMPY): "_mx_np",
    ("mxnet.gluon.nn.basic_layers", PRIVATE): "_indent",
    ("mxnet.gluon.rnn.rnn_cell", PRIVATE): "_as_list _cells_begin_state _cells_state_info _format_sequence "
                                           "_get_begin_state _indent _mask_sequence_variable_length "
                                           "_reverse_sequences",
    ("mxnet.gluon.trainer", PRIVATE): "_create_sparse_kvstore",
    ("mxnet.gluon.utils", PRIVATE): "_brief_print_list _check_all_np_ndarrays _check_same_symbol_type _indent",
    ("mxnet.gluon.utils", NUMPY): "_mx_np", ("mxnet.gluon.utils", PACKAGE): "requests",
    ("mxnet.contrib", PARTS): "autograd io nd ndarray sym symbol tensorboard text",
    ("mxnet.contrib.quantization", PACKAGE): "stats",
    ("mxnet.contrib.quantization", PRIVATE): "_collect_layer_histogram _collect_layer_output_min_max "
                                             "_collect_layer_statistics _load_params _load_sym _smooth_distribution",
    ("mxnet.gluon.data.dataloader", PRIVATE): "ConnectionWrapper DataLoaderV1 Queue SimpleQueue "
                                              "_MultiWorkerIterV1 _thread_worker_fn "
                                              "_thread_worker_initializer _worker_dataset _worker_fn "
                                              "_worker_initializer fetcher_loop_v1 rebuild_ndarray reduce_ndarray "
                                              "worker_loop_v1",
    ("mxnet.gluon.data.dataloader", NUMPY): "_mx_np rebuild_np_ndarray reduce_np_ndarray",
    ("mxnet.gluon.contrib.estimator", PRIVATE): "utils",
    ("mxnet.recordio", OPENCV): "cv2", ("mxnet.image", OPENCV): "cv2", ("mxnet.image.image", OPENCV): "cv2",
    ("mxnet.image.image", NUMPY): "_mx_np _npi", ("mxnet.image.detection", NUMPY): "_mx_np",
    ("mxnet.rnn.rnn_cell", PRIVATE): "_cells_begin_state _cells_pack_weights _cells_state_info _cells_state_shape "
                                     "_cells_unpack_weights",
}
EXCEPTIONS = {(module, name): reason for (module, reason), names in MISSING.items() for name in names.split()}
# Modules that mxc may come to have, by the names that `mxnet` has for them, and operators that the table may.
PARTS_TO_COME = {name: name for name in (
    "callback", "contrib", "executor_manager", "gluon", "image", "initializer", "io", "kvstore", "lr_scheduler",
    "metric", "model", "module", "monitor", "onnx", "optimizer", "recordio", "rnn")}
PARTS_TO_COME.update(img="image", init="initializer", kv="kvstore", mod="module", mon="monitor")
OPERATORS_TO_COME = {
    "Correlation", "IdentityAttachKLSparseReg", "all_finite", "amp_multicast",
    "linalg_det", "linalg_extractdiag", "linalg_extracttrian", "linalg_gelqf", "linalg_gemm", "linalg_gemm2",
    "linalg_inverse", "linalg_makediag", "linalg_maketrian", "linalg_potrf", "linalg_potri", "linalg_slogdet",
    "linalg_sumlogdiag", "linalg_syrk", "linalg_trmm", "linalg_trsm", "multi_all_finite", "multi_lars", "multi_sum_sq",
    "reset_arrays"}


# Operators that MXNet does not have: the namespaces of operators have them besides, and docs/differences.md names them.
BEYOND: set[str] = set()


def allowed(module: str) -> set[str]:
    """The names that mxc's module may have and MXNet's does not."""
    return BEYOND if module in ("mxnet.ndarray", "mxnet.symbol") else set()


def difference(found: Set[str], wanted: Set[str]) -> str:
    """How the names that a module has differ from those it is to have, and what to do about it."""
    return (f"new: {sorted(found - wanted)}, gone: {sorted(wanted - found)}; an operator that MXNet does not have goes "
            "into BEYOND here and into docs/differences.md, another new name becomes private or stays out of the "
            "module's __all__; what is gone is brought back, or stands in MISSING with the reason")


def is_there(module: str) -> bool:
    """Whether mxc has a module, given by its name in MXNet."""
    try:
        return importlib.util.find_spec(module.replace("mxnet", "mxc", 1)) is not None
    except ModuleNotFoundError:  # nor the package that it is in
        return False


MODULES = [module for module in NAMES if is_there(module)]


def expected(module: str, kind: str) -> Iterator[str]:
    """The names of MXNet's module that are to be here."""
    space = importlib.import_module(module.replace("mxnet", "mxc", 1))
    for name in NAMES[module][kind]:
        if module == "mxnet" and name in PARTS_TO_COME and not is_there(f"mxnet.{PARTS_TO_COME[name]}"):
            continue
        if module in ("mxnet.ndarray", "mxnet.symbol") and name in OPERATORS_TO_COME and not hasattr(space, name):
            continue
        if (module, name) not in EXCEPTIONS:
            yield name


@pytest.mark.parametrize("module", MODULES)
def test_star_import(module: str) -> None:
    bound: dict[str, object] = {}
    exec(f"from {module.replace('mxnet', 'mxc', 1)} import *", bound)
    bound.pop("__builtins__")
    found = bound.keys() - table.loaded().defined.keys()  # operators that other tests define
    wanted = set(expected(module, "star"))
    assert found - wanted <= allowed(module) and wanted <= found, difference(found, wanted | allowed(module))


def test_names_beyond_mxnet_are_operators_that_mxnet_does_not_have() -> None:
    assert not [name for name in BEYOND if not table.has(name)]
    assert not BEYOND & {*NAMES["mxnet.ndarray"]["star"], *NAMES["mxnet.symbol"]["star"]}


def test_a_name_that_mxnet_does_not_have_is_reported_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "BEYOND", {"rms_norm"})
    assert allowed("mxnet.ndarray") == allowed("mxnet.symbol") == {"rms_norm"} and not allowed("mxnet.gluon")
    said = difference({"relu", "rms_norm", "swish"}, {"relu", "rms_norm", "tanh"})
    assert said.startswith("new: ['swish'], gone: ['tanh']; ") and "BEYOND" in said


@pytest.mark.parametrize("module", MODULES)
def test_what_else_lives_there(module: str) -> None:
    space = importlib.import_module(module.replace("mxnet", "mxc", 1))
    assert [name for name in expected(module, "others") if not hasattr(space, name)] == []


def test_exceptions_are_exceptions() -> None:
    for module, name in EXCEPTIONS:
        assert name in NAMES[module]["star"] + NAMES[module]["others"]
        space = importlib.import_module(module.replace("mxnet", "mxc", 1))
        assert not hasattr(space, name), f"{module}.{name} is there: no exception"


def test_modules_are_named_by_errors() -> None:
    import mxc as mx

    for module in (mx.context, mx.base, mx.nd.ndarray, mx.runtime, mx.test_utils, mx.registry):
        with pytest.raises(AttributeError, match=rf"module '{module.__name__}' has no attribute 'nothing'"):
            module.nothing  # noqa: B018
    with pytest.raises(MXNetError, match=r"_LIB\.MXNDArrayFree: mxc has no C library"):
        mx.base._LIB.MXNDArrayFree()
    assert not hasattr(mx.base._LIB, "__len__")
