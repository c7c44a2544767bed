"""Golden cases of reading and writing at indices: inside the array and beyond, whole numbers and others."""
from __future__ import annotations

from golden.cases import Case, case
from golden.shape_cases import Known, Row, row

Shape = tuple[int, ...]
Span = tuple[float, float]


def cases() -> list[Case]:
    return _embedding() + _take() + _pick() + _one_hot() + _nd() + _places() + _copy()


def _embedding() -> list[Case]:
    def one(label: str, data: Shape = (2, 3), dtype: str = "float32", index: str = "float32", train: bool = False,
            span: Span = (-2, 7), weight: Shape = (5, 3), **more: object) -> Case:
        attrs = {"input_dim": 5, "output_dim": 3, **more}
        return case("Embedding", label, {"data": data, "weight": weight}, attrs, dtype, {"data": index},
                    spans={"data": span}, no_grad=["data"], train=train)

    return [one("train", train=True), one("repeated", (11,)), one("int_index", index="int32", train=True),
            one("inside", index="int64", span=(0, 5)), one("byte", index="uint8", span=(0, 9)),
            one("wide", span=(-1e9, 1e9)), one("huge", span=(-9e9, 9e9)), one("half_index", index="float16"),
            one("one", (1,)), one("four", (1, 2, 1, 3)), one("half", dtype="float16", train=True),
            one("plain", dtype="float64"), one("bad_weight", weight=(4, 3)),
            one("dense", op="_contrib_SparseEmbedding", train=True), one("told", sparse_grad=False)]


def _take() -> list[Case]:
    def one(label: str, a: Shape = (4, 3), indices: Shape = (2, 3), dtype: str = "float32", index: str = "float32",
            train: bool = False, span: Span = (-9, 9), **attrs: object) -> Case:
        return case("take", label, {"a": a, "indices": indices}, attrs, dtype, {"indices": index},
                    spans={"indices": span}, integer=["a"] if "int" in dtype else [], train=train)

    made = []
    for mode in ("clip", "wrap"):
        made += [one(f"{mode}_train", train=True, mode=mode), one(f"{mode}_int", index="int32", mode=mode),
                 one(f"{mode}_last", (2, 3, 4), (5,), axis=-1, mode=mode, train=True),
                 one(f"{mode}_middle", (2, 3, 2), (2, 2), axis=1, mode=mode, train=mode == "clip"),
                 one(f"{mode}_long", index="int64", mode=mode), one(f"{mode}_byte", index="int8", mode=mode)]
    return [*made, one("raise_train", span=(0, 3.9), index="int32", train=True, mode="raise"),
            one("raise_middle", (2, 3, 2), (4,), span=(0, 3), index="int64", axis=1, mode="raise"),
            one("vector", (5,), (3,)),
            one("half", dtype="float16", train=True), one("plain", dtype="float64"),
            one("whole", dtype="int32"), one("small", dtype="uint8", span=(0, 4)), one("bad_axis", axis=2),
            one("bad_axis_low", axis=-3), one("bad_mode", mode="fold"), one("huge", span=(-9e9, 9e9))]


def _pick() -> list[Case]:
    def one(label: str, data: Shape = (4, 3), index: Shape = (4,), dtype: str = "float32", kind: str = "float32",
            train: bool = False, span: Span = (-5, 5), op: str = "pick", **attrs: object) -> Case:
        return case(op, label, {"data": data, "index": index}, attrs, dtype, {"index": kind}, spans={"index": span},
                    integer=["data"] if "int" in dtype else [], train=train)

    made = []
    for mode in ("clip", "wrap"):
        made += [one(f"{mode}_train", train=True, mode=mode), one(f"{mode}_int", kind="int32", mode=mode),
                 one(f"{mode}_axis", (2, 3, 2), (2, 2), axis=1, mode=mode, train=True),
                 one(f"{mode}_huge", span=(-9e9, 9e9), mode=mode)]
    return [*made, one("keep", (2, 3, 2), (2, 2), axis=1, keepdims=True, train=True),
            one("index_kept", index=(4, 1), train=True), one("both_kept", index=(4, 1), keepdims=True),
            one("vector", (5,), (1,), train=True), one("vector_kept", (5,), (1,), keepdims=True),
            one("first", (4, 3), (3,), axis=0, train=True), one("byte", kind="uint8", span=(0, 5)),
            one("whole", dtype="int32"), one("half", dtype="float16"), one("none", axis=None),
            one("bad_axis", axis=2), one("bad_index", index=(3,)), one("bad_mode", mode="raise"),
            one("alias", op="choose_element_0index"),
            case("batch_take", "plain", {"a": (4, 3), "indices": (4,)}, dtypes={"indices": "int32"},
                 spans={"indices": (-3, 6)}, integer=["indices"], train=False),
            case("batch_take", "half", {"a": (4, 3), "indices": (4,)}, dtype="float16", dtypes={"indices": "int32"},
                 spans={"indices": (0, 3)}, integer=["indices"], train=False),
            case("batch_take", "float_index", {"a": (4, 3), "indices": (4,)}, train=False),
            case("batch_take", "bad", {"a": (4, 3), "indices": (3,)}, dtypes={"indices": "int32"}, train=False)]


