"""Golden cases of values that parameters may have and other modules leave out, and of operators that they leave out."""
from __future__ import annotations

from golden.cases import Case, case
from golden.quantization import whole

WHOLE = ("_minus_scalar", "_rminus_scalar", "_rdiv_scalar", "_rmod_scalar", "_rpower_scalar", "_maximum_scalar",
         "_minimum_scalar", "_hypot_scalar", "_equal_scalar", "_not_equal_scalar", "_greater_equal_scalar",
         "_lesser_scalar", "_lesser_equal_scalar", "_logical_and_scalar", "_logical_or_scalar", "_logical_xor_scalar",
         "_contrib_gradientmultiplier")
PAIRS = ("elemwise_sub", "_mod", "_power", "_maximum", "_minimum", "_hypot", "_equal", "_not_equal", "_greater",
         "_greater_equal", "_lesser", "_lesser_equal", "_logical_and", "_logical_or", "_logical_xor", "broadcast_sub",
         "broadcast_mul", "broadcast_div", "broadcast_mod", "broadcast_power", "broadcast_maximum",
         "broadcast_minimum", "broadcast_hypot", "broadcast_equal", "broadcast_not_equal", "broadcast_greater",
         "broadcast_greater_equal", "broadcast_lesser", "broadcast_lesser_equal", "broadcast_logical_and",
         "broadcast_logical_or", "broadcast_logical_xor")
TUNINGS = ("fastest", "limited_workspace", "off")
STORAGES = ("csr", "default", "row_sparse")
FLOATS = ("float32", "float64", "float16")


def cases() -> list[Case]:
    return [*_elementwise(), *_storage(), *_products(), *_windows(), *_regions(), *_softmax(), *_norms(), *_quantized(),
            *_recurrent(), *_losses()]


def _elementwise() -> list[Case]:
    made = [case(op, "fraction", {"data": (9,)}, {"scalar": 1.7, "is_int": False}, span=(1, 9), dtype="int32",
                 integer=["data"], train=False) for op in WHOLE]
    made += [case(op, "unfit", {"lhs": (2, 3), "rhs": (3, 2)}, train=False) for op in PAIRS]
    made.append(case("where", "unfit", {"condition": (2, 3), "x": (2, 3), "y": (3, 2)}, train=False))
    made.append(case("hard_sigmoid", "no_number", {"data": (3,)}, {"alpha": "x"}, train=False))
    for dtype in FLOATS:
        made.append(case("_full", f"of_{dtype}", {}, {"shape": (2, 3), "value": 1.5, "dtype": dtype}, train=False))
        made.append(case("_arange", f"of_{dtype}", {}, {"start": 1, "stop": 9, "step": 2, "dtype": dtype},
                         train=False))
        for target in FLOATS:
            made.append(case("amp_cast", target, {"data": (3, 5)}, {"dtype": target}, dtype=dtype, span=(0, 9)))
    made.append(case("amp_cast", "whole", {"data": (5,)}, {"dtype": "float16"}, dtype="int32", span=(-9, 9),
                     integer=["data"], train=False))
    made.append(case("amp_multicast", "narrow", {"a": (2, 3), "b": (3,)}, {"num_outputs": 2, "cast_narrow": True},
                     list_input=True))
    for same in (True, False):
        for dtype in ("float32", "float64"):
            made.append(case("_contrib_allclose", f"nan_{same}", {"a": (3,), "b": (3,)}, {"equal_nan": same},
                             dtype=dtype, train=False))
    made.append(case("_arange", "range", {}, {"start": 1, "infer_range": True, "stop": 6}, train=False))
    for dtype in ("float16", "float32", "float64", "int8", "int32", "int64"):
        made.append(case("cumsum", f"to_{dtype}", {"a": (3, 4)}, {"axis": 1, "dtype": dtype}, span=(0, 4),
                         train=False))
    return made


