"""Operators to measure, by family, with sizes as in networks: what bench/operators.py runs."""
from __future__ import annotations

from dataclasses import dataclass, field

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """One operator as a bound graph. whole: the inputs that hold whole numbers, from 0 to below the number. spans: of
    others, [-1, 1) without one. fixed: inputs without a gradient. trains: whether forward with backward is measured,
    too. drawn: results are random or depend on ties, so that they are not compared. listed: inputs have no names."""

    family: str
    name: str
    op: str
    shapes: dict[str, Shape]
    attrs: dict[str, object] = field(default_factory=dict)
    trains: bool = True
    whole: dict[str, int] = field(default_factory=dict)
    spans: dict[str, tuple[float, float]] = field(default_factory=dict)
    fixed: tuple[str, ...] = ()
    dtypes: dict[str, str] = field(default_factory=dict)
    drawn: bool = False
    listed: bool = False


MAP, WIDE, ROWS = (16, 64, 56, 56), (32, 256, 14, 14), (128, 1000)
FOUND: list[Case] = []


def add(family: str, name: str, op: str, shapes: dict[str, Shape], attrs: dict[str, object] | None = None,
        **more: object) -> None:
    FOUND.append(Case(family, name, op, shapes, attrs or {}, **more))  # type: ignore[arg-type]


def _elementwise() -> None:
    for kind in ("relu", "sigmoid", "tanh", "softrelu"):
        add("activation", kind, "Activation", {"data": MAP}, {"act_type": kind})
    for kind in ("leaky", "gelu", "elu"):
        add("activation", kind, "LeakyReLU", {"data": MAP}, {"act_type": kind})
    add("activation", "prelu", "LeakyReLU", {"data": MAP, "gamma": (64,)}, {"act_type": "prelu"})
    pair = {"lhs": MAP, "rhs": MAP}
    for op in ("elemwise_add", "elemwise_mul", "_maximum"):
        add("basic", op, op, pair)
    for op in ("broadcast_add", "broadcast_mul"):
        add("basic", f"{op}, channels", op, {"lhs": MAP, "rhs": (1, 64, 1, 1)})
    for op, low in (("exp", -1), ("log", 0.1), ("sqrt", 0.1), ("erf", -1), ("square", -1), ("rsqrt", 0.1), ("sin", -1)):
        add("basic", op, op, {"data": MAP}, spans={"data": (low, 2)})
    add("basic", "_mul_scalar", "_mul_scalar", {"data": MAP}, {"scalar": 0.5})
    add("basic", "_power_scalar", "_power_scalar", {"data": MAP}, {"scalar": 2.5}, spans={"data": (0.1, 2)})
    add("basic", "clip", "clip", {"data": MAP}, {"a_min": -0.5, "a_max": 0.5})
    add("basic", "Cast to float16", "Cast", {"data": MAP}, {"dtype": "float16"}, trains=False)
    add("basic", "add_n of 4", "add_n", dict.fromkeys("abcd", MAP), {"num_args": 4}, listed=True)
    add("basic", "where", "where", {"condition": MAP, "x": MAP, "y": MAP}, whole={"condition": 2})
    add("basic", "smooth_l1", "smooth_l1", {"data": (32, 40000)}, {"scalar": 1.0})


