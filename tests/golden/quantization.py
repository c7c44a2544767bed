"""Golden cases of operators over numbers of 8 bits. MXNet's oneDNN computes them: without it, it has few of them."""
from __future__ import annotations

from golden.cases import Case, case

Shape = tuple[int, ...]
BITS = {"int8": (-128, 128), "uint8": (0, 256)}
CALIBRATED = {"min_calib_range": -1.5, "max_calib_range": 2.0}
POSITIVE = {"min_calib_range": 0.0, "max_calib_range": 2.0}


def cases() -> list[Case]:
    return _scales() + _products() + _layers() + _pairs()


def whole(op: str, label: str, arrays: dict[str, tuple[Shape, str]], ranges: dict[str, tuple[float, float]],
          attrs: dict[str, object] | None = None, floats: dict[str, Shape] | None = None,
          list_input: bool = False) -> Case:
    """Arrays of whole numbers, with a number for each end of the ranges; `floats`: others, of float32 in 0.5..2."""
    shapes = {name: shape for name, (shape, _) in arrays.items()} | (floats or {}) | dict.fromkeys(ranges, (1,))
    dtypes = {name: dtype for name, (_, dtype) in arrays.items()}
    spans = {name: BITS.get(dtype, (-2**30, 2**30)) for name, dtype in dtypes.items()}
    spans |= dict.fromkeys(floats or {}, (0.5, 2.0)) | dict(ranges)
    return case(op, label, shapes, attrs, dtypes=dtypes, spans=spans, integer=list(arrays), train=False,
                list_input=list_input)


def _span(name: str, low: float, high: float) -> dict[str, tuple[float, float]]:
    """The inputs min_NAME and max_NAME, each drawn near the number."""
    return {f"min_{name}": (low, low + 0.1), f"max_{name}": (high - 0.1, high)}


def _scales() -> list[Case]:
    made, ends = [], {"min_range": (-2.1, -2.0), "max_range": (3.0, 3.1)}
    for out_type in ("int8", "uint8"):
        for label, low in (("mixed", -2.0), ("positive", 0.0), ("wide", -7.0)):
            made.append(case("_contrib_quantize", f"{out_type}_{label}",
                             {"data": (3, 40), "min_range": (1,), "max_range": (1,)}, {"out_type": out_type},
                             span=(-4, 4), spans={"min_range": (low, low + 1e-6), "max_range": (3, 3.1)}, train=False))
    made.append(case("_contrib_quantize", "default", {"data": (5,), "min_range": (1,), "max_range": (1,)},
                     spans={"min_range": (-1, -0.9), "max_range": (0.9, 1)}, train=False))
    made.append(case("_contrib_quantize", "dtype", {"data": (5,), "min_range": (1,), "max_range": (1,)},
                     dtypes={"data": "float64"}, train=False))
    for out_type in ("int8", "uint8", "auto"):
        for label, attrs in (("own", {}), ("stated", CALIBRATED), ("positive", POSITIVE)):
            made.append(case("_contrib_quantize_v2", f"{out_type}_{label}", {"data": (3, 40)},
                             {"out_type": out_type, **attrs}, span=(-3, 4), train=False))
            for dtype in BITS:
                made.append(whole("_contrib_quantize_v2", f"{out_type}_{label}_of_{dtype}", {"data": ((9,), dtype)}, {},
                                  {"out_type": out_type, **attrs}))
    made.append(case("_contrib_quantize_v2", "own_positive", {"data": (30,)}, {"out_type": "uint8"}, span=(1, 4),
                     train=False))
    made.append(case("_contrib_quantize_v2", "one_end", {"data": (30,)}, {"min_calib_range": -1.0}, train=False))
    made += [case("_contrib_quantize_v2", "refused", {"data": (3,)}, dtype=dtype, train=False)
             for dtype in ("float64", "int32")]
    for label, span, attrs in (("own", (-3, 4), {}), ("stated", (-3, 4), CALIBRATED), ("positive", (1, 4), {}),
                               ("one_end", (-3, 4), {"min_calib_range": -1.0})):
        made.append(case("_contrib_quantize_asym", label, {"data": (3, 4, 10)}, attrs, span=span, train=False))
    made.append(case("_contrib_quantize_asym", "refused", {"data": (3, 4, 10)}, dtype="float64", train=False))
    for dtype in (*BITS, "int32"):
        made.append(whole("_contrib_dequantize", dtype, {"data": ((50,), dtype)}, ends))
        made.append(whole("_contrib_requantize", f"of_{dtype}", {"data": ((60,), dtype)}, ends))
    for out_type in ("int8", "uint8", "auto"):
        for label, attrs in (("own", {}), ("stated", CALIBRATED), ("positive", POSITIVE)):
            made.append(whole("_contrib_requantize", f"{out_type}_{label}", {"data": ((4, 30), "int32")}, ends,
                              {"out_type": out_type, **attrs}))
    return made


