"""The table of shape-inference questions: an operator, what is known of its inputs, and of its first output.

In a shape None is an unknown rank and 0 an unknown dimension. `make_golden.py` asks the real MXNet's
infer_shape_partial; `shapes/<module>.json` has the answers: every row with `found` (inputs, outputs, auxiliary
states) or `error`. Other modules of this folder may have a function `rows` too.
"""
from __future__ import annotations

from collections.abc import Mapping

Row = dict[str, object]
Known = tuple[int, ...] | None


def row(op: str, inputs: Mapping[str, Known], attrs: Mapping[str, object] | None = None, out: Known = None,
        list_input: bool = False) -> Row:
    """One question. `out`: what a neighbour knows of the first output."""
    return {"op": op, "inputs": {k: None if v is None else list(v) for k, v in inputs.items()},
            "attrs": {k: str(v) for k, v in (attrs or {}).items()}, "out": None if out is None else list(out),
            "list_input": list_input}


def rows() -> list[Row]:
    return _matrices() + _layers() + _moving() + _simple()


# long: a table of cases
def _matrices() -> list[Row]:
    made = []

    def conv(data: Known, weight: Known = None, bias: Known = None, out: Known = None, op: str = "Convolution",
             kernel: tuple[int, ...] = (3, 3), **attrs: object) -> None:
        given = {"kernel": kernel, "num_filter": 8, "no_bias": False, **attrs}
        made.append(row(op, {"data": data, "weight": weight, "bias": bias}, given, out))

    conv((2, 3, 10, 12))
    conv((2, 3, 10, 12), stride=(2, 2), pad=(1, 1))
    conv((0, 3, 10, 12))
    conv((2, 0, 10, 12))
    conv((2, 0, 10, 12), (8, 3, 3, 3))
    conv((2, 0, 10, 12), (8, 2, 3, 3), num_group=2)
    conv((2, 3, 0, 0))
    conv((0, 0, 0, 0))
    conv(None, (8, 3, 3, 3))
    conv(None, None, None, (2, 8, 5, 5))
    conv((0, 3, 0, 0), out=(2, 8, 5, 5))
    conv((0, 3, 0, 12), out=(2, 8, 5, 0))
    conv((0, 3, 0, 0), out=(2, 8, 5, 5), stride=(2, 1))
    conv((2, 3, 10, 12), (0, 0, 0, 0))
    conv((2, 3, 10, 12), (8, 4, 3, 3))
    conv((2, 3, 10, 12), out=(2, 9, 8, 10))
    conv((2, 3, 10, 12), bias=(9,))
    conv((2, 3, 20), kernel=(5,), stride=(2,))
    conv((2, 3, 0), kernel=(5,), out=(0, 8, 7))
    conv((1, 4, 6, 7, 8), kernel=(3, 2, 1), num_group=4)
    conv((2, 3, 10, 12), dilate=(2, 3))
    for adj in ((0, 0), (1, 1)):
        conv((2, 3, 5, 6), op="Deconvolution", stride=(2, 2), adj=adj)
    conv((2, 3, 5, 6), op="Deconvolution", stride=(2, 2), target_shape=(10, 12))
    conv((2, 3, 16, 16), op="Deconvolution", stride=(2, 2), pad=(1, 1), adj=(1, 1))
    conv((2, 3, 12, 12), op="Deconvolution", kernel=(2, 2), stride=(2, 2), target_shape=(25, 25))
    conv((0, 3, 0, 6), op="Deconvolution", stride=(2, 2))
    conv((0, 4, 0, 0), op="Deconvolution", out=(2, 8, 7, 7), num_group=2)
    conv((2, 0, 5, 6), (4, 8, 3, 3), op="Deconvolution")
    conv(None, (4, 8, 3, 3), op="Deconvolution")

    def full(data: Known, weight: Known = None, bias: Known = None, out: Known = None, **attrs: object) -> None:
        made.append(row("FullyConnected", {"data": data, "weight": weight, "bias": bias}, {"num_hidden": 10, **attrs},
                        out))

    full((4, 3, 5))
    full((0, 3, 5))
    full((0, 3, 5), out=(4, 10))
    full((4, 0))
    full((4, 0), (10, 7))
    full((4, 0, 2), (10, 8))
    full((0, 0), out=(4, 0))
    full(None, (10, 7))
    full(None, None, None, (4, 10))
    full((4, 3, 5), (10, 14))
    full((4, 3, 5), bias=(9,))
    full((4, 3, 5), flatten=False)
    full((0, 3, 0), flatten=False, out=(4, 3, 10))
    full((0, 0, 5), flatten=False, out=(4, 3, 10))
    full((4, 3, 0), (10, 7), flatten=False)
    full((7,), flatten=False)
    full((4, 5), out=(4, 11))
    return made


