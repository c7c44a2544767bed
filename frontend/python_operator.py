"""The older ways to write an operator in Python, for graphs only; `mx.operator.CustomOp` does all that they do."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mxc.ndarray.ndarray import NDArray
from mxc.runtime import custom
from mxc.runtime.array import Array


class PythonOp:
    """What operators of both kinds of arrays share: by default one output that is the input, with a gradient of 1."""

    def __init__(self, need_top_grad: bool = True):
        self.need_top_grad_ = need_top_grad

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply it to symbols, as `get_symbol`."""
        return self.get_symbol(*args, **kwargs)

    def get_symbol(self, *args: Any, **kwargs: Any) -> Any:
        """Apply it to symbols; NumpyOp and NDArrayOp do."""
        raise NotImplementedError("Must override this")

    def forward(self, in_data: Sequence[Any], out_data: Sequence[Any]) -> None:
        """Write the outputs."""
        out_data[0][:] = in_data[0]

    def backward(self, out_grad: Sequence[Any], in_data: Sequence[Any], out_data: Sequence[Any],
                 in_grad: Sequence[Any]) -> None:
        """Write what flows into each input."""
        in_grad[0][:] = 1.0

    def infer_shape(self, in_shape: Any) -> Any:
        """Shapes of inputs and outputs."""
        return in_shape, [in_shape[0]]

    def list_outputs(self) -> list[str]:
        """Names of the outputs."""
        return ["output"]

    def list_arguments(self) -> list[str]:
        """Names of the inputs."""
        return ["data"]

    def need_top_grad(self) -> bool:
        """Whether backward needs what flows into the outputs; False for a loss."""
        return self.need_top_grad_

    def _symbol(self, wrap: Callable[[Array], Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        from mxc.symbol import construct

        op = custom.CustomOperator(type(self).__name__, _Property(self), wrap)
        name, attr = kwargs.pop("name", None), kwargs.pop("attr", None)
        names = [spec.name for spec in op.inputs]
        return construct.apply(op, type(self).__name__.lower(), {**dict(zip(names, args, strict=False)), **kwargs}, {},
                               name, attr)


class NumpyOp(PythonOp):
    """An operator whose forward and backward get NumPy arrays."""

    def get_symbol(self, *args: Any, **kwargs: Any) -> Any:
        """Apply it to symbols, by position or by name; those not given become variables."""
        return self._symbol(lambda array: array.data, args, kwargs)


class NDArrayOp(PythonOp):
    """An operator whose forward and backward get NDArrays."""

    def get_symbol(self, *args: Any, **kwargs: Any) -> Any:
        """Apply it to symbols, by position or by name; those not given become variables."""
        return self._symbol(NDArray, args, kwargs)

    def declare_backward_dependency(self, out_grad: Sequence[int], in_data: Sequence[int],
                                    out_data: Sequence[int]) -> list[int]:
        """Which of the numbered arrays backward reads: all of them, without `out_grad` for a loss."""
        return [*(out_grad if self.need_top_grad() else ()), *in_data, *out_data]


class _Property:
    """A PythonOp as custom operators are described, and as they compute."""

    def __init__(self, op: PythonOp):
        self.op = op
        self.list_arguments, self.list_outputs = op.list_arguments, op.list_outputs
        self.infer_shape = op.infer_shape

    def list_auxiliary_states(self) -> list[str]:
        return []

    def infer_type(self, in_type: Sequence[Any]) -> Any:
        return in_type, [in_type[0]] * len(self.list_outputs())

    def declare_backward_dependency(self, out_grad: Sequence[int], in_data: Sequence[int],
                                    out_data: Sequence[int]) -> list[int]:
        return NDArrayOp.declare_backward_dependency(self.op, out_grad, in_data, out_data)  # type: ignore[arg-type]

    def create_operator(self, *facts: Any) -> _Property:
        return self

    def forward(self, is_train: bool, req: Sequence[str], in_data: Any, out_data: Any, aux: Any) -> None:
        self.op.forward(in_data=in_data, out_data=out_data)

    def backward(self, req: Sequence[str], out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
        self.op.backward(out_grad=out_grad, in_data=in_data, out_data=out_data, in_grad=in_grad)
