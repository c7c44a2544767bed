"""Which operators compute in float16, in float32, or in the dtypes of their inputs. Programs may change the lists."""
from mxc.contrib.amp.lists import conditions, of_dtype

_LISTS = of_dtype("float16")
FP16_FUNCS = _LISTS["narrow"]
FP16_FP32_FUNCS = _LISTS["either"]
FP32_FUNCS = _LISTS["float32"]
CONDITIONAL_FP32_FUNCS = conditions("float16")
WIDEST_TYPE_CASTS = _LISTS["widest"]
LOSS_OUTPUT_FUNCTIONS = _LISTS["loss"]
