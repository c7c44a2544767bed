"""Golden cases of operators on boxes."""
from __future__ import annotations

from golden.cases import Case, case
from golden.shape_cases import Row, row

Shape = tuple[int, ...]


def cases() -> list[Case]:
    return _nms() + _decode() + _iou() + _encode() + _matching() + _prior() + _detection() + _target()


def _nms() -> list[Case]:
    def nms(label: str, shape: Shape = (8, 6), span: tuple[float, float] = (0, 3), train: bool = False,
            dtype: str = "float32", whole: bool = False, op: str = "_contrib_box_nms", **attrs: object) -> Case:
        return case(op, label, {"data": shape}, attrs, dtype, span=span, integer=["data"] if whole else [], train=train)

    return [
        nms("train", overlap_thresh=0.1, train=True),
        nms("batch", (2, 9, 6), overlap_thresh=0.1, train=True),
        nms("classes", (12, 6), id_index=0, overlap_thresh=0.1, train=True),
        nms("ties", (14, 6), (0, 4), whole=True, overlap_thresh=0.1),
        nms("ties_classes", (2, 12, 6), (0, 3), whole=True, overlap_thresh=0.1, id_index=0),
        nms("force", (12, 6), id_index=0, force_suppress=True, overlap_thresh=0.1),
        nms("background", (2, 12, 6), (0, 3), whole=True, id_index=0, background_id=1, overlap_thresh=0.1),
        nms("background_below", (2, 12, 6), (-2, 2), whole=True, id_index=0, valid_thresh=-2, overlap_thresh=0.1),
        nms("background_alone", (12, 6), (0, 3), whole=True, background_id=1, overlap_thresh=0.1),
        nms("topk", (2, 10, 6), topk=4, overlap_thresh=0.1),
        nms("topk_none", (5, 6), topk=0, train=True, out_format="center"),
        nms("topk_less", (5, 6), topk=-3),
        nms("valid", (2, 9, 6), valid_thresh=1.5, overlap_thresh=0.1),
        nms("valid_none", (4, 6), valid_thresh=9, train=True),
        nms("below", (9, 6), (-2, 2), overlap_thresh=0.1),
        nms("any_overlap", (9, 6), overlap_thresh=0),
        nms("negative_overlap", (6, 6), overlap_thresh=-1),
        nms("center", (9, 6), in_format="center", overlap_thresh=0.1),
        nms("centers", (9, 6), (-1, 3), in_format="center", out_format="center", overlap_thresh=0.1, train=True),
        nms("to_center", (9, 6), (-1, 3), out_format="center", overlap_thresh=0.1),
        nms("to_corner", (2, 9, 7), (-1, 3), in_format="center", overlap_thresh=0.1, coord_start=1, score_index=5,
            id_index=6),
        nms("many_axes", (2, 2, 5, 5), coord_start=1, score_index=0, overlap_thresh=0.1),
        nms("long", (2, 60, 6), id_index=0, overlap_thresh=0.1),
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


def _encode() -> list[Case]:
    def encode(label: str, batch: int = 2, boxes: int = 5, others: int = 3, dtype: str = "float32",
               train: bool = False, **changed: Shape) -> Case:
        shapes: dict[str, Shape] = {"samples": (batch, boxes), "matches": (batch, boxes), "anchors": (batch, boxes, 4),
                                    "refs": (batch, others, 4), "means": (4,), "stds": (4,)} | changed
        return case("_contrib_box_encode", label, shapes, dtype=dtype, train=train, integer=["matches"], span=(0, 1),
                    spans={"samples": (-1, 2), "matches": (0, others), "stds": (0.5, 2)})

    return [encode("train", train=True), encode("one", 1, 7, 1), encode("plain", dtype="float64"),
            encode("half", dtype="float16"), encode("bad_means", means=(3,)), encode("bad_anchors", anchors=(5, 4))]


def _matching() -> list[Case]:
    def match(label: str, data: Shape = (4, 3), dtype: str = "float32", train: bool = False, whole: bool = False,
              **attrs: object) -> Case:
        return case("_contrib_bipartite_matching", label, {"data": data}, attrs, dtype, span=(0, 4),
                    integer=["data"] if whole else [], train=train)

    return [match("train", threshold=1, train=True), match("batch", (2, 3, 5), threshold=1),
            match("axes", (2, 2, 3, 2), threshold=1), match("ascend", (2, 4, 4), threshold=2, is_ascend=True),
            match("all", (5, 4), threshold=-1), match("ties", (2, 4, 5), threshold=1, whole=True),
            match("ties_ascend", (2, 5, 4), threshold=2, is_ascend=True, whole=True),
            match("topk", (6, 6), threshold=1, topk=1), match("topk_two", (6, 6), threshold=1, topk=2),
            match("topk_none", (6, 6), threshold=1, topk=0), match("plain", dtype="float64", threshold=1),
            match("half", dtype="float16", threshold=1), match("vector", (4,), threshold=1), match("no_threshold")]


def _prior() -> list[Case]:
    def prior(label: str, data: Shape = (1, 2, 2, 3), dtype: str = "float32", train: bool = False,
              **attrs: object) -> Case:
        return case("_contrib_MultiBoxPrior", label, {"data": data}, attrs, dtype, train=train)

    return [prior("default", train=True), prior("several", sizes=(0.5, 0.25), ratios=(1, 2, 0.5)),
            prior("clip", (2, 1, 3, 2), sizes=(1.5, 0.4), ratios=(2, 0.3), clip=True),
            prior("steps", steps=(0.3, 0.7), offsets=(0.2, 0.9)), prior("no_steps", steps=(-0.3, -0.7)),
            prior("half_steps", steps=(0, 0.5)), prior("negative", sizes=(-0.5,)),
            prior("no_ratio", ratios=(-0.5,)), prior("one", (1, 1, 1, 1), sizes=(0.3, 0.2, 0.1)),
            prior("mixed_steps", steps=(-0.5, 0.5)), prior("short_steps", steps=(0.5,)), prior("no_sizes", sizes=()),
            prior("bad_rank", (2, 3)), prior("plain", dtype="float64")]


def _detection() -> list[Case]:
    def detect(label: str, batch: int = 1, classes: int = 3, boxes: int = 10, dtype: str = "float32",
               span: tuple[float, float] = (0, 1), train: bool = False, whole: bool = False,
               anchor: Shape | None = None, loc: Shape | None = None, **attrs: object) -> Case:
        shapes: dict[str, Shape] = {"cls_prob": (batch, classes, boxes), "loc_pred": loc or (batch, boxes * 4),
                                    "anchor": anchor or (1, boxes, 4)}
        return case("_contrib_MultiBoxDetection", label, shapes, attrs, dtype, span=span, train=train,
                    spans={"anchor": (0, 1), "loc_pred": (-1, 1)}, integer=["cls_prob"] if whole else [])

    wide = {"variances": (0.1, 0.1, 3, 3), "nms_threshold": 0.1}
    return [detect("train", train=True), detect("wide", 2, **wide), detect("no_clip", 2, clip=False, **wide),
            detect("force", 2, force_suppress=True, **wide), detect("threshold", 2, threshold=0.6, **wide),
            detect("topk", 2, nms_topk=3, **wide), detect("topk_large", nms_topk=30, **wide),
            detect("ties", 2, 4, 12, span=(0, 3), whole=True, **wide),
            detect("ties_topk", 2, 4, 12, span=(0, 3), whole=True, nms_topk=4, **wide),
            detect("no_suppression", 2, nms_threshold=0), detect("no_suppression_large", nms_threshold=1.5),
            detect("nothing", threshold=2), detect("one_class", 2, 1), detect("negative", span=(-3, 0), threshold=-2),
            detect("background", background_id=1, **wide), detect("two", 1, 2, 3, **wide),
            detect("bad_variances", variances=(1, 2)), detect("bad_anchor", anchor=(10, 4)),
            detect("bad_width", anchor=(1, 10, 5)), detect("bad_loc", loc=(1, 10)), detect("plain", dtype="float64")]


def _target() -> list[Case]:
    def target(label: str, batch: int = 2, boxes: int = 12, rows: int = 4, classes: int = 3, dtype: str = "float32",
               train: bool = False, width: int = 5, low: float = -1, whole: bool = True, predictions: int = 0,
               **attrs: object) -> Case:
        """Labels are whole numbers, classes and corners alike; a class is sometimes -1, which ends the list."""
        shapes = {"anchor": (1, boxes, 4), "label": (batch, rows, width),
                  "cls_pred": (batch, classes, predictions or boxes)}
        return case("_contrib_MultiBoxTarget", label, shapes, attrs, dtype, span=(0, 3), spans={"label": (low, 4)},
                    integer=["label"] if whole else [], train=train)

    mined = {"negative_mining_ratio": 1.5, "negative_mining_thresh": 3, "low": 0}
    return [target("train", low=0, train=True), target("low", low=0, overlap_threshold=0.1),
            target("zero", low=0, overlap_threshold=0), target("parts", low=0, whole=False, overlap_threshold=0.05),
            target("variances", low=0, overlap_threshold=0.1, variances=(1, 2, 0.5, 0.25)),
            target("mined", **mined), target("mined_few", **mined, overlap_threshold=0.1, ignore_label=-7),
            target("mined_some", **mined, minimum_negative_samples=9),
            target("mined_small", negative_mining_ratio=0.3, negative_mining_thresh=3, low=0),
            target("mined_zero", **mined, overlap_threshold=0, whole=False),
            target("wide", width=7, low=0, overlap_threshold=0.1),
            target("one", 1, 5, 1, 2, low=0), target("plain", dtype="float64"), target("narrow", width=4),
            target("bad_variances", variances=(1,)), target("bad_classes", predictions=5)]


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
    for data in [(1, 2, 3, 4), (0, 0, 3, 4), (2, 3)]:
        made.append(row("_contrib_MultiBoxPrior", {"data": data}, {"sizes": (0.1, 0.2)}))
    for data in [(2, 3), (0, 3), (5, 2, 0), (3,)]:
        made.append(row("_contrib_bipartite_matching", {"data": data}, {"threshold": 0.1}))
    for anchors, means in [((2, 5, 4), (4,)), ((2, 5, 4), None), ((2, 5, 4), (3,))]:
        made.append(row("_contrib_box_encode", {"samples": (2, 5), "matches": (2, 5), "anchors": anchors,
                                                "refs": (2, 3, 4), "means": means, "stds": (4,)}))
    for loc in [(2, 24), (2, 20)]:
        made.append(row("_contrib_MultiBoxDetection", {"cls_prob": (2, 3, 6), "loc_pred": loc, "anchor": (1, 6, 4)}))
    for anchors, classes in [((1, 6, 4), (2, 4, 6)), ((1, 6, 4), (2, 4, 5)), ((2, 6, 4), (2, 4, 6))]:
        made.append(row("_contrib_MultiBoxTarget", {"anchor": anchors, "label": (2, 3, 5), "cls_pred": classes}))
    return made
