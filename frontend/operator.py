"""MXNet's `mx.operator`: operators that a program writes in Python, and the functions `mx.nd.Custom` and
`mx.sym.Custom` that use them."""
from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from mxc import mixed_precision, operator_arguments
from mxc.compiler.error import ArgumentTypeError
from mxc.ndarray import mixed
from mxc.ndarray.ndarray import NDArray, apply
from mxc.operator_arguments import OperatorArguments
from mxc.operator_elementwise import elementwise  # noqa: F401  # not of MXNet's names, which `*` gives
from mxc.operator_kernel import kernel  # noqa: F401
from mxc.python_operator import NDArrayOp, NumpyOp, PythonOp
from mxc.runtime import custom
from mxc.runtime.elsewhere import elsewhere

__getattr__, _names = elsewhere(__name__, {
    "": "collections context=mxc.context ctypes symbol=mxc.symbol traceback warnings", "array": "array",
    "ctypes": "CFUNCTYPE POINTER Structure c_bool c_char c_char_p c_int c_void_p cast pointer", "threading": "Lock",
    "mxc.base": "MXCallbackList NDArrayHandle OpHandle _LIB c_array c_array_buf c_str check_call ctypes2numpy_shared "
                "mx_float mx_int mx_uint py_str",
    "mxc.codes": "_DTYPE_MX_TO_NP _DTYPE_NP_TO_MX _STORAGE_TYPE_CSR _STORAGE_TYPE_DEFAULT _STORAGE_TYPE_ID_TO_STR "
                 "_STORAGE_TYPE_ROW_SPARSE _STORAGE_TYPE_STR_TO_ID _STORAGE_TYPE_UNDEFINED",
    "mxc.runtime.c_types": "c_int_p", "mxc.util": "is_np_array"})
__all__ = ["CustomOp", "CustomOpProp", "NDArray", "NDArrayOp", "NumpyOp", "OperatorArguments", "PythonOp",
           "get_all_registered_operators", "get_operator_arguments", "register", *_names]


class CustomOp:
    """What computes: a subclass has `forward` and `backward`, which write to the arrays they are given."""

    def __init__(self) -> None:
        pass

    def forward(self, is_train: bool, req: Sequence[str], in_data: Sequence[NDArray], out_data: Sequence[NDArray],
                aux: Sequence[NDArray]) -> None:
        """Compute `out_data` of `in_data`; `req` says how each is to be written."""

    def backward(self, req: Sequence[str], out_grad: Sequence[NDArray], in_data: Sequence[NDArray],
                 out_data: Sequence[NDArray], in_grad: Sequence[NDArray], aux: Sequence[NDArray]) -> None:
        """Compute `in_grad`, what flows into each input, of `out_grad`, what flows into each output."""

    def assign(self, dst: NDArray, req: str, src: Any) -> None:
        """Write `src` to `dst` as a request says: "null" not at all, "write" or "inplace", or "add"."""
        if req in ("write", "inplace"):
            dst[:] = src
        elif req == "add":
            dst[:] += src


class CustomOpProp:
    """What an operator is like: the names, shapes and dtypes of its arrays, and what computes it.

    need_top_grad: whether what flows into the outputs is needed in backward; False for a loss.
    """

    def __init__(self, need_top_grad: bool = True):
        self.need_top_grad_ = need_top_grad

    def infer_shape(self, in_shape: Any) -> Any:
        """Shapes of inputs, outputs and auxiliary states: each output as the first input, unless a subclass says."""
        return in_shape, (in_shape[0],) * len(self.list_outputs()), ()

    def infer_type(self, in_type: Any) -> Any:
        """dtypes of inputs, outputs and auxiliary states: all as the first input's, unless a subclass says."""
        return in_type, [in_type[0]] * len(self.list_outputs()), [in_type[0]] * len(self.list_auxiliary_states())

    def infer_storage_type(self, in_stype: Any) -> Any:
        """Storage types of inputs, outputs and auxiliary states: dense arrays."""
        return in_stype, ["default"] * len(self.list_outputs()), ["default"] * len(self.list_auxiliary_states())

    def infer_storage_type_backward(self, ograd_stype: Any, in_stype: Any, out_stype: Any, igrad_stype: Any,
                                    aux_stype: Any) -> Any:
        """Storage types of all arrays of backward: dense arrays."""
        return tuple(["default"] * len(types) for types in (ograd_stype, in_stype, out_stype, igrad_stype, aux_stype))

    def list_outputs(self) -> list[str]:
        """Names of the outputs."""
        return ["output"]

    def list_arguments(self) -> list[str]:
        """Names of the inputs."""
        return ["data"]

    def list_auxiliary_states(self) -> list[str]:
        """Names of the auxiliary states."""
        return []

    def declare_backward_dependency(self, out_grad: Sequence[int], in_data: Sequence[int],
                                    out_data: Sequence[int]) -> list[int]:
        """Which of the numbered arrays backward reads: all of them, without `out_grad` for a loss."""
        return [*(out_grad if self.need_top_grad_ else ()), *in_data, *out_data]

    def create_operator(self, ctx: Any, in_shapes: Any, in_dtypes: Any) -> CustomOp:
        """The object that computes for inputs of these shapes and dtypes; a subclass says which."""
        return CustomOp()