# long: a table of cases
def _layers() -> list[Row]:
    made = []

    def norm(data: Known, gamma: Known = None, beta: Known = None, out: Known = None, **attrs: object) -> None:
        made.append(row("BatchNorm", {"data": data, "gamma": gamma, "beta": beta}, attrs, out))

    norm((2, 3, 4, 5))
    norm((2, 3, 4, 5), axis=-1)
    norm((0, 3, 0, 0), out=(2, 3, 4, 5))
    norm((2, 0, 4, 5), (3,))
    norm((2, 3, 4, 5), (4,))
    norm(None, (3,))
    norm(None, out=(2, 3, 4, 5))
    norm((2, 3, 4), output_mean_var=True)
    norm((2, 3), axis=2)
    for attrs in ({"kernel": (3, 3)}, {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)},
                  {"kernel": (3, 3), "stride": (2, 2), "pooling_convention": "full"}, {"global_pool": True}):
        for data in ((2, 3, 8, 9), (0, 3, 8, 0), (2, 3, 2, 1)):
            made.append(row("Pooling", {"data": data}, {"pool_type": "avg", **attrs}))
    made += [row("Pooling", {"data": None}, {"kernel": (2, 2)}, (2, 3, 4, 4)),
             row("Pooling", {"data": (0, 3, 8, 8)}, {"kernel": (2, 2)}, (2, 3, 7, 7)),
             row("Pooling", {"data": (2, 3, 9)}, {"kernel": (2,), "stride": (2,)}),
             row("Pooling", {"data": (1, 2, 5, 6, 7)}, {"kernel": (2, 2, 2), "stride": (2, 2, 2)}),
             row("Pooling", {"data": (2, 8, 9, 3)}, {"kernel": (3, 3), "layout": "NHWC"}),
             row("Pooling", {"data": (2, 8, 9, 3)}, {"global_pool": True, "layout": "NHWC"})]

    def prelu(data: Known, gamma: Known = None, out: Known = None) -> None:
        made.append(row("LeakyReLU", {"data": data, "gamma": gamma}, {"act_type": "prelu"}, out))

    prelu((2, 3, 4))
    prelu((2, 3, 4), (1,))
    prelu((2, 3))
    prelu((0, 3, 4), out=(2, 3, 4))
    prelu(None, (3,))
    made += [row("LeakyReLU", {"data": (2, 0)}, {"act_type": "leaky"}, (0, 3)),
             row("Activation", {"data": (2, 0)}, {"act_type": "relu"}, (0, 3)),
             row("Dropout", {"data": (2, 3)}), row("Dropout", {"data": None}, {}, (2, 3))]
    for op in ("softmax", "log_softmax"):
        made += [row(op, {"data": (2, 3)}), row(op, {"data": None}, {"axis": 0}, (2, 0)),
                 row(op, {"data": (0, 3)}, {}, (2, 0))]
    made.append(row("SoftmaxActivation", {"data": (2, 3)}))

    def labelled(op: str, data: Known, label: Known = None, out: Known = None, **attrs: object) -> None:
        made.append(row(op, {"data": data, "label": label}, attrs, out))

    labelled("SoftmaxOutput", (4, 10))
    labelled("SoftmaxOutput", (4, 10), (4, 10))
    labelled("SoftmaxOutput", (4, 10), (5,))
    labelled("SoftmaxOutput", (0, 10))
    labelled("SoftmaxOutput", (0, 10), (4,))
    labelled("SoftmaxOutput", None, (4,))
    labelled("SoftmaxOutput", None, out=(4, 10))
    labelled("SoftmaxOutput", (4, 3, 5, 6), multi_output=True)
    labelled("SoftmaxOutput", (4, 3, 5, 6), (4, 5, 6), multi_output=True)
    labelled("SoftmaxOutput", (4, 3, 5, 6), (4, 1, 5, 6), multi_output=True)
    labelled("SoftmaxOutput", (4, 3, 5, 6), (4, 31), multi_output=True)
    labelled("SoftmaxOutput", (4, 3, 5), preserve_shape=True)
    labelled("SoftmaxOutput", (4, 3, 5))
    labelled("SoftmaxOutput", (4, 3, 5), out=(4, 3, 5), preserve_shape=True)
    for op in ("LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput"):
        labelled(op, (4, 3))
        labelled(op, (4, 1))
        labelled(op, (4, 1), (4,))
        labelled(op, (4, 3), (4,))
        labelled(op, None, (4, 3))
    return made