def _one_hot() -> list[Case]:
    def one(label: str, indices: Shape = (5,), kind: str = "float32", train: bool = False, span: Span = (-2, 6),
            **attrs: object) -> Case:
        return case("one_hot", label, {"indices": indices}, {"depth": 4, **attrs}, kind, span=span, train=train)

    return [one("train", train=True), one("int", kind="int32"), one("matrix", (2, 3), kind="int64"),
            one("values", on_value=2.5, off_value=-1), one("byte", dtype="uint8", on_value=300.7, off_value=-1),
            one("half", dtype="float16", on_value=0.3), one("whole", dtype="int32", on_value=-1.7, off_value=3),
            one("double", dtype="float64"), one("one", depth=1), one("bad_depth", depth=-1),
            one("huge", span=(-9e9, 9e9)), one("half_index", kind="float16"), one("bad_dtype", dtype="bool")]


def _nd() -> list[Case]:
    def gather(label: str, data: Shape, indices: Shape, span: Span, dtype: str = "float32", index: str = "int32",
               train: bool = False) -> Case:
        return case("gather_nd", label, {"data": data, "indices": indices}, None, dtype, {"indices": index},
                    spans={"indices": span}, integer=["indices"], train=train)

    def scatter(label: str, data: Shape, indices: Shape, span: Span, shape: Shape, dtype: str = "float32",
                index: str = "int32", train: bool = False) -> Case:
        return case("scatter_nd", label, {"data": data, "indices": indices}, {"shape": shape}, dtype,
                    {"indices": index}, spans={"indices": span}, integer=["indices"], train=train)

    return [gather("train", (3, 4), (2, 5), (0, 3), train=True), gather("rows", (3, 4), (1, 5), (0, 3), train=True),
            gather("tensor", (2, 3, 2), (2, 2, 3), (0, 2), train=True),
            gather("whole", (2, 2), (2, 3), (0, 2), "int32"),
            gather("float_index", (3, 4), (2, 5), (0, 3), index="float32", train=True),
            gather("negative", (3, 4), (2, 5), (-3, 3)), gather("half", (3, 4), (1, 5), (0, 3), "float16", train=True),
            gather("bad_rank", (3, 4), (3, 5), (0, 3)), gather("bad_indices", (3, 4), (2,), (0, 3)),
            gather("long", (3, 4), (2, 5), (0, 3), index="int64"),
            scatter("train", (3,), (2, 3), (0, 9), (9, 9), train=True),
            scatter("repeated", (9,), (1, 9), (0, 3), (3,)),
            scatter("rows", (2, 3), (1, 2), (0, 9), (9, 3), train=True),
            scatter("tensor", (2, 2, 3), (1, 2, 2), (0, 9), (9, 3)),
            scatter("float_index", (3,), (2, 3), (0, 3), (3, 3), index="float32"),
            scatter("half", (4,), (1, 4), (0, 9), (9,), "float16"),
            scatter("long", (4,), (1, 4), (0, 9), (9,), "float64", "int64"),
            scatter("bad_data", (4,), (1, 5), (0, 9), (9,)), scatter("bad_rank", (4,), (2, 4), (0, 9), (9,)),
            scatter("bad_rest", (4, 2), (1, 4), (0, 9), (9, 3))]


