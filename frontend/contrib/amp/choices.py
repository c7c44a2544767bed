"""Which operators compute in which dtype, for each narrow dtype: the lists of `lists`, as functions."""
from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from mxc.compiler.error import AssertedError
from mxc.compiler.ops.dtypes import NARROW, dtype_name
from mxc.contrib.amp.lists import symbol_bf16, symbol_fp16

Conditions = list[tuple[str, str, list[str]]]


def narrow_name(target_dtype: object) -> str:
    """The name of a narrow dtype. Raises AssertionError for another."""
    try:
        name = dtype_name(target_dtype)
    except TypeError:
        name = str(target_dtype)
    if name not in NARROW:
        raise AssertedError(f"target_dtype: expected one of {', '.join(NARROW)}, got {name}")
    return name


def _lists(target_dtype: object) -> ModuleType:
    return symbol_fp16 if narrow_name(target_dtype) == "float16" else symbol_bf16


def list_lp16_ops(target_dtype: object) -> list[str]:
    """The operators that compute in the narrow dtype. Raises AssertionError for a dtype that is not narrow."""
    lists = _lists(target_dtype)
    return lists.FP16_FUNCS if lists is symbol_fp16 else lists.BF16_FUNCS


def list_lp16_fp32_ops(target_dtype: object) -> list[str]:
    """The operators that compute in the dtypes of their inputs. Raises AssertionError as `list_lp16_ops`."""
    lists = _lists(target_dtype)
    return lists.FP16_FP32_FUNCS if lists is symbol_fp16 else lists.BF16_FP32_FUNCS


def list_fp32_ops(target_dtype: object) -> list[str]:
    """The operators that compute in float32. Raises AssertionError as `list_lp16_ops`."""
    return _lists(target_dtype).FP32_FUNCS


def list_conditional_fp32_ops(target_dtype: object) -> Conditions:
    """Operators with a parameter, and the values of it with which they compute in float32. Raises AssertionError as
    `list_lp16_ops`."""
    return _lists(target_dtype).CONDITIONAL_FP32_FUNCS


def list_widest_type_cast(target_dtype: object) -> list[str]:
    """The operators that compute in the widest dtype of their inputs. Raises AssertionError as `list_lp16_ops`."""
    return _lists(target_dtype).WIDEST_TYPE_CASTS


def list_loss_output_functions(target_dtype: object) -> list[str]:
    """The operators that make the gradient of a loss. Raises AssertionError as `list_lp16_ops`."""
    return _lists(target_dtype).LOSS_OUTPUT_FUNCTIONS


def list_lp16_use_fp32_params(target_dtype: object) -> Mapping[str, list[str]] | None:
    """By operator, the inputs that stay in float32 where it computes in the narrow dtype; None for float16. Raises
    AssertionError as `list_lp16_ops`."""
    lists = _lists(target_dtype)
    return None if lists is symbol_fp16 else lists.BF16_USE_FP32_PARAMS
