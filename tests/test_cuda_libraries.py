"""NVIDIA's libraries in the place of kernels: which call sites, with which calls, and what these compute. The libraries
are stand-ins (nvidia_stand_ins.py); on a GPU nothing of it is seen."""
from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import cuda_library_sites
import numpy as np
import pytest
from cuda_runs import Plain
from library_cases import GEMMS, KINDS, WINDOWS, convolution_case, dense, gemm_case, widened
from nvidia_stand_ins import CublasLt, Cudnn, Graph, GraphTensor

from mxc.compiler.error import MXNetError, SettingError, TargetError
from mxc.compiler.kernel import interpret_calls, ir, parts
from mxc.compiler.kernel.calls import linear
from mxc.compiler.kernel.gemm_of_parts import moved_gemm
from mxc.compiler.kernel.ir import CallKernel, Store
from mxc.compiler.targets.cuda.device import LibraryLacks
from mxc.compiler.targets.cuda.nvidia import choice, cublaslt, cudnn_graphs
from mxc.compiler.targets.cuda.nvidia.forms import Convolved, Product, form_of, library_of, with_numbers
from mxc.compiler.targets.cuda.nvidia.rounding import Rounding
from mxc.compiler.targets.cuda.nvidia.trial import allowed
from mxc.compiler.targets.cuda.nvidia.workspace import Workspace

plain: Any = Plain()


class Host:
    """In place of a device and its allocator: the process's own memory."""

    number, name = 0, "the host"

    def __init__(self) -> None:
        self.kept: list[np.ndarray] = []

    def call(self, what: Any) -> Any:
        return what(0)

    def allocate(self, nbytes: int, holder: str = "") -> int:
        """The address is a multiple of 64."""
        self.kept.append(np.zeros(nbytes + 64, np.uint8))
        address = self.kept[-1].ctypes.data
        return address + -address % 64


EXACT = Rounding()


def of(made: Any, rounding: Rounding = EXACT) -> Any:
    """A library with a stand-in for its module."""
    host: Any = Host()
    kind: Any = cublaslt.CublasLt if isinstance(made, CublasLt) else cudnn_graphs.Cudnn
    return kind(made, host, Workspace(host), rounding)


def check(kernel: CallKernel, arrays: Sequence[np.ndarray], library: Any) -> None:
    """A library's results against a kernel's definition. The last array is the result."""
    form = form_of(kernel)
    assert form is not None
    host, places = Host(), []
    for array in arrays:
        places.append(host.allocate(array.nbytes))
        offset = places[-1] - host.kept[-1].ctypes.data
        host.kept[-1][offset:offset + array.nbytes] = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
    call = library.call(form)
    assert call.takes(places, 16)
    call.begin(0, places)
    expected = [array.copy() for array in arrays]
    interpret_calls.interpret(kernel, expected)
    offset = places[-1] - host.kept[-1].ctypes.data
    got = host.kept[-1][offset:offset + arrays[-1].nbytes].view(arrays[-1].dtype)
    wanted, found = widened(expected[-1]), widened(got)
    scale = max(1e-3, float(np.abs(wanted).max()))
    np.testing.assert_allclose(found / scale, wanted / scale, rtol=0, atol=allowed(form, EXACT))


PRODUCTS = [case for case in GEMMS if not case[7] and case[3] and min(case[:3])]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_products(dtype: str) -> None:
    """Batches, single rows and columns, all transposes."""
    library = of(CublasLt())
    cases = [case for case in PRODUCTS if case[4] == "float32" and case[0] * case[1] * case[2] * case[3] < 1 << 20]
    for batch, m, n, k, _, a_turned, b_turned, _ in cases:
        for turned in ((a_turned, b_turned), (b_turned, not a_turned)):
            check(*gemm_case((batch, m, n, k, dtype, *turned, False), plain), library)
    assert len(library.lt.calls) == 2 * len(cases) > 16


