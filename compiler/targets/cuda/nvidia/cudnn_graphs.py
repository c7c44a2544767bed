"""Convolutions and their gradients by cuDNN, as graphs of its Python front end.

cuDNN's convolution is MXNet's, a cross-correlation, and groups follow from the channels of data and weight. Sums are of
float32. What is left out, by cuDNN's notes: whatever gives other bits in another run, inputs that are rounded, sums of
less than float32, Fourier's way, and Winograd's with large tiles (for float16 and bfloat16, and where direct
convolutions are asked for, with any); for float32 also tensor cores, which round to TF32, unless that is asked for.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.dtypes import numpy_dtype
from mxc.compiler.system.forks import Lock
from mxc.compiler.targets.cuda.device import Device, LibraryCall, LibraryLacks
from mxc.compiler.targets.cuda.nvidia.forms import Convolved, Tensor
from mxc.compiler.targets.cuda.nvidia.rounding import Rounding
from mxc.compiler.targets.cuda.nvidia.workspace import Workspace

MODULE = "cudnn"
MOST_WORKSPACE = 256 << 20  # bytes: MXNet's limit is 1 GiB for each convolution; all calls share one piece here
TYPES = {"float32": "FLOAT", "float16": "HALF", "bfloat16": "BFLOAT16"}
LEFT_OUT = ("NONDETERMINISTIC", "DOWN_CONVERT_INPUTS", "REDUCED_PRECISION_REDUCTION", "FFT", "WINOGRAD_TILE_6x6",
            "WINOGRAD_TILE_13x13")
WINOGRAD = ("WINOGRAD", "WINOGRAD_TILE_4x4")
OF_TF32 = ("TENSOR_CORE",)


class Cudnn:
    """The library on a device. cudnn: the front end."""

    def __init__(self, cudnn: Any, device: Device, workspace: Workspace, rounding: Rounding):
        self.cudnn, self.device, self.workspace, self.rounding = cudnn, device, workspace, rounding
        self.lock = Lock()  # a handle has one stream at a time
        self.handle = device.call(lambda stream: cudnn.create_handle())

    @property
    def version(self) -> str:
        return f"cuDNN {self.cudnn.backend_version()}"

    def call(self, form: Convolved) -> Convolution:
        """The call of a form. Raises LibraryLacks where the library has none."""
        def make(stream: int) -> Convolution:
            with self.lock:
                return Convolution(self, form)

        return self.device.call(make)


class Convolution(LibraryCall):
    """A call for one form: a graph of cuDNN, with the way of computing that its heuristics chose."""

    def __init__(self, library: Cudnn, form: Convolved):
        self.library, self.form = library, form
        cudnn = library.cudnn
        self._size = numpy_dtype(form.dtype).itemsize
        self._dtype = getattr(cudnn.data_type, TYPES[form.dtype])
        try:
            self._graph = cudnn.pygraph(io_data_type=self._dtype, intermediate_data_type=cudnn.data_type.FLOAT,
                                        compute_data_type=cudnn.data_type.FLOAT, handle=library.handle)
            self._tensors = self._describe()
            self._plan()
        except Exception as error:  # the front end raises RuntimeError, ValueError and errors of its own
            raise LibraryLacks(f"{form.text()}: {type(error).__name__}: {error}") from None
        self._memory = library.workspace.of(int(self._graph.get_workspace_size()))

    def _tensor(self, name: str, array: Tensor) -> Any:
        return self._graph.tensor(name=name, dim=list(array.shape), stride=list(array.strides), data_type=self._dtype)

    def _describe(self) -> list[tuple[Any, Tensor]]:
        """Makes the graph; gives what it reads and writes."""
        graph, form = self._graph, self.form
        first, second = self._tensor("first", form.first), self._tensor("second", form.second)
        tensors = [(first, form.first), (second, form.second)]
        window = {"pre_padding": list(form.before), "post_padding": list(form.after), "stride": list(form.stride),
                  "dilation": list(form.dilation)}
        if form.kind == "forward":
            made = graph.conv_fprop(image=first, weight=second, **window)
        elif form.kind == "data":
            made = graph.conv_dgrad(loss=first, filter=second, **window)
        else:
            made = graph.conv_wgrad(image=first, loss=second, **window)
        if form.added is not None or form.bias is not None or form.relu:
            made.set_dim(list(form.result.shape))  # those of gradients do not follow from the window
            made.set_stride(list(form.result.strides))
        if form.added is not None:
            tensors.append((self._tensor("added", form.added), form.added))
            made = graph.add(a=made, b=tensors[-1][0])
        if form.bias is not None:
            tensors.append((self._tensor("bias", form.bias), form.bias))
            made = graph.bias(input=made, bias=tensors[-1][0])
        if form.relu:
            made = graph.relu(input=made)
        made.set_output(True)
        made.set_data_type(self._dtype)
        made.set_dim(list(form.result.shape))
        made.set_stride(list(form.result.strides))
        return [*tensors, (made, form.result)]

    def _plan(self) -> None:
        graph, cudnn, dtype = self._graph, self.library.cudnn, self.form.dtype
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        left_out = LEFT_OUT + (WINOGRAD if dtype != "float32" or self.library.rounding.strict else ())
        left_out += OF_TF32 if dtype == "float32" and not self.library.rounding.tf32 else ()
        graph.deselect_numeric_notes([getattr(cudnn.numerical_note, name) for name in left_out])
        graph.deselect_workspace_greater_than(MOST_WORKSPACE)
        graph.check_support()
        graph.build_plans()

    def begin(self, stream: int, addresses: Sequence[int]) -> None:
        places = {tensor: int(addresses[array.position]) + array.offset * self._size for tensor, array in self._tensors}
        library = self.library
        with library.lock:
            try:
                library.cudnn.set_stream(handle=library.handle, stream=stream)
                self._graph.execute(places, self._memory, handle=library.handle)
            except Exception as error:  # the front end raises RuntimeError, ValueError and errors of its own
                raise MXNetError(f"{self.form.text()}: {type(error).__name__}: {error}") from error

    def offsets(self) -> list[tuple[int, int]]:
        return [(array.position, array.offset * self._size) for _, array in self._tensors]
