"""Golden cases of neural-network layers."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from golden.cases import Case, case


def cases() -> list[Case]:
    return (_convolution() + _deconvolution() + _pooling() + _batch_norm() + _activations() + _fully_connected()
            + _softmax() + _softmax_output() + _regression() + _dropout() + _wrong_dtypes())


def _conv(label: str, data: tuple[int, ...], kernel: tuple[int, ...], filters: int = 4, op: str = "Convolution",
          dtype: str = "float32", train: bool = True, weight: tuple[int, ...] | None = None, **attrs: object) -> Case:
    """A convolution whose weight has the shape that the parameters ask for (or `weight`), a bias unless no_bias."""
    group = int(str(attrs.get("num_group", 1)))
    if weight is None:
        weight = (filters, data[1] // group, *kernel) if op != "Deconvolution" else (data[1], filters // group, *kernel)
    shapes: dict[str, tuple[int, ...]] = {"data": data, "weight": weight}
    if not attrs.get("no_bias", op == "Deconvolution"):
        shapes["bias"] = (filters,)
    return case(op, label, shapes, {"kernel": kernel, "num_filter": filters, **attrs}, dtype=dtype, train=train)


def _convolution() -> list[Case]:
    return [
        _conv("plain", (2, 3, 5, 6), (3, 3)),
        _conv("no_bias", (1, 3, 5, 5), (3, 3), no_bias=True),
        _conv("pad", (1, 2, 4, 5), (3, 3), pad=(1, 1)),
        _conv("pad_uneven", (1, 2, 4, 5), (3, 2), pad=(1, 0)),
        _conv("stride", (1, 2, 7, 8), (3, 3), stride=(2, 2), pad=(1, 1)),
        _conv("stride_uneven", (1, 2, 7, 8), (3, 3), stride=(2, 3)),
        _conv("dilate", (1, 2, 7, 7), (3, 3), dilate=(2, 2), pad=(2, 2)),
        _conv("dilate_stride", (1, 2, 8, 8), (3, 2), dilate=(2, 3), stride=(2, 1)),
        _conv("pointwise", (2, 5, 3, 3), (1, 1)),
        _conv("pointwise_stride", (1, 3, 5, 5), (1, 1), stride=(2, 2), no_bias=True),
        _conv("groups", (1, 4, 5, 5), (3, 3), num_group=2),
        _conv("depthwise", (1, 4, 5, 5), (3, 3), num_group=4, pad=(1, 1)),
        _conv("depthwise_stride", (2, 4, 6, 6), (3, 3), num_group=4, pad=(1, 1), stride=(2, 2), no_bias=True),
        _conv("depthwise_multiplier", (1, 2, 5, 5), (3, 3), num_group=2),
        _conv("large_kernel", (1, 1, 8, 8), (7, 7), filters=2, pad=(3, 3), stride=(2, 2)),
        _conv("channels", (1, 17, 4, 4), (3, 3), filters=9, pad=(1, 1)),
        _conv("1d", (2, 3, 8), (3,), stride=(2,), pad=(1,)),
        _conv("1d_dilate", (1, 2, 9), (3,), dilate=(2,)),
        _conv("1d_groups", (1, 4, 6), (3,), num_group=2),
        _conv("3d", (1, 2, 4, 4, 4), (2, 3, 2), filters=3, pad=(0, 1, 1)),
        _conv("3d_stride", (1, 2, 5, 4, 5), (3, 2, 3), filters=2, stride=(2, 1, 2), dilate=(1, 2, 1)),
        _conv("plain", (1, 2, 4, 4), (3, 3), filters=2, dtype="float64"),
        _conv("stride", (1, 2, 5, 5), (3, 3), filters=2, dtype="float64", stride=(2, 2), pad=(1, 1)),
        _conv("layout", (1, 2, 4, 4), (3, 3), filters=2, layout="NCHW"),
        _conv("nhwc", (1, 4, 4, 2), (3, 3), filters=2, weight=(2, 3, 3, 2), layout="NHWC"),
        _conv("too_large", (1, 2, 2, 4), (3, 3)),
        _conv("bad_group", (1, 3, 4, 4), (3, 3), num_group=2, weight=(4, 1, 3, 3)),
        _conv("bad_weight", (1, 2, 4, 4), (3, 3), weight=(4, 3, 3, 3)),
        _conv("bad_rank", (1, 2, 4), (3, 3)),
        _conv("bad_stride", (1, 2, 4, 4), (3, 3), stride=(0, 1)),
        _conv("short_stride", (1, 2, 5, 5), (3, 3), stride=(2,)),
        _conv("plain", (1, 2, 4, 5), (3, 3), op="Convolution_v1"),
        _conv("full", (1, 4, 6, 6), (3, 3), op="Convolution_v1", stride=(2, 2), pad=(1, 1), num_group=2),
    ]


def _deconvolution() -> list[Case]:
    def one(label: str, data: tuple[int, ...], kernel: tuple[int, ...], **more: object) -> Case:
        return _conv(label, data, kernel, op="Deconvolution", **more)  # type: ignore[arg-type]

    return [
        one("plain", (1, 3, 4, 5), (3, 3)),
        one("bias", (1, 3, 4, 4), (3, 3), no_bias=False),
        one("stride", (2, 2, 3, 4), (4, 4), stride=(2, 2), pad=(1, 1)),
        one("adj", (1, 2, 4, 4), (3, 3), stride=(2, 2), pad=(1, 1), adj=(1, 1)),
        one("target", (1, 2, 4, 4), (3, 3), stride=(2, 2), target_shape=(8, 8)),
        one("target_odd", (1, 2, 4, 4), (4, 4), stride=(2, 2), pad=(5, 5), target_shape=(9, 7)),
        one("target_zero", (1, 2, 4, 4), (4, 4), stride=(2, 2), pad=(1, 1), target_shape=(0, 0)),
        one("target_large", (1, 2, 12, 12), (2, 2), stride=(2, 2), target_shape=(25, 25)),
        one("dilate", (1, 2, 4, 4), (3, 3), dilate=(2, 2)),
        one("groups", (1, 4, 3, 3), (3, 3), num_group=2, stride=(2, 2)),
        one("depthwise", (1, 3, 3, 3), (4, 4), filters=3, num_group=3, stride=(2, 2), pad=(1, 1)),
        one("1d", (1, 3, 5), (3,), stride=(2,), pad=(1,), adj=(1,)),
        one("3d", (1, 2, 2, 3, 2), (2, 2, 2), filters=2, stride=(2, 1, 2)),
        one("plain", (1, 2, 3, 3), (3, 3), dtype="float64", filters=2),
        one("bad_adj", (1, 2, 4, 4), (3, 3), stride=(2, 2), adj=(2, 2)),
        one("bad_weight", (1, 2, 4, 4), (3, 3), weight=(3, 4, 3, 3)),
    ]


def _pool(label: str, data: tuple[int, ...], kernel: tuple[int, ...] | None, dtype: str = "float32", train: bool = True,
          **attrs: object) -> Case:
    given = {"kernel": kernel} if kernel is not None else {}
    return case("Pooling", label, {"data": data}, {**given, **attrs}, dtype=dtype, train=train)


def _pooling() -> list[Case]:
    made = []
    for kind in ("max", "avg", "sum"):
        made += [
            _pool(f"{kind}", (1, 2, 5, 6), (2, 2), pool_type=kind, stride=(2, 2)),
            _pool(f"{kind}_pad", (1, 2, 5, 5), (3, 3), pool_type=kind, stride=(2, 2), pad=(1, 1)),
            _pool(f"{kind}_dense", (1, 1, 5, 5), (3, 3), pool_type=kind, pad=(1, 1)),
            _pool(f"{kind}_full", (1, 2, 6, 6), (3, 3), pool_type=kind, stride=(2, 2), pooling_convention="full"),
            _pool(f"{kind}_full_pad", (1, 2, 6, 7), (3, 3), pool_type=kind, stride=(2, 3), pad=(1, 1),
                  pooling_convention="full"),
            _pool(f"{kind}_full_far", (1, 1, 5, 5), (2, 2), pool_type=kind, stride=(3, 3), pooling_convention="full"),
            _pool(f"{kind}_global", (2, 3, 3, 4), None, pool_type=kind, global_pool=True),
            _pool(f"{kind}_global_kernel", (1, 2, 3, 4), (2, 2), pool_type=kind, global_pool=True, stride=(2, 2),
                  pad=(1, 1)),
            _pool(f"{kind}_1d", (1, 2, 7), (3,), pool_type=kind, stride=(2,), pad=(1,)),
            _pool(f"{kind}_1d_full", (1, 2, 8), (3,), pool_type=kind, stride=(2,), pooling_convention="full"),
            _pool(f"{kind}_1d_global", (1, 2, 8), None, pool_type=kind, global_pool=True),
            _pool(f"{kind}_3d", (1, 2, 4, 4, 4), (2, 2, 3), pool_type=kind, stride=(2, 1, 2)),
            _pool(f"{kind}_3d_pad", (1, 1, 4, 5, 4), (3, 3, 3), pool_type=kind, stride=(2, 2, 2), pad=(1, 1, 1),
                  pooling_convention="full"),
            _pool(f"{kind}", (1, 1, 4, 4), (2, 2), pool_type=kind, dtype="float64"),
            _pool(f"{kind}", (1, 1, 4, 6), (3, 3), pool_type=kind, dtype="float16", stride=(1, 2)),
            _pool(f"{kind}_same_1d", (1, 2, 7), (3,), pool_type=kind, stride=(2,), pooling_convention="same"),
            _pool(f"{kind}_same", (1, 2, 7, 7), (3, 3), pool_type=kind, stride=(2, 2), pooling_convention="same"),
            _pool(f"{kind}_same_pad", (1, 2, 6, 6), (3, 3), pool_type=kind, stride=(2, 2), pad=(1, 1),
                  pooling_convention="same"),
        ]
    made += [
        _pool("avg_exclude", (1, 1, 5, 5), (3, 3), pool_type="avg", stride=(2, 2), pad=(1, 1), count_include_pad=False),
        _pool("avg_exclude_full", (1, 1, 6, 6), (3, 3), pool_type="avg", stride=(2, 2), pad=(1, 1),
              pooling_convention="full", count_include_pad=False),
        _pool("avg_exclude_wide", (1, 1, 5, 5), (5, 5), pool_type="avg", pad=(2, 2), count_include_pad=False),
        _pool("avg_include_wide", (1, 1, 5, 5), (5, 5), pool_type="avg", pad=(2, 2)),
        _pool("avg_include", (1, 1, 5, 5), (3, 3), pool_type="avg", stride=(2, 2), pad=(1, 1), count_include_pad=True),
        _pool("avg_exclude_1d", (1, 1, 6), (3,), pool_type="avg", pad=(1,), count_include_pad=False),
        _pool("avg_exclude_3d", (1, 1, 3, 3, 3), (2, 2, 2), pool_type="avg", pad=(1, 1, 1), count_include_pad=False),
        _pool("lp1", (1, 1, 4, 4), (2, 2), pool_type="lp", p_value=1),
        _pool("lp2", (1, 1, 4, 5), (2, 2), pool_type="lp", p_value=2, stride=(2, 2)),
        _pool("lp2_pad", (1, 1, 4, 5), (3, 3), pool_type="lp", p_value=2, pad=(1, 1)),
        _pool("lp3", (1, 1, 4, 4), (2, 2), pool_type="lp", p_value=3),
        _pool("lp2_global", (1, 2, 3, 3), None, pool_type="lp", p_value=2, global_pool=True),
        _pool("lp4", (1, 1, 4, 4), (2, 2), pool_type="lp", p_value=4),
        _pool("lp3_global", (1, 2, 3, 3), None, pool_type="lp", p_value=3, global_pool=True),
        _pool("lp_missing", (1, 1, 4, 4), (2, 2), pool_type="lp"),
        _pool("max_default", (1, 1, 4, 4), (2, 2)),
        _pool("nhwc", (1, 4, 4, 2), (2, 2), layout="NHWC", stride=(2, 2)),
        _pool("avg_nhwc", (1, 4, 4, 2), (2, 2), layout="NHWC", stride=(2, 2), pool_type="avg"),
        _pool("too_large", (1, 1, 2, 4), (3, 3)),
        _pool("no_kernel", (1, 1, 4, 4), None),
        _pool("bad_rank", (1, 4, 4), (2, 2)),
        _pool("int", (1, 1, 4, 4), (2, 2), dtype="int32", train=False),
        case("Pooling", "max_ties", {"data": (1, 1, 5, 5)}, {"kernel": (3, 3), "stride": (1, 1), "pool_type": "max"},
             span=(0, 3), integer=["data"]),
    ]
    return made


def _batch_norm() -> list[Case]:
    def one(label: str, data: tuple[int, ...], attrs: Mapping[str, object] = {}, channel: int = 1,
            train: bool = True, dtype: str = "float32", op: str = "BatchNorm") -> Case:
        c = data[channel]
        other = "float32" if dtype == "float16" else dtype
        names = ("gamma", "beta", "moving_mean", "moving_var")
        shapes = {"data": data, **dict.fromkeys(names, (c,))}
        return case(op, label, shapes, attrs, spans={"gamma": (0.5, 1.5), "moving_var": (0.5, 2)}, train=train,
                    dtype=dtype, dtypes=dict.fromkeys(names, other))

    made = []
    for label, train in (("train", True), ("eval", False)):
        made += [
            one(label, (2, 3, 2, 2), train=train),
            one(f"{label}_gamma", (2, 3, 2, 2), {"fix_gamma": False}, train=train),
            one(f"{label}_global", (2, 3, 2, 2), {"fix_gamma": False, "use_global_stats": True}, train=train),
            one(f"{label}_global_fixed", (2, 3, 2, 2), {"use_global_stats": True}, train=train),
            one(f"{label}_last", (2, 2, 2, 3), {"fix_gamma": False, "axis": 3}, channel=3, train=train),
            one(f"{label}_negative", (2, 2, 3), {"fix_gamma": False, "axis": -1}, channel=2, train=train),
            one(f"{label}_flat", (5, 3), {"fix_gamma": False, "momentum": 0}, train=train),
            one(f"{label}_outputs", (2, 3, 4), {"fix_gamma": False, "output_mean_var": True}, train=train),
            one(f"{label}_outputs_global", (2, 3, 4), {"output_mean_var": True, "use_global_stats": True}, train=train),
            one(f"{label}_eps", (4, 3, 2), {"fix_gamma": False, "eps": 0.1, "momentum": 0.5}, train=train),
            one(label, (2, 3, 2, 2), {"fix_gamma": False}, train=train, dtype="float64"),
            one(label, (2, 3, 2, 2), {"fix_gamma": False}, train=train, dtype="float16"),
            one(f"{label}_fixed", (2, 3, 2, 2), {}, train=train, dtype="float16"),
            one(f"{label}_five", (2, 2, 2, 2, 2), {"fix_gamma": False}, train=train),
        ]
    made += [one("bad_axis", (2, 3, 2), {"axis": 4})]
    return made


def _activations() -> list[Case]:
    made = []
    for kind in ("relu", "sigmoid", "softrelu", "softsign", "tanh"):
        for dtype in ("float32", "float64", "float16"):
            made.append(case("Activation", kind, {"data": (2, 3, 3)}, {"act_type": kind}, span=(-4, 4), dtype=dtype))
        made.append(case("Activation", f"{kind}_wide", {"data": (30,)}, {"act_type": kind}, span=(-200, 200),
                         train=False))
    made.append(case("Activation", "bad", {"data": (3,)}, {"act_type": "swish"}))
    for kind in ("leaky", "elu", "selu", "gelu", "prelu"):
        for dtype in ("float32", "float64", "float16"):
            shapes: dict[str, tuple[int, ...]] = {"data": (2, 3, 4)}
            if kind == "prelu":
                shapes["gamma"] = (3,)
            made.append(case("LeakyReLU", kind, shapes, {"act_type": kind}, span=(-3, 3), dtype=dtype))
    made += [
        case("LeakyReLU", "default", {"data": (2, 5)}),
        case("LeakyReLU", "slope", {"data": (2, 5)}, {"act_type": "leaky", "slope": 0.1}),
        case("LeakyReLU", "elu_slope", {"data": (2, 5)}, {"act_type": "elu", "slope": 1.3}),
        case("LeakyReLU", "prelu_4d", {"data": (2, 3, 2, 2), "gamma": (3,)}, {"act_type": "prelu"}),
        case("LeakyReLU", "prelu_2d", {"data": (4, 3), "gamma": (3,)}, {"act_type": "prelu"}),
        case("LeakyReLU", "prelu_one", {"data": (2, 3, 2), "gamma": (1,)}, {"act_type": "prelu"}),
        case("LeakyReLU", "prelu_1d", {"data": (4,), "gamma": (1,)}, {"act_type": "prelu"}),
    ]
    return made


def _fully_connected() -> list[Case]:
    def one(label: str, data: tuple[int, ...], weight: tuple[int, ...], dtype: str = "float32",
            **attrs: object) -> Case:
        shapes = {"data": data, "weight": weight}
        if not attrs.get("no_bias"):
            shapes["bias"] = (weight[0],)
        return case("FullyConnected", label, shapes, {"num_hidden": 4, **attrs}, dtype=dtype)

    return [one("plain", (3, 5), (4, 5)), one("no_bias", (3, 5), (4, 5), no_bias=True),
            one("flatten", (2, 3, 2), (4, 6)), one("keep", (2, 3, 5), (4, 5), flatten=False),
            one("keep_2d", (2, 5), (4, 5), flatten=False, no_bias=True), one("one_row", (1, 33), (4, 33)),
            one("plain", (3, 5), (4, 5), dtype="float64"),
            one("bad_weight", (3, 5), (4, 6)), one("bad_hidden", (3, 5), (5, 5)), one("vector", (5,), (4, 1)),
            one("keep_vector", (5,), (4, 5), flatten=False)]


def _softmax() -> list[Case]:
    made = []
    for op in ("softmax", "log_softmax", "softmin"):
        for dtype in ("float32", "float64", "float16"):
            made.append(case(op, "last", {"data": (2, 5)}, span=(-3, 3), dtype=dtype))
        made += [case(op, "axis", {"data": (2, 3, 4)}, {"axis": 1}, span=(-3, 3)),
                 case(op, "first", {"data": (3, 4)}, {"axis": 0}, span=(-3, 3)),
                 case(op, "temperature", {"data": (2, 5)}, {"temperature": 2.5}, span=(-3, 3)),
                 case(op, "large", {"data": (2, 6)}, span=(-1e4, 1e4)),
                 case(op, "to_double", {"data": (2, 5)}, {"dtype": "float64"}),
                 case(op, "to_single", {"data": (2, 5)}, {"dtype": "float32"}, dtype="float16"),
                 case(op, "int", {"data": (2, 5)}, dtype="int32", span=(-3, 4), integer=["data"], train=False),
                 case(op, "bad_axis", {"data": (2, 5)}, {"axis": 2}),
                 case(op, "rank1", {"data": (5,)})]
    for dtype in ("int32", "float32", "int64"):
        for axis, length in ((1, (2,)), (-1, (2,))):
            made.append(case("softmax", f"length_{dtype}_{axis}", {"data": (2, 5), "length": length},
                             {"use_length": True, "axis": axis}, dtypes={"length": dtype}, spans={"length": (1, 6)},
                             integer=["length"], no_grad=["length"]))
    made.append(case("softmax", "length_middle", {"data": (2, 4, 3), "length": (2, 3)}, {"use_length": True, "axis": 1},
                     dtypes={"length": "int32"}, spans={"length": (0, 5)}, integer=["length"], no_grad=["length"]))
    for mode in ("instance", "channel"):
        made.append(case("SoftmaxActivation", mode, {"data": (2, 3, 2, 2)}, {"mode": mode}, span=(-3, 3)))
        made.append(case("SoftmaxActivation", f"{mode}_3d", {"data": (2, 3, 4)}, {"mode": mode}, span=(-3, 3)))
    made.append(case("SoftmaxActivation", "plain", {"data": (2, 5)}))
    made.append(case("SoftmaxActivation", "large", {"data": (2, 6)}, span=(-1e4, 1e4)))
    return made


def _softmax_output() -> list[Case]:
    def one(label: str, data: tuple[int, ...], labels: tuple[int, ...], classes: int, dtype: str = "float32",
            op: str = "SoftmaxOutput", low: int = 0, train: bool = True, **attrs: object) -> Case:
        return case(op, label, {"data": data, "label": labels}, attrs, dtype=dtype, span=(-2, 2), train=train,
                    spans={"label": (low, classes)}, integer=["label"], no_grad=["label"])

    made = [
        one("plain", (6, 4), (6,), 4), one("inference", (6, 4), (6,), 4, train=False),
        one("scale", (6, 4), (6,), 4, grad_scale=0.3), one("out_grad", (6, 4), (6,), 4, out_grad=True),
        one("plain", (6, 4), (6,), 4, dtype="float64"), one("plain", (6, 4), (6,), 4, dtype="float16"),
        one("smooth", (6, 4), (6,), 4, smooth_alpha=0.2), one("dense", (6, 4), (6, 4), 4),
        one("flat", (3, 2, 2), (3,), 4), one("deep", (3, 2, 4), (3, 2), 4),
        one("preserve", (3, 2, 4), (3, 2), 4, preserve_shape=True),
        one("preserve_two", (4, 3), (4,), 3, preserve_shape=True),
        one("multi", (2, 3, 4), (2, 4), 3, multi_output=True),
        one("multi_4d", (2, 3, 2, 2), (2, 2, 2), 3, multi_output=True),
        one("multi_flat", (2, 3, 2, 2), (2, 4), 3, multi_output=True),
        one("multi_bad", (2, 3, 2, 2), (2, 3), 3, multi_output=True), one("bad", (6, 4), (5,), 4),
        one("softmax_alias", (6, 4), (6,), 4, op="Softmax"),
        one("large", (3, 4), (3,), 4, grad_scale=1e3),
    ]
    for kind in ("null", "batch", "valid"):
        for ignore in (False, True):
            attrs: dict[str, Any] = {"normalization": kind, "use_ignore": ignore, "ignore_label": 1}
            suffix = f"{kind}_{'ignore' if ignore else 'all'}"
            made.append(one(suffix, (6, 4), (6,), 4, **attrs))
            made.append(one(f"multi_{suffix}", (2, 3, 4), (2, 4), 3, multi_output=True, **attrs))
            made.append(one(f"smooth_{suffix}", (6, 4), (6,), 4, smooth_alpha=0.1, **attrs))
    made.append(one("default_ignore", (8, 3), (8,), 3, low=-1, use_ignore=True, normalization="valid"))
    made.append(one("all_ignored", (4, 3), (4,), 1, use_ignore=True, ignore_label=0, normalization="valid"))
    return made


def _regression() -> list[Case]:
    made = []
    for op in ("LinearRegressionOutput", "MAERegressionOutput", "LogisticRegressionOutput"):
        for dtype in ("float32", "float64", "float16"):
            made.append(case(op, "plain", {"data": (3, 4), "label": (3, 4)}, dtype=dtype, no_grad=["label"],
                             span=(-2, 2)))
        made += [case(op, "scale", {"data": (3, 4), "label": (3, 4)}, {"grad_scale": 2.5}, no_grad=["label"]),
                 case(op, "column", {"data": (5, 1), "label": (5,)}, no_grad=["label"]),
                 case(op, "deep", {"data": (2, 3, 2), "label": (2, 3, 2)}, no_grad=["label"]),
                 case(op, "flat_label", {"data": (2, 3, 2), "label": (2, 6)}, no_grad=["label"]),
                 case(op, "bad", {"data": (3, 4), "label": (3,)}, no_grad=["label"])]
    return made


def _dropout() -> list[Case]:
    return [case("Dropout", "eval", {"data": (3, 4)}, train=False),
            case("Dropout", "eval", {"data": (3, 4)}, {"p": 0.9}, train=False, dtype="float16"),
            case("Dropout", "none", {"data": (3, 4)}, {"p": 0.0}),
            case("Dropout", "none_always", {"data": (3, 4)}, {"p": 0.0, "mode": "always"}, train=False),
            case("Dropout", "bad_rate", {"data": (3, 4)}, {"p": 1.5})]


def _wrong_dtypes() -> list[Case]:
    """Layers take floats alone, and one dtype."""
    def mixed(op: str, other: str, dtype: str = "float64", data: str = "float32", **attrs: object) -> Case:
        shapes: dict[str, tuple[int, ...]] = {"data": (2, 3), other: {"weight": (4, 3), "label": (2,)}.get(other, (3,))}
        if op == "BatchNorm":
            shapes |= dict.fromkeys(("beta", "moving_mean", "moving_var"), (3,))
        if op == "LinearRegressionOutput":
            shapes["label"] = (2, 3)
        return case(op, f"mixed_{dtype}", shapes, attrs, dtype=data, dtypes={other: dtype}, no_grad=["label"])

    def whole(op: str, shapes: dict[str, tuple[int, ...]], **attrs: object) -> Case:
        return case(op, "whole", shapes, attrs, dtype="int32", span=(-4, 4), integer=list(shapes), train=False)

    return [
        mixed("SoftmaxOutput", "label", "float32", data="float16"), mixed("SoftmaxOutput", "label", "int32"),
        mixed("LinearRegressionOutput", "label"), mixed("FullyConnected", "weight", num_hidden=4, no_bias=True),
        mixed("BatchNorm", "gamma"), mixed("LeakyReLU", "gamma", "float32", data="float16", act_type="prelu"),
        whole("FullyConnected", {"data": (2, 3), "weight": (4, 3)}, num_hidden=4, no_bias=True),
        whole("Activation", {"data": (2, 3)}, act_type="relu"), whole("Dropout", {"data": (2, 3)}),
        whole("Convolution", {"data": (1, 2, 3, 3), "weight": (4, 2, 1, 1)}, kernel=(1, 1), num_filter=4, no_bias=True),
        whole("LeakyReLU", {"data": (2, 3)}), whole("SoftmaxActivation", {"data": (2, 3)}),
        whole("BatchNorm", {"data": (2, 3), **dict.fromkeys(("gamma", "beta", "moving_mean", "moving_var"), (3,))}),
    ]
