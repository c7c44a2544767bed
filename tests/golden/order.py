"""Golden cases of sorting, scans and histograms."""
from __future__ import annotations

from golden.cases import Case, case
from golden.shape_cases import Row, row

TYPES = ("value", "indices", "mask", "both")


def cases() -> list[Case]:
    return _topk() + _sorts() + _cumsum() + _histogram()


def _topk() -> list[Case]:
    made = []
    for kind in TYPES:
        made.append(case("topk", kind, {"data": (2, 5)}, {"ret_typ": kind, "k": 2}, train=kind in ("value", "both")))
        made.append(case("topk", f"{kind}_middle", {"data": (2, 4, 3)},
                         {"ret_typ": kind, "k": 3, "axis": 1, "is_ascend": True}, train=kind == "value"))
        made.append(case("topk", f"{kind}_flat", {"data": (2, 3, 2)}, {"ret_typ": kind, "k": 4, "axis": None},
                         train=kind == "both"))
    for ascending in (False, True):
        label = "up" if ascending else "down"
        attrs = {"ret_typ": "both", "k": 0, "is_ascend": ascending}
        made.append(case("topk", f"ties_{label}", {"data": (2, 9)}, attrs, span=(0, 4), integer=["data"], train=False))
        for dtype in ("int32", "uint8", "int8", "int64"):
            low = 0 if dtype == "uint8" else -128
            made.append(case("topk", f"ties_{label}", {"data": (3, 15)}, attrs, dtype=dtype, span=(low, low + 20),
                             integer=["data"], train=False))
    for dtype in ("int32", "int64", "uint8", "float16", "float64"):
        made.append(case("topk", f"as_{dtype}", {"data": (2, 6)}, {"ret_typ": "both", "k": 3, "dtype": dtype},
                         train=False))
    made += [case("topk", "few", {"data": (2, 60)}, {"ret_typ": "both", "k": 3}),
             case("topk", "default", {"data": (3, 4)}, train=False),
             case("topk", "minus", {"data": (3, 4)}, {"k": -2}, train=False),
             case("topk", "first", {"data": (3, 4)}, {"k": 2, "axis": 0, "ret_typ": "value"}, dtype="float64"),
             case("topk", "half", {"data": (3, 9)}, {"k": 4, "ret_typ": "both"}, dtype="float16", train=False),
             case("topk", "wrap", {"data": (1, 300)}, {"k": 40, "dtype": "uint8"}, train=False),
             case("topk", "too_many", {"data": (3, 4)}, {"k": 5}),
             case("topk", "bad_axis", {"data": (3, 4)}, {"axis": 2}),
             case("topk", "bad_dtype", {"data": (3, 4)}, {"dtype": "int8"})]
    return made


def _sorts() -> list[Case]:
    made = []
    for op in ("sort", "argsort"):
        train = op == "sort"
        for label, attrs in (("plain", {}), ("down", {"is_ascend": False, "axis": -1}), ("middle", {"axis": 1}),
                             ("flat", {"axis": None, "is_ascend": False})):
            made.append(case(op, label, {"data": (2, 5, 3)}, attrs, train=train and label != "plain"))
        for dtype in ("float64", "int32", "uint8"):
            made.append(case(op, "ties", {"data": (2, 15)}, {"is_ascend": False}, dtype=dtype, span=(0, 5),
                             integer=["data"], train=False))
        made.append(case(op, "bad_axis", {"data": (3, 4)}, {"axis": -3}))
    for dtype in ("int32", "uint8", "float16", "int64"):
        made.append(case("argsort", f"as_{dtype}", {"data": (2, 6)}, {"axis": 0, "dtype": dtype}, train=False))
    return made


def _cumsum() -> list[Case]:
    made = []
    for label, attrs in (("flat", {}), ("first", {"axis": 0}), ("middle", {"axis": 1}), ("last", {"axis": 2})):
        made.append(case("cumsum", label, {"a": (2, 3, 4)}, attrs, train=label in ("flat", "middle")))
    for dtype in ("int32", "int8", "uint8", "bool"):
        made.append(case("cumsum", "plain", {"a": (2, 9)}, {"axis": 1}, dtype=dtype, span=(0, 60), integer=["a"],
                         train=False))
    for dtype, asked in (("float32", "int64"), ("int8", "int32"), ("int8", "float32"), ("float16", "float32"),
                         ("bool", "float64")):
        made.append(case("cumsum", f"as_{asked}", {"a": (2, 9)}, {"axis": 1, "dtype": asked}, dtype=dtype,
                         span=(0, 60), integer=["a"], train=False))
    made += [case("cumsum", "half", {"a": (3, 5)}, {"axis": 1}, dtype="float16"),
             case("cumsum", "wide", {"a": (3, 4)}, {"axis": 0, "dtype": "float64"}),
             case("cumsum", "bad_axis", {"a": (3, 4)}, {"axis": 2})]
    return made


def _histogram() -> list[Case]:
    made = []
    for dtype in ("float32", "float64", "float16"):
        made.append(case("_histogram", "even", {"data": (4, 9)}, {"bin_cnt": 7, "range": (-0.9, 0.8)}, dtype=dtype,
                         train=False))
    for dtype in ("int32", "uint8"):
        made.append(case("_histogram", "even", {"data": (40,)}, {"bin_cnt": 4, "range": (1, 7)}, dtype=dtype,
                         span=(0, 9), integer=["data"], train=False))
        made.append(case("_histogram", "edges", {"data": (40,), "bins": (1 + 1,)}, dtype=dtype, span=(0, 9),
                         spans={"bins": (3, 4)}, integer=["data", "bins"], train=False))
    made += [case("_histogram", "edges", {"data": (4, 9), "bins": (2,)}, spans={"bins": (-0.1, 0)}, train=False),
             case("_histogram", "no_range", {"data": (9,)}, {"bin_cnt": 3}, train=False),
             case("_histogram", "down", {"data": (9,)}, {"bin_cnt": 3, "range": (1, 0)}, train=False),
             case("_histogram", "mixed", {"data": (9,), "bins": (4,)}, dtypes={"data": "int32"}, train=False),
             case("_histogram", "matrix", {"data": (9,), "bins": (1, 4)}, train=False)]
    return made


def rows() -> list[Row]:
    made = []
    for data in ((2, 3, 4), (0, 3, 4), (2, 0, 4)):
        for kind in TYPES:
            made.append(row("topk", {"data": data}, {"k": 2, "axis": 1, "ret_typ": kind}))
        made.append(row("topk", {"data": data}, {"k": 2, "axis": None}))
        made.append(row("topk", {"data": data}, {"k": 0}))
        made.append(row("sort", {"data": data}))
        made.append(row("argsort", {"data": data}, {"axis": None}))
        made.append(row("cumsum", {"a": data}, {"axis": 1}))
        made.append(row("cumsum", {"a": data}))
        made.append(row("_histogram", {"data": data}, {"bin_cnt": 3, "range": (0, 1)}))
        made.append(row("_histogram", {"data": data, "bins": (5,)}))
    made += [row("topk", {"data": (2, 3)}, {"k": 4}),
             row("cumsum", {"a": (0, 3)}, {"axis": 1}, (2, 3)),
             row("sort", {"data": (2, 3)}, {"axis": 2})]
    return made
