"""Golden cases of normalisations by a sample's own statistics, of losses besides softmax, of argmax and the like."""
from __future__ import annotations

from collections.abc import Mapping

from golden.cases import Case, case
from golden.shape_cases import Known, Row, row

FLOATS = ("float16", "float64")


def cases() -> list[Case]:
    return _normalisations() + _batch() + _losses() + _places() + _pooling() + _creation()


def _normalisations() -> list[Case]:
    made = []

    def norm(op: str, label: str, data: tuple[int, ...], length: int, attrs: Mapping[str, object] | None = None,
             dtype: str = "float32", train: bool = True, span: tuple[float, float] = (-2, 2)) -> None:
        made.append(case(op, label, {"data": data, "gamma": (length,), "beta": (length,)}, attrs, dtype, train=train,
                         span=span))

    norm("LayerNorm", "train", (3, 5), 5)
    norm("LayerNorm", "axis", (2, 3, 4), 3, {"axis": 1})
    norm("LayerNorm", "first", (3, 4), 3, {"axis": 0, "eps": 0.1}, train=False)
    norm("LayerNorm", "three", (2, 3, 4), 4, {"output_mean_var": True})
    norm("LayerNorm", "negative", (2, 3, 4), 3, {"axis": -2, "output_mean_var": True}, train=False)
    norm("LayerNorm", "vector", (5,), 5, train=False)
    norm("LayerNorm", "one", (3, 1), 1, train=False)
    norm("LayerNorm", "bad_axis", (3, 5), 5, {"axis": 2})
    norm("LayerNorm", "bad_gamma", (3, 5), 4)
    norm("LayerNorm", "int", (3, 5), 5, dtype="int32")
    norm("LayerNorm", "unknown", (3, 5), 5, {"epsilon": 1})
    norm("InstanceNorm", "train", (2, 3, 4), 3)
    norm("InstanceNorm", "image", (2, 3, 2, 3), 3, {"eps": 0.1}, train=False)
    norm("InstanceNorm", "volume", (2, 2, 2, 1, 3), 2, train=False)
    norm("InstanceNorm", "flat", (2, 3), 3)
    norm("InstanceNorm", "bad_gamma", (2, 3, 4), 4)
    norm("GroupNorm", "train", (2, 4, 3), 2, {"num_groups": 2})
    norm("GroupNorm", "one", (2, 4, 2, 2), 1, train=False)
    norm("GroupNorm", "all", (2, 4, 3), 4, {"num_groups": 4, "eps": 0.1}, train=False)
    norm("GroupNorm", "three", (2, 4, 3), 2, {"num_groups": 2, "output_mean_var": True})
    norm("GroupNorm", "uneven", (2, 4, 3), 3, {"num_groups": 3})
    norm("GroupNorm", "none", (2, 4, 3), 1, {"num_groups": 0})
    norm("GroupNorm", "flat", (2, 4), 2, {"num_groups": 2})
    norm("GroupNorm", "bad_gamma", (2, 4, 3), 4, {"num_groups": 2})
    for dtype in FLOATS:
        norm("LayerNorm", "train", (3, 8), 8, dtype=dtype)
        norm("LayerNorm", "far", (3, 8), 8, {"output_mean_var": True}, dtype, train=False, span=(100, 140))
        norm("GroupNorm", "train", (2, 4, 3), 2, {"num_groups": 2}, dtype)
    for mode, data in (("instance", (2, 3)), ("channel", (2, 3, 4)), ("spatial", (2, 3, 2, 2))):
        made.append(case("L2Normalization", mode, {"data": data}, {"mode": mode}))
    made += [case("L2Normalization", "vector", {"data": (4,)}, train=False),
             case("L2Normalization", "eps", {"data": (2, 3, 4)}, {"eps": 2}, train=False),
             case("L2Normalization", "flat", {"data": (2, 3)}, {"mode": "channel"}),
             case("L2Normalization", "other", {"data": (2, 3)}, {"mode": "batch"}),
             case("L2Normalization", "zero", {"data": (2, 3)}, span=(0, 1), integer=["data"]),
             *(case("L2Normalization", "train", {"data": (2, 5)}, dtype=dtype) for dtype in FLOATS)]
    for label, attrs in (("train", {"nsize": 3, "alpha": 0.5}), ("wide", {"nsize": 9, "alpha": 2, "beta": 0.5})):
        made.append(case("LRN", label, {"data": (2, 5, 2, 3)}, attrs))
    made += [case("LRN", "one", {"data": (2, 3, 2, 1)}, {"nsize": 1, "knorm": 1}, train=False),
             case("LRN", "even", {"data": (2, 5, 2, 1)}, {"nsize": 4, "alpha": 0.5}),
             case("LRN", "beyond", {"data": (2, 3, 4)}, {"nsize": 9, "alpha": 0.5}),
             case("LRN", "flat", {"data": (2, 3, 4)}, {"nsize": 3}),
             case("LRN", "matrix", {"data": (2, 5)}, {"nsize": 3, "alpha": 0.5}),
             case("LRN", "missing", {"data": (2, 3, 4, 5)})]
    return made