def _storage() -> list[Case]:
    made = []
    for stype in STORAGES:
        for dtype in ("float32", "float64"):
            made.append(case("cast_storage", stype, {"data": (3, 4)}, {"stype": stype}, dtype=dtype, train=False))
        for op, shapes in (("dot", ((3, 4), (4, 2))), ("batch_dot", ((2, 3, 4), (2, 4, 2)))):
            made.append(case(op, f"to_{stype}", dict(zip(("lhs", "rhs"), shapes, strict=True)),
                             {"forward_stype": stype}))
    made.append(case("cast_storage", "back", {"data": (3, 4)}, {"stype": "default"}))
    for op, name in (("Embedding", "sparse_grad"), ("_contrib_SparseEmbedding", "deterministic")):
        for dtype in FLOATS[:2]:
            for sparse in (True, False):
                attrs = {"input_dim": 6, "output_dim": 4, "dtype": dtype, name: sparse}
                made.append(case(op, f"sparse_{sparse}", {"data": (2, 3), "weight": (6, 4)}, attrs, dtype=dtype,
                                 spans={"data": (0, 6)}, integer=["data"], no_grad=["data"]))
                made.append(case(op, f"reads_{sparse}", {"data": (5,), "weight": (6, 4)}, attrs, dtype=dtype,
                                 spans={"data": (0, 6)}, integer=["data"], train=False))
    return made


def _products() -> list[Case]:
    made, image, volume = [], {"data": (1, 2, 5, 6), "weight": (4, 2, 3, 2), "bias": (4,)}, {"data": (1, 2, 4, 4, 3)}
    volume |= {"weight": (3, 2, 2, 2, 2), "bias": (3,)}
    line = {"data": (2, 2, 7), "weight": (3, 2, 3), "bias": (3,)}
    plain = {"kernel": (3, 2), "num_filter": 4}
    for label, attrs in ((*((f"tune_{how}", {"cudnn_tune": how}) for how in TUNINGS), ("off", {"cudnn_off": True}),
                          ("nchw", {"layout": "NCHW"}))):
        made.append(case("Convolution", label, image, {**plain, **attrs}))
        made.append(case("Deconvolution", label, {"data": (1, 2, 4, 4), "weight": (2, 4, 3, 2)}, {**plain, **attrs}))
    made.append(case("Convolution", "ndhwc", {"data": (1, 4, 4, 3, 2), "weight": (3, 2, 2, 2, 2), "bias": (3,)},
                     {"kernel": (2, 2, 2), "num_filter": 3, "layout": "NDHWC"}))
    made.append(case("Convolution", "ncw", line, {"kernel": (3,), "num_filter": 3, "layout": "NCW"}))
    made.append(case("Convolution", "ncdhw", volume, {"kernel": (2, 2, 2), "num_filter": 3, "layout": "NCDHW"}))
    made.append(case("Deconvolution", "ncw", {"data": (2, 2, 5), "weight": (2, 3, 3)},
                     {"kernel": (3,), "num_filter": 3, "layout": "NCW"}))
    made.append(case("Deconvolution", "ncdhw", {"data": (1, 2, 3, 3, 2), "weight": (2, 3, 2, 2, 2)},
                     {"kernel": (2, 2, 2), "num_filter": 3, "layout": "NCDHW"}))
    made.append(case("Deconvolution", "nhwc", {"data": (1, 4, 4, 2), "weight": (2, 3, 2, 4)},
                     {**plain, "layout": "NHWC"}))
    made.append(case("Deconvolution", "ndhwc", {"data": (1, 3, 3, 2, 2), "weight": (2, 2, 2, 2, 3)},
                     {"kernel": (2, 2, 2), "num_filter": 3, "layout": "NDHWC"}))
    return made


