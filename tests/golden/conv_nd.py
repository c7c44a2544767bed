"""Golden cases of convolutions and pooling over one and three axes of space."""
from __future__ import annotations

from golden.cases import Case, case


def cases() -> list[Case]:
    return _convolutions() + _deconvolutions() + _pooling()


def _convolutions() -> list[Case]:
    made = []

    def conv(label: str, data: tuple[int, ...], filters: int, group: int = 1, bias: bool = True, train: bool = True,
             dtype: str = "float32", **attrs: object) -> None:
        kernel = attrs["kernel"]
        assert isinstance(kernel, tuple)
        shapes = {"data": data, "weight": (filters, data[1] // group, *kernel)}
        made.append(case("Convolution", label, shapes | ({"bias": (filters,)} if bias else {}),
                         {"num_filter": filters, "num_group": group, "no_bias": not bias, **attrs}, dtype=dtype,
                         train=train))

    conv("1d_plain", (2, 3, 9), 4, kernel=(3,))
    conv("1d_all", (2, 4, 11), 6, 2, kernel=(3,), stride=(2,), pad=(2,), dilate=(2,))
    conv("1d_depthwise", (1, 4, 9), 4, 4, bias=False, kernel=(3,), pad=(1,))
    conv("1d_layout", (1, 2, 6), 3, kernel=(2,), layout="NCW", train=False)
    conv("1d_plain", (1, 2, 6), 3, dtype="float64", kernel=(2,))
    conv("1d_pointwise", (2, 3, 5), 4, kernel=(1,), train=False)
    conv("1d_too_large", (2, 3, 5), 4, kernel=(6,))
    conv("1d_ranks", (2, 3, 5), 4, kernel=(3,), stride=(1, 1))
    conv("3d_plain", (1, 2, 4, 5, 4), 3, kernel=(2, 3, 2))
    conv("3d_all", (1, 4, 5, 6, 5), 4, 2, kernel=(3, 2, 3), stride=(2, 1, 2), pad=(1, 0, 2), dilate=(1, 2, 1))
    conv("3d_depthwise", (1, 3, 3, 4, 4), 3, 3, bias=False, kernel=(2, 3, 3), pad=(0, 1, 1), train=False)
    conv("3d_layout", (1, 2, 3, 3, 3), 3, kernel=(2, 2, 2), layout="NCDHW", train=False)
    conv("3d_pointwise", (1, 3, 2, 2, 3), 4, kernel=(1, 1, 1), stride=(1, 2, 1), train=False)
    conv("3d_plain", (1, 2, 3, 3, 3), 2, dtype="float64", kernel=(2, 2, 2), pad=(1, 1, 1))
    return made


def _deconvolutions() -> list[Case]:
    made = []

    def deconv(label: str, data: tuple[int, ...], filters: int, group: int = 1, bias: bool = False, train: bool = True,
               dtype: str = "float32", **attrs: object) -> None:
        kernel = attrs["kernel"]
        assert isinstance(kernel, tuple)
        shapes = {"data": data, "weight": (data[1], filters // group, *kernel)}
        made.append(case("Deconvolution", label, shapes | ({"bias": (filters,)} if bias else {}),
                         {"num_filter": filters, "num_group": group, "no_bias": not bias, **attrs}, dtype=dtype,
                         train=train))

    deconv("1d_plain", (2, 3, 5), 4, kernel=(3,))
    deconv("1d_all", (2, 4, 5), 6, 2, bias=True, kernel=(4,), stride=(3,), pad=(1,), adj=(2,), dilate=(2,))
    deconv("1d_target", (1, 2, 5), 2, kernel=(3,), stride=(2,), target_shape=(10,), train=False)
    deconv("1d_plain", (1, 2, 4), 2, dtype="float64", kernel=(2,), stride=(2,))
    deconv("3d_plain", (1, 2, 2, 3, 2), 3, kernel=(2, 3, 2), stride=(2, 1, 2))
    deconv("3d_all", (1, 4, 3, 2, 3), 4, 2, bias=True, kernel=(3, 2, 3), stride=(2, 2, 1), pad=(1, 0, 1), adj=(1, 1, 0))
    return made


def _pooling() -> list[Case]:
    made = []
    for kind in ("max", "avg", "sum"):
        for convention in ("valid", "full"):
            attrs = {"pool_type": kind, "pooling_convention": convention}
            made.append(case("Pooling", f"1d_{kind}_{convention}", {"data": (2, 2, 8)},
                             {**attrs, "kernel": (3,), "stride": (2,), "pad": (1,)}, train=convention == "valid"))
            made.append(case("Pooling", f"3d_{kind}_{convention}", {"data": (1, 2, 4, 5, 4)},
                             {**attrs, "kernel": (2, 3, 2), "stride": (2, 2, 1)}, train=kind != "avg"))
        made.append(case("Pooling", f"1d_{kind}_global", {"data": (2, 3, 5)}, {"pool_type": kind, "global_pool": True},
                         train=kind == "max"))
        made.append(case("Pooling", f"3d_{kind}_global", {"data": (1, 2, 2, 3, 2)},
                         {"pool_type": kind, "global_pool": True}, train=False))
    for p in (1, 2, 3):
        made.append(case("Pooling", f"1d_lp{p}", {"data": (2, 2, 7)},
                         {"pool_type": "lp", "p_value": p, "kernel": (3,), "stride": (2,)}, span=(0.2, 1)))
        made.append(case("Pooling", f"3d_lp{p}", {"data": (1, 2, 3, 3, 4)},
                         {"pool_type": "lp", "p_value": p, "kernel": (2, 2, 2)}, span=(0.2, 1), train=p == 3))
    for include in (True, False):
        attrs = {"pool_type": "avg", "count_include_pad": include}
        made.append(case("Pooling", f"1d_count_{include}", {"data": (1, 2, 7)},
                         {**attrs, "kernel": (3,), "stride": (2,), "pad": (1,)}))
        made.append(case("Pooling", f"3d_count_{include}", {"data": (1, 1, 4, 4, 3)},
                         {**attrs, "kernel": (2, 3, 3), "stride": (2, 1, 2), "pad": (1, 1, 1)}, train=not include))
    for layout, shape in (("NCW", (1, 3, 6)), ("NWC", (1, 6, 3)), ("NCDHW", (1, 2, 3, 4, 3)),
                          ("NDHWC", (1, 3, 4, 3, 2))):
        rank = len(shape) - 2
        for kind in ("max", "avg"):
            made.append(case("Pooling", f"{layout}_{kind}", {"data": shape},
                             {"layout": layout, "pool_type": kind, "kernel": (2,) * rank, "stride": (2,) * rank}))
    made += [case("Pooling", "1d_half", {"data": (1, 2, 7)}, {"pool_type": "avg", "kernel": (3,)}, dtype="float16"),
             case("Pooling", "1d_same", {"data": (1, 2, 7)}, {"kernel": (3,), "pooling_convention": "same"}),
             case("Pooling", "3d_same", {"data": (1, 2, 4, 4, 4)},
                  {"kernel": (3, 3, 3), "pooling_convention": "same"}),
             case("Pooling", "1d_ranks", {"data": (1, 2, 7)}, {"kernel": (3, 3)}),
             case("Pooling", "3d_big", {"data": (1, 2, 4, 4, 4)}, {"kernel": (5, 2, 2)})]
    return made