def _batch() -> list[Case]:
    made = []

    def norm(op: str, label: str, attrs: Mapping[str, object], train: bool = True,
             data: tuple[int, ...] = (2, 3, 2, 2)) -> None:
        shapes = {"data": data, "gamma": (3,), "beta": (3,), "moving_mean": (3,), "moving_var": (3,)}
        made.append(case(op, label, shapes, attrs, train=train, span=(0.5, 1.5), spans={"data": (-2, 2)}))

    for op, more in (("_contrib_BatchNormWithReLU", {}), ("_contrib_SyncBatchNorm", {"key": "op"})):
        norm(op, "train", {"fix_gamma": False, **more})
        norm(op, "fixed", {"output_mean_var": True, **more})
        norm(op, "infer", {"fix_gamma": False, **more}, train=False)
        norm(op, "global", {"use_global_stats": True, "momentum": 0.5, **more})
    norm("_contrib_SyncBatchNorm", "flat", {"key": "op", "fix_gamma": False}, data=(4, 3))
    norm("_contrib_SyncBatchNorm", "keyless", {})
    return made


def _losses() -> list[Case]:
    made = []
    for linear in (True, False):
        attrs = {"use_linear": linear, "margin": 0.5, "regularization_coefficient": 2}
        made += [case("SVMOutput", f"linear_{linear}", {"data": (4, 3), "label": (4,)}, attrs,
                      spans={"label": (0, 3)}, integer=["label"]),
                 case("SVMOutput", f"outside_{linear}", {"data": (3, 3), "label": (3,)}, {"use_linear": linear},
                      spans={"label": (3, 5)}, span=(-2, 2))]
    made += [case("SVMOutput", "axes", {"data": (2, 3, 4), "label": (2, 3)}, spans={"label": (0, 4)}),
             case("SVMOutput", "half", {"data": (4, 3), "label": (4,)}, spans={"label": (0, 3)}, integer=["label"],
                  dtype="float16"),
             case("SVMOutput", "bad_label", {"data": (4, 3), "label": (5,)}),
             case("softmax_cross_entropy", "train", {"data": (4, 5), "label": (4,)}, spans={"label": (0, 5)},
                  no_grad=["label"], span=(-3, 3)),
             case("softmax_cross_entropy", "fraction", {"data": (4, 3), "label": (4,)}, spans={"label": (0, 3)},
                  no_grad=["label"], train=False),
             case("softmax_cross_entropy", "bound", {"data": (6, 3), "label": (6,)}, spans={"label": (0, 3)},
                  integer=["label"], no_grad=["label"], span=(-60, 60)),
             case("softmax_cross_entropy", "one", {"data": (1, 2), "label": (1,)}, spans={"label": (0, 2)},
                  no_grad=["label"], train=False),
             case("softmax_cross_entropy", "axes", {"data": (2, 3, 4), "label": (2, 3)}, no_grad=["label"]),
             case("softmax_cross_entropy", "bad_label", {"data": (4, 3), "label": (3,)}, no_grad=["label"]),
             case("softmax_cross_entropy", "int", {"data": (4, 3), "label": (4,)}, dtype="int32", no_grad=["label"],
                  train=False)]
    made += [case("softmax_cross_entropy", "train", {"data": (4, 5), "label": (4,)}, spans={"label": (0, 5)},
                  no_grad=["label"], dtype=dtype) for dtype in FLOATS]
    return made