def _moving() -> list[Row]:
    made = []

    def reshape(data: Known, out: Known = None, **attrs: object) -> None:
        made.append(row("Reshape", {"data": data}, attrs, out))

    for data in ((2, 3, 4), (0, 3, 4), (2, 0, 4)):
        for shape in ((0, -1), (-1, 4), (-2,), (-3, 4), (0, -3), (-4, 1, 2, -2), (0, 0, -4, -1, 2), (6, 4), (0, 12)):
            reshape(data, shape=shape)
    reshape((0, 3, 4), (6, 4), shape=(-1, 4))
    reshape((0, 3, 4), (2, 12), shape=(0, -1))
    reshape((2, 0), shape=(2, 6))
    reshape(None, (2, 12), shape=(0, -1))
    reshape((2, 3, 4), target_shape=(2, 0))
    reshape((2, 3, 4), shape=(-1, 0), reverse=True)
    reshape((0, 3, 4), shape=(-1, 0), reverse=True)
    for data in ((2, 3, 4), (0, 3, 4), (2, 3), None):
        made.append(row("Flatten", {"data": data}))
    made += [row("Flatten", {"data": (0, 3, 4)}, {}, (2, 12)),
             row("transpose", {"data": (2, 3, 4)}, {"axes": (1, 2, 0)}), row("transpose", {"data": (2, 0, 4)}),
             row("transpose", {"data": (2, 0, 4)}, {}, (4, 3, 0)),
             row("transpose", {"data": None}, {"axes": (1, 0)}, (2, 3)),
             row("transpose", {"data": (2, 3)}, {"axes": (0, 2)}),
             row("expand_dims", {"data": (2, 3)}, {"axis": 1}),
             row("expand_dims", {"data": (2, 0)}, {"axis": -1}, (2, 3, 1)),
             row("expand_dims", {"data": None}, {"axis": 0}, (1, 2, 3)),
             row("slice_axis", {"data": (2, 5)}, {"axis": 1, "begin": 1, "end": "None"}),
             row("slice_axis", {"data": (0, 5)}, {"axis": -1, "begin": -3, "end": -1})]

    def concat(*shapes: Known, out: Known = None, **attrs: object) -> None:
        inputs = {f"x{i}": s for i, s in enumerate(shapes)}
        made.append(row("Concat", inputs, {"num_args": len(shapes), **attrs}, out, True))

    concat((2, 3, 4), (2, 5, 4))
    concat((2, 3, 4), (0, 5, 0))
    concat((2, 3, 4), None)
    concat((2, 3, 4), (2, 0, 4), out=(2, 8, 4))
    concat((2, 0, 4), (2, 0, 4), out=(2, 8, 4))
    concat((2, 3, 4), None, out=(2, 8, 4))
    concat((0, 3, 4), (0, 5, 4), out=(2, 8, 4))
    concat(None, None, out=(2, 8, 4))
    concat((2, 3), (3, 3))
    concat((2, 3), (2, 4), out=(2, 8))
    concat((2, 3), (4, 3), dim=0)
    concat((2, 3), (2, 4), dim=-1)

    def split(data: Known, out: Known = None, **attrs: object) -> None:
        made.append(row("SliceChannel", {"data": data}, {"num_outputs": 2, **attrs}, out))

    split((4, 6, 3))
    split((0, 6, 3))
    split((4, 0, 3))
    split((0, 6, 3), (4, 3, 3))
    split((4, 2, 3), squeeze_axis=True)
    split((4, 5, 3))
    split(None, (4, 3, 3))
    return made


def _simple() -> list[Row]:
    made = []
    pairs = [((2, 3), (2, 3)), ((2, 0), (0, 3)), ((2, 3), None), (None, None), ((2, 3), (2, 4)), ((2, 3), (2, 3, 1))]
    for lhs, rhs in pairs:
        made.append(row("elemwise_add", {"lhs": lhs, "rhs": rhs}))
    made.append(row("elemwise_mul", {"lhs": None, "rhs": None}, {}, (2, 3)))
    for lhs, rhs, out in [((2, 3), (1, 3), None), ((2, 0), (1, 3), None), ((2, 3), None, None), ((2, 3), (3,), None),
                          ((2, 3), (2, 4), None), ((2, 1), (0, 3), (2, 3)), ((0, 3), (0, 3), (2, 3)),
                          ((2, 3), None, (2, 3))]:
        made.append(row("broadcast_add", {"lhs": lhs, "rhs": rhs}, {}, out))
    for attrs in ({}, {"axis": 1}, {"axis": (0, 2), "keepdims": True}, {"axis": 1, "exclude": True}):
        for data in ((2, 3, 4), (0, 3, 4), None):
            made.append(row("sum", {"data": data}, attrs))
    made.append(row("sum", {"data": (0, 3, 4)}, {"axis": 1}, (2, 4)))
    for lhs, rhs in [((2, 3), (3, 4)), ((0, 3), (3, 4)), ((2, 0), (3, 4)), ((2, 3), None), ((2, 3), (4, 5)),
                     ((3,), (3,))]:
        made.append(row("dot", {"lhs": lhs, "rhs": rhs}))
    made += [row("dot", {"lhs": (3, 2), "rhs": (4, 3)}, {"transpose_a": True, "transpose_b": True}),
             row("dot", {"lhs": (3,), "rhs": (3,)}, {"transpose_b": True}),
             row("dot", {"lhs": (3,), "rhs": (3, 2)}, {"transpose_a": True}),
             row("_plus_scalar", {"data": (2, 0)}, {"scalar": 1}, (0, 3)), row("exp", {"data": None}, {}, (2, 3)),
             row("where", {"condition": None, "x": (2, 3), "y": None}),
             row("where", {"condition": (2,), "x": (0, 3), "y": None}),
             row("add_n", {"x0": (2, 0), "x1": (0, 3), "x2": None}, {"num_args": 3}, None, True),
             row("Cast", {"data": (2, 0)}, {"dtype": "int32"}), row("zeros_like", {"data": (2, 3)}),
             row("clip", {"data": (2, 3)}, {"a_min": 0, "a_max": 1})]
    return made