def with_epilogue(kernel: CallKernel, arrays: Sequence[np.ndarray], value: Any, more: Sequence[tuple[int, ...]],
                  index: ir.Value | None = None) -> tuple[CallKernel, list[np.ndarray]]:
    """A case with another value, which loads from buffers 2, 3, ... of these shapes; the result is the last buffer."""
    rng, dtype = np.random.default_rng(3), kernel.geometry.dtype
    added = [rng.standard_normal(shape).astype(dtype).ravel() for shape in more]
    store = kernel.stores[0]
    store = Store(2 + len(added), index or store.index, value)
    made = replace(kernel, buffers=(dtype,) * (3 + len(added)), stores=(store,))
    return made, [*arrays[:2], *added, arrays[2]]


TOTAL = ir.acc(0, "float32")
ZERO, TWO, HALF = (ir.const(number, "float32") for number in (0.0, 2.0, 0.5))


def plus(*values: ir.Value) -> ir.Value:
    total = values[0]
    for value in values[1:]:
        total = ir.apply("add", total, value)
    return total


def load(buffer: int, steps: dict[int, int], offset: int = 0) -> ir.Value:
    return ir.load(buffer, linear(steps, offset), "float32")


def test_epilogues_of_products() -> None:
    """A bias, a ReLU, an array that is added, factors; what is added to; a bias of rows, for results by columns."""
    library, (batch, m, n) = of(CublasLt()), (3, 13, 10)
    kernel, arrays = gemm_case((batch, m, n, 20, "float32", False, True, False), plain)
    everywhere = dict(enumerate(dense((batch, m, n))))
    bias, whole = load(2, {2: 1}), load(3, everywhere)
    cases: list[tuple[Any, list[tuple[int, ...]]]] = [
        (plus(TOTAL, bias), [(n,)]),
        (ir.apply("max", plus(bias, TOTAL), ZERO), [(n,)]),
        (ir.apply("max", ZERO, TOTAL), []),
        (plus(ir.apply("mul", TOTAL, TWO), ir.apply("mul", HALF, load(2, everywhere))), [(batch, m, n)]),
        (ir.apply("max", plus(TOTAL, whole, bias), ZERO), [(n,), (batch, m, n)]),
        (ir.apply("sub", load(2, everywhere), TOTAL), [(batch, m, n)]),
        (plus(TOTAL, load(2, {2: 1}, 4)), [(n + 4,)]),
    ]
    for value, more in cases:
        check(*with_epilogue(kernel, arrays, value, more), library)
    check(*(replace(kernel, stores=(replace(kernel.stores[0], mode="add"),)), arrays), library)
    by_columns = linear({0: m * n, 1: 1, 2: m})
    check(*with_epilogue(kernel, arrays, plus(TOTAL, load(2, {1: 1})), [(m,)], by_columns), library)
    assert "float32 10x13x20 epilogue 6" in library.lt.calls and "float32 13x10x20 epilogue 4" in library.lt.calls


def test_what_is_more_than_an_epilogue() -> None:
    kernel, arrays = gemm_case((2, 6, 6, 5, "float32", False, False, False), plain)
    everywhere = dict(enumerate(dense((2, 6, 6))))
    for value, more in (
        (ir.apply("tanh", TOTAL), []),
        (ir.apply("mul", TOTAL, load(2, {2: 1})), [(6,)]),
        (plus(TOTAL, load(2, {1: 1})), [(6,)]),  # a bias of rows is none of columns
        (plus(TOTAL, load(2, everywhere), load(3, everywhere)), [(2, 6, 6)] * 2),
        (plus(TOTAL, TOTAL), []),
        (ir.apply("max", TOTAL, TWO), []),
        (ir.const(1.0, "float32"), []),
    ):
        assert form_of(with_epilogue(kernel, arrays, value, more)[0]) is None
    added = replace(kernel, stores=(replace(kernel.stores[0], mode="add", value=ir.apply("max", TOTAL, ZERO)),))
    assert form_of(added) is None
    assert form_of(gemm_case((2, 6, 6, 5, "int32", False, False, False), plain)[0]) is None
    assert form_of(gemm_case((1, 5, 17, 0, "float32", False, False, False), plain)[0]) is None
    product: Any = kernel.geometry
    repeated = replace(kernel, geometry=replace(product, a_strides=(30, 0, 1)))
    assert form_of(repeated) is None
    inner: Any = moved_gemm(product, product.a_strides, product.b_strides, (2, 0), None)
    assert form_of(replace(kernel, geometry=inner)) is None  # the library would read from the beginning


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_convolutions_and_their_gradients(kind: str, dtype: str) -> None:
    """Groups, strides, dilations, paddings; one to three axes; channels first and last; transposed results."""
    library, names = of(Cudnn()), WINDOWS if dtype == "float32" else ("same", "stride", "3d", "1x1 stride")
    for name in names:
        for flat, layout in ((True, "nchw"), (False, "nhwc")):
            check(*convolution_case(kind, WINDOWS[name], dtype, plain, flat, layout, packed=False), library)
    assert len(library.cudnn.calls) == 2 * len(names)


