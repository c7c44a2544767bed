"""What stands in for NVIDIA's libraries: modules whose functions compute by NumPy, in the memory of simulated GPUs.

They have the names and parameters of nvmath.bindings.cublasLt and of cudnn that mxc calls (test_cuda_libraries.py
compares them with those of the packages), and compute what NVIDIA's documents say that these do.
"""
from __future__ import annotations

import ctypes
from collections.abc import Callable
from enum import IntEnum
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

NAMES = {0: "float32", 1: "float64", 2: "float16", 14: "bfloat16"}


def memory(address: int, count: int, dtype: str) -> np.ndarray:
    """What lies at an address."""
    kind = np.dtype("uint16" if dtype == "bfloat16" else dtype)
    bytes_there = (ctypes.c_char * (count * kind.itemsize)).from_address(address)
    return np.frombuffer(bytes_there, kind)


def values(stored: np.ndarray, dtype: str) -> np.ndarray:
    """Numbers as they are computed with."""
    if dtype == "bfloat16":
        return (stored.astype(np.uint32) << 16).view(np.float32)
    return stored.astype("float64" if dtype == "float64" else "float32")


def stored(numbers: np.ndarray, dtype: str) -> np.ndarray:
    """Numbers as they are stored; bfloat16 is rounded to the nearest."""
    if dtype != "bfloat16":
        return numbers.astype(dtype)
    bits = np.ascontiguousarray(numbers, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def strided(address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str) -> np.ndarray:
    """An array at an address; strides: elements."""
    count = 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    flat = memory(address, count, dtype)
    return np.lib.stride_tricks.as_strided(flat, shape, [step * flat.itemsize for step in strides])


def relu(numbers: np.ndarray) -> np.ndarray:
    return np.maximum(numbers, 0)


class CublasLt:
    """Stands in for nvmath.bindings.cublasLt. calls: what was asked, as text. scaled: what results are multiplied by,
    for a library that is wrong. workspace: bytes that each way of computing wants. clips_nan: its ReLU makes 0 of
    NaN. lacks: the heuristics find nothing."""

    class cuBLASLtError(Exception):
        pass

    matmul_algo_dtype = np.dtype([("data_", "<u8", (8,))])
    matmul_heuristic_result_dtype = np.dtype([("algo", matmul_algo_dtype), ("workspace_size", "<u8"), ("state", "<i4"),
                                              ("waves_count", "<f4"), ("reserved", "<i4", (4,))])
    MatmulDescAttribute = IntEnum("MatmulDescAttribute", {"TRANSA": 3, "TRANSB": 4, "EPILOGUE": 7, "BIAS_POINTER": 8})
    MatrixLayoutAttribute = IntEnum("MatrixLayoutAttribute", {"BATCH_COUNT": 5, "STRIDED_BATCH_OFFSET": 6})
    MatmulPreferenceAttribute = IntEnum("MatmulPreferenceAttribute", {
        "MAX_WORKSPACE_BYTES": 1, "REDUCTION_SCHEME_MASK": 3, "MIN_ALIGNMENT_A_BYTES": 5, "MIN_ALIGNMENT_B_BYTES": 6,
        "MIN_ALIGNMENT_C_BYTES": 7, "MIN_ALIGNMENT_D_BYTES": 8})
    Epilogue = IntEnum("Epilogue", {"DEFAULT": 1, "RELU": 2, "BIAS": 4, "RELU_BIAS": 6})
    ReductionScheme = IntEnum("ReductionScheme", {"COMPUTE_TYPE": 2})
    # Attributes by their sizes in bytes, as the library refuses others.
    SIZES: ClassVar[dict[tuple[str, int], int]] = {
        **{("product", number): 4 for number in (3, 4, 7)}, ("product", 8): 8, ("layout", 5): 4, ("layout", 6): 8,
        ("preference", 1): 8, **{("preference", number): 4 for number in (3, 5, 6, 7, 8)}}

    def __init__(self) -> None:
        self.calls, self.alive = list[str](), 0
        self.scaled, self.workspace, self.clips_nan, self.lacks = 1.0, 0, False, False
        self._made: dict[int, Any] = {}

    def get_version(self) -> int:
        return 130000

    def create(self) -> int:
        return 7

    def _make(self, kind: str, **fields: Any) -> int:
        number = 1000 + len(self._made)
        self._made[number] = SimpleNamespace(kind=kind, attributes={}, **fields)
        self.alive += 1
        return number

    def _destroy(self, number: int, kind: str) -> None:
        assert self._made[number].kind == kind
        self._made[number].kind = "destroyed"
        self.alive -= 1

    def _set(self, number: int, kind: str, attribute: int, buffer: int, size: int) -> None:
        made = self._made[number]
        assert made.kind == kind
        if self.SIZES[kind, attribute] != size:
            raise self.cuBLASLtError("an unsupported value (CUBLAS_STATUS_INVALID_VALUE)")
        made.attributes[attribute] = int.from_bytes(ctypes.string_at(buffer, size), "little", signed=True)

    def matmul_desc_create(self, compute_type: int, scale_type: int) -> int:
        return self._make("product", compute=compute_type, scale=scale_type)

    def matmul_desc_set_attribute(self, matmul_desc: int, attr: int, buf: int, size_in_bytes: int) -> None:
        self._set(matmul_desc, "product", attr, buf, size_in_bytes)

    def matmul_desc_destroy(self, matmul_desc: int) -> None:
        self._destroy(matmul_desc, "product")

    def matrix_layout_create(self, type: int, rows: int, cols: int, ld: int) -> int:
        return self._make("layout", dtype=NAMES[type], rows=rows, cols=cols, ld=ld)

    def matrix_layout_set_attribute(self, mat_layout: int, attr: int, buf: int, size_in_bytes: int) -> None:
        self._set(mat_layout, "layout", attr, buf, size_in_bytes)

    def matrix_layout_destroy(self, mat_layout: int) -> None:
        self._destroy(mat_layout, "layout")

    def matmul_preference_create(self) -> int:
        return self._make("preference")

    def matmul_preference_set_attribute(self, pref: int, attr: int, buf: int, size_in_bytes: int) -> None:
        self._set(pref, "preference", attr, buf, size_in_bytes)

    def matmul_preference_destroy(self, pref: int) -> None:
        self._destroy(pref, "preference")

    # as many parameters as the library's function
    def matmul_algo_get_heuristic(
        self, light_handle: int, operation_desc: int, adesc: int, bdesc: int, cdesc: int, ddesc: int, preference: int,
        requested_algo_count: int, heuristic_results_array: int, return_algo_count: int,
    ) -> None:
        assert light_handle == 7 and self._made[preference].kind == "preference"
        wish = self._made[preference].attributes
        assert wish[1] >= 32 << 20 and [wish[kind] for kind in (5, 6, 7, 8)] == [16] * 4
        self._sizes(operation_desc, adesc, bdesc, cdesc, ddesc)
        count = 0 if self.lacks else 2
        found = np.frombuffer((ctypes.c_char * (96 * requested_algo_count)).from_address(heuristic_results_array),
                              self.matmul_heuristic_result_dtype)
        assert requested_algo_count >= count
        for i in range(count):  # the first one does not work
            found[i]["algo"]["data_"][:] = 40 + i
            found[i]["state"], found[i]["workspace_size"] = (15, 0) if i == 0 else (0, self.workspace)
        ctypes.c_int.from_address(return_algo_count).value = count

    def _sizes(self, product: int, *layouts: int) -> tuple[int, int, int]:
        """The rows, columns and depth of a product. Fails where sizes do not fit."""
        desc = self._made[product]
        a, b, c, d = (self._made[number] for number in layouts)
        turned = [desc.attributes.get(kind, 0) for kind in (3, 4)]
        rows, depth = (a.cols, a.rows) if turned[0] else (a.rows, a.cols)
        depth_b, columns = (b.cols, b.rows) if turned[1] else (b.rows, b.cols)
        assert depth == depth_b and (d.rows, d.cols) == (rows, columns) == (c.rows, c.cols)
        assert all(each.ld >= each.rows and each.dtype == a.dtype for each in (a, b, c, d))
        counts = {each.attributes.get(5, 1) for each in (a, b, c, d)}
        assert len(counts) == 1
        assert (desc.compute, desc.scale) == ((70, 1) if a.dtype == "float64" else (desc.compute, 0))
        assert desc.compute in ((68, 77) if a.dtype == "float32" else (70,) if a.dtype == "float64" else (68,))
        return rows, columns, depth

    def _matrices(self, layout: int, address: int) -> np.ndarray:
        """(batch, row, column) of a matrix by columns."""
        made = self._made[layout]
        count = made.attributes.get(5, 1)
        return strided(address, (count, made.rows, made.cols), (made.attributes.get(6, 0), 1, made.ld), made.dtype)

    # as many parameters as the library's function
    def matmul(
        self, light_handle: int, compute_desc: int, alpha: int, a: int, adesc: int, b: int, bdesc: int, beta: int,
        c: int, cdesc: int, d: int, ddesc: int, algo: int, workspace: int, workspace_size_in_bytes: int, stream: int,
    ) -> None:
        assert light_handle == 7 and stream == 0 and not any(place % 16 for place in (a, b, c, d))
        assert ctypes.c_uint64.from_address(algo).value == 41  # the one that works
        assert workspace_size_in_bytes == self.workspace and bool(workspace) == bool(self.workspace)
        sizes = self._sizes(compute_desc, adesc, bdesc, cdesc, ddesc)
        desc, dtype = self._made[compute_desc], self._made[ddesc].dtype
        scalar = NAMES[desc.scale]
        factors = [memory(place, 1, scalar)[0] for place in (alpha, beta)]
        left, right = (values(self._matrices(layout, place), dtype) for layout, place in ((adesc, a), (bdesc, b)))
        left, right = (each.transpose(0, 2, 1) if desc.attributes.get(kind, 0) else each
                       for each, kind in ((left, 3), (right, 4)))
        made = factors[0] * np.matmul(left, right)
        if factors[1]:
            made = made + factors[1] * values(self._matrices(cdesc, c), dtype)
        ends = desc.attributes.get(7, 1)
        if ends & self.Epilogue.BIAS:
            bias = values(memory(desc.attributes[8], sizes[0], dtype), dtype)
            made = made + bias[None, :, None]
        if ends & self.Epilogue.RELU:
            made = np.fmax(made, 0) if self.clips_nan else relu(made)
        self._matrices(ddesc, d)[...] = stored(self.scaled * made, dtype)
        self.calls.append(f"{dtype} {'x'.join(map(str, sizes))} epilogue {int(ends)}")


class Cudnn:
    """Stands in for cudnn. calls: what was asked, as text. lacks: there is no engine for what is asked."""

    data_type = IntEnum("data_type", ["FLOAT", "HALF", "BFLOAT16"])
    heur_mode = IntEnum("heur_mode", ["A", "FALLBACK"])
    numerical_note = IntEnum("numerical_note", [
        "TENSOR_CORE", "DOWN_CONVERT_INPUTS", "REDUCED_PRECISION_REDUCTION", "FFT", "NONDETERMINISTIC", "WINOGRAD",
        "WINOGRAD_TILE_4x4", "WINOGRAD_TILE_6x6", "WINOGRAD_TILE_13x13"])

    def __init__(self) -> None:
        self.calls, self.lacks, self.scaled, self.workspace = list[str](), False, 1.0, 0

    def backend_version(self) -> int:
        return 90000

    def create_handle(self) -> str:
        return "handle"

    def set_stream(self, handle: str, stream: int) -> None:
        assert handle == "handle" and stream == 0

    def pygraph(self, io_data_type: Any, intermediate_data_type: Any, compute_data_type: Any, handle: str) -> Graph:
        assert intermediate_data_type == compute_data_type == self.data_type.FLOAT and handle == "handle"
        return Graph(self, io_data_type)


class GraphTensor:
    def __init__(self, dim: list[int], stride: list[int], made: Callable[[dict], np.ndarray] | None = None):
        self.dim, self.stride, self.made = dim, stride, made

    def set_output(self, is_output: bool) -> GraphTensor:
        self.output = is_output
        return self

    def set_data_type(self, data_type: Any) -> GraphTensor:
        self.data_type = data_type
        return self

    def set_dim(self, dim: list[int]) -> GraphTensor:
        self.dim = dim
        return self

    def set_stride(self, stride: list[int]) -> GraphTensor:
        self.stride = stride
        return self


class Graph:
    """Stands in for cudnn.pygraph."""

    def __init__(self, library: Cudnn, dtype: Any):
        self.library, self.text, self.steps = library, list[str](), list[str]()
        self.dtype = {1: "float32", 2: "float16", 3: "bfloat16"}[int(dtype)]
        self.outputs: list[GraphTensor] = []
        self.notes: list[Any] = []

    def tensor(self, dim: list[int], stride: list[int], data_type: Any, name: str) -> GraphTensor:
        assert len(dim) == len(stride) and 4 <= len(dim) <= 5 and min(dim) > 0 and min(stride) > 0
        return GraphTensor(dim, stride)

    def _made(self, text: str, made: Callable[[dict], np.ndarray]) -> GraphTensor:
        self.text.append(text)
        self.outputs.append(GraphTensor([], [], made))
        return self.outputs[-1]

    def _read(self, tensor: GraphTensor, known: dict) -> np.ndarray:
        if tensor.made is not None:
            return tensor.made(known)
        return values(strided(known[tensor], tuple(tensor.dim), tuple(tensor.stride), self.dtype), self.dtype)

    def conv_fprop(self, image: GraphTensor, weight: GraphTensor, pre_padding: list[int], post_padding: list[int],
                   stride: list[int], dilation: list[int]) -> GraphTensor:
        window = Window(image.dim, weight.dim, pre_padding, post_padding, stride, dilation)
        return self._made("forward", lambda known: window.forward(self._read(image, known), self._read(weight, known)))

    def conv_dgrad(self, loss: GraphTensor, filter: GraphTensor, pre_padding: list[int], post_padding: list[int],
                   stride: list[int], dilation: list[int]) -> GraphTensor:
        def made(known: dict) -> np.ndarray:
            window = Window(tensor.dim, filter.dim, pre_padding, post_padding, stride, dilation)
            return window.to_data(self._read(loss, known), self._read(filter, known))

        tensor = self._made("data", made)
        return tensor

    def conv_wgrad(self, image: GraphTensor, loss: GraphTensor, pre_padding: list[int], post_padding: list[int],
                   stride: list[int], dilation: list[int]) -> GraphTensor:
        def made(known: dict) -> np.ndarray:
            window = Window(image.dim, tensor.dim, pre_padding, post_padding, stride, dilation)
            return window.to_weight(self._read(image, known), self._read(loss, known))

        tensor = self._made("weight", made)
        return tensor

    def add(self, a: GraphTensor, b: GraphTensor) -> GraphTensor:
        return self._made("add", lambda known: self._read(a, known) + self._read(b, known))

    def bias(self, input: GraphTensor, bias: GraphTensor) -> GraphTensor:
        return self._made("bias", lambda known: self._read(input, known) + self._read(bias, known))

    def relu(self, input: GraphTensor) -> GraphTensor:
        return self._made("relu", lambda known: relu(self._read(input, known)))

    def validate(self) -> None:
        assert not self.steps and self.outputs[-1].output
        self.steps.append("validate")

    def build_operation_graph(self) -> None:
        self.steps.append("graph")

    def create_execution_plans(self, heuristics: list[Any]) -> None:
        assert self.steps == ["validate", "graph"]
        self.steps.append("plans")

    def deselect_numeric_notes(self, notes: list[Any]) -> None:
        assert self.steps[-1] == "plans"  # before there are plans, some versions forget it
        self.notes = [note.name for note in notes]

    def deselect_workspace_greater_than(self, workspace: int) -> None:
        assert self.steps[-1] == "plans"

    def check_support(self) -> None:
        if self.library.lacks:
            raise RuntimeError("no engine supports the graph")

    def build_plans(self) -> None:
        self.steps.append("built")

    def get_workspace_size(self) -> int:
        return self.library.workspace

    def execute(self, tensor_dict: dict, workspace: int, handle: str) -> None:
        assert self.steps[-1] == "built" and handle == "handle" and bool(workspace) == bool(self.library.workspace)
        out = self.outputs[-1]
        made = self.library.scaled * self._read(out, tensor_dict)
        assert list(made.shape) == out.dim
        strided(tensor_dict[out], tuple(out.dim), tuple(out.stride), self.dtype)[...] = stored(made, self.dtype)
        self.library.calls.append(f"{self.dtype} {' '.join(self.text)}")


class Window:
    """A convolution by loops over the taps. All sizes are (n, c, spatial axes)."""

    def __init__(self, data: list[int], weight: list[int], before: list[int], after: list[int], stride: list[int],
                 dilation: list[int]):
        self.data, self.weight, self.before, self.after = data, weight, before, after
        self.stride, self.dilation, self.groups = stride, dilation, data[1] // weight[1]
        self.out = [(n + p + q - d * (k - 1) - 1) // s + 1 for n, p, q, d, k, s in zip(
            data[2:], before, after, dilation, weight[2:], stride, strict=True)]

    def taps(self) -> Any:
        """Each tap, and the part of the padded data that it reads."""
        for tap in np.ndindex(*self.weight[2:]):
            yield tap, tuple(slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, n, s in zip(
                tap, self.dilation, self.out, self.stride, strict=True))

    def padded(self, data: np.ndarray) -> np.ndarray:
        return np.pad(data, [(0, 0), (0, 0), *zip(self.before, self.after, strict=True)])

    def _grouped(self, array: np.ndarray, axis: int) -> np.ndarray:
        shape = array.shape
        return array.reshape(*shape[:axis], self.groups, shape[axis] // self.groups, *shape[axis + 1:])

    def forward(self, data: np.ndarray, weight: np.ndarray) -> np.ndarray:
        padded, weights = self._grouped(self.padded(data), 1), self._grouped(weight, 0)
        total: Any = 0
        for tap, part in self.taps():
            total = total + np.einsum("ngi...,goi->ngo...", padded[(..., *part)], weights[(..., *tap)])
        return total.reshape(self.data[0], self.weight[0], *self.out)

    def to_data(self, gradient: np.ndarray, weight: np.ndarray) -> np.ndarray:
        whole = np.zeros((*self.data[:2], *(n + p + q for n, p, q in zip(self.data[2:], self.before, self.after,
                                                                         strict=True))), gradient.dtype)
        made, weights, gradients = self._grouped(whole, 1), self._grouped(weight, 0), self._grouped(gradient, 1)
        for tap, part in self.taps():
            made[(..., *part)] += np.einsum("ngo...,goi->ngi...", gradients, weights[(..., *tap)])
        inner = tuple(slice(p, p + n) for p, n in zip(self.before, self.data[2:], strict=True))
        return whole[(..., *inner)]

    def to_weight(self, data: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        made = np.zeros(self.weight, data.dtype)
        grouped, padded, gradients = self._grouped(made, 0), self._grouped(self.padded(data), 1), self._grouped(
            gradient, 1)
        for tap, part in self.taps():
            read = padded[(..., *part)]
            axes = [0, *range(3, read.ndim)]
            for group in range(self.groups):
                grouped[(group, slice(None), slice(None), *tap)] = np.tensordot(
                    gradients[:, group], read[:, group], (
                        [axis if axis == 0 else axis - 1 for axis in axes],) * 2)
        return made