def register(reg_name: str) -> Callable[[type], type]:
    """A decorator that makes a subclass of CustomOpProp known as the `op_type` of that name.

    Parameters given to `mx.nd.Custom` and `mx.sym.Custom` reach its constructor as strings.
    """

    def keep(prop_class: type) -> type:
        if reg_name in custom.registry:
            logging.getLogger(__name__).warning("New registration is overriding existing custom operator %s", reg_name)
        custom.registry[reg_name] = prop_class, NDArray
        return prop_class

    return keep


def get_all_registered_operators() -> list[str]:
    """The names of all operators, aliases included."""
    return operator_arguments.operators()


def get_operator_arguments(op_name: str) -> OperatorArguments:
    """The arguments of an operator: inputs, then parameters with type and default, in MXNet's words.

    Raises UnsupportedError for one that is not there.
    """
    return operator_arguments.arguments(op_name)


def array_custom(*data: Any, **kwargs: Any) -> Any:
    """Apply the custom operator `op_type` to arrays, by position or by name; its outputs, one or a list.

    Other keyword arguments are the operator's parameters. out: arrays that the results are written to.
    Raises MXNetError for an operator that is not registered or a wrong number of inputs.
    """
    out = kwargs.pop("out", None)
    kwargs.pop("name", None)
    named = {key: kwargs.pop(key) for key, value in list(kwargs.items()) if isinstance(value, NDArray)}
    attrs = {key: str(value) for key, value in kwargs.items()}
    arrays = list(data)
    if named:
        op = custom.make(attrs)
        order = [*(spec.name for spec in op.inputs), *op.aux][len(arrays):]
        unknown = named.keys() - set(order)
        if unknown:
            raise ArgumentTypeError(f"Custom: {attrs['op_type']} has no input {', '.join(sorted(unknown))} left")
        arrays += [named[key] for key in order if key in named]
    for array in arrays:
        if not isinstance(array, NDArray):
            raise ArgumentTypeError(f"Custom: positional arguments must be NDArrays, got {type(array)}")
    if mixed_precision.rules is not None:
        arrays = [*mixed.cast(mixed_precision.rules, "Custom", arrays, attrs, apply)]
    results = [NDArray(result) for result in custom.call(attrs, [a._array for a in arrays])]
    if out is not None:
        targets = [out] if isinstance(out, NDArray) else list(out)
        results = [result.copyto(target) for result, target in zip(results, targets, strict=True)]
    return results[0] if len(results) == 1 else results


def symbol_custom(*data: Any, **kwargs: Any) -> Any:
    """Apply the custom operator `op_type` to symbols, by position or by name; those not given become variables.

    Other keyword arguments are the operator's parameters. Raises MXNetError for an operator that is not registered.
    """
    from mxc.symbol import construct
    from mxc.symbol.symbol import Symbol

    name, attr = kwargs.pop("name", None), kwargs.pop("attr", None)
    kwargs.pop("out", None)
    named = {key: kwargs.pop(key) for key, value in list(kwargs.items()) if isinstance(value, Symbol)}
    attrs = {key: construct.attribute_text(value) for key, value in kwargs.items()}
    op = custom.make(attrs)
    names = [*(spec.name for spec in op.inputs), *op.aux]
    return construct.apply(op, "custom", {**dict(zip(names, data, strict=False)), **named}, attrs, name, attr)


array_custom.__name__ = symbol_custom.__name__ = "Custom"