def _windows() -> list[Case]:
    made, square = [], {"kernel": (2, 2), "stride": (2, 2)}
    for kind in ("max", "avg", "sum", "lp"):
        made.append(case("Pooling", f"{kind}_nchw", {"data": (1, 2, 5, 6)},
                         {**square, "pool_type": kind, "layout": "NCHW", "p_value": 2}, span=(0.1, 2)))
        made.append(case("Pooling", f"{kind}_off", {"data": (1, 2, 5, 6)},
                         {**square, "pool_type": kind, "cudnn_off": True, "p_value": 2}, span=(0.1, 2)))
    made.append(case("Pooling", "same", {"data": (1, 2, 5, 6)}, {**square, "pooling_convention": "same"}))
    for off in (True, False):
        made.append(case("BilinearSampler", f"off_{off}", {"data": (1, 2, 4, 5), "grid": (1, 2, 3, 3)},
                         {"cudnn_off": off}))
        made.append(case("SpatialTransformer", f"off_{off}", {"data": (1, 2, 4, 5), "loc": (1, 6)},
                         {"cudnn_off": off, "target_shape": (3, 3), "transform_type": "affine",
                          "sampler_type": "bilinear"}))
    shapes = {"data": (1, 2, 5, 5), "offset": (1, 18, 3, 3), "mask": (1, 9, 3, 3), "weight": (2, 2, 3, 3), "bias": (2,)}
    for layout in ("NCW", "NCDHW"):
        for op in ("_contrib_DeformableConvolution", "_contrib_ModulatedDeformableConvolution"):
            arrays = {name: shape for name, shape in shapes.items() if name != "mask" or "Modulated" in op}
            made.append(case(op, layout.lower(), arrays, {"kernel": (3, 3), "num_filter": 2, "layout": layout}))
    return made


def _regions() -> list[Case]:
    made = []
    box = {"cls_prob": (1, 4, 2, 3), "bbox_pred": (1, 8, 2, 3), "im_info": (1, 3)}
    some = {"rpn_pre_nms_top_n": 10, "rpn_post_nms_top_n": 6, "scales": (1, 2), "ratios": (1,), "rpn_min_size": 0}
    spans = {"cls_prob": (0, 1), "bbox_pred": (-0.7, 0.7), "im_info": (28, 60)}
    for op in ("_contrib_Proposal", "_contrib_MultiProposal"):
        for score in (True, False):
            made.append(case(op, f"score_{score}", box, {**some, "output_score": score}, spans=spans, train=False))
        made.append(case(op, "iou_loss", box, {**some, "iou_loss": True}, spans=spans, train=False))
    return made


def _softmax() -> list[Case]:
    made = []
    for op in ("softmax", "softmin", "log_softmax"):
        for dtype in FLOATS:
            made.append(case(op, f"to_{dtype}", {"data": (3, 4)}, {"dtype": dtype}, train=dtype != "float16"))
    made.append(case("Dropout", "off", {"data": (3, 4)}, {"cudnn_off": True, "p": 0.5}, train=False))
    return made


def _norms() -> list[Case]:
    made = []
    for op in ("BatchNorm", "_contrib_BatchNormWithReLU"):
        for off in (True, False):
            shapes = {"data": (2, 3, 4, 5), "gamma": (3,), "beta": (3,), "moving_mean": (3,), "moving_var": (3,)}
            for train in (True, False):
                made.append(case(op, f"off_{off}_{train}", shapes, {"cudnn_off": off, "fix_gamma": False}, train=train,
                                 spans={"moving_var": (0.5, 2)}))
    return made