def _moves() -> None:
    add("arrange", "transpose NHWC", "transpose", {"data": MAP}, {"axes": (0, 2, 3, 1)})
    add("arrange", "transpose heads", "transpose", {"data": (32, 128, 12, 64)}, {"axes": (0, 2, 1, 3)})
    add("arrange", "SwapAxis", "SwapAxis", {"data": (128, 32, 512)}, {"dim1": 0, "dim2": 1})
    add("arrange", "depth_to_space", "depth_to_space", {"data": (8, 64, 56, 56)}, {"block_size": 2})
    add("arrange", "tile", "tile", {"data": (32, 64, 28, 28)}, {"reps": (1, 1, 2, 2)})
    add("arrange", "repeat", "repeat", {"data": (32, 64, 28, 28)}, {"repeats": 2, "axis": 3})
    add("arrange", "reverse", "reverse", {"data": MAP}, {"axis": 3})
    add("arrange", "Pad", "Pad", {"data": MAP}, {"mode": "constant", "pad_width": (0, 0, 0, 0, 1, 1, 1, 1)})
    add("arrange", "Pad reflect", "Pad", {"data": MAP}, {"mode": "reflect", "pad_width": (0, 0, 0, 0, 1, 1, 1, 1)})
    add("slices", "Concat channels", "Concat", {"a": MAP, "b": MAP}, {"num_args": 2, "dim": 1}, listed=True)
    add("slices", "stack", "stack", {"a": WIDE, "b": WIDE}, {"num_args": 2, "axis": 1}, listed=True)
    add("slices", "slice_axis", "slice_axis", {"data": MAP}, {"axis": 1, "begin": 16, "end": 48})
    add("slices", "slice step", "slice", {"data": MAP}, {"begin": (0, 0, 0, 0), "end": (16, 64, 56, 56),
                                                         "step": (1, 1, 2, 2)})
    add("slices", "SliceChannel", "SliceChannel", {"data": MAP}, {"num_outputs": 4, "axis": 1})
    for op in ("sum", "mean", "max", "norm"):
        add("reduction", f"{op} of space", op, {"data": MAP}, {"axis": (2, 3)})
    add("reduction", "sum of channels", "sum", {"data": MAP}, {"axis": 1})
    add("reduction", "sum of batch", "sum", {"data": (4096, 1024)}, {"axis": 0})
    add("reduction", "argmax", "argmax", {"data": ROWS}, {"axis": 1}, trains=False)
    add("reduction", "prod", "prod", {"data": (1024, 512)}, {"axis": 1}, spans={"data": (0.9, 1.1)})
    add("softmax", "softmax of classes", "softmax", {"data": ROWS})
    add("softmax", "softmax of attention", "softmax", {"data": (16, 12, 128, 128)})
    add("softmax", "softmax of channels", "softmax", {"data": (4, 21, 128, 128)}, {"axis": 1})
    add("softmax", "log_softmax", "log_softmax", {"data": ROWS})
    add("softmax", "softmax float16", "softmax", {"data": ROWS}, dtypes={"data": "float16"}, drawn=True)