def test_epilogues_of_convolutions() -> None:
    library, window = of(Cudnn()), WINDOWS["stride"]
    kernel, arrays = convolution_case("forward", window, "float32", plain, packed=False)
    shape = (window.batch, window.filters, 16)
    bias, whole = load(2, {1: 1}), load(3, dict(enumerate(dense(shape))))
    check(*with_epilogue(kernel, arrays, plus(TOTAL, bias), [shape[1:2]]), library)
    check(*with_epilogue(kernel, arrays, ir.apply("max", plus(TOTAL, bias, whole), ZERO), [shape[1:2], shape]), library)
    added = replace(kernel, stores=(replace(kernel.stores[0], mode="add"),))
    arrays[2][:] = 3
    check(added, arrays, library)
    assert library.cudnn.calls == ["float32 forward bias", "float32 forward add bias relu", "float32 forward add"]
    for value in (ir.apply("mul", TOTAL, TWO), plus(TOTAL, load(2, {2: 1}))):
        assert form_of(with_epilogue(kernel, arrays, value, [(16,)])[0]) is None


def test_windows_that_cudnn_has_not() -> None:
    """Results that leave out a part of the padded data; more padding behind than before is told apart."""
    window = replace(WINDOWS["same"], out=(1, 7, 11))
    assert form_of(convolution_case("forward", window, "float32", plain, packed=False)[0]) is None
    more = form_of(convolution_case("forward", replace(WINDOWS["same"], out=(1, 11, 11)), "float32", plain,
                                    packed=False)[0])
    assert isinstance(more, Convolved) and (more.before, more.after) == ((1, 1), (3, 1))
    check(*convolution_case("forward", replace(WINDOWS["same"], out=(1, 11, 11)), "float32", plain, packed=False),
          of(Cudnn()))


def test_forms_as_text() -> None:
    kernel, arrays = gemm_case((3, 13, 10, 20, "float32", False, True, False), plain)
    biased, _ = with_epilogue(kernel, arrays, ir.apply("max", plus(TOTAL, load(2, {2: 1})), ZERO), [(10,)])
    convolved, _ = convolution_case("forward", WINDOWS["3d"], "float16", plain, packed=False)
    first, second = form_of(biased), form_of(convolved)
    assert first is not None and second is not None
    assert first.text() == "cuBLASLt float32 3 of 10x13x20 TN pitches 20/20/10 bias relu"
    assert second.text() == ("cuDNN float16 forward 2x12x4x6x5 15x4x2x3x3 to 2x15x5x6x5 padding (1, 2, 1) "
                             "stride (1, 1, 1) dilation (1, 2, 1)")
    assert library_of(biased, biased.values()) == "cuBLASLt"
    assert library_of(convolved, convolved.values()) == "cuDNN"
    deep, _ = gemm_case((1, 8, 8, 512, "float32", False, True, False), plain)
    in_parts = replace(deep, geometry=parts.parts(deep.geometry, 256))
    ended, _ = with_epilogue(deep, arrays, ir.apply("tanh", TOTAL), [])
    assert library_of(in_parts, in_parts.values()) == library_of(ended, ended.values()) == "cuBLASLt"
    short, _ = with_epilogue(kernel, arrays, ir.apply("tanh", TOTAL), [])
    assert library_of(short, short.values()) == ""


