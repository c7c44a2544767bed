"""Automatic mixed precision: `mx.contrib.amp`. Networks compute in float16 or bfloat16 where it does, else in float32.

Begin with `amp.py`: `init` for training, in which every operator casts its inputs; `loss_scaler.py` has the factor of
the loss. `conversion.py` makes trained symbols and blocks of mixed precision, by the casts of `casts.py`. `choices.py`
and `lists` say which operator computes in which dtype.
"""
from mxc.contrib.amp import amp, lists, loss_scaler
from mxc.contrib.amp.amp import (
    convert_hybrid_block,
    convert_model,
    convert_symbol,
    init,
    init_trainer,
    list_conditional_fp32_ops,
    list_fp32_ops,
    list_loss_output_functions,
    list_lp16_fp32_ops,
    list_lp16_ops,
    list_lp16_use_fp32_params,
    list_widest_type_cast,
    scale_loss,
    unscale,
)

__all__ = ["amp", "convert_hybrid_block", "convert_model", "convert_symbol", "init", "init_trainer",
           "list_conditional_fp32_ops", "list_fp32_ops", "list_loss_output_functions", "list_lp16_fp32_ops",
           "list_lp16_ops", "list_lp16_use_fp32_params", "list_widest_type_cast", "lists", "loss_scaler", "scale_loss",
           "unscale"]