def _layers() -> None:
    def conv(name: str, data: Shape, filters: int, kernel: Shape, groups: int = 1, op: str = "Convolution",
             **attrs: object) -> None:
        weight = ((data[1], filters // groups) if op == "Deconvolution" else (filters, data[1] // groups)) + kernel
        add("convolution", name, op, {"data": data, "weight": weight},
            {"kernel": kernel, "num_filter": filters, "num_group": groups, "no_bias": True, **attrs})

    conv("3x3", (4, 64, 56, 56), 64, (3, 3), pad=(1, 1))
    conv("3x3, 512", (4, 512, 7, 7), 512, (3, 3), pad=(1, 1))
    conv("1x1", (4, 256, 28, 28), 128, (1, 1))
    add("convolution", "7x7 of images", "Convolution", {"data": (2, 3, 224, 224), "weight": (64, 3, 7, 7)},
        {"kernel": (7, 7), "num_filter": 64, "no_bias": True, "stride": (2, 2), "pad": (3, 3)}, fixed=("data",))
    conv("3x3, stride 2", (4, 128, 28, 28), 128, (3, 3), stride=(2, 2), pad=(1, 1))
    conv("depthwise", (4, 144, 56, 56), 144, (3, 3), groups=144, pad=(1, 1))
    conv("32 groups", (4, 128, 28, 28), 128, (3, 3), groups=32, pad=(1, 1))
    conv("dilated", (2, 256, 28, 28), 256, (3, 3), pad=(2, 2), dilate=(2, 2))
    conv("1-D", (16, 64, 512), 64, (5,), pad=(2,))
    conv("3-D", (1, 16, 16, 28, 28), 32, (3, 3, 3), pad=(1, 1, 1))
    conv("transposed 4x4", (2, 128, 28, 28), 64, (4, 4), op="Deconvolution", stride=(2, 2), pad=(1, 1))
    for kind in ("max", "avg"):
        add("pooling", f"{kind} 3x3", "Pooling", {"data": (8, 64, 112, 112)},
            {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1), "pool_type": kind})
        add("pooling", f"{kind} global", "Pooling", {"data": (32, 512, 7, 7)},
            {"kernel": (1, 1), "global_pool": True, "pool_type": kind})
    ends = {"gamma": (64,), "beta": (64,)}
    add("norms", "BatchNorm", "BatchNorm", {"data": MAP, **ends}, {"fix_gamma": False})
    add("norms", "LayerNorm", "LayerNorm", {"data": (32, 128, 768), "gamma": (768,), "beta": (768,)})
    add("norms", "GroupNorm", "GroupNorm", {"data": (8, 64, 56, 56), "gamma": (8,), "beta": (8,)}, {"num_groups": 8})
    add("norms", "InstanceNorm", "InstanceNorm", {"data": (8, 64, 56, 56), **ends})
    add("norms", "L2Normalization", "L2Normalization", {"data": (128, 2048)})
    add("norms", "LRN", "LRN", {"data": (8, 96, 27, 27)}, {"nsize": 5})
    add("dropout", "Dropout", "Dropout", {"data": (128, 4096)}, {"p": 0.5}, drawn=True)
    add("linear", "FullyConnected", "FullyConnected", {"data": (64, 1024), "weight": (1000, 1024), "bias": (1000,)},
        {"num_hidden": 1000})
    add("linear", "dot", "dot", {"lhs": (512, 512), "rhs": (512, 512)})
    add("linear", "dot transposed", "dot", {"lhs": (512, 512), "rhs": (512, 512)}, {"transpose_b": True})
    add("linear", "batch_dot", "batch_dot", {"lhs": (96, 128, 64), "rhs": (96, 64, 128)})
    add("linear", "one row", "FullyConnected", {"data": (1, 2048), "weight": (1000, 2048), "bias": (1000,)},
        {"num_hidden": 1000}, trains=False)
    add("attention", "selfatt_qk", "_contrib_interleaved_matmul_selfatt_qk", {"queries_keys_values": (128, 8, 2304)},
        {"heads": 12})
    add("attention", "selfatt_valatt", "_contrib_interleaved_matmul_selfatt_valatt",
        {"queries_keys_values": (128, 8, 2304), "attention": (96, 128, 128)}, {"heads": 12})
    add("linalg", "gemm2", "_linalg_gemm2", {"A": (16, 128, 128), "B": (16, 128, 128)})
    add("linalg", "syrk", "_linalg_syrk", {"A": (16, 128, 128)})
    add("linalg", "trmm", "_linalg_trmm", {"A": (16, 64, 64), "B": (16, 64, 64)})
    add("linalg", "trsm", "_linalg_trsm", {"A": (16, 64, 64), "B": (16, 64, 64)}, spans={"A": (1, 1.01)})
    add("rnn", "LSTM", "RNN", {"data": (35, 16, 200), "parameters": (321600,), "state": (1, 16, 200),
                               "state_cell": (1, 16, 200)},
        {"mode": "lstm", "state_size": 200, "num_layers": 1}, spans={"parameters": (-0.1, 0.1)})
    add("rnn", "GRU", "RNN", {"data": (35, 16, 200), "parameters": (241200,), "state": (1, 16, 200)},
        {"mode": "gru", "state_size": 200, "num_layers": 1}, spans={"parameters": (-0.1, 0.1)})


def _places() -> None:
    add("gather", "Embedding", "Embedding", {"data": (64, 128), "weight": (30000, 300)},
        {"input_dim": 30000, "output_dim": 300}, whole={"data": 30000}, fixed=("data",))
    add("gather", "take", "take", {"a": (20000, 256), "indices": (4096,)}, whole={"indices": 20000}, fixed=("indices",))
    add("gather", "pick", "pick", {"data": ROWS, "index": (128,)}, whole={"index": 1000}, fixed=("index",))
    add("gather", "one_hot", "one_hot", {"indices": (1024,)}, {"depth": 1000}, whole={"indices": 1000}, trains=False)
    add("gather", "gather_nd", "gather_nd", {"data": (256, 256, 32), "indices": (2, 8192)}, whole={"indices": 256},
        fixed=("indices",))
    add("gather", "scatter_nd", "scatter_nd", {"data": (8192, 32), "indices": (2, 8192)}, {"shape": (256, 256, 32)},
        whole={"indices": 256}, trains=False, drawn=True)
    add("gather", "batch_take", "batch_take", {"a": (4096, 64), "indices": (4096,)}, whole={"indices": 64},
        dtypes={"indices": "int32"}, trains=False)
    add("order", "topk of classes", "topk", {"data": ROWS}, {"k": 5}, trains=False)
    add("order", "topk of boxes", "topk", {"data": (1, 40000)}, {"k": 1000, "ret_typ": "value"}, trains=False)
    add("order", "sort", "sort", {"data": (64, 4096)}, trains=False)
    add("order", "argsort", "argsort", {"data": (64, 4096)}, trains=False)
    add("order", "cumsum", "cumsum", {"a": (256, 4096)}, {"axis": 1})
    lengths = {"data": (128, 64, 256), "sequence_length": (64,)}
    for op in ("SequenceMask", "SequenceLast", "SequenceReverse"):
        add("sequence", op, op, lengths, {"use_sequence_length": True}, whole={"sequence_length": 128},
            spans={"sequence_length": (1, 128)}, fixed=("sequence_length",))


def _boxes() -> None:
    add("boxes", "MultiBoxPrior", "_contrib_MultiBoxPrior", {"data": (1, 3, 38, 38)},
        {"sizes": (0.1, 0.2), "ratios": (1, 2, 0.5)}, trains=False)
    add("boxes", "MultiBoxDetection", "_contrib_MultiBoxDetection",
        {"cls_prob": (1, 21, 8732), "loc_pred": (1, 34928), "anchor": (1, 8732, 4)}, {"nms_topk": 400},
        spans={"cls_prob": (0, 1), "anchor": (0, 1)}, trains=False, drawn=True)
    add("boxes", "MultiBoxTarget", "_contrib_MultiBoxTarget",
        {"anchor": (1, 8732, 4), "label": (8, 8, 5), "cls_pred": (8, 21, 8732)},
        {"negative_mining_ratio": 3, "minimum_negative_samples": 0}, spans={"anchor": (0, 1), "label": (0, 1)},
        trains=False, drawn=True)
    add("boxes", "box_nms", "_contrib_box_nms", {"data": (1, 4000, 6)}, {"topk": 400, "coord_start": 2},
        spans={"data": (0, 1)}, trains=False, drawn=True)
    add("boxes", "box_iou", "_contrib_box_iou", {"lhs": (1000, 4), "rhs": (1000, 4)},
        spans={"lhs": (0, 1), "rhs": (0, 1)}, trains=False)
    add("boxes", "bipartite_matching", "_contrib_bipartite_matching", {"data": (8, 200, 50)}, {"threshold": 0.1},
        spans={"data": (0, 1)}, trains=False)
    rois = {"data": (1, 256, 38, 50), "rois": (300, 5)}
    fixed = {"spans": {"rois": (0, 0.99)}, "fixed": ("rois",)}
    add("regions", "ROIPooling", "ROIPooling", rois, {"pooled_size": (7, 7), "spatial_scale": 0.0625}, **fixed)
    add("regions", "ROIAlign", "_contrib_ROIAlign", rois,
        {"pooled_size": (7, 7), "spatial_scale": 0.0625, "sample_ratio": 2}, **fixed)
    add("position_sensitive", "PSROIPooling", "_contrib_PSROIPooling", {"data": (1, 1029, 38, 50), "rois": (300, 5)},
        {"spatial_scale": 0.0625, "output_dim": 21, "pooled_size": 7, "group_size": 7}, trains=False, drawn=True,
        **fixed)
    add("proposals", "MultiProposal", "_contrib_MultiProposal",
        {"cls_prob": (1, 24, 38, 50), "bbox_pred": (1, 48, 38, 50), "im_info": (1, 3)},
        {"rpn_pre_nms_top_n": 6000, "rpn_post_nms_top_n": 300}, spans={"cls_prob": (0, 1), "im_info": (600, 601)},
        trains=False, drawn=True)
    add("deformable", "DeformableConvolution", "_contrib_DeformableConvolution",
        {"data": (1, 256, 28, 28), "offset": (1, 18, 28, 28), "weight": (256, 256, 3, 3)},
        {"kernel": (3, 3), "num_filter": 256, "pad": (1, 1), "no_bias": True})
    add("correlation", "Correlation", "Correlation", {"data1": (1, 64, 48, 64), "data2": (1, 64, 48, 64)},
        {"kernel_size": 1, "max_displacement": 4, "stride1": 1, "stride2": 1, "pad_size": 4})
    add("sampling", "BilinearSampler", "BilinearSampler", {"data": (8, 32, 56, 56), "grid": (8, 2, 56, 56)})
    add("sampling", "SpatialTransformer", "SpatialTransformer", {"data": (8, 32, 56, 56), "loc": (8, 6)},
        {"target_shape": (56, 56), "transform_type": "affine", "sampler_type": "bilinear"})
    add("resize", "UpSampling nearest", "UpSampling", {"data": (8, 64, 28, 28)},
        {"scale": 2, "sample_type": "nearest", "num_args": 1}, listed=True)
    add("resize", "BilinearResize2D", "_contrib_BilinearResize2D", {"data": (8, 64, 28, 28)},
        {"height": 56, "width": 56})
    add("resize", "AdaptiveAvgPooling2D", "_contrib_AdaptiveAvgPooling2D", {"data": (8, 256, 28, 28)},
        {"output_size": (7, 7)})
    add("convolution", "im2col", "im2col", {"data": (4, 64, 56, 56)}, {"kernel": (3, 3), "pad": (1, 1)})


def _others() -> None:
    add("losses", "CTCLoss", "CTCLoss", {"data": (100, 16, 80), "label": (16, 20)}, whole={"label": 79},
        spans={"label": (1, 80)}, fixed=("label",))
    add("losses", "SoftmaxOutput", "SoftmaxOutput", {"data": ROWS, "label": (128,)}, whole={"label": 1000},
        fixed=("label",))
    add("losses", "LinearRegressionOutput", "LinearRegressionOutput", {"data": (4096, 64), "label": (4096, 64)},
        fixed=("label",))
    add("losses", "softmax_cross_entropy", "softmax_cross_entropy", {"data": ROWS, "label": (128,)},
        whole={"label": 1000}, fixed=("label",))
    for op, attrs in (("uniform", {}), ("normal", {}), ("exponential", {}), ("gamma", {"alpha": 2.0, "beta": 1.0}),
                      ("poisson", {"lam": 4.0})):
        add("random", op, f"_random_{op}", {}, {"shape": (256, 1024), **attrs}, trains=False, drawn=True)
    add("random", "multinomial", "_sample_multinomial", {"data": ROWS}, {"shape": 8}, spans={"data": (0, 0.002)},
        trains=False, drawn=True)
    add("densities", "pdf_normal", "_random_pdf_normal", {"sample": (1024, 256), "mu": (1024,), "sigma": (1024,)},
        spans={"sigma": (0.5, 2)})
    add("point_processes", "hawkesll", "_contrib_hawkesll",
        {"lda": (32, 5), "alpha": (5,), "beta": (5,), "state": (32, 5), "lags": (32, 200), "marks": (32, 200),
         "valid_length": (32,), "max_time": (32,)}, trains=False, whole={"marks": 5}, dtypes={"marks": "int32"},
        spans={**dict.fromkeys(("lda", "alpha", "beta", "state", "lags"), (0.1, 1)), "valid_length": (200, 200),
               "max_time": (400, 401)})
    add("quantization", "quantize_v2", "_contrib_quantize_v2", {"data": MAP},
        {"min_calib_range": -1.0, "max_calib_range": 1.0, "out_type": "int8"}, trains=False)
    add("quantization", "dequantize", "_contrib_dequantize", {"data": MAP, "min_range": (1,), "max_range": (1,)},
        dtypes={"data": "int8"}, whole={"data": 100}, spans={"min_range": (-1, -0.9), "max_range": (0.9, 1)},
        trains=False)
    add("quantized", "quantized_fully_connected", "_contrib_quantized_fully_connected",
        {"data": (64, 1024), "weight": (1000, 1024), "min_data": (1,), "max_data": (1,), "min_weight": (1,),
         "max_weight": (1,)}, {"num_hidden": 1000, "no_bias": True}, whole={"data": 100, "weight": 100},
        dtypes={"data": "uint8", "weight": "int8"}, trains=False, drawn=True)
    add("quantized", "quantized_conv", "_contrib_quantized_conv",
        {"data": (4, 64, 56, 56), "weight": (64, 64, 3, 3), "min_data": (1,), "max_data": (1,), "min_weight": (1,),
         "max_weight": (1,)}, {"kernel": (3, 3), "pad": (1, 1), "num_filter": 64, "no_bias": True},
        whole={"data": 100, "weight": 100}, dtypes={"data": "uint8", "weight": "int8"}, trains=False, drawn=True)
    add("precision", "multi_sum_sq", "multi_sum_sq", {"a": (512, 512), "b": (512, 512)}, {"num_arrays": 2},
        listed=True, trains=False)
    add("precision", "all_finite", "all_finite", {"data": (1024, 1024)}, trains=False)
    add("image", "to_tensor", "_image_to_tensor", {"data": (16, 224, 224, 3)}, whole={"data": 256},
        dtypes={"data": "uint8"}, trains=False)
    add("image", "normalize", "_image_normalize", {"data": (16, 3, 224, 224)}, {"mean": (0.5, 0.5, 0.5),
                                                                              "std": (0.2, 0.2, 0.2)})
    add("image", "resize", "_image_resize", {"data": (480, 640, 3)}, {"size": (224, 224)}, whole={"data": 256},
        dtypes={"data": "uint8"}, trains=False, drawn=True)
    add("creation", "arange", "_arange", {}, {"start": 0, "stop": 1000000}, trains=False)
    add("creation", "zeros", "_zeros", {}, {"shape": (1024, 1024)}, trains=False)


for _part in (_elementwise, _moves, _layers, _places, _boxes, _others):
    _part()
CASES = {f"{case.family}: {case.name}": case for case in FOUND}
QUICK = ("relu", "elemwise_add", "transpose NHWC", "Concat channels", "sum of space", "softmax of classes", "3x3",
         "1x1", "max 3x3", "BatchNorm", "FullyConnected", "LSTM", "Embedding", "topk of classes", "ROIAlign",
         "DeformableConvolution", "CTCLoss")