def test_call_sites_that_share_code() -> None:
    """Integers of a launch make another kernel of the same code, with the form of that one's sizes."""
    made = [gemm_case((1, m, 70, k, "float32", False, False, False), plain)[0] for m, k in ((30, 40), (50, 90))]
    assert with_numbers(made[0], made[1].values()) == made[1]
    form = form_of(with_numbers(made[0], made[1].values()))
    assert isinstance(form, Product) and (form.rows, form.columns, form.depth) == (70, 50, 90)


def test_types_of_sums_and_tf32() -> None:
    """float32 is not rounded to TF32 unless that is asked for, and no bits depend on the run."""
    form = form_of(gemm_case(GEMMS[1], plain)[0])
    for tf32, compute in ((False, 68), (True, 77)):
        library = of(CublasLt(), Rounding(tf32))
        call = library.call(form)
        assert library.lt._made[call._product].compute == compute
        assert [made.attributes[3] for made in library.lt._made.values() if made.kind == "preference"] == [2]
    strict = Rounding(strict=True)
    for dtype, rounding, cores, winograd in (
            ("float32", EXACT, True, False), ("float32", Rounding(tf32=True), False, False),
            ("float32", strict, True, True), ("float16", EXACT, False, True)):
        made = form_of(convolution_case("forward", WINDOWS["same"], dtype, plain, packed=False)[0])
        notes = of(Cudnn(), rounding).call(made)._graph.notes
        assert ("TENSOR_CORE" in notes) is cores and "NONDETERMINISTIC" in notes
        assert ("WINOGRAD" in notes) is winograd


def test_descriptions_are_given_back() -> None:
    stand_in = CublasLt()
    library = of(stand_in)
    call = library.call(form_of(gemm_case(GEMMS[1], plain)[0]))
    assert stand_in.alive == 5
    del call
    assert stand_in.alive == 0


def test_workspaces() -> None:
    """Calls share one piece, and keep theirs when a larger one is made."""
    host: Any = Host()
    space = Workspace(host)
    assert space.of(0) == 0 and not host.kept
    first = space.of(3000)
    assert space.of(4096) == first and space.of(5000) != first and len(host.kept) == 2
    stand_in = CublasLt()
    stand_in.workspace = 700
    check(*gemm_case(GEMMS[1], plain), of(stand_in))


def test_what_a_library_refuses() -> None:
    stand_in = CublasLt()
    library, form = of(stand_in), form_of(gemm_case(GEMMS[1], plain)[0])
    call = library.call(form)
    stand_in.matmul = refusing(stand_in.cuBLASLtError("not today"))  # type: ignore[method-assign]
    with pytest.raises(MXNetError, match=r"cuBLASLt float32 19x7x5 NN .*: not today"):
        call.begin(0, [0, 0, 0])
    stand_in.lacks = True
    with pytest.raises(LibraryLacks, match="no way to compute it"):
        library.call(form)
    other = Cudnn()
    made = form_of(convolution_case("data", WINDOWS["same"], "float32", plain, packed=False)[0])
    found = of(other).call(made)
    found._graph.execute = refusing(RuntimeError("no more"))
    with pytest.raises(MXNetError, match=r"cuDNN float32 data .*: RuntimeError: no more"):
        found.begin(0, [0, 0, 0])
    other.lacks = True
    with pytest.raises(LibraryLacks, match="no engine"):
        of(other).call(made)


def refusing(error: Exception) -> Any:
    def refuse(*_: Any, **__: Any) -> None:
        raise error

    return refuse


def test_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choice.setting() == "faster"
    monkeypatch.setenv("MXC_CUDA_LIBRARIES", "never")
    assert choice.setting() == "never"
    monkeypatch.setenv("MXC_CUDA_LIBRARIES", "sometimes")
    with pytest.raises(SettingError, match="sometimes: expected one of faster, always, never"):
        choice.setting()


def test_the_call_sites_of_networks() -> None:
    """Which call sites a library may take, and with which call (`python tests/cuda_library_sites.py --write`)."""
    try:
        found = cuda_library_sites.golden()
    except TargetError as error:
        pytest.skip(str(error))
    assert found == cuda_library_sites.GOLDEN.read_text()


