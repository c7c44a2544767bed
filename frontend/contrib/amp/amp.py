"""Training in mixed precision: from `init` on every operator casts its inputs to the dtype that it is to compute in."""
from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import Any

from mxc import mixed_precision
from mxc import optimizer as opt
from mxc.compiler.error import ArgumentTypeError, AssertedError
from mxc.contrib.amp.choices import (
    Conditions,
    list_conditional_fp32_ops,
    list_fp32_ops,
    list_loss_output_functions,
    list_lp16_fp32_ops,
    list_lp16_ops,
    list_lp16_use_fp32_params,
    list_widest_type_cast,
    narrow_name,
)
from mxc.contrib.amp.conversion import (
    convert_bucketing_module,  # noqa: F401  # not of the names that `*` gives, as in MXNet
    convert_hybrid_block,
    convert_model,
    convert_symbol,
)
from mxc.contrib.amp.loss_scaler import LossScaler
from mxc.gluon import trainer
from mxc.runtime.elsewhere import elsewhere

__getattr__, _ = elsewhere(__name__, {}, {
    "": "base=mxc.base ctypes lists=mxc.contrib.amp.lists ndarray np=numpy symbol symbol_contrib=mxc.symbol.contrib",
    "array": "array", "mxc.base": "SymbolHandle _LIB c_array_buf c_str_array check_call mx_uint",
    "mxc.codes": "_DTYPE_MX_TO_NP _DTYPE_NP_TO_MX", "mxc.compiler.ops.dtypes": "bfloat16=BFLOAT16",
    "mxc.context": "gpu", "mxc.module": "BucketingModule", "mxc.ndarray": "NDArray", "mxc.symbol": "Symbol"})
__all__ = ["convert_hybrid_block", "convert_model", "convert_symbol", "init", "init_trainer",
           "list_conditional_fp32_ops", "list_fp32_ops", "list_loss_output_functions", "list_lp16_fp32_ops",
           "list_lp16_ops", "list_lp16_use_fp32_params", "list_widest_type_cast", "scale_loss", "unscale"]

_amp_initialized = False
_amp_loss_scale_initialized = False
_loss_scaler: LossScaler | None = None


def init(target_dtype: object = "float16", target_precision_ops: Sequence[str] | None = None,
         conditional_fp32_ops: Conditions | None = None, fp32_ops: Sequence[str] | None = None) -> None:
    """Compute in mixed precision from now on: functions and methods of arrays and symbols cast their inputs.

    target_dtype: float16 or bfloat16. target_precision_ops: the operators that compute in it, fp32_ops: those in
    float32, conditional_fp32_ops: those in float32 where a parameter has one of the values; default: `list_lp16_ops`,
    `list_fp32_ops` and `list_conditional_fp32_ops`. A second call changes nothing.

    Raises AssertionError for another dtype, AttributeError for an operator that there is not.
    """
    global _amp_initialized, _loss_scaler
    if _amp_initialized:
        return
    name = narrow_name(target_dtype)
    chosen = [*(target_precision_ops or ()), *(fp32_ops or ()), *(op for op, *_ in conditional_fp32_ops or ())]
    mixed_precision.check(chosen)
    logging.info("Using AMP")
    _loss_scaler = scaler = LossScaler()
    listed = {*list_lp16_ops(name), *list_lp16_fp32_ops(name), *list_fp32_ops(name), *list_widest_type_cast(name),
              *(op for op, *_ in list_conditional_fp32_ops(name))}
    mixed_precision.rules = mixed_precision.Rules(
        name, list_lp16_ops(name) if target_precision_ops is None else target_precision_ops,
        list_fp32_ops(name) if fp32_ops is None else fp32_ops, list_widest_type_cast(name),
        list_conditional_fp32_ops(name) if conditional_fp32_ops is None else conditional_fp32_ops,
        list_lp16_use_fp32_params(name) or {}, list_loss_output_functions(name), lambda: scaler.loss_scale,
        listed, chosen)
    _amp_initialized = True


def init_trainer(optimizer_or_trainer: Any) -> None:
    """Let a Gluon Trainer leave out the steps whose gradients overflowed, and choose the scale of the loss by them.

    Raises AssertionError before `init`, TypeError for what is no Trainer.
    """
    global _amp_loss_scale_initialized
    if not _amp_initialized:
        raise AssertedError("automatic mixed precision is not on: call amp.init() before amp.init_trainer()")
    found = _trainer(optimizer_or_trainer)
    found._amp_loss_scaler = LossScaler() if _amp_loss_scale_initialized else _loss_scaler
    found._amp_original_scale = found._scale
    _amp_loss_scale_initialized = True


@contextlib.contextmanager
def scale_loss(loss: Any, optimizer_or_trainer: Any) -> Iterator[Any]:
    """In `with amp.scale_loss(loss, trainer) as scaled:` the loss by a factor, with which its gradients stay within the
    numbers of the narrow dtype; the trainer divides by it.

    loss: an array, or a list of them. Raises AttributeError before `init_trainer`.
    """
    scaler = getattr(optimizer_or_trainer, "_amp_loss_scaler", None)
    if scaler is None:
        raise AttributeError(f"{type(optimizer_or_trainer).__name__} has no scale of the loss: call "
                             "amp.init_trainer(trainer) before amp.scale_loss()")
    optimizer_or_trainer._scale = optimizer_or_trainer._amp_original_scale / scaler.loss_scale
    if isinstance(loss, (list, tuple)):
        yield [each * scaler.loss_scale for each in loss]
    else:
        yield loss * scaler.loss_scale


def unscale(optimizer_or_trainer: Any) -> None:
    """Divide the gradients by the scale of the loss now, to clip them for example, and not in the trainer's step.

    Raises TypeError for what is no Trainer.
    """
    found = _trainer(optimizer_or_trainer)
    for param in found._params:
        for gradient in param.list_grad() if param._grad is not None else ():
            gradient *= found._scale
    found._scale = 1.0


def _trainer(given: Any) -> Any:
    if isinstance(given, trainer.Trainer):
        return given
    if isinstance(given, opt.Optimizer):
        raise ArgumentTypeError("mixed precision is for a Gluon Trainer, got an optimizer")
    raise ArgumentTypeError(f"optimizer_or_trainer: expected a Gluon Trainer, got {type(given)}")