def _products() -> list[Case]:
    made = []
    ends = {**_span("data", 0, 3), **_span("weight", -1, 1.5)}
    biased = {**ends, **_span("bias", -0.3, 0.2)}

    def conv(label: str, data: Shape, filters: int, dtype: str = "uint8", bias: bool = True,
             **attrs: object) -> None:
        kernel = attrs["kernel"]
        assert isinstance(kernel, tuple)
        arrays = {"data": (data, dtype), "weight": ((filters, data[1], *kernel), "int8")}
        arrays |= {"bias": ((filters,), "int8")} if bias else {}
        made.append(whole("_contrib_quantized_conv", label, arrays, biased if bias else ends,
                          {"num_filter": filters, "no_bias": not bias, **attrs}))

    conv("plain", (2, 3, 7, 6), 4, kernel=(3, 3))
    conv("no_bias", (1, 4, 5, 5), 3, bias=False, kernel=(2, 2))
    conv("all", (2, 4, 9, 8), 6, kernel=(3, 2), stride=(2, 1), pad=(1, 1), dilate=(2, 1))
    conv("point", (1, 8, 3, 3), 5, kernel=(1, 1), layout="NCHW")
    conv("3d", (1, 2, 4, 4, 4), 3, kernel=(2, 2, 2))
    conv("1d", (1, 2, 4), 3, kernel=(2,))
    conv("int32", (1, 2, 4, 4), 3, dtype="int32", kernel=(2, 2))

    def product(label: str, data: Shape, hidden: int, dtype: str = "uint8", bias: bool = True, flatten: bool = True,
                weights: str = "int8") -> None:
        width = data[-1]
        for size in data[1:-1] if flatten else ():
            width *= size
        arrays = {"data": (data, dtype), "weight": ((hidden, width), weights)}
        arrays |= {"bias": ((hidden,), "int8")} if bias else {}
        made.append(whole("_contrib_quantized_fully_connected", label, arrays, biased if bias else ends,
                          {"num_hidden": hidden, "no_bias": not bias, "flatten": flatten}))

    for dtype in BITS:
        product(f"{dtype}_plain", (5, 33), 7, dtype)
        product(f"{dtype}_no_bias", (5, 3, 4), 6, dtype, bias=False)
    product("axes", (2, 3, 8), 5, flatten=False)
    product("weights", (2, 8), 5, weights="uint8")
    for dtype in (*BITS, "int32"):
        arrays = {"weight": ((6, 4), dtype)}
        made.append(case("_contrib_quantized_embedding", dtype, {"data": (2, 3), "weight": (6, 4), "min_weight": (1,),
                                                                 "max_weight": (1,)},
                         {"input_dim": 6, "output_dim": 4}, dtypes={"weight": arrays["weight"][1]},
                         spans={"data": (0, 6), "weight": BITS.get(dtype, (0, 9))}, integer=["data", "weight"],
                         train=False))
    return made