# -- the real packages, where they are


def parameters(function: Any) -> list[str]:
    """The names of a function's parameters, of compiled ones by their first line of text."""
    try:
        return [name for name in inspect.signature(function).parameters if name != "self"]
    except (TypeError, ValueError):
        head = re.match(r"\w+\(([^)]*)\)", (function.__doc__ or "").strip())
        assert head, function
        return [part.split("=")[0].split()[-1].strip() for part in head[1].split(",") if part.strip()]


def test_the_bindings_of_cublaslt_are_as_the_stand_in() -> None:
    real = pytest.importorskip(cublaslt.MODULE, reason="the extra cuda is not installed")
    for name in (name for name in vars(CublasLt) if name.startswith(("matmul_", "matrix_")) or name in (
            "matmul", "create", "get_version")):
        ours, theirs = getattr(CublasLt, name), getattr(real, name)
        if isinstance(ours, np.dtype):
            assert ours == np.dtype(theirs)
        else:
            assert parameters(ours) == parameters(theirs), name
    for kind in ("MatmulDescAttribute", "MatrixLayoutAttribute", "MatmulPreferenceAttribute", "Epilogue",
                 "ReductionScheme"):
        for ours in getattr(CublasLt, kind):
            assert getattr(real, kind)[ours.name] == ours.value
    sizes = {"product": ("MatmulDescAttribute", real.get_matmul_desc_attribute_dtype),
             "layout": ("MatrixLayoutAttribute", real.get_matrix_layout_attribute_dtype),
             "preference": ("MatmulPreferenceAttribute", real.get_matmul_preference_attribute_dtype)}
    for (what, number), size in CublasLt.SIZES.items():
        kind, dtype = sizes[what]
        assert np.dtype(dtype(getattr(real, kind)(number))).itemsize == size, (what, number)
    enums = importlib.import_module("nvmath.bindings.cublas")
    types = importlib.import_module("nvmath").CudaDataType
    assert {"float32": types.CUDA_R_32F, "float64": types.CUDA_R_64F, "float16": types.CUDA_R_16F,
            "bfloat16": types.CUDA_R_16BF} == cublaslt.TYPES
    assert (enums.ComputeType.COMPUTE_32F, enums.ComputeType.COMPUTE_32F_FAST_TF32, enums.ComputeType.COMPUTE_64F,
            enums.Operation.T) == (cublaslt.COMPUTE_32F, cublaslt.COMPUTE_32F_FAST_TF32, cublaslt.COMPUTE_64F,
                                   cublaslt.TURNED)
    assert issubclass(real.cuBLASLtError, Exception)


def test_the_front_end_of_cudnn_is_as_the_stand_in() -> None:
    real = pytest.importorskip(cudnn_graphs.MODULE, reason="the extra cuda is not installed")
    for kind in ("data_type", "heur_mode", "numerical_note"):
        for ours in getattr(Cudnn, kind):
            assert hasattr(getattr(real, kind), ours.name), ours
    for name in ("create_handle", "set_stream", "backend_version"):
        assert {*parameters(getattr(Cudnn, name))} - {"self"} <= {*parameters(getattr(real, name))}, name
    graph = real.pygraph(io_data_type=real.data_type.FLOAT, intermediate_data_type=real.data_type.FLOAT,
                         compute_data_type=real.data_type.FLOAT)
    form = form_of(convolution_case("data", WINDOWS["3d"], "float32", plain, packed=False)[0])
    call: Any = object.__new__(cudnn_graphs.Convolution)
    call._graph, call.form, call._dtype = graph, form, real.data_type.FLOAT
    tensors = call._describe()  # the front end takes the graph, without a device
    assert isinstance(form, Convolved)
    assert [list(tensor.get_dim()) for tensor, _ in tensors] == [list(array.shape) for array in form.arrays()]
    for name in (name for name in vars(Graph) if not name.startswith("_")):
        assert hasattr(graph, name), name
    for name in (name for name in vars(GraphTensor) if not name.startswith("_")):
        assert hasattr(tensors[0][0], name), name
