"""A model of one node for each operator of ONNX that is read, with the values of its inputs.

Floating inputs are random numbers of the shapes that a case gives; an array is a constant of the model, and one in a
list is an input with these values.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

OPSET = 21
Shape = tuple[int, ...]


@dataclass(frozen=True)
class NodeCase:
    """An operator, its inputs (a shape, a constant array, [values] of an input, or None), outputs and attributes."""

    op_type: str
    inputs: tuple[Any, ...]
    outputs: int = 1
    opset: int = OPSET
    low: float = -2.0
    high: float = 2.0
    attributes: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        shown = ",".join(f"{name}={value}" for name, value in self.attributes.items())
        return f"{self.op_type}({shown})".replace(" ", "")[:70]

    def values(self) -> dict[str, np.ndarray]:
        """The inputs and constants by name."""
        rng, found = np.random.default_rng(0), {}
        for i, each in enumerate(self.inputs):
            if isinstance(each, tuple):
                found[f"x{i}"] = rng.uniform(self.low, self.high, each).astype(np.float32)
            elif each is not None:
                found[f"x{i}"] = each[0] if isinstance(each, list) else each
        return found

    def constants(self) -> set[str]:
        """The names of what is a constant of the model."""
        return {f"x{i}" for i, each in enumerate(self.inputs) if isinstance(each, np.ndarray)}


def case(op_type: str, *inputs: Any, outputs: int = 1, opset: int = OPSET, low: float = -2.0, high: float = 2.0,
         **attributes: Any) -> NodeCase:
    return NodeCase(op_type, inputs, outputs, opset, low, high, attributes)


def f(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def i(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def random(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


M: Shape = (2, 3, 4)  # what operators of single elements get
PICTURE: Shape = (2, 3, 7, 8)
SIGNS = [np.array([[1.5, -1.5, 0.0], [2.5, -2.5, 0.5]], np.float32)]
WEIGHT = random(4, 3, 3, 3)
VECTOR = random(3)
POSITIVE = np.abs(random(3)) + 0.5
TRUE, FALSE = [np.array([[True, False, True]])], [np.array([[False, False, True]])]
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def recurrent(op_type: str, directions: int, *rest: Any, outputs: int, **attributes: Any) -> NodeCase:
    """A recurrent layer over 5 steps of 2 samples of 3 numbers, with states of 4."""
    rows = GATES[op_type] * 4
    return case(op_type, (5, 2, 3), random(directions, rows, 3), random(directions, rows, 4, seed=2), *rest,
                outputs=outputs, hidden_size=4, **attributes)


def resized(mode: str, sizes: bool = False, out: tuple[int, int] = (14, 16), **attributes: Any) -> NodeCase:
    """A picture of 7 by 8 resized, with sizes or with scales."""
    given = (None, None, i(2, 3, *out)) if sizes else (None, f(1, 1, out[0] / 7, out[1] / 8))
    return case("Resize", PICTURE, *given, mode=mode, **attributes)


UNARY = {
    "Abs": {}, "Neg": {}, "Exp": {}, "Log": {"low": 0.1}, "Sqrt": {"low": 0.0}, "Reciprocal": {"low": 0.5},
    "Sigmoid": {}, "Erf": {}, "Floor": {}, "Ceil": {}, "Sin": {}, "Cos": {}, "Tan": {"low": -1, "high": 1},
    "Asin": {"low": -1, "high": 1}, "Acos": {"low": -1, "high": 1}, "Atan": {}, "Sinh": {}, "Cosh": {}, "Tanh": {},
    "Asinh": {}, "Acosh": {"low": 1.1}, "Atanh": {"low": -0.9, "high": 0.9}, "Identity": {}, "Softsign": {},
    "Relu": {}, "Softplus": {}, "HardSwish": {}, "IsNaN": {}, "Elu": {}, "Selu": {}, "LeakyRelu": {}, "HardSigmoid": {},
    "Gelu": {},
}
REDUCTIONS = ["ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
              "ReduceLogSumExp", "ReduceSum"]
CASES: list[NodeCase] = [
    *(case(name, M, **ranges) for name, ranges in UNARY.items()),
    case("Round", SIGNS), case("Sign", SIGNS), case("Not", TRUE), case("Elu", M, alpha=0.5),
    case("Selu", M, alpha=1.0, gamma=2.0), case("LeakyRelu", M, alpha=0.3), case("HardSigmoid", M, alpha=0.4, beta=0.1),
    case("Gelu", M, approximate="tanh"), case("Celu", M, alpha=2.0), case("Mish", M), case("ThresholdedRelu", M),
    case("Shrink", M, lambd=0.5, bias=0.25), case("IsInf", [f(1, np.inf, -np.inf)]),
    case("PRelu", PICTURE, random(3, 1, 1)), case("PRelu", (2, 3), random(3)), case("PRelu", M, f(0.2)),
    case("PRelu", M, random(3, 4)), case("Dropout", M), case("Dropout", M, np.array(0.3, np.float32)),
    *(case(name, M, M) for name in ("Add", "Sub", "Mul", "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual",
                                    "Sum", "Mean", "Max", "Min")),
    case("Add", M, (4,)), case("Sub", f(2.5), M), case("Mul", M, np.array(3, np.float32)),
    case("Div", M, M, low=0.5), case("Div", f(2), M, low=0.5), case("Div", [i(7, -7)], [i(2, 2)]),
    case("Greater", np.array(0.5, np.float32), M), case("Equal", [i(1, 2)], i(2)), case("Equal", TRUE, FALSE),
    case("Sum", M, (4,), (3, 1)), case("Max", M, f(0.5)), case("Min", (4,), M), case("Mean", M, M, M),
    case("And", TRUE, FALSE), case("Or", TRUE, FALSE), case("Xor", TRUE, FALSE),
    case("Pow", M, f(2)), case("Pow", M, M, low=0.5), case("Pow", M, i(3)), case("Pow", f(2), M),
    case("Mod", [i(7, -7, 5)], [i(3, 3, -3)]), case("Mod", [f(7, -7, 5.5)], [f(3, 3, -3)], fmod=1),
    case("Mod", [i(7, -7)], i(4)),
    case("Where", [np.array([[True], [False]])], (2, 3), (3,)), case("Where", TRUE, f(1), (2, 3)),
    case("Clip", M, np.array(-1, np.float32), np.array(0.5, np.float32)), case("Clip", M, np.array(0, np.float32)),
    case("Clip", M, None, np.array(1, np.float32)), case("Clip", M, np.array(1, np.float32), np.array(-1, np.float32)),
    case("Clip", M, [np.array(0.1, np.float32)]),
    case("Cast", M, to=7), case("Cast", SIGNS, to=9), case("Cast", TRUE, to=1), case("Cast", M, to=11),
    case("CastLike", M, [i(1)]),
    # windows
    case("Conv", PICTURE, WEIGHT), case("Conv", PICTURE, WEIGHT, random(4), pads=[1, 1, 1, 1], strides=[2, 1]),
    case("Conv", PICTURE, WEIGHT, pads=[0, 1, 2, 1]),
    case("Conv", PICTURE, WEIGHT, auto_pad="SAME_UPPER", strides=[2, 2]),
    case("Conv", PICTURE, WEIGHT, auto_pad="SAME_LOWER", strides=[2, 2]),
    case("Conv", PICTURE, WEIGHT, auto_pad="VALID"),
    case("Conv", PICTURE, random(6, 1, 3, 3), group=3, dilations=[2, 2]), case("Conv", (2, 3, 9), random(4, 3, 3)),
    case("Conv", (1, 2, 5, 5, 5), random(3, 2, 3, 3, 3)), case("Conv", (2, 3, 9), random(4, 3, 3), pads=[1, 0]),
    case("Conv", PICTURE, (4, 3, 3, 3)),
    case("ConvTranspose", PICTURE, random(3, 4, 3, 3)),
    case("ConvTranspose", PICTURE, random(3, 4, 3, 3), random(4), strides=[2, 2], pads=[1, 1, 1, 1],
         output_padding=[1, 1]),
    case("ConvTranspose", (2, 4, 5, 5), random(4, 2, 3, 3), group=2, pads=[0, 1, 2, 1], strides=[2, 2]),
    case("ConvTranspose", PICTURE, random(3, 4, 3, 3), strides=[2, 2], output_shape=[14, 16]),
    case("ConvTranspose", PICTURE, random(3, 4, 3, 3), strides=[2, 2], auto_pad="SAME_UPPER"),
    *(case(kind, PICTURE, kernel_shape=[3, 3], **how) for kind in ("MaxPool", "AveragePool") for how in (
        {}, {"strides": [2, 2], "pads": [1, 1, 1, 1]}, {"strides": [2, 2], "ceil_mode": 1},
        {"strides": [2, 2], "pads": [0, 1, 1, 0]}, {"strides": [3, 3], "pads": [1, 1, 1, 1], "ceil_mode": 1},
        {"auto_pad": "SAME_UPPER", "strides": [2, 2]})),
    case("MaxPool", (2, 3, 9), kernel_shape=[2], strides=[2]),
    case("AveragePool", PICTURE, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1),
    case("AveragePool", PICTURE, kernel_shape=[3, 3], pads=[0, 1, 1, 1], count_include_pad=1),
    case("LpPool", PICTURE, kernel_shape=[2, 2], strides=[2, 2], p=2),
    case("LpPool", PICTURE, kernel_shape=[2, 2], p=1),
    case("GlobalAveragePool", PICTURE), case("GlobalMaxPool", PICTURE), case("GlobalLpPool", PICTURE, p=2),
    case("MaxRoiPool", PICTURE, [np.array([[0, 0, 0, 6, 5], [1, 2, 1, 7, 6]], np.float32)], pooled_shape=[2, 2]),
    case("RoiAlign", PICTURE, [np.array([[0, 0, 6, 5], [2, 1, 7, 6]], np.float32)], [i(0, 1)], output_height=2,
         output_width=3, sampling_ratio=2, spatial_scale=0.5),
    case("RoiAlign", PICTURE, [np.array([[0, 0, 6, 5]], np.float32)], [i(1)], output_height=2, output_width=2,
         sampling_ratio=2, coordinate_transformation_mode="output_half_pixel"),
    # layers
    case("Gemm", (2, 3), random(3, 4)), case("Gemm", (2, 3), random(4, 3), random(4), transB=1),
    case("Gemm", (2, 3), random(3, 4), random(1, 4), alpha=0.5, beta=2.0),
    case("Gemm", (3, 2), (3, 4), transA=1, alpha=2.0),
    case("Gemm", (2, 3), (3, 4), (2, 4), beta=0.5), case("Gemm", (2, 3), random(3, 4), random(2, 1)),
    case("MatMul", (2, 3), random(3, 4)), case("MatMul", (2, 5, 3), random(3, 4)), case("MatMul", (2, 3), (3, 4)),
    case("MatMul", (2, 5, 3), (3, 4)), case("MatMul", (2, 5, 3), (2, 3, 4)), case("MatMul", (2, 1, 5, 3), (4, 3, 2)),
    case("MatMul", (3,), (3, 4)), case("MatMul", (2, 3), (3,)), case("MatMul", (5, 3), (2, 3, 4)),
    case("MatMul", (3,), random(3, 4)),
    case("Einsum", (2, 3, 4, 5), (2, 3, 6, 5), equation="bhid,bhjd->bhij"),
    case("Einsum", (2, 3), (4, 3), equation="ij,kj->ki"),
    case("BatchNormalization", PICTURE, VECTOR, random(3, seed=2), random(3, seed=3), POSITIVE, epsilon=1e-3),
    case("BatchNormalization", (4, 3), VECTOR, VECTOR, VECTOR, POSITIVE),
    case("InstanceNormalization", PICTURE, VECTOR, random(3, seed=2)),
    case("LayerNormalization", M, random(4), random(4, seed=2)), case("LayerNormalization", M, random(4), epsilon=1e-3),
    case("LayerNormalization", M, random(3, 4), random(3, 4, seed=2), axis=1),
    case("GroupNormalization", (2, 4, 3, 3), random(4), random(4, seed=2), num_groups=2),
    case("GroupNormalization", (2, 4, 3, 3), random(2), random(2, seed=2), num_groups=2, opset=18),
    case("MeanVarianceNormalization", PICTURE),
    case("LRN", PICTURE, size=3, alpha=0.1, beta=0.5, bias=2.0), case("LpNormalization", M, axis=1),
    case("LpNormalization", M, p=1), case("Softmax", M), case("Softmax", M, axis=1), case("LogSoftmax", M, axis=0),
    resized("nearest"), resized("nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
    resized("nearest", out=(3, 4)), resized("nearest", sizes=True, out=(5, 11)), resized("linear"),
    resized("linear", sizes=True, out=(4, 13)), resized("linear", coordinate_transformation_mode="align_corners"),
    resized("linear", coordinate_transformation_mode="asymmetric"), resized("cubic", cubic_coeff_a=-0.75),
    resized("linear", sizes=True, out=(4, 5), coordinate_transformation_mode="pytorch_half_pixel"),
    resized("nearest", out=(7, 8)), case("Resize", (2, 3, 8), None, f(1, 1, 1.5), mode="linear"),
    case("Resize", PICTURE, None, None, i(3, 5), axes=[2, 3], mode="linear", antialias=1),
    # arrangement
    case("Reshape", M, i(0, -1)), case("Reshape", M, i(4, 6)), case("Flatten", M), case("Flatten", M, axis=2),
    case("Flatten", M, axis=-1), case("Flatten", M, axis=0), case("Transpose", M), case("Transpose", M, perm=[1, 0, 2]),
    case("Squeeze", (2, 1, 3, 1), i(1)), case("Squeeze", (2, 1, 3, 1)), case("Unsqueeze", (2, 3), i(0, -1)),
    case("Concat", M, M, axis=-1), case("Concat", (2, 3), random(2, 1), axis=1),
    case("Split", (2, 6), outputs=3, axis=1, num_outputs=3), case("Split", (2, 7), i(3, 4), outputs=2, axis=1),
    case("Split", (2, 7), outputs=2, axis=1, num_outputs=2), case("Split", (2, 6), outputs=3, axis=1, opset=13),
    case("Slice", M, i(1), i(3), i(1)), case("Slice", M, i(0, 1), i(2, 9223372036854775807), i(1, -1)),
    case("Slice", M, i(-1), i(-9223372036854775807), i(2), i(-1)),
    case("Slice", M, i(0, 0), i(2, -1), i(0, 2), i(1, 2)),
    case("Slice", M, i(-3, 0, 3), i(-1, 9, 0), i(1, 0, 2), i(1, 1, -2)), case("Slice", M, i(0), i(9)),
    case("Gather", M, np.array(1), axis=1), case("Gather", M, np.array(-1), axis=2),
    case("Gather", M, i(0, -1), axis=1),
    case("Gather", random(5, 3), [np.array([[0, 4], [-1, 2]])]), case("Gather", M, np.array([[0, 1], [1, 0]]), axis=0),
    case("GatherElements", (2, 3), [np.array([[0, -1], [1, 1]])], axis=1),
    case("GatherElements", (2, 3), np.array([[0, -1, 1]]), axis=0),
    case("GatherND", M, [np.array([[0, 1], [-1, 2]])]), case("GatherND", M, np.array([[[0, -1]], [[1, 2]]])),
    case("GatherND", M, [np.array([[0], [-1]])], batch_dims=1),
    case("GatherND", M, np.array([[[0]], [[2]]]), batch_dims=1),
    case("GatherND", M, [np.array([[[0], [1], [-1]], [[2], [3], [0]]])], batch_dims=2),
    case("ScatterND", M, np.array([[1], [0]]), (2, 3, 4)), case("ScatterND", (4,), [np.array([[-1], [1]])], (2,)),
    case("ScatterElements", (2, 3), np.array([[0, -1]]), (1, 2), axis=1),
    case("ScatterElements", (3, 3), [np.array([[1, 0, 2]])], (1, 3), axis=0),
    case("Expand", (3, 1), i(2, 1, 4)), case("Expand", (2, 3), i(1)), case("Tile", (2, 3), i(2, 1)),
    case("Pad", PICTURE, i(0, 0, 1, 2, 0, 0, 0, 1), np.array(1.5, np.float32)), case("Pad", (2, 3), i(1, 0, 0, 2)),
    case("Pad", PICTURE, i(0, 0, 1, 1, 0, 0, 1, 1), mode="reflect"), case("Pad", M, i(0, 1, 1, 0, 2, 0), mode="edge"),
    case("Pad", M, i(0, 1, -1, 1, 0, 0)), case("Pad", M, i(1, 2), np.array(0, np.float32), i(1)),
    case("Pad", [i(1, 2, 3)], i(1, 1), np.array(7)),
    case("DepthToSpace", (2, 8, 2, 3), blocksize=2), case("DepthToSpace", (2, 8, 2, 3), blocksize=2, mode="CRD"),
    case("SpaceToDepth", (2, 2, 4, 6), blocksize=2), case("OneHot", [i(0, 2, -1, 5)], np.array(3), f(0.5, 2)),
    case("OneHot", [np.array([[0, 1], [2, 2]])], np.array(3), f(0, 1), axis=1), case("Trilu", M),
    case("Trilu", M, np.array(1), upper=0), case("EyeLike", (3, 4), k=1),
    case("ReverseSequence", (4, 3, 2), i(1, 2, 4), time_axis=0, batch_axis=1),
    case("ReverseSequence", (3, 4, 2), i(1, 2, 4), time_axis=1, batch_axis=0),
    # reductions
    *(case(name, M, i(1), keepdims=0) for name in REDUCTIONS), *(case(name, M, i(0, -1)) for name in REDUCTIONS),
    case("ReduceLogSum", M, i(1), low=0.1), case("ReduceMean", M, opset=13, axes=[1]), case("ReduceSum", M, keepdims=1),
    case("ReduceSum", M, keepdims=0), case("ReduceSum", M, noop_with_empty_axes=1), case("ReduceLogSumExp", M),
    case("ArgMax", M, axis=1), case("ArgMax", M, axis=-1, keepdims=0), case("ArgMin", M),
    case("TopK", M, i(2), outputs=2), case("TopK", M, i(2), outputs=2, axis=1, largest=0),
    case("CumSum", M, np.array(1)), case("CumSum", M, np.array(-1), exclusive=1),
    case("CumSum", M, np.array(0), reverse=1),
    case("Hardmax", M), case("Hardmax", M, axis=1),
    # recurrent layers
    recurrent("LSTM", 1, outputs=3), recurrent("LSTM", 2, random(2, 32), outputs=3, direction="bidirectional"),
    recurrent("LSTM", 1, random(1, 32), None, (1, 2, 4), (1, 2, 4), outputs=3),
    recurrent("LSTM", 1, outputs=3, direction="reverse"),
    recurrent("GRU", 1, random(1, 24), outputs=2, linear_before_reset=1),
    recurrent("GRU", 2, random(2, 24), outputs=2, linear_before_reset=1, direction="bidirectional"),
    recurrent("RNN", 1, random(1, 8), outputs=2), recurrent("RNN", 1, outputs=2, activations=["Relu"]),
    recurrent("RNN", 1, random(1, 8), np.array([3, 5], np.int32), outputs=2),
    # what is computed of constants and shapes alone
    case("Constant", value_float=2.0), case("ConstantOfShape", i(2, 3)), case("Shape", M), case("Size", M),
    case("Range", np.array(1), np.array(7), np.array(2)),
]