def _layers() -> list[Case]:
    made, ends = [], _span("data", -2, 3)
    for dtype in (*BITS, "int32"):
        data = {"data": ((2, 3, 7, 6), dtype)}
        for kind in ("max", "avg"):
            for label, attrs in (("plain", {"kernel": (3, 3)}), ("same", {"kernel": (3, 3), "pad": (1, 1)}),
                                 ("global", {"kernel": (1, 1), "global_pool": True}),
                                 ("full", {"kernel": (3, 2), "stride": (2, 2), "pooling_convention": "full"}),
                                 ("without", {"kernel": (3, 3), "pad": (1, 1), "count_include_pad": False})):
                made.append(whole("_contrib_quantized_pooling", f"{dtype}_{kind}_{label}", data, ends,
                                  {"pool_type": kind, **attrs}))
        made.append(whole("_contrib_quantized_act", dtype, data, ends, {"act_type": "relu"}))
    for kind in ("sum", "lp"):
        made.append(whole("_contrib_quantized_pooling", kind, {"data": ((1, 2, 4, 4), "int8")}, ends,
                          {"kernel": (2, 2), "pool_type": kind, "p_value": 2}))
    made.append(whole("_contrib_quantized_pooling", "1d", {"data": ((1, 2, 4), "int8")}, ends, {"kernel": (2,)}))
    made.append(whole("_contrib_quantized_pooling", "3d", {"data": ((1, 2, 4, 4, 4), "int8")}, ends,
                      {"kernel": (2, 2, 2)}))
    for kind in ("sigmoid", "tanh", "softrelu", "softsign"):
        made.append(whole("_contrib_quantized_act", kind, {"data": ((5,), "int8")}, ends, {"act_type": kind}))
    for dtype in BITS:
        made.append(whole("_contrib_quantized_flatten", dtype, {"data": ((2, 3, 4), dtype)}, ends))
        for label, attrs in (("fixed", {}), ("free", {"fix_gamma": False, "eps": 1e-5})):
            made.append(_norm(f"{dtype}_{label}", dtype, {**attrs, "min_calib_range": -14.5, "max_calib_range": 16.0}))
    made.append(_norm("no_range", "int8", {}))
    return made


def _norm(label: str, dtype: str, attrs: dict[str, object]) -> Case:
    return whole("_contrib_quantized_batch_norm", label, {"data": ((2, 4, 5, 5), dtype)}, _span("data", -2, 3), attrs,
                 dict.fromkeys(("gamma", "beta", "moving_mean", "moving_var"), (4,)))


def _pairs() -> list[Case]:
    made = []
    for first in BITS:
        for second in BITS:
            arrays = {"lhs": ((2, 50), first), "rhs": ((2, 50), second)}
            ends = {"lhs_min": (-2, -1.9), "lhs_max": (3, 3.1), "rhs_min": (-1, -0.9), "rhs_max": (4, 4.1)}
            for label, attrs in (("own", {}), ("stated", CALIBRATED)):
                made.append(whole("_contrib_quantized_elemwise_add", f"{first}_{second}_{label}", arrays, ends, attrs))
            joined = {"a": ((2, 20), first), "b": ((2, 30), second)}
            spans = {"a_min": (-2, -1.9), "a_max": (3, 3.1), "b_min": (-1, -0.9), "b_max": (4, 4.1)}
            made.append(whole("_contrib_quantized_concat", f"{first}_{second}", joined, spans,
                              {"num_args": 2, "dim": 1}, list_input=True))
    for label, attrs in (("own", {}), ("stated", CALIBRATED), ("float", {"enable_float_output": True}),
                         ("float_stated", {"enable_float_output": True, **CALIBRATED})):
        made.append(whole("_contrib_quantized_elemwise_mul", label,
                          {"lhs": ((2, 50), "int8"), "rhs": ((2, 50), "int8")}, ends, attrs))
    three = {name: ((2, size), "uint8") for name, size in (("a", 3), ("b", 4), ("c", 5))}
    made.append(whole("_contrib_quantized_concat", "three", three,
                      {f"{name}_{end}": (k - 9, k - 8.9) if end == "min" else (k + 1, k + 1.1)
                       for k, name in enumerate(three) for end in ("min", "max")}, {"num_args": 3, "dim": 1},
                      list_input=True))
    return made


