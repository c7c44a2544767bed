"""Calls of operators of mx.nd.contrib and mx.nd._internal, written once for MXNet and mxc: what they answer or raise.

With MXNet's Python, `contrib_calls.py` writes what MXNet 1.9.1 answers to contrib_calls.json, a line for each program;
tests/test_contrib_calls.py compares mxc's.
"""
from pathlib import Path

import numpy as np


def _numbers(shape, seed=0):
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype("float32")


def _turned(angle, **attrs):
    """Regions of several sizes, turned by an angle, some of them partly outside."""
    def call(mx):
        rois = mx.nd.array([[0, 5, 4, 6, 4, angle], [1, 3, 3, 2, 5, -angle], [0, 1, 1, 8, 8, angle / 2]])
        return mx.nd.contrib.RROIAlign(mx.nd.array(_numbers((2, 3, 9, 11))), rois,
                                       **{"pooled_size": (2, 3), "spatial_scale": 1.0, **attrs})
    return call


def _set(mx):
    out = mx.nd.zeros((2, 3), dtype="int32")
    return mx.nd._internal._set_value(src=2.5, out=out), out


CALLS = {
    **{f"RROIAlign {angle}": _turned(angle) for angle in (0, 30, 90, -135, 400)},
    "RROIAlign samples": _turned(65, sampling_ratio=2), "RROIAlign scaled": _turned(65, spatial_scale=0.5),
    "RROIAlign scale": _turned(0, spatial_scale=2.0), "RROIAlign size": _turned(0, pooled_size=(2,)),
    "RROIAlign no size": _turned(0, pooled_size=(0, 2)),
    "RROIAlign dtypes": lambda mx: mx.nd.contrib.RROIAlign(
        mx.nd.zeros((1, 2, 4, 4)), mx.nd.zeros((1, 6), dtype="float64"), pooled_size=(2, 2), spatial_scale=1.0),
    "quantize_asym edges": lambda mx: mx.nd.contrib.quantize_asym(
        mx.nd.array([[[0, 255, 0.5, 1.5, 2.5, 5.25, 300, -7, np.nan, np.inf, -np.inf]]]), min_calib_range=0.0,
        max_calib_range=255.0),
    "quantize_asym of one number": lambda mx: mx.nd.contrib.quantize_asym(mx.nd.ones((2, 3, 4))),
    "quantize_asym int8": lambda mx: mx.nd.contrib.quantize_asym(mx.nd.ones((2, 3, 4), dtype="int8")),
    "set_value": _set, "set_value nowhere": lambda mx: mx.nd._internal._set_value(src=1.5),
    **{f"quantized_rnn {mode}": lambda mx, mode=mode: mx.sym.contrib.quantized_rnn(
        name="op", state_size=3, num_layers=2, mode=mode, bidirectional=True,
        state_outputs=True).infer_shape(op_data=(5, 2, 4)) for mode in ("lstm", "gru")},
}


def answer(mx, case):
    """What MXNet, or mxc, says of a program: arrays by dtype, shape and elements, other values as text; or the class of
    the error."""
    try:
        return _described(mx, CALLS[case](mx))
    except Exception as error:
        return {"error": type(error).__name__}


def _described(mx, value):
    if isinstance(value, (list, tuple)) and any(isinstance(each, mx.nd.NDArray) for each in value):
        return [_described(mx, each) for each in value]
    if isinstance(value, mx.nd.NDArray):
        array = value.asnumpy()
        return [array.dtype.name, list(array.shape), [float(x) if np.isfinite(x) else str(x) for x in array.ravel()]]
    return str(value)


CASES = list(CALLS)

if __name__ == "__main__":
    import answers

    answers.run(__file__, Path(__file__).with_suffix(".json"), CASES, answer)
