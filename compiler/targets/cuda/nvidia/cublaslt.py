"""Products by cuBLASLt, through nvmath-python's bindings.

cuBLASLt has matrices by columns (`forms.Matrix`). float16 and bfloat16 are summed in float32, and float32 is multiplied
as it is, unless TF32 is asked for. Parts of a divided depth are added up in the type of the sums, in order.
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.dtypes import numpy_dtype
from mxc.compiler.system.forks import Lock
from mxc.compiler.targets.cuda.device import Device, LibraryCall, LibraryLacks
from mxc.compiler.targets.cuda.nvidia.forms import Matrix, Product, Tensor
from mxc.compiler.targets.cuda.nvidia.rounding import Rounding
from mxc.compiler.targets.cuda.nvidia.workspace import ALIGNMENT, Workspace

MODULE = "nvmath.bindings.cublasLt"
MOST_WORKSPACE = 32 << 20  # bytes: what NVIDIA advises for Hopper, the most of any architecture
ASKED = 8  # ways of computing that the heuristics are asked for; the first that works is taken
# The numbers of cudaDataType_t, cublasComputeType_t and cublasOperation_t.
TYPES = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 14}
COMPUTE_32F, COMPUTE_32F_FAST_TF32, COMPUTE_64F = 68, 77, 70
TURNED = 1
UNKNOWN = 256  # the address of a bias while there is none: heuristics may refuse one of 0


class CublasLt:
    """The library on a device. lt: the bindings."""

    def __init__(self, lt: Any, device: Device, workspace: Workspace, rounding: Rounding):
        self.lt, self.device, self.workspace, self.rounding = lt, device, workspace, rounding
        self.lock = Lock()  # a call's bias is a part of its description
        self.handle = device.call(lambda stream: lt.create())

    @property
    def version(self) -> str:
        return f"cuBLASLt {self.lt.get_version()}"

    def call(self, form: Product) -> Multiplication:
        """The call of a form. Raises LibraryLacks where the library has none."""
        return self.device.call(lambda stream: Multiplication(self, form))


class Multiplication(LibraryCall):
    """A call for one form: its descriptions, and the way of computing that the heuristics chose."""

    def __init__(self, library: CublasLt, form: Product):
        self.library, self.form = library, form
        self._made: list[tuple[Callable[[int], None], int]] = []
        self._size = numpy_dtype(form.dtype).itemsize
        scalar = "float64" if form.dtype == "float64" else "float32"
        self._factors = np.array([form.alpha, form.beta], scalar)  # alpha and beta, which each call reads
        try:
            self._describe(library.lt, TYPES[scalar])
        except library.lt.cuBLASLtError as error:
            raise LibraryLacks(f"{form.text()}: {error}") from None

    def _describe(self, lt: Any, scalar: int) -> None:
        form, kinds = self.form, lt.MatmulDescAttribute
        compute = COMPUTE_64F if form.dtype == "float64" else (
            COMPUTE_32F_FAST_TF32 if form.dtype == "float32" and self.library.rounding.tf32 else COMPUTE_32F)
        self._product = self._kept(lt.matmul_desc_destroy, lt.matmul_desc_create(compute, scalar))
        for kind, matrix in ((kinds.TRANSA, form.left), (kinds.TRANSB, form.right)):
            if matrix.turned:
                _set(lt.matmul_desc_set_attribute, self._product, kind, TURNED, "int32")
        ends = lt.Epilogue.DEFAULT
        if form.bias is not None or form.relu:
            ends = (lt.Epilogue.RELU_BIAS if form.relu else lt.Epilogue.BIAS) if form.bias is not None else (
                lt.Epilogue.RELU)
            _set(lt.matmul_desc_set_attribute, self._product, kinds.EPILOGUE, int(ends), "uint32")
        if form.bias is not None:
            self._bias(UNKNOWN)
        self._layouts = [self._layout(lt, matrix) for matrix in (form.left, form.right, form.result)]
        self._layouts.insert(2, self._layouts[2] if form.added is None else self._layout(lt, form.added))
        self._choose(lt)

    def _kept(self, destroy: Callable[[int], None], made: int) -> int:
        self._made.append((destroy, made))
        return made

    def _layout(self, lt: Any, matrix: Matrix) -> int:
        kinds = lt.MatrixLayoutAttribute
        made = self._kept(lt.matrix_layout_destroy, lt.matrix_layout_create(
            TYPES[self.form.dtype], matrix.rows, matrix.columns, matrix.pitch))
        if self.form.batch > 1:
            _set(lt.matrix_layout_set_attribute, made, kinds.BATCH_COUNT, self.form.batch, "int32")
            _set(lt.matrix_layout_set_attribute, made, kinds.STRIDED_BATCH_OFFSET, matrix.step, "int64")
        return made

    def _choose(self, lt: Any) -> None:
        """Sets the way of computing, for addresses that are multiples of ALIGNMENT."""
        kinds = lt.MatmulPreferenceAttribute
        wish = self._kept(lt.matmul_preference_destroy, lt.matmul_preference_create())
        _set(lt.matmul_preference_set_attribute, wish, kinds.MAX_WORKSPACE_BYTES, MOST_WORKSPACE, "uint64")
        _set(lt.matmul_preference_set_attribute, wish, kinds.REDUCTION_SCHEME_MASK,
             int(lt.ReductionScheme.COMPUTE_TYPE), "uint32")
        for kind in (kinds.MIN_ALIGNMENT_A_BYTES, kinds.MIN_ALIGNMENT_B_BYTES, kinds.MIN_ALIGNMENT_C_BYTES,
                     kinds.MIN_ALIGNMENT_D_BYTES):
            _set(lt.matmul_preference_set_attribute, wish, kind, ALIGNMENT, "uint32")
        found, count = np.zeros(ASKED, lt.matmul_heuristic_result_dtype), np.zeros(1, np.int32)
        lt.matmul_algo_get_heuristic(self.library.handle, self._product, *self._layouts, wish, ASKED,
                                     found.ctypes.data, count.ctypes.data)
        working = [i for i in range(int(count[0])) if found[i]["state"] == 0]
        if not working:
            raise LibraryLacks(f"{self.form.text()}: cuBLASLt has no way to compute it")
        self._way = found[working[0]:working[0] + 1].copy()
        self._bytes = int(self._way[0]["workspace_size"])
        self._memory = self.library.workspace.of(self._bytes)

    def _bias(self, address: int) -> None:
        lt = self.library.lt
        _set(lt.matmul_desc_set_attribute, self._product, lt.MatmulDescAttribute.BIAS_POINTER, address, "int64")

    def begin(self, stream: int, addresses: Sequence[int]) -> None:
        form, lt = self.form, self.library.lt

        def place(array: Tensor) -> int:
            return addresses[array.position] + array.offset * self._size

        left, right, result = (place(each.array) for each in (form.left, form.right, form.result))
        added = result if form.added is None else place(form.added.array)
        alpha, factors = self._factors.ctypes.data, self._factors.itemsize
        way = self._way.ctypes.data  # the algorithm comes first in a result of the heuristics
        with self.library.lock:
            try:
                if form.bias is not None:
                    self._bias(place(form.bias))
                lt.matmul(self.library.handle, self._product, alpha, left, self._layouts[0], right, self._layouts[1],
                          alpha + factors, added, self._layouts[2], result, self._layouts[3], way, self._memory,
                          self._bytes, stream)
            except lt.cuBLASLtError as error:
                raise MXNetError(f"{form.text()}: {error}") from error

    def offsets(self) -> list[tuple[int, int]]:
        return [(array.position, array.offset * self._size) for array in self.form.arrays()]

    def __del__(self) -> None:
        if not sys.is_finalizing():
            for destroy, made in self._made:
                destroy(made)


def _set(setter: Callable[[int, int, int, int], None], described: int, kind: Any, value: int, dtype: str) -> None:
    """Set an attribute, which the library copies."""
    number = np.array([value], dtype)
    setter(described, int(kind), number.ctypes.data, number.nbytes)
