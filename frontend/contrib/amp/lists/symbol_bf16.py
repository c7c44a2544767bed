"""Which operators compute in bfloat16, in float32, or in the dtypes of their inputs. Programs may change the lists."""
from mxc.contrib.amp.lists import conditions, of_dtype

_LISTS = of_dtype("bfloat16")
BF16_FUNCS = _LISTS["narrow"]
BF16_FP32_FUNCS = _LISTS["either"]
BF16_USE_FP32_PARAMS = _LISTS["float32_parameters"]
FP32_FUNCS = _LISTS["float32"]
CONDITIONAL_FP32_FUNCS = conditions("bfloat16")
WIDEST_TYPE_CASTS = _LISTS["widest"]
LOSS_OUTPUT_FUNCTIONS = _LISTS["loss"]