def _places() -> list[Case]:
    made = []
    for label, attrs in (("train", {"axes": (0, 2)}), ("keep", {"axes": (-1,), "keepdims": True}),
                         ("all", {"axes": (0, 1, 2)})):
        made.append(case("moments", label, {"data": (2, 3, 4)}, attrs))
    made += [case("moments", "int", {"data": (3, 5)}, {"axes": (1,)}, dtype="int32", span=(-9, 9), integer=["data"],
                  train=False),
             case("moments", "none", {"data": (2, 3)}), case("moments", "bad", {"data": (2, 3)}, {"axes": (2,)}),
             *(case("moments", "axis", {"data": (2, 6)}, {"axes": (1,)}, dtype=dtype) for dtype in FLOATS)]
    for op in ("argmax", "argmin"):
        made += [case(op, "middle", {"data": (2, 5, 3)}, {"axis": 1}, train=False),
                 case(op, "everything", {"data": (2, 3, 4)}, {"keepdims": True}, train=False),
                 case(op, "moved", {"data": (2, 5, 3)}, {"axis": -2, "keepdims": True}, train=False),
                 case(op, "grad", {"data": (2, 3)}, {"axis": 1}),
                 case(op, "long", {"data": (2, 300)}, {"axis": 1}, dtype="uint8", span=(0, 1), integer=["data"],
                      train=False),
                 case(op, "bad_axis", {"data": (2, 3)}, {"axis": 2}),
                 case(op, "axes", {"data": (2, 3)}, {"axis": (1,)})]
        made += [case(op, "dtype", {"data": (3, 7)}, {"axis": 1}, dtype=dtype, span=(0, 9), integer=["data"],
                      train=False) for dtype in ("float16", "float64", "int64", "int8", "bool")]
    made += [case("argmax_channel", "axes", {"data": (2, 4, 3)}, train=False),
             case("argmax_channel", "int", {"data": (2, 4)}, dtype="int32", span=(0, 3), integer=["data"], train=False),
             case("argmax_channel", "vector", {"data": (4,)})]
    return made


def _pooling() -> list[Case]:
    made = []
    for kind in ("max", "avg", "sum"):
        made += [case("Pooling_v1", f"{kind}_plain", {"data": (1, 2, 4, 5)}, {"kernel": (2, 2), "pool_type": kind}),
                 case("Pooling_v1", f"{kind}_full", {"data": (1, 1, 6, 5)},
                      {"kernel": (3, 2), "stride": (2, 2), "pad": (1, 0), "pooling_convention": "full",
                       "pool_type": kind}),
                 case("Pooling_v1", f"{kind}_global", {"data": (2, 2, 3, 2)}, {"global_pool": True, "kernel": (1, 1),
                                                                             "pool_type": kind})]
    made += [case("Pooling_v1", "zeros", {"data": (1, 1, 4, 4)}, {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)},
                  span=(-3, -1)),
             case("Pooling_v1", "vector", {"data": (1, 2, 4)}, {"kernel": (2,)}),
             case("Pooling_v1", "large", {"data": (1, 2, 4, 4)}, {"kernel": (5, 5)}),
             case("Pooling_v1", "lp", {"data": (1, 2, 4, 4)}, {"kernel": (2, 2), "pool_type": "lp"})]
    return made


def _creation() -> list[Case]:
    made = []
    for label, attrs in (("below", {"N": 4, "M": 2, "k": -1}), ("beyond", {"N": 2, "k": 5}),
                         ("minus", {"N": 2, "M": -1}), ("int8", {"N": 3, "dtype": "int8"}),
                         ("bool", {"N": 3, "dtype": "bool"}), ("none", {"N": -1}),
                         ("missing", {})):
        made.append(case("_eye", label, {}, attrs, train=False))
    for label, attrs in (("plain", {"num": 5}), ("open", {"num": 5, "endpoint": False}), ("single", {"num": 1}),
                         ("int", {"num": 4, "dtype": "int32"}), ("uint8", {"num": 4, "stop": -7, "dtype": "uint8"}),
                         ("half", {"num": 7, "dtype": "float16"}), ("double", {"num": 50, "dtype": "float64"}),
                         ("down", {"num": 3, "start": 5}), ("negative", {"num": -1}), ("missing", {})):
        made.append(case("_linspace", label, {}, {"start": 0, "stop": 1, **attrs}, train=False))
    return made