def _quantized() -> list[Case]:
    made, ends = [], {"min_data": (0, 0.1), "max_data": (2.9, 3), "min_weight": (-1, -0.9), "max_weight": (1.4, 1.5)}
    arrays = {"data": ((1, 2, 5, 5), "uint8"), "weight": ((3, 2, 2, 2), "int8")}
    plain: dict[str, object] = {"num_filter": 3, "no_bias": True, "kernel": (2, 2)}
    for label, attrs in ((*((f"tune_{how}", {"cudnn_tune": how}) for how in TUNINGS), ("off", {"cudnn_off": True}),
                          *((layout.lower(), {"layout": layout}) for layout in ("NHWC", "NDHWC")))):
        made.append(whole("_contrib_quantized_conv", label, arrays, ends, {**plain, **attrs}))
    for layout, kernel in (("NCW", (2,)), ("NCDHW", (2, 2, 2))):
        shaped = {"data": ((1, 2, *(4 for _ in kernel)), "uint8"), "weight": ((3, 2, *kernel), "int8")}
        made.append(whole("_contrib_quantized_conv", layout.lower(), shaped, ends,
                          {**plain, "kernel": kernel, "layout": layout}))
    data = {"data": ((2, 3, 7, 6), "int8")}
    between = {"min_data": (-2, -1.9), "max_data": (2.9, 3)}
    for label, attrs in (("off", {"cudnn_off": True}), ("nchw", {"layout": "NCHW"}),
                         ("counted", {"count_include_pad": True, "pad": (1, 1)})):
        made.append(whole("_contrib_quantized_pooling", label, data, between,
                          {"kernel": (3, 3), "pool_type": "avg", **attrs}))
    for layout, kernel in (("NCW", (2,)), ("NCDHW", (2, 2, 2))):
        made.append(whole("_contrib_quantized_pooling", layout.lower(),
                          {"data": ((1, 2, *(4 for _ in kernel)), "int8")}, between,
                          {"kernel": kernel, "pool_type": "max", "layout": layout}))
    normed = {"data": ((2, 4, 5, 5), "int8")}
    for name in ("use_global_stats", "output_mean_var", "cudnn_off"):
        made.append(whole("_contrib_quantized_batch_norm", name, normed, between,
                          {name: True, "min_calib_range": -14.5, "max_calib_range": 16.0},
                          dict.fromkeys(("gamma", "beta", "moving_mean", "moving_var"), (4,))))
    made.append(case("_contrib_quantized_embedding", "sparse", {"data": (2, 3), "weight": (6, 4), "min_weight": (1,),
                                                                "max_weight": (1,)},
                     {"input_dim": 6, "output_dim": 4, "sparse_grad": True}, dtypes={"weight": "int8"},
                     spans={"data": (0, 6), "weight": (-128, 128)}, integer=["data", "weight"], train=False))
    for bins in (15, 255):
        made.append(case("_contrib_calibrate_entropy", f"bins_{bins}", {"hist": (601,), "hist_edges": (602,)},
                         {"num_quantized_bins": bins}, spans={"hist": (0, 90)}, integer=["hist"], train=False))
    return made


def _recurrent() -> list[Case]:
    made = []
    for mode, gates in (("lstm", 4), ("gru", 3), ("rnn_relu", 1), ("rnn_tanh", 1)):
        shapes = {"data": (3, 2, 3), "parameters": (gates * 4 * (3 + 4 + 2),), "state": (1, 2, 4)}
        shapes |= {"state_cell": (1, 2, 4)} if mode == "lstm" else {}
        plain = {"mode": mode, "state_size": 4, "num_layers": 1, "state_outputs": True}
        made.append(case("RNN", f"length_{mode}", {**shapes, "sequence_length": (2,)},
                         {**plain, "use_sequence_length": True}, spans={"sequence_length": (1, 4)},
                         integer=["sequence_length"], no_grad=["sequence_length"]))
        for nan in (True, False):
            made.append(case("RNN", f"clip_{nan}_{mode}", shapes, {**plain, "lstm_state_clip_nan": nan}, train=False))
    return made


def _losses() -> list[Case]:
    return [case("MakeLoss", f"{how}_{thresh}", {"data": (3, 4)},
                 {"normalization": how, "grad_scale": 0.5, "valid_thresh": thresh}, dtype=dtype)
            for how in ("null", "batch", "valid") for thresh in (0, 0.3) for dtype in FLOATS]