def _places() -> list[Case]:
    def one(op: str, label: str, data: Shape, span: Span, dtype: str = "float32", train: bool = False,
            **attrs: object) -> Case:
        return case(op, label, {"data": data}, attrs, dtype, span=span, train=train)

    return [one("_ravel_multi_index", "train", (2, 5), (0, 6), shape=(7, 6), train=True),
            one("_ravel_multi_index", "three", (3, 4), (-3, 9), "int32", shape=(7, 6, 5)),
            one("_ravel_multi_index", "open", (2, 4), (0, 6), "int64", shape=(-1, 6)),
            one("_ravel_multi_index", "byte", (2, 4), (0, 9), "uint8", shape=(70, 60)),
            one("_ravel_multi_index", "bad_rows", (3, 4), (0, 9), shape=(7, 6)),
            one("_ravel_multi_index", "bad_rank", (2,), (0, 9), shape=(7, 6)),
            one("_ravel_multi_index", "no_shape", (2, 4), (0, 9)),
            one("_unravel_index", "train", (5,), (0, 42), shape=(7, 6), train=True),
            one("_unravel_index", "three", (7,), (-99, 300), "int32", shape=(7, 6, 5)),
            one("_unravel_index", "open", (5,), (0, 99), "int64", shape=(-1, 6)),
            one("_unravel_index", "vector", (4,), (0, 9), shape=(9,)),
            one("_unravel_index", "no_shape", (5,), (0, 9))]


def _copy() -> list[Case]:
    def one(label: str, index: str = "int32", dtype: str = "float32", new: Shape = (2, 2), count: int = 2,
            span: Span = (0, 4), train: bool = False) -> Case:
        shapes: dict[str, Shape] = {"old_tensor": (4, 2), "index_vector": (count,), "new_tensor": new}
        return case("_contrib_index_copy", label, shapes, None, dtype, {"index_vector": index},
                    spans={"index_vector": span}, integer=["index_vector"], no_grad=["index_vector"], train=train)

    return [one("train", train=True), one("float_index", "float32", train=True),
            one("repeated", count=4, new=(4, 2), train=True),
            one("long_index", count=6, new=(6, 2)), one("long", "int64"), one("half", dtype="float16"),
            one("bad_count", count=3), one("bad_rest", new=(2, 3))]


def rows() -> list[Row]:
    made: list[Row] = []
    data: Known
    for data, weight, out in (((2, 3), None, None), ((0, 3), None, None), (None, None, None), (None, (5, 3), None),
                              ((4,), (0, 0), None), ((4,), (5, 2), None), (None, None, (2, 3))):
        made.append(row("Embedding", {"data": data, "weight": weight}, {"input_dim": 5, "output_dim": 3}, out))
    for op, second in (("take", "indices"), ("pick", "index")):
        for data, index in (((3, 4), (3,)), ((3, 4), None), (None, (3,)), ((0, 4), (3,)), ((3, 4, 5), (3, 4)),
                            ((3, 4), (0,)), ((3,), (1,))):
            if data or op == "pick":  # take's axis must be one of a's
                made.append(row(op, {"a" if op == "take" else "data": data, second: index}))
    for axis in (0, 1, -1, -2, 2):
        made += [row("take", {"a": (3, 4), "indices": (2, 5)}, {"axis": axis}),
                 row("pick", {"data": (3, 4), "index": None}, {"axis": axis}),
                 row("pick", {"data": (3, 4), "index": None}, {"axis": axis, "keepdims": True})]
    made += [row("pick", {"data": (3, 4, 5), "index": (3, 1, 5)}, {"axis": 1}),
             row("pick", {"data": (3, 4, 5), "index": (0, 1, 0)}, {"axis": 1}),
             row("pick", {"data": (3, 4, 5), "index": (3, 4)}, {"axis": 1}),
             row("one_hot", {"indices": (2, 3)}, {"depth": 4}), row("one_hot", {"indices": (0, 3)}, {"depth": 4}),
             row("one_hot", {"indices": None}, {"depth": 4}, (2, 4)),
             row("one_hot", {"indices": (2,)}, {"depth": 4}, (2, 5))]
    for data, indices in (((3, 4), (2, 5)), ((3, 4), (1, 5)), ((3, 4, 5), (2, 2, 2)), ((3, 4), None), (None, (2, 5)),
                          ((3, 4), (3, 5)), ((3, 4), (2,)), ((0, 4), (1, 5))):
        made.append(row("gather_nd", {"data": data, "indices": indices}))
    for data, indices in (((5,), (2, 5)), (None, (2, 5)), ((5, 4), (1, 5)), ((5, 3), (1, 5)), ((5,), None),
                          ((5,), (3, 5)), ((1,), (2,))):
        made.append(row("scatter_nd", {"data": data, "indices": indices}, {"shape": (3, 4)}))
    for op, shapes in (("_ravel_multi_index", [(2, 5), (3, 5), (2,), None]), ("_unravel_index", [(5,), (0,), None])):
        made += [row(op, {"data": shape}, {"shape": (3, 4)}) for shape in shapes]
    return made
