"""`mx.test_utils`: what programs written for MXNet test themselves with.

Begin with `tolerance.py` (comparing arrays) and `symbolic.py` (outputs and gradients of symbols). Programs import the
names below; nothing else of mxc does.
"""
from mxc.context import current_context
from mxc.ndarray import array
from mxc.runtime.elsewhere import elsewhere
from mxc.test_utils.downloads import (
    download,
    download_model,
    get_bz2_data,
    get_cifar10,
    get_mnist_pkl,
    get_mnist_ubyte,
    get_zip_data,
)
from mxc.test_utils.iterators import DummyIter, get_mnist_iterator
from mxc.test_utils.optimizers import compare_optimizer
from mxc.test_utils.sparse_values import (
    create_sparse_array,
    create_sparse_array_zd,
    rand_ndarray,
    rand_sparse_ndarray,
    shuffle_csr_column_indices,
)
from mxc.test_utils.statistics import (
    chi_square_check,
    gen_buckets_probs_with_ppf,
    mean_check,
    var_check,
    verify_generator,
)
from mxc.test_utils.surroundings import (
    discard_stderr,
    environment,
    get_im2rec_path,
    get_mnist,
    has_tvm_ops,
    is_aarch64_run,
    is_cd_run,
    is_op_runnable,
    list_gpus,
    retry,
)
from mxc.test_utils.symbolic import (
    check_consistency,
    check_numeric_gradient,
    check_speed,
    check_symbolic_backward,
    check_symbolic_forward,
    numeric_grad,
    same_symbol_structure,
    simple_forward,
)
from mxc.test_utils.tolerance import (
    almost_equal,
    assert_allclose,
    assert_almost_equal,
    assert_almost_equal_ignore_nan,
    assert_almost_equal_with_err,
    assert_exception,
    checkShapes,
    compare_ndarray_tuple,
    default_atols,
    default_numeric_eps,
    default_rtols,
    effective_dtype,
    get_atol,
    get_etol,
    get_rtol,
    get_tolerance,
    get_tols,
    locationError,
    same,
)
from mxc.test_utils.values import (
    assign_each,
    assign_each2,
    collapse_sum_like,
    create_2d_tensor,
    create_vector,
    default_context,
    default_dtype,
    get_identity_mat,
    get_identity_mat_batch,
    new_matrix_with_real_eigvals_2d,
    new_matrix_with_real_eigvals_nd,
    new_orthonormal_matrix_2d,
    new_sym_matrix_with_real_eigvals_2d,
    new_sym_matrix_with_real_eigvals_nd,
    np_reduce,
    rand_coord_2d,
    rand_shape_2d,
    rand_shape_3d,
    rand_shape_nd,
    random_arrays,
    random_sample,
    random_uniform_arrays,
    same_array,
    set_default_context,
)
from mxc.util import get_cuda_compute_capability, getenv, setenv, use_np

__getattr__, _names = elsewhere(__name__, {
    "": "bz2 errno gzip json logging mx=mxc np=numpy npt=numpy.testing numbers os platform rnd=numpy.random struct sys "
        "time traceback zipfile",
    "collections": "OrderedDict", "contextlib": "contextmanager", "mxc.codes": "_STORAGE_TYPE_STR_TO_ID",
    "mxc.context": "Context", "mxc.runtime": "Features", "mxc.symbol": "Symbol",
    "mxc.test_utils.sparse_values": "_get_powerlaw_dataset_csr _get_uniform_dataset_csr "
        "_validate_csr_generation_inputs"})
__all__ = [
    "almost_equal", "array", "assert_allclose", "assert_almost_equal", "assert_almost_equal_ignore_nan",
    "assert_almost_equal_with_err", "assert_exception", "assign_each", "assign_each2", "checkShapes",
    "check_consistency", "check_numeric_gradient", "check_speed", "check_symbolic_backward",
    "check_symbolic_forward", "chi_square_check", "collapse_sum_like", "compare_ndarray_tuple", "compare_optimizer",
    "create_2d_tensor", "create_sparse_array", "create_sparse_array_zd", "create_vector",
    "current_context", "default_atols", "default_context", "default_dtype",
    "default_numeric_eps",
    "default_rtols", "discard_stderr", "effective_dtype", "environment", "gen_buckets_probs_with_ppf", "get_atol",
    "get_etol", "get_identity_mat", "get_identity_mat_batch", "get_im2rec_path", "get_mnist", "get_rtol",
    "get_tolerance", "get_tols",
    "getenv", "list_gpus", "locationError", "mean_check", "new_matrix_with_real_eigvals_2d",
    "new_matrix_with_real_eigvals_nd", "new_orthonormal_matrix_2d", "new_sym_matrix_with_real_eigvals_2d",
    "new_sym_matrix_with_real_eigvals_nd", "np_reduce", "numeric_grad", "rand_coord_2d", "rand_ndarray",
    "rand_sparse_ndarray",
    "rand_shape_2d", "rand_shape_3d", "rand_shape_nd", "random_arrays", "random_sample", "random_uniform_arrays",
    "retry", "same", "same_array", "same_symbol_structure", "set_default_context", "setenv",
    "shuffle_csr_column_indices", "simple_forward",
    "var_check", "verify_generator",
    "download", "download_model", "get_bz2_data", "get_cifar10", "get_cuda_compute_capability",
    "DummyIter", "get_mnist_iterator", "get_mnist_pkl",
    "get_mnist_ubyte", "get_zip_data", "has_tvm_ops", "is_aarch64_run", "is_cd_run", "is_op_runnable", "use_np",
    *_names,
]
