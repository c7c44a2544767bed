"""Golden cases of region proposals."""
from __future__ import annotations

from golden.cases import Case, case
from golden.shape_cases import Row, row

Shape = tuple[int, ...]


def cases() -> list[Case]:
    def propose(label: str, op: str = "_contrib_MultiProposal", batch: int = 2, anchors: int = 2, train: bool = False,
                dtype: str = "float32", image: tuple[float, float] = (28, 60), offsets: int = 0,
                **attrs: object) -> Case:
        """im_info is (height, width, scale), all from the span `image`, or what is below 1 for the scale alone."""
        shapes: dict[str, Shape] = {"cls_prob": (batch, 2 * anchors, 2, 3),
                                    "bbox_pred": (batch, offsets or 4 * anchors, 2, 3), "im_info": (batch, 3)}
        given = {"scales": (1, 2), "ratios": (1,), "rpn_pre_nms_top_n": 10, "rpn_post_nms_top_n": 6, "rpn_min_size": 0,
                 "output_score": True, **attrs}
        return case(op, label, shapes, given, dtype, span=(0, 1), train=train,
                    spans={"bbox_pred": (-0.7, 0.7), "im_info": image})

    one = {"op": "_contrib_Proposal", "batch": 1}
    return [propose("plain"), propose("train", train=True, output_score=False), propose("one", **one),
            propose("small", rpn_min_size=1), propose("tiny", rpn_min_size=1, image=(9, 12)),
            propose("wide", anchors=6, scales=(0.5, 1, 2), ratios=(0.5, 2), rpn_pre_nms_top_n=20),
            propose("ratios", anchors=3, scales=(1.5,), ratios=(0.3, 1, 3), threshold=0.3, rpn_pre_nms_top_n=-1),
            propose("again", rpn_post_nms_top_n=9, threshold=0.2), propose("more", rpn_post_nms_top_n=17),
            propose("iou", iou_loss=True), propose("stride", feature_stride=24),
            propose("two", op="_contrib_Proposal"), propose("bad_offsets", offsets=10),
            propose("double", dtype="float64")]


def rows() -> list[Row]:
    made = []
    for op, data, offsets in [("Proposal", (1, 24, 5, 6), (1, 48, 5, 6)), ("Proposal", (1, 24, 5, 6), None),
                              ("MultiProposal", (2, 24, 5, 6), None), ("MultiProposal", (2, 24, 5, 6), (2, 40, 5, 6)),
                              ("MultiProposal", (2, 20, 5, 6), (2, 40, 5, 6))]:
        made.append(row(f"_contrib_{op}", {"cls_prob": data, "bbox_pred": offsets, "im_info": None},
                        {"output_score": True}))
    return made