def rows() -> list[Row]:
    made = []

    def norm(op: str, data: Known, gamma: Known = None, beta: Known = None, out: Known = None, **attrs: object) -> None:
        made.append(row(op, {"data": data, "gamma": gamma, "beta": beta}, attrs, out))

    for axis in (-1, 1, 0):
        norm("LayerNorm", (2, 3, 4), axis=axis, output_mean_var=True)
    norm("LayerNorm", (2, 0), (4,))
    norm("LayerNorm", (2, 0, 3), axis=2, output_mean_var=True)
    norm("LayerNorm", None, (4,))
    norm("LayerNorm", None, out=(2, 3))
    norm("LayerNorm", (2, 0), out=(2, 3))
    norm("LayerNorm", (2, 3), (4,))
    norm("LayerNorm", (2, 3), axis=2)
    norm("InstanceNorm", (2, 3, 4))
    norm("InstanceNorm", (2, 0, 4, 5), (3,))
    norm("GroupNorm", (2, 4, 5, 6), num_groups=2, output_mean_var=True)
    norm("GroupNorm", (0, 4, 5), num_groups=2, output_mean_var=True)
    norm("GroupNorm", None, num_groups=2, out=(2, 4, 3))
    norm("GroupNorm", (2, 4, 5), num_groups=3)
    norm("GroupNorm", (2, 4), num_groups=2)
    for mode in ("instance", "channel", "spatial"):
        made += [row("L2Normalization", {"data": data}, {"mode": mode}) for data in ((2, 3, 4), (2, 3), (0, 3, 4))]
    made += [row("LRN", {"data": (2, 3, 4, 5)}, {"nsize": 3}),
             row("LRN", {"data": (0, 3, 4, 5)}, {"nsize": 3}, (2, 3, 4, 5))]
    for data, label in (((4, 3), None), ((2, 3, 4), None), ((0, 3), (4,)), ((4, 3), (5,)), (None, (4,))):
        made.append(row("SVMOutput", {"data": data, "label": label}))
    made += [row("softmax_cross_entropy", {"data": (4, 3), "label": (4,)}),
             row("softmax_cross_entropy", {"data": (4, 3), "label": (5,)}),
             row("softmax_cross_entropy", {"data": (4, 3, 2), "label": (4,)})]
    for attrs in ({"axes": (0, 2)}, {"axes": (-1,), "keepdims": True}, {"axes": (0, 1, 2)}, {}, {"axes": (3,)}):
        made.append(row("moments", {"data": (2, 3, 4)}, attrs))
    for op in ("argmax", "argmin"):
        for attrs in ({}, {"axis": 1}, {"axis": -1, "keepdims": True}, {"keepdims": True}, {"axis": 3}):
            made.append(row(op, {"data": (2, 3, 4)}, attrs))
    made += [row("argmax", {"data": (0, 3)}, {"axis": 1}, (2,)), row("argmax", {"data": None}, {"axis": 1}),
             row("argmax_channel", {"data": (2, 3, 4)}), row("argmax_channel", {"data": (2, 3)})]
    for attrs in ({"kernel": (3, 3)}, {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)},
                  {"kernel": (3, 3), "stride": (2, 2), "pooling_convention": "full"}, {"global_pool": True}):
        made += [row("Pooling_v1", {"data": data}, attrs) for data in ((2, 3, 8, 9), (2, 3, 2, 1), (2, 3, 8))]
    made += [row("_eye", {}, {"N": 2, "M": 3}), row("_eye", {}, {"N": 2}), row("_eye", {}, {"N": 2, "M": -1}),
             row("_linspace", {}, {"start": 0, "stop": 1, "num": 4}),
             row("_contrib_SyncBatchNorm", {"data": (2, 3, 4), "gamma": None, "beta": None}, {"key": "op"}),
             row("_contrib_BatchNormWithReLU", {"data": (2, 3, 4, 5), "gamma": None, "beta": None})]
    return made
