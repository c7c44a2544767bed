"""Golden cases of operators on boxes."""
from __future__ import annotations

from golden.cases import Case, case
from golden.shape_cases import Row, row

Shape = tuple[int, ...]


def cases() -> list[Case]:
    return _nms() + _decode() + _iou()


def _nms() -> list[Case]:
    def nms(label: str, shape: Shape = (8, 6), span: tuple[float, float] = (0, 3), train: bool = False,
            dtype: str = "float32", whole: bool = False, op: str = "_contrib_box_nms", **attrs: object) -> Case:
        return case(op, label, {"data": shape}, attrs, dtype, span=span, integer=["data"] if whole else [], train=train)

    return [
        nms("train", overlap_thresh=0.1, train=True),
        nms("batch", (2, 9, 6), overlap_thresh=0.05, train=True),
        nms("classes", (12, 6), id_index=0, overlap_thresh=0.05, train=True),
        nms("ties", (14, 6), (0, 4), whole=True, overlap_thresh=0.05),
        nms("ties_classes", (2, 12, 6), (0, 3), whole=True, overlap_thresh=0.05, id_index=0),
        nms("force", (12, 6), id_index=0, force_suppress=True, overlap_thresh=0.05),
        nms("background", (2, 12, 6), (0, 3), whole=True, id_index=0, background_id=1, overlap_thresh=0.05),
        nms("background_alone", (12, 6), (0, 3), whole=True, background_id=1, overlap_thresh=0.05),
        nms("topk", (2, 10, 6), topk=4, overlap_thresh=0.05),
        nms("topk_none", (5, 6), topk=0, train=True, out_format="center"),
        nms("topk_less", (5, 6), topk=-3),
        nms("valid", (2, 9, 6), valid_thresh=1.5, overlap_thresh=0.05),
        nms("valid_none", (4, 6), valid_thresh=9, train=True),
        nms("below", (9, 6), (-2, 2), overlap_thresh=0.01),
        nms("any_overlap", (9, 6), overlap_thresh=0),
        nms("negative_overlap", (6, 6), overlap_thresh=-1),
        nms("center", (9, 6), in_format="center", overlap_thresh=0.3),
        nms("centers", (9, 6), (-1, 3), in_format="center", out_format="center", overlap_thresh=0.3, train=True),
        nms("to_center", (9, 6), (-1, 3), out_format="center", overlap_thresh=0.05),
        nms("to_corner", (2, 9, 7), (-1, 3), in_format="center", overlap_thresh=0.3, coord_start=1, score_index=5,
            id_index=6),
        nms("many_axes", (2, 2, 5, 5), coord_start=1, score_index=0, overlap_thresh=0.05),
        nms("long", (2, 60, 6), id_index=0, overlap_thresh=0.2),
        nms("alias", op="_contrib_box_non_maximum_suppression", overlap_thresh=0.1),
        nms("plain", dtype="float64", overlap_thresh=0.1, train=True),
        nms("half", dtype="float16", overlap_thresh=0.1),
        nms("whole", dtype="int32", whole=True),
        nms("bad_rank", (6,)), nms("narrow", (4, 5)), nms("bad_coord", coord_start=3), nms("bad_score", score_index=6),
        nms("bad_id", id_index=6), nms("score_in_box", score_index=2), nms("id_in_box", id_index=3),
        nms("same_columns", id_index=1), nms("negative_score", score_index=-1)]


def _decode() -> list[Case]:
    def decode(label: str, data: Shape = (2, 3, 4), anchors: Shape = (1, 3, 4), dtype: str = "float32",
               train: bool = False, **attrs: object) -> Case:
        return case("_contrib_box_decode", label, {"data": data, "anchors": anchors}, attrs, dtype, span=(0, 2),
                    train=train)

    stds = {"std0": 0.1, "std1": 0.2, "std2": 0.3, "std3": 0.4}
    return [decode("train", train=True), decode("stds", **stds), decode("corner", format="corner", **stds),
            decode("clip", clip=0.7, std2=0.5), decode("no_clip", clip=0), decode("plain", dtype="float64", **stds),
            decode("half", dtype="float16"), decode("one", (1, 5, 4), (1, 5, 4)), decode("bad_rank", (3, 4)),
            decode("bad_anchors", anchors=(3, 4)), decode("bad_width", (2, 3, 5)), decode("other", anchors=(1, 2, 4)),
            decode("batch", anchors=(2, 3, 4)), decode("bad_format", format="middle")]


def _iou() -> list[Case]:
    def iou(label: str, lhs: Shape = (4, 4), rhs: Shape = (5, 4), dtype: str = "float32", train: bool = False,
            span: tuple[float, float] = (0, 2), **attrs: object) -> Case:
        return case("_contrib_box_iou", label, {"lhs": lhs, "rhs": rhs}, attrs, dtype, span=span, train=train)

    return [iou("train", train=True), iou("center", format="center"), iou("signs", format="center", span=(-2, 2)),
            iou("corners", span=(-2, 2)), iou("axes", (2, 3, 4), (2, 2, 4)), iou("axes_center", (2, 4), (1, 2, 3, 4),
                                                                                format="center"),
            iou("plain", dtype="float64"), iou("half", dtype="float16", format="center"),
            case("_contrib_box_iou", "whole", {"lhs": (6, 4), "rhs": (6, 4)}, span=(0, 3), integer=["lhs", "rhs"],
                 train=False),
            iou("vector", (4,)), iou("bad_width", (4, 5)),
            case("_contrib_box_iou", "mixed", {"lhs": (2, 4), "rhs": (2, 4)}, dtypes={"rhs": "float64"})]


def rows() -> list[Row]:
    made = []
    knowns: list[Shape | None] = [(2, 7, 6), (1, 2, 3, 6), (2, 7, 5), (6,)]
    for data in knowns:
        made.append(row("_contrib_box_nms", {"data": data}))
    made.append(row("_contrib_box_nms", {"data": (2, 7, 6)}, {"id_index": 2}))
    for data, anchors in [((2, 3, 4), (1, 3, 4)), ((0, 3, 4), (1, 3, 4)), ((2, 3, 4), (3, 4)), ((2, 3, 5), (1, 3, 4))]:
        made.append(row("_contrib_box_decode", {"data": data, "anchors": anchors}))
    for lhs, rhs in [((2, 3, 4), (5, 4)), ((0, 3, 4), (1, 5, 4)), ((4,), (5, 4)), ((2, 4), (2, 3))]:
        made.append(row("_contrib_box_iou", {"lhs": lhs, "rhs": rhs}))
    return made
